//! Query parameters, as strict as bodies: what is unknown, repeated, empty or malformed is named, all of it at once.

use std::convert::Infallible;
use std::marker::PhantomData;
use std::str::FromStr;

use app::AppError;
use axum::extract::FromRequestParts;
use axum::http::Uri;
use axum::http::request::Parts;
use domain::ErrorCode;
use domain::field_error::segment;
use domain::page::{CursorCodec, Page, Position};
use domain::trade::FieldError;

use super::page::page_size;
use super::{Paging, Problem, RouteInfo, Shared};

/// What a route reads of its query.
pub trait Parameters: Sized {
    /// Every parameter that the route knows.
    const NAMES: &'static [&'static str];

    /// Reads them. `None` where one is missing or malformed, which `given` has noted.
    fn read(given: &mut Given<'_>) -> Option<Self>;
}

/// The parameters of a route that knows none: whatever is sent is refused.
#[derive(Debug)]
pub struct NoParameters;

impl Parameters for NoParameters {
    const NAMES: &'static [&'static str] = &[];

    fn read(_: &mut Given<'_>) -> Option<Self> {
        Some(Self)
    }
}

/// A route's query parameters.
#[derive(Debug)]
pub struct Query<T>(pub T);

/// A route's query parameters as they came, for handlers that may have kept the answer to the same ones.
#[derive(Debug)]
pub struct Asked<T> {
    /// The path and the query.
    pub uri: Uri,
    page_default: Option<u32>,
    parameters: PhantomData<T>,
}

impl<T: Parameters> Asked<T> {
    /// The parameters, judged.
    pub fn judge(&self, app: &Shared) -> Result<T, Problem> {
        let query = self.uri.query().unwrap_or_default();
        Ok(read(self.uri.path(), query, self.page_default, &app.cursor)?)
    }
}

impl<T> FromRequestParts<Shared> for Asked<T> {
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
        let asked = Asked::from_request_parts(parts, app).await;
        asked.map_or_else(|never| match never {}, |asked| asked.judge(app)).map(Self)
    }
}

fn read<T: Parameters>(
    path: &str,
    query: &str,
    page_default: Option<u32>,
    codec: &CursorCodec,
) -> Result<T, AppError> {
    let (pairs, errors) = decode_pairs(query, T::NAMES, Unknown::Refused);
    judge(Given { pairs, errors, path, page_default, codec }, T::read)
}

/// The parameters that `names` names and how `read` reads them, from a query that may hold others too.
pub(crate) fn read_known<T>(
    query: &str,
    names: &[&str],
    codec: &CursorCodec,
    read: impl FnOnce(&mut Given<'_>) -> Option<T>,
) -> Result<T, AppError> {
    let (pairs, errors) = decode_pairs(query, names, Unknown::Ignored);
    judge(Given { pairs, errors, path: "", page_default: None, codec }, read)
}

fn judge<T>(mut given: Given<'_>, read: impl FnOnce(&mut Given<'_>) -> Option<T>) -> Result<T, AppError> {
    match (read(&mut given), given.errors.as_slice()) {
        (Some(read), []) => Ok(read),
        (None, []) => {
            Err(AppError::new(ErrorCode::InternalError).caused_by("a query was refused without a reason"))
        }
        (_, errors) => Err(AppError::validation(errors)),
    }
}

/// What becomes of a parameter that a route does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unknown {
    Refused,
    Ignored,
}

/// The parameters of one request, and what is wrong with them so far.
pub struct Given<'a> {
    pairs: Vec<(String, String)>,
    errors: Vec<FieldError>,
    path: &'a str,
    page_default: Option<u32>,
    codec: &'a CursorCodec,
}

impl Given<'_> {
    /// The parameter's text, if it was sent.
    pub fn text(&mut self, name: &str) -> Option<String> {
        self.pairs.iter().find(|(given, _)| given == name).map(|(_, value)| value.clone())
    }

    /// The parameter read by `parse`, if it was sent; noted as malformed where `parse` gives nothing.
    pub fn with<T>(&mut self, name: &str, detail: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        let text = self.text(name)?;
        let parsed = parse(&text);
        if parsed.is_none() {
            self.errors.push(FieldError::new(format!("/{name}"), detail).got(&text));
        }
        parsed
    }

    /// The parameter as a `T`, if it was sent.
    pub fn parsed<T: FromStr>(&mut self, name: &str, detail: &str) -> Option<T> {
        self.with(name, detail, |text| text.parse().ok())
    }

    /// A parameter that must be sent, read by `parse`.
    pub fn required<T>(&mut self, name: &str, detail: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        if self.text(name).is_none() {
            self.wrong(name, &format!("is required: {}", detail.trim_start_matches("must be ")));
            return None;
        }
        self.with(name, detail, parse)
    }

    /// A comma-separated list, each item read by `parse`; empty where it was not sent.
    pub fn list<T>(&mut self, name: &str, detail: &str, parse: impl Fn(&str) -> Option<T>) -> Vec<T> {
        let items = self.with(name, detail, |text| text.split(',').map(|item| parse(item.trim())).collect());
        self.sort_items(name);
        items.unwrap_or_default()
    }

    /// Spells a list in one way whatever the order of its items: a cursor belongs to what is asked for, not to how.
    fn sort_items(&mut self, name: &str) {
        let list = self.pairs.iter_mut().find(|(given, _)| given == name);
        let Some((_, text)) = list else { return };
        let mut items: Vec<_> = text.split(',').map(str::trim).collect();
        items.sort_unstable();
        items.dedup();
        *text = items.join(",");
    }

    /// `limit`, or else the route's page size.
    pub fn limit(&mut self) -> Option<u32> {
        match self.text("limit") {
            None => Some(self.page_default.unwrap_or(1)),
            Some(_) => {
                self.with("limit", "must be an integer from 1; more than 100 is reduced to 100", page_size)
            }
        }
    }

    /// The position of `cursor`, which must be one of this path and of `filters`; `None` where it is not, and inside where
    /// none was sent.
    pub fn cursor(&mut self, filters: &str) -> Option<Option<Position>> {
        let after = self.text("cursor").map(|text| self.codec.decode(self.path, filters, &text)).transpose();
        let after = after
            .map_err(|_| self.wrong("cursor", "must be a cursor that this list gave for the same filters"));
        after.ok()
    }

    /// `limit` and `cursor`, the cursor bound to this path and to every other parameter.
    pub fn paging(&mut self) -> Option<Paging> {
        let limit = self.limit();
        let mut filters: Vec<_> =
            self.pairs.iter().filter(|(name, _)| name != "limit" && name != "cursor").collect();
        filters.sort();
        let filters = serde_json::to_string(&filters).unwrap_or_default();
        let after = self.cursor(&filters);
        Some(Paging { page: Page { limit: limit?, after: after? }, route: self.path.to_owned(), filters })
    }

    /// What was sent of the known parameters, sorted, in one spelling.
    pub(crate) fn spelling(&self) -> String {
        let mut pairs: Vec<_> = self.pairs.iter().collect();
        pairs.sort();
        serde_json::to_string(&pairs).unwrap_or_default()
    }

    /// Notes what is wrong with a parameter.
    pub fn wrong(&mut self, name: &str, detail: &str) {
        self.errors.push(FieldError::new(format!("/{name}"), detail));
    }
}

/// The decoded pairs of `query`, and what is wrong with them before their meaning is asked.
fn decode_pairs(query: &str, known: &[&str], unknown: Unknown) -> (Vec<(String, String)>, Vec<FieldError>) {
    let mut pairs: Vec<(String, String)> = Vec::new();
    let mut errors = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decoded = decode(name);
        let is_known = decoded.as_deref().is_some_and(|name| known.contains(&name));
        if unknown == Unknown::Ignored && !is_known {
            continue;
        }
        let Some(name) = decoded else {
            errors.push(FieldError::new("", "must have names and values in percent-encoded UTF-8"));
            continue;
        };
        let pointer = format!("/{}", segment(&name));
        if !is_known {
            errors.push(FieldError::new(pointer, "must not be sent: this route has no such parameter"));
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

/// Undoes the encoding of one name or value; `None` where it is malformed or holds what no database text can.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
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
    use super::*;
    use domain::Timestamp;
    use domain::page::Position;
    use domain::trade::Side;

    const CODEC: CursorCodec = CursorCodec::new([1; 32]);

    #[derive(Debug)]
    struct Sample {
        side: Option<Side>,
        words: Vec<String>,
        text: Option<String>,
        paging: Paging,
    }

    impl Parameters for Sample {
        const NAMES: &'static [&'static str] = &["side", "words", "q", "limit", "cursor"];

        fn read(given: &mut Given<'_>) -> Option<Self> {
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
    fn unknown_repeated_empty_and_malformed_parameters_are_named_all_at_once() {
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
    fn a_cursor_holds_for_its_path_and_filters_and_for_any_limit() {
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
