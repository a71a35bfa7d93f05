/**
 * A receiver of webhooks that posts what happens to a channel, in the form that Discord's webhooks take.
 *
 *     WEBHOOK_SECRETS=whsec_… DISCORD_URL=https://discord.com/api/webhooks/… node dist/receiver.js
 *
 * It needs Node.js and the client, which verifies the signatures. README.md has commands that run against a
 * demonstration.
 *
 * 1. A delivery without a valid signature gets 400. Nothing of it is used.
 * 2. An event is stored before it is answered, so that none is lost. Only then is it posted to the channel: the service
 *    has its answer within milliseconds, even if the channel is slow or down.
 * 3. A delivery can come twice. An event whose id is stored is answered with 200, and not posted again.
 * 4. Events that were stored and not posted when the program was killed are posted when it starts again.
 *
 * | Variable | |
 * | --- | --- |
 * | `WEBHOOK_SECRETS` | the secret of the key; two, separated by a comma, while it is rotated |
 * | `DISCORD_URL` | the address of the channel's webhook. It is a secret, too |
 * | `PORT` | 3000 by default, on this machine: put a proxy with TLS in front of it |
 * | `EVENTS_FILE` | the stored events; `events.jsonl` by default |
 * | `FORETELL_BASE_URL`, `FORETELL_API_KEY` | if they are set, messages name the outcome and the market, instead of their ids |
 */
import { appendFileSync, closeSync, existsSync, fsyncSync, openSync, readFileSync } from "node:fs";
import { type IncomingMessage, type ServerResponse, createServer } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { Foretell, Wad, type WebhookEvent, WebhookVerificationError, verify } from "@foretell/client";

const { DISCORD_URL, FORETELL_API_KEY, FORETELL_BASE_URL, WEBHOOK_SECRETS } = process.env;
const { EVENTS_FILE = "events.jsonl", PORT = "3000" } = process.env;
const LARGEST_BODY = 1 << 20;
const LONGEST_PAUSE_MS = 60_000;

const secrets = (WEBHOOK_SECRETS ?? "").split(",").filter(Boolean);
if (secrets.length === 0 || !DISCORD_URL) throw new Error("WEBHOOK_SECRETS and DISCORD_URL must be set");
const channel = DISCORD_URL;
const foretell = FORETELL_BASE_URL && FORETELL_API_KEY ? new Foretell({ baseUrl: FORETELL_BASE_URL, apiKey: FORETELL_API_KEY }) : null;

/** The ids of all stored events, and the events that the channel does not have yet, in their order. */
const known = new Set<string>();
const waiting = new Map<string, WebhookEvent>();

type Line = { event: WebhookEvent } | { posted: string };

function readStored(): void {
  if (!existsSync(EVENTS_FILE)) return;
  for (const text of readFileSync(EVENTS_FILE, "utf8").split("\n")) {
    let line: Line;
    try {
      line = JSON.parse(text) as Line;
    } catch {
      // The program was killed while it wrote this line, so it has not answered. The event comes again.
      continue;
    }
    if ("event" in line) {
      known.add(line.event.id);
      waiting.set(line.event.id, line.event);
    } else {
      waiting.delete(line.posted);
    }
  }
  // The next line begins a new one, also after half of a line.
  appendFileSync(EVENTS_FILE, "\n");
}

/** Appends a line, and returns when the disk has it. */
function store(line: Line): void {
  const file = openSync(EVENTS_FILE, "a", 0o600);
  try {
    appendFileSync(file, `${JSON.stringify(line)}\n`);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

async function readBody(request: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > LARGEST_BODY) return null;
    chunks.push(chunk);
  }
  // The bytes as they arrived: a body that is parsed and written again has another signature.
  return Buffer.concat(chunks);
}

async function receive(request: IncomingMessage): Promise<number> {
  if (request.method !== "POST") return 405;
  const body = await readBody(request);
  if (body === null) return 413;
  const header = request.headers["x-service-signature"];
  const event = await verify(body, typeof header === "string" ? header : null, secrets);
  if (!known.has(event.id)) {
    store({ event });
    known.add(event.id);
    waiting.set(event.id, event);
    wake();
  }
  return 200;
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  let status: number;
  try {
    status = await receive(request);
  } catch (error) {
    // 500 for a fault of this program, such as a full disk: the service then delivers the event again.
    status = error instanceof WebhookVerificationError ? 400 : 500;
    console.error(error instanceof Error ? error.message : error);
  }
  // The rest of a body that is too large is not read.
  response.writeHead(status, status === 413 ? { connection: "close" } : {}).end();
}

/** The names of outcomes, which never change. */
const names = new Map<string, string>();

async function nameOf(marketId: string, outcome: number): Promise<string> {
  const id = `outcome ${outcome} of ${marketId}`;
  if (foretell === null) return id;
  try {
    if (!names.has(id)) {
      const { outcomes, question } = await foretell.markets.get(marketId);
      for (const { index, label } of outcomes) names.set(`outcome ${index} of ${marketId}`, `“${label}” of “${question}”`);
    }
  } catch (error) {
    // A message with an id is better than none.
    console.error(error instanceof Error ? error.message : error);
  }
  return names.get(id) ?? id;
}

async function describe({ type, data }: WebhookEvent): Promise<string> {
  if (data.tradeId === undefined || data.marketId === undefined) return `**${type}**`;
  const amount = `${data.amount ?? "all"} ${data["amountType"] === undefined ? "USDC" : "tokens"}`;
  const tokens = data.tokensOut ? `, ${Wad.fromAtomic(data.tokensOut).toString()} tokens` : "";
  const reason = data.errorMessage ? `\n${data.errorMessage}` : "";
  return `**${type}**: ${data.side} ${amount} of ${await nameOf(data.marketId, data.outcomeIndex ?? 0)}${tokens}${reason}`;
}

/** Posts an event to the channel. Returns how long to wait before the next attempt, or null if it is done. */
async function post(event: WebhookEvent, attempt: number): Promise<number | null> {
  const delay = Math.min(1_000 * 2 ** attempt, LONGEST_PAUSE_MS);
  try {
    // Nobody is notified by a name in a question or in metadata.
    const message = { content: (await describe(event)).slice(0, 2_000), allowed_mentions: { parse: [] } };
    const init = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(message) };
    const response = await fetch(channel, { ...init, redirect: "error", signal: AbortSignal.timeout(10_000) });
    await response.body?.cancel();
    if (response.ok) return null;
    console.error(`the channel answers ${response.status} to event ${event.id}`);
    if (response.status === 429) return Math.max(Number(response.headers.get("retry-after")) * 1_000 || 0, delay);
    // Another attempt would get the same answer.
    return response.status < 500 ? null : delay;
  } catch (error) {
    console.error(`event ${event.id} was not posted:`, error instanceof Error ? error.message : error);
    return delay;
  }
}

let wake = (): void => undefined;

/** Posts events one after the other, so that the channel has them in their order. */
async function postAll(): Promise<never> {
  for (;;) {
    for (const event of [...waiting.values()]) {
      let delay: number | null;
      for (let attempt = 0; (delay = await post(event, attempt)) !== null; attempt++) await pause(delay);
      waiting.delete(event.id);
      store({ posted: event.id });
    }
    if (waiting.size === 0) await new Promise<void>((resolve) => (wake = resolve));
  }
}

readStored();
void postAll();
createServer(answer).listen(Number(PORT), "127.0.0.1", () => console.log(`receiving on http://127.0.0.1:${PORT}`));
