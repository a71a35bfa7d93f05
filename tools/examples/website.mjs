// Opens the website of examples/website in a browser, and trades: prices follow without a reload, the frame has the
// height of its page, and a stream that gets an error status is opened again. Usage: website.mjs SITE SERVICE CHROMIUM
import assert from "node:assert/strict";
import { chromium } from "../reference/node_modules/playwright-core/index.mjs";

const [site, service, executablePath] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const page = await browser.newPage();
const problems = [];
page.on("console", (message) => {
  // The browser itself reports the status that this check makes.
  if (["error", "warning"].includes(message.type()) && !message.text().includes("503")) problems.push(message.text());
});
page.on("pageerror", (error) => problems.push(String(error)));
const hosts = new Set();
page.on("request", (request) => hosts.add(new URL(request.url()).origin));

const { markets } = await (await fetch(`${service}/api/markets?sortBy=total_volume&limit=4`)).json();
const [first] = markets;
// The first attempt at the last market's stream fails.
let attempts = 0;
await page.route(`**/api/markets/${markets.at(-1).id}/stream`, (route) =>
  attempts++ === 0 ? route.fulfill({ status: 503, headers: { "access-control-allow-origin": "*" } }) : route.continue(),
);
await page.clock.install();
await page.goto(site);

const live = (count) => page.waitForFunction((n) => document.querySelectorAll("article[data-state=live]").length === n, count);
await live(3);
await page.waitForSelector("article:last-child[data-state=waiting]");
await page.clock.runFor(10_000);
await live(4);
assert.deepEqual(await page.locator("article h2").allTextContents(), markets.map(({ question }) => question));

const pricesOf = async () => (await page.locator("article").first().locator("b").allTextContents()).map(parseFloat);
const before = await pricesOf();
const answer = await fetch(`${service}/v1/trades`, {
  method: "POST",
  headers: { "X-API-Key": process.env.FORETELL_API_KEY, "Content-Type": "application/json", "Idempotency-Key": crypto.randomUUID() },
  body: JSON.stringify({ marketId: first.id, outcomeIndex: 0, side: "buy", amount: "200.00", maxSlippageBps: 10_000 }),
});
assert.equal(answer.status, 201);
await page.waitForFunction(() => document.querySelector("article p").textContent.startsWith("Last trade: buy of"));
const after = await pricesOf();
assert.ok(after[0] > before[0], `${before} should rise to ${after}`);
assert.ok(Math.abs(after.reduce((sum, price) => sum + price) - 100) < 0.5, `${after} should sum to 100`);
// As the service computes the other prices.
const { market } = await (await fetch(`${service}/v1/markets/${first.id}`, { headers: { "X-API-Key": process.env.FORETELL_API_KEY } })).json();
market.outcomes.forEach(({ price }, index) => assert.ok(Math.abs(after[index] - price * 100) < 0.11, `${after[index]} is not ${price}`));

await page.locator("iframe").scrollIntoViewIfNeeded();
await page.waitForFunction(() => document.querySelector("iframe").height !== "300");
const frame = page.frames().find((frame) => frame.parentFrame() !== null);
assert.ok((await frame.textContent("body")).includes(first.question));
assert.deepEqual([...hosts].filter((origin) => origin !== "null").sort(), [site, service].sort());
assert.deepEqual(problems, []);
await browser.close();
