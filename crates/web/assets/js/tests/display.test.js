import assert from "node:assert/strict";
import test from "node:test";

import { Chart, heightAt, parseSteps } from "../chart.js";
import { formatUnits, parseUnits, usdc } from "../format.js";
import { percent } from "../market.js";

test("amounts are exact", () => {
  assert.equal(usdc("1234500000"), "1,234.50 USDC");
  assert.equal(usdc(1n), "0.000001 USDC");
  assert.equal(usdc(0), "0.00 USDC");
  assert.equal(formatUnits(10n ** 27n + 1n, 18), "1,000,000,000.000000000000000001");
  assert.equal(parseUnits(" 1234.5 ", 6), 1_234_500_000n);
  for (const text of ["", ".5", "1.", "1,000", "0x1", "1e3", "1.2345678"]) assert.equal(parseUnits(text, 6), null, text);
});

test("prices look as the server formats them", () => {
  const cases = [[0.004999, "<1%"], [0.005, "1%"], [0.5, "50%"], [0.57849, "58%"], [0.994999, "99%"], [0.995, ">99%"]];
  for (const [price, text] of cases) assert.equal(percent(price), text);
  assert.deepEqual([percent(0, true), percent(1, true)], ["0%", "100%"]);
});

test("a line of steps has the price of the last change", () => {
  const points = parseSteps("M0.0 75.0H12.3V50.0H100.0V20.5H500");
  assert.deepEqual(points, [[0, 75], [12.3, 50], [100, 20.5]]);
  assert.deepEqual([0, 12.2, 12.3, 99, 500].map((x) => heightAt(points, x)), [75, 75, 50, 50, 20.5]);
});

// The elements of a chart with one line, as far as the module uses them.
function figure(dataset) {
  const element = (attributes, data) => ({
    attributes, dataset: data, getAttribute: (name) => attributes[name],
    setAttribute: (name, value) => (attributes[name] = value), matches: () => true, append: () => {},
  });
  const line = element({ d: "M0.0 75.0H100.0V41.5H500" }, { outcome: "0", label: "Yes" });
  Object.assign(line, { previousElementSibling: element({}), nextElementSibling: element({}) });
  const svg = { ...element({ viewBox: "0 0 500 150" }), querySelectorAll: () => [line] };
  globalThis.document = { createElementNS: () => element({}), documentElement: {} };
  const readout = {};
  return { line, svg, readout, dataset, querySelector: (name) => (name === "svg.plot" ? svg : readout) };
}

test("a live price ends the line, until the scale or the axis no longer fits", () => {
  const parts = figure({ from: "0", to: "100000", top: "50" });
  const chart = new Chart(parts);
  const price = (price) => [{ index: 0, price }];
  assert.ok(chart.extend(price(0.25), 100_500));
  assert.ok(chart.extend(price(0.5), 100_900));
  assert.equal(parts.line.attributes.d, "M0.0 75.0H100.0V41.5H500V8.0");
  assert.equal(parts.line.nextElementSibling.attributes.d, "M500 8.0h.01");
  assert.equal(parts.line.previousElementSibling.attributes.d, "M0.0 75.0H100.0V41.5H500V8.0V142H0Z");
  assert.ok(!chart.extend(price(0.51), 100_900));
  assert.ok(!chart.extend(price(0.25), 101_001));
});

test("the crosshair steps from change to change", () => {
  const parts = figure({ from: "0", to: "100000", top: "100" });
  const chart = new Chart(parts);
  chart.step(-1);
  assert.deepEqual([chart.x, parts.svg.attributes["aria-valuenow"]], [100, 100]);
  assert.match(parts.readout.textContent, /Yes 75\.0%$/);
  chart.step(-1);
  chart.step(-1);
  assert.equal(chart.x, 0);
  assert.match(parts.readout.textContent, /Yes 50\.0%$/);
});
