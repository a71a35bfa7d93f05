//! Query parameters, parsed as strictly as bodies. Repeated, empty and malformed parameters are all
//! reported in one response, and so are unknown ones on the trading API.

mod pairs;
mod raw;

use std::convert::Infallible;
use std::marker::PhantomData;

use app::AppError;
use axum::extract::{FromRef, FromRequestParts};
use axum::http::Uri;
use axum::http::request::Parts;
use protocol::CursorCodec;

use super::{PageSize, Problem, Route, Shared, Surface};
use pairs::decode_pairs;
pub(crate) use pairs::is_sent;

pub use raw::{RawQuery, number};

/// A type that is read from the query.
pub trait Parameters: Sized {
    const NAMES: &'static [&'static str];

    /// Reads the parameters. Returns `None` if one is missing or malformed, after recording the
    /// error in `given`.
    fn read(given: &mut RawQuery<'_>) -> Option<Self>;
}

/// For routes without parameters.
#[derive(Debug)]
pub struct NoParameters;

impl Parameters for NoParameters {
    const NAMES: &'static [&'static str] = &[];

    fn read(_: &mut RawQuery<'_>) -> Option<Self> {
        Some(Self)
    }
}

/// The properties of a route that decide how its query is read.
#[derive(Debug, Clone, Copy)]
struct QueryRules {
    surface: Surface,
    page: PageSize,
}

impl QueryRules {
    /// Returns the rules of the route that the guard has stored in the request.
    fn of(parts: &Parts) -> Self {
        let route = parts.extensions.get::<&'static Route>();
        let page = route.and_then(|route| route.page).unwrap_or(PageSize { default: 1, most: 1 });
        Self { surface: route.map_or(Surface::Trading, |route| route.surface), page }
    }
}

/// The parameters of the query.
#[derive(Debug)]
pub struct Query<T>(pub T);

/// The parameters of the query, for handlers that may have a cached response for them.
#[derive(Debug)]
pub struct NamedQuery<T> {
    pub parameters: T,
    /// Path and parameters in canonical form, as cache key: equal for equivalent requests.
    pub name: String,
}

/// The unvalidated query parameters, for handlers that may have a cached response for the same
/// query.
#[derive(Debug)]
pub struct DeferredQuery<T> {
    pub uri: Uri,
    rules: QueryRules,
    parameters: PhantomData<T>,
}

impl<T: Parameters> DeferredQuery<T> {
    /// Validates and returns the parameters.
    pub fn parse(&self, app: &Shared) -> Result<T, Problem> {
        self.parse_with(app, T::read)
    }

    fn parse_with<X>(
        &self,
        app: &Shared,
        parse: impl FnOnce(&mut RawQuery<'_>) -> Option<X>,
    ) -> Result<X, Problem> {
        let (path, query) = (self.uri.path(), self.uri.query().unwrap_or_default());
        Ok(read(path, query, T::NAMES, self.rules, &app.cursor, parse)?)
    }
}

impl<T, S: Sync> FromRequestParts<S> for DeferredQuery<T> {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(Self { uri: parts.uri.clone(), rules: QueryRules::of(parts), parameters: PhantomData })
    }
}

impl<T: Parameters, S: Sync> FromRequestParts<S> for Query<T>
where
    Shared: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let Ok(asked) = DeferredQuery::from_request_parts(parts, state).await;
        asked.parse(&Shared::from_ref(state)).map(Self)
    }
}

impl<T: Parameters, S: Sync> FromRequestParts<S> for NamedQuery<T>
where
    Shared: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let Ok(asked) = DeferredQuery::<T>::from_request_parts(parts, state).await;
        asked.parse_with(&Shared::from_ref(state), |given| {
            // Only known parameters: unknown ones must not multiply cache entries.
            let name = [asked.uri.path(), "?", &given.spelling()].concat();
            Some(Self { parameters: T::read(given)?, name })
        })
    }
}

/// Decodes a query with the parameters `names`, and reads them with `parse`. Reports all invalid
/// parameters at once.
fn read<T>(
    path: &str,
    query: &str,
    names: &[&str],
    rules: QueryRules,
    codec: &CursorCodec,
    parse: impl FnOnce(&mut RawQuery<'_>) -> Option<T>,
) -> Result<T, AppError> {
    let (pairs, errors) = decode_pairs(query, names, rules.surface);
    let mut given = RawQuery { pairs, errors, path, rules, codec };
    match (parse(&mut given), given.errors.as_slice()) {
        (Some(read), []) => Ok(read),
        (None, []) => Err(AppError::internal("a query was rejected without a reason")),
        (_, errors) => Err(AppError::validation(errors)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use crate::Paging;
    use domain::Timestamp;
    use domain::page::{Page, PagePosition};
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

    fn read_sample(path: &str, query: &str) -> Result<Sample, AppError> {
        let rules = QueryRules { surface: Surface::Trading, page: PageSize { default: 20, most: 100 } };
        read(path, query, Sample::NAMES, rules, &CODEC, Sample::read)
    }

    fn sample(query: &str) -> Result<Sample, Vec<String>> {
        read_sample("/v1/samples", query).map_err(|error| {
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
        let position = |_: &i64| PagePosition { created_at: Timestamp::from_ms(5), id: "x".into() };
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
        let elsewhere = read_sample("/v1/others", &format!("side=buy&q=a&cursor={cursor}"));
        assert!(elsewhere.is_err());
    }
}
