//! Maps revert data to typed reasons, using one table of selectors and messages.

use std::fmt;
use std::str::FromStr;

use alloy::sol_types::{Panic, Revert as RevertString, SolError};
use serde::{Deserialize, Serialize};

use crate::bindings::token::Token;
use crate::bindings::{Account, AccountFactory, Authority, Gate, MarketHub};

/// The reason of a revert. The names of `as_str` are stable, because the database stores them with
/// trades.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Revert {
    /// The market does not exist.
    MarketUnknown,
    /// The market is only listed, frozen, past its close time, resolved or cancelled.
    MarketNotTradeable,
    /// A market with this reference exists.
    MarketExists,
    /// The market does not have this outcome.
    OutcomeInvalid,
    /// The market's terms are out of bounds.
    TermsInvalid,
    /// The account's USDC balance is lower than the trade's cost.
    InsufficientBalance,
    /// The account's token balance is lower than the amount to sell.
    InsufficientPosition,
    /// The Gate's USDC allowance is lower than the trade's cost.
    AllowanceMissing,
    /// The key does not have a policy, or its policy was revoked.
    PolicyMissing,
    PolicyExpired,
    /// The policy cannot be stored: a cap or nonce is out of range.
    PolicyInvalid,
    /// The trade exceeds the key's cap for one trade.
    PerTradeCapExceeded,
    /// The trade exceeds the rest of the key's daily cap.
    DailyCapExceeded,
    /// The sale exceeds the key's cap on the face value of one sale.
    SalePerTradeCapExceeded,
    /// The sale exceeds the rest of the key's daily cap on the face value of sales.
    SaleDailyCapExceeded,
    /// A sale of the whole balance would give more tokens than its bound.
    SaleBoundExceeded,
    /// The price moved past the trade's bound.
    SlippageExceeded,
    /// The market maker cannot pay that much.
    LiquidityInsufficient,
    /// The block's time is after the deadline of the intent or the signed batch.
    DeadlinePassed,
    /// The trade exceeds the rest of the executor's hourly volume cap.
    HourlyVolumeExceeded,
    /// The trade would move nothing.
    AmountZero,
    /// The amount exceeds the range of the market maker's arithmetic.
    AmountTooLarge,
    /// The issuer of USDC has paused it.
    TokenPaused,
    /// The issuer of USDC blocks one of the two parties.
    Blacklisted,
    /// The Gate is paused.
    Paused,
    NothingToRedeem,
    /// The market's current status does not allow the transition.
    TransitionInvalid,
    /// The payouts do not match the market's outcomes, or do not sum to exactly one.
    PayoutsInvalid,
    /// The veto window of the proposal is still open.
    VetoWindowOpen,
    /// The market has not been frozen long enough to be cancelled.
    FrozenTooBriefly,
    /// The deadline for the market's result has passed.
    ResultTooLate,
    /// The guardian has used all vetoes of late cancels of the market.
    VetoesUsedUp,
    /// The id is not the token id of an outcome.
    TokenUnknown,
    /// The caller lacks the required role.
    NotAuthorized,
    /// The signature is not a current owner's signature of this batch.
    SignatureInvalid,
    /// The intent's nonce is not below 2^28.
    NonceTooLarge,
    /// The owner is neither an address nor a point of P-256.
    OwnerInvalid,
    /// The new owner already is an owner.
    OwnerExists,
    /// The owner to remove is not an owner.
    OwnerUnknown,
    /// Removing the owner would leave the account without one.
    LastOwner,
    /// The account has the maximum number of owners.
    OwnerLimitReached,
    /// The transaction's gas limit is too low for its intents.
    GasTooLow,
    /// The batch has more intents than one transaction may have.
    BatchTooLarge,
    /// There is no such proposal of a role or an executor, or its proposer is not the owner any
    /// more.
    NotProposed,
    /// The delay of the proposal is not over.
    DelayNotOver,
    /// The zero address cannot hold a role.
    AddressZero,
    /// The zero address cannot be an executor, and an executor's cap cannot be zero.
    ExecutorInvalid,
    /// The cap is not below the executor's present one.
    CapNotLower,
    /// The Gate has as many executors as it can have.
    TooManyExecutors,
    /// Any other reason: the text of a `revert("…")`, `panic 0x11`, or the data in hex, which may
    /// be empty.
    Other(String),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no revert has this name")]
pub struct ParseRevertError;

/// A reason with its stored name, and the custom errors and `revert` strings (of Circle's USDC)
/// that map to it.
struct Row {
    revert: Revert,
    name: &'static str,
    selectors: &'static [[u8; 4]],
    texts: &'static [&'static str],
}

const fn row(
    revert: Revert,
    name: &'static str,
    selectors: &'static [[u8; 4]],
    texts: &'static [&'static str],
) -> Row {
    Row { revert, name, selectors, texts }
}

const TABLE: &[Row] = &[
    row(Revert::MarketUnknown, "marketUnknown", &[MarketHub::MarketUnknown::SELECTOR], &[]),
    row(Revert::MarketNotTradeable, "marketNotTradeable", &[MarketHub::MarketNotTradeable::SELECTOR], &[]),
    row(Revert::MarketExists, "marketExists", &[MarketHub::MarketExists::SELECTOR], &[]),
    row(Revert::OutcomeInvalid, "outcomeInvalid", &[MarketHub::OutcomeInvalid::SELECTOR], &[]),
    row(Revert::TermsInvalid, "termsInvalid", &[MarketHub::TermsInvalid::SELECTOR], &[]),
    row(
        Revert::InsufficientBalance,
        "insufficientBalance",
        &[Token::ERC20InsufficientBalance::SELECTOR, Token::InsufficientBalance::SELECTOR],
        &["ERC20: transfer amount exceeds balance"],
    ),
    row(
        Revert::InsufficientPosition,
        "insufficientPosition",
        &[MarketHub::PositionInsufficient::SELECTOR],
        &[],
    ),
    row(
        Revert::AllowanceMissing,
        "allowanceMissing",
        &[Token::ERC20InsufficientAllowance::SELECTOR, Token::InsufficientAllowance::SELECTOR],
        &["ERC20: transfer amount exceeds allowance"],
    ),
    row(Revert::PolicyMissing, "policyMissing", &[Gate::PolicyMissing::SELECTOR], &[]),
    row(Revert::PolicyExpired, "policyExpired", &[Gate::PolicyExpired::SELECTOR], &[]),
    row(Revert::PolicyInvalid, "policyInvalid", &[Gate::PolicyInvalid::SELECTOR], &[]),
    row(Revert::PerTradeCapExceeded, "perTradeCapExceeded", &[Gate::PerTradeCapExceeded::SELECTOR], &[]),
    row(Revert::DailyCapExceeded, "dailyCapExceeded", &[Gate::DailyCapExceeded::SELECTOR], &[]),
    row(
        Revert::SalePerTradeCapExceeded,
        "salePerTradeCapExceeded",
        &[Gate::SalePerTradeCapExceeded::SELECTOR],
        &[],
    ),
    row(Revert::SaleDailyCapExceeded, "saleDailyCapExceeded", &[Gate::SaleDailyCapExceeded::SELECTOR], &[]),
    row(Revert::SaleBoundExceeded, "saleBoundExceeded", &[Gate::SaleBoundExceeded::SELECTOR], &[]),
    row(Revert::SlippageExceeded, "slippageExceeded", &[MarketHub::SlippageExceeded::SELECTOR], &[]),
    row(
        Revert::LiquidityInsufficient,
        "liquidityInsufficient",
        &[MarketHub::LiquidityInsufficient::SELECTOR],
        &[],
    ),
    row(
        Revert::DeadlinePassed,
        "deadlinePassed",
        &[Gate::DeadlinePassed::SELECTOR, Account::DeadlinePassed::SELECTOR],
        &[],
    ),
    row(Revert::HourlyVolumeExceeded, "hourlyVolumeExceeded", &[Gate::HourlyVolumeExceeded::SELECTOR], &[]),
    row(Revert::AmountZero, "amountZero", &[MarketHub::AmountZero::SELECTOR], &[]),
    row(Revert::AmountTooLarge, "amountTooLarge", &[MarketHub::AmountTooLarge::SELECTOR], &[]),
    row(Revert::TokenPaused, "tokenPaused", &[Token::EnforcedPause::SELECTOR], &["Pausable: paused"]),
    row(Revert::Blacklisted, "blacklisted", &[], &["Blacklistable: account is blacklisted"]),
    row(Revert::Paused, "paused", &[Gate::IsPaused::SELECTOR], &[]),
    row(Revert::NothingToRedeem, "nothingToRedeem", &[MarketHub::NothingToRedeem::SELECTOR], &[]),
    row(Revert::TransitionInvalid, "transitionInvalid", &[MarketHub::TransitionInvalid::SELECTOR], &[]),
    row(Revert::PayoutsInvalid, "payoutsInvalid", &[MarketHub::PayoutsInvalid::SELECTOR], &[]),
    row(Revert::VetoWindowOpen, "vetoWindowOpen", &[MarketHub::VetoWindowOpen::SELECTOR], &[]),
    row(Revert::FrozenTooBriefly, "frozenTooBriefly", &[MarketHub::FrozenTooBriefly::SELECTOR], &[]),
    row(Revert::ResultTooLate, "resultTooLate", &[MarketHub::ResultTooLate::SELECTOR], &[]),
    row(Revert::VetoesUsedUp, "vetoesUsedUp", &[MarketHub::VetoesUsedUp::SELECTOR], &[]),
    row(Revert::TokenUnknown, "tokenUnknown", &[MarketHub::TokenUnknown::SELECTOR], &[]),
    row(
        Revert::NotAuthorized,
        "notAuthorized",
        &[MarketHub::NotAuthorized::SELECTOR, Gate::NotExecutor::SELECTOR],
        &[],
    ),
    row(Revert::SignatureInvalid, "signatureInvalid", &[Account::SignatureInvalid::SELECTOR], &[]),
    row(Revert::NonceTooLarge, "nonceTooLarge", &[Gate::NonceTooLarge::SELECTOR], &[]),
    row(Revert::OwnerInvalid, "ownerInvalid", &[AccountFactory::OwnerInvalid::SELECTOR], &[]),
    row(Revert::OwnerExists, "ownerExists", &[Account::OwnerExists::SELECTOR], &[]),
    row(Revert::OwnerUnknown, "ownerUnknown", &[Account::OwnerUnknown::SELECTOR], &[]),
    row(Revert::LastOwner, "lastOwner", &[Account::LastOwner::SELECTOR], &[]),
    row(Revert::OwnerLimitReached, "ownerLimitReached", &[Account::OwnerLimitReached::SELECTOR], &[]),
    row(Revert::GasTooLow, "gasTooLow", &[Gate::GasTooLow::SELECTOR], &[]),
    row(Revert::BatchTooLarge, "batchTooLarge", &[Gate::BatchTooLarge::SELECTOR], &[]),
    row(
        Revert::NotProposed,
        "notProposed",
        &[Authority::NotProposed::SELECTOR, Gate::NotProposed::SELECTOR],
        &[],
    ),
    row(Revert::DelayNotOver, "delayNotOver", &[Authority::DelayNotOver::SELECTOR], &[]),
    row(Revert::AddressZero, "addressZero", &[Authority::AddressZero::SELECTOR], &[]),
    row(Revert::ExecutorInvalid, "executorInvalid", &[Gate::ExecutorInvalid::SELECTOR], &[]),
    row(Revert::CapNotLower, "capNotLower", &[Gate::CapNotLower::SELECTOR], &[]),
    row(Revert::TooManyExecutors, "tooManyExecutors", &[Gate::TooManyExecutors::SELECTOR], &[]),
];

/// The prefix of the stored name of [`Revert::Other`].
const OTHER: &str = "other";

impl Revert {
    /// Decodes revert data. Only the selector of a custom error counts, so data that the Gate has
    /// cut off at 256 bytes decodes too.
    pub fn from_data(data: &[u8]) -> Self {
        let Some((selector, _)) = data.split_first_chunk::<4>() else { return Self::unread(data) };
        if let Some(row) = TABLE.iter().find(|row| row.selectors.contains(selector)) {
            return row.revert.clone();
        }
        // Circle's USDC reverts with strings instead of custom errors.
        if *selector == RevertString::SELECTOR {
            return RevertString::abi_decode(data)
                .map_or_else(|_| Self::unread(data), |it| Self::of_text(&it.reason));
        }
        match Panic::abi_decode(data) {
            Ok(panic) => Self::Other(format!("panic 0x{:x}", panic.code)),
            Err(_) => Self::unread(data),
        }
    }

    /// Returns the stable name; `other` for [`Revert::Other`]. Only `Display` and `FromStr`
    /// preserve its text.
    pub fn as_str(&self) -> &'static str {
        TABLE.iter().find(|row| row.revert == *self).map_or(OTHER, |row| row.name)
    }

    fn of_text(text: &str) -> Self {
        let row = TABLE.iter().find(|row| row.texts.contains(&text));
        row.map_or_else(|| Self::Other(text.to_owned()), |row| row.revert.clone())
    }

    fn unread(data: &[u8]) -> Self {
        Self::Other(format!("0x{}", hex::encode(data)))
    }
}

impl fmt::Display for Revert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other(text) => write!(f, "{OTHER}:{text}"),
            named => f.write_str(named.as_str()),
        }
    }
}

impl FromStr for Revert {
    type Err = ParseRevertError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        if let Some(text) = name.strip_prefix(OTHER).and_then(|rest| rest.strip_prefix(':')) {
            return Ok(Self::Other(text.to_owned()));
        }
        let row = TABLE.iter().find(|row| row.name == name);
        row.map(|row| row.revert.clone()).ok_or(ParseRevertError)
    }
}

impl Serialize for Revert {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Revert {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::{Address, U256};

    use super::*;

    #[test]
    fn every_revert_name_round_trips() {
        let other = Revert::Other("panic 0x11".to_owned());
        for revert in TABLE.iter().map(|row| &row.revert).chain([&other]) {
            assert_eq!(revert.to_string().parse().as_ref(), Ok(revert));
        }
        assert_eq!("unheard of".parse::<Revert>(), Err(ParseRevertError));
    }

    #[test]
    fn every_selector_and_text_has_one_meaning() {
        for (at, row) in TABLE.iter().enumerate() {
            for later in &TABLE[at + 1..] {
                assert_ne!(row.name, later.name);
                assert!(
                    row.selectors.iter().all(|selector| !later.selectors.contains(selector)),
                    "{}",
                    row.name
                );
                assert!(row.texts.iter().all(|text| !later.texts.contains(text)), "{}", row.name);
            }
        }
    }

    #[test]
    fn circle_strings_and_openzeppelin_errors_map_to_one_revert() {
        let custom = Token::ERC20InsufficientBalance {
            sender: Address::ZERO,
            balance: U256::ZERO,
            needed: U256::from(1),
        };
        let text = RevertString::from("ERC20: transfer amount exceeds balance");
        for data in [custom.abi_encode(), text.abi_encode()] {
            assert_eq!(Revert::from_data(&data), Revert::InsufficientBalance);
        }
    }

    #[test]
    fn an_unknown_revert_keeps_its_data() {
        let shown = |data: &[u8]| Revert::from_data(data).to_string();
        assert_eq!(shown(&[]), "other:0x");
        assert_eq!(shown(&[1, 2, 3, 4, 5]), "other:0x0102030405");
        assert_eq!(shown(&RevertString::from("why not").abi_encode()), "other:why not");
        assert_eq!(shown(&Panic { code: U256::from(0x11) }.abi_encode()), "other:panic 0x11");
    }
}
