// Every operation against each released document: with members, words and codes that are new, and without optional ones.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Foretell, ForetellError, Usdc, Wad } from "@foretell/client";
import { FORETELL_API_KEY, table, textOf, virtualClock } from "./support.mjs";

const { FORETELL_RELEASES } = process.env;
const ID = "0198f3a0-5d4e-7b06-9aa4-5eb35423f988";
const ORDER = { marketId: ID, outcomeIndex: 0, side: "buy", amount: "1.00" };

async function first(items) {
  for await (const item of items) return item;
  throw new Error("the list is empty");
}

const CALLS = [
  ["confirmTrade", (client) => client.trades.confirm(ID, "token")],
  ["createRedemption", (client) => client.redemptions.create({ marketId: ID, outcomeIndex: 0 })],
  ["createTrade", (client) => client.trades.create(ORDER)],
  ["createTrade", (client) => client.trades.dryRun(ORDER)],
  ["getAccountReadiness", (client) => client.keys.readiness()],
  ["getKey", (client) => client.keys.get()],
  ["getMarket", (client) => client.markets.get(ID)],
  ["getMarketHistory", (client) => client.markets.history(ID)],
  ["getPortfolio", (client) => client.portfolio.get()],
  ["getQuote", (client) => client.quotes.get(ID, { outcomeIndex: 0, action: "buy", amount: Usdc.parse("1.00") })],
  ["getQuote", (client) => client.quotes.get(ID, { outcomeIndex: 0, action: "sell", amount: Wad.parse("1") })],
  ["getRedemption", (client) => client.redemptions.get(ID)],
  ["getTrace", (client) => client.trades.trace("a1".repeat(16))],
  ["getTrade", (client) => client.trades.get(ID)],
  ["getUsage", (client) => client.keys.usage()],
  ["getWebhookEndpoint", (client) => client.webhooks.endpoint()],
  ["getWebhookEvent", (client) => client.webhooks.get(ID)],
  ["listEvents", async (client) => (await first(client.events.stream())).event],
  ["listMarkets", (client) => first(client.markets.list())],
  ["listPositions", async (client) => (await client.portfolio.positions())[0]],
  ["listPredictions", (client) => first(client.markets.predictions(ID))],
  ["listRedemptions", (client) => first(client.redemptions.list())],
  ["listTrades", (client) => first(client.trades.list())],
  ["listWebhookEvents", (client) => first(client.webhooks.list())],
  ["pauseKey", (client) => client.keys.pause()],
  ["redeliverWebhookEvent", (client) => client.webhooks.redeliver(ID)],
  ["rotateWebhookSecret", (client) => client.webhooks.rotateSecret()],
  ["sendTestWebhook", (client) => client.webhooks.sendTest()],
];

const read = async (path) => await (await fetch(FORETELL_RELEASES + path)).json();
const { releases, forms } = await read("/");

for (const [release, operations] of Object.entries(releases)) {
  for (const form of forms) {
    test(`the client reads every answer of release ${release}: ${form}`, async () => {
      const baseUrl = `${FORETELL_RELEASES}/${release}/${form}`;
      const client = new Foretell({ baseUrl, apiKey: FORETELL_API_KEY, clock: virtualClock() });
      for (const [id, call] of CALLS.filter(([id]) => operations.includes(id))) {
        const result = await call(client).catch((error) => error);
        if (form === "problems") {
          assert.ok(result instanceof ForetellError, `${id}: ${textOf(result)}`);
          assert.equal(result.code, "new_word", `${id}: ${textOf(result)}`);
        } else {
          assert.ok(!(result instanceof Error) && typeof result === "object", `${id}: ${textOf(result)}`);
          assert.equal("later" in result, form === "new-members", id);
        }
      }
      const asked = await read(`/${release}/${form}/asked`);
      assert.deepEqual(table.releases.operations.filter((id) => operations.includes(id) && !asked.includes(id)), []);
    });
  }
}
