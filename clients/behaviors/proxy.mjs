#!/usr/bin/env node
// A proxy that makes the faults of networks on request: proxy.mjs UPSTREAM
//
// Prints one line of JSON, {"proxy", "control"}: the address for clients, and the address that controls it:
//
//   PUT /rules   replaces the rules with the array in the body, and empties the log
//   GET /log     returns the requests since then, without API keys
//
// README.md describes rules and log. It runs until its standard input ends or it gets a signal.
import { Agent, createServer, request } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { pathToFileURL } from "node:url";

const MAX_BODY = 1 << 20;

async function readAll(stream) {
  const chunks = [];
  let size = 0;
  for await (const chunk of stream) {
    size += chunk.length;
    if (size > MAX_BODY) throw new Error("the body is above 1 MiB");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Matches a path with a pattern in which each `*` is one segment. */
function matchesPath(pattern, path) {
  const [expected, given] = [pattern.split("/"), path.split("/")];
  return expected.length === given.length && expected.every((part, index) => part === "*" || part === given[index]);
}

/** Returns the first rule that applies to this request, and counts it. */
function chooseRule(rules, method, path) {
  for (const rule of rules) {
    if (rule.method && rule.method !== method) continue;
    if (rule.path && !matchesPath(rule.path, path)) continue;
    rule.seen += 1;
    const number = rule.seen - (rule.skip ?? 0);
    if (number < 1 || rule.used >= (rule.times ?? 1)) continue;
    if (number % (rule.every ?? 1) !== 0) continue;
    rule.used += 1;
    return rule;
  }
  return { action: "pass" };
}

/** Applies a JSON merge patch (RFC 7396). */
function merge(target, patch) {
  if (patch === null || typeof patch !== "object" || Array.isArray(patch)) return patch;
  const result = target !== null && typeof target === "object" && !Array.isArray(target) ? { ...target } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name];
    else result[name] = merge(result[name], value);
  }
  return result;
}

/** Sends the request to the upstream. Returns its answer as a stream. */
function send(upstream, agent, incoming, body) {
  const url = new URL(incoming.url, upstream);
  const headers = { ...incoming.headers, host: url.host };
  delete headers.connection;
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { method: incoming.method, headers, agent }, resolve);
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

function copyHeaders(answer) {
  const { connection, "keep-alive": _keepAlive, "transfer-encoding": _encoding, ...rest } = answer.headers;
  return rest;
}

/** Passes the upstream's answer on as it arrives, and cuts it after `limit` bytes. */
async function pipe(answer, outgoing, limit) {
  outgoing.writeHead(answer.statusCode, copyHeaders(answer));
  outgoing.flushHeaders();
  // A client that leaves ends the request to the upstream too.
  outgoing.on("close", () => answer.destroy());
  let left = limit ?? Infinity;
  try {
    for await (const chunk of answer) {
      outgoing.write(chunk.subarray(0, Math.min(left, chunk.length)));
      left -= chunk.length;
      if (left <= 0) return cutSoon(outgoing);
    }
    outgoing.end();
  } catch {
    outgoing.destroy();
  }
}

/** Cuts the connection when what was written has left this process. */
function cutSoon(outgoing) {
  outgoing.write("", () => outgoing.socket?.destroy());
}

/** Returns a problem document as the service would answer it. */
function problem(rule, path) {
  const { code } = rule.problem;
  return {
    type: `https://foretell.example/docs/api-errors/${code}`,
    title: "An error",
    status: rule.status,
    detail: "The proxy made this error.",
    instance: path,
    requestId: "req_0198f3a05d4e7b069aa45eb35423f988",
    ...rule.problem,
  };
}

async function answerCanned(rule, incoming, outgoing, signal) {
  const body = rule.problem ? problem(rule, incoming.url.split("?")[0]) : rule.body;
  const isText = typeof body === "string" || body === undefined;
  const type = isText ? "text/plain" : rule.problem ? "application/problem+json" : "application/json";
  outgoing.writeHead(rule.status ?? 200, { "content-type": type, ...rule.headers });
  if (!rule.chunks) return outgoing.end(isText ? body : JSON.stringify(body));
  const send = async (chunk) => {
    outgoing.write(chunk);
    // Chunks of their own, also at the client.
    await pause(5);
  };
  for (const chunk of rule.chunks) {
    if (signal.aborted) return;
    await send(chunk);
  }
  while (rule.end === "repeat" && !signal.aborted) await send(rule.chunks.at(-1));
  if (rule.end === "cut") return cutSoon(outgoing);
  if (rule.end !== "hang") outgoing.end();
}

/** Carries out the rule's action, and returns the status that the upstream or the rule answered. */
async function act(rule, context) {
  const { incoming, outgoing, body, upstream, agent, signal } = context;
  const forward = () => send(upstream, agent, incoming, body);
  const drained = async () => {
    const answer = await forward();
    return { answer, content: await readAll(answer) };
  };
  const finish = ({ answer, content }) => {
    outgoing.writeHead(answer.statusCode, { ...copyHeaders(answer), "content-length": content.length });
    outgoing.end(content);
    return answer.statusCode;
  };
  switch (rule.action) {
    case "pass": {
      const answer = await forward();
      pipe(answer, outgoing);
      return answer.statusCode;
    }
    case "cut": {
      if (rule.when === "before") {
        incoming.socket.destroy();
        return null;
      }
      if (rule.afterBytes !== undefined) {
        const answer = await forward();
        pipe(answer, outgoing, rule.afterBytes);
        return answer.statusCode;
      }
      const { answer, content } = await drained();
      if (rule.when === "middle") {
        outgoing.writeHead(answer.statusCode, { ...copyHeaders(answer), "content-length": content.length });
        outgoing.write(content.subarray(0, Math.floor(content.length / 2)));
        cutSoon(outgoing);
      } else {
        incoming.socket.destroy();
      }
      return answer.statusCode;
    }
    case "delay": {
      // Delivered also if the client has left, as a slow network would.
      await pause(rule.ms, undefined, { ref: false });
      return finish(await drained());
    }
    case "repeat": {
      const copies = await Promise.all(Array.from({ length: rule.count ?? 2 }, drained));
      return finish(copies.at(-1));
    }
    case "answer": {
      if (rule.forward) await drained();
      await answerCanned(rule, incoming, outgoing, signal);
      return rule.status ?? 200;
    }
    case "merge": {
      incoming.headers["accept-encoding"] = "identity";
      const { answer, content } = await drained();
      return finish({ answer, content: Buffer.from(JSON.stringify(merge(JSON.parse(content), rule.body))) });
    }
    default:
      throw new Error(`unknown action ${rule.action}`);
  }
}

/** Describes a request for the log. The API key never gets there. */
function describe(incoming, body, started) {
  const url = new URL(incoming.url, "http://proxy");
  const { "x-api-key": key, ...headers } = incoming.headers;
  return {
    at: started,
    method: incoming.method,
    path: url.pathname,
    query: Object.fromEntries(url.searchParams),
    headers,
    hasKey: key !== undefined,
    body: body.toString("utf8"),
  };
}

/** Starts a proxy for `upstream`. Returns its addresses, functions that control it, and `close`. */
export async function startProxy(upstream) {
  const agent = new Agent({ keepAlive: true });
  let rules = [];
  let log = [];
  const setRules = (given) => {
    if (!Array.isArray(given)) throw new Error("rules must be an array");
    rules = given.map((rule) => ({ ...rule, seen: 0, used: 0 }));
    log = [];
  };
  const proxy = createServer(async (incoming, outgoing) => {
    const started = Date.now();
    const gone = new AbortController();
    outgoing.on("close", () => gone.abort());
    try {
      const body = await readAll(incoming);
      const entry = describe(incoming, body, started);
      const rule = chooseRule(rules, entry.method, entry.path);
      entry.action = rule.action;
      log.push(entry);
      entry.status = await act(rule, { incoming, outgoing, body, upstream, agent, signal: gone.signal });
    } catch {
      // The upstream or the client is gone.
      incoming.socket.destroy();
    }
  });
  const control = createServer(async (incoming, outgoing) => {
    const reply = (status, value) => {
      outgoing.writeHead(status, { "content-type": "application/json" });
      outgoing.end(JSON.stringify(value));
    };
    try {
      if (incoming.method === "PUT" && incoming.url === "/rules") {
        setRules(JSON.parse(await readAll(incoming)));
        return reply(200, {});
      }
      if (incoming.method === "GET" && incoming.url === "/log") return reply(200, log);
      reply(404, { error: "the routes are PUT /rules and GET /log" });
    } catch (error) {
      reply(400, { error: error.message });
    }
  });
  const listen = (server) =>
    new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(`http://127.0.0.1:${server.address().port}`)));
  const [proxyUrl, controlUrl] = [await listen(proxy), await listen(control)];
  const close = () => {
    for (const server of [proxy, control]) {
      server.closeAllConnections();
      server.close();
    }
    agent.destroy();
  };
  return { proxy: proxyUrl, control: controlUrl, setRules, log: () => log, close };
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const upstream = process.argv[2];
  if (!upstream) {
    console.error("usage: proxy.mjs UPSTREAM");
    process.exit(2);
  }
  const { proxy, control, close } = await startProxy(upstream);
  console.log(JSON.stringify({ proxy, control }));
  process.stdin.on("end", close).resume();
}
