// The description of events: valid, with examples, and true of what a running service sends.
//
// node tools/asyncapi/check.mjs                  the document, and the bodies of the service's own tests
// node tools/asyncapi/check.mjs BINARY DATA_DIR  also what `foretell dev --test-clock` in DATA_DIR sends
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { Parser } from "@asyncapi/parser";
import Ajv from "ajv";
import addFormats from "ajv-formats";
import { receiveEvents } from "./events.mjs";

const root = new URL("../../", import.meta.url);
const text = readFileSync(new URL("docs/asyncapi.json", root), "utf8");
const document = JSON.parse(text);
const { channels, components } = document;

async function checkDocument() {
  const { document: parsed, diagnostics } = await new Parser().parse(text);
  const faults = diagnostics.filter(({ code }) => code !== "asyncapi-latest-version");
  assert.deepEqual(faults, []);
  assert.equal(parsed.version(), "3.0.0");
}

/** A copy in which no member is allowed that the document does not name, to notice what it leaves out. */
function strict(value) {
  if (Array.isArray(value)) return value.map(strict);
  if (value === null || typeof value !== "object") return value;
  const copy = Object.fromEntries(Object.entries(value).map(([name, member]) => [name, name === "examples" ? member : strict(member)]));
  const isSchema = value.type === "object" && typeof value.properties === "object";
  return isSchema && value.additionalProperties === undefined ? { ...copy, additionalProperties: false } : copy;
}

const ajv = new Ajv({ allErrors: true, strict: false });
addFormats(ajv);
ajv.addSchema({ $id: "events:", components: { schemas: strict(components.schemas) } });

function assertValid(schema, value, what) {
  const validate = ajv.getSchema(`events:#/components/schemas/${schema}`);
  assert.ok(validate, `there is no schema ${schema}`);
  assert.ok(validate(value), `${what}: ${ajv.errorsText(validate.errors)}: ${JSON.stringify(value)}`);
}

function checkExamples() {
  for (const [name, schema] of Object.entries(components.schemas)) {
    assert.ok(schema.examples?.length > 0, `${name} has no example`);
    for (const example of schema.examples) assertValid(name, example, `the example of ${name}`);
    for (const [member, property] of Object.entries(schema.properties ?? {})) {
      assert.ok(property.$ref || property.examples?.length > 0 || property.const !== undefined, `${name}.${member} has no example`);
    }
  }
}

const nameOf = (reference) => reference.split("/").at(-1);

/** Compares an event with the message that the channel has under its name. */
function assertDescribed(channel, name, payload) {
  const message = channels[channel].messages[name];
  assert.ok(message, `${channel} has no message ${name}`);
  assertValid(nameOf(components.messages[nameOf(message.$ref)].payload.$ref), payload, `${channel} ${name}`);
}

/** The bodies that the service's own tests expect. */
function checkSnapshots() {
  const path = "crates/domain/src/event/snapshots/domain__event__tests__a_trade_event_has_the_fields_known_in_its_status.snap";
  const snapshot = readFileSync(new URL(path, root), "utf8").replace(/^---.*?^---$/ms, "");
  const bodies = snapshot.split(/^(?=\{$)/m).filter((body) => body.trim()).map((body) => JSON.parse(body));
  assert.ok(bodies.length >= 7);
  for (const body of bodies) {
    assertDescribed("feed", body.type, { sequence: 1, apiKeyId: null, ...body });
    if (channels.webhook.messages[body.type]) assertDescribed("webhook", body.type, body);
  }
}

/** The OpenAPI document names the same types of events. */
function checkTypes(path) {
  const { EventType } = JSON.parse(readFileSync(path, "utf8")).components.schemas;
  const described = Object.keys(channels.feed.messages).filter((name) => !["heartbeat", "closing"].includes(name));
  assert.deepEqual(described.sort(), [...EventType["x-extensible-enum"]].sort());
}

await checkDocument();
checkExamples();
checkSnapshots();
if (process.env.FORETELL_OPENAPI) checkTypes(process.env.FORETELL_OPENAPI);
const [binary, dataDir] = process.argv.slice(2);
if (binary) {
  const seen = await receiveEvents(binary, dataDir, assertDescribed);
  // A rejection cannot be provoked at will; the snapshots contain one.
  // A market's first heartbeat comes after 15 seconds, and a stream closes when the service stops.
  for (const [channel, names] of Object.entries(seen)) {
    const missing = Object.keys(channels[channel].messages).filter((name) => !names.has(name));
    const canBeMissing = channel === "market" ? ["heartbeat", "closing"] : ["trade.rejected", "closing"];
    assert.deepEqual(missing.filter((name) => !canBeMissing.includes(name)), [], `${channel} did not send everything`);
  }
  console.log(`described: ${seen.feed.size + seen.webhook.size + seen.market.size} kinds of real messages`);
}
