// Every call of the table, through the proxy.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { responseOf } from "@foretell/client";
import * as support from "./support.mjs";

const { FORETELL_MARKET, ask, assertError, assertNoSecret, assertPauses, clientOf, fill, matchesRequest, readLog, setRules, table } = support;

async function items(pages) {
  const found = [];
  for await (const item of pages) found.push(item);
  return found;
}

function buy({ idempotencyKey, ...members }) {
  return [{ marketId: FORETELL_MARKET, outcomeIndex: 0, side: "buy", ...members }, idempotencyKey === undefined ? {} : { idempotencyKey }];
}

const CALLS = {
  createTrade: (client, given) => client.trades.create(...buy(given)),
  createAndWait: (client, given, onStatus) => client.trades.createAndWait(buy(given)[0], { pollMs: 100, onStatus }),
  createThenWait: async (client, given, onStatus) => client.trades.wait((await client.trades.create(...buy(given))).id, { onStatus }),
  dryRun: (client, given) => client.trades.dryRun(...buy(given)),
  confirmHeld: async (client, given) => {
    const held = await client.trades.create(...buy(given));
    assert.equal(held.status, "pending_confirmation");
    return await client.trades.confirm(held.id, held.confirmation.token);
  },
  confirm: (client, { trade, token }) => client.trades.confirm(trade, token),
  getMarket: (client) => client.markets.get(FORETELL_MARKET),
  getKey: (client) => client.keys.get(),
  listMarkets: (client, query) => items(client.markets.list(query)),
  redeem: (client, { outcomeIndex }) => client.redemptions.create({ marketId: FORETELL_MARKET, outcomeIndex }),
  redeliver: (client, { event }) => client.webhooks.redeliver(event),
  rotateSecret: (client) => client.webhooks.rotateSecret(),
};

async function run(client, call) {
  const [results, reported] = [[], []];
  const onStatus = ({ status }) => reported.push(status);
  try {
    for (let number = 0; number < (call.times ?? 1); number += 1) results.push(await CALLS[call.do](client, call.with ?? {}, onStatus));
    return { results, reported };
  } catch (error) {
    return { results, reported, error };
  }
}

const postsOf = (log) => log.filter((entry) => matchesRequest("POST /v1/trades", entry));

async function tradesNamed(log, given) {
  const name = given?.clientRequestId ?? JSON.parse(postsOf(log)[0].body).clientRequestId;
  if (name === undefined) return 0;
  return (await ask(`/v1/trades?clientRequestId=${name}`)).data.length;
}

const CHECKS = {
  error: (expected, { error }) => assertError(error, expected),
  docUrl: (expected, { error }) => assert.equal(error.docUrl, expected),
  requestId: (expected, { error }) => assert.equal(error.requestId, expected),
  messageContains: (expected, { error }) => expected.forEach((text) => assert.ok(error.message.includes(text), error.message)),
  statusesReported: (expected, { reported }) => assert.deepEqual(reported, expected),
  result: (_, { error, results }) => assert.ok(error === undefined && results.length > 0, error && support.textOf(error)),
  requests: (expected, { log }) => {
    const made = log.map(({ method, path }) => `${method} ${path}`);
    assert.ok(made.length === expected.length && expected.every((pattern, index) => matchesRequest(pattern, log[index])), `requests: ${made}`);
  },
  requestsAtLeast: (expected, { log }) => assert.ok(log.length >= expected, `only ${log.length} requests`),
  contains: (expected, { log }) => expected.forEach((pattern) => assert.ok(log.some((entry) => matchesRequest(pattern, entry)), pattern)),
  statuses: (expected, { log }) => assert.deepEqual(log.map(({ status }) => status), expected),
  pauses: (expected, { clock }) => assertPauses(clock.pauses, expected),
  deadline: (_, { clock }) => {
    const { deadlineMs, maxPauseMs, jitter } = table.policy;
    const waited = clock.pauses.reduce((sum, pause) => sum + pause, 0);
    assert.ok(waited <= deadlineMs && waited + maxPauseMs * (1 + jitter) > deadlineMs, `waited for ${waited} ms`);
  },
  withinMs: (expected, { elapsedMs }) => assert.ok(elapsedMs <= expected, `it took ${elapsedMs} ms`),
  sameName: (_, { log }) => {
    const made = postsOf(log);
    assert.equal(new Set(made.map(({ body }) => body)).size, 1);
    assert.equal(new Set(made.map(({ headers }) => headers["idempotency-key"])).size, 1);
    assert.match(made[0].headers["idempotency-key"], /^[A-Za-z0-9_:.-]{1,255}$/);
    assert.match(JSON.parse(made[0].body).clientRequestId, /^[A-Za-z0-9_:.-]{1,128}$/);
  },
  names: (expected, { log }) => {
    const [made] = postsOf(log);
    assert.equal(made.headers["idempotency-key"], expected.idempotencyKey);
    assert.equal(JSON.parse(made.body).clientRequestId, expected.clientRequestId);
  },
  trades: async (expected, { log, call }) => assert.equal(await tradesNamed(log, call.with), expected),
  status: (expected, { results }) => assert.equal(results[0].status, expected),
  signatures: (expected, { log }) => {
    const signatures = log.map(({ headers }) => headers["x-service-signature"]).filter(Boolean);
    assert.equal(new Set(signatures).size, expected);
  },
  rateLimit: (expected, { results, client }) => {
    const { rateLimit } = responseOf(results[0]);
    assert.equal(rateLimit !== undefined, expected);
    assert.deepEqual(client.rateLimit, rateLimit);
    if (expected) assert.ok(rateLimit.limit > 0 && rateLimit.remaining >= 0 && rateLimit.resetAt > new Date(0));
  },
  sameResult: (_, { results }) => results.forEach((result) => assert.deepEqual(result, results[0])),
  items: async (_, { results }) => {
    const { data } = await ask("/v1/markets?limit=100");
    assert.deepEqual(results[0].map(({ id }) => id), data.map(({ id }) => id));
  },
  confirmed: (_, { results }) => assert.notEqual(results[0].status, "pending_confirmation"),
};

for (const entry of table.calls) {
  test(`${entry.id}: ${entry.rule}`, async () => {
    const { rules, call, expect, before } = fill(entry, randomUUID());
    await setRules([]);
    if (before) assert.equal((await run(clientOf({}).client, before)).error, undefined);
    await setRules(rules);
    const { client, lines, clock } = clientOf(entry);
    const began = performance.now();
    const { results, reported, error } = await run(client, call);
    const elapsedMs = performance.now() - began;
    const log = await readLog();
    for (const [name, expected] of Object.entries(expect)) {
      assert.ok(CHECKS[name], `no check for ${name}`);
      await CHECKS[name](expected, { results, reported, error, log, clock, call, client, elapsedMs });
    }
    assertNoSecret([...lines, error ? support.textOf(error) : "", support.textOf(client)]);
  });
}
