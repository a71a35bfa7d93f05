import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import { followAct, reviewAct, sendSignature } from "../act.js";
import { toHex } from "../bytes.js";
import { batchDigest } from "../eip712.js";
import { Problem } from "../request.js";

const lost = () => { throw new Problem(0, {}); };
const pause = async () => {};

function server(answers) {
  const posts = [];
  const next = (name) => {
    const answer = answers[name].shift();
    return typeof answer === "function" ? answer() : answer;
  };
  return { posts, pause, get: async () => next("get"), post: async (path) => posts.push(path) && next("post") };
}

test("a signature whose answer was lost is not sent again if it arrived", async () => {
  const env = server({ post: [lost], get: [{ id: "a", state: "signed" }] });
  assert.equal((await sendSignature("a", {}, env)).state, "signed");
  assert.equal(env.posts.length, 1);
});

test("a signature that did not arrive is sent again to the same act", async () => {
  const env = server({ post: [lost, lost, { id: "a", state: "signed" }], get: [lost, { id: "a", state: "prepared" }] });
  assert.equal((await sendSignature("a", {}, env)).state, "signed");
  assert.deepEqual(env.posts, Array(3).fill("/app/acts/a/signature"));
});

test("a rejected signature is not sent again", async () => {
  const env = server({ post: [() => { throw new Problem(409, { code: "ACT_CONFLICT" }); }], get: [] });
  await assert.rejects(sendSignature("a", {}, env), { code: "ACT_CONFLICT" });
});

test("an act is followed to its end through lost answers", async () => {
  const states = [];
  const env = server({ get: [lost, { id: "a", state: "sent" }, { id: "a", state: "failed", reason: "nonce" }] });
  const end = await followAct({ id: "a", state: "signed" }, ({ state }) => states.push(state), env);
  assert.equal(end.reason, "nonce");
  assert.deepEqual(states, ["signed", "signed", "sent", "failed"]);
});

test("an act is reviewed only if account, chain and digest are those of its calls", () => {
  const { known, batches } = JSON.parse(readFileSync(new URL("vectors.json", import.meta.url)));
  const find = (name) => batches.find((batch) => batch.name === name);
  const page = { ...known, chainId: "31337" };
  const act = find("withdraw");
  assert.match(reviewAct(act, page).sentences.join(), /^Send 1,234\.56789 USDC to 0x/);
  // The digest fits, but the account is not the page's.
  const signed = (change) => ({ ...change, digest: toHex(batchDigest({ ...act, ...change })) });
  const changes = [
    { account: known.hub }, { chainId: 1 }, { nonce: act.nonce + 1 }, { deadline: act.deadline + 1 },
    { digest: find("enable").digest }, { calls: find("enable").calls },
    signed({ account: known.hub }), signed({ chainId: 1 }),
  ];
  for (const change of changes) assert.throws(() => reviewAct({ ...act, ...change }, page), JSON.stringify(change));
});
