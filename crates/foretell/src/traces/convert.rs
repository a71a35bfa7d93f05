//! Converts spans to those of OpenTelemetry.

use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use app::traces::{Micros, Span, SpanId, SpanKind, Value};
use domain::ids::CorrelationId;
use opentelemetry::trace::{self as otel, Link, SpanContext, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};

static SCOPE: LazyLock<InstrumentationScope> = LazyLock::new(|| {
    InstrumentationScope::builder("foretell").with_version(env!("CARGO_PKG_VERSION")).build()
});

pub fn to_otlp(span: Span) -> SpanData {
    let mut attributes: Vec<KeyValue> =
        span.attributes.into_iter().map(|(name, value)| attribute(name, value)).collect();
    let mut status = Status::Unset;
    if let Some(error) = span.error {
        attributes.push(KeyValue::new("error.type", error.clone().into_owned()));
        status = Status::error(error);
    }
    let mut links = SpanLinks::default();
    links.links.extend(span.link.map(|link| Link::with_context(context(link.trace_id, link.span_id))));
    SpanData {
        span_context: context(span.trace_id, span.id),
        parent_span_id: span.parent.map_or(otel::SpanId::INVALID, |id| otel::SpanId::from(id.bits())),
        parent_span_is_remote: span.is_parent_remote,
        span_kind: match span.kind {
            SpanKind::Server => otel::SpanKind::Server,
            SpanKind::Client => otel::SpanKind::Client,
            SpanKind::Internal => otel::SpanKind::Internal,
        },
        name: span.name,
        start_time: time(span.began_at),
        end_time: time(span.ended_at),
        attributes,
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links,
        status,
        instrumentation_scope: SCOPE.clone(),
    }
}

fn context(trace_id: CorrelationId, span_id: SpanId) -> SpanContext {
    let ids = (TraceId::from(trace_id.0), otel::SpanId::from(span_id.bits()));
    // What is sent was chosen, whether by its id or by an error.
    SpanContext::new(ids.0, ids.1, TraceFlags::SAMPLED, false, TraceState::default())
}

fn attribute(name: &'static str, value: Value) -> KeyValue {
    match value {
        Value::Text(text) => KeyValue::new(name, text),
        Value::Number(number) => KeyValue::new(name, number),
    }
}

fn time(at: Micros) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(u64::try_from(at.0).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use app::traces::TraceParent;

    #[test]
    fn a_span_keeps_its_ids_times_and_error() {
        let id = |bits| SpanId::new(bits).unwrap();
        let converted = to_otlp(Span {
            trace_id: CorrelationId(0xab),
            id: id(2),
            parent: Some(id(1)),
            is_parent_remote: true,
            link: Some(TraceParent { trace_id: CorrelationId(0xcd), span_id: id(3) }),
            name: "POST /v1/trades".into(),
            kind: SpanKind::Server,
            began_at: Micros(1_777_464_000_000_001),
            ended_at: Micros(1_777_464_000_000_003),
            attributes: vec![("http.route", "/v1/trades".into()), ("http.response.status_code", 500.into())],
            error: Some("INTERNAL_ERROR".into()),
        });
        assert_eq!(converted.span_context.trace_id().to_string(), format!("{:032x}", 0xab));
        assert_eq!(
            (converted.span_context.span_id(), converted.parent_span_id, converted.parent_span_is_remote),
            (otel::SpanId::from(2), otel::SpanId::from(1), true)
        );
        assert_eq!(converted.links.links[0].span_context.span_id(), otel::SpanId::from(3));
        assert_eq!(converted.status, Status::error("INTERNAL_ERROR"));
        let took = converted.end_time.duration_since(converted.start_time).unwrap();
        assert_eq!(took, Duration::from_micros(2));
        let error = KeyValue::new("error.type", "INTERNAL_ERROR");
        assert!(converted.attributes.contains(&error), "{:?}", converted.attributes);
    }
}
