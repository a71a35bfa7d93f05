const encoder = new TextEncoder();

/** Computes HMAC-SHA256 with the Web Crypto API, which all runtimes have. */
export async function hmac(secret: string, ...parts: (string | Uint8Array)[]): Promise<Uint8Array> {
  const bytes = parts.map((part) => (typeof part === "string" ? encoder.encode(part) : part));
  const message = new Uint8Array(bytes.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of bytes) {
    message.set(part, at);
    at += part.length;
  }
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", encoder.encode(secret), algorithm, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", key, message));
}

export function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Compares two strings of equal length in constant time. */
export function equalInConstantTime(one: string, other: string): boolean {
  if (one.length !== other.length) return false;
  let difference = 0;
  for (let at = 0; at < one.length; at += 1) difference |= one.charCodeAt(at) ^ other.charCodeAt(at);
  return difference === 0;
}

/** Returns `X-Service-Signature` for a request. `path` has no query. */
export async function requestSignature(key: string, timeMs: number, method: string, path: string, body: string): Promise<string> {
  return `t=${timeMs},v1=${hex(await hmac(key, `${timeMs}.${method}.${path}.${body}`))}`;
}
