import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import test from "node:test";
import { gzipSync } from "node:zlib";

const folder = new URL("../", import.meta.url);
const read = (name) => readFileSync(new URL(name, folder), "utf8");
const modules = readdirSync(folder).filter((name) => name.endsWith(".js"));

// The module and all that it imports statically.
function closure(name, found = new Set()) {
  if (found.has(name)) return found;
  found.add(name);
  for (const [, imported] of read(name).matchAll(/^(?:import|\}) .*?from "\.\/(.+)";$/gm)) closure(imported, found);
  return found;
}

const weigh = (...names) => [...new Set(names.flatMap((name) => [...closure(name)]))]
  .map((name) => gzipSync(read(name), { level: 9 }).length).reduce((sum, bytes) => sum + bytes);

test("an anonymous page loads at most 5 kB of scripts before its first use", () => {
  assert.ok(closure("market.js").has("live.js"));
  const bytes = weigh("main.js", "market.js");
  assert.ok(bytes <= 5_000, `${bytes} bytes`);
});

test("a page that trades, and one that signs acts, load at most 15 kB of scripts", () => {
  for (const modules of [["market.js", "chart.js", "ticket.js"], ["act.js", "forms.js"]]) {
    const bytes = weigh("main.js", ...modules);
    assert.ok(bytes <= 15_000, `${modules}: ${bytes} bytes`);
  }
});

test("no script needs more than Trusted Types and the content security policy allow", () => {
  assert.ok(modules.length > 10);
  for (const name of modules) {
    const sinks = /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|\.style\b|DOMParser\(|https?:\/\//;
    assert.doesNotMatch(read(name), sinks, name);
  }
});
