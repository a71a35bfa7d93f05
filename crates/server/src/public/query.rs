//! Query parameters: what is unknown is passed over, since web pages append their own; what is known and wrong is refused.

use std::ops::{Deref, DerefMut};

use app::AppError;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use domain::Timestamp;
use store::public::Extent;

use super::Refusal;
use super::route::{PageSize, PublicRoute};
use crate::http::{Given, Shared, read_known};

/// What a route reads of its query.
pub trait Parameters: Sized {
    /// Every parameter that the route knows.
    const NAMES: &'static [&'static str];

    /// Reads them. `None` where one is missing or malformed, which `asked` has noted.
    fn read(asked: &mut Asked<'_, '_>) -> Option<Self>;
}

/// A route without parameters.
#[derive(Debug)]
pub struct NoParameters;

impl Parameters for NoParameters {
    const NAMES: &'static [&'static str] = &[];

    fn read(_: &mut Asked<'_, '_>) -> Option<Self> {
        Some(Self)
    }
}

/// A route's query parameters.
#[derive(Debug)]
pub struct Query<T> {
    /// The parameters.
    pub parameters: T,
    /// Path and parameters in one spelling: equal for requests that ask for the same.
    pub name: String,
}

impl<T: Parameters> FromRequestParts<Shared> for Query<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, Self::Rejection> {
        let route = parts.extensions.get::<&'static PublicRoute>();
        let page = route.and_then(|route| route.page);
        let query = parts.uri.query().unwrap_or_default();
        let mut name = parts.uri.path().to_owned();
        let read: Result<T, AppError> = read_known(query, T::NAMES, &app.cursor, |given| {
            name.push('?');
            name.push_str(&given.spelling());
            T::read(&mut Asked { given, page })
        });
        Ok(Self { parameters: read?, name })
    }
}

/// The rows that a list is cut to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// How many rows are passed over.
    pub offset: u32,
    /// How many are given at most.
    pub limit: u32,
}

impl Window {
    /// The same in the store's words.
    pub const fn extent(self) -> Extent {
        Extent { limit: self.limit, offset: self.offset }
    }
}

/// The parameters of one request, and what is wrong with them so far.
pub struct Asked<'a, 'b> {
    given: &'a mut Given<'b>,
    page: Option<PageSize>,
}

impl<'b> Deref for Asked<'_, 'b> {
    type Target = Given<'b>;

    fn deref(&self) -> &Given<'b> {
        self.given
    }
}

impl<'b> DerefMut for Asked<'_, 'b> {
    fn deref_mut(&mut self) -> &mut Given<'b> {
        self.given
    }
}

/// The end of the year 9998, in seconds since the epoch: not every later instant can be written.
const END_S: u64 = 253_370_764_800;

impl Asked<'_, '_> {
    /// `limit`, within the route's bounds.
    pub fn limit(&mut self) -> Option<u32> {
        let PageSize { default, most } = self.page.unwrap_or(PageSize { default: 1, most: 1 });
        if self.text("limit").is_none() {
            return Some(default);
        }
        let wanted = format!("must be an integer from 1 to {most}");
        self.with("limit", &wanted, |text| number(text).filter(|limit| (1..=most).contains(limit)))
    }

    /// `limit` and `offset`.
    pub fn window(&mut self) -> Option<Window> {
        let limit = self.limit();
        let offset = match self.text("offset") {
            None => Some(0),
            Some(_) => self.with("offset", "must be an integer from 0 to 4294967295", number),
        };
        Some(Window { offset: offset?, limit: limit? })
    }

    /// One of the words that `words` names, each with what it means; the first where none was sent.
    pub fn word<T: Copy>(&mut self, name: &str, words: &[(&str, T)]) -> Option<T> {
        let sent = self.word_if_sent(name, words);
        match self.text(name) {
            None => words.first().map(|(_, meaning)| *meaning),
            Some(_) => sent,
        }
    }

    /// The same; `None` where none was sent, and where a wrong one was, which is noted.
    pub fn word_if_sent<T: Copy>(&mut self, name: &str, words: &[(&str, T)]) -> Option<T> {
        let known = words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
        let find = |text: &str| words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
        self.with(name, &format!("must be one of {known}"), find)
    }

    /// `true` or `false`, if it was sent.
    pub fn flag(&mut self, name: &str) -> Option<bool> {
        self.word_if_sent(name, &[("true", true), ("false", false)])
    }

    /// Seconds since the epoch, if they were sent.
    pub fn seconds(&mut self, name: &str) -> Option<Timestamp> {
        let seconds = |text: &str| number(text).filter(|at| *at < END_S).map(Timestamp::from_s);
        self.with(name, "must be a number of whole seconds since 1970", seconds)
    }
}

/// Digits alone: the parser of numbers would take a plus sign too.
pub fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.parse().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()))
}
