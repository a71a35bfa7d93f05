//! The payer: claims every settled position of the service's accounts by itself, where winnings are paid automatically.
//!
//! It writes `redemptions`, new ones and ended ones that are worth something again, and `payout_scans`: how far it has gone
//! through each market. The executor and the sync do the rest. A page of a market's positions is claimed in one transaction
//! with the note of how far it went, so a crash leaves the page claimed or not begun; a position has one claim in any case.

use domain::ids::{CorrelationId, RedemptionId};
use domain::redemption::{Payout, Status};
use domain::{ErrorCode, Timestamp, Usdc, Wad};
use futures::StreamExt;
use store::StoreError;
use store::leases::Lease;
use store::redemptions::{Again, Payable, Redemption, SettledMarket};

use super::{FinalResult, Redemptions, redeemable, settled_block};
use crate::lease::{self, LeaseHolder, Turn};
use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx};

/// Markets of one tick, and positions of each.
const MARKETS: u32 = 20;
const POSITIONS: u32 = 100;
/// Questions to the chain that are open at once.
const CONCURRENT: usize = 16;

/// The payer's worker. Markets settle seldom: the timer alone wakes it, and not every block that holds a trade.
#[derive(Debug)]
pub struct Payer {
    lease: LeaseHolder,
}

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
    /// A payer. `owner` names this process in leases.
    pub fn new(owner: String) -> Self {
        Self { lease: LeaseHolder::new("payer".to_owned(), owner) }
    }
}

/// Gathers the claims of the next markets.
async fn work(ctx: &Ctx, lease: &Lease) -> Result<Progress, AppError> {
    let turn = Turn::begin(ctx);
    let chain_id = ctx.chain.chain_id();
    let markets: Result<Vec<_>, StoreError> = ctx
        .store
        .read(chain_id, |tx, id| Box::pin(store::redemptions::list_unscanned(tx, *id, MARKETS)))
        .await;
    let mut progress = Progress::Idle;
    let settled = settled_block(ctx).await?;
    for market in markets? {
        if turn.is_over() && progress == Progress::More {
            return Ok(progress);
        }
        // A result that is not final yet may be another in the end.
        let Some(result) = FinalResult::of(ctx, market.number, settled).await? else { continue };
        pay_page(ctx, lease, market, &result).await?;
        progress = Progress::More;
    }
    Ok(progress)
}

/// A position that is worth something.
struct Winning {
    position: Payable,
    worth: Usdc,
}

/// Claims the next page of a market's positions.
async fn pay_page(
    ctx: &Ctx,
    lease: &Lease,
    mut market: SettledMarket,
    result: &FinalResult,
) -> Result<(), AppError> {
    let page: Result<Vec<_>, StoreError> = ctx
        .store
        .read(market.clone(), |tx, market| Box::pin(store::redemptions::list_payable(tx, market, POSITIONS)))
        .await;
    let page = page?;
    let is_last = page.len() < POSITIONS as usize;
    if let Some(last) = page.last() {
        market.after = (last.account.clone(), i64::from(last.outcome_index));
    }
    let winning = winning(ctx, &market, result, page).await?;
    let now = ctx.now();
    let claims: Vec<_> = winning.into_iter().map(|winning| claim_of(ctx, &market, winning, now)).collect();
    let scanned_at = is_last.then_some(now);
    let input = (lease.clone(), market, claims, scanned_at, now);
    ctx.store
        .write(input, |tx, (lease, market, claims, scanned_at, now)| {
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

/// The positions of a page that the chain would pay at least the smallest claim and that have no open claim.
async fn winning(
    ctx: &Ctx,
    market: &SettledMarket,
    result: &FinalResult,
    page: Vec<Payable>,
) -> Result<Vec<Winning>, AppError> {
    let may_win = |position: &Payable| match result.payout(position.outcome_index) {
        Payout::PerToken(payout) => payout > Wad::ZERO && position.tokens > Wad::ZERO,
        // The rest of a refund is owed to a position whose tokens are gone.
        Payout::Refund => true,
    };
    let is_unclaimed = |position: &Payable| position.claim.is_none_or(|(_, ended_at)| ended_at.is_some());
    let asked = page.into_iter().filter(|position| may_win(position) && is_unclaimed(position));
    let worths: Vec<Result<Winning, AppError>> = futures::stream::iter(asked)
        .map(async |position| {
            let account = position.account.parse();
            let account =
                account.map_err(|error| AppError::new(ErrorCode::InternalError).caused_by(error))?;
            let worth = redeemable(ctx, account, market.number, position.outcome_index).await?;
            Ok(Winning { position, worth })
        })
        .buffered(CONCURRENT)
        .collect()
        .await;
    let worths: Result<Vec<_>, _> = worths.into_iter().collect();
    // What is worth less than the smallest claim is left to its holder, who can redeem it on chain.
    let is_paid = |winning: &Winning| winning.worth > Usdc::ZERO && winning.worth >= ctx.config.min_claim;
    Ok(worths?.into_iter().filter(is_paid).collect())
}

enum Claim {
    New(Box<Redemption>),
    Again(Again),
}

fn claim_of(ctx: &Ctx, market: &SettledMarket, winning: Winning, now: Timestamp) -> Claim {
    let Winning { position, worth: expected } = winning;
    let tokens = position.tokens;
    if let Some((id, Some(ended_at))) = position.claim {
        return Claim::Again(Again { id, ended_at, expected, tokens });
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
        status: Status::Pending,
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
