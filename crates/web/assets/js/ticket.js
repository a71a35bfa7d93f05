// The order form: quotes while the user types, bounds the price, and sends each order once.

import { formatUnits, parseUnits, shortTokens, TOKEN_DECIMALS, usdc, USDC_DECIMALS } from "./format.js";
import { follow } from "./live.js";
import { percent } from "./market.js";
import { get, pause, post } from "./request.js";

const TYPING_MS = 200;
const REFRESH_MS = 1_000;
const FOLLOW_MS = 1_000;
// With their pauses, they outlast every request of the service, which ends after 10 seconds.
const MOST_LOOKUPS = 4;
const ASK_TWICE = 0.05;
const ASK_AMOUNT = 0.2;
const BPS = 10_000n;
const WAD_PER_MILLIONTH = 10n ** 12n;
const MOVED = ["price_moved", "SLIPPAGE_EXCEEDED"];
const ABOVE_CAPS = "SPENDING_LIMIT_EXCEEDED";
const NOT_CREATED = "The trade was not created. You can send it again.";
const STATES = {
  pending: "Accepted",
  pending_confirmation: "Waiting for your confirmation",
  validating: "Checking",
  executing: "In a block",
  completed: "Done",
};

// The result of an order: tokens of a buy, USDC of a sell.
const result = ({ side }, quote) => BigInt(side === "buy" ? quote.tokensOut : quote.usdcOut);

// Returns the least result that the order's bound accepts, rounded up.
export function worstAccepted(order, quote, slippageBps) {
  return (result(order, quote) * (BPS - BigInt(slippageBps)) + BPS - 1n) / BPS;
}

// Returns the most slippage against `usdcOut` that still brings `worst`, or null if none does.
export function remainingSlippage(usdcOut, worst) {
  const out = BigInt(usdcOut);
  if (out < worst) return null;
  // A position whose sale rounds to nothing can only be given away.
  return out === 0n ? 0 : Number(((out - worst) * BPS) / out);
}

// One order at a time. `env` has post, get, pause, newKey(), storeKey(key or null), signTrade(order,
// worst) and the view's show(name, value). `storedKey` is that of an order whose result was unknown when the page closed.
export class Ticket {
  changes = 0;

  constructor(env, { marketId, slippageBps, perTrade, storedKey }) {
    Object.assign(this, { env, marketId, slippageBps, perTrade, key: storedKey ?? env.newKey() });
    if (storedKey) this.attempt(() => this.findTrade());
  }

  // The user changed the order: {outcomeIndex, side, amount, units, isAll}, or null if invalid.
  async change(order) {
    this.next = order;
    if (this.isSending) return;
    this.clear();
    this.order = order;
    this.next = undefined;
    this.env.show("state", "");
    await this.requote(TYPING_MS);
  }

  clear() {
    Object.assign(this, { order: null, quote: undefined, worst: undefined, isMoved: false, confirmed: 0 });
    this.env.show("quote", null);
  }

  // Another trade changed the market. A price that waits for the user's consent stays.
  async refresh() {
    if (this.isRefreshing || !this.quote || this.isMoved) return;
    this.isRefreshing = true;
    await this.requote(REFRESH_MS);
    this.isRefreshing = false;
  }

  // Requests a quote after `ms` unless another change follows. Only the newest answer counts.
  async requote(ms) {
    const change = ++this.changes;
    const isCurrent = () => change === this.changes && this.order && !this.isSending;
    await this.env.pause(ms);
    if (!isCurrent()) return;
    if (!this.quote) this.env.show("state", "Waiting for a price");
    try {
      const quote = await this.requestQuote();
      if (isCurrent()) this.setQuote(quote);
    } catch (error) {
      if (isCurrent()) this.env.show("error", error.message);
    }
  }

  requestQuote() {
    const { outcomeIndex, side, units } = this.order;
    return this.env.post("/app/quotes", { marketId: this.marketId, outcomeIndex, side, amount: String(units) });
  }

  // The bound follows the price only to the user's advantage. If the price is beyond the bound that
  // was shown, or `isRejected`, the user must accept the new price.
  setQuote(quote, isRejected) {
    const worst = worstAccepted(this.order, quote, this.slippageBps);
    this.isMoved = isRejected || result(this.order, quote) < this.worst;
    if (!this.isMoved && !(worst < this.worst)) this.worst = worst;
    this.quote = quote;
    this.env.show("quote", { ...quote, side: this.order.side, worst: this.isMoved ? worst : this.worst });
    this.env.show("state", "");
    if (this.isMoved) this.env.show("moved", quote);
  }

  // Returns true once the user has agreed to an impact of at least this quote's.
  isAgreed(typed) {
    const impact = Math.abs(this.quote.priceImpact);
    const needsAmount = impact > ASK_AMOUNT && typed !== this.order.amount;
    const needsPress = impact > ASK_TWICE && impact <= ASK_AMOUNT && this.confirmed < impact;
    this.confirmed = impact;
    if (needsAmount || needsPress) this.env.show("ask", { needsAmount, impact });
    return !needsAmount && !needsPress;
  }

  async submit(typed) {
    if (this.isSending || !this.quote || !this.isAgreed(typed)) return;
    if (this.isMoved) this.worst = worstAccepted(this.order, this.quote, this.slippageBps);
    await this.attempt(() => this.send());
  }

  async attempt(run) {
    this.isSending = true;
    try {
      await run();
    } catch (error) {
      this.env.show("error", error.message);
    }
    this.isSending = false;
    if (this.next !== undefined) await this.change(this.next);
  }

  async send() {
    const bound = await this.priceBound();
    if (!bound) return this.offerPrice();
    const { outcomeIndex, side, amount, isAll, units } = this.order;
    // Without a limit, the site makes no orders at all.
    if (this.perTrade === 0n || (side === "buy" && units > this.perTrade)) return this.signTrade();
    const amountType = side === "buy" ? "usdc" : isAll ? "all" : "tokens";
    const body = { marketId: this.marketId, outcomeIndex, side, amountType, ...bound, idempotencyKey: this.key };
    if (!isAll) body.amount = amount;
    this.env.storeKey(this.key);
    let trade;
    try {
      trade = await this.env.post("/app/trades", body);
    } catch (error) {
      return this.resolveFailure(error);
    }
    return this.followTrade(trade);
  }

  // A buy names its fewest tokens. The API bounds a sale of tokens only by its slippage from the
  // price at acceptance. So the price is read again, and what it has lost already is subtracted. A
  // loss between this read and the acceptance is not bounded.
  async priceBound() {
    if (this.order.side === "buy") return { minTokensOut: String(this.worst) };
    const maxSlippageBps = remainingSlippage((await this.requestQuote()).usdcOut, this.worst);
    return maxSlippageBps === null ? null : { maxSlippageBps };
  }

  resolveFailure(error) {
    if (error.isUncertain || error.code === "IDEMPOTENCY_KEY_CONFLICT") return this.findTrade();
    // The service remembers no key of a rejected request. An earlier attempt may have arrived.
    if (!this.isUnknown) this.env.storeKey(null);
    if (MOVED.includes(error.code)) return this.offerPrice();
    if (error.code !== ABOVE_CAPS) throw error;
    return this.signTrade();
  }

  // Beyond the caps of this site, an owner signs the order itself.
  signTrade() {
    this.env.show("state", "Above the limits of this site: an owner must sign");
    return this.env.signTrade(this.order, this.worst);
  }

  // Looks the order up by its key. It is never sent again by itself, and keeps its key if it is not
  // found: if it arrives late after all, the user's next attempt is the same order.
  async findTrade() {
    this.isUnknown = true;
    this.env.show("state", "The connection was lost. Looking for your trade");
    let trade;
    for (let attempt = 1; ; attempt++) {
      try {
        trade = await this.env.get(`/app/trades/by-idempotency-key/${this.key}`);
        break;
      } catch (error) {
        if (error.status === 404 && attempt > MOST_LOOKUPS) return this.giveUp();
        if (!error.isUncertain && ![404, 429].includes(error.status)) throw error;
      }
      await this.env.pause(FOLLOW_MS * Math.min(attempt, 5));
    }
    return this.followTrade(trade);
  }

  giveUp() {
    this.env.storeKey(null);
    throw new Error(NOT_CREATED);
  }

  async followTrade(trade) {
    this.env.show("trade", trade);
    while (!trade.completedAt && !trade.failedAt && trade.status !== "pending_confirmation") {
      await this.env.pause(FOLLOW_MS);
      trade = await this.env.get(`/app/trades/${trade.id}`).catch((error) => {
        if (!error.isUncertain && error.status !== 429) throw error;
        return trade;
      });
      this.env.show("trade", trade);
    }
    this.key = this.env.newKey();
    this.isUnknown = false;
    this.env.storeKey(null);
    if (MOVED.includes(trade.errorCode) && this.order) return this.offerPrice();
    return this.clear();
  }

  // Shows the price as it is now. Only the user's next press accepts it.
  async offerPrice() {
    this.confirmed = 0;
    this.setQuote(await this.requestQuote(), true);
  }
}

// Reads the form's order. Returns null if its amount is invalid or zero. A sale of everything names
// the whole balance, which may have more decimals than the API accepts of an amount.
export function readOrder({ outcome, side, amount }, everything) {
  const isBuy = side === "buy";
  const isAll = !isBuy && amount === everything;
  const units = isAll ? parseUnits(amount, TOKEN_DECIMALS) : parseUnits(amount, USDC_DECIMALS);
  if (!units) return null;
  const order = { outcomeIndex: Number(outcome), side, amount: amount.trim(), isAll };
  return { ...order, units: isBuy || isAll ? units : units * WAD_PER_MILLIONTH };
}

const ratio = (value) => `${(100 * value).toFixed(1)}%`;

// The texts of a quote, by the name of their [data-quote] element.
function quoteTexts(quote) {
  const isBuy = quote.side === "buy";
  return {
    tokens: shortTokens(quote.tokensOut),
    usdc: usdc(quote.usdcIn ?? quote.usdcOut),
    average: `${quote.effectivePrice.toFixed(4)} USDC`,
    before: percent(quote.priceBefore),
    after: percent(quote.priceAfter),
    impact: ratio(quote.priceImpact),
    fee: usdc(quote.fee),
    payout: usdc(quote.payoutUsdcAtomic),
    loss: usdc(quote.lossUsdcAtomic),
    worst: isBuy ? shortTokens(quote.worst) : usdc(quote.worst),
  };
}

class View {
  constructor(form) {
    this.form = form;
  }

  part(name) {
    return this.form.querySelector(`[data-part="${name}"]`);
  }

  quote(quote) {
    const texts = quote ? quoteTexts(quote) : {};
    for (const element of this.form.querySelectorAll("[data-quote]")) {
      element.textContent = texts[element.dataset.quote] ?? "–";
    }
    this.part("warning").textContent = quote?.warnings.map(({ message }) => message).join(" ") ?? "";
    const submit = this.part("submit");
    submit.disabled = !quote;
    submit.textContent = submit.dataset.label;
    this.part("retype").hidden = true;
    this.part("error").textContent = "";
  }

  side(side) {
    for (const element of this.form.querySelectorAll("[data-side]")) {
      element.hidden = element.dataset.side !== side;
    }
  }

  state(text) {
    this.part("state").textContent = text;
  }

  error(text) {
    this.state("");
    this.part("error").textContent = text;
  }

  ask({ needsAmount, impact }) {
    this.part("retype").hidden = !needsAmount;
    const request = needsAmount ? "Type the amount again to confirm." : "Press again to confirm.";
    this.error(`This order moves the price by ${ratio(impact)}. ${request}`);
  }

  moved({ priceBefore }) {
    this.part("submit").textContent = `Accept the new price, ${percent(priceBefore)}`;
    this.error(`The price has moved to ${percent(priceBefore)}. Nothing was traded.`);
  }

  trade({ id, status, errorMessage }) {
    const text = STATES[status] ?? `Rejected because: ${errorMessage}`;
    this.state(text);
    Object.assign(this.part("receipt"), { href: `/trades/${id}`, hidden: false });
  }
}

// The tokens that the user holds of the chosen outcome, as decimals.
const heldTokens = (form) => form.querySelector("[name=outcome]:checked")?.dataset.held ?? "0";

// Returns the amount of a quick button: "25", "max", or "50%" of the balance, rounded down.
export function quickAmount(form, value) {
  const isBuy = form.elements.side.value === "buy";
  const balance = isBuy ? form.dataset.cash ?? "0" : heldTokens(form);
  if (value === "max") return balance;
  if (!value.endsWith("%")) return value;
  const decimals = isBuy ? USDC_DECIMALS : TOKEN_DECIMALS;
  const share = (parseUnits(balance, decimals) * BigInt(value.slice(0, -1))) / 100n;
  const rounded = isBuy ? share : share / WAD_PER_MILLIONTH;
  return formatUnits(rounded, USDC_DECIMALS).replaceAll(",", "");
}

async function signTrade({ outcomeIndex, side, units }, worst) {
  const form = document.getElementById("sign-trade");
  const fields = { outcome: outcomeIndex, side, amount: units, worst };
  Object.entries(fields).forEach(([name, value]) => (form.elements[name].value = value));
  await (await import("./act.js")).signForm(form);
}

export function start(form) {
  const { market, slippage } = form.dataset;
  const view = new View(form);
  const name = `trade:${market}`;
  const storeKey = (key) => (key ? sessionStorage.setItem(name, key) : sessionStorage.removeItem(name));
  const show = (part, value) => view[part](value);
  const env = { get, post, pause, storeKey, show, signTrade, newKey: () => crypto.randomUUID() };
  const storedKey = sessionStorage.getItem(name);
  const perTrade = parseUnits(form.dataset.perTrade, USDC_DECIMALS);
  const ticket = new Ticket(env, { marketId: market, slippageBps: Number(slippage), perTrade, storedKey });
  const change = () => {
    const fields = Object.fromEntries(new FormData(form));
    view.side(fields.side);
    ticket.change(readOrder(fields, heldTokens(form)));
  };
  form.addEventListener("input", ({ target }) => target.name !== "retype" && change());
  form.addEventListener("click", (event) => {
    const button = event.target.closest("button[name=quick]");
    if (!button) return;
    event.preventDefault();
    form.elements.amount.value = quickAmount(form, button.value);
    change();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    ticket.submit(form.elements.retype?.value);
  });
  follow(`m:${market}`, { event: () => ticket.refresh() });
  change();
}
