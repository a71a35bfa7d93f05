// The programs of README.md: compiled with the strictest settings, then run as they are printed.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { promisify } from "node:util";
import { FORETELL_API_KEY } from "./support.mjs";

const run = promisify(execFile);
const root = new URL("../", import.meta.url);
const programs = [...readFileSync(new URL("README.md", root), "utf8").matchAll(/^```ts\n(.*?)^```/gms)].map(([, text]) => text);

test("the programs of the README compile and run", async () => {
  assert.ok(programs.length >= 8);
  const folder = new URL("readme/", root);
  mkdirSync(folder);
  writeFileSync(new URL("env.d.ts", folder), "declare const process: { env: Record<string, string | undefined> };\n");
  programs.forEach((text, index) => writeFileSync(new URL(`program${index}.ts`, folder), text));
  const compilerOptions = { strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, target: "es2022", module: "nodenext", lib: ["es2022", "dom"], types: [], skipLibCheck: false };
  writeFileSync(new URL("tsconfig.json", folder), JSON.stringify({ compilerOptions, include: ["*.ts"] }));
  await run("tsc", ["--project", folder.pathname]).catch(({ stdout }) => assert.fail(stdout));
  for (const index of programs.keys()) {
    const { stdout, stderr } = await run(process.execPath, [new URL(`program${index}.js`, folder).pathname], { timeout: 60_000 });
    assert.equal(stderr, "", programs[index]);
    assert.equal(stdout !== "", programs[index].includes("console.log") && !programs[index].includes("export default"), programs[index]);
    assert.ok(!stdout.includes(FORETELL_API_KEY));
  }
});

test("the package has a licence, types, no dependencies and no module of a runtime", () => {
  const folder = new URL("node_modules/@foretell/client/", root);
  const read = (path) => readFileSync(new URL(path, folder), "utf8");
  const manifest = JSON.parse(read("package.json"));
  assert.equal(manifest.license, "MIT OR Apache-2.0");
  assert.equal(manifest.dependencies, undefined);
  assert.deepEqual(manifest.publishConfig, { access: "public", provenance: true });
  for (const path of [manifest.types, "LICENSE-MIT", "LICENSE-APACHE", "AGENTS.md", "README.md"]) assert.ok(read(path).length > 0);
  for (const name of ["amounts", "client", "crypto", "errors", "feed", "index", "pages", "response", "sse", "trades", "transport", "webhooks"]) {
    const code = read(`dist/${name}.js`).replace(/\/\*.*?\*\//gs, "");
    assert.doesNotMatch(code, /from "(?!\.\/)|require\(|\b(Buffer|process)\b/, name);
  }
});
