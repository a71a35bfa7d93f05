//! The executor of one lane: signs pending trades into batches and follows each batch until it is
//! in a final block.
//!
//! It also sends delegation changes and owner acts of its lane's accounts, one per transaction. The
//! executor of the first active lane sends redemptions too, in batches of their own.
//!
//! It writes `batches`, `batch_transactions`, `delegation_changes`, ends `owner_acts`, and moves
//! trades from `pending` to `executing`, `rejected` or `failed`. It does not complete trades: the sync does that from the
//! contracts' events, no matter who sent the transaction. It fails an executing trade only if its
//! batch is lost and its key has ended. Redemptions work the same way, except
//! that one that can never pay is ended here.
//!
//! While the chain's fees are above the operator's ceiling, nothing is signed. Trades that exceed
//! the Gate's hourly volume cap wait. Batches that are already signed continue in both cases.
//!
//! States that a crash can leave, and how the next tick continues:
//! - Trades claimed (`validating`) but not signed: they are checked again.
//! - Batch stored, but not signed by its remote signer: it is asked again for the same transaction.
//! - Batch signed and stored, but not sent, or sent without a response: it has no receipt, so the
//!   same bytes are sent again.
//! - Batch mined, but not recorded: its receipt is found by the hash of any of its forms.
//! - Batch reverted as a whole, or its nonce used by another transaction: its trades are signed
//!   again **as the same intents**, which the Gate executes at most once. Its redemptions are
//!   checked again like new ones; the hub pays no position twice.
//! - Intent whose nonce another intent had used: it never ran, so its trade gets another nonce,
//!   once.
//! - Delegation change whose transaction reverted or lost its nonce: it is queued again.
//! - Owner act whose transaction reverted or lost its nonce: the account's nonce and the act's
//!   deadline decide whether it has ended or is queued again.
//! - This process frozen and replaced by another: the lease's epoch has changed, and every write
//!   here checks the epoch first.
//!
//! A database that was restored from a backup needs more: see [`crate::recovery`]. Before a lane
//! signs for the first time after a takeover, it looks for lost trades. While a recovery is open,
//! it signs nothing.

mod acting;
mod changing;
mod delegating;
mod holding;
mod redeeming;
mod remote;
mod renewing;
mod signing;
mod tracking;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use async_trait::async_trait;
use chain::{ChainError, LaneSigner, execute_calldata};
use domain::ids::{BatchId, KeyId, MarketId};
use domain::risk::RiskRefusal;
use domain::trade::{Budget, Room, Status, Transition};
use domain::{Timestamp, Usdc};
use parking_lot::Mutex;
use store::StoreError;
use store::batches::{Batch, FirstForm};
use store::delegations::DelegationChange;
use store::leases::Lease;
use store::owner_acts::OwnerAct;
use store::trades::{Elsewhere, Moved, Trade};
use tokio::sync::Notify;

use self::changing::{Duty, elsewhere};
use self::holding::admit;
use self::renewing::Lost;
pub(crate) use self::signing::batch_gas;
use super::risk::{self, Candidate, RiskCheck, RiskDecision, TradeCheck};
use crate::finality::final_block;
use crate::lease::{self, LeaseHolder};
use crate::lost_data::{self, Detection, LostData};
use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx};

/// The maximum number of intents in one transaction.
const MAX_BATCH: u32 = 100;

pub struct Executor {
    lane: u16,
    signer: LaneSigner,
    lease: LeaseHolder,
    check: Arc<dyn TradeCheck>,
    /// The batches that the node has accepted from this process, or may have. Other open batches
    /// are sent at once: an earlier process left them behind, or the node rejected them.
    taken: Mutex<HashSet<BatchId>>,
    /// Set after redemptions had a turn. Waiting trades then go first, so that neither blocks the
    /// other.
    redeemed_last: AtomicBool,
    /// Set after a delegation change or an owner act had a turn, for the same reason.
    single_last: AtomicBool,
    /// The lease epoch in which [`lost_data::detect()`] last found no lost data.
    verified_epoch: Mutex<Option<i64>>,
    /// The time until which the chain's fees are not read again, after they were above the ceiling.
    fees_pause: Mutex<Option<Timestamp>>,
}

#[async_trait]
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
        ctx.process.metrics.lane_leader(self.lane, false);
        self.lease.release(ctx).await
    }

    async fn tick(&self, ctx: &Ctx) -> Result<Progress, AppError> {
        let lease = self.lease.claim(ctx).await?;
        ctx.process.metrics.lane_leader(self.lane, lease.is_some());
        let Some(lease) = lease else { return Ok(Progress::Idle) };
        self.lease.keep(ctx, &lease, self.work(ctx, &lease)).await
    }
}

impl Executor {
    /// Creates the executor of `lane`, which signs with `signer`. `owner` identifies this process
    /// in leases.
    pub fn new(lane: u16, signer: impl Into<LaneSigner>, owner: String) -> Self {
        let lease = LeaseHolder::new(store::lanes::lease_name(lane), owner);
        Self {
            lane,
            signer: signer.into(),
            lease,
            check: Arc::new(RiskCheck),
            taken: Mutex::default(),
            redeemed_last: AtomicBool::new(false),
            single_last: AtomicBool::new(false),
            verified_epoch: Mutex::default(),
            fees_pause: Mutex::default(),
        }
    }

    /// Replaces the check of trades before they are signed.
    #[must_use]
    pub fn checked_by(self, check: impl TradeCheck + 'static) -> Self {
        Self { check: Arc::new(check), ..self }
    }

    /// Advances the open batches, then signs and sends the next work.
    async fn work(&self, ctx: &Ctx, lease: &Lease) -> Result<Progress, AppError> {
        let mut open = self.open_batches(ctx).await?;
        ctx.process.metrics.open_batches(self.lane, open.len());
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
        // A batch whose predecessor the node lacks would wait in the mempool or be rejected.
        let all_taken = open.iter().all(|batch| self.taken.lock().contains(&batch.id));
        if !all_taken {
            return Ok(Progress::Idle);
        }
        let full = open.len() >= ctx.config.max_batches_in_flight as usize;
        let Work { change, act, trades_wait, is_held, signed, duty } = self.find_work(ctx).await?;
        let has_work = change.is_some() || act.is_some() || trades_wait;
        // Verified before anything is signed: a lane with lost data would assign nonces that are
        // already used.
        if is_held || (has_work && !self.verify(ctx, lease).await?) {
            return Ok(Progress::Idle);
        }
        if self.follow_lanes(ctx, lease, &duty).await? {
            return Ok(Progress::More);
        }
        if duty.hands_over {
            return Ok(Progress::Idle);
        }
        // With all batch slots full, trades cannot use their turn, so the others do not wait for
        // them.
        let is_trades_turn = self.single_last.swap(false, Ordering::Relaxed) && trades_wait && !full;
        if !is_trades_turn && self.single_next(ctx, lease, &open, change, act).await? {
            self.single_last.store(true, Ordering::Relaxed);
            return Ok(Progress::More);
        }
        if full {
            return Ok(Progress::Idle);
        }
        let trades_turn = self.redeemed_last.swap(false, Ordering::Relaxed) && trades_wait;
        if duty.redeems(self.lane) && !trades_turn {
            self.redeemed_last.store(true, Ordering::Relaxed);
            if self.redeem_next(ctx, lease, &open).await? {
                return Ok(Progress::More);
            }
        }
        if trades_wait { self.send_next(ctx, lease, &open, signed).await } else { Ok(Progress::Idle) }
    }

    /// Advances a delegation change or else an owner act, which have a transaction each. Returns
    /// whether it did.
    async fn single_next(
        &self,
        ctx: &Ctx,
        lease: &Lease,
        open: &[Batch],
        change: Option<DelegationChange>,
        act: Option<OwnerAct>,
    ) -> Result<bool, AppError> {
        if let Some(change) = change
            && self.change_next(ctx, lease, open, change).await?
        {
            return Ok(true);
        }
        match act {
            Some(act) => self.act_next(ctx, lease, open, act).await,
            None => Ok(false),
        }
    }

    /// Returns whether none of this lane's earlier signed trades is lost. Checked once per lease
    /// epoch.
    async fn verify(&self, ctx: &Ctx, lease: &Lease) -> Result<bool, AppError> {
        if *self.verified_epoch.lock() == Some(lease.epoch) {
            return Ok(true);
        }
        let is_clean = lost_data::detect(ctx).await? == Detection::Clean;
        if is_clean {
            *self.verified_epoch.lock() = Some(lease.epoch);
        }
        Ok(is_clean)
    }

    async fn find_work(&self, ctx: &Ctx) -> Result<Work, AppError> {
        let input = (self.lane, ctx.now());
        Ok(ctx
            .store
            .read(input, |tx, (lane, now)| {
                Box::pin(async move {
                    let change = store::delegations::find_next(tx, *lane, *now).await?;
                    let act = store::owner_acts::find_next(tx, *lane, *now).await?;
                    let trades_wait = store::trades::has_work(tx, *lane).await?;
                    // The Gate's volume cap applies per executor, so other lanes do not count.
                    let signed =
                        if trades_wait { store::trades::sum_signed(tx, *lane).await? } else { Usdc::ZERO };
                    let is_held = store::recoveries::is_open(tx).await?;
                    let duty = Duty::read(tx, *lane).await?;
                    Ok(Work { change, act, trades_wait, is_held, signed, duty })
                })
            })
            .await?)
    }

    async fn open_batches(&self, ctx: &Ctx) -> Result<Vec<Batch>, AppError> {
        let lane = self.lane;
        Ok(ctx.store.read(lane, |tx, lane| Box::pin(store::batches::list_open(tx, *lane, 100))).await?)
    }

    /// Claims trades, checks them, stores the signed batch, and sends it.
    async fn send_next(
        &self,
        ctx: &Ctx,
        lease: &Lease,
        open: &[Batch],
        signed: Usdc,
    ) -> Result<Progress, AppError> {
        // An error here is returned below, after the trades that need no fees have been ended.
        let conditions = self.conditions(ctx, signed).await;
        // If the chain does not answer, do not mark trades as waiting for volume: they are checked
        // again in the next tick.
        let room = conditions.as_ref().map_or(Room::Unlimited, |conditions| conditions.room);
        let may_send = conditions.as_ref().map_or(true, |conditions| conditions.is_executor);
        if !may_send && self.hand_over_without_right(ctx, lease).await? {
            return Ok(Progress::Idle);
        }
        let gathered = self.gather(ctx, lease, room).await?;
        if gathered.fresh.is_empty() && gathered.again.is_empty() {
            return Ok(Progress::Idle);
        }
        let waiting = gathered.again.len();
        let Lost { mut again, ended } = self.sort_lost(ctx, gathered.again).await?;
        // Trades were gathered by their stored estimates. They are admitted again here, by their current
        // quotes. Trades that were signed before get the volume first.
        let mut budget = Budget::new(room);
        again.retain(|one| {
            let (trade, _) = one.candidate();
            budget.admit(trade.account, trade.volume)
        });
        let (to_send, mut ends, later) =
            self.check_trades(ctx, lease, gathered.fresh, gathered.exclusions, budget).await?;
        // A trade must not be ended on the word of a node of another chain.
        if !ended.is_empty() {
            ctx.chain.confirm().await?;
        }
        ends.extend(ended);
        self.refuse(ctx, lease, ends).await?;
        if to_send.is_empty() && again.is_empty() {
            return Ok(if later > 0 || waiting > 0 { Progress::Idle } else { Progress::More });
        }
        // The rejections above are stored before this returns: they need no fees.
        let Some(fees) = conditions?.fees else { return Ok(Progress::Idle) };
        if !self.gate_takes_batches(ctx).await? {
            return Ok(Progress::Idle);
        }
        let began = Instant::now();
        match self.sign_and_store(ctx, lease, open, fees, to_send, again).await {
            // The batch is committed at this point. If the process dies before or during the send,
            // the next tick sends the stored bytes.
            Ok(Some((batch, form))) => {
                let trades = signing::intents_of(batch.gas_limit);
                ctx.process.metrics.batch_signed(trades);
                self.send_stored(ctx, lease, &batch, &form).await?;
                ctx.process.traces.batch(batch.id, self.lane, trades, began);
            }
            Ok(None) => {}
            Err(error) => match LostData::of(&error) {
                // The Gate has used a nonce that this database never assigned: the database was set
                // back. Nothing is signed until the recovery is done.
                Some(lost) => lost_data::open_for_nonce(ctx, lost).await?,
                None => return Err(error),
            },
        }
        Ok(Progress::More)
    }

    /// Decides about claimed trades: returns those to sign, those that end here, and the number to
    /// check again.
    async fn check_trades(
        &self,
        ctx: &Ctx,
        lease: &Lease,
        fresh: Vec<Candidate>,
        exclusions: Exclusions,
        mut budget: Budget,
    ) -> Result<(Vec<ToSign>, Vec<Ended>, usize), AppError> {
        let now = ctx.now();
        let reject = |reason| Transition::reject(Status::Validating, reason, now);
        let (ends, fresh): (Vec<_>, Vec<_>) =
            fresh.into_iter().partition(|(trade, _)| exclusions.reason_of(trade).is_some());
        let mut ends: Vec<Ended> = ends
            .into_iter()
            .filter_map(|(trade, _)| exclusions.reason_of(&trade).map(|reason| (trade, reject(reason))))
            .collect();
        let decisions = self.check.check(ctx, &fresh).await?;
        // Do not reject a trade because of a node of another chain.
        let refuses = decisions.iter().any(|decision| matches!(decision, RiskDecision::Reject(_)));
        let is_right_chain = !refuses || ctx.chain.confirm().await.is_ok();
        let (mut to_send, mut misfits, mut later) = (Vec::new(), Vec::new(), 0);
        for (candidate, decision) in fresh.into_iter().zip(decisions) {
            let trade = &candidate.0;
            match decision {
                RiskDecision::Send { highest_nonce, usdc } if budget.admit(trade.account, usdc) => {
                    to_send.push(ToSign { candidate, highest_nonce });
                }
                RiskDecision::Send { usdc, .. } => misfits.push((trade.id, usdc)),
                RiskDecision::Reject(_) if !is_right_chain => later += 1,
                RiskDecision::Reject(reason) => ends.push((candidate.0, reject(reason))),
                RiskDecision::Expired => {
                    let failed = Transition::fail(Status::Validating, risk::expired(trade), now);
                    ends.push((candidate.0, failed));
                }
                RiskDecision::Later => later += 1,
            }
        }
        later += misfits.len();
        self.hold_misfits(ctx, lease, misfits).await?;
        Ok((to_send, ends, later))
    }

    /// Sends a batch for the first time. A remote signer signs it before.
    async fn send_stored(
        &self,
        ctx: &Ctx,
        lease: &Lease,
        batch: &Batch,
        form: &FirstForm,
    ) -> Result<(), AppError> {
        match form {
            FirstForm::Signed(form) => self.send(ctx, batch.id, &form.raw).await,
            FirstForm::Requested(_) => self.sign_unsigned(ctx, lease, batch).await?,
        }
        ctx.wake.sync.notify_waiters();
        // A chain that mines at once (e.g. the embedded one) already has the receipt: do not wait
        // for the next tick.
        let seen = self.look(ctx).await?;
        self.advance(ctx, lease, batch, seen).await?;
        Ok(())
    }

    /// Reads the newest final block and the number of this executor's transactions up to it.
    async fn look(&self, ctx: &Ctx) -> Result<Seen, AppError> {
        let ((), head) = tokio::try_join!(ctx.chain.confirm(), ctx.chain.head())?;
        let head = head.number;
        let final_block = final_block(ctx, head).await?;
        let final_nonce = match final_block {
            // The embedded chain always has its newest block. A node must be asked about exactly
            // this block, which it may lack.
            Some(block) if block == head && ctx.chain.is_embedded() => {
                ctx.chain.transaction_count(self.signer.address()).await?
            }
            Some(block) => ctx.chain.transaction_count_at(self.signer.address(), block).await?,
            // No block is final yet, so no transaction can have displaced a batch for certain.
            None => 0,
        };
        Ok(Seen { final_block, final_nonce })
    }

    /// Loads the lane's next trades that fit into `room`: first those of lost batches, then those
    /// already claimed, then pending ones. Trades that do not fit are marked as waiting. Trades that
    /// would overtake older ones of their account in other lanes are left out.
    ///
    /// While trading is halted, only trades of lost batches are returned, because they were signed
    /// before.
    async fn gather(&self, ctx: &Ctx, lease: &Lease, room: Room) -> Result<Gathered, AppError> {
        let validate = Transition::validate(Status::Pending, ctx.now()).map_err(AppError::internal)?;
        let halted = ctx.process.switches.is_trading_halted();
        let input = (lease.clone(), self.lane, validate, ctx.chain.chain_id(), halted, room);
        ctx.store
            .try_write(input, |tx, (lease, lane, validate, chain_id, halted, room)| {
                Box::pin(async move {
                    lease::check(tx, lease).await?;
                    let mut budget = Budget::new(*room);
                    // Not that of `find_work`: the lanes may have changed while the chain was asked.
                    let duty = Duty::read(tx, *lane).await?;
                    let elsewhere = elsewhere(tx, *lane, &duty, validate.trace.at).await?;
                    let mut again =
                        store::trades::list_unbatched(tx, *lane, validate.trace.at, MAX_BATCH).await?;
                    again.retain(|trade| !elsewhere.precedes(trade));
                    let signed =
                        again.iter().filter(|trade| budget.admit(trade.account, trade.volume)).count();
                    let limit = if *halted { 0 } else { MAX_BATCH.saturating_sub(signed as u32) };
                    let fresh = take_fresh(tx, *lane, limit, &mut budget, &elsewhere, validate).await?;
                    let again = with_markets(tx, *chain_id, again).await?;
                    let fresh = with_markets(tx, *chain_id, fresh).await?;
                    let now = validate.trace.at;
                    let stopped = store::keys::list_stopped_validating(tx, *lane, now).await?;
                    let quarantined = store::quarantine::list_validating(tx, *lane).await?;
                    Ok(Gathered { fresh, again, exclusions: Exclusions { stopped, quarantined } })
                })
            })
            .await
    }

    /// Returns whether the Gate accepts batches of this executor at all. A batch that reverts as a
    /// whole would only burn gas. The trades wait until it does, or until their deadlines.
    async fn gate_takes_batches(&self, ctx: &Ctx) -> Result<bool, AppError> {
        let gate = ctx.chain.contracts().gate;
        // An empty batch passes the same checks as a full one: paused, executor role.
        match ctx.chain.simulate(self.signer.address(), gate, execute_calldata(&[])).await {
            Ok(_) => Ok(true),
            Err(ChainError::Reverted(reason)) => {
                tracing::warn!(lane = self.lane, %reason, "trades wait: the Gate accepts no batches");
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
            .try_write((lease.clone(), moves.map_err(AppError::internal)?), |tx, (lease, moves)| {
                Box::pin(async move {
                    lease::check(tx, lease).await?;
                    let moves: Vec<_> = moves.iter().map(|(trade, transition)| (trade, transition)).collect();
                    let moved = store::trades::apply_all(tx, &moves).await?;
                    for ((trade, _), moved) in moves.iter().zip(moved) {
                        // Not an error: another transaction has moved the trade since it was
                        // claimed.
                        if let Moved::Stale { current } = moved {
                            tracing::warn!(trade.id = %trade.id, %current, "a trade changed while it was being checked");
                        }
                    }
                    Ok(())
                })
            })
            .await
    }
}

/// The work that a lane has.
struct Work {
    /// The next delegation change.
    change: Option<DelegationChange>,
    /// The next owner act.
    act: Option<OwnerAct>,
    trades_wait: bool,
    /// A recovery is open, so nothing may be signed.
    is_held: bool,
    /// The volume of signed trades that the Gate may not have counted yet.
    signed: Usdc,
    duty: Duty,
}

/// A trade that receives its nonce in the transaction that signs it.
struct ToSign {
    candidate: Candidate,
    /// The highest nonce of the trade's key that the Gate has seen.
    highest_nonce: u32,
}

/// The executor's view of the chain in one tick.
#[derive(Debug, Clone, Copy)]
struct Seen {
    /// The newest final block.
    final_block: Option<u64>,
    /// The number of the executor's transactions in final blocks.
    final_nonce: u64,
}

struct Gathered {
    fresh: Vec<Candidate>,
    again: Vec<Candidate>,
    /// The reasons for which some of the fresh trades end without a risk check.
    exclusions: Exclusions,
}

/// The keys and markets that end their trades without a risk check.
struct Exclusions {
    /// Keys of fresh trades that can no longer trade.
    stopped: Vec<KeyId>,
    /// Markets of fresh trades that are quarantined.
    quarantined: Vec<MarketId>,
}

impl Exclusions {
    fn reason_of(&self, trade: &Trade) -> Option<RiskRefusal> {
        if self.quarantined.contains(&trade.market_id) {
            return Some(RiskRefusal::MarketPaused);
        }
        self.stopped.contains(&trade.key_id).then_some(RiskRefusal::DelegationInactive)
    }
}

/// Claims at most `limit` fresh trades that fit into the budget and marks the others as waiting.
async fn take_fresh(
    tx: &mut store::Tx,
    lane: u16,
    limit: u32,
    budget: &mut Budget,
    elsewhere: &Elsewhere,
    validate: &Transition,
) -> Result<Vec<Trade>, StoreError> {
    if limit == 0 {
        return Ok(Vec::new());
    }
    let now = validate.trace.at;
    // With a limited budget, look further ahead: waiting trades must not block the smaller ones
    // behind them.
    let takes_first = budget.room() == Room::Unlimited && elsewhere.is_empty();
    let look_ahead = if takes_first { limit } else { store::trades::LOOK_AHEAD };
    let mut validating = store::trades::list_validating(tx, lane, look_ahead).await?;
    // An expired trade will fail, so it overtakes nothing.
    validating.retain(|trade| trade.deadline <= now || !elsewhere.precedes(trade));
    let (mut fresh, mut held) = admit(validating, limit as usize, budget, now);
    let limit = limit.saturating_sub(fresh.len() as u32);
    if limit > 0 {
        let claimed = store::trades::claim_pending(tx, lane, limit, budget, elsewhere, validate).await?;
        fresh.extend(claimed.trades);
        held.extend(claimed.held);
    }
    store::trades::hold(tx, &held, budget.reason(), now).await?;
    Ok(fresh)
}

/// A trade and the transition that ends it.
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
                tracing::error!(trade.id = %trade.id, "skipped a trade: its market is not on this chain")
            }
        }
    }
    Ok(candidates)
}
