//! Walking a list: `limit` and `cursor` in, a page and the next cursor out.

use domain::page::{CursorCodec, MAX_PAGE, Page, Position};

use super::Pagination;

/// One page that was asked for, and what its cursors are bound to.
#[derive(Debug, Clone)]
pub struct Paging {
    /// The page.
    pub page: Page,
    /// The path: a cursor of another list is refused.
    pub(super) route: String,
    /// The filters in one spelling: they must not change during a walk.
    pub(super) filters: String,
}

impl Paging {
    /// Cuts what the store gave (one row more than the limit where more follow) to the page, and says how to go on.
    pub fn cut<T>(
        &self,
        codec: &CursorCodec,
        mut rows: Vec<T>,
        position: impl Fn(&T) -> Position,
    ) -> (Vec<T>, Pagination) {
        let limit = self.page.limit as usize;
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        let last = rows.last().filter(|_| has_more);
        let cursor = last.map(|row| codec.encode(&self.route, &self.filters, &position(row)));
        (rows, Pagination { cursor, has_more, limit: self.page.limit })
    }
}

/// The applied page size for `limit` as it was sent: `None` where it is below 1 or no integer; above [`MAX_PAGE`] it is
/// reduced.
pub(super) fn page_size(text: &str) -> Option<u32> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    // Digits that do not fit are an integer far above the largest page.
    let size = text.parse().unwrap_or(u32::MAX).min(MAX_PAGE);
    (size > 0).then_some(size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::Timestamp;

    const CODEC: CursorCodec = CursorCodec::new([1; 32]);

    fn paging(limit: u32) -> Paging {
        Paging { page: Page { limit, after: None }, route: "/v1/trades".into(), filters: String::new() }
    }

    fn position(row: &i64) -> Position {
        Position { created_at: Timestamp::from_ms(*row), id: row.to_string() }
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
            assert_eq!(page_size(text), size, "{text}");
        }
    }

    #[test]
    fn the_cursor_leads_behind_the_last_row_shown() {
        let (rows, pagination) = paging(2).cut(&CODEC, vec![9, 8, 7], position);
        assert_eq!(rows, [9, 8]);
        assert!(pagination.has_more);
        let cursor = pagination.cursor.unwrap();
        assert_eq!(CODEC.decode("/v1/trades", "", &cursor), Ok(position(&8)));
    }

    #[test]
    fn the_last_page_has_no_cursor_even_where_it_is_full() {
        let (rows, pagination) = paging(2).cut(&CODEC, vec![9, 8], position);
        assert_eq!(rows.len(), 2);
        assert_eq!(pagination, Pagination { cursor: None, has_more: false, limit: 2 });
    }
}
