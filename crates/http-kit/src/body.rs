//! JSON request bodies: limited in size and time, and parsed strictly. Unknown and repeated members
//! are rejected, because a typo must not cost money.

use std::net::IpAddr;
use std::time::Duration;

use app::limits::Budgets;
use app::limits::budget::Budget;
use app::{AppError, Submission};
use axum::body::{Bytes, HttpBody};
use axum::extract::{FromRef, FromRequest, Request};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use domain::ErrorCode;
use domain::trade::FieldError;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use protocol::document::{self, DocumentFaults, DocumentNode, Members};

use super::rate::address_of;
use super::{Problem, Shared};

/// Maximum size of a body.
pub const MAX_BODY_BYTES: usize = 64 * 1024;
/// Maximum time for a body to arrive. It is shorter than the request's deadline, so that the
/// response can promise that nothing was started.
const BODY_DEADLINE: Duration = Duration::from_secs(8);

/// A type that is read from a JSON body.
pub trait JsonBody: Sized {
    /// Reads the members. Missing members and members of the wrong type are left out.
    fn read(members: &mut Members<'_>) -> Self;

    /// Returns the members with missing or invalid values, as far as the body alone determines.
    /// Handlers report them after the replay check. If other members have the wrong type, they are
    /// reported earlier, together with those.
    fn wrong_values(&self) -> Vec<FieldError> {
        Vec::new()
    }
}

#[derive(Debug)]
pub struct Body<T> {
    pub value: T,
    /// The bytes that `value` was read from.
    pub raw: Bytes,
}

impl<T: JsonBody, S: Sync> FromRequest<S> for Body<T>
where
    Shared: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Self::Rejection> {
        if !is_json(request.headers()) {
            return Err(Problem::new(ErrorCode::UnsupportedMediaType));
        }
        let raw = read_body(&Shared::from_ref(state), request).await?;
        let value = parse(&raw).map_err(|errors| AppError::validation(&errors))?;
        Ok(Self { value, raw })
    }
}

/// Reads a whole body, within the budgets of its client.
///
/// # Errors
///
/// `PAYLOAD_TOO_LARGE` if the body exceeds the limit, `REQUEST_TIMEOUT` if it arrives too slowly, and
/// `RATE_LIMIT_EXCEEDED` if the client's network or all clients together are sending too much.
pub async fn read_body(app: &Shared, request: Request) -> Result<Bytes, AppError> {
    let ip = address_of(&request);
    let (parts, body) = request.into_parts();
    collect(app.ctx.budgets(), ip, &parts.headers, body).await
}

/// Like [`read_body`], for a body that was taken from a request with these headers.
pub(super) async fn collect(
    budgets: &Budgets,
    ip: IpAddr,
    headers: &HeaderMap,
    body: axum::body::Body,
) -> Result<Bytes, AppError> {
    check_announced_length(headers)?;
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let _place = budgets.enter(Budget::Bodies, ip).map_err(AppError::from)?;
    match tokio::time::timeout(BODY_DEADLINE, receive(budgets, ip, body)).await {
        Ok(received) => received,
        Err(_) => {
            let detail = "The body did not arrive within 8 seconds. Nothing was stored.";
            Err(AppError::new(ErrorCode::RequestTimeout).detail(detail).submission(Submission::NotSubmitted))
        }
    }
}

/// Receives a body piece by piece. The bytes count as they arrive: a client that only announces many
/// takes nothing from others.
async fn receive(budgets: &Budgets, ip: IpAddr, body: axum::body::Body) -> Result<Bytes, AppError> {
    let mut held = budgets.enter_many(Budget::BodyBytes, ip, 0).map_err(AppError::from)?;
    // Limit the bytes too, because chunked bodies declare no length.
    let mut body = Limited::new(body, MAX_BODY_BYTES);
    let mut received = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            if error.is::<LengthLimitError>() {
                AppError::new(ErrorCode::PayloadTooLarge)
            } else {
                AppError::field("", "must be sent completely").caused_by(error)
            }
        })?;
        // Trailers mean nothing here.
        let Ok(piece) = frame.into_data() else { continue };
        budgets.enlarge(&mut held, piece.len() as u64).map_err(AppError::from)?;
        received.extend_from_slice(&piece);
    }
    Ok(received.into())
}

/// Rejects a body by its announced length, so that the client can stop sending. Routes that read no
/// body reject it too.
pub(super) fn check_announced_length(headers: &HeaderMap) -> Result<(), AppError> {
    let announced = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    let is_too_large = announced.is_some_and(|length| length > MAX_BODY_BYTES as u64);
    if is_too_large { Err(AppError::new(ErrorCode::PayloadTooLarge)) } else { Ok(()) }
}

/// Returns whether there is exactly one `Content-Type`, for uncompressed JSON in UTF-8.
pub fn is_json(headers: &HeaderMap) -> bool {
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    // Two headers are ambiguous: a proxy may interpret another one than this service.
    let (Some(one), None) = (types.next(), types.next()) else { return false };
    let mut parts = one.to_str().unwrap_or_default().split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default();
    let utf8 = |parameter: &str| match parameter.split_once('=') {
        Some((name, value)) if name.eq_ignore_ascii_case("charset") => {
            value.trim_matches('"').eq_ignore_ascii_case("utf-8")
        }
        _ => true,
    };
    // Compressed bodies are rejected, because a small one could expand to gigabytes.
    let plain = headers.get(CONTENT_ENCODING).is_none_or(|encoding| encoding == "identity");
    essence.eq_ignore_ascii_case("application/json") && parts.all(utf8) && plain
}

/// Parses exactly one JSON object. Reports all members that are unknown, repeated or of the wrong
/// type. If there are any, invalid values are reported with them.
pub(super) fn parse<T: JsonBody>(raw: &[u8]) -> Result<T, Vec<FieldError>> {
    if raw.trim_ascii_start().first() != Some(&b'{') {
        return Err(vec![FieldError::new("", "must be a JSON object")]);
    }
    read_object(document::from_json(raw).map_err(|error| vec![error])?)
}

/// Checks that every text of a JSON body, names included, is one that the service can store. For
/// bodies that are then read as derived types; [`Members`] checks its own texts.
///
/// # Errors
///
/// `VALIDATION_FAILED` with the first such text, or with the first syntax error.
pub fn check_texts(raw: &[u8]) -> Result<(), AppError> {
    let checked = document::from_json(raw).and_then(|document| document.check_texts());
    checked.map_err(|error| AppError::validation(&[error]))
}

/// Reads one object of a document like a body of its own. The pointers of errors begin at the
/// object.
pub fn read_object<T: JsonBody>(node: DocumentNode) -> Result<T, Vec<FieldError>> {
    let mut faults = DocumentFaults::default();
    let Some(mut members) = Members::new(node, "", &mut faults) else { return Err(faults.into_errors()) };
    let value = T::read(&mut members);
    members.finish();
    if faults.is_empty() {
        return Ok(value);
    }
    for error in value.wrong_values() {
        // A member of the wrong type was not read, so it would also be reported as missing.
        if !faults.has(&error.pointer) {
            faults.add(error, None);
        }
    }
    Err(faults.into_errors())
}

#[cfg(test)]
mod tests {
    use super::*;
    use app::limits::Limits;
    use app::limits::budget::BudgetShares;
    use axum::http::{HeaderName, HeaderValue};
    use futures::{FutureExt, StreamExt};
    use std::convert::Infallible;
    use std::sync::Arc;

    struct Sample;

    impl JsonBody for Sample {
        fn read(members: &mut Members<'_>) -> Self {
            members.text("side");
            members.integer("outcomeIndex");
            members.text_map("metadata");
            Self
        }

        fn wrong_values(&self) -> Vec<FieldError> {
            ["/side", "/size"].map(|pointer| FieldError::new(pointer, "is required")).into()
        }
    }

    fn refused(raw: impl AsRef<[u8]>) -> String {
        parse::<Sample>(raw.as_ref()).map(drop).unwrap_err().swap_remove(0).pointer
    }

    #[test]
    fn wrong_values_and_forms_are_reported_together_once_per_member() {
        let errors = parse::<Sample>(br#"{"side": 1, "outcomeIndex": "0"}"#).map(drop).unwrap_err();
        let pointers: Vec<_> = errors.into_iter().map(|error| error.pointer).collect();
        assert_eq!(pointers, ["/side", "/outcomeIndex", "/size"]);
    }

    #[test]
    fn a_body_that_differs_from_the_documented_object_is_rejected_at_the_difference() {
        let deep = format!("{{\"metadata\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
        let deep_key = format!("{{\"metadata\":{{\"k\":{}", "{\"k\":".repeat(10_000));
        for (raw, pointer) in [
            ("", ""),
            ("[\"buy\", 0]", ""),
            ("\"text\"", ""),
            ("{} {}", ""),
            ("{}x", ""),
            (r#"{"side": NaN}"#, "/side"),
            (r#"{"side": 1}"#, "/side"),
            (r#"{"side": "a\u0000b"}"#, "/side"),
            (r#"{"sides": "buy"}"#, "/sides"),
            (r#"{"side": "buy", "side": "sell"}"#, "/side"),
            (r#"{"outcomeIndex": "0"}"#, "/outcomeIndex"),
            (r#"{"outcomeIndex": 0.5}"#, "/outcomeIndex"),
            (r#"{"outcomeIndex": 1.0}"#, "/outcomeIndex"),
            (r#"{"metadata": {"k": 1}}"#, "/metadata/k"),
            (r#"{"metadata": {"k": {"l": "m"}}}"#, "/metadata/k"),
            (r#"{"metadata": {"a/b": null}}"#, "/metadata/a~1b"),
            (r#"{"metadata": {"k": "1", "k": "2"}}"#, "/metadata/k"),
            (r#"{"metadata": ["k"]}"#, "/metadata"),
            (&deep, "/metadata"),
            (&deep_key, "/metadata"),
        ] {
            assert_eq!(refused(raw), pointer, "{}", &raw[..raw.len().min(60)]);
        }
        assert_eq!(refused(b"{\"side\": \"\xff\"}"), "/side");
    }

    #[test]
    fn outcome_indices_of_any_size_pass_the_parser() {
        for raw in [
            r#"{"outcomeIndex": -1}"#,
            r#"{"outcomeIndex": 300}"#,
            r#"{"outcomeIndex": 9223372036854775808}"#,
            r#" {"side": null, "metadata": null} "#,
        ] {
            assert!(parse::<Sample>(raw.as_bytes()).is_ok(), "{raw}");
        }
    }

    #[test]
    fn only_uncompressed_json_in_utf_8_is_accepted() {
        let of = |lines: &[(_, &'static str)]| {
            let line =
                |(name, value): &(HeaderName, &'static str)| (name.clone(), HeaderValue::from_static(value));
            is_json(&lines.iter().map(line).collect())
        };
        for good in
            ["application/json", "Application/JSON; charset=utf-8", "application/json;charset=\"UTF-8\""]
        {
            assert!(of(&[(CONTENT_TYPE, good)]), "{good}");
        }
        for bad in ["text/plain", "application/json; charset=latin1", "application/x-www-form-urlencoded", ""]
        {
            assert!(!of(&[(CONTENT_TYPE, bad)]), "{bad}");
        }
        assert!(!of(&[]));
        assert!(!of(&[(CONTENT_TYPE, "application/json"), (CONTENT_TYPE, "application/json")]));
        assert!(!of(&[(CONTENT_TYPE, "application/json"), (CONTENT_ENCODING, "gzip")]));
    }

    async fn collected(limits: &Limits, ip: [u8; 4], body: axum::body::Body) -> Result<Bytes, AppError> {
        collect(limits.budgets(), ip.into(), &HeaderMap::new(), body).await
    }

    #[tokio::test]
    async fn a_body_has_at_most_64_kib() {
        let limits = Limits::memory();
        let of = |len: usize| collected(&limits, [192, 0, 2, 1], axum::body::Body::from(vec![b' '; len]));
        assert_eq!(of(MAX_BODY_BYTES).await.unwrap().len(), MAX_BODY_BYTES);
        assert_eq!(of(0).await.unwrap().len(), 0);
        let refused = of(MAX_BODY_BYTES + 1).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::PayloadTooLarge);
        let budgets = limits.budgets();
        assert_eq!((budgets.in_use(Budget::Bodies), budgets.in_use(Budget::BodyBytes)), (0, 0));
    }

    #[tokio::test]
    async fn bodies_and_their_bytes_are_within_the_budgets_of_a_network_while_they_arrive() {
        let settings = ["bodies.network=2", "body-bytes.network=10"].map(|text| text.parse().unwrap());
        let limits = Limits::memory().with_budgets(BudgetShares::default().with(settings), Arc::default());
        // Each body has sent 4 bytes and hangs.
        let hanging = |ip| {
            let first = futures::stream::once(async { Ok::<_, Infallible>("1234") });
            let pieces = first.chain(futures::stream::pending());
            let mut body = Box::pin(collected(&limits, ip, axum::body::Body::from_stream(pieces)));
            assert!(body.as_mut().now_or_never().is_none());
            body
        };
        let limiter = |refused: AppError| (refused.code, refused.extensions["limiter"].clone());
        let is_over = (ErrorCode::RateLimitExceeded, serde_json::Value::from("bodies"));
        let one = hanging([192, 0, 2, 1]);
        // The bytes of a body that is sent at once count too.
        let large = collected(&limits, [192, 0, 2, 2], axum::body::Body::from("1234567"));
        assert_eq!(limiter(large.await.unwrap_err()), is_over);
        let other = hanging([192, 0, 2, 2]);
        let budgets = limits.budgets();
        assert_eq!((budgets.in_use(Budget::Bodies), budgets.in_use(Budget::BodyBytes)), (2, 8));
        let third = || collected(&limits, [192, 0, 2, 3], axum::body::Body::from("1"));
        assert_eq!(limiter(third().await.unwrap_err()), is_over);
        collected(&limits, [192, 0, 3, 1], axum::body::Body::from("12345678")).await.unwrap();
        drop(one);
        assert_eq!(third().await.unwrap(), "1");
        drop(other);
        assert_eq!((budgets.in_use(Budget::Bodies), budgets.in_use(Budget::BodyBytes)), (0, 0));
    }
}
