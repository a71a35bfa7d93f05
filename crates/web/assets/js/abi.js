// The parts of Ethereum's ABI that owner-signed batches use. Decoding accepts only the canonical
// encoding, so that the words shown to a user describe every byte.

import { concat, fromHex, toHex } from "./bytes.js";
import { keccak256 } from "./keccak.js";

export const hashText = (text) => keccak256(new TextEncoder().encode(text));

// Encodes a number, or an address as hex, as 32 bytes.
export function word(value) {
  const number = BigInt(value);
  if (number < 0n || number >> 256n) throw new RangeError("does not fit into 32 bytes");
  return fromHex("0x" + number.toString(16).padStart(64, "0"));
}

const number = (bytes) => BigInt(toHex(bytes));

// Returns an address in mixed case, whose capitals are its checksum (EIP-55).
export function checksum(address) {
  if (!/^0x[0-9a-f]{40}$/i.test(address)) throw new TypeError("not an address");
  const digits = address.slice(2).toLowerCase();
  const hash = toHex(hashText(digits));
  return "0x" + [...digits].map((digit, i) => (hash[i + 2] > "7" ? digit.toUpperCase() : digit)).join("");
}

// Decodes the arguments of a call with this signature, such as "transfer(address,uint256)".
// `bytes` is only supported as the last argument, tuples only if their members are static.
export function decode(signature, data) {
  const types = signature.slice(signature.indexOf("(")).match(/\w+/g);
  const heads = types.map((_, i) => data.subarray(32 * i, 32 * i + 32));
  const end = 32 * types.length;
  if (types.at(-1) !== "bytes" && data.length !== end) throw new RangeError("wrong length");
  return types.map((type, i) => (type === "bytes" ? tail(heads[i], data, end) : scalar(type, heads[i])));
}

function scalar(type, head) {
  if (head.length !== 32) throw new RangeError("wrong length");
  const bits = type === "address" ? 160 : Number(type.slice(4));
  const value = number(head);
  if (value >> BigInt(bits)) throw new RangeError(`not a canonical ${type}`);
  return type === "address" ? checksum(toHex(head.subarray(12))) : value;
}

function tail(head, data, start) {
  const length = Number(scalar("uint32", data.subarray(start, start + 32)));
  const end = start + 32 + length;
  const padding = data.subarray(end);
  const isWhole = data.length === start + 32 + 32 * Math.ceil(length / 32);
  if (scalar("uint32", head) !== BigInt(start) || !isWhole || padding.some(Boolean)) {
    throw new RangeError("not canonical bytes");
  }
  return data.subarray(start + 32, end);
}

export const selector = (signature) => toHex(hashText(signature).subarray(0, 4));

// Encodes static values. Those that are bytes already are hashes, of one word each.
export function encodeWords(...values) {
  return concat(...values.map((value) => (value instanceof Uint8Array ? value : word(value))));
}
