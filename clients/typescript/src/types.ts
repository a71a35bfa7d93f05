/** The records of the API. They are derived from the OpenAPI document of the service. */
import type { operations } from "./generated.js";

type Json<Response> = Response extends { content: { "application/json": infer Body } } ? Body : never;
type Answer<Id extends keyof operations, Status extends number> = operations[Id]["responses"] extends {
  [Key in Status]: infer Response;
}
  ? Json<Response>
  : never;
type Item<Id extends keyof operations> = Answer<Id, 200> extends { data: readonly (infer Record)[] } ? Record : never;
type One<Id extends keyof operations, Status extends number = 200> = Answer<Id, Status> extends { data: infer Record } ? Record : never;
type Query<Id extends keyof operations> = NonNullable<operations[Id]["parameters"]["query"]>;
type Body<Id extends keyof operations> = operations[Id] extends { requestBody: { content: { "application/json": infer Sent } } } ? Sent : never;

export type Market = One<"getMarket">;
export type Quote = One<"getQuote">;
export type Prediction = Item<"listPredictions">;
export type MarketHistory = One<"getMarketHistory">;
export type Trade = One<"getTrade">;
/** A status of a trade, and when it began. */
export type StatusChange = Trade["statusHistory"][number];
export type Trace = One<"getTrace">;
export type Portfolio = One<"getPortfolio">;
export type Position = Item<"listPositions">;
export type Redemption = One<"getRedemption">;
export type Key = One<"getKey">;
export type Usage = One<"getUsage">;
export type AccountReadiness = One<"getAccountReadiness">;
export type Pause = One<"pauseKey">;
export type WebhookSecret = One<"rotateWebhookSecret">;
export type WebhookDelivery = One<"getWebhookEvent">;
export type WebhookEndpoint = One<"getWebhookEndpoint">;
export type QueuedEvent = One<"sendTestWebhook">;
/** A trade as it was created. A held trade has `confirmation` or, if an agent created it, `confirmationPage`. */
export type CreatedTrade = One<"createTrade", 201>;
/** The result of a dry run. */
export type DryRun = Extract<One<"createTrade", 200>, { dryRun: boolean }>;

export type MarketQuery = Query<"listMarkets">;
export type QuoteQuery = Query<"getQuote">;
export type HistoryQuery = Query<"getMarketHistory">;
export type PredictionQuery = Query<"listPredictions">;
export type TradeQuery = Query<"listTrades">;
export type RedemptionQuery = Query<"listRedemptions">;
export type WebhookQuery = Query<"listWebhookEvents">;
/** Event types. New ones can be added. */
export type EventType = Item<"listEvents">["type"] | (string & {});

/** An event as webhooks deliver it. */
export interface WebhookEvent {
  id: string;
  type: EventType;
  apiVersion: string;
  createdAt: string;
  /** Depends on the type; the guide lists the members. */
  data: EventData;
}

/** The data of an event. Members can be added; which ones there are depends on the type. */
export interface EventData {
  tradeId?: string;
  marketId?: string;
  outcomeIndex?: number;
  amount?: string | null;
  side?: string;
  status?: string;
  txHash?: string;
  tokensOut?: string;
  errorCode?: string;
  errorMessage?: string;
  correlationId?: string;
  metadata?: Record<string, string>;
  [member: string]: unknown;
}

/** An event of the feed. */
export interface FeedEvent extends WebhookEvent {
  /** The number within the feed's generation, without gaps. */
  sequence: number;
  /** The key that caused the event, or null. */
  apiKeyId: string | null;
}

/** A new trade. */
export interface NewTrade extends Omit<Body<"createTrade">, "amount" | "minTokensOut" | "maxTokensIn" | "deadline" | "dryRun"> {
  /** Whole units: a decimal string, or an exact amount. */
  amount?: string | { toString(): string };
  /** The fewest tokens that a buy accepts (WAD). */
  minTokensOut?: string | { readonly atomic: bigint };
  /** The most tokens that a sell gives (WAD). */
  maxTokensIn?: string | { readonly atomic: bigint };
  /** The trade is not executed after this time. */
  deadline?: string | Date;
}
