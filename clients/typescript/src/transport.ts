import { requestSignature } from "./crypto.js";
import { type ErrorFields, type ForetellError, errorOf } from "./errors.js";
import { type ResponseInfo, infoOf } from "./response.js";

/** Time and chance. Tests replace it. */
export interface Clock {
  /** The present, in milliseconds since 1970. */
  now(): number;
  /** Waits. Rejects with the signal's reason if it is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** A random number from 0 to below 1. */
  random(): number;
}

/** What is stored of an answer, so that it is transferred again only after a change. */
export interface StoredAnswer {
  readonly etag: string;
  readonly text: string;
}

/** Stores answers. A `Map` is enough; the caller bounds its size. */
export interface EtagStore {
  get(key: string): StoredAnswer | undefined | Promise<StoredAnswer | undefined>;
  set(key: string, answer: StoredAnswer): unknown;
}

/** A line of the log. It contains no key, secret, token or body. */
export interface LogEntry {
  readonly event: "attempt" | "retry" | "stream";
  readonly method: string;
  readonly path: string;
  readonly attempt: number;
  readonly status?: number | null;
  readonly code?: string;
  readonly requestId?: string | undefined;
  readonly pauseMs?: number;
}

/** The options of a client. */
export interface Options {
  /** The API key. */
  apiKey: string;
  /** The address of the service, such as `https://api.example`. */
  baseUrl: string;
  /** Sign each request with the key. Default: false. */
  sign?: boolean;
  /** Stores the ETags of reads. Default: none are sent. */
  etags?: EtagStore;
  /** The API version to request. Default: the key's. */
  apiVersion?: string;
  /** How long attempts of one call begin, in milliseconds. Default: 30,000. */
  deadlineMs?: number;
  /** How long one attempt may take, in milliseconds. Default: 15,000; the service answers within 10,000. */
  attemptMs?: number;
  /** The first pause between attempts, in milliseconds; each further one is twice as long. Default: 1,000. */
  firstPauseMs?: number;
  /** The longest pause that the service did not ask for, in milliseconds. Default: 8,000. */
  maxPauseMs?: number;
  /** After how long a stream without a byte is dead, in milliseconds. Default: 45,000. */
  idleTimeoutMs?: number;
  /** How long `createAndWait` waits for a stream before it polls, in milliseconds. Default: 3,000. */
  streamPatienceMs?: number;
  /** Receives what happens, for a log. */
  log?: (entry: LogEntry) => void;
  /** Default: the runtime's `fetch`. */
  fetch?: typeof fetch;
  /** Default: the runtime's clock. */
  clock?: Clock;
}

type QueryValue = string | number | boolean | readonly (string | number)[] | undefined;

/** A request. */
export interface Call {
  method: "GET" | "POST";
  path: string;
  query?: object;
  body?: unknown;
  headers?: Record<string, string>;
  /** The member of the answer that must be there. */
  member: string;
  /** True if the same request can be sent again after its answer was lost. */
  isRepeatable: boolean;
  signal?: AbortSignal | undefined;
}

/** A successful answer. */
export interface Answer {
  json: Record<string, unknown>;
  info: ResponseInfo;
  attempts: number;
}

/** A call that failed. */
export class CallFailure extends Error {
  constructor(
    readonly error: ForetellError,
    readonly attempts: number,
    /** True if any attempt may have been stored. */
    readonly mayBeStored: boolean,
  ) {
    super(error.message);
  }
}

const RETRIED = new Set([429, 502, 503, 504]);
const MAX_ANSWER = 64 * 1024 * 1024;

const systemClock: Clock = {
  now: () => Date.now(),
  random: () => Math.random(),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const stop = () => {
        clearTimeout(timer);
        reject(signal?.reason);
      };
      const timer = setTimeout(() => {
        signal?.removeEventListener("abort", stop);
        resolve();
      }, ms);
      signal?.addEventListener("abort", stop, { once: true });
    }),
};

/** Returns true if an answer must be waited for: the first attempt with this name is still running. */
function isInProgress(error: ForetellError): boolean {
  return error.code === "IDEMPOTENCY_KEY_CONFLICT" && error.extensions["reason"] === "in_progress";
}

function hasNoAnswer(error: ForetellError): boolean {
  return error.status === null || error.code === "UNREADABLE_ANSWER";
}

function mayBeStored(error: ForetellError): boolean {
  return hasNoAnswer(error) || error.status === 502 || error.submission === "unknown";
}

/** Sends requests, and tries them again. */
export class Transport {
  readonly clock: Clock;
  readonly settings: Required<Pick<Options, "deadlineMs" | "attemptMs" | "firstPauseMs" | "maxPauseMs" | "idleTimeoutMs" | "streamPatienceMs">>;
  /** The newest state of the rate limit. */
  rateLimit: ResponseInfo["rateLimit"];
  readonly #apiKey: string;
  readonly #base: URL;
  readonly #options: Omit<Options, "apiKey">;

  constructor({ apiKey, ...options }: Options) {
    if (!/^service_(live|test)_[0-9A-Za-z]{32}$/.test(apiKey)) throw new TypeError("apiKey is not a well-formed API key");
    this.#apiKey = apiKey;
    this.#base = new URL(options.baseUrl);
    const isLocal = /^(localhost|127\.[0-9.]+|\[::1\])$/.test(this.#base.hostname);
    if (this.#base.protocol !== "https:" && !(this.#base.protocol === "http:" && isLocal)) {
      throw new TypeError("baseUrl must be https, or http on this machine");
    }
    this.#options = options;
    this.clock = options.clock ?? systemClock;
    const { deadlineMs = 30_000, attemptMs = 15_000, firstPauseMs = 1_000, maxPauseMs = 8_000 } = options;
    const { idleTimeoutMs = 45_000, streamPatienceMs = 3_000 } = options;
    this.settings = { deadlineMs, attemptMs, firstPauseMs, maxPauseMs, idleTimeoutMs, streamPatienceMs };
  }

  /** Sends a request until it is answered, cannot succeed, or the deadline has come. */
  async send(call: Call): Promise<Answer> {
    const end = this.clock.now() + this.settings.deadlineMs;
    let stored = false;
    for (let attempt = 1; ; attempt += 1) {
      const result = await this.#attempt(call, attempt);
      if ("json" in result) return { ...result, attempts: attempt };
      stored ||= mayBeStored(result);
      const pauseMs = this.pause(attempt, result.retryAfterMs);
      if (!this.#isRetried(call, result) || this.clock.now() + pauseMs > end) throw new CallFailure(result, attempt, stored);
      this.log({ event: "retry", method: call.method, path: call.path, attempt, code: result.code, pauseMs });
      await this.clock.sleep(pauseMs, call.signal);
    }
  }

  /** Returns the pause after the attempt with this number, in milliseconds. */
  pause(attempt: number, retryAfterMs?: number): number {
    const { firstPauseMs, maxPauseMs } = this.settings;
    const pauseMs = retryAfterMs ?? Math.min(firstPauseMs * 2 ** Math.min(attempt - 1, 30), maxPauseMs);
    return Math.round(pauseMs * (1 + this.clock.random() / 4));
  }

  log(entry: LogEntry): void {
    this.#options.log?.(entry);
  }

  #isRetried(call: Call, error: ForetellError): boolean {
    if (error.extensions["permanent"] === true) return false;
    if (!call.isRepeatable) {
      return error.status === 429 || (error.submission === "not_submitted" && RETRIED.has(error.status ?? 0));
    }
    return hasNoAnswer(error) || RETRIED.has(error.status ?? 0) || isInProgress(error);
  }

  async #attempt(call: Call, attempt: number): Promise<{ json: Record<string, unknown>; info: ResponseInfo } | ForetellError> {
    const url = this.#url(call);
    const store = call.method === "GET" ? this.#options.etags : undefined;
    const stored = await store?.get(url.pathname + url.search);
    const extra: Record<string, string> = stored ? { "If-None-Match": stored.etag } : {};
    const timeout = new AbortController();
    const timer = setTimeout(() => timeout.abort(), this.settings.attemptMs);
    let response: Response | undefined;
    let text: string;
    try {
      response = await this.fetch(call, extra, timeout.signal);
      text = await readText(response);
    } catch (cause) {
      call.signal?.throwIfAborted();
      return this.#failed(call, attempt, response, cause);
    } finally {
      clearTimeout(timer);
    }
    const info = infoOf(response);
    this.rateLimit = info.rateLimit ?? this.rateLimit;
    const { requestId } = info;
    if (response.status === 304 && stored) text = stored.text;
    else if (!response.ok) {
      const error = this.#problem(call, response, text, info);
      this.log({ event: "attempt", method: call.method, path: call.path, attempt, status: response.status, code: error.code, requestId });
      return error;
    }
    const json = parseObject(text);
    if (json?.[call.member] === undefined) {
      const message = "the answer cannot be read: it is not the service's";
      return this.#error(call, { code: "UNREADABLE_ANSWER", status: response.status, message, requestId, response: info });
    }
    this.log({ event: "attempt", method: call.method, path: call.path, attempt, status: response.status, requestId });
    const etag = response.headers.get("etag");
    if (store && etag !== null && response.status === 200) await store.set(url.pathname + url.search, { etag, text });
    return { json, info };
  }

  /** Sends one request, and returns its response. */
  async fetch(call: Call, extra: Record<string, string>, stop: AbortSignal): Promise<Response> {
    const url = this.#url(call);
    const body = call.body === undefined ? "" : JSON.stringify(call.body);
    const headers: Record<string, string> = { Accept: "application/json", "X-API-Key": this.#apiKey, ...call.headers, ...extra };
    if (call.method === "POST") headers["Content-Type"] = "application/json";
    if (this.#options.apiVersion !== undefined) headers["X-Service-Api-Version"] = this.#options.apiVersion;
    if (this.#options.sign) {
      const signed = [this.clock.now(), call.method, url.pathname, body] as const;
      headers["X-Service-Signature"] = await requestSignature(this.#apiKey, ...signed);
    }
    const send = this.#options.fetch ?? fetch;
    const signal = call.signal ? AbortSignal.any([call.signal, stop]) : stop;
    // A redirect could lead the key to another host.
    return await send(url, { method: call.method, headers, signal, redirect: "manual", ...(body && { body }) });
  }

  #url(call: Call): URL {
    const url = new URL(this.#base);
    url.pathname = url.pathname.replace(/\/$/, "") + call.path;
    for (const [name, value] of Object.entries((call.query ?? {}) as Record<string, QueryValue>)) {
      if (value !== undefined) url.searchParams.set(name, Array.isArray(value) ? value.join(",") : String(value));
    }
    return url;
  }

  #failed(call: Call, attempt: number, response: Response | undefined, cause: unknown): ForetellError {
    const { name, cause: inner } = cause as { name?: string; cause?: { code?: unknown; message?: unknown } };
    const reason = name === "AbortError" ? "no answer in time" : String(inner?.code ?? inner?.message ?? name ?? "no answer");
    this.log({ event: "attempt", method: call.method, path: call.path, attempt, status: null, code: "CONNECTION_FAILED" });
    const info = response && infoOf(response);
    return this.#error(call, { code: "CONNECTION_FAILED", status: null, message: `the connection failed: ${reason}`, response: info });
  }

  /** Reads a problem document. */
  async problemOf(call: Call, response: Response): Promise<ForetellError> {
    return this.#problem(call, response, await readText(response).catch(() => ""), infoOf(response));
  }

  #problem(call: Call, response: Response, body: string, info: ResponseInfo): ForetellError {
    const problem = parseObject(this.redact(body)) ?? {};
    const textOf = (name: string) => (typeof problem[name] === "string" ? (problem[name] as string) : undefined);
    const extensions = isObject(problem["extensions"]) ? problem["extensions"] : {};
    const seconds = response.headers.get("retry-after");
    const submission = extensions["submission"];
    const code = textOf("code") ?? `HTTP_${response.status}`;
    return this.#error(call, {
      code,
      status: response.status,
      message: [textOf("detail") ?? textOf("title") ?? `the service answered ${response.status}`, ...faultsOf(extensions)].join("; "),
      requestId: textOf("requestId") ?? info.requestId,
      docUrl: textOf("type"),
      submission: typeof submission === "string" ? submission : undefined,
      retryAfterMs: seconds !== null && /^[0-9]{1,9}$/.test(seconds) ? Number(seconds) * 1000 : undefined,
      extensions,
      response: info,
    });
  }

  #error(call: Call, fields: ErrorFields): ForetellError {
    const submission = fields.submission ?? (call.method === "POST" && mayBeLost(fields) ? "unknown" : undefined);
    return errorOf({ ...fields, message: this.redact(`${call.method} ${call.path}: ${fields.message}`), submission });
  }

  /** Removes the key from a text. */
  redact(text: string): string {
    return text.replaceAll(this.#apiKey, "[key]");
  }
}

/** Returns the first fields to correct, which the detail of `VALIDATION_FAILED` only refers to. */
function faultsOf({ errors }: Record<string, unknown>): string[] {
  const faults = Array.isArray(errors) ? errors.filter(isObject) : [];
  return faults.slice(0, 5).map(({ pointer, detail }) => `${pointer} ${detail}`);
}

function mayBeLost({ code, status }: ErrorFields): boolean {
  return status === null || status === 502 || code === "UNREADABLE_ANSWER";
}

async function readText(response: Response): Promise<string> {
  if (Number(response.headers.get("content-length") ?? 0) > MAX_ANSWER) throw new Error("the answer is too large");
  return await response.text();
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
