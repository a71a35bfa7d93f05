//! The caller's trace id, from the W3C `traceparent` header.

use std::convert::Infallible;

use app::traces::{SpanId, TraceParent};
use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use domain::ids::CorrelationId;

/// The trace id of a well-formed `traceparent` header. Malformed headers are ignored, as the W3C
/// recommendation requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traceparent(pub Option<CorrelationId>);

impl<S: Sync> FromRequestParts<S> for Traceparent {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(Self(trace_parent(&parts.headers).map(|parent| parent.trace_id)))
    }
}

/// Returns the caller's span, from a well-formed header.
pub(super) fn trace_parent(headers: &HeaderMap) -> Option<TraceParent> {
    let mut values = headers.get_all("traceparent").iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let mut parts = value.to_str().ok()?.split('-');
    let (version, trace, parent, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let hex =
        |text: &str, len| text.len() == len && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let well_formed = version == "00" && parts.next().is_none() && hex(parent, 16) && hex(flags, 2);
    if !well_formed {
        return None;
    }
    // All zeros are invalid by the recommendation.
    let span_id = SpanId::new(u64::from_str_radix(parent, 16).ok()?)?;
    Some(TraceParent { trace_id: trace.parse().ok()?, span_id })
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};

    #[test]
    fn only_a_well_formed_header_of_version_00_names_a_trace() {
        let of = |text: &'static str| {
            let line = (HeaderName::from_static("traceparent"), HeaderValue::from_static(text));
            let parent = trace_parent(&[line].into_iter().collect())?;
            Some(format!("{} {:016x}", parent.trace_id, parent.span_id.bits()))
        };
        let id = "4bf92f3577b34da6a3ce929d0e0e4736 00f067aa0ba902b7";
        assert_eq!(of("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").as_deref(), Some(id));
        for text in [
            "",
            "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
