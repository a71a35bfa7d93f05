import { equalInConstantTime, hex, hmac } from "./crypto.js";
import type { WebhookEvent } from "./types.js";

/** A delivery that must be answered with 400 and ignored. */
export class WebhookVerificationError extends Error {
  /** `malformed`, `stale`, `different` or `unreadable`. */
  readonly reason: "malformed" | "stale" | "different" | "unreadable";

  constructor(reason: WebhookVerificationError["reason"], message: string) {
    super(message);
    this.name = "WebhookVerificationError";
    this.reason = reason;
  }
}

/** How deliveries are verified. */
export interface VerifyOptions {
  /** The allowed difference between the signature's time and the clock. Default: 5 minutes. */
  toleranceMs?: number;
  /** The present, in milliseconds since 1970. Default: the clock. */
  nowMs?: number;
}

/** Returns the header `X-Service-Signature` of a delivery, for tests of a receiver. */
export async function signDelivery(body: string | Uint8Array, secret: string, nowMs: number = Date.now()): Promise<string> {
  return `t=${nowMs},v1=${hex(await hmac(secret, `${nowMs}.`, body))}`;
}

/**
 * Verifies a delivery and returns its event.
 *
 * @param body - The bytes of the body as they arrived, or their text. Not a body that was parsed and serialized again.
 * @param header - The header `X-Service-Signature`, as a `Request` or Node.js has it.
 * @param secret - The secret of the key, or several of them during a rotation.
 * @throws {@link WebhookVerificationError} if the delivery must be ignored.
 */
export async function verify(
  body: string | Uint8Array,
  header: string | readonly string[] | null | undefined,
  secret: string | readonly string[],
  options: VerifyOptions = {},
): Promise<WebhookEvent> {
  const { toleranceMs = 300_000, nowMs = Date.now() } = options;
  const elements = String(header ?? "").split(",").map((element) => {
    const at = element.indexOf("=");
    return at < 0 ? ["", ""] : [element.slice(0, at).trim(), element.slice(at + 1).trim()];
  });
  const valuesOf = (wanted: string) => elements.flatMap(([name, value]) => (name === wanted && value ? [value] : []));
  const [time, ...otherTimes] = valuesOf("t");
  const signatures = valuesOf("v1");
  if (time === undefined || otherTimes.length > 0 || !/^[0-9]{1,15}$/.test(time) || signatures.length === 0) {
    throw new WebhookVerificationError("malformed", "the signature header must be t=<unix-ms>,v1=<hex>");
  }
  if (Math.abs(nowMs - Number(time)) > toleranceMs) {
    throw new WebhookVerificationError("stale", "the signature's time is too far from the clock");
  }
  const secrets = (typeof secret === "string" ? [secret] : secret).filter((text) => text !== "");
  const expected = await Promise.all(secrets.map(async (text) => hex(await hmac(text, `${time}.`, body))));
  // Every pair is compared, so that the time does not show which one matches.
  const matches = expected.flatMap((one) => signatures.map((given) => equalInConstantTime(one, given)));
  if (!matches.includes(true)) {
    throw new WebhookVerificationError("different", "no signature belongs to this body and secret");
  }
  try {
    return JSON.parse(typeof body === "string" ? body : new TextDecoder("utf-8", { fatal: true }).decode(body)) as WebhookEvent;
  } catch {
    throw new WebhookVerificationError("unreadable", "the body is not JSON");
  }
}
