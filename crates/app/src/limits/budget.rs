//! The budgets: everything that a free or anonymous client can use up, with the share of one user,
//! one address, one network and of all together. A resource that is not in this table has no limit,
//! so a new one gets its line here first.
//!
//! [`Budgets`](super::Budgets) enforces them, operators change them by name (`streams.address`), and
//! `docs/operating.md` lists them from this table.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use domain::rate::Scope;
use domain::time::{DAY_MS, MINUTE_MS};

/// How uses are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counting {
    /// What is in use at the same time, in this process.
    Concurrent,
    /// Uses within a minute, in this process: it must not wait for a dependency.
    PerMinute,
    /// Uses within a minute, of all processes that share a Redis.
    PerMinuteOfAll,
    /// Uses within 24 hours, of all processes that share a Redis.
    PerDay,
    /// Entries of a log within 24 hours, in the database. Further ones are only counted, not refused.
    Kept,
    /// Failures within five minutes that begin a lockout, of all processes that share a Redis.
    Failures,
}

impl Counting {
    /// Returns the length of the window of [`Budgets::spend`](super::Budgets::spend), if it counts
    /// this budget.
    pub const fn period_ms(self) -> Option<i64> {
        match self {
            Self::Concurrent | Self::Kept | Self::Failures => None,
            Self::PerMinute | Self::PerMinuteOfAll => Some(MINUTE_MS),
            Self::PerDay => Some(DAY_MS),
        }
    }

    /// Returns whether processes that share a Redis count together.
    pub const fn is_shared(self) -> bool {
        matches!(self, Self::PerMinuteOfAll | Self::PerDay | Self::Failures)
    }

    /// Returns the end of a sentence about a limit.
    pub const fn phrase(self) -> &'static str {
        match self {
            Self::Concurrent => "at the same time",
            Self::PerMinute | Self::PerMinuteOfAll => "per minute",
            Self::PerDay => "within 24 hours",
            Self::Kept => "kept of 24 hours",
            Self::Failures => "within 5 minutes",
        }
    }
}

/// The largest amount that one scope may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(u64);

impl Share {
    /// No limit.
    pub const OFF: Self = Self(u64::MAX);
    /// The largest limit, which every storage counts exactly.
    pub const MAX: Self = Self(1 << 52);

    pub const fn new(limit: u64) -> Self {
        Self(limit)
    }

    /// Returns the limit, if there is one.
    pub fn limit(self) -> Option<u64> {
        (self != Self::OFF).then_some(self.0)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.limit() {
            Some(limit) => write!(f, "{limit}"),
            None => f.write_str("off"),
        }
    }
}

const OFF: u64 = u64::MAX;

/// Declares all budgets: what they count, how, the word in `extensions.limiter` of an error, and the
/// default shares of a user, an address (IPv6 /64), a network (IPv4 /24, IPv6 /56), a site (IPv6
/// /48) and of all together.
macro_rules! budgets {
    ($($(#[$doc:meta])* $budget:ident = $name:literal, $counting:ident, $limiter:literal, $counts:literal,
        [$user:expr, $address:expr, $network:expr, $site:expr, $total:expr];)*) => {
        /// A resource that strangers share.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Budget { $($(#[$doc])* $budget,)* }

        impl Budget {
            /// In the order of declaration.
            pub const ALL: &[Self] = &[$(Self::$budget,)*];

            /// Returns the name in settings and metrics.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$budget => $name,)* }
            }

            pub const fn counting(self) -> Counting {
                match self { $(Self::$budget => Counting::$counting,)* }
            }

            /// Returns the word that names the limiter in an error.
            pub const fn limiter(self) -> &'static str {
                match self { $(Self::$budget => $limiter,)* }
            }

            /// Returns what is counted, in plural.
            pub const fn counts(self) -> &'static str {
                match self { $(Self::$budget => $counts,)* }
            }

            /// Returns the default share of a scope.
            pub const fn default_share(self, scope: Scope) -> Share {
                let shares: [u64; 5] = match self {
                    $(Self::$budget => [$user, $address, $network, $site, $total],)*
                };
                let [user, address, network, site, total] = shares;
                Share(match scope {
                    Scope::User => user,
                    Scope::Address => address,
                    Scope::Network => network,
                    Scope::Site => site,
                    Scope::Total => total,
                })
            }
        }
    };
}

// [user, address, network, site, total]
budgets! {
    /// Open HTTP connections. At a limit, an idle one gives way. If there is none, a further one is
    /// closed, or waits if it is the total that is used up.
    Connections = "connections", Concurrent, "connections", "open connections", [OFF, 512, 1_024, 1_024, 4_096];
    /// Requests whose body is being read.
    Bodies = "bodies", Concurrent, "bodies", "request bodies that are being received", [OFF, 256, 512, 1_024, 4_096];
    /// What has arrived of these bodies. A body has at most 64 KiB, so the shares of `bodies` alone would
    /// allow eight times as much.
    BodyBytes = "body-bytes", Concurrent, "bodies", "bytes of request bodies that are being received",
        [OFF, 2_097_152, 4_194_304, 8_388_608, 33_554_432];
    /// Requests without an accepted key to routes without a limit of their own.
    Requests = "requests", PerMinute, "address", "requests without an accepted key", [OFF, 300, 2_400, 9_600, OFF];
    /// Requests to a route with a limit of its own. The shares are multiples of that limit.
    Routes = "routes", PerMinuteOfAll, "route", "requests to one route", [OFF, 1, 8, 32, OFF];
    /// Authenticated requests of users of the tier `free`, beside the limit of each user.
    FreeRequests = "free-requests", PerMinute, "network", "requests of users of the tier free", [OFF, 600, 2_400, 4_800, OFF];
    /// Browsers whose pages are updated live.
    Streams = "streams", Concurrent, "streams", "streams of browsers", [OFF, 100, 400, 800, 10_000];
    /// Markets that these streams follow, each counted once per stream.
    Topics = "topics", Concurrent, "topics", "markets that streams follow", [OFF, 2_000, 8_000, 16_000, 100_000];
    /// Streams of single markets on the public API.
    MarketStreams = "market-streams", Concurrent, "streams", "streams of markets", [OFF, 10, 40, 80, 1_000];
    /// Event streams of the trading API.
    Feed = "feed", Concurrent, "streams", "event streams of users of the tier free", [5, 100, 200, 300, 1_000];
    /// New users who sign up by themselves.
    SignUps = "sign-ups", PerDay, "sign-ups", "sign-ups", [OFF, 30, 120, 240, 3_000];
    /// Failed sign-ins, sign-ups and rejected keys, each kind for itself. The last one begins a lockout.
    /// The share of a user is that of one passkey or wallet.
    FailedSignIns = "failed-sign-ins", Failures, "lockout", "failed sign-ins and rejected keys", [20, 20, 160, 640, OFF];
    /// Searches by words.
    Searches = "searches", PerMinute, "searches", "searches", [OFF, 600, 2_400, 4_800, 12_000];
    /// Preview cards that are being drawn, or wait for it.
    Drawings = "drawings", Concurrent, "cards", "preview cards that are being drawn", [OFF, 4, 16, 32, 64];
    /// Preview cards that must be drawn because they are not cached.
    Cards = "cards", PerMinute, "cards", "preview cards that are not cached", [OFF, 30, 120, 240, 600];
    /// Gas of owner acts that the service pays for.
    ActGas = "act-gas", PerDay, "act-gas", "units of gas for acts", [3_000_000, 6_000_000, 12_000_000, 24_000_000, 60_000_000];
    /// Entries of one kind in the log of what a user does. The number of users is limited by sign-ups.
    LogEntries = "log-entries", Kept, "log-entries", "entries of each kind in a user's log", [20, OFF, OFF, OFF, OFF];
    /// Traces that users have sampled by naming their ids in `traceparent`. Anonymous requests name none.
    TraceSamples = "trace-samples", PerMinute, "trace-samples", "traces that clients ask for", [60, 120, 240, 480, 600];
    /// Test events of users of the tier `free`. Each is stored for a month, with what the receiver
    /// answered.
    WebhookTests = "webhook-tests", PerDay, "redelivery", "webhook test events of users of the tier free",
        [500, 1_000, 2_000, 4_000, 20_000];
    /// Trades of users of the tier `free`, whose gas the service pays. Sales may use twice these shares, so that
    /// positions can be sold when buys have used them up.
    Trades = "trades", PerDay, "write", "trades of users of the tier free", [1_000, 2_000, 8_000, 16_000, 60_000];
    /// Metadata of these trades. It is stored for ever, with the trade and with each of its events.
    MetadataBytes = "metadata-bytes", PerDay, "write", "bytes of metadata of trades of users of the tier free",
        [1_048_576, 2_097_152, 8_388_608, 16_777_216, 67_108_864];
    /// Event streams of users of a paid tier, so that strangers cannot take their places.
    PaidFeed = "paid-feed", Concurrent, "streams", "event streams of users of a paid tier", [5, OFF, OFF, OFF, 4_000];
    /// Gas of the acts of users of a paid tier, so that strangers cannot use it up.
    PaidActGas = "paid-act-gas", PerDay, "act-gas", "units of gas for acts of users of a paid tier",
        [3_000_000, OFF, OFF, OFF, 60_000_000];
    /// Gas of acts that leave or protect, once strangers have used up the total of the others.
    LeavingGas = "leaving-gas", PerDay, "act-gas", "units of gas for withdrawals and removals of owners",
        [300_000, 1_200_000, 4_800_000, 9_600_000, 120_000_000];
    /// Lookups of the hosts of webhook receivers, until they have ended: each occupies a thread that cannot be
    /// stopped. A further one waits.
    Lookups = "lookups", Concurrent, "lookups", "lookups of webhook receivers of users of the tier free",
        [4, OFF, OFF, OFF, 192];
    /// Those of users of a paid tier, so that strangers cannot use them up.
    PaidLookups = "paid-lookups", Concurrent, "lookups", "lookups of webhook receivers of users of a paid tier",
        [4, OFF, OFF, OFF, 64];
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A setting of the operator: `streams.address=20`, or `off` instead of the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetSetting {
    pub budget: Budget,
    pub scope: Scope,
    pub share: Share,
}

/// The text is no [`BudgetSetting`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadBudgetSetting {
    #[error("must look like streams.address=20, got {0}")]
    Form(String),
    #[error("{0} is no budget: the budgets are {list}", list = names(Budget::ALL))]
    Budget(String),
    #[error("{0} is no share: the shares are {list}", list = names(Scope::ALL))]
    Scope(String),
    #[error("{name} must be a whole number up to {max}, or off", max = Share::MAX)]
    Share { name: String },
}

fn names(all: &[impl fmt::Display]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl BudgetSetting {
    /// Parses the three parts of a setting.
    ///
    /// # Errors
    /// If one of them is unknown.
    pub fn parse(budget: &str, scope: &str, share: &str) -> Result<Self, BadBudgetSetting> {
        let known = Budget::ALL.iter().copied().find(|known| known.as_str() == budget);
        let known = known.ok_or_else(|| BadBudgetSetting::Budget(budget.to_owned()))?;
        let known_scope: Scope = scope.parse().map_err(|_| BadBudgetSetting::Scope(scope.to_owned()))?;
        let limit = || share.parse().ok().map(Share).filter(|share| *share <= Share::MAX);
        let share = if share == "off" { Some(Share::OFF) } else { limit() };
        let share = share.ok_or_else(|| BadBudgetSetting::Share { name: format!("{budget}.{scope}") })?;
        Ok(Self { budget: known, scope: known_scope, share })
    }
}

impl FromStr for BudgetSetting {
    type Err = BadBudgetSetting;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.trim().split_once('=').and_then(|(name, share)| {
            let (budget, scope) = name.trim().split_once('.')?;
            Some((budget, scope, share.trim()))
        });
        let (budget, scope, share) = parts.ok_or_else(|| BadBudgetSetting::Form(text.to_owned()))?;
        Self::parse(budget, scope, share)
    }
}

impl fmt::Display for BudgetSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { budget, scope, share } = self;
        write!(f, "{budget}.{scope}={share}")
    }
}

/// The shares of all budgets: those of the operator, and the defaults for the others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BudgetShares {
    changed: BTreeMap<(Budget, &'static str), Share>,
}

impl BudgetShares {
    /// Changes shares. The last setting of a share wins.
    #[must_use]
    pub fn with(mut self, settings: impl IntoIterator<Item = BudgetSetting>) -> Self {
        for BudgetSetting { budget, scope, share } in settings {
            self.changed.insert((budget, scope.as_str()), share);
        }
        self
    }

    pub fn share(&self, budget: Budget, scope: Scope) -> Share {
        let changed = self.changed.get(&(budget, scope.as_str())).copied();
        changed.unwrap_or_else(|| budget.default_share(scope))
    }

    /// Returns whether the operator has changed the share.
    pub fn is_changed(&self, budget: Budget, scope: Scope) -> bool {
        self.changed.contains_key(&(budget, scope.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;
    use std::fs;
    use std::path::Path;

    #[test]
    fn a_wider_scope_has_no_smaller_share() {
        for budget in Budget::ALL {
            let shares = Scope::ALL.iter().map(|scope| budget.default_share(*scope));
            let limits: Vec<_> = shares.filter_map(Share::limit).collect();
            assert!(limits.is_sorted(), "{budget}: {limits:?}");
            assert!(!limits.is_empty(), "{budget} has no limit");
        }
    }

    #[test]
    fn a_setting_changes_one_share() {
        let settings = ["streams.address=20", " feed.total = off", "streams.address=30"];
        let settings = settings.map(|text| text.parse().unwrap());
        let shares = BudgetShares::default().with(settings);
        assert_eq!(shares.share(Budget::Streams, Scope::Address), Share::new(30));
        assert_eq!(shares.share(Budget::Streams, Scope::Network), Share::new(400));
        assert_eq!(shares.share(Budget::Feed, Scope::Total), Share::OFF);
        assert!(shares.is_changed(Budget::Feed, Scope::Total));
        assert!(!shares.is_changed(Budget::Feed, Scope::User));
        assert_eq!(settings[1].to_string(), "feed.total=off");
    }

    #[test]
    fn a_wrong_setting_says_what_is_known() {
        let error = |text: &str| text.parse::<BudgetSetting>().unwrap_err().to_string();
        assert_eq!(error("streams"), "must look like streams.address=20, got streams");
        assert!(error("steams.address=1").starts_with("steams is no budget: the budgets are connections, "));
        let scopes = "country is no share: the shares are user, address, network, site, total";
        assert_eq!(error("streams.country=1"), scopes);
        for wrong in ["-1", "1.5", "", "4503599627370497"] {
            let expected = "streams.total must be a whole number up to 4503599627370496, or off";
            assert_eq!(error(&format!("streams.total={wrong}")), expected);
        }
    }

    /// The calls that enforce a budget, or read its share for code that counts by itself.
    const USES: [&str; 9] = [
        "enter(",
        "enter_many(",
        "spend(",
        "spend_amount(",
        "spend_multiple(",
        "spend_here(",
        "spend_wider(",
        "spend_wider_here(",
        "share(",
    ];

    /// Appends the code of a directory without white space, tests and this table.
    fn read_code(directory: &Path, code: &mut String) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                read_code(&path, code);
            } else if path.extension().is_some_and(|it| it == "rs") && !path.ends_with("limits/budget.rs") {
                let text = fs::read_to_string(&path).unwrap();
                let shipped = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
                code.extend(shipped.chars().filter(|char| !char.is_whitespace()));
            }
        }
    }

    #[test]
    fn every_budget_is_enforced_by_some_code() {
        let mut code = String::new();
        for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap() {
            let source = entry.unwrap().path().join("src");
            if source.is_dir() {
                read_code(&source, &mut code);
            }
        }
        for budget in Budget::ALL {
            let is_enforced = USES.iter().any(|call| code.contains(&format!("{call}Budget::{budget:?},")));
            assert!(is_enforced, "{budget} is in the table, but nothing enforces it");
        }
    }

    #[test]
    fn the_operators_page_lists_every_budget() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operating.md");
        let mut table = "| Budget | Counts | user | address | network | site | total |\n".to_owned();
        table.push_str("| --- | --- | --- | --- | --- | --- | --- |\n");
        for budget in Budget::ALL {
            let shares = Scope::ALL.iter().map(|scope| budget.default_share(*scope).to_string());
            let times = if *budget == Budget::Routes { "×" } else { "" };
            let cell = |share: String| if share == "off" { share } else { format!("{times}{share}") };
            let shares: Vec<_> = shares.map(cell).collect();
            let (counts, phrase) = (budget.counts(), budget.counting().phrase());
            writeln!(table, "| `{budget}` | {counts}, {phrase} | {} |", shares.join(" | ")).unwrap();
        }
        let text = fs::read_to_string(&path).unwrap();
        let (open, close) = ("<!-- budgets -->\n", "<!-- /budgets -->");
        let (before, rest) = text.split_once(open).expect("the page has the marker of the table");
        let (found, after) = rest.split_once(close).expect("the page has the marker of the table's end");
        if found != table && std::env::var_os("FORETELL_WRITE_GUIDE").is_some() {
            return fs::write(&path, format!("{before}{open}{table}{close}{after}")).unwrap();
        }
        assert_eq!(found, table, "run this test with FORETELL_WRITE_GUIDE=1 and read what it writes");
    }
}
