//! Plans markets: terms that never change, and their listing.

use alloy_primitives::U256;
use domain::ids::{MarketId, ThreadId};
use domain::text::shown;
use domain::{Usdc, Wad};
use serde_json::{Value, json};
use store::catalog::Thread;

use super::super::ImportKind;
use super::super::document::MarketItem;
use super::super::plan::{ImportAction, ImportRow};
use super::{Planner, digest};
use crate::catalog::check;
use crate::markets::{NewMarket, wrong_terms};

impl<'a> Planner<'a> {
    pub(super) fn markets(&mut self, items: &'a [MarketItem]) {
        for (index, item) in items.iter().enumerate() {
            let at = format!("/markets/{index}");
            self.check_key(ImportKind::Market, &item.key, &at);
            let id = self.id_of(ImportKind::Market, &item.key);
            let read = (self.liquidity(&at, item), self.odds(&at, item));
            let (thread, chapter_id) = self.place_of_market(&at, item);
            let (Some(liquidity), Some(opening_odds)) = read else { continue };
            let under = |thread: Option<&Thread>| NewMarket {
                id: Some(MarketId(id)),
                question: item.question.clone(),
                description: item.description.clone(),
                category: item.category.clone().or_else(|| thread?.category.clone()),
                tags: item.tags.clone().or_else(|| Some(thread?.tags.clone())).unwrap_or_default(),
                outcomes: item.outcomes.clone(),
                opening_odds: opening_odds.clone(),
                liquidity,
                fee_bps: item.fee_bps,
                end_time: item.end_time,
                thread_id: thread.map(|thread| thread.id),
                organization_id: thread.and_then(|thread| thread.organization_id),
                partner_id: thread.and_then(|thread| thread.partner_id),
                chapter_id: chapter_id.clone(),
                source_url: item.source_url.clone(),
                featured_position: item.featured,
            };
            // Only the file decides whether the market has changed. So compare with the thread as
            // this file describes it, not as it is stored.
            let said = thread.as_ref().map(|thread| self.said_threads.get(&thread.id).unwrap_or(thread));
            let content = content(&under(said));
            self.market(&at, &item.key, under(thread.as_ref()), &content);
        }
    }

    fn market(&mut self, at: &str, key: &str, new: NewMarket, content: &Value) {
        let id = new.id.unwrap_or(MarketId(uuid::Uuid::nil()));
        let terms = terms(&new);
        self.refuse_fields(at, check::listing(&new.listing(id)));
        let made = self.import(ImportKind::Market, key);
        match made {
            Some(old) if old.terms_hash != digest(&terms) => self.refuse_changed(at, key, &new),
            Some(_) => {}
            None => self.refuse_fields(at, wrong_terms(&new)),
        }
        let is_made = made.is_some();
        let on_chain =
            self.known.markets.get(key).is_some_and(|(market, _)| market.chain_market_id.is_some());
        if !on_chain && new.end_time <= self.now {
            let detail = format!("must be in the future, got {}", shown(&new.end_time.to_string()));
            self.refuse(at, "endTime", detail);
        }
        self.step(ImportKind::Market, key, id.0, (&terms, content), ImportRow::Market(Box::new(new)));
        if is_made
            && !on_chain
            && let Some(step) = self.steps.last_mut()
        {
            step.action = ImportAction::Finish;
        }
    }

    /// Reports the changed terms of a market that already exists.
    fn refuse_changed(&mut self, at: &str, key: &str, new: &NewMarket) {
        const FIXED: &str = "cannot change: the market already exists";
        let Some((old, labels)) = self.known.markets.get(key) else {
            return self.refuse(at, "key", FIXED);
        };
        let changed = [
            ("question", old.question != new.question),
            ("outcomes", *labels != new.outcomes),
            ("liquidity", old.liquidity != new.liquidity),
            ("feeBps", old.fee_bps != new.fee_bps),
            ("endTime", old.end_time != new.end_time),
        ];
        let changed: Vec<_> = changed.into_iter().filter(|(_, is)| *is).map(|(member, _)| member).collect();
        // The opening odds are not stored as written. If nothing else differs, they have changed.
        let changed = if changed.is_empty() { vec!["openingOdds"] } else { changed };
        for member in changed {
            self.refuse(at, member, FIXED);
        }
    }

    fn liquidity(&mut self, at: &str, item: &MarketItem) -> Option<Usdc> {
        let read: Result<Usdc, _> = item.liquidity.0.parse();
        let detail = || {
            let requirement = "must be an amount of USDC with at most 12 whole digits and at most 6 decimals";
            format!("{requirement}, got {}", shown(&item.liquidity.0))
        };
        read.map_err(|_| self.refuse(at, "liquidity", detail())).ok()
    }

    fn odds(&mut self, at: &str, item: &MarketItem) -> Option<Vec<U256>> {
        let mut odds = Vec::with_capacity(item.opening_odds.len());
        for (index, text) in item.opening_odds.iter().enumerate() {
            match Wad::from_share(&text.0) {
                Ok(wad) => odds.push(wad.0),
                Err(_) => {
                    let requirement = "must be a decimal between 0 and 1 with at most 18 decimals";
                    let detail = format!("{requirement}, got {}", shown(&text.0));
                    self.refuse(at, &format!("openingOdds/{index}"), detail);
                }
            }
        }
        (odds.len() == item.opening_odds.len()).then_some(odds)
    }

    fn place_of_market(&mut self, at: &str, item: &MarketItem) -> (Option<Thread>, Option<String>) {
        let mut thread = None;
        if let Some(key) = &item.thread {
            thread = self.thread(key).cloned();
            if thread.is_none() {
                self.unknown(at, "thread", ImportKind::Thread, key);
            }
        }
        let Some(key) = &item.chapter else { return (thread, None) };
        let found = self.chapters.get(key.as_str()).or_else(|| self.known.chapters.get(key)).cloned();
        let Some(chapter) = found else {
            self.unknown(at, "chapter", ImportKind::Chapter, key);
            return (thread, None);
        };
        if item.thread.is_none() {
            thread = self.thread_with_id(chapter.thread_id);
        } else if thread.as_ref().is_some_and(|thread| thread.id != chapter.thread_id) {
            self.refuse(at, "chapter", format!("must be a chapter of the same thread, got {}", shown(key)));
        }
        (thread, Some(chapter.id))
    }

    fn thread_with_id(&self, id: ThreadId) -> Option<Thread> {
        let here = self.threads.values().find(|thread| thread.id == id);
        here.or_else(|| self.known.threads_of_chapters.get(&id)).cloned()
    }
}

/// Returns the terms of a market in a canonical form.
fn terms(new: &NewMarket) -> Value {
    let odds: Vec<String> = new.opening_odds.iter().map(U256::to_string).collect();
    json!([new.question, new.outcomes, odds, new.liquidity.atomic(), new.fee_bps, new.end_time.ms()])
}

fn content(new: &NewMarket) -> Value {
    json!([
        terms(new),
        new.description,
        new.category,
        new.tags,
        new.thread_id,
        new.organization_id,
        new.partner_id,
        new.chapter_id,
        new.source_url,
        new.featured_position
    ])
}
