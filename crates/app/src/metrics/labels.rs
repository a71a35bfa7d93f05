//! The labels of metrics. Their values come from the code, so that their number is bounded.

use std::fmt::Write;

use domain::ErrorCode;
use domain::ids::CorrelationId;
use domain::risk::RiskRefusal;
use domain::trade::Status;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelSetEncoder, LabelValueEncoder};
use store::RetryReason;

/// The template of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RouteLabel(Option<&'static str>);

impl RouteLabel {
    /// Requests to paths without a route.
    pub const NONE: Self = Self(None);

    pub const fn of(path: &'static str) -> Self {
        Self(Some(path))
    }

    /// Returns the template, or `None` for paths without a route.
    pub const fn template(self) -> Option<&'static str> {
        self.0
    }

    /// Returns the method's name. Clients may send any word, which must not become a name.
    pub fn known_method(method: &str) -> &'static str {
        const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
        METHODS.into_iter().find(|known| *known == method).unwrap_or("other")
    }
}

impl EncodeLabelValue for RouteLabel {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        encoder.write_str(self.0.unwrap_or("none"))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RequestLabels {
    route: RouteLabel,
    method: &'static str,
    status: u16,
    code: &'static str,
}

impl RequestLabels {
    pub fn new(route: RouteLabel, method: &str, status: u16, code: Option<ErrorCode>) -> Self {
        let method = RouteLabel::known_method(method);
        Self { route, method, status, code: code.map_or("", ErrorCode::as_str) }
    }
}

/// The trace of an exemplar, as other systems know it.
#[derive(Debug, Clone, Copy)]
pub(super) struct TraceId(pub CorrelationId);

impl EncodeLabelSet for TraceId {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        [("trace_id", self.0.to_string())].encode(encoder)
    }
}

/// Labels that can be listed. A family of them has all its series from the first scrape, because
/// `rate()` would miss the first event of a series that begins with it.
pub(super) trait Closed: Sized {
    /// Returns all labels that are ever recorded.
    fn all() -> impl Iterator<Item = Self>;
}

/// Declares the values of a label that only metrics know.
macro_rules! values {
    ($($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $value:ident = $text:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($(#[$vdoc])* $value,)* }

        impl $name {
            pub const ALL: &[Self] = &[$(Self::$value,)*];

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$value => $text,)* }
            }
        }
    )*};
}

values! {
    /// A part of the time of a trade.
    StageName {
        Accept = "accept",
        Sign = "sign",
        Final = "final",
    }

    /// What became of an attempt to deliver a webhook.
    AttemptOutcome {
        Delivered = "delivered",
        Retry = "retry",
        Failed = "failed",
    }

    /// What became of an event for NATS.
    SinkOutcome {
        Published = "published",
        /// The stream had the event.
        Duplicate = "duplicate",
        /// The event was deleted before it was published.
        Lost = "lost",
    }

    /// What became of a span of a trace.
    SpanOutcome {
        Sent = "sent",
        /// The collector didn't take it.
        Failed = "failed",
        QueueFull = "queue_full",
    }

    /// A check of readiness. The first ones ask what all processes share, the last ones only judge
    /// this process.
    CheckName {
        Database = "database",
        Chain = "chain",
        RateLimiter = "rate_limiter",
        Webhooks = "webhooks",
        Replica = "replica",
        Schema = "schema",
        Pools = "pools",
        /// The files of an embedded database and an embedded chain.
        Storage = "storage",
        /// The process stops, or was asked to: on purpose, so no alert asks for it.
        NotDraining = "not_draining",
    }

    /// A clock that this machine's clock is compared with.
    ClockSource {
        Database = "database",
        Chain = "chain",
    }
}

/// Declares labels of one member whose values are an enum.
macro_rules! closed {
    ($($name:ident { $field:ident: $of:ty })*) => {$(
        #[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
        pub(super) struct $name {
            $field: &'static str,
        }

        impl $name {
            pub const fn of(value: $of) -> Self {
                Self { $field: value.as_str() }
            }
        }

        impl Closed for $name {
            fn all() -> impl Iterator<Item = Self> {
                <$of>::ALL.iter().map(|value| Self::of(*value))
            }
        }
    )*};
}

closed! {
    Attempts { outcome: AttemptOutcome }
    Check { check: CheckName }
    Clocks { clock: ClockSource }
    Event { event: Status }
    SinkEvents { outcome: SinkOutcome }
    Spans { outcome: SpanOutcome }
    Stage { stage: StageName }
    Why { why: RetryReason }
}

/// The code of a request whose key or session was rejected.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RejectedKey {
    code: &'static str,
}

impl RejectedKey {
    pub const fn of(code: ErrorCode) -> Self {
        Self { code: code.as_str() }
    }
}

impl Closed for RejectedKey {
    fn all() -> impl Iterator<Item = Self> {
        ErrorCode::ALL.iter().filter(|code| code.status() == 401).map(|code| Self::of(*code))
    }
}

/// The reason of a trade that failed, or that the checks before signing rejected.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct TradeFailure {
    pub code: &'static str,
}

impl Closed for TradeFailure {
    fn all() -> impl Iterator<Item = Self> {
        let failed = ErrorCode::ALL.iter().map(|code| code.as_str());
        let rejected = RiskRefusal::ALL.iter().map(|refusal| refusal.as_str());
        failed.chain(rejected).map(|code| Self { code })
    }
}

/// Declares labels whose values nothing lists before they are recorded.
macro_rules! open {
    ($($name:ident { $field:ident: $of:ty })*) => {$(
        #[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
        pub(super) struct $name {
            pub $field: $of,
        }
    )*};
}

open! {
    Build { version: &'static str }
    Degraded { reason: &'static str }
    Lane { lane: u16 }
    Method { method: &'static str }
    Name { name: String }
    NodeLabels { node: String }
    PoolName { pool: &'static str }
    Quantile { quantile: &'static str }
    Route { route: RouteLabel }
    Unit { unit: &'static str }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Pool {
    pub pool: &'static str,
    pub state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct BudgetScope {
    pub budget: &'static str,
    pub scope: &'static str,
}
