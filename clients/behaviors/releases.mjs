#!/usr/bin/env node
// Answers every operation of released OpenAPI documents, as services of these releases and of later ones may:
//
//   releases.mjs DOCUMENT...    documents are named NAME-RELEASE.json; those of one release are served together
//
// Prints one line of JSON, {"releases"}: its address. README.md describes the routes and the forms of the answers. It runs
// until its standard input ends or it gets a signal.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { basename } from "node:path";
import { pathToFileURL } from "node:url";

const METHODS = ["get", "put", "post", "delete", "patch"];
/** In the order in which the form `problems` prefers them: none of them is retried. */
const REFUSALS = ["409", "404", "403", "401", "400"];

/** The texts that strings with a pattern or format are taken from. */
const TEXTS = [
  "7",
  "2026-04-29T12:00:00.123Z",
  "0198f3a0-5d4e-7b06-9aa4-5eb35423f988",
  "https://foretell.example/docs",
  "req_0198f3a05d4e7b069aa45eb35423f988",
  `0x${"a1".repeat(20)}`,
  `0x${"a1".repeat(32)}`,
  "a1".repeat(16),
  `whsec_${"a".repeat(43)}=`,
  "2026-04-29",
];
const FORMATS = {
  "date-time": /^\d{4}-\d\d-\d\dT/,
  date: /^\d{4}-\d\d-\d\d$/,
  uuid: /^[0-9a-f]{8}-[0-9a-f]{4}-/,
  uri: /^https:/,
};

/** How the answers of a form differ from those with every member of the document. */
export const FORMS = {
  whole: {},
  fewest: { isSparse: true },
  "new-members": { hasNewMembers: true },
  "new-words": { hasNewWords: true },
  problems: { hasNewMembers: true, hasNewWords: true, isRefused: true },
};

/** Makes values from the schemas of a document. */
class Sampler {
  constructor(document, form) {
    this.document = document;
    this.form = form;
  }

  resolve(node) {
    while (node?.$ref) node = node.$ref.slice(2).split("/").reduce((part, name) => part[name], this.document);
    return node ?? {};
  }

  /** Returns the alternatives of a schema, without null. */
  alternatives(schema) {
    const found = schema.oneOf ?? schema.anyOf;
    return found?.map((one) => this.resolve(one)).filter(({ type }) => type !== "null");
  }

  value(given) {
    const schema = this.resolve(given);
    const alternatives = this.alternatives(schema);
    const types = [schema.type ?? (schema.properties ? "object" : [])].flat();
    const isNullable = types.includes("null") || (alternatives && alternatives.length < (schema.oneOf ?? schema.anyOf).length);
    if (isNullable && this.form.isSparse) return null;
    if (alternatives) return this.value(alternatives[0]);
    if (schema.allOf) return Object.assign({}, ...schema.allOf.map((one) => this.value(one)));
    if ("const" in schema) return schema.const;
    if (schema.enum) return schema.enum[0];
    switch (types.find((type) => type !== "null")) {
      case "object":
        return this.object(schema);
      case "array":
        return [this.value(schema.items)];
      case "string":
        return this.text(schema);
      case "integer":
        return Math.min(Math.max(7, schema.minimum ?? 7), schema.maximum ?? Infinity);
      case "number":
        return 0.5;
      case "boolean":
        // A list ends, a problem is not permanent.
        return false;
      default:
        return null;
    }
  }

  object({ properties = {}, required = [], additionalProperties }) {
    const { isSparse, hasNewMembers } = this.form;
    const names = Object.keys(properties).filter((name) => !isSparse || required.includes(name));
    const members = Object.fromEntries(names.map((name) => [name, this.value(properties[name])]));
    // A map has values of one kind.
    const isMap = typeof additionalProperties === "object";
    if (isMap && !isSparse) members.text = this.value(additionalProperties);
    if (hasNewMembers && !isMap) members.later = { since: [1, "2", null] };
    return members;
  }

  text(schema) {
    const words = schema["x-extensible-enum"];
    if (words) return this.form.hasNewWords ? "new_word" : words[0];
    const { pattern, format, minLength = 0, maxLength = Infinity } = schema;
    if (!pattern && !FORMATS[format]) return "text";
    const expression = pattern ? new RegExp(pattern) : FORMATS[format];
    const text = TEXTS.find((one) => expression.test(one) && one.length >= minLength && one.length <= maxLength);
    if (text === undefined) throw new Error(`no text fits ${JSON.stringify(schema)}: add one to TEXTS`);
    return text;
  }

  /** Returns the messages of a stream. */
  stream(operation) {
    const { content } = this.resolve(operation.responses["200"]);
    const schema = this.resolve(content["text/event-stream"].schema);
    // The feed streams the items of its list.
    const { data } = content["application/json"] ? this.value(content["application/json"].schema) : {};
    const messages = data
      ? data.map((event) => ({ name: event.type, data: event }))
      : (schema.oneOf ?? schema.anyOf ?? [schema]).map((one) => ({
          name: (one.$ref ?? "").replace(/.*\/Stream(ed)?/, "").toLowerCase(),
          data: this.value(one),
        }));
    if (this.form.hasNewWords && !data) messages.unshift({ name: "new_word", data: {} });
    messages.unshift({ name: "heartbeat", data: { at: TEXTS[1] } });
    return messages.map((message, index) => `id: 1-${index + 1}\nevent: ${message.name}\ndata: ${JSON.stringify(message.data)}\n\n`).join("");
  }

  /** Returns status, media type and body of the answer to an operation. */
  answer(operation, { isDryRun, isStream }) {
    const refusal = REFUSALS.find((status) => operation.responses[status]);
    if (this.form.isRefused && refusal) return this.body(refusal, operation, isDryRun);
    if (isStream) return { status: 200, type: "text/event-stream", body: this.stream(operation) };
    return this.body(operation.responses["201"] && !isDryRun ? "201" : "200", operation, isDryRun);
  }

  body(status, operation, isDryRun) {
    const [[type, media] = ["text/plain"]] = Object.entries(this.resolve(operation.responses[status]).content ?? {});
    if (!/json/.test(type)) return { status: Number(status), type, body: "" };
    let schema = this.resolve(media.schema);
    if (isDryRun) schema = this.alternatives(schema)?.find(({ properties }) => properties?.dryRun) ?? schema;
    return { status: Number(status), type, body: JSON.stringify(this.value(schema)) };
  }
}

/** Returns the operations of a document: id, method, path as an expression, and the part of the document. */
function operationsOf(document) {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method]).map((method) => ({
      id: item[method].operationId,
      method: method.toUpperCase(),
      path: new RegExp(`^${path.replace(/[.]/g, "\\.").replace(/\{[^}]*\}/g, "[^/]+")}$`),
      // A path without parameters is preferred.
      isExact: !path.includes("{"),
      operation: item[method],
      document,
    })),
  );
}

/** Reads documents. Returns the operations of each release. */
export function readReleases(paths) {
  const releases = {};
  for (const path of paths) {
    const [, release] = /^[a-z-]+-(\d.*|next)\.json$/.exec(basename(path)) ?? [];
    if (!release) throw new Error(`${path} must be named NAME-RELEASE.json`);
    releases[release] = [...(releases[release] ?? []), ...operationsOf(JSON.parse(readFileSync(path, "utf8")))];
  }
  return releases;
}

async function readJson(stream) {
  let text = "";
  for await (const chunk of stream) text += chunk;
  return text ? JSON.parse(text) : {};
}

/** Starts a server for releases. Returns its address and `close`. */
export async function serveReleases(releases) {
  const asked = {};
  const reply = (outgoing, status, type, body) => outgoing.writeHead(status, { "content-type": type }).end(body);
  const json = (outgoing, value, status = 200) => reply(outgoing, status, "application/json", JSON.stringify(value));
  const server = createServer(async (incoming, outgoing) => {
    const { pathname } = new URL(incoming.url, "http://releases");
    const [, release, form, rest] = /^\/([^/]+)\/([^/]+)(\/.*)$/.exec(pathname) ?? [];
    const operations = releases[release];
    if (pathname === "/") {
      const ids = Object.entries(releases).map(([name, found]) => [name, found.map(({ id }) => id)]);
      return json(outgoing, { releases: Object.fromEntries(ids), forms: Object.keys(FORMS) });
    }
    if (!operations || !FORMS[form]) return json(outgoing, { error: "the routes are /, /RELEASE/FORM/asked and /RELEASE/FORM/PATH" }, 404);
    const known = (asked[`${release}/${form}`] ??= new Set());
    if (rest === "/asked") return json(outgoing, [...known]);
    try {
      const body = await readJson(incoming);
      const matching = operations.filter(({ method, path }) => method === incoming.method && path.test(rest));
      const found = matching.find(({ isExact }) => isExact) ?? matching[0];
      if (!found) return json(outgoing, { code: "RESOURCE_NOT_FOUND", detail: `release ${release} has no ${incoming.method} ${rest}` }, 404);
      known.add(found.id);
      const asking = { isDryRun: body.dryRun === true, isStream: /event-stream/.test(incoming.headers.accept ?? "") };
      const { status, type, body: text } = new Sampler(found.document, FORMS[form]).answer(found.operation, asking);
      reply(outgoing, status, type, text);
    } catch (error) {
      json(outgoing, { code: "NO_SAMPLE", detail: error.message }, 501);
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { address: `http://127.0.0.1:${server.address().port}`, close };
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const paths = process.argv.slice(2);
  if (paths.length === 0) {
    console.error("usage: releases.mjs DOCUMENT...");
    process.exit(2);
  }
  const { address, close } = await serveReleases(readReleases(paths));
  console.log(JSON.stringify({ releases: address }));
  process.stdin.on("end", close).resume();
}
