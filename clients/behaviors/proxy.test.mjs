// The proxy's own rules, with a server of this process behind it.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, beforeEach, test } from "node:test";
import { startProxy } from "./proxy.mjs";

let upstream;
let proxy;
let received;

before(async () => {
  upstream = createServer((incoming, outgoing) => {
    received.push(`${incoming.method} ${incoming.url}`);
    outgoing.writeHead(201, { "content-type": "application/json" });
    outgoing.end(JSON.stringify({ trade: { id: "7", status: "pending" } }));
  });
  await new Promise((resolve) => upstream.listen(0, "127.0.0.1", resolve));
  proxy = await startProxy(`http://127.0.0.1:${upstream.address().port}`);
});
after(() => {
  proxy.close();
  upstream.closeAllConnections();
  upstream.close();
});
beforeEach(() => (received = []));

const post = () => fetch(`${proxy.proxy}/v1/trades?a=1`, { method: "POST", body: "{}", headers: { "x-api-key": "secret" } });
const rule = (fields) => proxy.setRules([{ method: "POST", path: "/v1/trades", ...fields }]);

test("requests_without_a_rule_pass_and_the_log_has_no_key", async () => {
  const set = await fetch(`${proxy.control}/rules`, { method: "PUT", body: "[]" });
  assert.equal(set.status, 200);
  assert.equal((await (await post()).json()).trade.id, "7");
  const text = await (await fetch(`${proxy.control}/log`)).text();
  const [entry] = JSON.parse(text);
  assert.deepEqual([entry.path, entry.query, entry.body, entry.hasKey, entry.status], ["/v1/trades", { a: "1" }, "{}", true, 201]);
  assert.ok(!text.includes("secret"));
});

test("a_cut_before_reaches_nobody_and_a_cut_after_reaches_the_upstream", async () => {
  rule({ action: "cut", when: "before" });
  await assert.rejects(post());
  assert.equal(received.length, 0);
  rule({ action: "cut", when: "after" });
  await assert.rejects(post());
  assert.equal(received.length, 1);
  rule({ action: "cut", when: "middle" });
  await assert.rejects(post().then((answer) => answer.json()));
  assert.equal(received.length, 2);
});

test("a_rule_counts_skip_times_and_every", async () => {
  rule({ action: "answer", status: 503, skip: 1, times: 2, every: 2, body: { code: "X" } });
  const statuses = [];
  for (let number = 0; number < 7; number += 1) statuses.push((await post()).status);
  assert.deepEqual(statuses, [201, 201, 503, 201, 503, 201, 201]);
});

test("a_repeated_request_reaches_the_upstream_that_often", async () => {
  rule({ action: "repeat", count: 3 });
  assert.equal((await post()).status, 201);
  assert.equal(received.length, 3);
});

test("a_merge_changes_the_upstream_answer", async () => {
  rule({ action: "merge", body: { trade: { status: "new" }, more: 1 } });
  assert.deepEqual(await (await post()).json(), { trade: { id: "7", status: "new" }, more: 1 });
});

test("chunks_arrive_before_the_connection_is_cut", async () => {
  rule({ action: "answer", headers: { "content-type": "text/event-stream" }, chunks: ["data: 1\n", "\n"], end: "cut" });
  const answer = await post();
  let text = "";
  await assert.rejects(async () => {
    for await (const chunk of answer.body) text += new TextDecoder().decode(chunk);
  });
  assert.equal(text, "data: 1\n\n");
});

test("an_answer_after_forwarding_hides_the_upstream_answer", async () => {
  rule({ action: "answer", forward: true, status: 502, body: "<html>" });
  const answer = await post();
  assert.equal(answer.status, 502);
  assert.equal(await answer.text(), "<html>");
  assert.equal(received.length, 1);
});
