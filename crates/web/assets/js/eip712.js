// The EIP-712 digest and typed data of a batch, computed from its calls.

import { concat, fromHex } from "./bytes.js";
import { encodeWords, hashText } from "./abi.js";
import { keccak256 } from "./keccak.js";

const field = (text) => {
  const [type, name] = text.split(" ");
  return { name, type };
};
const DOMAIN = "string name,string version,uint256 chainId,address verifyingContract";
const CALL = "address target,uint256 value,bytes data";
const BATCH = "Call[] calls,uint256 nonce,uint256 deadline";
const [NAME, VERSION] = ["Foretell Account", "1"];
const CALL_TYPE = `Call(${CALL})`;

const hashWords = (...values) => keccak256(encodeWords(...values));

// Returns the 32 bytes that an owner of the account signs. `batch` has chainId, account, calls,
// nonce and deadline.
export function batchDigest({ chainId, account, calls, nonce, deadline }) {
  const domain = hashWords(
    hashText(`EIP712Domain(${DOMAIN})`), hashText(NAME), hashText(VERSION), chainId, account,
  );
  const hashes = calls.map(({ target, value, data }) =>
    hashWords(hashText(CALL_TYPE), target, value, keccak256(fromHex(data))));
  const type = hashText(`Batch(${BATCH})${CALL_TYPE}`);
  const batch = hashWords(type, keccak256(concat(...hashes)), nonce, deadline);
  return keccak256(concat([0x19, 0x01], domain, batch));
}

// Returns the argument of a wallet's eth_signTypedData_v4.
export function typedData({ chainId, account, calls, nonce, deadline }) {
  const types = { EIP712Domain: DOMAIN, Call: CALL, Batch: BATCH };
  const split = ([name, text]) => [name, text.split(",").map(field)];
  return {
    types: Object.fromEntries(Object.entries(types).map(split)),
    primaryType: "Batch",
    domain: { name: NAME, version: VERSION, chainId, verifyingContract: account },
    message: { calls, nonce: String(nonce), deadline: String(deadline) },
  };
}
