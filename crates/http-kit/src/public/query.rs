//! Query parameters of the public API. Unknown parameters are ignored, because web pages append
//! their own. Known parameters with invalid values are rejected.

use std::ops::{Deref, DerefMut};

use app::AppError;
use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use domain::Timestamp;
use store::public::Extent;

use super::Refusal;
use super::route::{PageSize, PublicRoute};
use crate::{RawQuery, Shared, read_known};

/// A type that is read from the query.
pub trait Parameters: Sized {
    const NAMES: &'static [&'static str];

    /// Reads the parameters. Returns `None` if one is missing or malformed, after recording the
    /// error in `asked`.
    fn read(asked: &mut QueryReader<'_, '_>) -> Option<Self>;
}

#[derive(Debug)]
pub struct NoParameters;

impl Parameters for NoParameters {
    const NAMES: &'static [&'static str] = &[];

    fn read(_: &mut QueryReader<'_, '_>) -> Option<Self> {
        Some(Self)
    }
}

#[derive(Debug)]
pub struct Query<T> {
    pub parameters: T,
    /// Path and parameters in canonical form, as cache key: equal for equivalent requests.
    pub name: String,
}

impl<T: Parameters, S: Send + Sync> FromRequestParts<S> for Query<T>
where
    Shared: FromRef<S>,
{
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let app = Shared::from_ref(state);
        let route = parts.extensions.get::<&'static PublicRoute>();
        let page = route.and_then(|route| route.page);
        let query = parts.uri.query().unwrap_or_default();
        let mut name = parts.uri.path().to_owned();
        let read: Result<T, AppError> = read_known(query, T::NAMES, &app.cursor, |given| {
            name.push('?');
            // Only known parameters: unknown ones must not multiply cache entries.
            name.push_str(&given.spelling());
            T::read(&mut QueryReader { given, page })
        });
        Ok(Self { parameters: read?, name })
    }
}

/// The page of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The number of items to skip.
    pub offset: u32,
    /// Maximum number of returned rows.
    pub limit: u32,
}

impl Window {
    /// Returns the same page as the store's type.
    pub const fn extent(self) -> Extent {
        Extent { limit: self.limit, offset: self.offset }
    }
}

/// The parameters of one request, and the errors found so far.
pub struct QueryReader<'a, 'b> {
    given: &'a mut RawQuery<'b>,
    page: Option<PageSize>,
}

impl<'b> Deref for QueryReader<'_, 'b> {
    type Target = RawQuery<'b>;

    fn deref(&self) -> &RawQuery<'b> {
        self.given
    }
}

impl<'b> DerefMut for QueryReader<'_, 'b> {
    fn deref_mut(&mut self) -> &mut RawQuery<'b> {
        self.given
    }
}

/// The end of the year 9998, in seconds since the epoch. Later times may not be representable in
/// the response formats.
const END_S: u64 = 253_370_764_800;

impl QueryReader<'_, '_> {
    /// Returns `limit`, checked against the route's bounds.
    pub fn limit(&mut self) -> Option<u32> {
        let PageSize { default, most } = self.page.unwrap_or(PageSize { default: 1, most: 1 });
        if self.text("limit").is_none() {
            return Some(default);
        }
        let wanted = format!("must be an integer from 1 to {most}");
        self.with("limit", &wanted, |text| number(text).filter(|limit| (1..=most).contains(limit)))
    }

    /// Returns the page of `limit` and `offset`.
    pub fn window(&mut self) -> Option<Window> {
        let limit = self.limit();
        let offset = match self.text("offset") {
            None => Some(0),
            Some(_) => self.with("offset", "must be an integer from 0 to 4294967295", number),
        };
        Some(Window { offset: offset?, limit: limit? })
    }

    /// Returns the meaning of the parameter's word in `words`. The first word is the default.
    pub fn word<T: Copy>(&mut self, name: &str, words: &[(&str, T)]) -> Option<T> {
        let sent = self.word_if_sent(name, words);
        match self.text(name) {
            None => words.first().map(|(_, meaning)| *meaning),
            Some(_) => sent,
        }
    }

    /// Like [`QueryReader::word`], without a default. Returns `None` if the parameter is missing or
    /// invalid; an invalid one is recorded.
    pub fn word_if_sent<T: Copy>(&mut self, name: &str, words: &[(&str, T)]) -> Option<T> {
        let known = words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
        let find = |text: &str| words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
        self.with(name, &format!("must be one of {known}"), find)
    }

    /// Returns `true` or `false`, if it was sent.
    pub fn flag(&mut self, name: &str) -> Option<bool> {
        self.word_if_sent(name, &[("true", true), ("false", false)])
    }

    /// Returns a time in seconds since the epoch, if it was sent.
    pub fn seconds(&mut self, name: &str) -> Option<Timestamp> {
        let seconds = |text: &str| number(text).filter(|at| *at < END_S).map(Timestamp::from_s);
        self.with(name, "must be a whole number of seconds since the Unix epoch", seconds)
    }
}

/// Parses decimal digits. Unlike the standard parser, it rejects a plus sign.
pub fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.parse().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()))
}
