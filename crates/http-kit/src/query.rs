//! Query parameters, parsed as strictly as bodies. Unknown, repeated, empty and malformed
//! parameters are all reported in one response.

use std::convert::Infallible;
use std::marker::PhantomData;
use std::str::FromStr;

use app::AppError;
use axum::extract::FromRequestParts;
use axum::http::Uri;
use axum::http::request::Parts;
use domain::field_error::segment;
use domain::page::{Page, Position};
use domain::trade::FieldError;
use protocol::CursorCodec;

use super::page::page_size;
use super::{Paging, Problem, RouteInfo, Shared};

/// A type that is read from the query.
pub trait Parameters: Sized {
    const NAMES: &'static [&'static str];

    /// Reads the parameters. Returns `None` if one is missing or malformed, after recording the
    /// error in `given`.
    fn read(given: &mut RawQuery<'_>) -> Option<Self>;
}

/// For routes without parameters: any parameter is rejected.
#[derive(Debug)]
pub struct NoParameters;

impl Parameters for NoParameters {
    const NAMES: &'static [&'static str] = &[];

    fn read(_: &mut RawQuery<'_>) -> Option<Self> {
        Some(Self)
    }
}

#[derive(Debug)]
pub struct Query<T>(pub T);

/// The unvalidated query parameters, for handlers that may have a cached response for the same
/// query.
#[derive(Debug)]
pub struct DeferredQuery<T> {
    pub uri: Uri,
    page_default: Option<u32>,
    parameters: PhantomData<T>,
}

impl<T: Parameters> DeferredQuery<T> {
    /// Validates and returns the parameters.
    pub fn parse(&self, app: &Shared) -> Result<T, Problem> {
        let query = self.uri.query().unwrap_or_default();
        Ok(read(self.uri.path(), query, self.page_default, &app.cursor)?)
    }
}

impl<T> FromRequestParts<Shared> for DeferredQuery<T> {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &Shared) -> Result<Self, Self::Rejection> {
        let route = parts.extensions.get::<&'static RouteInfo>();
        let page_default = route.and_then(|route| route.page_default);
        Ok(Self { uri: parts.uri.clone(), page_default, parameters: PhantomData })
    }
}

impl<T: Parameters> FromRequestParts<Shared> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, Self::Rejection> {
        let asked = DeferredQuery::from_request_parts(parts, app).await;
        asked.map_or_else(|never| match never {}, |asked| asked.parse(app)).map(Self)
    }
}

fn read<T: Parameters>(
    path: &str,
    query: &str,
    page_default: Option<u32>,
    codec: &CursorCodec,
) -> Result<T, AppError> {
    let (pairs, errors) = decode_pairs(query, T::NAMES, Unknown::Refused);
    judge(RawQuery { pairs, errors, path, page_default, codec }, T::read)
}

/// Reads the parameters in `names` from a query, and ignores others.
pub fn read_known<T>(
    query: &str,
    names: &[&str],
    codec: &CursorCodec,
    read: impl FnOnce(&mut RawQuery<'_>) -> Option<T>,
) -> Result<T, AppError> {
    let (pairs, errors) = decode_pairs(query, names, Unknown::Ignored);
    judge(RawQuery { pairs, errors, path: "", page_default: None, codec }, read)
}

fn judge<T>(
    mut given: RawQuery<'_>,
    read: impl FnOnce(&mut RawQuery<'_>) -> Option<T>,
) -> Result<T, AppError> {
    match (read(&mut given), given.errors.as_slice()) {
        (Some(read), []) => Ok(read),
        (None, []) => Err(AppError::internal("a query was rejected without a reason")),
        (_, errors) => Err(AppError::validation(errors)),
    }
}

/// The handling of unknown parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unknown {
    Refused,
    Ignored,
}

/// The parameters of one request, and the errors found so far.
pub struct RawQuery<'a> {
    pairs: Vec<(String, String)>,
    errors: Vec<FieldError>,
    path: &'a str,
    page_default: Option<u32>,
    codec: &'a CursorCodec,
}

impl RawQuery<'_> {
    /// Returns the parameter's text, if it was sent.
    pub fn text(&mut self, name: &str) -> Option<String> {
        self.pairs.iter().find(|(given, _)| given == name).map(|(_, value)| value.clone())
    }

    /// Parses the parameter, if it was sent. Records an error if `parse` returns `None`.
    pub fn with<T>(&mut self, name: &str, detail: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        let text = self.text(name)?;
        let parsed = parse(&text);
        if parsed.is_none() {
            self.errors.push(FieldError::new(format!("/{name}"), detail).got(&text));
        }
        parsed
    }

    /// Parses the parameter as a `T`, if it was sent.
    pub fn parsed<T: FromStr>(&mut self, name: &str, detail: &str) -> Option<T> {
        self.with(name, detail, |text| text.parse().ok())
    }

    /// Parses a required parameter.
    pub fn required<T>(&mut self, name: &str, detail: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        if self.text(name).is_none() {
            self.wrong(name, &format!("is required: {}", detail.trim_start_matches("must be ")));
            return None;
        }
        self.with(name, detail, parse)
    }

    /// Parses a comma-separated list, or returns an empty one if it was not sent.
    pub fn list<T>(&mut self, name: &str, detail: &str, parse: impl Fn(&str) -> Option<T>) -> Vec<T> {
        let items = self.with(name, detail, |text| text.split(',').map(|item| parse(item.trim())).collect());
        self.sort_items(name);
        items.unwrap_or_default()
    }

    /// Sorts and deduplicates the items of a list, so that a cursor stays valid if the client sends
    /// the same filter in another order.
    fn sort_items(&mut self, name: &str) {
        let list = self.pairs.iter_mut().find(|(given, _)| given == name);
        let Some((_, text)) = list else { return };
        let mut items: Vec<_> = text.split(',').map(str::trim).collect();
        items.sort_unstable();
        items.dedup();
        *text = items.join(",");
    }

    /// Returns `limit`, or the route's default page size.
    pub fn limit(&mut self) -> Option<u32> {
        match self.text("limit") {
            None => Some(self.page_default.unwrap_or(1)),
            Some(_) => self.with(
                "limit",
                "must be an integer of at least 1 (more than 100 is reduced to 100)",
                page_size,
            ),
        }
    }

    /// Decodes `cursor`, which must have been issued for this path and `filters`. Returns `None` if
    /// it is invalid, and `Some(None)` if it was not sent.
    pub fn cursor(&mut self, filters: &str) -> Option<Option<Position>> {
        let after = self.text("cursor").map(|text| self.codec.decode(self.path, filters, &text)).transpose();
        let after = after.map_err(|_| {
            self.wrong("cursor", "must be a cursor that this list returned for the same filters")
        });
        after.ok()
    }

    /// Returns the page of `limit` and `cursor`. The cursor is bound to the path and all other
    /// parameters.
    pub fn paging(&mut self) -> Option<Paging> {
        let limit = self.limit();
        let mut filters: Vec<_> =
            self.pairs.iter().filter(|(name, _)| name != "limit" && name != "cursor").collect();
        // The order of parameters must not invalidate a cursor.
        filters.sort();
        let filters = serde_json::to_string(&filters).unwrap_or_default();
        let after = self.cursor(&filters);
        Some(Paging { page: Page { limit: limit?, after: after? }, route: self.path.to_owned(), filters })
    }

    /// Returns the known parameters in canonical form: sorted and serialized.
    pub fn spelling(&self) -> String {
        let mut pairs: Vec<_> = self.pairs.iter().collect();
        pairs.sort();
        serde_json::to_string(&pairs).unwrap_or_default()
    }

    /// Records an error for a parameter.
    pub fn wrong(&mut self, name: &str, detail: &str) {
        self.errors.push(FieldError::new(format!("/{name}"), detail));
    }
}

/// Decodes the pairs of `query`, and returns them with the syntax errors.
fn decode_pairs(query: &str, known: &[&str], unknown: Unknown) -> (Vec<(String, String)>, Vec<FieldError>) {
    let mut pairs: Vec<(String, String)> = Vec::new();
    let mut errors = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decoded = decode(name);
        let is_known = decoded.as_deref().is_some_and(|name| known.contains(&name));
        // Checked before decoding errors, so that a malformed unknown parameter is ignored too.
        if unknown == Unknown::Ignored && !is_known {
            continue;
        }
        let Some(name) = decoded else {
            errors.push(FieldError::new("", "must have names and values in percent-encoded UTF-8"));
            continue;
        };
        let pointer = format!("/{}", segment(&name));
        if !is_known {
            errors
                .push(FieldError::new(pointer, "must not be sent: this route does not have this parameter"));
            continue;
        }
        if pairs.iter().any(|(earlier, _)| *earlier == name) {
            errors.push(FieldError::new(pointer, "must be sent only once"));
            continue;
        }
        match decode(value) {
            None => {
                errors.push(FieldError::new(pointer, "must be percent-encoded UTF-8 without NUL characters"))
            }
            Some(value) if value.is_empty() => errors.push(FieldError::new(pointer, "must not be empty")),
            Some(value) => pairs.push((name, value)),
        }
    }
    (pairs, errors)
}

/// Decodes a percent-encoded name or value. Returns `None` if it is malformed or contains NUL,
/// which PostgreSQL cannot store.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            // HTML forms encode spaces as plus signs.
            b'+' => b' ',
            b'%' => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                let (high, low) = (digit(rest.next()?)?, digit(rest.next()?)?);
                u8::try_from(high * 16 + low).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use domain::Timestamp;
    use domain::page::Position;
    use domain::trade::Side;

    static CODEC: LazyLock<CursorCodec> = LazyLock::new(|| CursorCodec::new([1; 32]));

    #[derive(Debug)]
    struct Sample {
        side: Option<Side>,
        words: Vec<String>,
        text: Option<String>,
        paging: Paging,
    }

    impl Parameters for Sample {
        const NAMES: &'static [&'static str] = &["side", "words", "q", "limit", "cursor"];

        fn read(given: &mut RawQuery<'_>) -> Option<Self> {
            let side = given.parsed("side", "must be buy or sell");
            let words = given.list("words", "must be a list", |word| Some(word.to_owned()));
            Some(Self { side, words, text: given.text("q"), paging: given.paging()? })
        }
    }

    fn sample(query: &str) -> Result<Sample, Vec<String>> {
        read("/v1/samples", query, Some(20), &CODEC).map_err(|error| {
            let errors = error.extensions["errors"].as_array().unwrap();
            errors.iter().map(|error| error["pointer"].as_str().unwrap().to_owned()).collect()
        })
    }

    #[test]
    fn known_parameters_are_read_and_absent_ones_have_their_defaults() {
        let read = sample("q=a%20b+%C3%A9&side=sell&limit=1000").unwrap();
        assert_eq!((read.side, read.text.as_deref()), (Some(Side::Sell), Some("a b é")));
        assert_eq!(read.paging.page.limit, 100);
        assert_eq!(sample("").unwrap().paging.page, Page { limit: 20, after: None });
    }

    #[test]
    fn unknown_repeated_empty_and_malformed_parameters_are_reported_together() {
        assert_eq!(sample("side=hold&limit=0&offset=5").unwrap_err(), ["/offset", "/side", "/limit"]);
        for (query, pointer) in [
            ("side=buy&side=buy", "/side"),
            ("q=", "/q"),
            ("q", "/q"),
            ("q=%", "/q"),
            ("q=%zz", "/q"),
            ("q=%ff", "/q"),
            ("q=%00", "/q"),
            ("%ff=1", ""),
            ("a/b=1", "/a~1b"),
            ("Side=buy", "/Side"),
            ("cursor=abc", "/cursor"),
        ] {
            assert_eq!(sample(query).unwrap_err(), [pointer], "{query}");
        }
    }

    #[test]
    fn a_cursor_is_bound_to_its_path_and_filters_but_not_to_its_limit() {
        let position = |_: &i64| Position { created_at: Timestamp::from_ms(5), id: "x".into() };
        let paging = sample("side=buy&q=a").unwrap().paging;
        let cursor = paging.cut(&CODEC, (0..21).collect(), position).1.cursor.unwrap();
        assert!(
            sample(&format!("q=a&side=buy&limit=3&cursor={cursor}")).unwrap().paging.page.after.is_some()
        );
        for changed in ["side=buy&q=b", "side=buy", "q=a%26side%3Dbuy"] {
            assert_eq!(sample(&format!("{changed}&cursor={cursor}")).unwrap_err(), ["/cursor"], "{changed}");
        }
        let paging = sample("words=b,a").unwrap().paging;
        let cursor = paging.cut(&CODEC, (0..21).collect(), position).1.cursor.unwrap();
        for same in ["words=a,b", "words=a,%20b,a"] {
            assert!(sample(&format!("{same}&cursor={cursor}")).is_ok(), "{same}");
        }
        assert_eq!(sample(&format!("words=a&cursor={cursor}")).unwrap_err(), ["/cursor"]);
        assert_eq!(sample("words=b,a").unwrap().words, ["b", "a"]);
        let cursor =
            sample("side=buy&q=a").unwrap().paging.cut(&CODEC, (0..21).collect(), position).1.cursor.unwrap();
        let elsewhere =
            read::<Sample>("/v1/others", &format!("side=buy&q=a&cursor={cursor}"), Some(20), &CODEC);
        assert!(elsewhere.is_err());
    }
}
