// Every feed of the table, and the real feed through a network that cuts it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { FORETELL_MARKET, assertError, assertNoSecret, assertPauses, clientOf, fill, readLog, setRules, table, textOf } from "./support.mjs";

async function readFeed(client, entry) {
  const [events, generations] = [[], []];
  try {
    const options = { onGeneration: (generation) => generations.push(generation), ...(entry.after && { after: entry.after }) };
    for await (const { event } of client.events.stream(options)) {
      events.push(event.id);
      if (events.length === entry.expect.events.length && !entry.expect.error) break;
    }
    return { events, generations };
  } catch (error) {
    return { events, generations, error };
  }
}

for (const entry of table.feeds) {
  test(`${entry.id}: ${entry.rule}`, async () => {
    const { expect } = entry;
    await setRules(fill(entry.rules));
    const { client, lines, clock } = clientOf(entry);
    const { events, generations, error } = await readFeed(client, entry);
    const log = await readLog();
    assert.deepEqual(events, expect.events, error && textOf(error));
    if (expect.error) assertError(error, expect.error);
    if (expect.lastEventIds) assert.deepEqual(log.map(({ headers }) => headers["last-event-id"] ?? null), expect.lastEventIds);
    if (expect.requestsExactly) assert.equal(log.length, expect.requestsExactly);
    if (expect.generations) assert.deepEqual(generations, expect.generations);
    if (expect.pauses) assertPauses(clock.pauses, expect.pauses);
    assertNoSecret([...lines, error ? textOf(error) : ""]);
  });
}

test("every trade is in the feed once and in order although the network cuts it", async () => {
  const options = { firstPauseMs: 10 };
  await setRules([]);
  const writer = clientOf({ clock: "real", options }).client;
  const reader = clientOf({ clock: "real", options }).client;
  const trade = { marketId: FORETELL_MARKET, outcomeIndex: 1, side: "buy", amount: "0.10" };
  const first = await writer.trades.createAndWait(trade, { pollMs: 100 });
  await setRules([{ method: "GET", path: "/v1/events", action: "cut", when: "middle", afterBytes: 700, times: 1000 }]);
  const created = [];
  const making = (async () => {
    for (let number = 0; number < 6; number += 1) created.push((await writer.trades.create(trade)).id);
  })();
  const [seen, sequences] = [[], []];
  let hasBegun = false;
  for await (const { event } of reader.events.stream({ types: ["trade.completed"] })) {
    if (hasBegun) {
      seen.push(event.data.tradeId);
      sequences.push(event.sequence);
    }
    hasBegun ||= event.data.tradeId === first.id;
    if (seen.length === 6) break;
  }
  await making;
  assert.deepEqual(seen, created);
  assert.deepEqual(sequences, [...sequences].sort((one, other) => one - other));
  assert.ok((await readLog()).filter(({ path }) => path === "/v1/events").length > 2);
});

test("createAndWait leaves no timer behind if the feed has another event", async () => {
  const types = { "content-type": "text/event-stream" };
  const event = { sequence: 1, apiKeyId: null, id: "e1-1", type: "trade.completed", apiVersion: "2026-04-29", createdAt: "2026-04-29T12:00:00.123Z", data: {} };
  const chunks = ["event: heartbeat\ndata: {}\n\n", `id: 1-1\nevent: trade.completed\ndata: ${JSON.stringify(event)}\n\n`];
  await setRules([
    { method: "GET", path: "/v1/events", action: "answer", headers: types, chunks, end: "hang" },
    { method: "POST", path: "/v1/trades", action: "delay", ms: 100 },
  ]);
  const { client } = clientOf({});
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
  const before = timers();
  const held = await client.trades.createAndWait({ marketId: FORETELL_MARKET, outcomeIndex: 0, side: "buy", amount: "20.00" });
  assert.equal(held.status, "pending_confirmation");
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(timers(), before);
});
