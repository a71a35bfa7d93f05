//! Creating a market: its row first, then the market on chain under the row's id, so that a creation that was cut short is
//! finished by doing it again and never done twice.

use alloy_primitives::U256;
use chain::{MarketTerms, Signer, calls};
use domain::ids::{MarketId, OrganizationId, PartnerId, ThreadId};
use domain::market::MarketStatus;
use domain::{ErrorCode, Timestamp, Usdc, Wad};
use store::StoreError;
use store::markets::Market;

use super::reference_of;
use crate::{AppError, Ctx};

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
    /// Its organization.
    pub organization_id: Option<OrganizationId>,
    /// Its partner.
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
    let written: Result<(), StoreError> = ctx
        .store
        .write((market, new.outcomes.clone()), |tx, (market, labels)| {
            Box::pin(async move {
                match store::markets::find(tx, market.id).await? {
                    Some(_) => Ok(()),
                    None => store::markets::insert(tx, market, labels).await,
                }
            })
        })
        .await;
    written?;
    let reference = reference_of(id);
    if ctx.chain.market_of(reference).await?.is_none() {
        let terms = MarketTerms {
            reference,
            outcomes: u8::try_from(new.outcomes.len())
                .map_err(|_| AppError::new(ErrorCode::InternalError))?,
            fee_bps: new.fee_bps,
            close_time_s: u32::try_from(new.end_time.s())
                .map_err(|_| AppError::field("/endTime", "is before 2106"))?,
            liquidity_usdc_atomic: new.liquidity.atomic(),
            opening_odds_wad: new.opening_odds,
        };
        ctx.chain.transact(resolver, Some(ctx.chain.contracts().hub), calls::create_market(&terms)).await?;
    }
    ctx.wake.sync.notify_waiters();
    Ok(id)
}

/// Whether a market can be made of this; asks nobody.
pub fn check(new: &NewMarket, now: Timestamp) -> Result<(), AppError> {
    let refuse = |pointer: &str, detail: &str| Err(AppError::field(pointer, detail));
    if new.question.is_empty() || new.question.chars().count() > 500 || new.question.contains('\0') {
        return refuse("/question", "is 1 to 500 characters");
    }
    if !(2..=250).contains(&new.outcomes.len()) {
        return refuse("/outcomes", "are 2 to 250");
    }
    if new
        .outcomes
        .iter()
        .any(|label| label.is_empty() || label.chars().count() > 100 || label.contains('\0'))
    {
        return refuse("/outcomes", "have names of 1 to 100 characters");
    }
    if !new.opening_odds.is_empty() && new.opening_odds.len() != new.outcomes.len() {
        return refuse("/openingOdds", "are as many as the outcomes, or none");
    }
    if new.fee_bps > 1_000 {
        return refuse("/feeBps", "is at most 1000");
    }
    if new.liquidity < Usdc::from_whole(1) {
        return refuse("/liquidity", "is at least 1 USDC");
    }
    if new.end_time <= now {
        return refuse("/endTime", "is in the future");
    }
    Ok(())
}

fn row(ctx: &Ctx, id: MarketId, new: &NewMarket) -> Market {
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
    }
}
