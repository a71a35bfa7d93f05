// Makes a demonstration send every kind of event that can be made at will, and hands each to `assertDescribed`.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Reads server-sent events until `isEnough`. */
async function readStream(url, headers, onEvent, signal) {
  const answer = await fetch(url, { headers: { Accept: "text/event-stream", ...headers }, signal });
  assert.equal(answer.status, 200, url);
  let pending = "";
  for await (const chunk of answer.body.pipeThrough(new TextDecoderStream())) {
    pending += chunk;
    const events = pending.split("\n\n");
    pending = events.pop();
    for (const event of events) {
      const fields = Object.fromEntries(event.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()]));
      if (fields.data) onEvent(fields.event, JSON.parse(fields.data));
    }
  }
}

export async function receiveEvents(binary, dataDir, assertDescribed) {
  const admin = async (...args) => JSON.parse((await run(binary, ["--data-dir", dataDir, "admin", "--json", ...args])).stdout);
  const read = (name) => JSON.parse(readFileSync(`${dataDir}/${name}`, "utf8"));
  const [{ users, markets }, { baseUrl }] = [read("dev.json"), read("service.json")];
  const seen = { feed: new Set(), webhook: new Set(), market: new Set() };
  const faults = [];
  let changed = () => {};
  const take = (channel) => (name, payload) => {
    try {
      assertDescribed(channel, name, payload);
    } catch (error) {
      faults.push(error);
    }
    seen[channel].add(name);
    changed();
  };
  /** Waits until the channel has sent all of these. */
  const waitFor = async (channel, ...names) => {
    const end = Date.now() + 60_000;
    while (!names.every((name) => seen[channel].has(name))) {
      if (faults.length > 0) throw faults[0];
      const left = end - Date.now();
      assert.ok(left > 0, `${channel} has sent only ${[...seen[channel]]}, not ${names}`);
      await new Promise((resolve) => {
        const timer = setTimeout(resolve, left);
        changed = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  };

  const receiver = createServer(async (incoming, outgoing) => {
    const body = await new Response(incoming).text();
    const event = JSON.parse(body);
    assert.equal(incoming.headers["x-service-event-id"], event.id);
    take("webhook")(event.type, event);
    outgoing.writeHead(204).end();
  });
  await new Promise((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  const user = users.at(-1).userId;
  const url = `http://127.0.0.1:${receiver.address().port}/`;
  const issued = await admin("key", "issue", "--user", user, "--tier", "mm", "--name", "events", "--scopes", "all", "--high-value-threshold", "20", "--webhook-url", url);
  await admin("delegation", "enable", "--user", user, "--key", issued.id);

  const market = markets.filter(({ status }) => status === "OPEN").at(-1).id;
  const headers = { "X-API-Key": issued.key };
  const post = async (path, body) => {
    const answer = await fetch(baseUrl + path, { method: "POST", headers: { ...headers, "Content-Type": "application/json" }, body: JSON.stringify(body) });
    const answered = await answer.json();
    assert.ok(answer.ok, JSON.stringify(answered));
    return answered;
  };
  const stop = new AbortController();
  const streams = [
    readStream(`${baseUrl}/v1/events?types=*&from=latest`, headers, take("feed"), stop.signal),
    readStream(`${baseUrl}/api/markets/${market}/stream`, {}, take("market"), stop.signal),
  ].map((stream) => stream.catch((error) => stop.signal.aborted || faults.push(error)));
  try {
    await waitFor("feed", "heartbeat");
    const buy = (amount) => post("/v1/trades", { marketId: market, outcomeIndex: 0, side: "buy", amount, metadata: { desk: "alpha" } });
    await post("/v1/webhooks/test", {});
    await buy("1.00");
    await waitFor("feed", "trade.status-changed", "trade.completed", "webhook.test");
    await buy("25.00");
    await waitFor("feed", "trade.confirmation-required");
    // Nobody confirms it.
    await post("/v1/sandbox/clock", { advanceSeconds: 6 * 60 });
    await waitFor("feed", "trade.failed");
    await admin("market", "resolve", market, "--outcome", "0", "--yes");
    await waitFor("feed", "market.resolved", "position.claimable");
    await post("/v1/redemptions", { marketId: market, outcomeIndex: 0 });
    await waitFor("feed", "redemption.completed");
    await waitFor("webhook", "trade.completed", "trade.failed", "trade.confirmation-required", "webhook.test");
    await waitFor("market", "market", "trade", "status");
  } finally {
    stop.abort();
    receiver.closeAllConnections();
    receiver.close();
  }
  await Promise.all(streams);
  if (faults.length > 0) throw faults[0];
  return seen;
}
