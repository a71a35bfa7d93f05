//! The outcomes of a market on its page: the list with its search, and those that the ticket offers.
//! A market has up to 250, and every one of them can be found, bought and sold.

use domain::text::NameFinder;
use http_kit::{RawQuery, number};
use presentation::amounts;
use presentation::market_face::{MOST_OUTCOMES, Shown};

/// The outcomes on one page of the list.
const OUTCOMES_PER_PAGE: usize = 20;
/// Markets with more outcomes than one page of the list have a search.
const MAX_FIND_CHARS: usize = 100;

/// The parameters `outcome`, `find` and `page`.
#[derive(Debug, Default)]
pub struct OutcomesQuery {
    /// The index of the outcome that the ticket starts with.
    pub chosen: Option<u8>,
    /// Words of labels.
    find: String,
    /// The page of the list, from 0.
    page: usize,
}

impl OutcomesQuery {
    pub const NAMES: [&'static str; 3] = ["outcome", "find", "page"];

    pub fn read(asked: &mut RawQuery<'_>) -> Self {
        // A link with an outcome or a page that does not exist still leads to the market.
        let find = asked.text("find").unwrap_or_default();
        Self {
            chosen: asked.text("outcome").as_deref().and_then(number),
            find: find.trim().chars().take(MAX_FIND_CHARS).collect(),
            page: asked.text("page").as_deref().and_then(number).unwrap_or_default(),
        }
    }
}

/// An outcome in the list.
#[derive(Debug)]
pub struct OutcomeRow {
    pub shown: Shown,
    /// Opens the ticket with this outcome.
    pub url: String,
    /// The tokens that the reader holds, if any.
    pub held: Option<String>,
}

/// The list of outcomes.
#[derive(Debug)]
pub struct OutcomesPart {
    pub rows: Vec<OutcomeRow>,
    /// The search, if the list has more than one page.
    pub search: Option<OutcomeSearch>,
    pub previous: Option<String>,
    pub next: Option<String>,
}

/// The search in the list.
#[derive(Debug)]
pub struct OutcomeSearch {
    pub find: String,
    /// The number of outcomes that were found.
    pub found: String,
}

impl OutcomesPart {
    /// Lists a page of `outcomes`, in their order. The reader's own ones come first: `held` returns
    /// the tokens of an outcome, if the reader has any.
    pub fn new(
        path: &str,
        outcomes: &[Shown],
        query: &OutcomesQuery,
        held: impl Fn(u8) -> Option<String>,
    ) -> Self {
        let finds = NameFinder::new(&query.find);
        let mut found: Vec<_> = outcomes
            .iter()
            .filter(|shown| finds.matches(&shown.label))
            .map(|shown| (shown, held(shown.index)))
            .collect();
        found.sort_by_key(|(_, held)| held.is_none());
        let pages = found.len().div_ceil(OUTCOMES_PER_PAGE);
        let page = query.page.min(pages.saturating_sub(1));
        let url = |page: usize| {
            let mut query_text = form_urlencoded::Serializer::new(String::new());
            if !query.find.is_empty() {
                query_text.append_pair("find", &query.find);
            }
            format!("{path}?{}#outcomes", query_text.append_pair("page", &page.to_string()).finish())
        };
        let search = (outcomes.len() > OUTCOMES_PER_PAGE).then(|| OutcomeSearch {
            find: query.find.clone(),
            found: amounts::count(found.len() as u64, "outcome"),
        });
        let rows = found.into_iter().skip(page * OUTCOMES_PER_PAGE).take(OUTCOMES_PER_PAGE);
        Self {
            rows: rows
                .map(|(shown, held)| OutcomeRow {
                    shown: shown.clone(),
                    url: url_of_ticket(path, shown.index),
                    held,
                })
                .collect(),
            search,
            previous: page.checked_sub(1).map(url),
            next: Some(page + 1).filter(|next| *next < pages).map(url),
        }
    }
}

/// Returns the link to a market's ticket with an outcome.
fn url_of_ticket(path: &str, index: u8) -> String {
    format!("{path}?outcome={index}#ticket")
}

/// Returns the outcomes that the ticket offers, in this order: the chosen one, those that the reader
/// holds, and the likeliest. Of few outcomes it offers all, in their own order.
pub fn offered(outcomes: &[Shown], chosen: Option<u8>, is_held: impl Fn(u8) -> bool) -> Vec<Shown> {
    if outcomes.len() <= MOST_OUTCOMES {
        return outcomes.to_vec();
    }
    let is_chosen = |shown: &Shown| chosen == Some(shown.index);
    let mut sorted: Vec<&Shown> = outcomes.iter().collect();
    sorted.sort_by_key(|shown| (!is_chosen(shown), !is_held(shown.index)));
    let own = sorted.iter().filter(|shown| is_chosen(shown) || is_held(shown.index)).count();
    sorted.into_iter().take(own.max(MOST_OUTCOMES)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(count: u8) -> Vec<Shown> {
        let shown = |index: u8| Shown {
            index,
            label: format!("Candidate {index}"),
            percent: "1%".to_owned(),
            ppm: 1_000_000 - u32::from(index),
            colour: 0,
            won: false,
        };
        (0..count).map(shown).collect()
    }

    fn indexes(shown: &[Shown]) -> Vec<u8> {
        shown.iter().map(|shown| shown.index).collect()
    }

    #[test]
    fn the_ticket_offers_the_chosen_outcome_all_held_ones_and_the_likeliest() {
        let all = outcomes(250);
        let own = |index: u8| [100, 200].contains(&index);
        assert_eq!(indexes(&offered(&all, Some(249), own)), [249, 100, 200, 0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(indexes(&offered(&all, None, |_| false)), (0..10).collect::<Vec<_>>());
        assert_eq!(offered(&all, Some(3), |index| index >= 230).len(), 21);
        assert_eq!(indexes(&offered(&outcomes(3), Some(2), |_| false)), [0, 1, 2]);
    }

    #[test]
    fn every_outcome_is_on_one_page_of_the_list_and_held_ones_on_the_first() {
        let all = outcomes(250);
        let held = |index: u8| (index == 249).then(|| "3.00".to_owned());
        let mut seen = Vec::new();
        for page in 0..13 {
            let query = OutcomesQuery { page, ..OutcomesQuery::default() };
            let part = OutcomesPart::new("/markets/m", &all, &query, held);
            assert!(part.rows.len() <= OUTCOMES_PER_PAGE);
            assert_eq!((part.previous.is_some(), part.next.is_some()), (page > 0, page < 12));
            seen.extend(part.rows.iter().map(|row| row.shown.index));
        }
        assert_eq!(seen.first(), Some(&249));
        seen.sort_unstable();
        assert_eq!(seen, (0..250).collect::<Vec<u8>>());
    }

    #[test]
    fn a_search_finds_outcomes_by_their_words() {
        let find = OutcomesQuery { find: "24 candidate".to_owned(), ..OutcomesQuery::default() };
        let part = OutcomesPart::new("/markets/m", &outcomes(250), &find, |_| None);
        let found: Vec<u8> = part.rows.iter().map(|row| row.shown.index).collect();
        assert_eq!(found, [24, 124, 224, 240, 241, 242, 243, 244, 245, 246, 247, 248, 249]);
        assert_eq!(part.search.unwrap().found, "13 outcomes");
        let none = OutcomesQuery { find: "x".to_owned(), page: 7, ..OutcomesQuery::default() };
        assert!(OutcomesPart::new("/markets/m", &outcomes(250), &none, |_| None).rows.is_empty());
    }
}
