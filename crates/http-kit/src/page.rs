//! Pagination of lists: `limit` and `cursor` in, a page and the next cursor out.

use domain::page::{Page, PagePosition};
use protocol::CursorCodec;

use super::Pagination;

/// A requested page, and the values that its cursors are bound to.
#[derive(Debug, Clone)]
pub struct Paging {
    pub page: Page,
    /// The path. A cursor of another list is rejected.
    pub(super) route: String,
    /// The filters in canonical form. They must not change between the pages of a list.
    pub(super) filters: String,
}

impl Paging {
    /// Truncates `rows` to the page and returns its pagination. If there are further rows, the
    /// store returns one row more than the limit.
    pub fn cut<T>(
        &self,
        codec: &CursorCodec,
        mut rows: Vec<T>,
        position: impl Fn(&T) -> PagePosition,
    ) -> (Vec<T>, Pagination) {
        let limit = self.page.limit as usize;
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        let last = rows.last().filter(|_| has_more);
        let cursor = last.map(|row| codec.encode(&self.route, &self.filters, &position(row)));
        (rows, Pagination { cursor, has_more, limit: self.page.limit })
    }
}

/// Parses `limit`. Returns `None` if it is not a positive integer. Values above `most` are reduced to
/// it.
pub(super) fn page_size(text: &str, most: u32) -> Option<u32> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    // Digits that overflow are an integer above the maximum.
    let size = text.parse().unwrap_or(u32::MAX).min(most);
    (size > 0).then_some(size)
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use domain::Timestamp;

    static CODEC: LazyLock<CursorCodec> = LazyLock::new(|| CursorCodec::new([1; 32]));

    fn paging(limit: u32) -> Paging {
        Paging { page: Page { limit, after: None }, route: "/v1/trades".into(), filters: String::new() }
    }

    fn position(row: &i64) -> PagePosition {
        PagePosition { created_at: Timestamp::from_ms(*row), id: row.to_string() }
    }

    #[test]
    fn a_limit_is_an_integer_from_1_and_clamped_at_100() {
        let cases = [
            ("1", Some(1)),
            ("100", Some(100)),
            ("101", Some(100)),
            ("99999999999999999999", Some(100)),
            ("0", None),
            ("-1", None),
            ("+5", None),
            ("1.5", None),
            ("", None),
            ("ten", None),
        ];
        for (text, size) in cases {
            assert_eq!(page_size(text, 100), size, "{text}");
        }
    }

    #[test]
    fn the_cursor_continues_after_the_last_row() {
        let (rows, pagination) = paging(2).cut(&CODEC, vec![9, 8, 7], position);
        assert_eq!(rows, [9, 8]);
        assert!(pagination.has_more);
        let cursor = pagination.cursor.unwrap();
        assert_eq!(CODEC.decode("/v1/trades", "", &cursor), Ok(position(&8)));
    }

    #[test]
    fn the_last_page_has_no_cursor_even_if_it_is_full() {
        let (rows, pagination) = paging(2).cut(&CODEC, vec![9, 8], position);
        assert_eq!(rows.len(), 2);
        assert_eq!(pagination, Pagination { cursor: None, has_more: false, limit: 2 });
    }
}
