import { ForetellError, UnavailableError, errorOf } from "./errors.js";
import { EventParser, type ServerSentEvent } from "./sse.js";
import type { Call, Transport } from "./transport.js";
import type { EventType, FeedEvent } from "./types.js";

/** An event of the feed, and its position. */
export interface FeedItem {
  /** The position of the event. Store it, and pass it as `after` to continue later. */
  readonly position: string;
  readonly event: FeedEvent;
}

/** How the feed is read. */
export interface FeedOptions {
  /** Only these types; `*` for all. Default: the ends of trades, and trades that wait for a confirmation. */
  types?: readonly EventType[] | "*";
  /** Continue after this position. */
  after?: string;
  /** The start without a position. Default: `oldest`. */
  from?: "oldest" | "latest";
  /** Ends the iteration. */
  signal?: AbortSignal;
  /** Called if data was restored, and the feed is read again from its start. */
  onGeneration?: (generation: number | undefined) => void;
}

/** Events that were returned are remembered by their ids, for a new generation. */
const MAX_REMEMBERED = 10_000;

/** An end of one connection that is not an error: the feed connects again. */
class Interruption extends Error {}

/** Internal signs of life, for `createAndWait`. */
export interface FeedHooks {
  /** Called at the first heartbeat: everything from now on will be returned. */
  onReady?: () => void;
  /** Returns true if the feed must end with this error instead of connecting again. */
  isFatal?: (error: ForetellError) => boolean;
}

/** Reads the feed, and resumes it after every interruption. */
export async function* readFeed(transport: Transport, options: FeedOptions, hooks: FeedHooks = {}): AsyncGenerator<FeedItem, void, undefined> {
  const { signal } = options;
  const returned = new Set<string>();
  let position = options.after;
  let { from } = options;
  let failures = 0;
  while (!signal?.aborted) {
    let hasArrived = false;
    try {
      for await (const received of connect(transport, { ...options, from }, position)) {
        position = received.id ?? position;
        if (received.name === "closing") break;
        hasArrived = true;
        failures = 0;
        if (received.name === "heartbeat") {
          hooks.onReady?.();
          continue;
        }
        const event = parseEvent(received);
        if (returned.has(event.id)) continue;
        returned.add(event.id);
        if (returned.size > MAX_REMEMBERED) returned.delete(returned.values().next().value as string);
        yield { position: position ?? "", event };
      }
    } catch (error) {
      if (signal?.aborted) return;
      // A stream that worked is resumed at once.
      if (error instanceof Interruption && hasArrived) continue;
      if (!(error instanceof Interruption)) {
        if (!(error instanceof ForetellError)) throw error;
        if (error.code === "FEED_RESTARTED") {
          [position, from] = [undefined, "oldest"];
          const { generation } = error.extensions;
          options.onGeneration?.(typeof generation === "number" ? generation : undefined);
          continue;
        }
        const canPass = error.status === null || error.status === 429 || error.status >= 500;
        if (!canPass || hooks.isFatal?.(error)) throw error;
      }
      failures += 1;
      const retryAfterMs = error instanceof ForetellError ? error.retryAfterMs : undefined;
      await transport.clock.sleep(transport.pause(failures, retryAfterMs), signal);
    }
  }
}

/** Reads one connection until it ends. Throws an `Interruption` if it breaks, and the typed error if it is refused. */
async function* connect(transport: Transport, options: Omit<FeedOptions, "from"> & { from: FeedOptions["from"] | undefined }, position: string | undefined): AsyncGenerator<ServerSentEvent> {
  const query = {
    types: options.types === "*" ? "*" : options.types,
    from: position === undefined ? options.from : undefined,
  };
  const call: Call = { method: "GET", path: "/v1/events", query, member: "data", isRepeatable: true, signal: options.signal };
  const headers: Record<string, string> = { Accept: "text/event-stream" };
  if (position !== undefined) headers["Last-Event-ID"] = position;
  const stop = new AbortController();
  const { idleTimeoutMs } = transport.settings;
  let timer = setTimeout(() => stop.abort(), idleTimeoutMs);
  try {
    const response = await transport.fetch(call, headers, stop.signal).catch((cause: unknown) => {
      if (options.signal?.aborted) throw cause;
      throw errorOf({ code: "CONNECTION_FAILED", status: null, message: "the connection to the feed failed" });
    });
    transport.log({ event: "stream", method: "GET", path: call.path, attempt: 1, status: response.status });
    if (!response.ok) throw await transport.problemOf(call, response);
    const isStream = response.headers.get("content-type")?.startsWith("text/event-stream");
    if (!isStream || !response.body) throw notAStream(response.status);
    const parser = new EventParser();
    const reader = response.body.getReader();
    for (;;) {
      const { done, value } = await reader.read().catch(() => {
        throw new Interruption();
      });
      if (done) throw new Interruption();
      clearTimeout(timer);
      timer = setTimeout(() => stop.abort(), idleTimeoutMs);
      yield* parser.push(value);
    }
  } finally {
    clearTimeout(timer);
    // Closes the connection also if the caller leaves the loop.
    stop.abort();
  }
}

function notAStream(status: number): ForetellError {
  return errorOf({ code: "UNREADABLE_ANSWER", status, message: "GET /v1/events: the answer is not a stream of events" });
}

function parseEvent({ data }: ServerSentEvent): FeedEvent {
  try {
    return JSON.parse(data) as FeedEvent;
  } catch {
    throw new UnavailableError({ code: "UNREADABLE_ANSWER", status: 200, message: "GET /v1/events: an event is not JSON" });
  }
}
