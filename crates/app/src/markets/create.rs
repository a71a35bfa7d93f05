//! Creating a market: its row first, then the market on chain under the row's id, so that a creation that was cut short is
//! finished by doing it again and never done twice.

use std::collections::HashSet;

use alloy_primitives::U256;
use chain::{MarketTerms, Signer, calls};
use domain::ids::{MarketId, OrganizationId, PartnerId, ThreadId};
use domain::market::MarketStatus;
use domain::text::same_name;
use domain::trade::FieldError;
use domain::{ErrorCode, Timestamp, Usdc, Wad};
use serde_json::json;
use store::Tx;
use store::audit_log::{Act, note};
use store::catalog::Listing;
use store::markets::Market;
use uuid::Uuid;

use super::life::sent_as;
use super::{funding_ceil, reference_of};
use crate::{AppError, Ctx, audit_log, catalog};

/// The least odds that the hub takes.
const LEAST_ODDS_WAD: u64 = 1_000_000_000_000;

/// What a market is made of.
#[derive(Debug, Clone)]
pub struct NewMarket {
    /// Its id, where a creation is done again; a new one otherwise.
    pub id: Option<MarketId>,
    /// What is asked.
    pub question: String,
    /// Markdown.
    pub description: Option<String>,
    /// Such as `sports`.
    pub category: Option<String>,
    /// Free words.
    pub tags: Vec<String>,
    /// The outcomes' names, 2 to 250.
    pub outcomes: Vec<String>,
    /// Opening odds in WAD, summing to one; all equal where empty.
    pub opening_odds: Vec<U256>,
    /// The market maker's `b`.
    pub liquidity: Usdc,
    /// Hundredths of a percent.
    pub fee_bps: u16,
    /// When trading ends.
    pub end_time: Timestamp,
    /// Its thread.
    pub thread_id: Option<ThreadId>,
    /// Its organization; within a thread it is the thread's.
    pub organization_id: Option<OrganizationId>,
    /// Its partner; within a thread it is the thread's.
    pub partner_id: Option<PartnerId>,
    /// Its chapter.
    pub chapter_id: Option<String>,
    /// The post it came from.
    pub source_url: Option<String>,
    /// Its place among the featured markets.
    pub featured_position: Option<u32>,
}

/// Creates a market, funded by `resolver`, who must have allowed the hub to take the funding.
pub async fn create(ctx: &Ctx, resolver: &Signer, new: NewMarket) -> Result<MarketId, AppError> {
    check(&new, ctx.now())?;
    let id = new.id.unwrap_or_else(|| MarketId(ctx.uuid()));
    let market = row(ctx, id, &new);
    ctx.store
        .write((market, new.outcomes.clone()), |tx, (market, labels)| {
            Box::pin(async move {
                match store::markets::find(tx, market.id).await? {
                    Some(_) => Ok(()),
                    None => insert(tx, market, labels).await,
                }
            })
        })
        .await?;
    let reference = reference_of(id);
    if ctx.chain.market_of(reference).await?.is_none() {
        let terms = MarketTerms {
            reference,
            outcomes: u8::try_from(new.outcomes.len())
                .map_err(|_| AppError::new(ErrorCode::InternalError))?,
            fee_bps: new.fee_bps,
            close_time_s: u32::try_from(new.end_time.s())
                .map_err(|_| AppError::field("/endTime", "must be before 2106"))?,
            liquidity_usdc_atomic: new.liquidity.atomic(),
            opening_odds_wad: new.opening_odds,
        };
        let hub = ctx.chain.contracts().hub;
        let sent = async { Ok(ctx.chain.transact(resolver, Some(hub), calls::create_market(&terms)).await?) };
        audit_log::around(ctx, Act::new("market.create", format!("market:{id}")), sent, sent_as).await?;
    }
    ctx.wake.sync.notify_waiters();
    Ok(id)
}

/// Adds a market's row. Within a thread it gets the organization and the partner that the thread has now: what was known of
/// the thread may be older.
pub(crate) async fn insert(tx: &mut Tx, market: &Market, labels: &[String]) -> Result<(), AppError> {
    let mut market = market.clone();
    if market.thread_id.is_some() {
        (market.organization_id, market.partner_id) = catalog::owners_of(tx, market.thread_id).await?;
    }
    store::markets::insert(tx, &market, labels).await?;
    let terms = json!({
        "question": market.question,
        "outcomes": labels,
        "liquidityUsdcAtomic": market.liquidity.to_string(),
        "feeBps": market.fee_bps,
        "endTime": market.end_time,
        "threadId": market.thread_id,
    });
    note(tx, Act::new("market.add", format!("market:{}", market.id)).after(terms));
    Ok(())
}

/// Whether a market can be made of this; asks nobody.
pub fn check(new: &NewMarket, now: Timestamp) -> Result<(), AppError> {
    let mut wrong = wrong_terms(new);
    wrong.extend(catalog::check::listing(&new.listing(MarketId(Uuid::nil()))));
    if new.end_time <= now {
        wrong.push(FieldError::new("/endTime", "must be in the future").got(&new.end_time.to_string()));
    }
    catalog::checked(wrong)
}

/// What is wrong with what never changes of a market.
pub(crate) fn wrong_terms(new: &NewMarket) -> Vec<FieldError> {
    let mut wrong = Vec::new();
    wrong.extend(catalog::check::line("/question", &new.question, 500));
    wrong_outcomes(&new.outcomes, &mut wrong);
    if !new.opening_odds.is_empty() {
        if new.opening_odds.len() != new.outcomes.len() {
            let requirement = "must be as many as the outcomes, or none";
            let count = new.opening_odds.len().to_string();
            wrong.push(FieldError::new("/openingOdds", requirement).got(&count));
        } else if let Err(requirement) = check_odds(&new.opening_odds) {
            wrong.push(FieldError::new("/openingOdds", requirement));
        }
    }
    let mut refuse = |pointer: &str, detail: &str, got: &str| {
        wrong.push(FieldError::new(pointer, detail).got(got));
    };
    if new.fee_bps > 1_000 {
        refuse("/feeBps", "must be at most 1000", &new.fee_bps.to_string());
    }
    if new.liquidity < Usdc::from_whole(1) {
        refuse("/liquidity", "must be at least 1 USDC", &new.liquidity.decimal());
    } else if funding_ceil(new.liquidity, new.outcomes.len(), &[]).is_none() {
        refuse("/liquidity", "must be less: no market can have as much", &new.liquidity.decimal());
    }
    if u32::try_from(new.end_time.s()).is_err() {
        refuse("/endTime", "must be before 2106", &new.end_time.to_string());
    }
    wrong
}

fn wrong_outcomes(outcomes: &[String], wrong: &mut Vec<FieldError>) {
    if !(2..=250).contains(&outcomes.len()) {
        wrong.push(FieldError::new("/outcomes", "must be 2 to 250").got(&outcomes.len().to_string()));
    }
    let mut names = HashSet::new();
    for (index, name) in outcomes.iter().enumerate() {
        let pointer = format!("/outcomes/{index}");
        if let Some(error) = catalog::check::line(&pointer, name, 100) {
            wrong.push(error);
        } else if !names.insert(same_name(name)) {
            let requirement = "must differ from the other outcomes in more than blanks and case";
            wrong.push(FieldError::new(pointer, requirement).got(name));
        }
    }
}

/// Whether these can be a market's odds at its opening: WAD, summing to exactly one, none of them less than the hub takes.
/// An error is the requirement that they do not meet.
pub fn check_odds(odds: &[U256]) -> Result<(), &'static str> {
    let sum = odds.iter().fold(U256::ZERO, |sum, odds| sum.saturating_add(*odds));
    if sum != Wad::ONE.0 {
        Err("must sum to exactly 1")
    } else if odds.iter().any(|odds| *odds < U256::from(LEAST_ODDS_WAD)) {
        Err("must be at least 0.000001 each")
    } else {
        Ok(())
    }
}

impl NewMarket {
    /// How the market is listed from the beginning.
    pub(crate) fn listing(&self, market_id: MarketId) -> Listing {
        Listing {
            market_id,
            description: self.description.clone(),
            category: self.category.clone(),
            tags: self.tags.clone(),
            thread_id: self.thread_id,
            organization_id: self.organization_id,
            partner_id: self.partner_id,
            chapter_id: self.chapter_id.clone(),
            source_url: self.source_url.clone(),
            featured_position: self.featured_position,
        }
    }
}

pub(crate) fn row(ctx: &Ctx, id: MarketId, new: &NewMarket) -> Market {
    let now = ctx.now();
    Market {
        id,
        chain_id: ctx.chain.chain_id(),
        contract_address: ctx.chain.contracts().hub.to_string().to_lowercase(),
        chain_market_id: None,
        question: new.question.clone(),
        description: new.description.clone(),
        category: new.category.clone(),
        tags: new.tags.clone(),
        thread_id: new.thread_id,
        organization_id: new.organization_id,
        partner_id: new.partner_id,
        chapter_id: new.chapter_id.clone(),
        source_url: new.source_url.clone(),
        status: MarketStatus::Frozen,
        fee_bps: new.fee_bps,
        liquidity: new.liquidity,
        opening_cost: Wad::ZERO,
        cost: Wad::ZERO,
        volume: Usdc::ZERO,
        trade_count: 0,
        payouts: None,
        resolution_tx_hash: None,
        resolution_source: None,
        refund_scale: None,
        end_time: new.end_time,
        frozen_at: None,
        resolved_at: None,
        as_of_block: 0,
        as_of: now,
        created_at: now,
        featured_position: new.featured_position,
        quarantined_at: None,
    }
}
