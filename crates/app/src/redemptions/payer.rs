//! The payer: claims every settled position of the service's accounts, if payment is automatic.
//!
//! It writes `redemptions` (new claims, and ended ones that are worth something again) and
//! `payout_scans`, its progress in each market. The executor and the sync do the rest. One
//! transaction writes a page's claims and the progress, so after a crash a page is complete or not
//! started. A position has only one claim in any case.

use async_trait::async_trait;
use domain::ids::{CorrelationId, RedemptionId};
use domain::redemption::RedemptionStatus;
use domain::{Timestamp, Usdc, Wad};
use futures::StreamExt;
use store::leases::Lease;
use store::redemptions::{ClaimRetry, Payable, Redemption, SettledMarket};

use super::{FinalResult, redeemable, settled_block};
use crate::config::Redemptions;
use crate::lease::{self, LeaseHolder, Turn};
use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx, minimum};

/// The number of markets per tick, and of positions per page.
const MARKETS: u32 = 20;
const POSITIONS: u32 = 100;

/// The worker. It only runs on the timer, because markets settle rarely and waking it for every
/// block would be wasteful.
#[derive(Debug)]
pub struct Payer {
    lease: LeaseHolder,
}

#[async_trait]
impl Worker for Payer {
    fn name(&self) -> &'static str {
        "payer"
    }

    async fn release(&self, ctx: &Ctx) -> Result<(), AppError> {
        self.lease.release(ctx).await
    }

    async fn tick(&self, ctx: &Ctx) -> Result<Progress, AppError> {
        if ctx.config.redemptions != Redemptions::Automatic {
            return Ok(Progress::Idle);
        }
        let Some(lease) = self.lease.claim(ctx).await? else { return Ok(Progress::Idle) };
        self.lease.keep(ctx, &lease, work(ctx, &lease)).await
    }
}

impl Payer {
    /// Creates the worker. `owner` identifies this process in leases.
    pub fn new(owner: String) -> Self {
        Self { lease: LeaseHolder::new("payer".to_owned(), owner) }
    }
}

/// Creates the claims of the next pages.
async fn work(ctx: &Ctx, lease: &Lease) -> Result<Progress, AppError> {
    let turn = Turn::begin(ctx);
    let chain_id = ctx.chain.chain_id();
    let markets = ctx
        .store
        .read(chain_id, |tx, id| Box::pin(store::redemptions::list_unscanned(tx, *id, MARKETS)))
        .await;
    let mut progress = Progress::Idle;
    let settled = settled_block(ctx).await?;
    for market in markets? {
        if turn.is_over() && progress == Progress::More {
            return Ok(progress);
        }
        // A result that is not final may still change.
        let Some(result) = FinalResult::of(ctx, market.number, settled).await? else { continue };
        pay_page(ctx, lease, market, &result).await?;
        progress = Progress::More;
    }
    Ok(progress)
}

/// A position with the amount that it pays.
struct Winning {
    position: Payable,
    worth: Usdc,
}

/// Creates the claims of one page of a market's positions.
async fn pay_page(
    ctx: &Ctx,
    lease: &Lease,
    mut market: SettledMarket,
    result: &FinalResult,
) -> Result<(), AppError> {
    let page = ctx
        .store
        .read(market.clone(), |tx, market| Box::pin(store::redemptions::list_payable(tx, market, POSITIONS)))
        .await;
    let page = page?;
    let is_last = page.len() < POSITIONS as usize;
    if let Some(last) = page.last() {
        market.after = Some((last.account, last.outcome_index));
    }
    let winning = winning(ctx, &market, result, page).await?;
    let now = ctx.now();
    let claims: Vec<_> = winning.into_iter().map(|winning| claim_of(ctx, &market, winning, now)).collect();
    let scanned_at = is_last.then_some(now);
    let input = (lease.clone(), market, claims, scanned_at, now);
    ctx.store
        .try_write(input, |tx, (lease, market, claims, scanned_at, now)| {
            Box::pin(async move {
                lease::check(tx, lease).await?;
                for claim in claims {
                    match claim {
                        Claim::New(claim) => store::redemptions::insert(tx, claim).await?,
                        Claim::Again(again) => store::redemptions::reopen(tx, again, *now).await?,
                    };
                }
                Ok::<_, AppError>(store::redemptions::put_scan(tx, market, *scanned_at).await?)
            })
        })
        .await?;
    ctx.wake.executor.notify_waiters();
    Ok(())
}

/// Returns the positions that pay at least the minimum claim and have no open claim.
async fn winning(
    ctx: &Ctx,
    market: &SettledMarket,
    result: &FinalResult,
    page: Vec<Payable>,
) -> Result<Vec<Winning>, AppError> {
    let may_win =
        |position: &Payable| result.payout(position.outcome_index) > Wad::ZERO && position.tokens > Wad::ZERO;
    let is_unclaimed = |position: &Payable| position.claim.is_none_or(|(_, ended_at)| ended_at.is_some());
    let asked = page.into_iter().filter(|position| may_win(position) && is_unclaimed(position));
    let worths: Vec<Result<Winning, AppError>> = futures::stream::iter(asked)
        .map(async |position| {
            let worth = redeemable(ctx, position.account, market.number, position.outcome_index).await?;
            Ok(Winning { position, worth })
        })
        .buffered(chain::MAX_CONCURRENT_CALLS)
        .collect()
        .await;
    let worths: Result<Vec<_>, _> = worths.into_iter().collect();
    // Smaller amounts are paid when their holders claim them.
    Ok(worths?.into_iter().filter(|winning| minimum::is_paid_unasked(ctx, winning.worth)).collect())
}

enum Claim {
    New(Box<Redemption>),
    Again(ClaimRetry),
}

fn claim_of(ctx: &Ctx, market: &SettledMarket, winning: Winning, now: Timestamp) -> Claim {
    let Winning { position, worth: expected } = winning;
    let tokens = position.tokens;
    if let Some((id, Some(ended_at))) = position.claim {
        return Claim::Again(ClaimRetry { id, ended_at, expected, tokens });
    }
    let id = RedemptionId(ctx.uuid());
    Claim::New(Box::new(Redemption {
        id,
        user_id: position.user_id,
        key_id: None,
        account: position.account,
        market_id: market.id,
        outcome_index: position.outcome_index,
        correlation_id: CorrelationId(id.0.as_u128()),
        status: RedemptionStatus::Pending,
        tokens,
        expected,
        paid: Usdc::ZERO,
        tx_hash: None,
        failure: None,
        batch_id: None,
        created_at: now,
        updated_at: now,
        ended_at: None,
    }))
}
