import { type FeedItem, type FeedOptions, readFeed } from "./feed.js";
import { type Pages, pagesOf } from "./pages.js";
import type { RateLimit } from "./response.js";
import { Trades, resultOf, thrown } from "./trades.js";
import { type Options, Transport } from "./transport.js";
import type * as records from "./types.js";
import { verify } from "./webhooks.js";

/** What the resources of a client share. */
class Resource {
  /** @internal */
  protected readonly transport: Transport;

  /** @internal */
  constructor(transport: Transport) {
    this.transport = transport;
  }

  protected async read<T extends object>(path: string, member: string, query: object = {}): Promise<T> {
    const call = { method: "GET", path, query, member, isRepeatable: true } as const;
    return resultOf(await thrown(this.transport.send(call)), member);
  }

  protected async write<T extends object>(path: string, member: string, isRepeatable: boolean, body: unknown = {}): Promise<T> {
    const call = { method: "POST", path, body, member, isRepeatable } as const;
    return resultOf(await thrown(this.transport.send(call)), member);
  }

  protected walk<T>(path: string, query: object): Pages<T> {
    return pagesOf(this.transport, path, query);
  }
}

const idOf = encodeURIComponent;

/** Finds markets, and reads their trades and prices. */
export class Markets extends Resource {
  /** Lists markets, newest first. */
  list(query: records.MarketQuery = {}): Pages<records.Market> {
    return this.walk("/v1/markets", query);
  }

  /** Reads a market. */
  get(id: string): Promise<records.Market> {
    return this.read(`/v1/markets/${idOf(id)}`, "market");
  }

  /** Lists the trades of a market on chain, newest first. */
  predictions(id: string, query: records.PredictionQuery = {}): Pages<records.Prediction> {
    return this.walk(`/v1/markets/${idOf(id)}/predictions`, query);
  }

  /** Reads candles of each outcome. */
  history(id: string, query: records.HistoryQuery = {}): Promise<records.MarketHistory> {
    return this.read(`/v1/markets/${idOf(id)}/history`, "history", query);
  }
}

/** Computes what a trade would move. */
export class Quotes extends Resource {
  /** Quotes a trade. `amount` is in atomic units: USDC for a buy, tokens for a sell. */
  get(marketId: string, query: Omit<records.QuoteQuery, "amount"> & { amount: string | { readonly atomic: bigint } }): Promise<records.Quote> {
    const amount = typeof query.amount === "object" ? query.amount.atomic.toString() : query.amount;
    return this.read(`/v1/markets/${idOf(marketId)}/quote`, "quote", { ...query, amount });
  }
}

/** Reads the balance and the positions of the account. */
export class PortfolioResource extends Resource {
  /** Reads the balance and the totals. */
  get(): Promise<records.Portfolio> {
    return this.read("/v1/portfolio", "portfolio");
  }

  /** Reads the positions. */
  positions(query: { marketId?: string } = {}): Promise<records.Position[]> {
    return this.read("/v1/portfolio/positions", "data", query);
  }
}

/** Claims the payouts of ended markets. */
export class Redemptions extends Resource {
  /** Claims a position. A position has one claim: another call returns it. */
  create(claim: { marketId: string; outcomeIndex: number }): Promise<records.Redemption> {
    return this.write("/v1/redemptions", "redemption", true, claim);
  }

  /** Reads a claim. */
  get(id: string): Promise<records.Redemption> {
    return this.read(`/v1/redemptions/${idOf(id)}`, "redemption");
  }

  /** Lists claims, newest first. */
  list(query: records.RedemptionQuery = {}): Pages<records.Redemption> {
    return this.walk("/v1/redemptions", query);
  }
}

/** Reads, checks and pauses the calling key. */
export class Keys extends Resource {
  /** Reads the key with its scopes, limits and spending. */
  get(): Promise<records.Key> {
    return this.read("/v1/key", "key");
  }

  /** Reports if the key can trade, and the steps that are missing. */
  readiness(): Promise<records.AccountReadiness> {
    return this.read("/v1/account/readiness", "readiness");
  }

  /** Reads the usage of the key. */
  usage(): Promise<records.Usage> {
    return this.read("/v1/account/usage", "usage");
  }

  /** Stops trading with this key. The API cannot resume it. */
  pause(): Promise<records.Pause> {
    return this.write("/v1/account/pause", "pause", true);
  }
}

/** Follows the feed of events. */
export class Events extends Resource {
  /**
   * Streams events, in order and without gaps. Interruptions are resumed. The iteration ends if the caller leaves it or
   * aborts the signal, or with an error if the key may not read on or events were missed (`CURSOR_EXPIRED`).
   */
  stream(options: FeedOptions = {}): AsyncGenerator<FeedItem, void, undefined> {
    return readFeed(this.transport, options);
  }
}

/** Verifies deliveries, and manages the webhook of the key. */
export class Webhooks extends Resource {
  /** Verifies a delivery; see {@link verify}. */
  readonly verify: typeof verify = verify;

  /** Lists deliveries, newest first. */
  list(query: records.WebhookQuery = {}): Pages<records.WebhookDelivery> {
    return this.walk("/v1/webhooks/events", query);
  }

  /** Reads a delivery with its attempts. */
  get(id: string): Promise<records.WebhookDelivery> {
    return this.read(`/v1/webhooks/events/${idOf(id)}`, "event");
  }

  /** Reads the state of the receiver. */
  endpoint(): Promise<records.WebhookEndpoint> {
    return this.read("/v1/webhooks/endpoint", "endpoint");
  }

  /** Sends an event again. Each call queues one more delivery. */
  redeliver(id: string): Promise<records.QueuedEvent> {
    return this.write(`/v1/webhooks/events/${idOf(id)}/redeliver`, "event", false);
  }

  /** Sends a test event. Each call queues one more delivery. */
  sendTest(): Promise<records.QueuedEvent> {
    return this.write("/v1/webhooks/test", "event", false);
  }

  /** Replaces the secret, and returns the new one once. */
  rotateSecret(): Promise<records.WebhookSecret> {
    return this.write("/v1/auth/api-keys/me/webhook-secret/rotate", "webhookSecret", false);
  }
}

/**
 * A client of the Foretell trading API.
 *
 * @example
 * ```ts
 * const foretell = new Foretell({ baseUrl: "https://api.example", apiKey: process.env.FORETELL_API_KEY! });
 * const trade = await foretell.trades.createAndWait({ marketId, outcomeIndex: 0, side: "buy", amount: "25.00" });
 * ```
 */
export class Foretell {
  readonly trades: Trades;
  readonly quotes: Quotes;
  readonly markets: Markets;
  readonly portfolio: PortfolioResource;
  readonly redemptions: Redemptions;
  readonly keys: Keys;
  readonly events: Events;
  readonly webhooks: Webhooks;
  readonly #transport: Transport;

  constructor(options: Options) {
    const transport = new Transport(options);
    this.#transport = transport;
    this.trades = new Trades(transport);
    this.quotes = new Quotes(transport);
    this.markets = new Markets(transport);
    this.portfolio = new PortfolioResource(transport);
    this.redemptions = new Redemptions(transport);
    this.keys = new Keys(transport);
    this.events = new Events(transport);
    this.webhooks = new Webhooks(transport);
  }

  /** The state of the rate limit after the newest response of this client. */
  get rateLimit(): RateLimit | undefined {
    return this.#transport.rateLimit;
  }
}
