import assert from "node:assert/strict";
import test from "node:test";

import { start } from "../file.js";

const CATALOG = new File(["threads: []"], "cup.yaml");

function field({ files, text }) {
  const said = {};
  const form = {
    elements: { text: { value: text }, format: { value: "json" } },
    said,
    closest: () => ({ querySelector: () => said }),
  };
  return Object.assign(new EventTarget(), { files, form });
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

async function hear(input) {
  while (!input.form.said.textContent) await turn();
  return input.form.said.textContent;
}

test("a file that was chosen before the module was loaded is read", async () => {
  const input = field({ files: [CATALOG], text: "" });
  start(input);
  assert.equal(await hear(input), "cup.yaml was read.");
  assert.deepEqual([input.form.elements.text.value, input.form.elements.format.value], ["threads: []", "yaml"]);
});

test("a text that the user has written is replaced only by a new choice", async () => {
  const input = field({ files: [CATALOG], text: "mine" });
  start(input);
  for (let turns = 0; turns < 10; turns++) await turn();
  assert.equal(input.form.elements.text.value, "mine");
  input.dispatchEvent(new Event("change"));
  await hear(input);
  assert.equal(input.form.elements.text.value, "threads: []");
});
