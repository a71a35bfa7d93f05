//! The executor of one lane: takes pending trades up, signs them into batches, and sees each batch into a block. It also
//! carries the changes of its accounts' delegations, one in a transaction; that of the first lane carries redemptions too, in
//! batches of their own.
//!
//! It writes `batches`, `batch_transactions`, `delegation_changes`, and trades from `pending` to `executing`, `rejected` or
//! `failed`. It does not complete trades: the sync does, from the chain's events, whoever sent them. The same holds for
//! redemptions, but that one which can pay nothing for good is ended here.
//!
//! While the chain's fees are above the operator's ceiling nothing is signed, and trades that do not fit into the hour's volume of
//! the Gate wait. What was signed goes on.
//!
//! What a crash leaves at each step, and what the next tick makes of it:
//! - trades claimed (`validating`), not signed: judged again;
//! - batch signed and stored, not sent or sent without an answer: no receipt, so the same bytes are sent again;
//! - batch mined, not noted: its receipt is found by any of its hashes;
//! - batch reverted as a whole, or its nonce taken by another transaction: its trades are signed again **as the same
//!   intents**, which the Gate executes at most once; its redemptions are judged again like new ones, since the hub pays no
//!   position twice;
//! - an intent whose nonce another intent had used: it never ran, so its trade gets another nonce, once;
//! - transaction of a delegation's change that reverted or lost its nonce: the change is queued again;
//! - this process frozen and another in its place: the lease's epoch has moved, and every write here checks it first.
//!
//! A database that was set back is another matter: see [`crate::recovery`]. Before a lane signs the first time after a
//! takeover it looks for trades that are missing here, and while a recovery is open it signs nothing.

mod delegating;
mod following;
mod holding;
mod redeeming;
mod renewing;
mod signing;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use chain::{ChainError, Signer, execute_calldata};
use domain::ErrorCode;
use domain::ids::{BatchId, KeyId, MarketId};
use domain::risk::RiskRefusal;
use domain::trade::{Budget, Room, Status, Transition};
use domain::{Timestamp, Usdc};
use parking_lot::Mutex;
use store::StoreError;
use store::batches::Batch;
use store::delegations::DelegationChange;
use store::leases::Lease;
use store::trades::{Moved, Trade};
use tokio::sync::Notify;

use self::holding::{admit, sum_in_flight};
use self::renewing::Lost;
pub(crate) use self::signing::batch_gas;
use super::risk::{self, Candidate, Verdict};
use crate::finality::final_block;
use crate::lease::{self, LeaseHolder};
use crate::recovery::{self, Detection, LostData};
use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx};

/// The most intents of one transaction.
const MAX_BATCH: u32 = 100;

/// One lane's executor.
pub struct Executor {
    lane: u16,
    signer: Signer,
    lease: LeaseHolder,
    /// The batches that the node has taken from this executor, or may have. What is not in it is sent at once: a batch that
    /// an earlier life left behind, or one that the node refused.
    taken: Mutex<HashSet<BatchId>>,
    /// Redemptions had their turn: trades that wait come next, so that neither holds the other up.
    redeemed_last: AtomicBool,
    /// The same for changes of delegations.
    changed_last: AtomicBool,
    /// The lease's epoch in which no data was found to be lost.
    verified_epoch: Mutex<Option<i64>>,
    /// Until when the chain is not asked for its fees again, because they were above the ceiling.
    fees_pause: Mutex<Option<Timestamp>>,
}

impl Worker for Executor {
    fn name(&self) -> &'static str {
        "executor"
    }

    fn label(&self) -> String {
        format!("executor:{}", self.lane)
    }

    fn signal<'a>(&self, ctx: &'a Ctx) -> Option<&'a Notify> {
        Some(&ctx.wake.executor)
    }

    async fn release(&self, ctx: &Ctx) -> Result<(), AppError> {
        self.lease.release(ctx).await
    }

    async fn tick(&self, ctx: &Ctx) -> Result<Progress, AppError> {
        let Some(lease) = self.lease.claim(ctx).await? else { return Ok(Progress::Idle) };
        self.lease.keep(ctx, &lease, self.work(ctx, &lease)).await
    }
}

impl Executor {
    /// The executor of `lane`, which signs with `signer`. `owner` names this process in leases.
    pub fn new(lane: u16, signer: Signer, owner: String) -> Self {
        let lease = LeaseHolder::new(format!("executor:{lane}"), owner);
        Self {
            lane,
            signer,
            lease,
            taken: Mutex::default(),
            redeemed_last: AtomicBool::new(false),
            changed_last: AtomicBool::new(false),
            verified_epoch: Mutex::default(),
            fees_pause: Mutex::default(),
        }
    }

    /// Sees the open batches into blocks, then signs and sends what comes next.
    async fn work(&self, ctx: &Ctx, lease: &Lease) -> Result<Progress, AppError> {
        let mut open = self.open_batches(ctx).await?;
        if !open.is_empty() {
            let seen = self.look(ctx).await?;
            let mut still_open = Vec::with_capacity(open.len());
            for batch in open {
                if !self.advance(ctx, lease, &batch, seen).await? {
                    still_open.push(batch);
                }
            }
            open = still_open;
        }
        // A batch behind one that the node does not have would only wait, or be refused.
        let all_taken = open.iter().all(|batch| self.taken.lock().contains(&batch.id));
        if !all_taken {
            return Ok(Progress::Idle);
        }
        let full = open.len() >= ctx.config.max_batches_in_flight as usize;
        let Work { change, trades_wait, is_held, signed } = self.find_work(ctx).await?;
        let has_work = change.is_some() || trades_wait;
        if is_held || (has_work && !self.verify(ctx, lease).await?) {
            return Ok(Progress::Idle);
        }
        let change_waits_its_turn = self.changed_last.swap(false, Ordering::Relaxed) && trades_wait && !full;
        if let Some(change) = change.filter(|_| !change_waits_its_turn)
            && self.change_next(ctx, lease, &open, change).await?
        {
            self.changed_last.store(true, Ordering::Relaxed);
            return Ok(Progress::More);
        }
        if full {
            return Ok(Progress::Idle);
        }
        let trades_turn = self.redeemed_last.swap(false, Ordering::Relaxed) && trades_wait;
        if self.lane == redeeming::REDEMPTION_LANE && !trades_turn {
            self.redeemed_last.store(true, Ordering::Relaxed);
            if self.redeem_next(ctx, lease, &open).await? {
                return Ok(Progress::More);
            }
        }
        if trades_wait { self.send_next(ctx, lease, &open, signed).await } else { Ok(Progress::Idle) }
    }

    /// Whether nothing was lost that this lane signed before it was taken over; looked for once in each epoch of the lease.
    async fn verify(&self, ctx: &Ctx, lease: &Lease) -> Result<bool, AppError> {
        if *self.verified_epoch.lock() == Some(lease.epoch) {
            return Ok(true);
        }
        let is_clean = recovery::detect(ctx).await? == Detection::Clean;
        if is_clean {
            *self.verified_epoch.lock() = Some(lease.epoch);
        }
        Ok(is_clean)
    }

    async fn find_work(&self, ctx: &Ctx) -> Result<Work, AppError> {
        let input = (self.lane, ctx.config.lanes, ctx.now());
        let found: Result<_, StoreError> = ctx
            .store
            .read(input, |tx, (lane, lanes, now)| {
                Box::pin(async move {
                    let change = store::delegations::find_next(tx, *lane, *now).await?;
                    let trades_wait = store::trades::has_work(tx, *lane).await?;
                    let signed =
                        if trades_wait { sum_in_flight(tx, *lane, *lanes).await? } else { Usdc::ZERO };
                    let is_held = store::recoveries::is_open(tx).await?;
                    Ok(Work { change, trades_wait, is_held, signed })
                })
            })
            .await;
        Ok(found?)
    }

    async fn open_batches(&self, ctx: &Ctx) -> Result<Vec<Batch>, AppError> {
        let lane = self.lane;
        let open: Result<_, StoreError> =
            ctx.store.read(lane, |tx, lane| Box::pin(store::batches::list_open(tx, *lane, 100))).await;
        Ok(open?)
    }

    /// Gathers what is to be sent, judges it, stores the signed batch, and sends it.
    async fn send_next(
        &self,
        ctx: &Ctx,
        lease: &Lease,
        open: &[Batch],
        signed: Usdc,
    ) -> Result<Progress, AppError> {
        let conditions = self.conditions(ctx, signed).await;
        // A chain that does not answer is no reason to hold a trade: it is judged again until it does.
        let room = conditions.as_ref().map_or(Room::Unlimited, |conditions| conditions.room);
        let gathered = self.gather(ctx, lease, room).await?;
        if gathered.fresh.is_empty() && gathered.again.is_empty() {
            return Ok(Progress::Idle);
        }
        let waiting = gathered.again.len();
        let Lost { mut again, ended } = self.sort_lost(ctx, gathered.again).await?;
        // What was signed before comes first.
        let mut budget = Budget::new(room);
        again.retain(|one| {
            let (trade, _) = one.candidate();
            budget.admit(&trade.account, trade.volume)
        });
        let (to_send, mut ends, later) =
            self.judge(ctx, lease, gathered.fresh, gathered.ending, budget).await?;
        if !ended.is_empty() {
            ctx.chain.confirm().await?;
        }
        ends.extend(ended);
        self.refuse(ctx, lease, ends).await?;
        if to_send.is_empty() && again.is_empty() {
            return Ok(if later > 0 || waiting > 0 { Progress::Idle } else { Progress::More });
        }
        let Some(fees) = conditions?.fees else { return Ok(Progress::Idle) };
        if !self.gate_takes_batches(ctx).await? {
            return Ok(Progress::Idle);
        }
        match self.sign_and_store(ctx, lease, open, fees, to_send, again).await {
            Ok(Some((batch, raw))) => self.send_stored(ctx, lease, &batch, &raw).await?,
            Ok(None) => {}
            Err(error) => match LostData::of(&error) {
                Some(lost) => recovery::open_for_nonce(ctx, lost).await?,
                None => return Err(error),
            },
        }
        Ok(Progress::More)
    }

    /// Judges fresh trades: those to be signed, those that end here, and how many are to be judged again.
    async fn judge(
        &self,
        ctx: &Ctx,
        lease: &Lease,
        fresh: Vec<Candidate>,
        ending: Ending,
        mut budget: Budget,
    ) -> Result<(Vec<ToSign>, Vec<Ended>, usize), AppError> {
        let now = ctx.now();
        let reject = |reason| Transition::reject(Status::Validating, reason, now);
        let (ends, fresh): (Vec<_>, Vec<_>) =
            fresh.into_iter().partition(|(trade, _)| ending.reason_of(trade).is_some());
        let mut ends: Vec<Ended> = ends
            .into_iter()
            .filter_map(|(trade, _)| ending.reason_of(&trade).map(|reason| (trade, reject(reason))))
            .collect();
        let verdicts = risk::judge(ctx, &fresh).await?;
        // A trade must not be refused on the word of another chain.
        let refuses = verdicts.iter().any(|verdict| matches!(verdict, Verdict::Reject(_)));
        let is_right_chain = !refuses || ctx.chain.confirm().await.is_ok();
        let (mut to_send, mut misfits, mut later) = (Vec::new(), Vec::new(), 0);
        for (candidate, verdict) in fresh.into_iter().zip(verdicts) {
            let trade = &candidate.0;
            match verdict {
                Verdict::Send { highest_nonce, usdc } if budget.admit(&trade.account, usdc) => {
                    to_send.push(ToSign { candidate, highest_nonce });
                }
                Verdict::Send { usdc, .. } => misfits.push((trade.id, usdc)),
                Verdict::Reject(_) if !is_right_chain => later += 1,
                Verdict::Reject(reason) => ends.push((candidate.0, reject(reason))),
                Verdict::Expired => {
                    let failed = Transition::fail(Status::Validating, risk::expired(trade), now);
                    ends.push((candidate.0, failed));
                }
                Verdict::Later => later += 1,
            }
        }
        later += misfits.len();
        self.hold_misfits(ctx, lease, misfits).await?;
        Ok((to_send, ends, later))
    }

    /// Sends a batch for the first time.
    async fn send_stored(&self, ctx: &Ctx, lease: &Lease, batch: &Batch, raw: &[u8]) -> Result<(), AppError> {
        self.send(ctx, batch.id, raw).await;
        ctx.wake.sync.notify_waiters();
        // A chain that mines at once has the receipt already: the batch need not wait for the next tick.
        let seen = self.look(ctx).await?;
        self.advance(ctx, lease, batch, seen).await?;
        Ok(())
    }

    /// Where the chain stands, and how many of this executor's transactions are final.
    async fn look(&self, ctx: &Ctx) -> Result<Seen, AppError> {
        let ((), head) = tokio::try_join!(ctx.chain.confirm(), ctx.chain.head())?;
        let head = head.number;
        let final_block = final_block(ctx, head).await?;
        let final_nonce = match final_block {
            // The embedded chain's newest block is at hand; a node is asked for the very block, which it may lack.
            Some(block) if block == head && ctx.chain.is_embedded() => {
                ctx.chain.transaction_count(self.signer.address()).await?
            }
            Some(block) => ctx.chain.transaction_count_at(self.signer.address(), block).await?,
            None => 0,
        };
        Ok(Seen { final_block, final_nonce })
    }

    /// The lane's next trades that fit into the room: first those that a batch lost, then those that were being judged, then
    /// pending ones. Trades that do not fit are marked as waiting. While trading is halted only the first: what was signed goes
    /// on, and the others wait.
    async fn gather(&self, ctx: &Ctx, lease: &Lease, room: Room) -> Result<Gathered, AppError> {
        let validate = Transition::validate(Status::Pending, ctx.now()).map_err(internal)?;
        let halted = ctx.switches.is_trading_halted();
        let input = (lease.clone(), self.lane, validate, ctx.chain.chain_id(), halted, room);
        ctx.store
            .write(input, |tx, (lease, lane, validate, chain_id, halted, room)| {
                Box::pin(async move {
                    lease::check(tx, lease).await?;
                    let mut budget = Budget::new(*room);
                    let again = store::trades::list_unbatched(tx, *lane, MAX_BATCH).await?;
                    let signed =
                        again.iter().filter(|trade| budget.admit(&trade.account, trade.volume)).count();
                    let limit = if *halted { 0 } else { MAX_BATCH.saturating_sub(signed as u32) };
                    let fresh = take_fresh(tx, *lane, limit, &mut budget, validate).await?;
                    let again = with_markets(tx, *chain_id, again).await?;
                    let fresh = with_markets(tx, *chain_id, fresh).await?;
                    let now = validate.trace.at;
                    let stopped = store::keys::list_stopped_validating(tx, *lane, now).await?;
                    let quarantined = store::quarantine::list_validating(tx, *lane).await?;
                    Ok(Gathered { fresh, again, ending: Ending { stopped, quarantined } })
                })
            })
            .await
    }

    /// Whether the Gate takes batches of this executor at all: one that it refuses as a whole would only burn gas. The
    /// trades wait, and end at their deadlines if that comes first.
    async fn gate_takes_batches(&self, ctx: &Ctx) -> Result<bool, AppError> {
        let gate = ctx.chain.contracts().gate;
        match ctx.chain.simulate(self.signer.address(), gate, execute_calldata(&[])).await {
            Ok(_) => Ok(true),
            Err(ChainError::Reverted(reason)) => {
                tracing::warn!(lane = self.lane, %reason, "trades wait: the Gate takes no batches");
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn refuse(&self, ctx: &Ctx, lease: &Lease, refused: Vec<Ended>) -> Result<(), AppError> {
        if refused.is_empty() {
            return Ok(());
        }
        let moves: Result<Vec<_>, _> =
            refused.into_iter().map(|(trade, moved)| moved.map(|moved| (trade, moved))).collect();
        ctx.store
            .write((lease.clone(), moves.map_err(internal)?), |tx, (lease, moves)| {
                Box::pin(async move {
                    lease::check(tx, lease).await?;
                    for (trade, transition) in moves {
                        if let Moved::Stale { current } = store::trades::apply(tx, trade, transition).await? {
                            tracing::warn!(trade.id = %trade.id, %current, "a trade moved while it was judged");
                        }
                    }
                    Ok(())
                })
            })
            .await
    }
}

/// What a lane could sign.
struct Work {
    /// The delegation's change that is to be sent next.
    change: Option<DelegationChange>,
    /// Whether trades wait.
    trades_wait: bool,
    /// Whether a recovery is open: nothing is signed.
    is_held: bool,
    /// What trades may move that are signed and may not be part of the Gate's count yet.
    signed: Usdc,
}

/// A trade that gets a nonce when it is signed.
struct ToSign {
    candidate: Candidate,
    /// The highest nonce that the Gate has seen from the trade's key.
    highest_nonce: u32,
}

/// Where the chain stands.
#[derive(Debug, Clone, Copy)]
struct Seen {
    /// The newest final block.
    final_block: Option<u64>,
    /// How many of the executor's transactions are in final blocks.
    final_nonce: u64,
}

struct Gathered {
    fresh: Vec<Candidate>,
    again: Vec<Candidate>,
    /// Why some of the fresh trades end here.
    ending: Ending,
}

/// What ends trades before they are judged.
struct Ending {
    /// Keys of fresh trades that make no trade any more.
    stopped: Vec<KeyId>,
    /// Markets of fresh trades that are in quarantine.
    quarantined: Vec<MarketId>,
}

impl Ending {
    fn reason_of(&self, trade: &Trade) -> Option<RiskRefusal> {
        if self.quarantined.contains(&trade.market_id) {
            return Some(RiskRefusal::MarketPaused);
        }
        self.stopped.contains(&trade.key_id).then_some(RiskRefusal::DelegationInactive)
    }
}

/// Takes the fresh trades that fit, at most `limit`, and marks the others as waiting.
async fn take_fresh(
    tx: &mut store::Tx,
    lane: u16,
    limit: u32,
    budget: &mut Budget,
    validate: &Transition,
) -> Result<Vec<Trade>, StoreError> {
    if limit == 0 {
        return Ok(Vec::new());
    }
    let now = validate.trace.at;
    // Those that wait must not keep out the ones behind them.
    let look_ahead = if budget.room() == Room::Unlimited { limit } else { store::trades::LOOK_AHEAD };
    let validating = store::trades::list_validating(tx, lane, look_ahead).await?;
    let (mut fresh, mut held) = admit(validating, limit as usize, budget, now);
    let limit = limit.saturating_sub(fresh.len() as u32);
    if limit > 0 {
        let claimed = store::trades::claim_pending(tx, lane, limit, budget, validate).await?;
        fresh.extend(claimed.trades);
        held.extend(claimed.held);
    }
    store::trades::hold(tx, &held, budget.reason(), now).await?;
    Ok(fresh)
}

/// A trade and the move that ends it.
type Ended = (Trade, Result<Transition, domain::trade::IllegalMove>);

async fn with_markets(
    tx: &mut store::Tx,
    chain_id: u64,
    trades: Vec<Trade>,
) -> Result<Vec<Candidate>, AppError> {
    let mut known = std::collections::HashMap::new();
    let mut candidates = Vec::with_capacity(trades.len());
    for trade in trades {
        let number = match known.get(&trade.market_id) {
            Some(number) => *number,
            None => {
                let market =
                    store::markets::find(tx, trade.market_id).await?.filter(|m| m.chain_id == chain_id);
                let number = market.and_then(|market| market.chain_market_id);
                known.insert(trade.market_id, number);
                number
            }
        };
        match number {
            Some(number) => candidates.push((trade, number)),
            None => {
                tracing::error!(trade.id = %trade.id, "a trade's market is not on this chain; passed over")
            }
        }
    }
    Ok(candidates)
}

fn internal(error: domain::trade::IllegalMove) -> AppError {
    AppError::new(ErrorCode::InternalError).caused_by(error)
}
