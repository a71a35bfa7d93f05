//! API keys: their form, digest, scopes and tiers.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use serde::Serialize;

use crate::money::Usdc;
use crate::network;
use crate::signature::hmac_sha256;

/// Where a key belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Environment {
    /// Production.
    Live,
    /// Staging and development: a test chain.
    Test,
}

impl Environment {
    /// The prefix of this environment's keys.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Live => "service_live_",
            Self::Test => "service_test_",
        }
    }

    /// The environment's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Test => "test",
        }
    }
}

const SECRET_LEN: usize = 32;
pub(crate) const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// A whole plaintext key, which exists only in a request or at the moment of issue. Neither printed nor logged.
#[derive(Clone, PartialEq, Eq)]
pub struct PlaintextKey(String);

impl fmt::Debug for PlaintextKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PlaintextKey(…)")
    }
}

/// The text is not `service_live_` or `service_test_` and 32 base62 characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a well-formed key")]
pub struct MalformedKey;

impl FromStr for PlaintextKey {
    type Err = MalformedKey;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let secret = [Environment::Live, Environment::Test]
            .into_iter()
            .find_map(|environment| text.strip_prefix(environment.prefix()))
            .ok_or(MalformedKey)?;
        if secret.len() != SECRET_LEN || !secret.bytes().all(|b| b.is_ascii_alphanumeric()) {
            return Err(MalformedKey);
        }
        Ok(Self(text.to_owned()))
    }
}

impl PlaintextKey {
    /// A key made from random bytes. Bytes that would favour some characters are passed over, so at least 48 random
    /// bytes are wanted; `None` where `random` runs out before the key is whole.
    pub fn from_random(environment: Environment, random: &[u8]) -> Option<Self> {
        let mut text = String::from(environment.prefix());
        let unbiased = random.iter().filter(|byte| **byte < 248).take(SECRET_LEN);
        text.extend(unbiased.map(|byte| char::from(BASE62[usize::from(*byte) % 62])));
        text.parse().ok()
    }

    /// The environment that the prefix names.
    pub fn environment(&self) -> Environment {
        if self.0.starts_with(Environment::Live.prefix()) { Environment::Live } else { Environment::Test }
    }

    /// HMAC-SHA256 of the whole key under the server's pepper: all that is stored of it.
    pub fn digest(&self, pepper: &[u8]) -> [u8; 32] {
        hmac_sha256(pepper, &[self.0.as_bytes()])
    }

    /// The key itself, for showing it once at issue and for checking body signatures.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

macro_rules! scopes {
    ($($name:ident = $word:literal, $bit:literal, $doc:literal;)*) => {
        /// What a key may do. Every route names the one that it needs.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Scope {
            $(#[doc = $doc] $name,)*
        }

        impl Scope {
            /// Every scope.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The scope's name.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }

            const fn bit(self) -> u8 {
                match self { $(Self::$name => 1 << $bit,)* }
            }
        }
    };
}

scopes! {
    MarketsRead = "markets:read", 0, "Markets and their recent trades.";
    MarketsQuote = "markets:quote", 1, "Quotes.";
    PortfolioRead = "portfolio:read", 2, "Portfolio and positions.";
    TradesRead = "trades:read", 3, "Own trades and traces.";
    TradesWrite = "trades:write", 4, "Creating and confirming trades, claiming positions.";
    WebhooksManage = "webhooks:manage", 5, "Webhook events, redelivery and secret rotation.";
    AuthManage = "auth:manage", 6, "The key's own usage.";
}

/// A set of scopes.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Scopes(u8);

impl Scopes {
    /// The set of `scopes`.
    pub fn of(scopes: &[Scope]) -> Self {
        Self(scopes.iter().fold(0, |set, scope| set | scope.bit()))
    }

    /// Every scope.
    pub fn all() -> Self {
        Self::of(Scope::ALL)
    }

    /// Whether `scope` is in the set.
    pub const fn contains(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// The scopes of the set, in their fixed order.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.iter().copied().filter(move |scope| self.contains(*scope))
    }
}

/// Names joined by commas.
impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.iter().map(Scope::as_str).collect();
        f.write_str(&names.join(","))
    }
}

impl fmt::Debug for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{self}]")
    }
}

impl Serialize for Scopes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(Scope::as_str))
    }
}

/// A name in the list is no scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a scope")]
pub struct UnknownScope(pub String);

/// Reads names joined by commas, or `all`.
impl FromStr for Scopes {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "all" {
            return Ok(Self::all());
        }
        let mut set = Self::default();
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let scope = Scope::ALL
                .iter()
                .find(|s| s.as_str() == name)
                .ok_or_else(|| UnknownScope(name.to_owned()))?;
            set.0 |= scope.bit();
        }
        Ok(set)
    }
}

/// What a key was issued as; governs its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// Self-serve, lowest caps.
    Free,
    /// Self-serve, paid.
    Developer,
    /// Issued by the operator under a contract.
    Enterprise,
    /// Market makers; highest caps.
    Mm,
}

/// The limits that apply to one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyLimits {
    /// Requests a minute, shared by all keys of the user.
    pub requests_per_minute: u32,
    /// Buys within any 24 hours.
    pub daily: Usdc,
    /// The most of one trade.
    pub per_trade: Usdc,
    /// At or above this a trade is held for confirmation.
    pub high_value: Option<Usdc>,
}

/// Values set on one key in place of its tier's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LimitOverrides {
    /// In place of [`KeyLimits::requests_per_minute`].
    pub requests_per_minute: Option<u32>,
    /// In place of [`KeyLimits::daily`].
    pub daily: Option<Usdc>,
    /// In place of [`KeyLimits::per_trade`].
    pub per_trade: Option<Usdc>,
    /// In place of [`KeyLimits::high_value`].
    pub high_value: Option<Usdc>,
}

impl Tier {
    /// Every tier.
    pub const ALL: [Self; 4] = [Self::Free, Self::Developer, Self::Enterprise, Self::Mm];

    /// The tier's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Developer => "developer",
            Self::Enterprise => "enterprise",
            Self::Mm => "mm",
        }
    }

    /// Whether keys of this tier may carry limits of their own.
    pub const fn takes_overrides(self) -> bool {
        matches!(self, Self::Enterprise | Self::Mm)
    }

    /// The scopes that a key of this tier gets where none are chosen.
    pub fn default_scopes(self) -> Scopes {
        let read = [Scope::MarketsRead, Scope::MarketsQuote, Scope::PortfolioRead];
        match self {
            Self::Free | Self::Developer => Scopes::of(&read),
            Self::Enterprise | Self::Mm => {
                Scopes(Scopes::of(&read).0 | Scopes::of(&[Scope::TradesRead, Scope::TradesWrite]).0)
            }
        }
    }

    /// The limits of this tier.
    pub const fn default_limits(self) -> KeyLimits {
        let (requests_per_minute, daily, per_trade, high_value) = match self {
            Self::Free => (60, 1_000, 500, None),
            Self::Developer => (300, 10_000, 2_500, None),
            Self::Enterprise => (1_200, 100_000, 25_000, Some(25_000)),
            Self::Mm => (6_000, 1_000_000, 50_000, Some(50_000)),
        };
        KeyLimits {
            requests_per_minute,
            daily: Usdc::from_whole(daily),
            per_trade: Usdc::from_whole(per_trade),
            high_value: match high_value {
                Some(whole) => Some(Usdc::from_whole(whole)),
                None => None,
            },
        }
    }

    /// The limits of a key of this tier that carries `overrides`, which the self-serve tiers do not heed.
    pub fn limits(self, overrides: &LimitOverrides) -> KeyLimits {
        let defaults = self.default_limits();
        if !self.takes_overrides() {
            return defaults;
        }
        KeyLimits {
            requests_per_minute: overrides.requests_per_minute.unwrap_or(defaults.requests_per_minute),
            daily: overrides.daily.unwrap_or(defaults.daily),
            per_trade: overrides.per_trade.unwrap_or(defaults.per_trade),
            high_value: overrides.high_value.or(defaults.high_value),
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text names no tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a tier: free, developer, enterprise or mm")]
pub struct UnknownTier;

impl FromStr for Tier {
    type Err = UnknownTier;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|tier| tier.as_str() == text).ok_or(UnknownTier)
    }
}

/// The addresses that a key may be used from. Empty: from anywhere.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IpAllowlist(Vec<IpNet>);

/// A list of addresses that cannot be used as an allowlist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadAllowlist {
    /// No entry between two commas, or no entry at all: a list that allows every address must be left out, not left empty.
    #[error("every entry must be an IP address or a CIDR range, and there must be at least one")]
    Empty,
    /// An entry that is neither an address nor a CIDR range.
    #[error("{0:?} is neither an IP address nor a CIDR range")]
    Entry(String),
}

impl IpAllowlist {
    /// Reads what this version or an earlier one stored. A stored list may be empty, and earlier versions stored ranges
    /// that [`network::parse`] rejects; those match no address.
    pub fn from_stored(text: &str) -> Result<Self, BadAllowlist> {
        let entry = |entry: &str| {
            let net = network::parse(entry).or_else(|| entry.parse().ok());
            net.ok_or_else(|| BadAllowlist::Entry(entry.to_owned()))
        };
        let entries = text.split(',').filter(|entry| !entry.is_empty());
        Ok(Self(entries.map(entry).collect::<Result<_, _>>()?))
    }

    /// Whether any address is allowed.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The entries as addresses and ranges; a single address is written without its length.
    pub fn entries(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|net| {
            if net.prefix_len() == net.max_prefix_len() { net.addr().to_string() } else { net.to_string() }
        })
    }

    /// Whether `ip` is allowed. An IPv4 address mapped into IPv6 counts as the IPv4 address.
    pub fn allows(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        self.0.is_empty() || self.0.iter().any(|net| net.contains(&ip))
    }
}

/// Reads addresses and CIDR ranges joined by commas. An empty list is an error: it would allow every address.
impl FromStr for IpAllowlist {
    type Err = BadAllowlist;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let entries = text.split(',').map(|entry| match entry.trim() {
            "" => Err(BadAllowlist::Empty),
            entry => network::parse(entry).ok_or_else(|| BadAllowlist::Entry(entry.to_owned())),
        });
        Ok(Self(entries.collect::<Result<_, _>>()?))
    }
}

impl fmt::Display for IpAllowlist {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries: Vec<_> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&entries.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> PlaintextKey {
        PlaintextKey::from_random(Environment::Test, &[61; 48]).unwrap()
    }

    #[test]
    fn a_key_has_its_environments_prefix_and_32_base62_characters() {
        assert_eq!(key().expose(), format!("service_test_{}", "z".repeat(32)));
        assert_eq!(key().environment(), Environment::Test);
    }

    #[test]
    fn texts_of_another_form_are_malformed() {
        for text in [
            "",
            "service_test_",
            "service_prod_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "service_test_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-",
        ] {
            assert_eq!(text.parse::<PlaintextKey>().err(), Some(MalformedKey), "{text}");
        }
    }

    #[test]
    fn a_key_never_shows_itself_in_debug_output() {
        assert!(!format!("{:?}", key()).contains("zzz"));
    }

    #[test]
    fn the_digest_depends_on_the_pepper() {
        assert_ne!(key().digest(b"one"), key().digest(b"two"));
    }

    #[test]
    fn random_bytes_that_run_out_give_no_key() {
        assert_eq!(PlaintextKey::from_random(Environment::Live, &[255; 64]), None);
    }

    #[test]
    fn tier_defaults_read_as_the_documented_table() {
        let table: Vec<_> = Tier::ALL
            .map(|tier| {
                let limits = tier.default_limits();
                let gate = limits.high_value.map_or("none".to_owned(), |gate| gate.to_string());
                format!(
                    "{tier} {} {} {} {gate} {}",
                    limits.requests_per_minute,
                    limits.daily,
                    limits.per_trade,
                    tier.default_scopes()
                )
            })
            .to_vec();
        insta::assert_snapshot!(table.join("\n"));
    }

    #[test]
    fn self_serve_tiers_take_no_overrides() {
        let overrides = LimitOverrides { daily: Some(Usdc::from_whole(5)), ..LimitOverrides::default() };
        assert_eq!(Tier::Free.limits(&overrides), Tier::Free.default_limits());
        assert_eq!(Tier::Mm.limits(&overrides).daily, Usdc::from_whole(5));
    }

    #[test]
    fn scopes_are_read_and_written_in_one_order() {
        let scopes: Scopes = "trades:write, markets:read".parse().unwrap();
        assert_eq!(scopes.to_string(), "markets:read,trades:write");
        assert_eq!("all".parse(), Ok(Scopes::all()));
        assert_eq!("trades:delete".parse::<Scopes>(), Err(UnknownScope("trades:delete".into())));
    }

    #[test]
    fn an_allowlist_takes_addresses_ranges_and_mapped_forms() {
        let list: IpAllowlist = "10.0.0.0/8, 2001:db8::1, ::ffff:192.0.2.7".parse().unwrap();
        for (ip, allowed) in [
            ("10.1.2.3", true),
            ("::ffff:10.1.2.3", true),
            ("192.0.2.7", true),
            ("2001:db8::1", true),
            ("2001:db8::2", false),
            ("11.0.0.1", false),
        ] {
            assert_eq!(list.allows(ip.parse().unwrap()), allowed, "{ip}");
        }
        assert_eq!("10.0.0.0/33".parse::<IpAllowlist>(), Err(BadAllowlist::Entry("10.0.0.0/33".into())));
    }

    #[test]
    fn an_ipv4_mapped_range_allows_the_ipv4_addresses_in_it() {
        let list: IpAllowlist = "::ffff:127.0.0.0/104".parse().unwrap();
        assert!(list.allows("127.0.0.1".parse().unwrap()));
        assert!(list.allows("::ffff:127.0.0.1".parse().unwrap()));
        assert!(!list.allows("128.0.0.1".parse().unwrap()));
        assert_eq!(list.to_string(), "127.0.0.0/8");
    }

    #[test]
    fn an_empty_list_or_entry_is_an_error_and_never_allows_every_address() {
        for text in ["", " ", ",", "192.0.2.1,", ",192.0.2.1", "192.0.2.1,,192.0.2.2"] {
            assert_eq!(text.parse::<IpAllowlist>(), Err(BadAllowlist::Empty), "{text:?}");
        }
        assert_eq!(IpAllowlist::from_stored(""), Ok(IpAllowlist::default()));
    }
}
