//! The meaning of revert data: one table from what the contracts say to what the service knows.

use std::fmt;
use std::str::FromStr;

use alloy::sol_types::{Panic, Revert as RevertString, SolError};
use serde::{Deserialize, Serialize};

use super::bindings::token::Token;
use super::bindings::{Account, AccountFactory, Gate, MarketHub};

/// Why the contracts refused. The names of `as_str` are stable: they are stored with trades.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Revert {
    /// There is no such market.
    MarketUnknown,
    /// The market is listed only, frozen, past its close time, resolved or cancelled.
    MarketNotTradeable,
    /// A market of that reference exists.
    MarketExists,
    /// The market has no such outcome.
    OutcomeInvalid,
    /// The market's terms are out of bounds.
    TermsInvalid,
    /// The account holds less USDC than the trade takes.
    InsufficientBalance,
    /// The account holds fewer tokens than the trade gives.
    InsufficientPosition,
    /// The account allows the Gate less USDC than the trade takes.
    AllowanceMissing,
    /// The account has no policy for the key, or it was revoked.
    PolicyMissing,
    /// The key's policy has expired.
    PolicyExpired,
    /// A policy that cannot be kept: a cap or nonce out of range.
    PolicyInvalid,
    /// The trade is above the key's cap on one trade.
    PerTradeCapExceeded,
    /// The trade is above what is left of the key's daily cap.
    DailyCapExceeded,
    /// The price moved past the trade's bound.
    SlippageExceeded,
    /// The curve cannot pay that much.
    LiquidityInsufficient,
    /// The block is later than the intent or the signed batch allows.
    DeadlinePassed,
    /// The Gate's volume of this hour is used up.
    HourlyVolumeExceeded,
    /// Nothing is bought or sold.
    AmountZero,
    /// The amount is beyond what the market maker computes.
    AmountTooLarge,
    /// USDC is paused by its issuer.
    TokenPaused,
    /// USDC's issuer blocks one of the two parties.
    Blacklisted,
    /// The Gate is paused by the guardian.
    Paused,
    /// The position pays nothing now.
    NothingToRedeem,
    /// The market cannot go from where it stands to there.
    TransitionInvalid,
    /// The payouts do not fit the market, or sum to more than one.
    PayoutsInvalid,
    /// The proposed resolution may still be vetoed.
    VetoWindowOpen,
    /// The caller has not the role for that.
    NotAuthorized,
    /// The signature is not the owner's.
    SignatureInvalid,
    /// The owner's batch is for another nonce.
    NonceInvalid,
    /// The intent's nonce is not below 2^28.
    NonceTooLarge,
    /// Neither an address nor a point of P-256.
    OwnerInvalid,
    /// The transaction has not gas enough for its intents.
    GasTooLow,
    /// More intents than fit into one transaction.
    BatchTooLarge,
    /// Anything else: the text of a `revert("…")`, `panic 0x11`, or the data in hex, which may be empty.
    Other(String),
}

/// The text names no revert.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no revert has this name")]
pub struct ParseRevertError;

/// A revert, the name it is stored under, the custom errors and the `revert` strings (Circle's USDC) that
/// mean it.
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
    row(
        Revert::NotAuthorized,
        "notAuthorized",
        &[MarketHub::NotAuthorized::SELECTOR, Gate::NotExecutor::SELECTOR],
        &[],
    ),
    row(Revert::SignatureInvalid, "signatureInvalid", &[Account::SignatureInvalid::SELECTOR], &[]),
    row(Revert::NonceInvalid, "nonceInvalid", &[Account::NonceInvalid::SELECTOR], &[]),
    row(Revert::NonceTooLarge, "nonceTooLarge", &[Gate::NonceTooLarge::SELECTOR], &[]),
    row(Revert::OwnerInvalid, "ownerInvalid", &[AccountFactory::OwnerInvalid::SELECTOR], &[]),
    row(Revert::GasTooLow, "gasTooLow", &[Gate::GasTooLow::SELECTOR], &[]),
    row(Revert::BatchTooLarge, "batchTooLarge", &[Gate::BatchTooLarge::SELECTOR], &[]),
];

/// What the stored name of [`Revert::Other`] begins with.
const OTHER: &str = "other";

impl Revert {
    /// Reads revert data, also where the Gate has cut it at 256 bytes: the selector decides, arguments do
    /// not.
    pub fn from_data(data: &[u8]) -> Self {
        let Some((selector, _)) = data.split_first_chunk::<4>() else { return Self::unread(data) };
        if let Some(row) = TABLE.iter().find(|row| row.selectors.contains(selector)) {
            return row.revert.clone();
        }
        if *selector == RevertString::SELECTOR {
            return RevertString::abi_decode(data)
                .map_or_else(|_| Self::unread(data), |it| Self::of_text(&it.reason));
        }
        match Panic::abi_decode(data) {
            Ok(panic) => Self::Other(format!("panic 0x{:x}", panic.code)),
            Err(_) => Self::unread(data),
        }
    }

    /// The stable name; `other` for what the table does not hold. `Display` and `FromStr` keep the latter's
    /// text too.
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
    fn every_name_is_read_back() {
        let other = Revert::Other("panic 0x11".to_owned());
        for revert in TABLE.iter().map(|row| &row.revert).chain([&other]) {
            assert_eq!(revert.to_string().parse().as_ref(), Ok(revert));
        }
        assert_eq!("unheard of".parse::<Revert>(), Err(ParseRevertError));
    }

    #[test]
    fn no_selector_and_no_text_means_two_things() {
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
    fn circles_strings_and_openzeppelins_errors_mean_the_same() {
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
    fn what_the_table_does_not_hold_keeps_its_data() {
        let shown = |data: &[u8]| Revert::from_data(data).to_string();
        assert_eq!(shown(&[]), "other:0x");
        assert_eq!(shown(&[1, 2, 3, 4, 5]), "other:0x0102030405");
        assert_eq!(shown(&RevertString::from("why not").abi_encode()), "other:why not");
        assert_eq!(shown(&Panic { code: U256::from(0x11) }.abi_encode()), "other:panic 0x11");
    }
}
