import assert from "node:assert/strict";
import test from "node:test";

import { fromHex, toHex } from "../bytes.js";
import { post, Problem } from "../request.js";
import { signBatch } from "../wallet.js";
import { signText } from "../wallet_text.js";

// Answers requests with these responses during `run`. An error is a lost connection.
async function withResponses(responses, run) {
  const requests = [];
  globalThis.fetch = async (path, options) => {
    requests.push([path, options]);
    const response = responses.shift();
    if (response instanceof Error) throw response;
    return response;
  };
  return { result: await run(), requests };
}

const json = (status, body, headers) => new Response(JSON.stringify(body), { status, headers });
const catchProblem = (responses) => withResponses(responses, () => post("/x", {}).catch((error) => error));

test("an answer is JSON, and so is the request", async () => {
  const { result, requests } = await withResponses([json(200, { a: 1 })], () => post("/x", { b: 2 }));
  assert.deepEqual(result, { a: 1 });
  assert.equal(requests[0][1].body, '{"b":2}');
});

test("a lost or unreadable answer is uncertain, and a rejection is not", async () => {
  const cases = [
    [new TypeError("failed"), true], [new Response("<html>", { status: 200 }), true],
    [new Response("<html>", { status: 502 }), true], [json(500, {}), true], [json(503, {}), true],
    [new Response("<html>", { status: 404 }), false], [json(409, { code: "X" }), false], [json(401, {}), false],
  ];
  for (const [response, isUncertain] of cases) {
    const { result } = await catchProblem([response]);
    assert.ok(result instanceof Problem);
    assert.equal(result.isUncertain, isUncertain, response.status);
  }
});

test("a problem names its code, its request and the seconds to wait", async () => {
  const body = { code: "RATE_LIMIT_EXCEEDED", detail: "Too many.", requestId: "r1" };
  const { result } = await catchProblem([json(429, body, { "Retry-After": "7" })]);
  assert.equal(result.message, "Too many. Try again in 7 seconds. (RATE_LIMIT_EXCEEDED, request r1)");
});

test("an aborted request is not a lost answer", async () => {
  const { result } = await catchProblem([new DOMException("aborted", "AbortError")]);
  assert.equal(result.name, "AbortError");
});

const OWNER = "0x" + "aB".repeat(20);
const batch = { chainId: 31337, account: "0x" + "dd".repeat(20), calls: [], nonce: 0, deadline: 1 };

function wallet({ chainId = "0x7a69", addresses = [OWNER], v = "1b" } = {}) {
  const calls = [];
  const answers = {
    eth_requestAccounts: addresses, eth_chainId: chainId, personal_sign: "0x" + "33".repeat(65),
    eth_signTypedData_v4: "0x" + "11".repeat(64) + v, wallet_switchEthereumChain: null,
  };
  const request = async ({ method, params }) => calls.push([method, params]) && answers[method];
  return { calls, request };
}

test("a wallet signs with an owner's address, on the account's chain", async () => {
  const other = "0x" + "01".repeat(20);
  const same = wallet({ addresses: [other, OWNER] });
  assert.equal((await signBatch(same, batch, [OWNER.toLowerCase()])).address, OWNER);
  assert.ok(!same.calls.some(([method]) => method === "wallet_switchEthereumChain"));
  const [, [address, typed]] = same.calls.at(-1);
  assert.equal(address, OWNER);
  assert.equal(JSON.parse(typed).domain.verifyingContract, batch.account);
  const elsewhere = wallet({ chainId: "0x1" });
  await signBatch(elsewhere, batch, [OWNER]);
  assert.deepEqual(elsewhere.calls.find(([method]) => method === "wallet_switchEthereumChain")[1], [{ chainId: "0x7a69" }]);
  await assert.rejects(signBatch(wallet({ addresses: [other] }), batch, [OWNER]), /owner/);
});

test("the last byte of a wallet's signature is 27 or 28", async () => {
  for (const [v, expected] of [["00", 27], ["01", 28], ["1b", 27], ["1c", 28]]) {
    assert.equal(fromHex((await signBatch(wallet({ v }), batch, [OWNER])).signature)[64], expected);
  }
});

test("a wallet signs exactly the server's text", async () => {
  const text = "localhost wants you to sign in – now";
  const provider = wallet();
  const { result } = await withResponses([json(200, { id: "c", text })], () => signText(provider, "wallet-sign-in"));
  const signature = "0x" + "33".repeat(65);
  assert.deepEqual(result, { challengeId: "c", wallet: { address: OWNER, account: undefined, signature } });
  assert.deepEqual(provider.calls.at(-1)[1], [toHex(new TextEncoder().encode(text)), OWNER]);
});

test("a wallet that names an account says which text it has signed", async () => {
  const account = "0x" + "42".repeat(20);
  const sign = () => signText(wallet(), "sign-in", account);
  const { result, requests } = await withResponses([json(200, { id: "c", text: "Sign in to the account" })], sign);
  assert.equal(result.wallet.account, account);
  assert.deepEqual(JSON.parse(requests[0][1].body), { purpose: "sign-in", address: OWNER, account });
});
