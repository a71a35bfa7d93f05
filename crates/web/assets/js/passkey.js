// Passkeys: creating one, signing in, and signing the digest of an act.

import { fromBase64url, fromHex, toBase64url, toHex } from "./bytes.js";
import { announce } from "./page.js";
import { post, visit } from "./request.js";

const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
// The DER of a P-256 public key before its x and y.
const SPKI = "0x3059301306072a8648ce3d020106082a8648ce3d03010703420004";
const BACKUP_ELIGIBLE = 8;

const isSignUp = (purpose) => purpose === "sign-up" || purpose === "add-sign-in-key";

// Decodes a session's challenge. A batch's digest has 32 bytes, so that no sign-in signs a batch.
export function sessionChallenge(text) {
  const bytes = fromBase64url(text);
  if (bytes.length !== 40) throw new TypeError("The challenge does not have 40 bytes.");
  return bytes;
}

// Creates a passkey that is allowed to own an account.
export async function createPasskey({ challenge, rpId, userHandle }, name) {
  const publicKey = {
    challenge: sessionChallenge(challenge),
    rp: { id: rpId, name: rpId },
    user: { id: fromBase64url(userHandle), name: name || rpId, displayName: name || rpId },
    // The account contract verifies only ES256.
    pubKeyCredParams: [{ type: "public-key", alg: -7 }],
    authenticatorSelection: { residentKey: "required", userVerification: "required" },
    attestation: "none",
  };
  const { id, response } = await navigator.credentials.create({ publicKey });
  const data = new Uint8Array(response.getAuthenticatorData());
  return {
    id,
    clientDataJson: toBase64url(response.clientDataJSON),
    authenticatorData: toBase64url(data),
    publicKey: coordinates(new Uint8Array(response.getPublicKey())),
    transports: response.getTransports(),
    backupEligible: (data[32] & BACKUP_ELIGIBLE) !== 0,
  };
}

// Returns x and y of a P-256 key in DER.
export function coordinates(spki) {
  const hex = toHex(spki);
  if (spki.length !== 91 || !hex.startsWith(SPKI)) throw new TypeError("The passkey is not a P-256 key.");
  return "0x" + hex.slice(SPKI.length);
}

const assert = (publicKey, options) =>
  navigator.credentials.get({ publicKey: { userVerification: "required", ...publicKey }, ...options });

// Signs a session's challenge.
export async function assertSession({ challenge, rpId }, options) {
  const { id, response } = await assert({ challenge: sessionChallenge(challenge), rpId }, options);
  return {
    id,
    ...encodeAssertion(response),
    signature: toBase64url(response.signature),
    userHandle: response.userHandle ? toBase64url(response.userHandle) : undefined,
  };
}

// Signs a batch's digest with one of these passkeys.
export async function signDigest(digest, rpId, credentialIds) {
  if (digest.length !== 32) throw new TypeError("A digest must have 32 bytes.");
  const allowCredentials = credentialIds.map((id) => ({ type: "public-key", id: fromBase64url(id) }));
  const { id, response } = await assert({ challenge: digest, rpId, allowCredentials });
  const { r, s } = scalars(new Uint8Array(response.signature));
  return { credentialId: id, ...encodeAssertion(response), r, s };
}

function encodeAssertion({ clientDataJSON, authenticatorData }) {
  return { clientDataJson: toBase64url(clientDataJSON), authenticatorData: toBase64url(authenticatorData) };
}

// Returns r and s of a DER signature, with s in the lower half, as the contract requires.
export function scalars(der) {
  const [r, afterR] = integer(der, 2);
  const [s, end] = integer(der, afterR);
  if (der[0] !== 0x30 || der[1] !== der.length - 2 || end !== der.length) throw new TypeError("not a signature");
  const hex = (scalar) => "0x" + scalar.toString(16).padStart(64, "0");
  return { r: hex(r), s: hex(2n * s > ORDER ? ORDER - s : s) };
}

// Reads a DER integer at `at`. Returns it, and the position after it.
function integer(der, at) {
  const end = at + 2 + der[at + 1];
  const digits = der.slice(at + 2, end);
  const isShortest = digits[0] !== 0 || digits[1] > 127;
  const value = BigInt(digits.length ? toHex(digits) : 0);
  const isScalar = digits[0] < 128 && isShortest && value < ORDER;
  if (der[at] !== 2 || end > der.length || !isScalar) throw new TypeError("not a signature");
  return [value, end];
}

const MESSAGES = {
  NotSupportedError: "This device cannot make such a passkey. Use a phone, a security key or a wallet.",
  NotAllowedError: "The request was cancelled or timed out. Try again.",
  InvalidStateError: "This device already has a passkey for this site. Sign in with it.",
  SecurityError: "Passkeys do not work at this address.",
};

export const explain = (error) => MESSAGES[error.name] ?? error.message;

export function start(form) {
  const { purpose, act } = form.dataset;
  const fail = (error) => announce(explain(error), form);
  const waiting = new AbortController();
  const run = async (options) => {
    const challenge = await post("/app/challenges", { purpose, act });
    const { name, terms } = Object.fromEntries(new FormData(form));
    const passkey = isSignUp(purpose) ? await createPasskey(challenge, name) : await assertSession(challenge, options);
    const answer = await post(form.getAttribute("action"), { challengeId: challenge.id, name: name || undefined, terms, passkey });
    // A page that asks for a confirmation is shown again after it.
    visit(form.dataset.next ?? answer.next ?? location.href);
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    // The browser allows only one request for a passkey at a time.
    waiting.abort();
    run({}).catch(fail);
  });
  if (form.querySelector("[autocomplete~=webauthn]")) {
    const offer = (can) => can && run({ mediation: "conditional", signal: waiting.signal });
    canAutofill().then(offer).catch((error) => error.name === "AbortError" || fail(error));
  }
}

const canAutofill = async () => globalThis.PublicKeyCredential?.isConditionalMediationAvailable?.();
