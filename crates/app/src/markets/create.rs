//! Creates a market: first its row, then the market on chain under the row's id. A creation that was
//! interrupted is finished by repeating it and never creates a second market.

use alloy_primitives::U256;
use chain::{Call, MarketTerms, Revert, calls};
use domain::ids::{MarketId, OrganizationId, PartnerId, ThreadId};
use domain::market::MarketStatus;
use domain::text::{Likeness, NameIndex};
use domain::trade::FieldError;
use domain::{ErrorCode, Timestamp, Usdc, Wad};
use serde_json::{Value, json};
use store::Tx;
use store::audit_log::{Act, note};
use store::catalog::Listing;
use store::markets::Market;
use uuid::Uuid;

use super::{funding_ceil, reference_of};
use crate::roles::{ActResult, ActSender, RoleAct, perform};
use crate::{AppError, Ctx, catalog};

/// The minimum odds of the hub.
const LEAST_ODDS_WAD: u64 = 1_000_000_000_000;

/// The terms and the listing of a new market.
#[derive(Debug, Clone)]
pub struct NewMarket {
    /// The id of an interrupted creation. `None` creates a new id.
    pub id: Option<MarketId>,
    pub question: String,
    /// Markdown.
    pub description: Option<String>,
    /// The category, such as `sports`.
    pub category: Option<String>,
    pub tags: Vec<String>,
    /// The names of 2 to 250 outcomes.
    pub outcomes: Vec<String>,
    /// The opening odds in WAD, which sum to one. Empty if all are equal.
    pub opening_odds: Vec<U256>,
    /// The market maker's `b`.
    pub liquidity: Usdc,
    /// The fee in hundredths of a percent.
    pub fee_bps: u16,
    /// The end of trading.
    pub end_time: Timestamp,
    pub thread_id: Option<ThreadId>,
    /// The organization. In a thread it is the thread's.
    pub organization_id: Option<OrganizationId>,
    /// The partner. In a thread it is the thread's.
    pub partner_id: Option<PartnerId>,
    pub chapter_id: Option<String>,
    /// The URL of the post that the market is based on.
    pub source_url: Option<String>,
    /// The place among the featured markets.
    pub featured_position: Option<u32>,
}

/// A market whose row is stored.
#[derive(Debug, Clone)]
pub struct Created {
    pub id: MarketId,
    /// The creation on chain; `None` if the market was on chain before.
    pub sent: Option<ActResult>,
}

/// Creates a market, funded by the resolver, who must have approved the funding for the hub. A
/// wallet approves it in the transaction before this one.
pub async fn create<'a>(
    ctx: &Ctx,
    resolver: impl Into<ActSender<'a>>,
    new: NewMarket,
) -> Result<Created, AppError> {
    check(&new, ctx.now())?;
    let id = new.id.unwrap_or_else(|| MarketId(ctx.uuid()));
    let market = row(ctx, id, &new);
    ctx.store
        .try_write((market, new.outcomes.clone()), |tx, (market, labels)| {
            Box::pin(async move {
                match store::markets::find(tx, market.id).await? {
                    Some(stored) => reject_other_terms(tx, &stored, market, labels).await,
                    None => insert(tx, market, labels).await,
                }
            })
        })
        .await?;
    let mut sent = None;
    if !is_on_chain(ctx, id).await? {
        let terms = MarketTerms {
            reference: reference_of(id),
            outcomes: u8::try_from(new.outcomes.len())
                .map_err(|_| AppError::new(ErrorCode::InternalError))?,
            fee_bps: new.fee_bps,
            close_time_s: u32::try_from(new.end_time.s())
                .map_err(|_| AppError::field("/endTime", "must be before 2106"))?,
            liquidity_usdc_atomic: new.liquidity.atomic(),
            opening_odds_wad: new.opening_odds,
        };
        let act = RoleAct {
            act: Act::new("market.create", format!("market:{id}")),
            terms: Value::Null,
            call: Call::new(ctx.chain.contracts().hub, calls::create_market(&terms)),
            // The hub takes the funding last, so a missing allowance means that all other checks
            // have passed.
            prevented: Some(Revert::AllowanceMissing),
        };
        sent = Some(perform(ctx, resolver.into(), act, async |_| Ok(None)).await?);
    }
    ctx.wake.sync.notify_waiters();
    Ok(Created { id, sent })
}

/// Rejects a creation under the id of a stored market with other terms. The market on chain would
/// not be the stored one.
async fn reject_other_terms(
    tx: &mut Tx,
    stored: &Market,
    new: &Market,
    labels: &[String],
) -> Result<(), AppError> {
    let outcomes = store::markets::outcomes(tx, stored.id).await?;
    let terms =
        |market: &Market| (market.question.clone(), market.fee_bps, market.liquidity, market.end_time);
    if terms(stored) == terms(new) && outcomes.iter().map(|outcome| &outcome.label).eq(labels) {
        return Ok(());
    }
    let requirement = "must be used with the same question, outcomes, liquidity, fee and end time as before";
    Err(AppError::field("/id", requirement))
}

/// Returns whether the hub has a market under this id.
pub async fn is_on_chain(ctx: &Ctx, id: MarketId) -> Result<bool, AppError> {
    Ok(ctx.chain.market_of(reference_of(id)).await?.is_some())
}

/// Adds a market's row. In a thread it gets the thread's current organization and partner, because
/// those of the caller may be outdated, and its question must not look like another one there.
pub(crate) async fn insert(tx: &mut Tx, market: &Market, labels: &[String]) -> Result<(), AppError> {
    let mut market = market.clone();
    if market.thread_id.is_some() {
        (market.organization_id, market.partner_id) = catalog::owners_of(tx, market.thread_id).await?;
    }
    store::markets::insert(tx, &market, labels).await?;
    catalog::names::check_moved(tx, market.id, None, market.thread_id).await?;
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

/// Checks that people cannot take a new market's question for another one in its thread. The
/// creation checks it again; this check comes before the funding.
pub async fn check_question(ctx: &Ctx, new: &NewMarket) -> Result<(), AppError> {
    let Some(thread_id) = new.thread_id else { return Ok(()) };
    let read = ctx.store.read(thread_id, |tx, id| Box::pin(store::catalog::questions_in(tx, *id)));
    catalog::names::check_question(&new.question, new.id, &read.await?)
}

/// Validates a new market without the database and the chain.
pub fn check(new: &NewMarket, now: Timestamp) -> Result<(), AppError> {
    let mut wrong = wrong_terms(new);
    wrong.extend(catalog::check::listing(&new.listing(MarketId(Uuid::nil()))));
    if new.end_time <= now {
        wrong.push(FieldError::new("/endTime", "must be in the future").got(&new.end_time.to_string()));
    }
    catalog::checked(wrong)
}

/// Returns the field errors of the terms that never change.
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
    let mut reject = |pointer: &str, detail: &str, got: &str| {
        wrong.push(FieldError::new(pointer, detail).got(got));
    };
    if new.fee_bps > 1_000 {
        reject("/feeBps", "must be at most 1000", &new.fee_bps.to_string());
    }
    if new.liquidity < Usdc::from_whole(1) {
        reject("/liquidity", "must be at least 1 USDC", &new.liquidity.to_decimal());
    } else if funding_ceil(new.liquidity, new.outcomes.len(), &[]).is_none() {
        reject("/liquidity", "must be less: no market can have as much", &new.liquidity.to_decimal());
    }
    if u32::try_from(new.end_time.s()).is_err() {
        reject("/endTime", "must be before 2106", &new.end_time.to_string());
    }
    wrong
}

fn wrong_outcomes(outcomes: &[String], wrong: &mut Vec<FieldError>) {
    if !(2..=250).contains(&outcomes.len()) {
        wrong.push(FieldError::new("/outcomes", "must be 2 to 250").got(&outcomes.len().to_string()));
    }
    let mut names = NameIndex::default();
    for (index, name) in outcomes.iter().enumerate() {
        let pointer = format!("/outcomes/{index}");
        if let Some(error) = catalog::check::line(&pointer, name, 100) {
            wrong.push(error);
            continue;
        }
        if let Some((likeness, ())) = names.find(name) {
            let requirement = match likeness {
                Likeness::Same => {
                    "must differ from the other outcomes in more than blanks, case and encoding"
                }
                Likeness::Lookalike => {
                    "must not look like another outcome: one of them has letters of another alphabet"
                }
            };
            wrong.push(FieldError::new(pointer, requirement).got(name));
        }
        names.insert(name, ());
    }
}

/// Checks opening odds in WAD: they must sum to exactly one and be at least the hub's minimum. The
/// error is the requirement that they do not meet.
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
    /// The market's first listing.
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
        contract_address: ctx.chain.contracts().hub,
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
