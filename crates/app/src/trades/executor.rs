//! The executor of one lane: takes pending trades up, signs them into batches, and sees each batch into a block.
//!
//! It writes `batches`, `batch_transactions`, and trades from `pending` to `executing`, `rejected` or `failed`. It does
//! not complete trades: the sync does, from the chain's events, whoever sent them.
//!
//! What a crash leaves at each step, and what the next tick makes of it:
//! - trades claimed (`validating`), not signed: judged again;
//! - batch signed and stored, not sent or sent without an answer: no receipt, so the same bytes are sent again;
//! - batch mined, not noted: its receipt is found by any of its hashes;
//! - batch reverted as a whole, or its nonce taken by another transaction: its trades are signed again **as the same
//!   intents**, which the Gate executes at most once;
//! - this process frozen and another in its place: the lease's epoch has moved, and every write here checks it first.

use std::collections::HashSet;

use alloy_primitives::{Bytes, U256};
use chain::{ChainError, Fees, SendOutcome, Signer, Transaction, execute_calldata};
use domain::ErrorCode;
use domain::ids::{BatchId, TradeId};
use domain::trade::{Status, Transition};
use parking_lot::Mutex;
use store::StoreError;
use store::batches::{Batch, Ending, SignedForm};
use store::leases::Lease;
use store::trades::{Moved, Trade};
use tokio::sync::Notify;

use super::intents::intent_of;
use super::risk::{self, Candidate, Verdict};
use crate::lease::{self, LeaseHolder};
use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx};

/// The most intents of one transaction.
const MAX_BATCH: u32 = 100;
/// Gas of a batch beside its intents, of which the Gate wants 400,000 left before each one; and of each intent at the most.
const BATCH_GAS: u64 = 600_000;
const INTENT_GAS: u64 = 130_000;
/// A batch offers at most this many times what the chain asks.
const MOST_FEE_RAISE: u128 = 10;

/// One lane's executor.
pub struct Executor {
    lane: u16,
    signer: Signer,
    lease: LeaseHolder,
    /// The batches that the node has taken from this executor. What is not in it is sent at once: a batch that an earlier
    /// life left behind, or one that the node refused.
    taken: Mutex<HashSet<BatchId>>,
}

/// Where a batch stands on chain.
enum Standing {
    Final(Ending),
    Mined,
    Unseen,
}

impl Worker for Executor {
    fn name(&self) -> &'static str {
        "executor"
    }

    fn signal<'a>(&'a self, ctx: &'a Ctx) -> &'a Notify {
        &ctx.wake.executor
    }

    async fn release(&self, ctx: &Ctx) -> Result<(), AppError> {
        self.lease.release(ctx).await
    }

    async fn tick(&self, ctx: &Ctx) -> Result<Progress, AppError> {
        let Some(lease) = self.lease.claim(ctx).await? else { return Ok(Progress::Idle) };
        let mut open = self.open_batches(ctx).await?;
        if !open.is_empty() {
            let head = ctx.chain.head().await?.number;
            let mined_nonce = ctx.chain.transaction_count(self.signer.address()).await?;
            let mut still_open = Vec::with_capacity(open.len());
            for batch in open {
                if !self.advance(ctx, &lease, &batch, head, mined_nonce).await? {
                    still_open.push(batch);
                }
            }
            open = still_open;
        }
        // A batch behind one that the node does not have would only wait, or be refused.
        let all_taken = open.iter().all(|batch| self.taken.lock().contains(&batch.id));
        let full = open.len() >= ctx.config.max_batches_in_flight as usize;
        if full || !all_taken || !self.has_work(ctx).await? {
            return Ok(Progress::Idle);
        }
        self.send_next(ctx, &lease, &open).await
    }
}

impl Executor {
    /// The executor of `lane`, which signs with `signer`. `owner` names this process in leases.
    pub fn new(lane: u16, signer: Signer, owner: String) -> Self {
        let lease = LeaseHolder::new(format!("executor:{lane}"), owner);
        Self { lane, signer, lease, taken: Mutex::default() }
    }

    async fn has_work(&self, ctx: &Ctx) -> Result<bool, AppError> {
        let found: Result<bool, StoreError> =
            ctx.store.read(self.lane, |tx, lane| Box::pin(store::trades::has_work(tx, *lane))).await;
        Ok(found?)
    }

    async fn open_batches(&self, ctx: &Ctx) -> Result<Vec<Batch>, AppError> {
        let lane = self.lane;
        let open: Result<_, StoreError> =
            ctx.store.read(lane, |tx, lane| Box::pin(store::batches::list_open(tx, *lane, 100))).await;
        Ok(open?)
    }

    /// Takes a batch one step further; true once it has ended.
    async fn advance(
        &self,
        ctx: &Ctx,
        lease: &Lease,
        batch: &Batch,
        head: u64,
        mined_nonce: u64,
    ) -> Result<bool, AppError> {
        let forms: Result<Vec<SignedForm>, StoreError> =
            ctx.store.read(batch.id, |tx, id| Box::pin(store::batches::list_forms(tx, *id))).await;
        let forms = forms?;
        match self.standing(ctx, batch, &forms, head, mined_nonce).await? {
            Standing::Final(ending) => {
                self.end(ctx, lease, batch.id, ending).await?;
                self.taken.lock().remove(&batch.id);
                Ok(true)
            }
            Standing::Mined => {
                self.taken.lock().insert(batch.id);
                Ok(false)
            }
            Standing::Unseen => {
                self.send_again(ctx, lease, batch, &forms).await?;
                Ok(false)
            }
        }
    }

    /// Looks for the receipt of every form. That the nonce was counted before the receipts are asked for matters: a count
    /// past the batch's nonce with no receipt of any form then means that another transaction took it.
    async fn standing(
        &self,
        ctx: &Ctx,
        batch: &Batch,
        forms: &[SignedForm],
        head: u64,
        mined_nonce: u64,
    ) -> Result<Standing, AppError> {
        for form in forms {
            let hash = form
                .hash
                .parse()
                .map_err(|error| AppError::new(ErrorCode::InternalError).caused_by(error))?;
            if let Some(receipt) = ctx.chain.receipt(hash).await? {
                let depth = (head + 1).saturating_sub(receipt.block_number);
                let ending = if receipt.success { Ending::Mined } else { Ending::Reverted };
                let is_final = depth >= ctx.config.confirmations;
                return Ok(if is_final { Standing::Final(ending) } else { Standing::Mined });
            }
        }
        Ok(if mined_nonce > batch.chain_nonce {
            Standing::Final(Ending::Displaced)
        } else {
            Standing::Unseen
        })
    }

    async fn end(&self, ctx: &Ctx, lease: &Lease, id: BatchId, ending: Ending) -> Result<(), AppError> {
        if ending != Ending::Mined {
            tracing::warn!(batch.id = %id, ending = ending.as_str(), "a batch ended without carrying its trades");
        }
        let input = (lease.clone(), id, ending, ctx.now());
        ctx.store
            .write(input, |tx, (lease, id, ending, now)| {
                Box::pin(async move {
                    lease::check(tx, lease).await?;
                    store::batches::mark_ended(tx, *id, *ending, *now).await?;
                    if *ending != Ending::Mined {
                        store::trades::clear_batch(tx, *id).await?;
                    }
                    Ok(())
                })
            })
            .await
    }

    /// Sends a batch again that no block holds: the newest form, or after a while a new one at higher fees.
    async fn send_again(
        &self,
        ctx: &Ctx,
        lease: &Lease,
        batch: &Batch,
        forms: &[SignedForm],
    ) -> Result<(), AppError> {
        let now = ctx.now();
        let Some(newest) = forms.first() else { return Err(AppError::new(ErrorCode::InternalError)) };
        if now.since_ms(batch.sent_at) < ctx.config.resend_after_ms {
            return Ok(());
        }
        let form = if now.since_ms(newest.created_at) < ctx.config.replace_after_ms {
            newest.clone()
        } else {
            match replacement_fees(newest, ctx.chain.fees().await?) {
                Some(fees) => {
                    sign(ctx, &self.signer, batch.chain_nonce, batch.gas_limit, &batch.calldata, fees)?
                }
                None => newest.clone(),
            }
        };
        let is_new = form != *newest;
        let input = (lease.clone(), batch.id, form.clone(), is_new, now);
        let noted: Result<(), AppError> = ctx
            .store
            .write(input, |tx, (lease, id, form, is_new, now)| {
                Box::pin(async move {
                    lease::check(tx, lease).await?;
                    if *is_new {
                        store::batches::insert_form(tx, *id, form).await?;
                    }
                    Ok(store::batches::mark_sent(tx, *id, *now).await?)
                })
            })
            .await;
        noted?;
        self.send(ctx, batch.id, &form.raw).await;
        Ok(())
    }

    /// Gathers what is to be sent, judges it, stores the signed batch, and sends it.
    async fn send_next(&self, ctx: &Ctx, lease: &Lease, open: &[Batch]) -> Result<Progress, AppError> {
        let gathered = self.gather(ctx, lease).await?;
        if gathered.fresh.is_empty() && gathered.again.is_empty() {
            return Ok(Progress::Idle);
        }
        let verdicts = risk::judge(ctx, &gathered.fresh).await;
        let mut to_send = Vec::new();
        let mut refused = Vec::new();
        let mut later = 0;
        for (candidate, verdict) in gathered.fresh.into_iter().zip(verdicts) {
            match verdict {
                Verdict::Send => to_send.push(candidate),
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
        self.refuse(ctx, lease, refused).await?;
        if to_send.is_empty() && gathered.again.is_empty() {
            return Ok(if later > 0 { Progress::Idle } else { Progress::More });
        }
        if !self.gate_takes_batches(ctx).await? {
            return Ok(Progress::Idle);
        }
        let stored = self.sign_and_store(ctx, lease, open, to_send, gathered.again).await?;
        let (batch, raw) = stored;
        self.send(ctx, batch.id, &raw).await;
        ctx.wake.sync.notify_waiters();
        // A chain that mines at once has the receipt already: the batch need not wait for the next tick.
        let head = ctx.chain.head().await?.number;
        let mined_nonce = ctx.chain.transaction_count(self.signer.address()).await?;
        self.advance(ctx, lease, &batch, head, mined_nonce).await?;
        Ok(Progress::More)
    }

    /// The lane's next trades: first those that a batch lost, then those that were being judged, then pending ones.
    async fn gather(&self, ctx: &Ctx, lease: &Lease) -> Result<Gathered, AppError> {
        let validate = Transition::validate(Status::Pending, ctx.now()).map_err(internal)?;
        let input = (lease.clone(), self.lane, validate, ctx.chain.chain_id());
        ctx.store
            .write(input, |tx, (lease, lane, validate, chain_id)| {
                Box::pin(async move {
                    lease::check(tx, lease).await?;
                    let again = store::trades::list_unbatched(tx, *lane, MAX_BATCH).await?;
                    let room = MAX_BATCH.saturating_sub(again.len() as u32);
                    let mut fresh = store::trades::list_validating(tx, *lane, room).await?;
                    let room = room.saturating_sub(fresh.len() as u32);
                    if room > 0 {
                        fresh.extend(store::trades::claim_pending(tx, *lane, room, validate).await?);
                    }
                    let again = with_markets(tx, *chain_id, again).await?;
                    let fresh = with_markets(tx, *chain_id, fresh).await?;
                    Ok(Gathered { fresh, again })
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

    /// Nonces, intents, signed bytes: all stored in one transaction before anything is sent.
    async fn sign_and_store(
        &self,
        ctx: &Ctx,
        lease: &Lease,
        open: &[Batch],
        fresh: Vec<Candidate>,
        again: Vec<Candidate>,
    ) -> Result<(Batch, Vec<u8>), AppError> {
        let chain_nonce = match open.last() {
            Some(last) => last.chain_nonce + 1,
            None => ctx.chain.transaction_count(self.signer.address()).await?,
        };
        let fees = ctx.chain.fees().await?;
        let now = ctx.now();
        let signing = Signing {
            lease: lease.clone(),
            batch_id: BatchId(ctx.uuid()),
            chain_nonce,
            fees,
            fresh,
            again,
            execute: Transition::execute(Status::Validating, now).map_err(internal)?,
            signer: self.signer.clone(),
            lane: self.lane,
            ctx: ctx.clone(),
        };
        ctx.store.write(signing, |tx, signing| Box::pin(store_batch(tx, signing))).await
    }

    /// Sends; whatever the node says is only noted: the next tick looks at receipts.
    async fn send(&self, ctx: &Ctx, id: BatchId, raw: &[u8]) {
        let taken = match ctx.chain.send_raw(raw).await {
            Ok(SendOutcome::Accepted | SendOutcome::AlreadyKnown) => true,
            Ok(outcome) => {
                tracing::warn!(batch.id = %id, ?outcome, "the node did not take a batch");
                // A spent nonce or another form in the pool: sending these bytes again changes nothing, receipts will tell.
                matches!(outcome, SendOutcome::NonceTooLow | SendOutcome::Underpriced)
            }
            Err(error) => {
                tracing::warn!(batch.id = %id, %error, "a batch may not have been sent");
                false
            }
        };
        if taken {
            self.taken.lock().insert(id);
        } else {
            self.taken.lock().remove(&id);
        }
    }
}

struct Gathered {
    fresh: Vec<Candidate>,
    again: Vec<Candidate>,
}

struct Signing {
    lease: Lease,
    batch_id: BatchId,
    chain_nonce: u64,
    fees: Fees,
    fresh: Vec<Candidate>,
    again: Vec<Candidate>,
    execute: Transition,
    signer: Signer,
    lane: u16,
    ctx: Ctx,
}

async fn store_batch(tx: &mut store::Tx, signing: &Signing) -> Result<(Batch, Vec<u8>), AppError> {
    lease::check(tx, &signing.lease).await?;
    let mut intents = Vec::with_capacity(signing.fresh.len() + signing.again.len());
    for (trade, chain_market_id) in &signing.again {
        let nonce = trade.nonce.ok_or_else(|| AppError::new(ErrorCode::InternalError))?;
        intents.push(intent_of(trade, *chain_market_id, nonce)?);
    }
    let mut assigned: Vec<(TradeId, u32)> = Vec::with_capacity(signing.fresh.len());
    for (trade, chain_market_id) in &signing.fresh {
        let nonce = store::keys::take_nonces(tx, trade.key_id, 1).await?;
        intents.push(intent_of(trade, *chain_market_id, nonce)?);
        assigned.push((trade.id, nonce));
    }
    let calldata = execute_calldata(&intents);
    let gas_limit = BATCH_GAS + INTENT_GAS * intents.len() as u64;
    let form = sign(&signing.ctx, &signing.signer, signing.chain_nonce, gas_limit, &calldata, signing.fees)?;
    let now = signing.execute.trace.at;
    let batch = Batch {
        id: signing.batch_id,
        lane: signing.lane,
        executor: signing.signer.address().to_string().to_lowercase(),
        chain_nonce: signing.chain_nonce,
        calldata: calldata.to_vec(),
        gas_limit,
        created_at: now,
        sent_at: now,
    };
    store::batches::insert(tx, &batch, &form).await?;
    if !store::trades::assign_intent(tx, &assigned, batch.id, &signing.execute).await? {
        return Err(AppError::new(ErrorCode::InternalError).detail("A trade moved while it was signed."));
    }
    let again: Vec<TradeId> = signing.again.iter().map(|(trade, _)| trade.id).collect();
    store::trades::set_batch(tx, &again, batch.id).await?;
    Ok((batch, form.raw))
}

/// One signed form of a batch.
fn sign(
    ctx: &Ctx,
    signer: &Signer,
    chain_nonce: u64,
    gas_limit: u64,
    calldata: &[u8],
    fees: Fees,
) -> Result<SignedForm, AppError> {
    let transaction = Transaction {
        to: Some(ctx.chain.contracts().gate),
        data: Bytes::copy_from_slice(calldata),
        value: U256::ZERO,
        nonce: chain_nonce,
        gas_limit,
        fees,
    };
    let signed = ctx.chain.sign(signer, &transaction)?;
    Ok(SignedForm {
        hash: signed.hash.to_string(),
        raw: signed.raw.to_vec(),
        max_fee_per_gas: fees.max_fee_per_gas,
        max_priority_fee_per_gas: fees.max_priority_fee_per_gas,
        created_at: ctx.now(),
    })
}

/// The fees of the form that takes the place of `newest`: an eighth more, and what the chain asks now at least. `None` where
/// that is far above what the chain asks: then it is not the fee that keeps the batch out of the blocks.
fn replacement_fees(newest: &SignedForm, current: Fees) -> Option<Fees> {
    let last = Fees {
        max_fee_per_gas: newest.max_fee_per_gas,
        max_priority_fee_per_gas: newest.max_priority_fee_per_gas,
    };
    let bumped = last.bumped();
    let fees = Fees {
        max_fee_per_gas: bumped.max_fee_per_gas.max(current.max_fee_per_gas),
        max_priority_fee_per_gas: bumped.max_priority_fee_per_gas.max(current.max_priority_fee_per_gas),
    };
    (fees.max_fee_per_gas <= current.max_fee_per_gas.saturating_mul(MOST_FEE_RAISE)).then_some(fees)
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
