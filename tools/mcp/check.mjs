// Uses the tools for agents with a published client of the Model Context Protocol: lists them, quotes, trades, is held,
// and is rejected without the scope. No byte that the service sends may contain a secret.
//
// FORETELL_URL is the service, FORETELL_API_KEY a key that holds trades from 20 USDC, FORETELL_READ_KEY one without the
// scope trades:write.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const { FORETELL_URL, FORETELL_API_KEY, FORETELL_READ_KEY } = process.env;
const url = new URL("/mcp", FORETELL_URL);
let received = "";

/** Keeps a copy of everything that the service sends. */
async function recorded(input, init) {
  const response = await fetch(input, init);
  const text = await response.clone().text();
  received += JSON.stringify([...response.headers]) + text;
  return response;
}

async function connected(key) {
  const client = new Client({ name: "foretell-check", version: "1.0.0" });
  const requestInit = { headers: { "X-API-Key": key } };
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit, fetch: recorded }));
  return client;
}

/** Returns the answer of a tool. The client compares it with the tool's schema. */
async function answer(client, name, args) {
  const result = await client.callTool({ name, arguments: args });
  assert.ok(!result.isError, `${name}: ${JSON.stringify(result.content)}`);
  return result.structuredContent;
}

async function refusal(client, name, args) {
  const result = await client.callTool({ name, arguments: args });
  assert.ok(result.isError, `${name} must be rejected: ${JSON.stringify(result)}`);
  return JSON.parse(result.content[0].text);
}

const client = await connected(FORETELL_API_KEY);
assert.match(client.getInstructions(), /dryRun/);
const { tools } = await client.listTools();
const names = tools.map((tool) => tool.name).sort();
const reading = ["get_market", "list_trades", "portfolio", "quote", "search_markets", "trace"];
assert.deepEqual(names, [...reading, "create_trade", "redeem"].sort());
assert.ok(tools.every((tool) => tool.outputSchema && tool.description));

const { markets } = await answer(client, "search_markets", { status: "OPEN", limit: 2 });
const { marketId } = await answer(client, "get_market", { marketId: markets[0].marketId });
const order = { marketId, outcomeIndex: 0, side: "buy", amount: "5.00" };
const quote = await answer(client, "quote", order);
assert.deepEqual(quote.usdc, { amount: "5", unit: "USDC" });
assert.match(quote.tokens.amount, /^[0-9]+\.[0-9]+$/);

const bought = { ...order, maxSlippageBps: 1000, idempotencyKey: randomUUID() };
assert.equal((await answer(client, "create_trade", { ...bought, dryRun: true })).result, "dry_run");
const created = await answer(client, "create_trade", bought);
assert.equal(created.result, "created");
const repeated = await answer(client, "create_trade", bought);
assert.equal(repeated.result, "repeated");
assert.equal(repeated.trade.tradeId, created.trade.tradeId);
let trade;
for (const end = Date.now() + 20_000; ; await pause(100)) {
  const { trades } = await answer(client, "list_trades", { marketId });
  trade = trades.find(({ tradeId }) => tradeId === created.trade.tradeId);
  if (trade.status === "completed") break;
  assert.ok(!["failed", "rejected"].includes(trade.status) && Date.now() < end, JSON.stringify(trade));
}
assert.deepEqual(trade.usdc, { amount: "5", unit: "USDC" });
assert.equal((await answer(client, "trace", { correlationId: trade.correlationId })).status, "completed");
const { positions } = await answer(client, "portfolio", {});
assert.ok(positions.some((position) => position.marketId === marketId));

const held = await answer(client, "create_trade", { ...order, amount: "20.00", idempotencyKey: randomUUID() });
assert.equal(held.result, "held");
assert.match(held.confirmation.url, new RegExp(`/trades/${held.trade.tradeId}$`));
assert.equal((await refusal(client, "create_trade", { ...bought, surprise: 1 })).code, "VALIDATION_FAILED");
assert.equal((await refusal(client, "redeem", { marketId, outcomeIndex: 0 })).code, "POSITION_NOT_CLAIMABLE");

const reader = await connected(FORETELL_READ_KEY);
assert.deepEqual((await reader.listTools()).tools.map((tool) => tool.name).sort(), reading);
assert.equal((await refusal(reader, "create_trade", bought)).code, "INSUFFICIENT_SCOPE");
await assert.rejects(connected("service_test_" + "a".repeat(32)), /API_KEY_INVALID|Unauthorized|401/);

for (const secret of [FORETELL_API_KEY, FORETELL_READ_KEY, "service_test_", "ct_"]) {
  assert.ok(!received.includes(secret), `an answer contains ${secret.slice(0, 13)}…`);
}
await Promise.all([client.close(), reader.close()]);
console.log(`${tools.length} tools; a quote, a trade, a held trade; ${received.length} bytes without a secret`);
