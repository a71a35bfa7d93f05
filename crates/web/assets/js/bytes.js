// Bytes as text: hex with 0x, and base64url without padding.

export function toHex(bytes) {
  return "0x" + Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function fromHex(text) {
  if (!/^0x([0-9a-f]{2})*$/i.test(text)) throw new TypeError("not hex");
  return Uint8Array.from(text.slice(2).match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

export function toBase64url(buffer) {
  const text = Array.from(new Uint8Array(buffer), (byte) => String.fromCharCode(byte)).join("");
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

export function fromBase64url(text) {
  const bytes = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(bytes, (character) => character.charCodeAt(0));
}

export function concat(...parts) {
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}
