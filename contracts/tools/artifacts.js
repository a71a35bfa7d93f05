// Builds src/ afresh and writes artifacts/<contract>.json: abi, bytecode, deployedBytecode; and artifacts/hashes.json: the
// keccak-256 of both, with immutables as zeros.
// With a folder as argument it writes there instead, for comparing.
"use strict";

const { execFileSync } = require("child_process");
const fs = require("fs");
const path = require("path");
const { keccak256 } = require("js-sha3");

const CONTRACTS = ["MarketHub", "Authority", "Gate", "Deployer", "Account", "AccountFactory", "TestUSDC"];
const root = path.join(__dirname, "..");
const out = path.join(root, "out");
const target = process.argv[2] || path.join(root, "artifacts");

// Always the same set of files from nothing: what else is compiled along can change the order of the bytecode.
function build() {
  const forge = path.join(root, "node_modules", ".bin", "forge");
  fs.rmSync(out, { recursive: true, force: true });
  execFileSync(forge, ["build", "src", "--force"], {
    cwd: root,
    stdio: ["ignore", "ignore", "inherit"],
  });
}

// Dependencies have contracts of the same names: the one meant is the one compiled from src/.
function built(name) {
  const files = fs
    .readdirSync(out, { recursive: true })
    .filter((file) => path.basename(file) === `${name}.json`)
    .map((file) => JSON.parse(fs.readFileSync(path.join(out, file), "utf8")))
    .filter((json) => json.metadata?.settings.compilationTarget[`src/${name}.sol`] === name);
  if (files.length !== 1) throw new Error(`${name}: ${files.length} builds of it, expected one`);
  return files[0];
}

function signature(entry) {
  return `${entry.type} ${entry.name || ""}(${(entry.inputs || []).map((input) => input.type)})`;
}

build();
const hash = (code) => `0x${keccak256(Buffer.from(code.slice(2), "hex"))}`;
const hashes = {};
fs.mkdirSync(target, { recursive: true });
for (const name of CONTRACTS) {
  const json = built(name);
  const abi = [...json.abi].sort((a, b) => (signature(a) < signature(b) ? -1 : 1));
  const artifact = { abi, bytecode: json.bytecode.object, deployedBytecode: json.deployedBytecode.object };
  fs.writeFileSync(path.join(target, `${name}.json`), `${JSON.stringify(artifact, null, 2)}\n`);
  hashes[name] = { bytecode: hash(artifact.bytecode), deployedBytecode: hash(artifact.deployedBytecode) };
  const size = (artifact.deployedBytecode.length - 2) / 2;
  console.log(`${name}: ${size} bytes`);
  if (size > 24576) throw new Error(`${name}: ${size} bytes of code, above the limit of 24576`);
}
fs.writeFileSync(path.join(target, "hashes.json"), `${JSON.stringify(hashes, null, 2)}\n`);
