// Requests to this site as JSON.

// A rejected request, or one whose answer was lost (status 0).
export class Problem extends Error {
  constructor(status, body, retryAfter) {
    const wait = retryAfter ? ` Try again in ${retryAfter} seconds.` : "";
    const id = body.requestId ? ` (${body.code}, request ${body.requestId})` : "";
    super((body.detail ?? body.title ?? "The answer was lost.") + wait + id);
    Object.assign(this, { status, code: body.code, errors: body.errors ?? [], body });
  }

  // True if the request may have taken effect.
  get isUncertain() {
    return this.status === 0 || this.status >= 500;
  }
}

const SIGNED_OUT = "You are signed out. Sign in in another tab, then try again.";

export async function request(method, path, body, signal) {
  let response;
  let answer = {};
  try {
    const headers = { Accept: "application/json", "Content-Type": "application/json" };
    response = await fetch(path, { method, headers, body: body && JSON.stringify(body), signal });
    answer = await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    // A proxy's error may not be JSON. A lost answer to a success is uncertain.
    if (!response || response.ok) throw new Problem(0, {});
  }
  if (response.status === 401) answer.detail = SIGNED_OUT;
  if (!response.ok) throw new Problem(response.status, answer, response.headers.get("Retry-After"));
  return answer;
}

export const get = (path, signal) => request("GET", path, undefined, signal);

export const post = (path, body, signal) => request("POST", path, body, signal);

// Continues at a page of this site.
export function visit(path) {
  const url = new URL(path, location.href);
  if (url.origin === location.origin) location.assign(url);
}

export const pause = (ms) => new Promise((done) => setTimeout(done, ms));
