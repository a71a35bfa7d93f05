// The programs of README.md: compiled with the strictest settings, then run as they are printed.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { promisify } from "node:util";
import { FORETELL_API_KEY, FORETELL_URL, clientOf } from "./support.mjs";

const run = promisify(execFile);
const root = new URL("../", import.meta.url);
const readme = readFileSync(new URL("README.md", root), "utf8");
const programs = [...readme.matchAll(/^```ts\n(.*?)^```/gms)].map(([, text]) => text);
const receiverAt = programs.findIndex((text) => text.includes("createServer"));
const folder = new URL("readme/", root);
const pathOf = (index) => new URL(`program${index}.js`, folder).pathname;
const env = { ...process.env, FORETELL_BASE_URL: FORETELL_URL };

test("the programs of the README compile and run", async () => {
  assert.ok(programs.length >= 8);
  mkdirSync(folder);
  programs.forEach((text, index) => writeFileSync(new URL(`program${index}.ts`, folder), text));
  const compilerOptions = { strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, target: "es2022", module: "nodenext", lib: ["es2022"], types: ["node"], skipLibCheck: false };
  writeFileSync(new URL("tsconfig.json", folder), JSON.stringify({ compilerOptions, include: ["*.ts"] }));
  await run("tsc", ["--project", folder.pathname]).catch(({ stdout }) => assert.fail(stdout));
  for (const index of programs.keys()) {
    if (index === receiverAt) continue;
    const { stdout, stderr } = await run(process.execPath, [pathOf(index)], { timeout: 60_000, env });
    assert.equal(stderr, "", programs[index]);
    assert.equal(stdout !== "", programs[index].includes("console.log") && !programs[index].includes("export default"), programs[index]);
    assert.ok(!stdout.includes(FORETELL_API_KEY));
  }
});

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

test("the receiver of the README accepts only signed deliveries, and each event once", async () => {
  const secret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
  const [port, now] = [await freePort(), Date.now()];
  const receiver = spawn(process.execPath, [pathOf(receiverAt)], { env: { ...env, FORETELL_WEBHOOK_SECRET: secret, PORT: port }, stdio: ["ignore", "pipe", "inherit"] });
  try {
    const lines = createInterface(receiver.stdout)[Symbol.asyncIterator]();
    assert.equal((await lines.next()).value, "ready");
    const body = '{"id":"e1","type":"trade.completed","data":{"tradeId":"t1"}}';
    const v1 = createHmac("sha256", secret).update(`${now}.${body}`).digest("hex");
    const post = async (content) => {
      const answer = await fetch(`http://127.0.0.1:${port}/`, { method: "POST", body: content, headers: { "x-service-signature": `t=${now},v1=${v1}` } });
      return answer.status;
    };
    assert.deepEqual([await post(body), await post(body), await post(`${body} `)], [200, 200, 400]);
    receiver.kill();
    assert.equal((await lines.next()).value, "trade.completed t1");
    assert.equal((await lines.next()).done, true);
  } finally {
    receiver.kill();
  }
});

test("every call of the README exists", () => {
  const { client } = clientOf({});
  const calls = new Set([...readme.matchAll(/\bforetell\.([a-zA-Z]+)\.([a-zA-Z]+)\(/g)].map(([, resource, method]) => `${resource}.${method}`));
  assert.ok(calls.size > 25);
  for (const call of calls) {
    const [resource, method] = call.split(".");
    assert.equal(typeof client[resource]?.[method], "function", call);
  }
});

test("the package has a licence, types, no dependencies and no module of a runtime", () => {
  const installed = new URL("node_modules/@foretell/client/", root);
  const read = (path) => readFileSync(new URL(path, installed), "utf8");
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
