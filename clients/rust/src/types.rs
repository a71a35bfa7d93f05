//! The records of the API. Members can be added: [`crate::Response::json`] has those that this
//! version does not know.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::amounts::{Decimal, DecimalAmount, Usdc, Wad};
use crate::secret::Secret;

macro_rules! open_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(from = "String", into = "String")]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
            /// A word that this version does not know.
            Other(String),
        }

        impl $name {
            /// The word of the API.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)+
                    Self::Other(word) => word,
                }
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                match word {
                    $($text => Self::$variant,)+
                    other => Self::Other(other.to_owned()),
                }
            }
        }

        impl From<String> for $name {
            fn from(word: String) -> Self {
                Self::from(word.as_str())
            }
        }

        impl From<$name> for String {
            fn from(word: $name) -> Self {
                word.as_str().to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

open_enum! {
    /// Only for writes that failed: if anything was stored or sent.
    Submission {
        /// Nothing was stored: the request can be sent again.
        NotSubmitted = "not_submitted",
        /// The request was stored.
        Submitted = "submitted",
        /// The request may have been stored: repeat it only under the same name.
        Unknown = "unknown",
    }
}

open_enum! {
    /// The direction of a trade.
    Side {
        /// USDC for tokens.
        Buy = "buy",
        /// Tokens for USDC.
        Sell = "sell",
    }
}

open_enum! {
    /// The unit of a trade's `amount`.
    AmountType {
        /// Whole USDC: to spend on a buy, to receive on a sell.
        Usdc = "usdc",
        /// Whole tokens: to receive on a buy, to give on a sell.
        Tokens = "tokens",
        /// Everything that is held. Only for sells.
        All = "all",
    }
}

open_enum! {
    /// The status of a trade.
    TradeStatus {
        /// Held for its size until it is confirmed.
        PendingConfirmation = "pending_confirmation",
        /// Stored; its funds are reserved.
        Pending = "pending",
        /// Checked against the current state of the chain.
        Validating = "validating",
        /// Signed and sent, or about to be.
        Executing = "executing",
        /// Final: its transaction is never reverted.
        Completed = "completed",
        /// Final: not executed.
        Failed = "failed",
        /// Final: rejected before anything reached the chain.
        Rejected = "rejected",
    }
}

open_enum! {
    /// The status of a market.
    MarketStatus {
        /// Trading is possible.
        Open = "OPEN",
        /// Trading has stopped.
        Frozen = "FROZEN",
        /// The result is final.
        Resolved = "RESOLVED",
        /// Every position is refunded.
        Cancelled = "CANCELLED",
    }
}

open_enum! {
    /// The status of a claim.
    RedemptionStatus {
        /// Stored.
        Pending = "pending",
        /// Sent.
        Executing = "executing",
        /// Final: paid.
        Completed = "completed",
        /// Final: not paid. It can be claimed again.
        Failed = "failed",
    }
}

/// The state of the chain that a record describes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AsOf {
    /// The number of the block.
    pub block: u64,
    /// The time of the block.
    pub at: String,
}

/// An outcome of a market.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Outcome {
    /// The index, counted from 0.
    pub index: u32,
    /// The name.
    pub label: String,
    /// The probability that the market maker assigns.
    pub probability: Decimal,
    /// The price of a token in USDC.
    pub price: Decimal,
    /// The id of the token on chain.
    pub token_id: Option<String>,
    /// The tokens that exist.
    pub supply: Wad,
}

/// The result of a market.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Resolution {
    /// The outcome that won. `None` if several outcomes pay.
    pub outcome_index: Option<u32>,
    /// The payout of a token of each outcome.
    pub payouts: Vec<Wad>,
    /// The source of the result.
    pub source: Option<String>,
    /// The transaction that reported it.
    pub tx_hash: Option<String>,
}

/// A market.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Market {
    /// The id.
    pub id: String,
    /// The question that its outcomes answer.
    pub question: String,
    /// The text about the question.
    pub description: Option<String>,
    /// The status.
    pub status: MarketStatus,
    /// The outcomes with their prices.
    pub outcomes: Vec<Outcome>,
    /// The category.
    pub category: Option<String>,
    /// The tags.
    pub tags: Vec<String>,
    /// The thread that the market belongs to.
    pub thread_id: Option<String>,
    /// The organization that the market belongs to.
    pub organization_id: Option<String>,
    /// The partner that the market belongs to.
    pub partner_id: Option<String>,
    /// The chapter that the market belongs to.
    pub chapter_id: Option<String>,
    /// The volume in whole cents.
    pub total_volume: u64,
    /// The number of trades.
    pub trade_count: u64,
    /// The liquidity of the market maker.
    pub liquidity: Usdc,
    /// The fee in hundredths of a percent.
    pub fee_bps: u32,
    /// The chain.
    pub chain_id: u64,
    /// The contract.
    pub contract_address: String,
    /// The time at which the market was created.
    pub created_at: String,
    /// The time at which trading ends.
    pub end_time: String,
    /// The time at which trading was stopped.
    pub frozen_at: Option<String>,
    /// The time at which the result became final.
    pub resolved_at: Option<String>,
    /// The result.
    pub resolution: Option<Resolution>,
    /// The state of the chain that the prices belong to.
    pub as_of: AsOf,
}

/// A trade of a market on chain.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Prediction {
    /// The position on the chain.
    pub id: String,
    /// The market.
    pub market_id: String,
    /// The outcome.
    pub outcome_index: u32,
    /// The direction.
    pub side: Side,
    /// The USDC that moved.
    pub amount: Usdc,
    /// The tokens that moved.
    pub tokens: Wad,
    /// USDC per token.
    pub price: Option<Decimal>,
    /// The outcome's probability after the trade.
    pub probability_after: Option<Decimal>,
    /// The account.
    pub trader: String,
    /// The transaction.
    pub tx_hash: String,
    /// The time of the block.
    pub created_at: String,
}

/// The prices and the volume of an interval.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Candle {
    /// The beginning of the interval.
    pub start: String,
    /// The price after the first trade.
    pub open: Decimal,
    /// The highest price.
    pub high: Decimal,
    /// The lowest price.
    pub low: Decimal,
    /// The price after the last trade.
    pub close: Decimal,
    /// The volume, fees included.
    pub volume_usdc: Usdc,
    /// The tokens that moved.
    pub tokens: Wad,
    /// The number of trades.
    pub trades: u64,
}

/// The candles of an outcome.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct OutcomeHistory {
    /// The outcome.
    pub outcome_index: u32,
    /// Its name.
    pub label: String,
    /// The price at the beginning.
    pub opening_price: Decimal,
    /// The candles. An interval without a trade has none.
    pub candles: Vec<Candle>,
}

/// The state of a market maker.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Pool {
    /// The value of its cost function.
    pub cost: Wad,
    /// The tokens of each outcome.
    pub quantities: Vec<Wad>,
    /// The probability of each outcome.
    pub probabilities: Vec<Decimal>,
    /// The liquidity. Not in histories.
    pub liquidity: Option<Usdc>,
    /// The block. `None` before any trade.
    pub block: Option<u64>,
    /// The time. Only in histories.
    pub at: Option<String>,
}

/// The history of a market.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct MarketHistory {
    /// The market.
    pub market_id: String,
    /// The length of an interval.
    pub interval: String,
    /// The beginning.
    pub from: String,
    /// The end.
    pub to: String,
    /// The candles of each outcome.
    pub outcomes: Vec<OutcomeHistory>,
    /// The states of the market maker.
    pub pool: Vec<Pool>,
}

/// The amounts that a trade would move.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Quote {
    /// The market.
    pub market_id: String,
    /// The outcome.
    pub outcome_index: u32,
    /// The direction.
    pub action: Side,
    /// The amount that was asked for, in atomic units.
    pub amount: String,
    /// The tokens that move: received on a buy, given on a sell.
    pub tokens_out: Wad,
    /// Only buys: the USDC that the buy takes, fee included.
    pub usdc_in: Option<Usdc>,
    /// Only sells: the USDC that the sell brings, after the fee.
    pub usdc_out: Option<Usdc>,
    /// The fee.
    pub fee: Usdc,
    /// USDC per token.
    pub effective_price: Option<Decimal>,
    /// The price before the trade.
    pub price_before: Decimal,
    /// The price after the trade.
    pub price_after: Decimal,
    /// The change of the price, relative to the price before.
    pub price_impact: Option<Decimal>,
    /// What to know before the trade, such as that it cannot gain. Earlier releases send none.
    #[serde(default)]
    pub warnings: Vec<TradeWarning>,
    /// The state of the market maker before the trade.
    pub pool: Pool,
    /// The state of the market maker after the trade.
    pub pool_after: Pool,
    /// Until when a cache may store the answer. It reserves no price.
    pub expires_at: String,
    /// The state of the chain that the quote belongs to.
    pub as_of: AsOf,
}

/// A status that a trade had.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StatusChange {
    /// The status.
    pub status: TradeStatus,
    /// The time at which it began.
    pub at: String,
}

/// The block that executed a trade.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TradeChain {
    /// The chain.
    pub chain_id: u64,
    /// The number of the block.
    pub block_number: u64,
    /// The number of blocks that confirm it, its own included.
    pub confirmations: u64,
}

/// The confirmation that releases a held trade.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Confirmation {
    /// The token for [`crate::Trades::confirm`].
    pub token: Secret,
    /// The time at which the trade fails if it is not confirmed.
    pub expires_at: String,
}

/// The page on which the account's owner confirms a held trade.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ConfirmationPage {
    /// The page.
    pub url: String,
    /// The time at which the trade fails if it is not confirmed.
    pub expires_at: String,
}

/// A trade.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Trade {
    /// The id.
    pub id: String,
    /// The status.
    pub status: TradeStatus,
    /// The id of the trace.
    pub correlation_id: String,
    /// The time at which the trade was created.
    pub created_at: String,
    /// The time at which the trade changed.
    pub updated_at: String,
    /// The time at which the trade completed.
    pub completed_at: Option<String>,
    /// The time at which the trade failed or was rejected.
    pub failed_at: Option<String>,
    /// The market.
    pub market_id: String,
    /// The outcome.
    pub outcome_index: u32,
    /// The amount as it was sent.
    pub amount: Option<String>,
    /// The unit of the amount.
    pub amount_type: AmountType,
    /// The direction.
    pub side: Side,
    /// The bound of the price, in hundredths of a percent.
    pub max_slippage_bps: Option<u32>,
    /// The caller's own strings.
    pub metadata: BTreeMap<String, String>,
    /// The caller's own id.
    pub client_request_id: Option<String>,
    /// The transaction.
    pub tx_hash: Option<String>,
    /// The tokens that moved: received on a buy, given on a sell.
    pub tokens_out: Option<Wad>,
    /// The USDC that moved: paid on a buy, received on a sell.
    pub usdc_amount: Option<Usdc>,
    /// The fee.
    pub fee: Option<Usdc>,
    /// USDC per token.
    pub effective_price: Option<Decimal>,
    /// The code of the reason why the trade was not executed.
    pub error_code: Option<String>,
    /// The reason why the trade was not executed, for people.
    pub error_message: Option<String>,
    /// The time at which each status began.
    #[serde(default)]
    pub status_history: Vec<StatusChange>,
    /// The block that executed it.
    pub chain: Option<TradeChain>,
    /// `recovered` if the trade was written again from the chain.
    pub origin: Option<String>,
    /// Only when a held trade is created.
    pub confirmation: Option<Confirmation>,
    /// Instead of `confirmation`, if the key is an agent's.
    pub confirmation_page: Option<ConfirmationPage>,
}

impl Trade {
    /// Returns true if the trade is completed, failed or rejected. An unknown status is not final.
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        self.completed_at.is_some() || self.failed_at.is_some()
    }
}

/// Something to know before a trade, which is accepted all the same.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TradeWarning {
    /// The kind, such as `cannot_gain`.
    pub code: String,
    /// An explanation for people, with the figures.
    pub message: String,
}

/// The amounts that the trade of a dry run would move.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DryRunQuote {
    /// The tokens that would move.
    pub tokens_out: Wad,
    /// The USDC that would move.
    pub usdc_amount: Usdc,
    /// The fee.
    pub fee: Usdc,
    /// USDC per token.
    pub effective_price: Option<Decimal>,
    /// The most USDC that the trade could take.
    pub reserved_usdc: Usdc,
}

/// The result of a dry run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DryRun {
    /// The market.
    pub market_id: String,
    /// The outcome.
    pub outcome_index: u32,
    /// The direction.
    pub side: Side,
    /// The amount as it was sent.
    pub amount: Option<String>,
    /// The unit of the amount.
    pub amount_type: AmountType,
    /// The bound of the price, in hundredths of a percent.
    pub max_slippage_bps: Option<u32>,
    /// True if the trade would be held.
    pub requires_confirmation: bool,
    /// The amounts that would move.
    pub quote: DryRunQuote,
    /// What to know before the trade, such as that it cannot gain. Earlier releases send none.
    #[serde(default)]
    pub warnings: Vec<TradeWarning>,
}

/// A step of a trade.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TraceEvent {
    /// The number, without gaps.
    pub seq: u32,
    /// The part of the service.
    pub stage: String,
    /// The step.
    pub r#type: String,
    /// The time of the step.
    pub at: String,
    /// The time since the step before.
    pub duration_ms: i64,
    /// The status of the trade from this step on.
    pub status: TradeStatus,
    /// Further members.
    pub attributes: Map<String, Value>,
}

/// The steps of a trade.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Trace {
    /// The id of the trace.
    pub correlation_id: String,
    /// The trade.
    pub trade_id: String,
    /// The status of the trade.
    pub status: TradeStatus,
    /// The time at which the trade was created.
    pub started_at: String,
    /// The time at which the trade ended.
    pub ended_at: Option<String>,
    /// The steps.
    pub events: Vec<TraceEvent>,
}

/// The caps of a delegation on chain.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DelegationCaps {
    /// The most USDC of one trade.
    pub per_trade_usdc: Usdc,
    /// The most USDC of 24 hours.
    pub daily_usdc: Usdc,
}

/// The permission of a key on chain.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Delegation {
    /// True if the key can trade.
    pub enabled: bool,
    /// The time at which the permission ends.
    pub expires_at: Option<String>,
    /// The caps.
    pub caps: DelegationCaps,
}

/// The balance of an account, and the totals of its positions.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Portfolio {
    /// The account.
    pub address: String,
    /// The chain.
    pub chain_id: u64,
    /// The USDC on chain.
    pub usdc_balance: Usdc,
    /// The USDC of buys that have not ended.
    pub reserved_usdc: Usdc,
    /// The rest of the balance.
    pub available_usdc: Usdc,
    /// The value of the tokens.
    pub positions_value: Usdc,
    /// The value of the tokens and the balance.
    pub total_value: Usdc,
    /// The cost of the held tokens.
    pub cost_basis: Usdc,
    /// The value of the tokens minus their cost.
    pub unrealized_pnl: Usdc,
    /// The profit of what was sold or paid out.
    pub realized_pnl: Usdc,
    /// All fees.
    pub fees_paid: Usdc,
    /// The number of positions with tokens.
    pub open_positions: u64,
    /// The amount that can be claimed.
    pub claimable_usdc: Usdc,
    /// The permission of the calling key.
    pub delegation: Delegation,
    /// The state of the chain that the numbers describe.
    pub as_of: AsOf,
}

/// The tokens of one outcome that an account holds or has traded.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Position {
    /// The market.
    pub market_id: String,
    /// Its question.
    pub question: String,
    /// Its status.
    pub market_status: MarketStatus,
    /// The outcome.
    pub outcome_index: u32,
    /// Its name.
    pub outcome_label: String,
    /// The tokens.
    pub tokens: Wad,
    /// The cost of a token.
    pub avg_price: Option<Decimal>,
    /// The cost of the held tokens.
    pub cost_basis: Usdc,
    /// The price of a token.
    pub current_price: Decimal,
    /// The value of the tokens.
    pub value: Usdc,
    /// The value minus the cost.
    pub unrealized_pnl: Usdc,
    /// The profit of what was sold or paid out.
    pub realized_pnl: Usdc,
    /// All fees.
    pub fees_paid: Usdc,
    /// True if the position can be claimed.
    pub claimable: bool,
    /// The amount that a claim would pay.
    pub claimable_usdc: Usdc,
    /// The time at which the position changed.
    pub updated_at: String,
}

/// The claim of a position.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Redemption {
    /// The id.
    pub id: String,
    /// The market.
    pub market_id: String,
    /// The outcome.
    pub outcome_index: u32,
    /// The status.
    pub status: RedemptionStatus,
    /// The expected payment, or the actual one after it was made.
    pub amount: Usdc,
    /// The tokens that are given.
    pub tokens: Wad,
    /// The transaction.
    pub tx_hash: Option<String>,
    /// The id of the trace.
    pub correlation_id: String,
    /// The code of the reason why the claim failed.
    pub error_code: Option<String>,
    /// The reason why the claim failed, for people.
    pub error_message: Option<String>,
    /// The time at which the claim was made.
    pub created_at: String,
    /// The time at which the claim was paid.
    pub completed_at: Option<String>,
}

/// The limits of a key.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct KeyLimits {
    /// Requests per minute.
    pub requests_per_minute: u32,
    /// The most USDC of 24 hours.
    pub daily_spend_usdc: Usdc,
    /// The most USDC of one trade.
    pub per_trade_usdc: Usdc,
    /// Trades from here on are held for their confirmation.
    pub high_value_threshold_usdc: Option<Usdc>,
}

/// The spending of a key.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct KeySpend {
    /// The USDC of the last 24 hours.
    #[serde(rename = "last24hUsdc")]
    pub last_24h_usdc: Usdc,
    /// The rest of the cap.
    pub remaining_usdc: Usdc,
}

/// The calling key.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Key {
    /// The id.
    pub id: String,
    /// The name.
    pub name: String,
    /// `live` or `test`.
    pub environment: String,
    /// The tier.
    pub tier: String,
    /// The scopes.
    pub scopes: Vec<String>,
    /// The limits.
    pub limits: KeyLimits,
    /// The spending of the key.
    pub spend: KeySpend,
    /// True if trading is stopped.
    pub paused: bool,
    /// The networks that may use the key. Empty: all.
    pub ip_allowlist: Vec<String>,
    /// The address to which webhooks are sent.
    pub webhook_url: Option<String>,
    /// The version of the API that the key is pinned to.
    pub api_version: Option<String>,
    /// The time at which the key expires.
    pub expires_at: Option<String>,
    /// The time at which the key was issued.
    pub created_at: String,
}

/// A step that is missing before a key can trade.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NextStep {
    /// The code.
    pub code: String,
    /// The action to take.
    pub detail: String,
}

/// Reports if the calling key can trade. [`crate::Response::json`] has the details.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AccountReadiness {
    /// True if the key can trade.
    pub ready: bool,
    /// The steps that are missing.
    pub next_steps: Vec<NextStep>,
}

/// The usage of the calling key. [`crate::Response::json`] has the counters of each window.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Usage {
    /// The key.
    pub api_key_id: String,
    /// The limits.
    pub limits: KeyLimits,
    /// The spending of the key.
    pub spend: KeySpend,
    /// The last request.
    pub last_used_at: Option<String>,
}

/// A key whose trading is stopped.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Pause {
    /// The key.
    pub api_key_id: String,
    /// True.
    pub paused: bool,
    /// Since when.
    pub paused_at: String,
}

/// The new secret of a webhook.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct WebhookSecret {
    /// The secret. It is shown once.
    pub secret: Secret,
    /// The time at which it was made.
    pub rotated_at: String,
    /// Until when deliveries are also signed with the secret before.
    pub previous_secret_expires_at: String,
}

/// The progress of a delivery.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DeliveryProgress {
    /// The number of attempts.
    pub attempts: u32,
    /// The last attempt.
    pub last_attempted_at: Option<String>,
    /// The last attempt that was accepted.
    pub last_delivered_at: Option<String>,
    /// The code of the reason why the last attempt failed.
    pub last_failure_code: Option<String>,
    /// The status that the receiver answered.
    pub last_status_code: Option<u32>,
    /// The reason why the last attempt failed, for people.
    pub last_error_message: Option<String>,
    /// The time at which no further attempt was left.
    pub terminal_failure_at: Option<String>,
}

/// The delivery of an event to a webhook.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct WebhookDelivery {
    /// The id of the event.
    pub id: String,
    /// The type of the event.
    pub event_type: String,
    /// The status of the delivery.
    pub status: String,
    /// The key.
    pub api_key_id: String,
    /// The trade of the event.
    pub trade_request_id: Option<String>,
    /// The time at which the event happened.
    pub emitted_at: String,
    /// The number of times the event was sent again on request.
    pub replay_count: u32,
    /// The attempts.
    pub delivery: DeliveryProgress,
}

/// A sender that stops for a while after failures.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct WebhookBreaker {
    /// `closed`, `open` or `half_open`.
    pub state: String,
    /// The time at which it tries again.
    pub open_until: Option<String>,
}

/// The events that wait for their delivery.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct WebhookQueue {
    /// The number of events that wait.
    pub waiting: u64,
    /// The number of events that wait behind the first one.
    pub behind_head: u64,
}

/// The state of a receiver.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct WebhookEndpoint {
    /// The key.
    pub api_key_id: String,
    /// The address to which events are sent.
    pub url: Option<String>,
    /// The breaker.
    pub breaker: WebhookBreaker,
    /// The queue.
    pub queue: WebhookQueue,
}

/// An event that was queued for a delivery.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct QueuedEvent {
    /// The id of the event.
    pub id: String,
    /// The type of the event.
    pub event_type: String,
    /// The key.
    pub api_key_id: String,
    /// The time at which the event happened.
    pub emitted_at: String,
}

/// The data of an event. Which members there are depends on the type.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EventData {
    /// The trade.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trade_id: Option<String>,
    /// The market.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub market_id: Option<String>,
    /// The status of the trade.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// All other members.
    #[serde(flatten)]
    pub members: Map<String, Value>,
}

/// An event, as webhooks deliver it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct WebhookEvent {
    /// The id. The same event can be delivered more than once.
    pub id: String,
    /// The type. New ones can be added.
    pub r#type: String,
    /// The version of the event's form.
    pub api_version: String,
    /// The time at which the event happened.
    pub created_at: String,
    /// The data.
    pub data: EventData,
    /// All other members.
    #[serde(flatten)]
    pub members: Map<String, Value>,
}

/// An event of the feed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FeedEvent {
    /// The number within the feed's generation, without gaps.
    pub sequence: u64,
    /// The key that caused the event.
    pub api_key_id: Option<String>,
    /// The id. After a restore of the service's data it can be in the feed again.
    pub id: String,
    /// The type. New ones can be added.
    pub r#type: String,
    /// The version of the event's form.
    pub api_version: String,
    /// The time at which the event happened.
    pub created_at: String,
    /// The data.
    pub data: EventData,
    /// All other members.
    #[serde(flatten)]
    pub members: Map<String, Value>,
}

/// A new trade.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewTrade {
    pub(crate) market_id: String,
    pub(crate) outcome_index: u32,
    pub(crate) side: Side,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) amount: Option<DecimalAmount>,
    #[serde(skip_serializing_if = "Option::is_none")]
    amount_type: Option<AmountType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_tokens_out: Option<Wad>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens_in: Option<Wad>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_slippage_bps: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metadata: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) client_request_id: Option<String>,
    #[serde(skip)]
    pub(crate) idempotency_key: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) dry_run: bool,
}

impl NewTrade {
    fn new(
        market_id: impl Into<String>,
        outcome_index: u32,
        side: Side,
        amount: Option<DecimalAmount>,
    ) -> Self {
        Self {
            market_id: market_id.into(),
            outcome_index,
            side,
            amount,
            amount_type: None,
            min_tokens_out: None,
            max_tokens_in: None,
            max_slippage_bps: None,
            deadline: None,
            metadata: BTreeMap::new(),
            client_request_id: None,
            idempotency_key: None,
            dry_run: false,
        }
    }

    /// A buy for `amount` USDC, fee included.
    pub fn buy(market_id: impl Into<String>, outcome_index: u32, amount: impl Into<DecimalAmount>) -> Self {
        Self::new(market_id, outcome_index, Side::Buy, Some(amount.into()))
    }

    /// A sell that brings `amount` USDC, after the fee.
    pub fn sell(market_id: impl Into<String>, outcome_index: u32, amount: impl Into<DecimalAmount>) -> Self {
        Self::new(market_id, outcome_index, Side::Sell, Some(amount.into()))
    }

    /// A sell of everything that is held.
    pub fn sell_all(market_id: impl Into<String>, outcome_index: u32) -> Self {
        let amount_type = Some(AmountType::All);
        Self { amount_type, ..Self::new(market_id, outcome_index, Side::Sell, None) }
    }

    /// The amount is in tokens: to receive on a buy, to give on a sell.
    #[must_use]
    pub fn in_tokens(self) -> Self {
        Self { amount_type: Some(AmountType::Tokens), ..self }
    }

    /// The fewest tokens that a buy accepts.
    #[must_use]
    pub fn min_tokens_out(self, tokens: Wad) -> Self {
        Self { min_tokens_out: Some(tokens), ..self }
    }

    /// The most tokens that a sell gives.
    #[must_use]
    pub fn max_tokens_in(self, tokens: Wad) -> Self {
        Self { max_tokens_in: Some(tokens), ..self }
    }

    /// The most that the price may be worse than the quote, in hundredths of a percent.
    #[must_use]
    pub fn max_slippage_bps(self, bps: u32) -> Self {
        Self { max_slippage_bps: Some(bps), ..self }
    }

    /// The trade is not executed after this time, in the form of RFC 3339.
    #[must_use]
    pub fn deadline(self, at: impl Into<String>) -> Self {
        Self { deadline: Some(at.into()), ..self }
    }

    /// A string of your own, which is returned with the trade.
    #[must_use]
    pub fn metadata(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.insert(name.into(), value.into());
        self
    }

    /// Your own id, 1 to 128 of `A-Za-z0-9_-:.`. The same id never creates a second trade.
    #[must_use]
    pub fn client_request_id(self, id: impl Into<String>) -> Self {
        Self { client_request_id: Some(id.into()), ..self }
    }

    /// The name of the request, 1 to 255 of `A-Za-z0-9_-:.`. The same name never creates a second
    /// trade for 24 hours. Default: the `clientRequestId`, or else a new UUID.
    #[must_use]
    pub fn idempotency_key(self, key: impl Into<String>) -> Self {
        Self { idempotency_key: Some(key.into()), ..self }
    }
}

/// The parameters of a request. Members that are not set are not sent.
pub(crate) trait Query {
    fn pairs(&self) -> Vec<(&'static str, String)>;
}

macro_rules! query {
    ($(#[$doc:meta])* $name:ident { $($(#[$member_doc:meta])* $member:ident = $parameter:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Default)]
        pub struct $name {
            $($(#[$member_doc])* pub $member: Option<String>,)+
            /// The size of a page, 1 to 100.
            pub limit: Option<u32>,
        }

        impl Query for $name {
            fn pairs(&self) -> Vec<(&'static str, String)> {
                let limit = self.limit.map(|limit| limit.to_string());
                let pairs = [$(($parameter, self.$member.clone()),)+ ("limit", limit)];
                pairs.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
            }
        }
    };
}

query! {
    /// The markets to list.
    MarketQuery {
        /// Comma-separated: `OPEN`, `FROZEN`, `RESOLVED`, `CANCELLED`.
        status = "status",
        /// Only this category.
        category = "category",
        /// Only this thread.
        thread_id = "threadId",
        /// Only this organization.
        organization_id = "organizationId",
        /// Only this partner.
        partner_id = "partnerId",
        /// Text in the question.
        text = "q",
    }
}

query! {
    /// The trades on chain to list.
    PredictionQuery {
        /// Only this outcome.
        outcome_index = "outcomeIndex",
        /// `buy` or `sell`.
        side = "side",
    }
}

query! {
    /// The trades to list.
    TradeQuery {
        /// Comma-separated statuses.
        status = "status",
        /// Only this market.
        market_id = "marketId",
        /// Only trades with this id of the caller's.
        client_request_id = "clientRequestId",
    }
}

query! {
    /// The claims to list.
    RedemptionQuery {
        /// Comma-separated statuses.
        status = "status",
        /// Only this market.
        market_id = "marketId",
    }
}

query! {
    /// The deliveries to list.
    WebhookQuery {
        /// Only this status.
        status = "status",
        /// The start, inclusive.
        from = "from",
        /// The end, exclusive.
        to = "to",
    }
}

/// The part of a history to read.
#[derive(Debug, Clone, Default)]
pub struct HistoryQuery {
    /// `1m`, `5m`, `15m`, `1h`, `4h` or `1d`.
    pub interval: Option<String>,
    /// The start, inclusive.
    pub from: Option<String>,
    /// The end, exclusive.
    pub to: Option<String>,
    /// Only this outcome.
    pub outcome_index: Option<u32>,
}

impl Query for HistoryQuery {
    fn pairs(&self) -> Vec<(&'static str, String)> {
        let outcome = self.outcome_index.map(|index| index.to_string());
        let pairs = [
            ("interval", self.interval.clone()),
            ("from", self.from.clone()),
            ("to", self.to.clone()),
            ("outcomeIndex", outcome),
        ];
        pairs.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

/// A trade to quote.
#[derive(Debug, Clone)]
pub struct NewQuote {
    outcome_index: u32,
    action: Side,
    amount: String,
    block: Option<u64>,
}

impl NewQuote {
    /// A buy for this USDC, fee included.
    #[must_use]
    pub fn buy(outcome_index: u32, usdc: &Usdc) -> Self {
        Self { outcome_index, action: Side::Buy, amount: usdc.to_atomic(), block: None }
    }

    /// A sell of these tokens.
    #[must_use]
    pub fn sell(outcome_index: u32, tokens: &Wad) -> Self {
        Self { outcome_index, action: Side::Sell, amount: tokens.to_atomic(), block: None }
    }

    /// The quote is computed from the state after this block.
    #[must_use]
    pub fn at_block(self, block: u64) -> Self {
        Self { block: Some(block), ..self }
    }
}

impl Query for NewQuote {
    fn pairs(&self) -> Vec<(&'static str, String)> {
        let mut pairs = vec![
            ("outcomeIndex", self.outcome_index.to_string()),
            ("action", self.action.to_string()),
            ("amount", self.amount.clone()),
        ];
        pairs.extend(self.block.map(|block| ("block", block.to_string())));
        pairs
    }
}
