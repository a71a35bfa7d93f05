// Live prices of the most traded markets, and a frame with the first of them. Only the public read API is used.

const service = document.querySelector("meta[name=foretell]").content;
// Over HTTP/1.1 a browser opens at most six connections to a host. Each stream uses one for as long as it is open.
const LIVE_MARKETS = 4;
const RECONNECT_MS = 5_000;

const state = document.querySelector("#state");

/** Shows a market: its question now, its prices when they arrive. Texts are never written as HTML. */
function addArticle(question) {
  const article = document.querySelector("#market").content.cloneNode(true).firstElementChild;
  article.querySelector("h2").textContent = question;
  document.querySelector("#markets").append(article);
  return article;
}

function showPrices(article, outcomes) {
  const rows = outcomes.map(({ label, price }) => {
    const row = document.querySelector("#outcome").content.cloneNode(true).firstElementChild;
    row.querySelector("span").textContent = label;
    row.querySelector("meter").value = price;
    row.querySelector("meter").setAttribute("aria-label", label);
    row.querySelector("b").textContent = `${(price * 100).toFixed(1)}%`;
    return row;
  });
  article.querySelector("ul").replaceChildren(...rows);
}

/** Changes the price of the traded outcome. The prices of the others keep their ratios, and all sum to 1. */
function afterTrade(outcomes, index, price) {
  const before = outcomes[index].price;
  const factor = before < 1 ? (1 - price) / (1 - before) : 0;
  return outcomes.map((outcome) => ({ ...outcome, price: outcome.index === index ? price : outcome.price * factor }));
}

/** Follows a market for as long as the page is open. */
function follow(id, article) {
  const note = article.querySelector("p");
  let outcomes = [];
  const source = new EventSource(`${service}/api/markets/${id}/stream`);
  // The first event of each connection, so that nothing is missed while there was none.
  source.addEventListener("market", ({ data }) => {
    const market = JSON.parse(data);
    outcomes = market.outcomes;
    showPrices(article, outcomes);
    article.dataset.state = "live";
    note.textContent = market.status === "OPEN" ? "Live" : market.status;
  });
  source.addEventListener("trade", ({ data }) => {
    const trade = JSON.parse(data);
    if (trade.priceAfter === undefined || trade.priceAfter === null) return;
    outcomes = afterTrade(outcomes, trade.outcomeIndex, trade.priceAfter);
    showPrices(article, outcomes);
    const usdc = (Number(trade.amount) / 1e6).toFixed(2);
    note.textContent = `Last trade: ${trade.side} of ${outcomes[trade.outcomeIndex].label} for ${usdc} USDC`;
  });
  source.addEventListener("status", ({ data }) => (note.textContent = JSON.parse(data).status));
  source.addEventListener("error", () => {
    article.dataset.state = "waiting";
    note.textContent = "The prices may be old: connecting again …";
    // The browser connects again by itself, except after an error status such as 429 or 503.
    if (source.readyState === EventSource.CLOSED) setTimeout(() => follow(id, article), RECONNECT_MS * (1 + Math.random()));
  });
}

/** Embeds a market. The frame says how high it is. */
function embed(id, question) {
  const frame = document.createElement("iframe");
  frame.src = `${service}/embed/markets/${encodeURIComponent(id)}`;
  frame.title = question;
  frame.height = 300;
  frame.loading = "lazy";
  frame.sandbox = "allow-scripts allow-popups allow-popups-to-escape-sandbox";
  addEventListener("message", ({ source, data }) => {
    // The origin of a frame in a sandbox is "null", so its window identifies it.
    if (source !== frame.contentWindow || data?.type !== "foretell:height") return;
    frame.height = Math.min(Number(data.height) || frame.height, 2_000);
  });
  document.querySelector("#embed").append(frame);
}

async function start() {
  try {
    const response = await fetch(`${service}/api/markets?sortBy=total_volume&limit=${LIVE_MARKETS}`);
    if (!response.ok) throw new Error(`status ${response.status}`);
    const { markets } = await response.json();
    for (const { id, question } of markets) follow(id, addArticle(question));
    if (markets.length > 0) embed(markets[0].id, markets[0].question);
    state.textContent = markets.length > 0 ? "" : "No market is open.";
  } catch (error) {
    state.textContent = "The markets cannot be loaded. They are tried again soon.";
    console.warn(error);
    setTimeout(start, RECONNECT_MS);
  }
}

await start();
