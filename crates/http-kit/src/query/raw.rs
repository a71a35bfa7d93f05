//! The parameters of one request, and methods that read them.

use std::str::FromStr;

use domain::Timestamp;
use domain::page::{Page, PagePosition};
use domain::trade::FieldError;
use protocol::CursorCodec;
use store::public::PageRange;

use super::QueryRules;
use crate::page::page_size;
use crate::{PageSize, Paging, Surface};

/// The end of the year 9998, in seconds since the epoch. Later times may not be representable in
/// the response formats.
const END_S: u64 = 253_370_764_800;

/// The parameters of one request, and the errors found so far.
pub struct RawQuery<'a> {
    pub(super) pairs: Vec<(String, String)>,
    pub(super) errors: Vec<FieldError>,
    pub(super) path: &'a str,
    pub(super) rules: QueryRules,
    pub(super) codec: &'a CursorCodec,
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

    /// Returns the meaning of the parameter's word in `words`. The first word is the default.
    pub fn word<T: Copy>(&mut self, name: &str, words: &[(&str, T)]) -> Option<T> {
        let sent = self.word_if_sent(name, words);
        match self.text(name) {
            None => words.first().map(|(_, meaning)| *meaning),
            Some(_) => sent,
        }
    }

    /// Like [`RawQuery::word`], without a default. Returns `None` if the parameter is missing or
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

    /// Returns `limit`, or the route's default page size. The trading API reduces a limit above the
    /// maximum to it, the public API rejects it.
    pub fn limit(&mut self) -> Option<u32> {
        let PageSize { default, most } = self.rules.page;
        if self.text("limit").is_none() {
            return Some(default);
        }
        match self.rules.surface {
            Surface::Trading => {
                let wanted =
                    format!("must be an integer of at least 1 (more than {most} is reduced to {most})");
                self.with("limit", &wanted, |text| page_size(text, most))
            }
            Surface::Public | Surface::Web => {
                let wanted = format!("must be an integer from 1 to {most}");
                self.with("limit", &wanted, |text| number(text).filter(|limit| (1..=most).contains(limit)))
            }
        }
    }

    /// Returns the page of `limit` and `offset`.
    pub fn extent(&mut self) -> Option<PageRange> {
        let limit = self.limit();
        let offset = match self.text("offset") {
            None => Some(0),
            Some(_) => self.with("offset", "must be an integer from 0 to 4294967295", number),
        };
        Some(PageRange { offset: offset?, limit: limit? })
    }

    /// Decodes `cursor`, which must have been issued for this path and `filters`. Returns `None` if
    /// it is invalid, and `Some(None)` if it was not sent.
    pub fn cursor(&mut self, filters: &str) -> Option<Option<PagePosition>> {
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

/// Parses decimal digits. Unlike the standard parser, it rejects a plus sign.
pub fn number<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()))
}
