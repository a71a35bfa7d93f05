// vectors.json is written by the client's encoders (`chain`, test browser_vectors).

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import { checksum } from "../abi.js";
import { fromHex, toHex } from "../bytes.js";
import { describeCalls, UnknownCall } from "../describe.js";
import { batchDigest, typedData } from "../eip712.js";
import { keccak256 } from "../keccak.js";

const { keccak, known, batches } = JSON.parse(readFileSync(new URL("vectors.json", import.meta.url)));
const RECIPIENT = checksum("0x" + "e7".repeat(20));
const PASSKEY = toHex(Uint8Array.from({ length: 64 }, (_, i) => i));
const find = (name) => batches.find((batch) => batch.name === name);
const LIMITS = "500.00 USDC per trade and 1,000.50 USDC per day";

const SENTENCES = {
  empty: [],
  enable: [
    "Allow the Gate to move USDC into your own trades, within the limits of your keys.",
    `Until January 15, 2027 at 8:00 AM UTC, key 3 may buy for at most ${LIMITS}, and sell tokens that pay at most ` +
      "250.00 USDC per trade and 500.00 USDC per day.",
  ],
  "enable without sales": [`Until January 15, 2027 at 8:00 AM UTC, key 4 may buy for at most ${LIMITS}, and sell nothing.`],
  revoke: ["Key 3 may no longer trade."],
  "approve an amount": ["Allow the Gate to move at most 5.00 USDC into your own trades, within the limits of your keys."],
  "end approval": ["End the permission of the Gate to move your USDC. Trading stops."],
  withdraw: [`Send 1,234.56789 USDC to ${RECIPIENT}.`],
  "send a position": [`Send 12.5 tokens of outcome 1 of market 7 to ${RECIPIENT}.`],
  buy: [
    "Allow the market hub to take 5,000.00 USDC for a purchase of yours.",
    "Buy at least 12.5 tokens of outcome 1 of market 7 for 5,000.00 USDC.",
  ],
  sell: ["Sell 12.5 tokens of outcome 1 of market 7 for at least 6.00 USDC."],
  "add a passkey": [`Add the passkey ${PASSKEY} as an owner. It can do everything with the account.`],
  "add a wallet": [`Add the wallet ${RECIPIENT} as an owner. It can do everything with the account.`],
  "remove a passkey": [`Remove the passkey ${PASSKEY} as an owner.`],
};

test("Keccak-256 equals the client's", () => {
  for (const { data, hash } of keccak) assert.equal(toHex(keccak256(fromHex(data))), hash, data.length);
});

test("the digest of a batch equals the client's", () => {
  for (const batch of batches) assert.equal(toHex(batchDigest(batch)), batch.digest, batch.name);
});

test("a wallet gets the types of the digest", () => {
  const { types, primaryType, domain, message } = typedData(find("withdraw"));
  assert.equal(primaryType, "Batch");
  assert.deepEqual(types.Batch.map(({ type, name }) => `${type} ${name}`), ["Call[] calls", "uint256 nonce", "uint256 deadline"]);
  assert.deepEqual(types.Call.map(({ name }) => name), ["target", "value", "data"]);
  assert.deepEqual(domain, { name: "Foretell Account", version: "1", chainId: 31337, verifyingContract: find("withdraw").account });
  assert.deepEqual(message.calls, find("withdraw").calls);
});

test("each kind of call has its sentence", () => {
  const described = batches.filter(({ name }) => !name.startsWith("reject"));
  assert.deepEqual(described.map(({ name }) => name).sort(), Object.keys(SENTENCES).sort());
  for (const { name, calls } of described) {
    const sentences = describeCalls(calls, known).map((text) => text.replaceAll("\u202f", " "));
    assert.deepEqual(sentences, SENTENCES[name], name);
  }
});

test("a call that is not understood in full is rejected", () => {
  const rejected = batches.filter(({ name }) => name.startsWith("reject"));
  assert.ok(rejected.length > 5);
  for (const { name, calls } of rejected) assert.throws(() => describeCalls(calls, known), UnknownCall, name);
});

test("capitals are the checksum of an address", () => {
  const addresses = ["0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359"];
  for (const address of addresses) assert.equal(checksum(address.toLowerCase()), address);
});

test("a byte more, a byte less or a dirty word is rejected", () => {
  for (const { name, calls } of batches.filter(({ name }) => SENTENCES[name]?.length)) {
    const call = calls.at(-1);
    const reject = (data, what) => assert.throws(() => describeCalls([{ ...call, data }], known), UnknownCall, `${name}: ${what}`);
    for (const extra of ["00", "00".repeat(32)]) reject(call.data + extra, "trailing bytes");
    for (const missing of [2, 64]) reject(call.data.slice(0, -missing), "missing bytes");
    reject(call.data.slice(0, 9), "half a byte");
    const first = call.data.slice(0, 10);
    // The first word of each function is an address, a small number or an offset.
    reject(`${first}01${call.data.slice(12)}`, "dirty high bits");
  }
});

test("padding of bytes must be zero, and their offset and length canonical", () => {
  const [call] = find("add a wallet").calls;
  const words = call.data.slice(10).match(/.{64}/g);
  const withWord = (at, word) => [{ ...call, data: call.data.slice(0, 10) + words.map((old, i) => (i === at ? word : old)).join("") }];
  const word = (number) => number.toString(16).padStart(64, "0");
  const bad = [[0, word(64)], [1, word(21)], [1, word(19)], [1, word(2 ** 40)], [2, words[2].slice(0, -1) + "1"]];
  assert.equal(describeCalls(withWord(1, word(20)), known).length, 1);
  for (const [at, value] of bad) assert.throws(() => describeCalls(withWord(at, value), known), UnknownCall, value);
});

test("a token's id has no bits above the market's", () => {
  const [call] = find("send a position").calls;
  const id = call.data.slice(74, 138);
  const data = call.data.replace(id, id.replace("0".repeat(46), "0".repeat(45) + "1"));
  assert.notEqual(data, call.data);
  assert.throws(() => describeCalls([{ ...call, data }], known), /not a position/);
});

test("an owner's change counts only on the user's own account", () => {
  const calls = find("add a wallet").calls.map((call) => ({ ...call, target: RECIPIENT }));
  assert.throws(() => describeCalls(calls, known), UnknownCall);
});
