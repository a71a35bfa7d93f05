//! The announcer: creates events that tell users that a market with one of their positions has its
//! final result, and which positions pay.
//!
//! The transaction that writes a page's events also records the progress in `announcements`. So
//! after a crash a page is written completely or not at all, and each user gets each event once.
//! Nothing is announced before the result is final.

use async_trait::async_trait;
use domain::event::{self, EventKind, MarketData, PositionData};
use domain::ids::EventId;
use domain::market::MarketStatus;
use domain::{Timestamp, Usdc, Wad};
use futures::StreamExt;
use serde_json::Error as Unwritable;
use store::events::NewEvent;
use store::leases::Lease;
use store::redemptions::{Announced, Owned};

use super::{FinalResult, redeemable, settled_block};
use crate::lease::{self, LeaseHolder, Turn};
use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx, minimum};

/// The number of markets per tick, and of positions per page.
const MARKETS: u32 = 20;
const POSITIONS: u32 = 100;

#[derive(Debug)]
pub struct Announcer {
    lease: LeaseHolder,
}

#[async_trait]
impl Worker for Announcer {
    fn name(&self) -> &'static str {
        "announcer"
    }

    async fn release(&self, ctx: &Ctx) -> Result<(), AppError> {
        self.lease.release(ctx).await
    }

    async fn tick(&self, ctx: &Ctx) -> Result<Progress, AppError> {
        let Some(lease) = self.lease.claim(ctx).await? else { return Ok(Progress::Idle) };
        self.lease.keep(ctx, &lease, work(ctx, &lease)).await
    }
}

impl Announcer {
    /// Creates the worker. `owner` identifies this process in leases.
    pub fn new(owner: String) -> Self {
        Self { lease: LeaseHolder::new("announcer".to_owned(), owner) }
    }
}

/// Announces the next pages.
async fn work(ctx: &Ctx, lease: &Lease) -> Result<Progress, AppError> {
    let turn = Turn::begin(ctx);
    let chain_id = ctx.chain.chain_id();
    let markets = ctx
        .store
        .read(chain_id, |tx, id| Box::pin(store::redemptions::list_unannounced(tx, *id, MARKETS)))
        .await;
    let mut progress = Progress::Idle;
    let settled = settled_block(ctx).await?;
    for market in markets? {
        if turn.is_over() && progress == Progress::More {
            return Ok(progress);
        }
        // A result that is not final may still change.
        let Some(result) = FinalResult::of(ctx, market.number, settled).await? else { continue };
        announce_page(ctx, lease, market, &result).await?;
        progress = Progress::More;
    }
    Ok(progress)
}

/// Announces one page of a market's positions.
async fn announce_page(
    ctx: &Ctx,
    lease: &Lease,
    mut market: Announced,
    result: &FinalResult,
) -> Result<(), AppError> {
    let page = ctx
        .store
        .read(market.clone(), |tx, market| Box::pin(store::redemptions::list_owned(tx, market, POSITIONS)))
        .await;
    let page = page?;
    let is_last = page.len() < POSITIONS as usize;
    if let Some(last) = page.last() {
        market.after = Some((last.account, last.outcome_index));
    }
    let now = ctx.now();
    let worths = worths(ctx, &market, result, &page).await?;
    let events = events_of(&mut market, result, page.into_iter().zip(worths), now);
    let events = events.map_err(AppError::internal)?;
    let input = (lease.clone(), market, events, is_last.then_some(now));
    ctx.store
        .try_write(input, |tx, (lease, market, events, ended_at)| {
            Box::pin(async move {
                lease::check(tx, lease).await?;
                for event in events {
                    store::events::emit(tx, event.clone());
                }
                Ok::<_, AppError>(store::redemptions::put_announced(tx, market, *ended_at).await?)
            })
        })
        .await
}

/// Returns the amount that the chain would pay for each unclaimed position. Zero if the service pays
/// it by itself, because then the owner does not have to act.
async fn worths(
    ctx: &Ctx,
    market: &Announced,
    result: &FinalResult,
    page: &[Owned],
) -> Result<Vec<Usdc>, AppError> {
    let worths: Vec<Result<Usdc, AppError>> = futures::stream::iter(page.to_vec())
        .map(async |position| {
            let pays = result.payout(position.outcome_index) > Wad::ZERO;
            if !pays || position.is_claimed || position.tokens == Wad::ZERO {
                return Ok(Usdc::ZERO);
            }
            let worth = redeemable(ctx, position.account, market.number, position.outcome_index).await?;
            Ok(if minimum::is_claimable(ctx, worth) { worth } else { Usdc::ZERO })
        })
        .buffered(chain::MAX_CONCURRENT_CALLS)
        .collect()
        .await;
    worths.into_iter().collect()
}

/// Returns the events of a page: the result once per account, and one event per position that pays.
fn events_of(
    market: &mut Announced,
    result: &FinalResult,
    page: impl Iterator<Item = (Owned, Usdc)>,
    now: Timestamp,
) -> Result<Vec<NewEvent>, Unwritable> {
    let mut events = Vec::new();
    for (position, worth) in page {
        // A position that was sold before the result does not count. One that is empty but changed
        // later was paid since then.
        if position.tokens == Wad::ZERO && position.updated_at < market.resolved_at {
            continue;
        }
        // Pages are sorted by account, so comparing with the last one is enough, also across pages.
        if market.told != Some(position.account) {
            events.push(resolved(market, result, &position, now)?);
            market.told = Some(position.account);
        }
        if worth > Usdc::ZERO {
            events.push(claimable(market, &position, worth, now)?);
        }
    }
    Ok(events)
}

fn resolved(
    market: &Announced,
    result: &FinalResult,
    position: &Owned,
    now: Timestamp,
) -> Result<NewEvent, Unwritable> {
    let kind = EventKind::MarketResolved;
    let id = EventId::of_market(kind, market.id, None, position.user_id, market.resolved_at);
    let data = MarketData {
        market_id: market.id,
        status: market.status,
        payouts: (market.status == MarketStatus::Resolved).then(|| result.payouts.clone()),
        resolved_at: market.resolved_at,
    };
    let body = event::body(id, kind, now, &data)?;
    Ok(NewEvent { id, user_id: position.user_id, kind, key_id: None, trade_id: None, body, at: now })
}

fn claimable(
    market: &Announced,
    position: &Owned,
    worth: Usdc,
    now: Timestamp,
) -> Result<NewEvent, Unwritable> {
    let (kind, user_id) = (EventKind::PositionClaimable, position.user_id);
    let outcome_index = position.outcome_index;
    let id = EventId::of_market(kind, market.id, Some(outcome_index), user_id, market.resolved_at);
    let tokens = position.tokens;
    let data = PositionData { market_id: market.id, outcome_index, tokens, claimable_usdc: worth };
    let body = event::body(id, kind, now, &data)?;
    Ok(NewEvent { id, user_id, kind, key_id: None, trade_id: None, body, at: now })
}
