// Measures whole transactions and compares them with gas.json: a rise above 2%, or a figure above its limit, fails.
// Run tools/artifacts.js first: what is measured is the bytecode in artifacts/.
// With --write it writes gas.json anew (the limits hold all the same).
"use strict";

const { execFileSync } = require("child_process");
const fs = require("fs");
const path = require("path");

const TOLERANCE = 0.02;
const LIMITS = {
  "creation of a market with opening odds, N=250": 6_000_000,
  "delegated buy, alone, N=2": 93_000,
  "delegated buy, alone, N=8": 93_000,
  "delegated buy, batch of 10, N=2": 44_200 * 10,
  "delegated buy, batch of 10, N=8": 44_200 * 10,
  "delegated buy, batch of 50, N=2": 39_850 * 50,
};

const root = path.join(__dirname, "..");
const table = path.join(root, "gas.json");
const forge = path.join(root, "node_modules", ".bin", "forge");
execFileSync(forge, ["test", "--isolate", "--match-path", "test/Gas.t.sol"], {
  cwd: root,
  env: {
    ...process.env,
    FOUNDRY_PROFILE: "tests",
    FOUNDRY_EVM_VERSION: "osaka", // has P-256 as a precompile
    FOUNDRY_OUT: "out/gas",
    FOUNDRY_CACHE_PATH: "cache/forge-gas",
  },
  stdio: ["ignore", "ignore", "inherit"],
});
const raw = JSON.parse(fs.readFileSync(path.join(root, "cache", "gas", "gas.json"), "utf8"));
const measured = Object.fromEntries(Object.entries(raw).map(([name, gas]) => [name, Number(gas)]));
const known = fs.existsSync(table) ? JSON.parse(fs.readFileSync(table, "utf8")) : {};

let failed = false;
for (const [name, gas] of Object.entries(measured)) {
  const faults = [];
  const change = known[name] ? gas / known[name] - 1 : 0;
  if (gas > LIMITS[name]) faults.push(`above the limit of ${LIMITS[name]}`);
  if (!process.argv.includes("--write")) {
    if (!known[name]) faults.push("not in gas.json");
    if (change > TOLERANCE) faults.push(`above the ${known[name]} of gas.json by more than ${TOLERANCE * 100}%`);
  }
  failed ||= faults.length > 0;
  const batch = Number(/batch of (\d+)/.exec(name)?.[1] ?? 1);
  const each = batch > 1 ? ` (${Math.round(gas / batch)} each)` : "";
  console.log(`${String(gas).padStart(9)}  ${name}${each}${faults.map((fault) => `  <-- ${fault}`).join("")}`);
}
if (process.argv.includes("--write")) fs.writeFileSync(table, `${JSON.stringify(measured, null, 2)}\n`);
process.exit(failed ? 1 : 0);
