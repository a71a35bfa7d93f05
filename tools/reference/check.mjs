// Checks the interactive references with axe: closed as they load, and with the first operations open. A filter that nobody asked for must
// not be filled in. Usage: node check.mjs BASE_URL [CHROMIUM]
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";

const [base, executablePath = "/usr/bin/chromium"] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
// The page's policy would keep axe out.
const page = await browser.newPage({ bypassCSP: true });
let faults = 0;

const check = async (name) => {
  const { violations } = await page.evaluate(() => axe.run());
  for (const { id, impact, nodes } of violations) {
    faults += nodes.length;
    console.log(`${name}: ${id} (${impact}), ${nodes.length}: ${nodes[0].html.slice(0, 160)}`);
  }
};

for (const path of ["/v1/docs", "/api/docs"]) {
  await page.goto(base + path);
  await page.waitForSelector(".opblock");
  await page.evaluate(axe);
  await check(path);
  const operations = await page.$$(".opblock-summary-control");
  for (const operation of operations.slice(0, 3)) await operation.click();
  await page.waitForSelector(".opblock-body table.parameters");
  await page.waitForTimeout(1000);
  await check(`${path}, open`);
  const filled = await page.$$eval("tr[data-param-in=query] input[type=text]", (inputs) =>
    inputs
      .filter((input) => input.value && !input.closest("tr").querySelector(".required"))
      .map((input) => input.closest("tr").dataset.paramName)
      // Filled in with their defaults.
      .filter((name) => name !== "limit" && name !== "offset"));
  faults += filled.length;
  if (filled.length) console.log(`${path}: filled in without being asked: ${filled.join(", ")}`);
}
await browser.close();
console.log(faults ? `${faults} faults` : "no faults");
process.exit(faults ? 1 : 0);
