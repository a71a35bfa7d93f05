import { ConflictError, type ForetellError, UnavailableError } from "./errors.js";
import { type FeedItem, readFeed } from "./feed.js";
import { type Pages, pagesOf } from "./pages.js";
import { remember, responseOf } from "./response.js";
import { type Answer, CallFailure, type Transport } from "./transport.js";
import type { CreatedTrade, DryRun, NewTrade, StatusChange, Trace, Trade, TradeQuery } from "./types.js";

/** How a trade is created. */
export interface CreateOptions {
  /**
   * The name of this trade, 1 to 255 of `A-Za-z0-9_-:.`, which the service remembers for 24 hours. Default:
   * `clientRequestId`, which it remembers without limit, or else a new UUID.
   */
  idempotencyKey?: string;
  signal?: AbortSignal;
}

/** How the end of a trade is waited for. */
export interface WaitOptions extends CreateOptions {
  /** How long to wait, in milliseconds. Default: 660,000, because a trade may take 10 minutes. */
  timeoutMs?: number;
  /** The pause between two reads if there is no stream, in milliseconds. Default: 1,000. */
  pollMs?: number;
  /** Receives each status of the trade, once and in order. */
  onStatus?: (change: StatusChange) => void;
}

/** A trade has ten minutes, and the chain some time to make its result final. */
const WAIT_MS = 660_000;
const MAX_CLIENT_REQUEST_ID = 128;
/** With a stream, the trade is also read this often, in case a proxy swallows events. */
const SLOW_POLL_MS = 10_000;

/** Conflicts of the name: a trade that has it is another one. */
const NAME_CONFLICTS = new Set(["IDEMPOTENCY_KEY_CONFLICT", "CLIENT_REQUEST_ID_CONFLICT"]);

/** Creates, confirms and reads trades. */
export class Trades {
  readonly #transport: Transport;

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Creates a trade, exactly once. Lost answers are retried under the same name; if the outcome is still unknown at the
   * deadline, the trade is looked up. If the name was used before, the result is the trade as it was created.
   */
  async create(trade: NewTrade, options: CreateOptions = {}): Promise<CreatedTrade> {
    const idempotencyKey = options.idempotencyKey ?? trade.clientRequestId ?? crypto.randomUUID();
    const isShort = idempotencyKey.length <= MAX_CLIENT_REQUEST_ID;
    const clientRequestId = trade.clientRequestId ?? (isShort ? idempotencyKey : undefined);
    const body = { ...bodyOf(trade), ...(clientRequestId !== undefined && { clientRequestId }) };
    try {
      const call = { member: "trade", body, headers: { "Idempotency-Key": idempotencyKey }, signal: options.signal };
      return resultOf(await this.#post("/v1/trades", call), "trade");
    } catch (failure) {
      if (!(failure instanceof CallFailure)) throw failure;
      const { error } = failure;
      if (!failure.mayBeStored || NAME_CONFLICTS.has(error.code)) throw error;
      // If the look-up fails too, the error of the create is the one that the caller can act on.
      const lookUp = async () => (clientRequestId === undefined ? undefined : await this.#lookUp(clientRequestId, body));
      const found = await lookUp().catch(() => undefined);
      if (found) return found;
      throw withUnknownSubmission(error);
    }
  }

  /** Makes every check of a trade and returns what it would move. Creates nothing. */
  async dryRun(trade: NewTrade, options: Pick<CreateOptions, "signal"> = {}): Promise<DryRun> {
    const call = { member: "dryRun", body: { ...bodyOf(trade), dryRun: true }, signal: options.signal };
    return resultOf(await this.#send("/v1/trades", call), "dryRun");
  }

  /**
   * Creates a trade and waits for its end: `completed`, `failed` or `rejected`. A trade that is held for its
   * confirmation is returned at once. Follows the feed of events, or polls the trade if streams are blocked.
   */
  async createAndWait(trade: NewTrade, options: WaitOptions = {}): Promise<Trade> {
    return await this.#follow(() => this.create(trade, options), options, true);
  }

  /** Waits for the end of a trade that exists, for example after `confirm`. */
  async wait(id: string, options: Omit<WaitOptions, "idempotencyKey"> = {}): Promise<Trade> {
    return await this.#follow(() => this.get(id, options), options, false);
  }

  /** Opens the feed, obtains a trade, and returns it when it has ended, or at once if it is held. */
  async #follow(obtain: () => Promise<Trade>, options: WaitOptions, returnsHeld: boolean): Promise<Trade> {
    const stop = new AbortController();
    const { clock, settings } = this.#transport;
    const signal = options.signal ? AbortSignal.any([options.signal, stop.signal]) : stop.signal;
    let ready = () => {};
    const isReady = new Promise<true>((resolve) => (ready = () => resolve(true)));
    const types = ["trade.completed", "trade.failed", "trade.rejected", ...(options.onStatus ? ["trade.status-changed"] : [])];
    const feed = readFeed(this.#transport, { types, from: "latest", signal }, { onReady: ready, isFatal: (error) => error.status !== null });
    let reported = 0;
    const report = (trade: Trade) => {
      if (!options.onStatus) return trade;
      for (const change of trade.statusHistory.slice(reported)) options.onStatus(change);
      reported = Math.max(reported, trade.statusHistory.length);
      return trade;
    };
    try {
      // The stream must be open before the trade exists, so that no event is missed.
      let next: Promise<IteratorResult<FeedItem, void> | undefined> = feed.next().catch(() => undefined);
      const patience = clock.sleep(settings.streamPatienceMs, signal).then(
        () => false,
        () => false,
      );
      const isStreaming = await Promise.race([isReady, patience, next.then(() => false)]);
      const first = report(await obtain());
      if (hasEnded(first) || (returnsHeld && first.status === "pending_confirmation")) return first;
      // A replay of the create has the trade as it was created.
      if (responseOf(first)?.isReplay) {
        const current = report(await this.get(first.id, { signal }));
        if (hasEnded(current)) return current;
      }
      const end = clock.now() + (options.timeoutMs ?? WAIT_MS);
      let pauseMs = isStreaming ? SLOW_POLL_MS : (options.pollMs ?? 1_000);
      for (;;) {
        if (clock.now() >= end) throw timedOut(first.id);
        const pause = clock.sleep(Math.min(pauseMs, end - clock.now()), signal).then(() => "pause" as const);
        const received = isStreaming ? await Promise.race([next, pause]) : await pause;
        pause.catch(() => {});
        if (received === undefined || (received !== "pause" && received.done)) {
          // The stream is gone: poll.
          pauseMs = options.pollMs ?? 1_000;
          next = new Promise(() => {});
        } else if (received !== "pause") {
          next = feed.next().catch(() => undefined);
          if (received.value.event.data.tradeId !== first.id) continue;
        }
        const current = report(await this.get(first.id, { signal }));
        if (hasEnded(current)) return current;
      }
    } finally {
      stop.abort();
      // A feed that waits to return another event keeps its timer, and the program alive, until it is left.
      feed.return().catch(() => {});
    }
  }

  /** Releases a held trade with the token of its creation. */
  async confirm(id: string, token: string, options: Pick<CreateOptions, "signal"> = {}): Promise<Trade> {
    try {
      const call = { member: "trade", body: { token }, signal: options.signal };
      return resultOf(await this.#post(`/v1/trades/${encodeURIComponent(id)}/confirm`, call), "trade");
    } catch (failure) {
      if (!(failure instanceof CallFailure)) throw failure;
      const { error } = failure;
      // An earlier attempt, whose answer was lost, has confirmed the trade.
      const wasConfirmed = failure.attempts > 1 && failure.mayBeStored && error.code === "CONFIRMATION_TOKEN_USED";
      if (error instanceof ConflictError && wasConfirmed) return await this.get(id, options);
      throw error;
    }
  }

  /** Reads a trade. */
  async get(id: string, options: Pick<CreateOptions, "signal"> = {}): Promise<Trade> {
    return resultOf(await this.#get(`/v1/trades/${encodeURIComponent(id)}`, "trade", options.signal), "trade");
  }

  /** Lists trades, newest first. */
  list(query: TradeQuery = {}): Pages<Trade> {
    return pagesOf(this.#transport, "/v1/trades", query);
  }

  /** Reads the steps of a trade. */
  async trace(correlationId: string): Promise<Trace> {
    return resultOf(await this.#get(`/v1/traces/${encodeURIComponent(correlationId)}`, "trace"), "trace");
  }

  async #lookUp(clientRequestId: string, sent: Record<string, unknown>): Promise<CreatedTrade | undefined> {
    for await (const trade of this.list({ clientRequestId })) {
      // Another trade may have had this name before.
      if (isSameRequest(trade, sent)) return trade as CreatedTrade;
    }
    return undefined;
  }

  #post(path: string, call: Parts): Promise<Answer> {
    return this.#transport.send({ method: "POST", path, isRepeatable: true, ...call });
  }

  async #send(path: string, call: Parts): Promise<Answer> {
    return await thrown(this.#post(path, call));
  }

  async #get(path: string, member: string, signal?: AbortSignal): Promise<Answer> {
    return await thrown(this.#transport.send({ method: "GET", path, member, isRepeatable: true, signal }));
  }
}

interface Parts {
  member: string;
  body: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
}

/** Unwraps the error of a call that needs no special treatment. */
export async function thrown<T>(call: Promise<T>): Promise<T> {
  return await call.catch((failure: unknown) => {
    throw failure instanceof CallFailure ? failure.error : failure;
  });
}

/** Returns the resource of an answer. */
export function resultOf<T extends object>(answer: Answer, member: string): T {
  const info = answer.json["_meta"] as { idempotent?: unknown } | undefined;
  return remember(answer.json[member] as T, { ...answer.info, isReplay: answer.info.isReplay || info?.idempotent === true });
}

function bodyOf(trade: NewTrade): Record<string, unknown> {
  const { amount, minTokensOut, maxTokensIn, deadline, ...rest } = trade;
  const atomic = (value: NewTrade["minTokensOut"]) => (typeof value === "object" ? value.atomic.toString() : value);
  return {
    ...rest,
    ...(amount !== undefined && { amount: amount.toString() }),
    ...(minTokensOut !== undefined && { minTokensOut: atomic(minTokensOut) }),
    ...(maxTokensIn !== undefined && { maxTokensIn: atomic(maxTokensIn) }),
    ...(deadline !== undefined && { deadline: deadline instanceof Date ? deadline.toISOString() : deadline }),
  };
}

function isSameRequest(trade: Trade, sent: Record<string, unknown>): boolean {
  const names = ["marketId", "outcomeIndex", "side"] as const;
  return names.every((name) => trade[name] === sent[name]) && (trade.amount ?? undefined) === sent["amount"];
}

function hasEnded(trade: { completedAt?: unknown; failedAt?: unknown }): boolean {
  return typeof trade.completedAt === "string" || typeof trade.failedAt === "string";
}

function withUnknownSubmission(error: ForetellError): ForetellError {
  return Object.assign(error, { submission: "unknown" });
}

function timedOut(tradeId: string): ForetellError {
  const message = `the trade ${tradeId} has not ended yet: read it later`;
  return new UnavailableError({ code: "WAIT_TIMED_OUT", status: null, message, submission: "submitted", extensions: { tradeId } });
}
