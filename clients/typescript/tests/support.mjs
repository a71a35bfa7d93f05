// What the tests share: the table, the proxy, a virtual clock, and clients.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { inspect } from "node:util";
import { Foretell } from "@foretell/client";

export const table = JSON.parse(readFileSync(new URL("../behaviors/behaviors.json", import.meta.url), "utf8"));
export const { FORETELL_URL, FORETELL_PROXY, FORETELL_PROXY_CONTROL, FORETELL_API_KEY, FORETELL_MARKET } = process.env;

export async function setRules(rules) {
  const answer = await fetch(`${FORETELL_PROXY_CONTROL}/rules`, { method: "PUT", body: JSON.stringify(rules) });
  assert.equal(answer.status, 200, await answer.text());
}

export async function readLog() {
  return await (await fetch(`${FORETELL_PROXY_CONTROL}/log`)).json();
}

/** Asks the service without the proxy. */
export async function ask(path) {
  const answer = await fetch(FORETELL_URL + path, { headers: { "X-API-Key": FORETELL_API_KEY } });
  assert.equal(answer.status, 200, path);
  return await answer.json();
}

/** A clock that starts at the present and that pauses advance. */
export function virtualClock() {
  let now = Date.now();
  const pauses = [];
  return {
    pauses,
    now: () => now,
    random: Math.random,
    // Other work goes on during a pause, as it would in reality.
    sleep: async (ms, signal) => {
      signal?.throwIfAborted();
      pauses.push(ms);
      now += ms;
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

/** Replaces the placeholders in all strings. */
export function fill(value, name = randomUUID()) {
  const values = { $name: name, $market: FORETELL_MARKET, $apiKey: FORETELL_API_KEY, $unknown: randomUUID() };
  const text = JSON.stringify(value).replace(/\$(name|market|apiKey|unknown)/g, (found) => values[found]);
  return JSON.parse(text);
}

/** Makes a client for the proxy that records its log. */
export function clientOf({ clock, options = {} }) {
  const { etags, ...rest } = options;
  const lines = [];
  const virtual = clock === "real" ? undefined : virtualClock();
  const client = new Foretell({
    baseUrl: FORETELL_PROXY,
    apiKey: FORETELL_API_KEY,
    log: (entry) => lines.push(JSON.stringify(entry)),
    ...(virtual && { clock: virtual }),
    ...(etags && { etags: new Map() }),
    ...rest,
  });
  return { client, lines, clock: virtual };
}

/** Returns everything of an error that could be printed. */
export function textOf(error) {
  return [inspect(error, { depth: 9, showHidden: true }), JSON.stringify(error), String(error), error?.stack].join("\n");
}

/** Fails if a secret is in any of the texts. */
export function assertNoSecret(texts, secrets = [FORETELL_API_KEY]) {
  for (const text of texts) for (const secret of secrets) assert.ok(!text.includes(secret), "a secret was printed");
}

export function matchesRequest(pattern, { method, path }) {
  const [expected, given] = [pattern.split(/[ /]/), `${method} ${path}`.split(/[ /]/)];
  return expected.length === given.length && expected.every((part, index) => part === "*" || part === given[index]);
}

export function assertPauses(pauses, bounds) {
  assert.equal(pauses.length, bounds.length, `pauses: ${pauses}`);
  bounds.forEach(([least, most], index) => {
    assert.ok(pauses[index] >= least && pauses[index] <= most, `pause ${index + 1} is ${pauses[index]}, not in ${least}..${most}`);
  });
}

const FAMILIES = { Authentication: "AuthenticationError", RateLimited: "RateLimitedError", Refused: "RefusedError", Conflict: "ConflictError", Unavailable: "UnavailableError" };

export function assertError(error, expected) {
  assert.ok(error, "the call must fail");
  assert.equal(error.constructor.name, FAMILIES[expected.family], error.stack);
  const { family: _, ...members } = expected;
  for (const [name, value] of Object.entries(members)) assert.equal(error[name], value, name);
}
