import assert from "node:assert/strict";
import test from "node:test";

import { finder } from "../outcomes.js";

test("only the newest text is searched, after a pause in typing", async () => {
  const pauses = [];
  const shown = [];
  const type = finder((text, isCurrent) => shown.push([text, isCurrent()]), () => new Promise((done) => pauses.push(done)));
  const typed = ["r", "ra", "rai"].map(type);
  pauses.forEach((done) => done());
  await Promise.all(typed);
  assert.deepEqual(shown, [["rai", true]]);
});
