#!/usr/bin/env node
// Changes the contracts in small ways, one at a time, and counts how many of these mutants the tests notice: the unit, fuzz
// and invariant tests first, then the symbolic proofs. A mutant that does not compile, or that compiles to the same code, does
// not count. Takes about a minute for each mutant.
//
// usage: tools/mutants.js [--count 100] [--seed 1] [--skip 0] [--only Gate.sol:41]
"use strict";

const { execFileSync, spawnSync } = require("child_process");
const fs = require("fs");
const os = require("os");
const path = require("path");
const { parseArgs } = require("util");

const root = path.join(__dirname, "..");
const { values: options } = parseArgs({
  options: {
    count: { type: "string", default: "100" },
    seed: { type: "string", default: "1" },
    // How many drawn mutants an interrupted run has judged.
    skip: { type: "string", default: "0" },
    only: { type: "string" },
  },
});

// The interfaces have no code, and the stand-in for USDC is not deployed for real.
const SKIPPED = ["interfaces", "TestUSDC.sol"];

// Each operator finds its places in the code of a line (comments are blank) and says what to put there.
const OPERATORS = [
  swap("boundary", /(?<![<>=-])(<=|>=|<|>)(?![<>=])/g, { "<": "<=", "<=": "<", ">": ">=", ">=": ">" }),
  swap("direction", /(?<![<>=-])(<=|>=|<|>)(?![<>=])/g, { "<": ">", "<=": ">=", ">": "<", ">=": "<=" }),
  swap("equality", /==|!=/g, { "==": "!=", "!=": "==" }),
  swap("logic", /&&|\|\|/g, { "&&": "||", "||": "&&" }),
  swap("sum", / ([+-]) (?!=)/g, { " + ": " - ", " - ": " + " }),
  swap("product", / ([*/%]) (?!=)/g, { " * ": " / ", " / ": " * ", " % ": " * " }),
  swap("assignment", / [+-]= /g, { " += ": " -= ", " -= ": " += " }),
  swap("bits", / ([&|]) /g, { " & ": " | ", " | ": " & " }),
  swap("shift", / (<<|>>) /g, { " << ": " >> ", " >> ": " << " }),
  swap("increment", /\+\+|--/g, { "++": "--", "--": "++" }),
  swap("boolean", /\b(true|false)\b/g, { true: "false", false: "true" }),
  swap("rounding", /\b(fullMulDiv|fullMulDivUp|mulDiv|mulDivUp|divUp)\b/g, {
    fullMulDiv: "fullMulDivUp",
    fullMulDivUp: "fullMulDiv",
    mulDiv: "mulDivUp",
    mulDivUp: "mulDiv",
  }),
  swap("negation", /\bif \((?!!)|\bif \(!/g, { "if (": "if (!", "if (!": "if (" }),
  { name: "constant up", find: /(?<![\w.])\d[\d_]*(?![\w.])/g, put: (text) => `${BigInt(text.replaceAll("_", "")) + 1n}` },
  {
    name: "constant down",
    find: /(?<![\w.])[1-9][\d_]*(?![\w.])/g,
    put: (text) => `${BigInt(text.replaceAll("_", "")) - 1n}`,
  },
  { name: "no statement", find: /^\s+(?!return|revert|\}|if|for|else|using|assembly|unchecked)[\w.[\]()]+(\(| [-+|&]?= |\+\+|--).*;$/g, put: () => ";" },
  { name: "no modifier", find: / (only\w+|nonReentrant|notPaused|when\w+)(\([^)]*\))?(?= |$)/g, put: () => "" },
  { name: "no revert", find: /\brevert \w+\([^;]*\);/g, put: () => ";" },
  { name: "arguments", find: /\((\w+), (\w+)\)/g, put: (text) => text.replace(/\((\w+), (\w+)\)/, "($2, $1)") },
];

function swap(name, find, table) {
  return { name, find, put: (text) => table[text] };
}

function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

function mutantsOf(file) {
  const lines = fs.readFileSync(path.join(root, "src", file), "utf8").split("\n");
  const found = [];
  lines.forEach((line, index) => {
    const code = line.replace(/\/\/.*$/, "").replace(/^\s*(\/?\*.*)$/, "").trimEnd();
    if (/^\s*(import|pragma|event|error|using|\/\/)/.test(line)) return;
    for (const operator of OPERATORS) {
      for (const match of code.matchAll(operator.find)) {
        const put = operator.put(match[0]);
        if (put === undefined || put === match[0]) continue;
        const mutated = line.slice(0, match.index) + put + line.slice(match.index + match[0].length);
        found.push({ file, line: index + 1, operator: operator.name, was: line.trim(), is: mutated.trim(), mutated });
      }
    }
  });
  return found;
}

// Every operator and every file has the same chance first, so that one that finds many places does not crowd out the others.
function draw(all, next) {
  const left = new Map();
  for (const mutant of all) {
    const kind = `${mutant.operator} ${mutant.file}`;
    left.set(kind, [...(left.get(kind) || []), mutant]);
  }
  const drawn = [];
  while (left.size > 0) {
    const kinds = [...left.keys()];
    const kind = kinds[Math.floor(next() * kinds.length)];
    const mutants = left.get(kind);
    drawn.push(...mutants.splice(Math.floor(next() * mutants.length), 1));
    if (mutants.length === 0) left.delete(kind);
  }
  return drawn;
}

const copy = fs.mkdtempSync(path.join(os.tmpdir(), "foretell-mutants-"));
process.on("exit", () => fs.rmSync(copy, { recursive: true, force: true }));
process.on("SIGINT", () => process.exit(1));
process.on("SIGTERM", () => process.exit(1));
const home = path.join(copy, "contracts");
fs.cpSync(root, home, { recursive: true, verbatimSymlinks: true });

function run(program, args, env = {}) {
  const timeout = 15 * 60 * 1000;
  return spawnSync(program, args, { cwd: home, env: { ...process.env, ...env }, stdio: "ignore", timeout }).status === 0;
}

// Most mutants fail a unit test, and the invariants take most of the time.
function tests() {
  const forge = path.join(home, "node_modules", ".bin", "forge");
  const test = (...filter) => run(forge, ["test", "--fail-fast", ...filter], { FOUNDRY_PROFILE: "tests" });
  return test("--no-match-path", "test/{Gas,*Invariants}.t.sol") && test("--match-path", "test/*Invariants.t.sol");
}

function proofs() {
  return run("tools/halmos", []);
}

function hashes() {
  return fs.readFileSync(path.join(home, "artifacts", "hashes.json"), "utf8");
}

function judge(mutant, original) {
  const file = path.join(home, "src", mutant.file);
  const text = fs.readFileSync(file, "utf8");
  const lines = text.split("\n");
  lines[mutant.line - 1] = mutant.mutated;
  fs.writeFileSync(file, lines.join("\n"));
  try {
    if (!run("node", ["tools/artifacts.js"])) return "does not compile";
    if (hashes() === original) return "same code";
    if (!tests()) return "caught";
    if (!proofs()) return "caught by a proof";
    return "SURVIVED";
  } finally {
    fs.writeFileSync(file, text);
  }
}

const files = fs.readdirSync(path.join(root, "src"), { recursive: true }).map(String);
const sources = files.filter((file) => file.endsWith(".sol") && !SKIPPED.some((part) => file.includes(part))).sort();
let drawn = draw(sources.flatMap(mutantsOf), random(Number(options.seed)));
if (options.only) drawn = drawn.filter((mutant) => `${path.basename(mutant.file)}:${mutant.line}` === options.only);

execFileSync("node", ["tools/artifacts.js"], { cwd: home, stdio: "ignore" });
const original = hashes();
if (options.skip === "0" && (!tests() || !proofs())) throw new Error("the tests or the proofs fail without a mutant");

const verdicts = { caught: 0, survived: 0 };
for (const mutant of drawn.slice(Number(options.skip))) {
  if (verdicts.caught + verdicts.survived === Number(options.count)) break;
  const verdict = judge(mutant, original);
  if (verdict.startsWith("caught")) verdicts.caught += 1;
  if (verdict === "SURVIVED") verdicts.survived += 1;
  console.log(`${verdict}: ${mutant.file}:${mutant.line} ${mutant.operator}`);
  if (verdict === "SURVIVED") console.log(`  - ${mutant.was}\n  + ${mutant.is}`);
}
console.log(`${verdicts.caught} of ${verdicts.caught + verdicts.survived} mutants were caught, seed ${options.seed}`);
