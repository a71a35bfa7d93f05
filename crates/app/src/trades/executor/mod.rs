//! The executor of one lane: takes pending trades up, signs them into batches, and sees each batch into a block. It also
//! carries the changes of its accounts' delegations, one in a transaction; that of the first lane carries redemptions too, in
//! batches of their own.
//!
//! It writes `batches`, `batch_transactions`, `delegation_changes`, and trades from `pending` to `executing`, `rejected` or
//! `failed`. It does not complete trades: the sync does, from the chain's events, whoever sent them. The same holds for
//! redemptions, but that one which can pay nothing for good is ended here.
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
mod redeeming;
mod renewing;
mod signing;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use chain::{ChainError, Signer, execute_calldata};
use domain::ErrorCode;
use domain::ids::{BatchId, KeyId, MarketId};
use domain::risk::RiskRefusal;
use domain::trade::{Status, Transition};
use parking_lot::Mutex;
use store::StoreError;
use store::batches::Batch;
use store::delegations::DelegationChange;
use store::leases::Lease;
use store::trades::{Claim, Moved, Trade};
use tokio::sync::Notify;

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
        let Work { change, trades_wait, is_held } = self.find_work(ctx).await?;
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
        if trades_wait { self.send_next(ctx, lease, &open).await } else { Ok(Progress::Idle) }
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
        let found: Result<_, StoreError> = ctx
            .store
            .read((self.lane, ctx.now()), |tx, (lane, now)| {
                Box::pin(async move {
                    let change = store::delegations::find_next(tx, *lane, *now).await?;
                    let trades_wait = store::trades::has_work(tx, *lane).await?;
                    Ok(Work { change, trades_wait, is_held: store::recoveries::is_open(tx).await? })
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
    async fn send_next(&self, ctx: &Ctx, lease: &Lease, open: &[Batch]) -> Result<Progress, AppError> {
        let gathered = self.gather(ctx, lease).await?;
        if gathered.fresh.is_empty() && gathered.again.is_empty() {
            return Ok(Progress::Idle);
        }
        let (quarantined, fresh): (Vec<_>, Vec<_>) = gathered
            .fresh
            .into_iter()
            .partition(|(trade, _)| gathered.quarantined.contains(&trade.market_id));
        let (stopped, fresh): (Vec<_>, Vec<_>) =
            fresh.into_iter().partition(|(trade, _)| gathered.stopped.contains(&trade.key_id));
        let verdicts = risk::judge(ctx, &fresh).await?;
        // A trade must not be refused on the word of another chain.
        let refuses = verdicts.iter().any(|verdict| matches!(verdict, Verdict::Reject(_)));
        let is_right_chain = !refuses || ctx.chain.confirm().await.is_ok();
        let mut to_send = Vec::new();
        let of_stopped_key =
            || Transition::reject(Status::Validating, RiskRefusal::DelegationInactive, ctx.now());
        let of_quarantined_market =
            || Transition::reject(Status::Validating, RiskRefusal::MarketPaused, ctx.now());
        let mut refused: Vec<_> = stopped.into_iter().map(|(trade, _)| (trade, of_stopped_key())).collect();
        refused.extend(quarantined.into_iter().map(|(trade, _)| (trade, of_quarantined_market())));
        let mut later = 0;
        for (candidate, verdict) in fresh.into_iter().zip(verdicts) {
            match verdict {
                Verdict::Send { highest_nonce } => to_send.push(ToSign { candidate, highest_nonce }),
                Verdict::Reject(_) if !is_right_chain => later += 1,
                Verdict::Reject(reason) => {
                    refused.push((candidate.0, Transition::reject(Status::Validating, reason, ctx.now())));
                }
                Verdict::Expired => {
                    refused.push((
                        candidate.0,
                        Transition::fail(Status::Validating, risk::expired(), ctx.now()),
                    ));
                }
                Verdict::Later => later += 1,
            }
        }
        let waiting = gathered.again.len();
        let Lost { again, ended } = self.sort_lost(ctx, gathered.again).await?;
        if !ended.is_empty() {
            ctx.chain.confirm().await?;
        }
        refused.extend(ended);
        self.refuse(ctx, lease, refused).await?;
        if to_send.is_empty() && again.is_empty() {
            return Ok(if later > 0 || waiting > 0 { Progress::Idle } else { Progress::More });
        }
        if !self.gate_takes_batches(ctx).await? {
            return Ok(Progress::Idle);
        }
        match self.sign_and_store(ctx, lease, open, to_send, again).await {
            Ok(Some((batch, raw))) => self.send_stored(ctx, lease, &batch, &raw).await?,
            Ok(None) => {}
            Err(error) => match LostData::of(&error) {
                Some(lost) => recovery::open_for_nonce(ctx, lost).await?,
                None => return Err(error),
            },
        }
        Ok(Progress::More)
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

    /// The lane's next trades: first those that a batch lost, then those that were being judged, then pending ones. While
    /// trading is halted only the first: what was signed goes on, and the others wait.
    async fn gather(&self, ctx: &Ctx, lease: &Lease) -> Result<Gathered, AppError> {
        let validate = Transition::validate(Status::Pending, ctx.now()).map_err(internal)?;
        let halted = ctx.switches.is_trading_halted();
        let input = (lease.clone(), self.lane, validate, ctx.chain.chain_id(), halted);
        ctx.store
            .write(input, |tx, (lease, lane, validate, chain_id, halted)| {
                Box::pin(async move {
                    lease::check(tx, lease).await?;
                    let again = store::trades::list_unbatched(tx, *lane, MAX_BATCH).await?;
                    let room = if *halted { 0 } else { MAX_BATCH.saturating_sub(again.len() as u32) };
                    let mut fresh = store::trades::list_validating(tx, *lane, room).await?;
                    let room = room.saturating_sub(fresh.len() as u32);
                    if room > 0 {
                        let claim = Claim { lane: *lane, limit: room, at_most: None };
                        fresh.extend(store::trades::claim_pending(tx, claim, validate).await?);
                    }
                    let again = with_markets(tx, *chain_id, again).await?;
                    let fresh = with_markets(tx, *chain_id, fresh).await?;
                    let now = validate.trace.at;
                    let stopped = store::keys::list_stopped_validating(tx, *lane, now).await?;
                    let quarantined = store::quarantine::list_validating(tx, *lane).await?;
                    Ok(Gathered { fresh, again, stopped, quarantined })
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

    async fn refuse(
        &self,
        ctx: &Ctx,
        lease: &Lease,
        refused: Vec<(Trade, Result<Transition, domain::trade::IllegalMove>)>,
    ) -> Result<(), AppError> {
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
    /// Keys of fresh trades that make no trade any more.
    stopped: Vec<KeyId>,
    /// Markets of fresh trades that are in quarantine.
    quarantined: Vec<MarketId>,
}

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
