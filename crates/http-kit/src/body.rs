//! JSON request bodies: limited in size and time, and parsed strictly. Unknown and repeated members
//! are rejected, because a typo must not cost money.

use std::time::Duration;

use app::{AppError, Submission};
use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use domain::ErrorCode;
use domain::trade::FieldError;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use protocol::document::{self, DocumentFaults, DocumentNode, Members};

use super::Problem;

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

impl<T: JsonBody, S: Sync> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Self::Rejection> {
        if !is_json(request.headers()) {
            return Err(Problem::new(ErrorCode::UnsupportedMediaType));
        }
        let raw = read_body(request).await?;
        let value = parse(&raw).map_err(|errors| AppError::validation(&errors))?;
        Ok(Self { value, raw })
    }
}

/// Reads a whole body.
///
/// # Errors
///
/// `PAYLOAD_TOO_LARGE` if the body exceeds the limit, and `REQUEST_TIMEOUT` if it arrives too
/// slowly.
pub async fn read_body(request: Request) -> Result<Bytes, AppError> {
    let (parts, body) = request.into_parts();
    collect(&parts.headers, body).await
}

/// Like [`read_body`], for a body that was taken from a request with these headers.
pub(super) async fn collect(headers: &HeaderMap, body: axum::body::Body) -> Result<Bytes, AppError> {
    check_announced_length(headers)?;
    // Limit the bytes too, because chunked bodies declare no length.
    let body = Limited::new(body, MAX_BODY_BYTES).collect();
    match tokio::time::timeout(BODY_DEADLINE, body).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.downcast_ref::<LengthLimitError>().is_some() => {
            Err(AppError::new(ErrorCode::PayloadTooLarge))
        }
        Ok(Err(error)) => Err(AppError::field("", "must be sent completely").caused_by(error)),
        Err(_) => {
            let detail = "The body did not arrive within 8 seconds. Nothing was stored.";
            Err(AppError::new(ErrorCode::RequestTimeout).detail(detail).submission(Submission::NotSubmitted))
        }
    }
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
    use axum::http::{HeaderName, HeaderValue};

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

    #[tokio::test]
    async fn a_body_has_at_most_64_kib() {
        let of = |len: usize| Request::new(axum::body::Body::from(vec![b' '; len]));
        assert!(read_body(of(MAX_BODY_BYTES)).await.is_ok());
        let refused = read_body(of(MAX_BODY_BYTES + 1)).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::PayloadTooLarge);
    }
}
