import assert from "node:assert/strict";
import test from "node:test";

import { Problem } from "../request.js";
import { quickAmount, readOrder, remainingSlippage, Ticket, worstAccepted } from "../ticket.js";

const lost = () => { throw new Problem(0, {}); };
const rejected = (status, code) => () => { throw new Problem(status, { code }); };
const END = "2027-01-15T08:00:02.000Z";

// A ticket over a scripted server. `answers` maps a route to its next answers; the last one stays.
function open(answers, { slippageBps = 100, perTrade, storedKey } = {}) {
  const log = { posts: [], shown: [], signed: [], stored: [] };
  const next = (route) => {
    const list = answers[route] ?? assert.fail(route);
    const answer = list.length > 1 ? list.shift() : list[0];
    return typeof answer === "function" ? answer() : answer;
  };
  let keys = 0;
  const env = {
    post: async (path, body) => {
      log.posts.push([path, body]);
      return next(path);
    },
    get: async (path) => next(path.startsWith("/app/trades/by-") ? "lookup" : "trade"),
    pause: async () => {},
    newKey: () => `key ${++keys}`,
    storeKey: (key) => log.stored.push(key),
    signTrade: async (order, worst) => log.signed.push([order.units, worst]),
    show: (name, value) => log.shown.push([name, value]),
  };
  const ticket = new Ticket(env, { marketId: "m", slippageBps, perTrade, storedKey });
  const sent = () => log.posts.filter(([path]) => path === "/app/trades").map(([, body]) => body);
  const last = (name) => log.shown.findLast(([shown]) => shown === name)?.[1];
  return { ticket, log, sent, last };
}

const quote = (tokensOut, priceImpact = 0.01) => ({ tokensOut: String(tokensOut), usdcIn: "25000000", priceImpact });
const sale = (usdcOut) => ({ tokensOut: "10000000000000000000", usdcOut: String(usdcOut), priceImpact: 0.01 });
const done = { id: "t", status: "completed", completedAt: END };
const buy = () => readOrder({ outcome: "0", side: "buy", amount: "25.00" });
const sell = () => readOrder({ outcome: "1", side: "sell", amount: "10" });

test("an amount must be positive, without commas, and with at most six decimals", () => {
  for (const amount of ["", "0", "1,5", "1,000", "-1", "1e3", "0.0000001", " ", "."]) {
    assert.equal(readOrder({ outcome: "0", side: "buy", amount }), null, amount);
  }
  assert.equal(buy().units, 25_000_000n);
  assert.equal(sell().units, 10n ** 19n);
  const everything = "0.000000000000000001";
  const all = readOrder({ outcome: "0", side: "sell", amount: everything }, everything);
  assert.deepEqual([all.isAll, all.units], [true, 1n]);
});

test("the bound is rounded in the user's favor", () => {
  assert.equal(worstAccepted({ side: "buy" }, quote(1_001), 100), 991n);
  assert.equal(worstAccepted({ side: "sell" }, sale(1_000), 0), 1_000n);
  assert.equal(remainingSlippage("1000", 990n), 100);
  assert.equal(remainingSlippage("995", 990n), 50);
  assert.equal(remainingSlippage("989", 990n), null);
});

test("a buy names the fewest tokens that were shown", async () => {
  const { ticket, sent, last } = open({ "/app/quotes": [quote(1_000)], "/app/trades": [done] });
  await ticket.change(buy());
  assert.equal(last("quote").worst, 990n);
  await ticket.submit();
  const expected = { marketId: "m", outcomeIndex: 0, side: "buy", amountType: "usdc", amount: "25.00", minTokensOut: "990", idempotencyKey: "key 1" };
  assert.deepEqual(sent(), [expected]);
});

test("a sale never brings less than was shown, though the price moved before it was sent", async () => {
  const { ticket, sent } = open({ "/app/quotes": [sale(1_000), sale(995)], "/app/trades": [done] });
  await ticket.change(sell());
  await ticket.submit();
  assert.equal(sent()[0].maxSlippageBps, 50);
  assert.equal(sent()[0].amountType, "tokens");
});

test("a sale whose price is beyond its bound is not sent", async () => {
  const { ticket, sent, last } = open({ "/app/quotes": [sale(1_000), sale(900)], "/app/trades": [done] });
  await ticket.change(sell());
  await ticket.submit();
  assert.equal(sent().length, 0);
  assert.equal(last("moved").usdcOut, "900");
});

test("only the newest of two quotes counts", async () => {
  const answers = [];
  const { ticket, last } = open({ "/app/quotes": [() => new Promise((answer) => answers.push(answer))] });
  const first = ticket.change(buy());
  await new Promise(setImmediate);
  const second = ticket.change(buy());
  await new Promise(setImmediate);
  answers[1](quote(2_000));
  answers[0](quote(1_000));
  await Promise.all([first, second]);
  assert.equal(last("quote").tokensOut, "2000");
});

test("a worse price never widens the bound unless the user accepts it", async () => {
  const { ticket, sent, last } = open({ "/app/quotes": [quote(1_000), quote(995), quote(900), quote(800)], "/app/trades": [done] });
  await ticket.change(buy());
  await ticket.refresh();
  assert.equal(last("quote").worst, 990n);
  assert.equal(last("moved"), undefined);
  await ticket.refresh();
  await ticket.refresh();
  assert.equal(last("moved").tokensOut, "900");
  await ticket.submit();
  assert.equal(sent()[0].minTokensOut, "891");
});

test("a better price tightens the bound", async () => {
  const { ticket, last } = open({ "/app/quotes": [quote(1_000), quote(2_000)] });
  await ticket.change(buy());
  await ticket.refresh();
  assert.equal(last("quote").worst, 1_980n);
});

test("price_moved shows the new price, and one press trades at it under a new key", async () => {
  const failed = { id: "t", status: "rejected", failedAt: END, errorCode: "price_moved" };
  const { ticket, sent, last } = open({ "/app/quotes": [quote(1_000), quote(800)], "/app/trades": [failed, done] });
  await ticket.change(buy());
  await ticket.submit();
  assert.equal(last("moved").tokensOut, "800");
  assert.equal(sent().length, 1);
  await ticket.submit();
  assert.deepEqual(sent().map((body) => [body.idempotencyKey, body.minTokensOut]), [["key 1", "990"], ["key 2", "792"]]);
});

test("an impact above 5% needs two presses", async () => {
  const { ticket, sent, last } = open({ "/app/quotes": [quote(1_000, 0.06)], "/app/trades": [done] });
  await ticket.change(buy());
  await ticket.submit();
  assert.deepEqual([sent().length, last("ask").needsAmount], [0, false]);
  await ticket.submit();
  assert.equal(sent().length, 1);
});

test("an impact that grew after the first press is asked about again", async () => {
  const { ticket, sent } = open({ "/app/quotes": [quote(1_000, 0.06), quote(995, 0.07)], "/app/trades": [done] });
  await ticket.change(buy());
  await ticket.submit();
  await ticket.refresh();
  await ticket.submit();
  assert.equal(sent().length, 0);
});

test("an impact above 20% needs the amount to be typed, however often the button is pressed", async () => {
  const { ticket, sent, last } = open({ "/app/quotes": [quote(1_000, 0.21)], "/app/trades": [done] });
  await ticket.change(buy());
  for (const typed of ["", "25", undefined]) await ticket.submit(typed);
  assert.deepEqual([sent().length, last("ask").needsAmount], [0, true]);
  await ticket.submit("25.00");
  assert.equal(sent().length, 1);
});

test("a trade whose answer was lost is looked up by its key and not sent again", async () => {
  const running = { id: "t", status: "executing" };
  const { ticket, sent, last, log } = open({
    "/app/quotes": [quote(1_000)], "/app/trades": [lost], lookup: [rejected(404), lost, running], trade: [lost, running, done],
  });
  await ticket.change(buy());
  await ticket.submit();
  assert.equal(sent().length, 1);
  assert.equal(last("trade").status, "completed");
  assert.deepEqual(log.stored, ["key 1", null]);
});

test("a trade that is not found keeps its key, so that the next attempt is the same order", async () => {
  const { ticket, sent, last, log } = open({
    "/app/quotes": [quote(1_000)], "/app/trades": [lost, rejected(429), done], lookup: [rejected(404)],
  });
  await ticket.change(buy());
  await ticket.submit();
  assert.match(last("error"), /was not created/);
  await ticket.submit();
  await ticket.submit();
  assert.deepEqual(sent().map((body) => body.idempotencyKey), ["key 1", "key 1", "key 1"]);
  assert.deepEqual(log.stored, ["key 1", null, "key 1", "key 1", null]);
});

test("a conflict of the key leads to the trade that has it", async () => {
  const { ticket, last } = open({
    "/app/quotes": [quote(1_000)], "/app/trades": [rejected(409, "IDEMPOTENCY_KEY_CONFLICT")], lookup: [done],
  });
  await ticket.change(buy());
  await ticket.submit();
  assert.equal(last("trade").id, "t");
});

test("a key that was stored when the page closed is looked up when it opens", async () => {
  const { last, sent } = open({ lookup: [done] }, { storedKey: "stored" });
  await new Promise(setImmediate);
  assert.equal(last("trade").status, "completed");
  assert.equal(sent().length, 0);
});

test("a session that ends while a trade is followed does not free its key", async () => {
  const { ticket, log } = open({
    "/app/quotes": [quote(1_000)], "/app/trades": [{ id: "t", status: "pending" }], trade: [rejected(401)],
  });
  await ticket.change(buy());
  await ticket.submit();
  assert.equal(ticket.key, "key 1");
  assert.deepEqual(log.stored, ["key 1"]);
});

test("two presses send one order, and a completed order is not sent again", async () => {
  const { ticket, sent } = open({ "/app/quotes": [quote(1_000)], "/app/trades": [done] });
  await ticket.change(buy());
  await Promise.all([ticket.submit(), ticket.submit()]);
  await ticket.submit();
  assert.equal(sent().length, 1);
});

test("a change during a request is quoted after it", async () => {
  const { ticket, log, last } = open({ "/app/quotes": [quote(1_000)], "/app/trades": [done] });
  await ticket.change(buy());
  const sending = ticket.submit();
  await ticket.change(sell());
  await sending;
  assert.equal(log.posts.at(-1)[1].side, "sell");
  assert.equal(last("trade").status, "completed");
});

test("quick amounts are shares of the balance with at most six decimals, or all of it", () => {
  const form = (side) => ({
    elements: { side: { value: side } }, dataset: { cash: "1412.07" },
    querySelector: () => ({ dataset: { held: "0.123456789123456789" } }),
  });
  const cases = [["buy", "25", "25"], ["buy", "max", "1412.07"], ["buy", "50%", "706.035"],
    ["sell", "50%", "0.061728"], ["sell", "max", "0.123456789123456789"]];
  for (const [side, value, amount] of cases) assert.equal(quickAmount(form(side), value), amount);
});

test("an owner signs an order beyond the caps, with the bound that was shown", async () => {
  const aboveCaps = rejected(409, "SPENDING_LIMIT_EXCEEDED");
  const { ticket, log, sent } = open({ "/app/quotes": [quote(1_000)], "/app/trades": [aboveCaps] });
  await ticket.change(buy());
  await ticket.submit();
  assert.equal(sent().length, 1);
  assert.deepEqual(log.signed, [[25_000_000n, 990n]]);
  assert.equal(log.stored.at(-1), null);

  // The cap of a trade is known before.
  const large = open({ "/app/quotes": [quote(1_000)] }, { perTrade: 24_999_999n });
  await large.ticket.change(buy());
  await large.ticket.submit();
  assert.deepEqual(large.log.signed, [[25_000_000n, 990n]]);

  // A site that must not trade has no limit, and an owner signs sales, too.
  const stopped = open({ "/app/quotes": [sale(4_000_000)] }, { perTrade: 0n });
  await stopped.ticket.change(sell());
  await stopped.ticket.submit();
  assert.deepEqual([stopped.log.signed.length, stopped.sent().length], [1, 0]);
});
