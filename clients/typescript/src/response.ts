/** The state of a rate limit after a response. */
export interface RateLimit {
  /** Requests per minute that the limiter allows. */
  readonly limit: number;
  /** Requests that are left. */
  readonly remaining: number;
  /** When the whole limit is available again. */
  readonly resetAt: Date;
}

/** The circumstances of a response. */
export interface ResponseInfo {
  readonly status: number;
  readonly requestId: string | undefined;
  readonly apiVersion: string | undefined;
  readonly rateLimit: RateLimit | undefined;
  /** True if the response is a replay of an earlier one. */
  readonly isReplay: boolean;
}

function rateLimitOf(headers: Headers): RateLimit | undefined {
  const [limit, remaining, reset] = ["limit", "remaining", "reset"].map((name) => {
    const text = headers.get(`x-ratelimit-${name}`);
    return text !== null && /^[0-9]{1,12}$/.test(text) ? Number(text) : undefined;
  });
  if (limit === undefined || remaining === undefined || reset === undefined) return undefined;
  return { limit, remaining, resetAt: new Date(reset * 1000) };
}

/** Reads the circumstances of a response from its headers. */
export function infoOf(response: Response): ResponseInfo {
  const { headers, status } = response;
  return {
    status,
    requestId: headers.get("x-request-id") ?? undefined,
    apiVersion: headers.get("x-service-api-version") ?? undefined,
    rateLimit: rateLimitOf(headers),
    isReplay: headers.get("idempotent-replayed") === "true",
  };
}

const infos = new WeakMap<object, ResponseInfo>();

/** Remembers the response that a result came from. */
export function remember<T>(result: T, info: ResponseInfo): T {
  if (typeof result === "object" && result !== null) infos.set(result, info);
  return result;
}

/** Returns the circumstances of the response that `result` came from, such as its rate limit and request id. */
export function responseOf(result: object): ResponseInfo | undefined {
  return infos.get(result);
}
