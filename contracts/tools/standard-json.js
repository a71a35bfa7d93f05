// Prints the compiler's standard-JSON input of one contract, for verifying a deployment with an explorer:
// node tools/standard-json.js MarketHub > MarketHub.json. Run tools/artifacts.js first.
"use strict";

const fs = require("fs");
const path = require("path");

const root = path.join(__dirname, "..");
const name = process.argv[2];
if (!name) {
  console.error("usage: standard-json.js CONTRACT");
  process.exit(2);
}
const json = JSON.parse(fs.readFileSync(path.join(root, "out", `${name}.sol`, `${name}.json`), "utf8"));
const { compilationTarget, ...settings } = json.metadata.settings;
if (compilationTarget[`src/${name}.sol`] !== name) throw new Error(`out/ has no ${name} of src/`);
const sources = Object.keys(json.metadata.sources).map((file) => [
  file,
  { content: fs.readFileSync(path.join(root, file), "utf8") },
]);
const outputSelection = { "*": { "*": ["abi", "evm.bytecode", "evm.deployedBytecode", "metadata"] } };
const input = {
  language: "Solidity",
  sources: Object.fromEntries(sources),
  settings: { ...settings, viaIR: true, outputSelection },
};
process.stdout.write(`${JSON.stringify(input, null, 2)}\n`);
