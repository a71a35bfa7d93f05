// The rules of the server of releases, with a small document.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { readReleases, serveReleases } from "./releases.mjs";

const json = (schema, type = "application/json") => ({ content: { [type]: { schema } } });
const thing = {
  type: "object",
  required: ["id", "status", "note", "labels"],
  properties: {
    id: { type: "string", format: "uuid" },
    status: { type: "string", "x-extensible-enum": ["new", "old"] },
    side: { type: "string", enum: ["buy"] },
    note: { type: ["string", "null"] },
    labels: { type: "object", additionalProperties: { type: "string" } },
    part: { oneOf: [{ type: "null" }, { $ref: "#/components/schemas/Part" }] },
  },
};
const document = {
  components: { schemas: { Thing: thing, Part: { type: "object", properties: { count: { type: "integer", minimum: 9 } } } } },
  paths: {
    "/things/{id}": { get: { operationId: "getThing", responses: { 200: json({ $ref: "#/components/schemas/Thing" }) } } },
    "/things/last": { get: { operationId: "getLast", responses: { 200: json({ type: "object", properties: { last: { const: 1 } } }) } } },
    "/things": {
      post: {
        operationId: "createThing",
        responses: { 200: json({ type: "object" }), 201: json({ $ref: "#/components/schemas/Thing" }), 404: json(thing, "application/problem+json") },
      },
    },
  },
};

let folder;
let served;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), "releases-"));
  const path = join(folder, "trading-api-1.2.3.json");
  writeFileSync(path, JSON.stringify(document));
  served = await serveReleases(readReleases([path]));
});
after(() => {
  served.close();
  rmSync(folder, { recursive: true });
});

async function ask(path, options) {
  const answer = await fetch(served.address + path, options);
  return { status: answer.status, body: await answer.json() };
}

const ID = "0198f3a0-5d4e-7b06-9aa4-5eb35423f988";
const WHOLE = { id: ID, status: "new", side: "buy", note: "text", labels: { text: "text" }, part: { count: 9 } };
const LATER = { since: [1, "2", null] };

test("an answer has every member of its schema", async () => {
  assert.deepEqual(await ask("/1.2.3/whole/things/7"), { status: 200, body: WHOLE });
});

test("an answer of the fewest members has only the required ones, and null if it may", async () => {
  assert.deepEqual((await ask("/1.2.3/fewest/things/7")).body, { id: ID, status: "new", note: null, labels: {} });
});

test("new members are in each object but not in maps", async () => {
  assert.deepEqual((await ask("/1.2.3/new-members/things/7")).body, { ...WHOLE, part: { count: 9, later: LATER }, later: LATER });
});

test("new words are in the members that allow them", async () => {
  assert.deepEqual((await ask("/1.2.3/new-words/things/7")).body, { ...WHOLE, status: "new_word" });
});

test("a problem is answered with its status if the operation has one", async () => {
  assert.equal((await ask("/1.2.3/problems/things", { method: "POST" })).status, 404);
  assert.equal((await ask("/1.2.3/problems/things/7")).status, 200);
});

test("a create is answered with 201 and a dry run with 200", async () => {
  assert.equal((await ask("/1.2.3/whole/things", { method: "POST" })).status, 201);
  assert.equal((await ask("/1.2.3/whole/things", { method: "POST", body: '{"dryRun":true}' })).status, 200);
});

test("the operations that were asked are listed, and a path without parameters is preferred", async () => {
  await ask("/1.2.3/whole/things/last");
  assert.ok((await ask("/1.2.3/whole/asked")).body.includes("getLast"));
  const { releases } = (await ask("/")).body;
  assert.deepEqual(releases, { "1.2.3": ["getThing", "getLast", "createThing"] });
});

test("a string that no text fits is reported", async () => {
  const odd = { paths: { "/odd": { get: { operationId: "odd", responses: { 200: json({ type: "string", pattern: "^odd$" }) } } } } };
  const path = join(folder, "trading-api-next.json");
  writeFileSync(path, JSON.stringify(odd));
  const other = await serveReleases(readReleases([path]));
  const answer = await fetch(`${other.address}/next/whole/odd`);
  assert.equal(answer.status, 501);
  assert.match(await answer.text(), /add one to TEXTS/);
  other.close();
});
