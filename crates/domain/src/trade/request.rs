//! Validates a trade request field by field, and computes the fingerprint that idempotency
//! compares.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::Timestamp;
use crate::field_error::{FieldError, segment};
use crate::money::{MAX_TRADE, Usdc, Wad};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// USDC for tokens.
    Buy,
    /// Tokens for USDC.
    Sell,
}

impl Side {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Buy => "buy",
            Self::Sell => "sell",
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be buy or sell")]
pub struct UnknownSide;

impl FromStr for Side {
    type Err = UnknownSide;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::Buy, Self::Sell].into_iter().find(|side| side.as_str() == text).ok_or(UnknownSide)
    }
}

/// The unit of `amount`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AmountType {
    /// Whole USDC: spent on a buy, received on a sale.
    #[default]
    Usdc,
    /// Whole outcome tokens: received on a buy, given on a sale.
    Tokens,
    /// The whole balance of the outcome. Only for sales.
    All,
}

impl AmountType {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Usdc => "usdc",
            Self::Tokens => "tokens",
            Self::All => "all",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be usdc, tokens or all")]
pub struct UnknownAmountType;

impl FromStr for AmountType {
    type Err = UnknownAmountType;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::Usdc, Self::Tokens, Self::All]
            .into_iter()
            .find(|t| t.as_str() == text)
            .ok_or(UnknownAmountType)
    }
}

/// The fields of a request as received, before validation.
#[derive(Debug, Clone, Default)]
pub struct Draft {
    /// Returned as sent. A malformed id is reported as an unknown market.
    pub market_id: Option<String>,
    /// Any integer. The range is checked against the market later.
    pub outcome_index: Option<i64>,
    /// Decimal text.
    pub amount: Option<String>,
    pub side: Option<String>,
    /// The caller's metadata, returned as sent.
    pub metadata: Option<BTreeMap<String, String>>,
    /// The caller's own id for the trade.
    pub client_request_id: Option<String>,
    /// WAD text. Only for buys.
    pub min_tokens_out: Option<String>,
    /// WAD text. Only for sales.
    pub max_tokens_in: Option<String>,
    /// 0 to 10,000.
    pub max_slippage_bps: Option<i64>,
    /// ISO 8601.
    pub deadline: Option<String>,
    pub amount_type: Option<String>,
}

/// A request whose fields all have the documented form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TradeRequest {
    pub market_id: String,
    pub outcome_index: i64,
    /// The amount as sent, for returning it. Empty for `amountType: all` without an amount.
    pub amount_text: String,
    /// The amount in millionths of the unit in `amount_type`; 0 for `all` without an amount.
    pub amount: Usdc,
    pub amount_type: AmountType,
    pub side: Side,
    pub metadata: BTreeMap<String, String>,
    pub client_request_id: Option<String>,
    /// The minimum number of tokens that a buy must receive.
    pub min_tokens_out: Option<Wad>,
    /// The maximum number of tokens that a sale may give.
    pub max_tokens_in: Option<Wad>,
    /// The maximum price change since the quote at acceptance, in hundredths of a percent.
    pub max_slippage_bps: Option<u16>,
    /// The time after which the trade must not execute.
    pub deadline: Option<Timestamp>,
}

/// The reason why a draft is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestRefusal {
    Fields(Vec<FieldError>),
    /// The amount exceeds the maximum of one trade.
    AmountTooLarge,
}

const MAX_METADATA_ENTRIES: usize = 50;
const MAX_METADATA_KEY: usize = 64;
const MAX_METADATA_VALUE: usize = 500;
const MAX_CLIENT_REQUEST_ID: usize = 128;

/// Returns true if `text` has 1 to 128 characters of `A-Z a-z 0-9 _ - : .`.
pub fn is_client_request_id(text: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b':' | b'.');
    (1..=MAX_CLIENT_REQUEST_ID).contains(&text.len()) && text.bytes().all(allowed)
}

impl TradeRequest {
    /// Validates all fields of `draft` and reports all faults together.
    pub fn new(draft: Draft) -> Result<Self, RequestRefusal> {
        let mut fields = Fields::default();
        let side = fields.required("/side", draft.side.as_deref(), "is required: buy or sell");
        let side = side.and_then(|text| fields.parsed("/side", text, "must be buy or sell"));
        let amount_type = match draft.amount_type.as_deref() {
            Some(text) => fields.parsed("/amountType", text, "must be usdc, tokens or all"),
            None => Some(AmountType::Usdc),
        };
        if side == Some(Side::Buy) && amount_type == Some(AmountType::All) {
            fields.wrong::<()>("/amountType", "must be usdc or tokens on a buy", "all");
        }
        let (amount_text, amount) = match (draft.amount, amount_type) {
            (None, Some(AmountType::All)) => (Some(String::new()), Some(Usdc::ZERO)),
            (text, _) => {
                let text =
                    fields.required("/amount", text, "is required: a decimal string such as \"25.00\"");
                let amount = text.as_deref().and_then(|text| fields.amount(text));
                (text, amount)
            }
        };
        let market_id = fields.required("/marketId", draft.market_id, "is required: the id of a market");
        let outcome_index =
            fields.required("/outcomeIndex", draft.outcome_index, "is required: an integer, 0 for the first");
        let metadata = draft.metadata.unwrap_or_default();
        fields.metadata(&metadata);
        if let Some(id) = draft.client_request_id.as_deref().filter(|id| !is_client_request_id(id)) {
            fields.wrong::<()>(
                "/clientRequestId",
                "must have 1 to 128 characters from A-Z a-z 0-9 _ - : and the full stop",
                id,
            );
        }
        let min_tokens_out = fields.bound("/minTokensOut", draft.min_tokens_out.as_deref(), side, Side::Buy);
        let max_tokens_in = fields.bound("/maxTokensIn", draft.max_tokens_in.as_deref(), side, Side::Sell);
        let max_slippage_bps = draft.max_slippage_bps.and_then(|bps| match u16::try_from(bps) {
            Ok(bps @ 0..=10_000) => Some(bps),
            _ => fields.wrong("/maxSlippageBps", "must be an integer from 0 to 10000", &bps.to_string()),
        });
        let deadline = draft.deadline.and_then(|text| {
            fields.parsed("/deadline", &text, "must be an ISO 8601 instant such as 2026-04-29T12:00:00Z")
        });

        match (market_id, outcome_index, amount_text, amount, amount_type, side) {
            (
                Some(market_id),
                Some(outcome_index),
                Some(amount_text),
                Some(amount),
                Some(amount_type),
                Some(side),
            ) if fields.errors.is_empty() => {
                // Checked last, because it has its own error code instead of a field error.
                if amount > MAX_TRADE {
                    return Err(RequestRefusal::AmountTooLarge);
                }
                let client_request_id = draft.client_request_id;
                Ok(Self {
                    market_id,
                    outcome_index,
                    amount_text,
                    amount,
                    amount_type,
                    side,
                    metadata,
                    client_request_id,
                    min_tokens_out,
                    max_tokens_in,
                    max_slippage_bps,
                    deadline,
                })
            }
            _ => Err(RequestRefusal::Fields(fields.errors)),
        }
    }

    /// Returns the SHA-256 that identifies equal requests. It covers the four core fields (the
    /// amount as a number), the sorted metadata, and the optional fields that are present. It
    /// excludes `clientRequestId`.
    pub fn fingerprint(&self) -> [u8; 32] {
        let mut identity = serde_json::json!({
            "marketId": self.market_id,
            "outcomeIndex": self.outcome_index,
            "amount": self.amount,
            "side": self.side,
            "metadata": self.metadata,
        });
        let mut add = |name: &str, value: Option<serde_json::Value>| {
            if let Some(value) = value {
                identity[name] = value;
            }
        };
        // `usdc` is the default, so it must equal an absent amountType.
        add("amountType", (self.amount_type != AmountType::Usdc).then(|| self.amount_type.as_str().into()));
        add("minTokensOut", self.min_tokens_out.map(|wad| wad.to_string().into()));
        add("maxTokensIn", self.max_tokens_in.map(|wad| wad.to_string().into()));
        add("maxSlippageBps", self.max_slippage_bps.map(Into::into));
        add("deadline", self.deadline.map(|at| at.ms().into()));
        Sha256::digest(identity.to_string().as_bytes()).into()
    }
}

#[derive(Default)]
struct Fields {
    errors: Vec<FieldError>,
}

impl Fields {
    fn wrong<T>(&mut self, pointer: &str, requirement: &str, got: &str) -> Option<T> {
        self.errors.push(FieldError::new(pointer, requirement).got(got));
        None
    }

    fn required<T>(&mut self, pointer: &str, value: Option<T>, detail: &str) -> Option<T> {
        if value.is_none() {
            self.errors.push(FieldError::new(pointer, detail));
        }
        value
    }

    fn parsed<T: FromStr>(&mut self, pointer: &str, text: &str, requirement: &str) -> Option<T> {
        text.parse().ok().or_else(|| self.wrong(pointer, requirement, text))
    }

    fn amount(&mut self, text: &str) -> Option<Usdc> {
        match text.parse() {
            Ok(Usdc::ZERO) => self.wrong("/amount", "must be above zero", text),
            Ok(amount) => Some(amount),
            Err(_) => self.wrong(
                "/amount",
                "must be a decimal string with at most 12 whole digits and at most 6 decimals",
                text,
            ),
        }
    }

    fn bound(
        &mut self,
        pointer: &str,
        text: Option<&str>,
        side: Option<Side>,
        belongs_to: Side,
    ) -> Option<Wad> {
        let text = text?;
        // An invalid side already has its own error.
        if side.is_some_and(|side| side != belongs_to) {
            return self.wrong(pointer, &format!("must only be sent with side {belongs_to}"), text);
        }
        match text.parse::<Wad>() {
            // The contracts use 128 bits for token amounts.
            Ok(wad) if wad.to_u128().is_some() => Some(wad),
            _ => self.wrong(pointer, "must be a decimal integer of WAD (18 decimals)", text),
        }
    }

    fn metadata(&mut self, metadata: &BTreeMap<String, String>) {
        if metadata.len() > MAX_METADATA_ENTRIES {
            let entries = format!("{} entries", metadata.len());
            self.wrong::<()>("/metadata", "must have at most 50 entries", &entries);
        }
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
        // The limit bounds the number of errors for an oversized map.
        for (key, value) in metadata.iter().take(MAX_METADATA_ENTRIES) {
            let pointer = format!("/metadata/{}", segment(key));
            if key.is_empty() || key.len() > MAX_METADATA_KEY || !key.bytes().all(allowed) {
                self.wrong::<()>(
                    "/metadata",
                    "must have keys of 1 to 64 characters from a-z A-Z 0-9 _ - and the full stop",
                    key,
                );
            } else if value.chars().count() > MAX_METADATA_VALUE {
                let characters = format!("{} characters", value.chars().count());
                self.wrong::<()>(&pointer, "must have at most 500 characters", &characters);
            } else if value.contains('\0') {
                self.wrong::<()>(&pointer, "must not contain NUL characters", value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft() -> Draft {
        Draft {
            market_id: Some("m".into()),
            outcome_index: Some(0),
            amount: Some("10".into()),
            side: Some("buy".into()),
            ..Draft::default()
        }
    }

    fn pointers(draft: Draft) -> Vec<String> {
        match TradeRequest::new(draft) {
            Err(RequestRefusal::Fields(errors)) => errors.into_iter().map(|error| error.pointer).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_missing_required_field_is_reported() {
        assert_eq!(pointers(Draft::default()), ["/side", "/amount", "/marketId", "/outcomeIndex"]);
    }

    #[test]
    fn spellings_of_one_amount_are_the_same_request() {
        let of = |amount: &str| TradeRequest::new(Draft { amount: Some(amount.into()), ..draft() }).unwrap();
        assert_eq!(of("10").fingerprint(), of("10.000000").fingerprint());
        assert_eq!(of("10.0").amount_text, "10.0");
        assert_ne!(of("10").fingerprint(), of("10.000001").fingerprint());
    }

    #[test]
    fn identity_includes_metadata_but_not_the_client_request_id() {
        let plain = TradeRequest::new(draft()).unwrap();
        let named = TradeRequest::new(Draft { client_request_id: Some("a".into()), ..draft() }).unwrap();
        assert_eq!(plain.fingerprint(), named.fingerprint());
        let tagged = Draft { metadata: Some(BTreeMap::from([("k".into(), "v".into())])), ..draft() };
        assert_ne!(plain.fingerprint(), TradeRequest::new(tagged).unwrap().fingerprint());
    }

    #[test]
    fn optional_fields_are_part_of_the_identity_only_when_present() {
        let plain = TradeRequest::new(draft()).unwrap().fingerprint();
        let explicit = Draft { amount_type: Some("usdc".into()), ..draft() };
        assert_eq!(plain, TradeRequest::new(explicit).unwrap().fingerprint());
        let bounded = Draft { max_slippage_bps: Some(0), ..draft() };
        assert_ne!(plain, TradeRequest::new(bounded).unwrap().fingerprint());
    }

    #[test]
    fn a_bound_of_the_other_side_is_rejected() {
        assert_eq!(pointers(Draft { max_tokens_in: Some("1".into()), ..draft() }), ["/maxTokensIn"]);
        assert_eq!(pointers(Draft { amount_type: Some("all".into()), ..draft() }), ["/amountType"]);
        assert_eq!(
            pointers(Draft { min_tokens_out: Some((u128::MAX).to_string() + "0"), ..draft() }),
            ["/minTokensOut"]
        );
    }

    #[test]
    fn an_empty_amount_is_rejected() {
        assert_eq!(pointers(Draft { amount: Some(String::new()), ..draft() }), ["/amount"]);
    }

    #[test]
    fn selling_everything_needs_no_amount() {
        let all =
            Draft { amount: None, amount_type: Some("all".into()), side: Some("sell".into()), ..draft() };
        assert_eq!(TradeRequest::new(all).unwrap().amount, Usdc::ZERO);
    }

    #[test]
    fn only_an_amount_above_ten_million_is_too_large() {
        let of = |amount: &str| TradeRequest::new(Draft { amount: Some(amount.into()), ..draft() });
        assert!(of("10000000").is_ok());
        assert_eq!(of("10000000.000001"), Err(RequestRefusal::AmountTooLarge));
    }

    #[test]
    fn metadata_is_bounded_in_entries_keys_and_values() {
        let with =
            |key: String, value: String| Draft { metadata: Some(BTreeMap::from([(key, value)])), ..draft() };
        assert!(TradeRequest::new(with("k".repeat(64), "é".repeat(500))).is_ok());
        assert_eq!(pointers(with("k".repeat(65), "v".into())), ["/metadata"]);
        assert_eq!(pointers(with("k!".into(), "v".into())), ["/metadata"]);
        assert_eq!(pointers(with("k".into(), "v".repeat(501))), ["/metadata/k"]);
        let many = (0..51).map(|n| (n.to_string(), String::new())).collect();
        assert_eq!(pointers(Draft { metadata: Some(many), ..draft() }), ["/metadata"]);
    }

    #[test]
    fn client_request_ids_accept_only_their_alphabet() {
        assert!(is_client_request_id("a-Z_0:9."));
        for id in ["", "a b", "é", &"x".repeat(129)] {
            assert!(!is_client_request_id(id), "{id}");
        }
    }
}
