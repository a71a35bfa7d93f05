import type { ResponseInfo } from "./response.js";

/** Reports if a write was stored. Unknown values can be added. */
export type Submission = "not_submitted" | "submitted" | "unknown" | (string & {});

/** The properties of an error. */
export interface ErrorFields {
  /** The problem's code; `HTTP_<status>` without a problem; `CONNECTION_FAILED` or `UNREADABLE_ANSWER`. */
  code: string;
  message: string;
  /** The HTTP status, or null if there was no answer. */
  status: number | null;
  requestId?: string | undefined;
  docUrl?: string | undefined;
  submission?: Submission | undefined;
  retryAfterMs?: number | undefined;
  extensions?: Readonly<Record<string, unknown>>;
  response?: ResponseInfo | undefined;
}

/** An error of the API or of the connection to it. Branch on the class and on `code`. */
export class ForetellError extends Error {
  /** The stable code. New codes can be added: treat an unknown one like its class. */
  readonly code: string;
  readonly status: number | null;
  /** The id of the request. Quote it when you report a problem. */
  readonly requestId: string | undefined;
  /** The address of the page about the code. */
  readonly docUrl: string | undefined;
  /** Only for writes: if anything was stored or sent. */
  readonly submission: Submission | undefined;
  /** How long the service asked to wait, in milliseconds. */
  readonly retryAfterMs: number | undefined;
  /** Further members of the problem, such as `errors`, `tradeId`, `cap` or `limiter`. */
  readonly extensions: Readonly<Record<string, unknown>>;
  readonly response: ResponseInfo | undefined;

  constructor(fields: ErrorFields) {
    super(fields.message);
    this.name = new.target.name;
    this.code = fields.code;
    this.status = fields.status;
    this.requestId = fields.requestId;
    this.docUrl = fields.docUrl;
    this.submission = fields.submission;
    this.retryAfterMs = fields.retryAfterMs;
    this.extensions = fields.extensions ?? {};
    this.response = fields.response;
  }

  /** The trade that the error is about, if there is one. */
  get tradeId(): string | undefined {
    return typeof this.extensions["tradeId"] === "string" ? this.extensions["tradeId"] : undefined;
  }
}

/** 401 and 403: the key is missing, wrong, revoked, paused, or lacks a scope. */
export class AuthenticationError extends ForetellError {}
/** 429: too many requests. */
export class RateLimitedError extends ForetellError {}
/** 409: the request conflicts with the state of the account, the market or another trade. */
export class ConflictError extends ForetellError {}
/** Any other 4xx: the request is wrong, or there is no such resource. */
export class RefusedError extends ForetellError {}
/** No usable answer: 3xx, 5xx, a failed connection, or an answer that cannot be read. */
export class UnavailableError extends ForetellError {}

/** Returns an error of the class that belongs to the status. */
export function errorOf(fields: ErrorFields): ForetellError {
  const { status } = fields;
  if (status === 401 || status === 403) return new AuthenticationError(fields);
  if (status === 429) return new RateLimitedError(fields);
  if (status === 409) return new ConflictError(fields);
  if (status !== null && status >= 400 && status < 500) return new RefusedError(fields);
  return new UnavailableError(fields);
}
