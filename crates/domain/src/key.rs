//! API keys: format, digest, scopes, tiers, limits and IP allowlists.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use crate::money::Usdc;
use crate::network;
use crate::signature::hmac_sha256;
use crate::words::words;

/// The environment of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Environment {
    Live,
    /// Staging and development, on a test chain.
    Test,
}

impl Environment {
    /// Returns the prefix of this environment's keys.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Live => "service_live_",
            Self::Test => "service_test_",
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Test => "test",
        }
    }
}

const SECRET_LEN: usize = 32;
pub(crate) const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// A complete plaintext key. It exists only during a request or when it is issued. `Debug` does not
/// print it.
#[derive(Clone)]
pub struct PlaintextKey(SecretString);

impl fmt::Debug for PlaintextKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PlaintextKey(…)")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a well-formed key")]
pub struct MalformedKey;

impl FromStr for PlaintextKey {
    type Err = MalformedKey;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // Keys of the other environment are well-formed too. They are rejected later, as invalid.
        let secret = [Environment::Live, Environment::Test]
            .into_iter()
            .find_map(|environment| text.strip_prefix(environment.prefix()))
            .ok_or(MalformedKey)?;
        if secret.len() != SECRET_LEN || !secret.bytes().all(|b| b.is_ascii_alphanumeric()) {
            return Err(MalformedKey);
        }
        Ok(Self(text.into()))
    }
}

impl PlaintextKey {
    /// Creates a key from random bytes. Bytes that would bias the characters are skipped, so pass
    /// at least 48. `None` if `random` has too few usable bytes.
    pub fn from_random(environment: Environment, random: &[u8]) -> Option<Self> {
        let mut text = String::from(environment.prefix());
        // 248 is the largest multiple of 62 in a byte: larger values would favor some characters.
        let unbiased = random.iter().filter(|byte| **byte < 248).take(SECRET_LEN);
        text.extend(unbiased.map(|byte| char::from(BASE62[usize::from(*byte) % 62])));
        text.parse().ok()
    }

    pub fn environment(&self) -> Environment {
        // Parsing accepts no other prefix than these two.
        if self.expose().starts_with(Environment::Live.prefix()) {
            Environment::Live
        } else {
            Environment::Test
        }
    }

    /// Returns the HMAC-SHA256 of the key under the server's pepper. Only this digest is stored.
    pub fn digest(&self, pepper: &[u8]) -> [u8; 32] {
        hmac_sha256(pepper, &[self.expose().as_bytes()])
    }

    /// Returns the last four characters, by which the user recognizes the key.
    pub fn hint(&self) -> &str {
        let text = self.expose();
        text.get(text.len() - 4..).unwrap_or_default()
    }

    /// Returns the key itself, for showing it once when it is issued and for verifying signatures.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

macro_rules! scopes {
    ($($name:ident = $word:literal, $bit:literal, $doc:literal;)*) => {
        /// A permission of a key. Every route names the one that it needs.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Scope {
            $(#[doc = $doc] $name,)*
        }

        impl Scope {
            pub const ALL: &[Self] = &[$(Self::$name,)*];

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

#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Scopes(u8);

impl Scopes {
    pub fn of(scopes: &[Scope]) -> Self {
        Self(scopes.iter().fold(0, |set, scope| set | scope.bit()))
    }

    pub fn all() -> Self {
        Self::of(Scope::ALL)
    }

    pub const fn contains(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// Iterates over the scopes in a fixed order.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.iter().copied().filter(move |scope| self.contains(*scope))
    }
}

/// The names joined by commas.
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

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a scope")]
pub struct UnknownScope(pub String);

/// Parses names joined by commas, or `all`.
impl FromStr for Scopes {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "all" {
            return Ok(Self::all());
        }
        let mut set = Self::default();
        // An empty text is a key without scopes.
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

words! {
    /// The way in which a key is used.
    KeyKind, UnknownKeyKind {
        /// A client sends it with each request.
        Api = "api",
        /// The key of the web application, one per user. It has no plaintext and authenticates no
        /// request.
        Web = "web",
    }
}

/// Caps that the user has chosen, which can only lower those of the tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChosenCaps {
    pub daily: Option<Usdc>,
    pub per_trade: Option<Usdc>,
}

impl ChosenCaps {
    /// Returns `limits` with the lower caps of both.
    pub fn lower(&self, limits: KeyLimits) -> KeyLimits {
        let lower = |cap: Usdc, chosen: Option<Usdc>| chosen.map_or(cap, |chosen| chosen.min(cap));
        KeyLimits {
            daily: lower(limits.daily, self.daily),
            per_trade: lower(limits.per_trade, self.per_trade),
            ..limits
        }
    }
}

/// The service level of a key, which determines its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// Self-service with the lowest caps.
    Free,
    /// Self-service, paid.
    Developer,
    /// Issued by the operator under a contract.
    Enterprise,
    /// For market makers, with the highest caps.
    Mm,
}

/// The limits of one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyLimits {
    /// Requests per minute, counted over all keys of the user.
    pub requests_per_minute: u32,
    /// Cap on the cost of all buys within 24 hours.
    pub daily: Usdc,
    /// Cap on one trade.
    pub per_trade: Usdc,
    /// Trades of at least this amount are held for confirmation.
    pub high_value: Option<Usdc>,
}

/// Per-key limits that replace those of its tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LimitOverrides {
    /// Replaces [`KeyLimits::requests_per_minute`].
    pub requests_per_minute: Option<u32>,
    /// Replaces [`KeyLimits::daily`].
    pub daily: Option<Usdc>,
    /// Replaces [`KeyLimits::per_trade`].
    pub per_trade: Option<Usdc>,
    /// Replaces [`KeyLimits::high_value`].
    pub high_value: Option<Usdc>,
}

impl Tier {
    pub const ALL: [Self; 4] = [Self::Free, Self::Developer, Self::Enterprise, Self::Mm];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Developer => "developer",
            Self::Enterprise => "enterprise",
            Self::Mm => "mm",
        }
    }

    /// Returns true if keys of this tier may have their own limits.
    pub const fn takes_overrides(self) -> bool {
        matches!(self, Self::Enterprise | Self::Mm)
    }

    /// Returns the scopes of a key of this tier if none are chosen.
    pub fn default_scopes(self) -> Scopes {
        let read = [Scope::MarketsRead, Scope::MarketsQuote, Scope::PortfolioRead];
        match self {
            Self::Free | Self::Developer => Scopes::of(&read),
            Self::Enterprise | Self::Mm => {
                Scopes(Scopes::of(&read).0 | Scopes::of(&[Scope::TradesRead, Scope::TradesWrite]).0)
            }
        }
    }

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
            // `Option::map` is not a const function.
            high_value: match high_value {
                Some(whole) => Some(Usdc::from_whole(whole)),
                None => None,
            },
        }
    }

    /// Returns the limits of a key of this tier. Self-service tiers ignore `overrides`.
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be free, developer, enterprise or mm")]
pub struct UnknownTier;

impl FromStr for Tier {
    type Err = UnknownTier;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|tier| tier.as_str() == text).ok_or(UnknownTier)
    }
}

/// The addresses from which a key may be used. An empty list allows all addresses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IpAllowlist(Vec<IpNet>);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadAllowlist {
    /// The list or one of its entries is empty. To allow every address, omit the list instead.
    #[error("every entry must be an IP address or a CIDR range, and there must be at least one")]
    Empty,
    /// An entry is neither an address nor a CIDR range.
    #[error("{0:?} is neither an IP address nor a CIDR range")]
    Entry(String),
}

impl IpAllowlist {
    /// Parses a list from the database. Unlike `from_str`, accepts an empty list and ranges that
    /// [`network::parse`] rejects, because earlier versions stored them. Such ranges match no
    /// address.
    pub fn from_stored(text: &str) -> Result<Self, BadAllowlist> {
        let entry = |entry: &str| {
            let net = network::parse(entry).or_else(|| entry.parse().ok());
            net.ok_or_else(|| BadAllowlist::Entry(entry.to_owned()))
        };
        let entries = text.split(',').filter(|entry| !entry.is_empty());
        Ok(Self(entries.map(entry).collect::<Result<_, _>>()?))
    }

    /// Returns true if the list is empty, which allows every address.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the entries. A single address has no prefix length.
    pub fn entries(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|net| {
            if net.prefix_len() == net.max_prefix_len() { net.addr().to_string() } else { net.to_string() }
        })
    }

    /// Returns true if `ip` is allowed. An IPv4 address mapped into IPv6 counts as IPv4.
    pub fn allows(&self, ip: IpAddr) -> bool {
        // A dual-stack socket reports IPv4 clients as mapped addresses.
        let ip = ip.to_canonical();
        self.0.is_empty() || self.0.iter().any(|net| net.contains(&ip))
    }
}

/// Parses addresses and CIDR ranges joined by commas. Rejects an empty list, because it would allow
/// every address.
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
    fn a_hint_is_the_last_four_characters() {
        assert_eq!(key().hint(), "zzzz");
    }

    #[test]
    fn chosen_caps_only_lower_a_tiers_caps() {
        let limits = Tier::Free.default_limits();
        let whole = |usdc| Some(Usdc::from_whole(usdc));
        assert_eq!(ChosenCaps::default().lower(limits), limits);
        let lower = ChosenCaps { daily: whole(100), per_trade: whole(50) }.lower(limits);
        assert_eq!((lower.daily, lower.per_trade), (Usdc::from_whole(100), Usdc::from_whole(50)));
        assert_eq!(ChosenCaps { daily: whole(2_000), per_trade: whole(501) }.lower(limits), limits);
    }

    #[test]
    fn malformed_keys_are_rejected() {
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
    fn debug_output_never_contains_the_key() {
        assert!(!format!("{:?}", key()).contains("zzz"));
    }

    #[test]
    fn the_digest_depends_on_the_pepper() {
        assert_ne!(key().digest(b"one"), key().digest(b"two"));
    }

    #[test]
    fn too_few_random_bytes_give_no_key() {
        assert!(PlaintextKey::from_random(Environment::Live, &[255; 64]).is_none());
    }

    #[test]
    fn tier_defaults_equal_the_documented_table() {
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
    fn self_serve_tiers_reject_overrides() {
        let overrides = LimitOverrides { daily: Some(Usdc::from_whole(5)), ..LimitOverrides::default() };
        assert_eq!(Tier::Free.limits(&overrides), Tier::Free.default_limits());
        assert_eq!(Tier::Mm.limits(&overrides).daily, Usdc::from_whole(5));
    }

    #[test]
    fn scopes_are_always_written_in_the_same_order() {
        let scopes: Scopes = "trades:write, markets:read".parse().unwrap();
        assert_eq!(scopes.to_string(), "markets:read,trades:write");
        assert_eq!("all".parse(), Ok(Scopes::all()));
        assert_eq!("trades:delete".parse::<Scopes>(), Err(UnknownScope("trades:delete".into())));
    }

    #[test]
    fn an_allowlist_accepts_addresses_ranges_and_mapped_forms() {
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
