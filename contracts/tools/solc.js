#!/usr/bin/env node
// Lets forge run npm's `solc` (WebAssembly) as if it were the native compiler.
"use strict";

const fs = require("fs");
const solc = require("solc");

if (process.argv.includes("--version")) {
  const version = solc.version().replace(".Emscripten.clang", ".Linux.g++");
  console.log(`solc, the solidity compiler commandline interface\nVersion: ${version}`);
} else if (process.argv.includes("--standard-json")) {
  process.stdout.write(solc.compile(fs.readFileSync(0, "utf8")));
} else {
  console.error("usage: solc.js --version | --standard-json < input.json");
  process.exit(2);
}
