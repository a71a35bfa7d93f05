//! The labels of metrics. Their values come from the code, so that their number is bounded.

use std::fmt::Write;

use domain::ErrorCode;
use domain::ids::CorrelationId;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelSetEncoder, LabelValueEncoder};

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

macro_rules! label {
    ($($name:ident { $field:ident: $of:ty })*) => {$(
        #[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
        pub(super) struct $name {
            pub $field: $of,
        }
    )*};
}

label! {
    Build { version: &'static str }
    Code { code: &'static str }
    Event { event: &'static str }
    Lane { lane: u16 }
    Method { method: &'static str }
    Name { name: String }
    Outcome { outcome: &'static str }
    Quantile { quantile: &'static str }
    Route { route: RouteLabel }
    Stage { stage: &'static str }
    Unit { unit: &'static str }
    Why { why: &'static str }
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
