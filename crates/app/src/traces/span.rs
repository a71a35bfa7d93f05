//! A span, as it is recorded and passed to the sink.

use std::borrow::Cow;

use domain::Timestamp;
use domain::ids::CorrelationId;
use uuid::Uuid;

/// The id of a span in its trace. Never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(u64);

impl SpanId {
    /// Returns the id with these bits. `None` if they are all zero, which is invalid.
    pub const fn new(bits: u64) -> Option<Self> {
        if bits == 0 { None } else { Some(Self(bits)) }
    }

    /// Returns the id of the span that an entity began with. Every process computes the same one, so
    /// that the spans of the entity's later life have a parent, and no table has to store it.
    ///
    /// These are the random bits of a version 7 UUID. Its variant makes them different from zero.
    pub fn of(entity: Uuid) -> Self {
        let (_, bits) = entity.as_u64_pair();
        Self(bits.max(1))
    }

    pub const fn bits(self) -> u64 {
        self.0
    }
}

/// A span of another service or of this one, as a parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    pub trace_id: CorrelationId,
    pub span_id: SpanId,
}

/// The role of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// Answers a request.
    Server,
    /// Sends a request.
    Client,
    Internal,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Text(Cow<'static, str>),
    Number(i64),
}

impl From<&'static str> for Value {
    fn from(text: &'static str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

/// A time in microseconds since the epoch. Times of a request are finer than the clock's milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Micros(pub i64);

impl From<Timestamp> for Micros {
    fn from(at: Timestamp) -> Self {
        Self(at.ms().saturating_mul(1_000))
    }
}

/// A span that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    pub trace_id: CorrelationId,
    pub id: SpanId,
    pub parent: Option<SpanId>,
    /// True if the parent is a span of the caller.
    pub is_parent_remote: bool,
    /// A span of another trace that caused this one.
    pub link: Option<TraceParent>,
    pub name: Cow<'static, str>,
    pub kind: SpanKind,
    pub began_at: Micros,
    pub ended_at: Micros,
    pub attributes: Vec<(&'static str, Value)>,
    /// The code of the error, if the span has failed.
    pub error: Option<Cow<'static, str>>,
}

/// Receives the spans that are retained. It is called on the path of requests, so it must not wait.
pub trait SpanSink: Send + Sync {
    fn record(&self, spans: Vec<Span>);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_process_computes_the_same_span_of_a_trade() {
        let id = Uuid::from_u128(0x018f_0000_0000_7000_8000_0000_0000_0002);
        assert_eq!(SpanId::of(id).bits(), 0x8000_0000_0000_0002);
        assert_eq!(SpanId::of(Uuid::nil()).bits(), 1, "never the invalid id");
        assert_eq!(SpanId::new(0), None);
    }
}
