// Many creates through a bad network, and a program that is killed in the middle of its creates.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { FORETELL_MARKET, ask, clientOf, readLog, setRules, table } from "./support.mjs";

/** Returns the names of all trades of the user that begin with `prefix`. */
async function namesOf(prefix) {
  const names = [];
  let cursor;
  do {
    const page = await ask(`/v1/trades?limit=100${cursor ? `&cursor=${cursor}` : ""}`);
    names.push(...page.data.map(({ clientRequestId }) => clientRequestId).filter((name) => name?.startsWith(prefix)));
    cursor = page.pagination.cursor;
  } while (cursor);
  return names.sort();
}

const creates = Number(process.env.FORETELL_CREATES ?? table.load.creates);

test(`${creates} creates through a bad network make ${creates} trades`, async () => {
  const { workers, amount, options, rules } = table.load;
  await setRules(rules);
  const { client } = clientOf({ clock: "real", options });
  const prefix = `load-${randomUUID()}:`;
  let next = 0;
  const ids = new Set();
  const work = async () => {
    while (next < creates) {
      const clientRequestId = prefix + next++;
      const trade = await client.trades.create({ marketId: FORETELL_MARKET, outcomeIndex: 0, side: "buy", amount, clientRequestId, maxSlippageBps: 10_000 });
      ids.add(trade.id);
    }
  };
  await Promise.all(Array.from({ length: workers }, work));
  const expected = Array.from({ length: creates }, (_, number) => prefix + number).sort();
  assert.deepEqual(await namesOf(prefix), expected);
  assert.equal(ids.size, creates);
  const actions = new Set((await readLog()).map(({ action }) => action));
  assert.deepEqual([...actions].sort(), ["answer", "cut", "delay", "pass", "repeat"]);
});

const KILLED = 100;

/** Runs the program until it prints its n-th trade, then kills it. */
function run(prefix, killAfter) {
  return new Promise((resolve, reject) => {
    const program = fileURLToPath(new URL("./killed.mjs", import.meta.url));
    const child = spawn(process.execPath, [program, prefix, String(KILLED)], { stdio: ["ignore", "pipe", "inherit"] });
    let printed = 0;
    child.stdout.on("data", (chunk) => {
      printed += String(chunk).split("\n").length - 1;
      if (printed >= killAfter) child.kill("SIGKILL");
    });
    child.on("error", reject);
    child.on("close", (code, signal) => resolve({ code, signal }));
  });
}

test("a program that is killed while it creates trades makes each once when it runs again", async () => {
  await setRules(table.load.rules);
  const prefix = `killed-${randomUUID()}:`;
  assert.deepEqual(await run(prefix, 37), { code: null, signal: "SIGKILL" });
  assert.deepEqual(await run(prefix, Infinity), { code: 0, signal: null });
  const expected = Array.from({ length: KILLED }, (_, number) => prefix + number).sort();
  assert.deepEqual(await namesOf(prefix), expected);
});
