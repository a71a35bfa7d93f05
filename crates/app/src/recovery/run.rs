//! The steps of a recovery. Each step is idempotent, so that a recovery can be repeated after a
//! crash.

use std::collections::BTreeSet;

use alloy_primitives::Address;
use chain::Chain;
use domain::ids::KeyId;
use domain::time::MINUTE_MS;
use domain::trade::{Settlement, Status, TraceEvent, Transition};
use domain::{ErrorCode, Timestamp};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::json;
use store::audit_log::{Act, note};
use store::keys::SigningKey;
use store::recoveries::{Changes, Recovery};
use store::trades::{Moved, Trade};
use store::{StoreError, Tx};

use super::lost::{Carriers, rebuild};
use crate::lost_data::{Decision, Decisions, LostTradeResult, unknown};
use crate::{AppError, Ctx, ledger};

/// Maximum number of keys in one read.
const KEYS: u32 = 100;
/// The maximum number of nonces that one key can have lost. A node that reports more is wrong.
/// Raising a key's nonce that far would waste its limited range, because skipped nonces cannot be
/// used again.
const MOST_LOST_NONCES: u64 = 1_000_000;
/// A margin beyond the longest lifetime of an intent, because the chain's clock may lag.
const MARGIN_MS: i64 = MINUTE_MS;

/// The progress of a recovery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Advance {
    /// No recovery is open.
    Idle,
    /// The recovery waits for the described condition.
    Waiting(String),
    /// The recovery has ended.
    Done(Box<Recovery>),
}

/// Advances the open recovery as far as possible now. `executors` are those that the
/// caller knows, in addition to the lanes'.
pub async fn advance(ctx: &Ctx, executors: &[Address]) -> Result<Advance, AppError> {
    let open = ctx.store.read((), |tx, ()| Box::pin(store::recoveries::find_open(tx))).await;
    let Some(open) = open? else { return Ok(Advance::Idle) };
    let until = match until_block(ctx, &open, executors).await? {
        Ok(until) => until,
        Err(why) => return wait(ctx, &open, why).await,
    };
    // The order matters: readers of the feed must see a new generation before restored trades write
    // new events, and nonces must be raised before lanes sign again.
    begin_generation(ctx, open.id).await?;
    raise_nonces(ctx, open.id, until).await?;
    let Written { unattributed, touched } = write_again(ctx, &open, until).await?;
    for number in touched {
        ledger::compare_with_chain(ctx, number).await?;
    }
    end(ctx, open.id, unattributed).await
}

async fn wait(ctx: &Ctx, open: &Recovery, why: String) -> Result<Advance, AppError> {
    // Written only when the reason changes, not in every tick.
    if open.waits_for.as_ref() != Some(&why) {
        tracing::warn!(recovery = open.id, why, "the recovery is waiting");
        ctx.store
            .write((open.id, why.clone()), |tx, (id, why)| {
                Box::pin(store::recoveries::put_waits_for(tx, *id, Some(why)))
            })
            .await?;
    }
    Ok(Advance::Waiting(why))
}

/// Returns the last block to compare, once it is settled. No earlier signed transaction can be
/// mined after it. Otherwise returns the condition to wait for.
async fn until_block(
    ctx: &Ctx,
    open: &Recovery,
    executors: &[Address],
) -> Result<Result<u64, String>, AppError> {
    let until = match open.until_block {
        // Fixed once and stored, so that the comparison does not chase the head.
        Some(until) => until,
        None => {
            if let Some(executor) = find_pending(ctx, open, executors).await? {
                return Ok(Err(format!("transactions of the executor {executor} are not mined yet")));
            }
            let head = ctx.chain.head().await?.number;
            ctx.store
                .write((open.id, head), |tx, (id, head)| {
                    Box::pin(store::recoveries::put_until_block(tx, *id, *head))
                })
                .await?;
            head
        }
    };
    let settled = ctx.store.read((), |tx, ()| Box::pin(store::sync::find_settled(tx))).await;
    if settled?.is_some_and(|settled| settled >= until) {
        return Ok(Ok(until));
    }
    Ok(Err(format!("block {until} is not settled yet")))
}

/// Returns an executor with transactions in the node's mempool. After the deadlines of all intents
/// in them they no longer matter.
async fn find_pending(
    ctx: &Ctx,
    open: &Recovery,
    executors: &[Address],
) -> Result<Option<Address>, AppError> {
    let longest = ctx.config.confirmation_window_ms + ctx.config.intent_lifetime_ms + MARGIN_MS;
    if ctx.chain.is_embedded() || ctx.now().since_ms(open.detected_at) > longest {
        return Ok(None);
    }
    // Those of all lanes, because this process may have the keys of only some.
    let lanes = ctx.store.read((), |tx, ()| Box::pin(store::lanes::list(tx))).await?;
    let all: BTreeSet<_> = executors.iter().copied().chain(lanes.iter().map(|lane| lane.executor)).collect();
    for executor in all {
        let mined = ctx.chain.transaction_count(executor).await?;
        if ctx.chain.pending_transaction_count(executor).await? > mined {
            return Ok(Some(executor));
        }
    }
    Ok(None)
}

async fn begin_generation(ctx: &Ctx, id: i64) -> Result<(), AppError> {
    Ok(ctx
        .store
        .write((id, ctx.now()), |tx, (id, now)| Box::pin(store::recoveries::begin_generation(tx, *id, *now)))
        .await?)
}

/// Returns one page of keys after `after`, each with the highest nonce that the Gate has seen.
pub async fn highest_nonces(
    ctx: &Ctx,
    chain: &Chain,
    after: Option<KeyId>,
) -> Result<Vec<(SigningKey, u32)>, AppError> {
    let keys =
        ctx.store.read(after, |tx, after| Box::pin(store::keys::list_signing(tx, *after, KEYS))).await?;
    stream::iter(keys)
        .map(async |key| {
            let highest = chain.policy(key.account, key.key_index).await?.nonce_top;
            if u64::from(highest) > u64::from(key.next_nonce) + MOST_LOST_NONCES {
                return Err(AppError::new(ErrorCode::DependencyUnavailable).detail(format!(
                    "The node reports nonce {highest} for the key {}, whose next nonce is {}.",
                    key.id, key.next_nonce
                )));
            }
            Ok::<_, AppError>((key, highest))
        })
        .buffered(chain::MAX_CONCURRENT_CALLS)
        .try_collect()
        .await
}

/// Returns the chain at a settled block not before `until`. A node's newest block may be
/// reorganized away.
async fn settled_chain(ctx: &Ctx, until: u64) -> Result<Chain, AppError> {
    // The embedded chain has only one state, and it is settled.
    if ctx.chain.is_embedded() {
        return Ok(ctx.chain.clone());
    }
    let block = ctx
        .store
        .read(until, |tx, until| {
            Box::pin(
                async move { Ok(store::sync::list(tx, *until, i64::MAX.unsigned_abs(), 1).await?.pop()) },
            )
        })
        .await;
    let block = block?.ok_or_else(|| AppError::new(ErrorCode::DependencyUnavailable))?;
    Ok(ctx.chain.at_block(block.hash))
}

async fn raise_nonces(ctx: &Ctx, id: i64, until: u64) -> Result<(), AppError> {
    let chain = settled_chain(ctx, until).await?;
    let mut after = None;
    loop {
        let highest = highest_nonces(ctx, &chain, after).await?;
        let Some((last, _)) = highest.last() else { return Ok(()) };
        after = Some(last.id);
        ctx.store
            .write((id, highest), |tx, (id, highest)| {
                Box::pin(async move {
                    let mut raised_nonces = 0;
                    for (key, highest) in highest {
                        raised_nonces += u64::from(store::keys::raise_nonce(tx, key.id, highest + 1).await?);
                    }
                    let changes = Changes { raised_nonces, ..Changes::default() };
                    store::recoveries::add_changes(tx, *id, changes).await
                })
            })
            .await?;
    }
}

struct Written {
    unattributed: u64,
    /// The numbers on chain of the markets with restored trades.
    touched: BTreeSet<u64>,
}

async fn write_again(ctx: &Ctx, open: &Recovery, until: u64) -> Result<Written, AppError> {
    let mut written = Written { unattributed: 0, touched: BTreeSet::new() };
    let mut carriers = Carriers::default();
    let mut decisions = Decisions::new(open.from_block, until);
    // Process duplicates last: a duplicate decides a trade only if no other event does.
    let mut duplicates = Vec::new();
    while let Some(some) = decisions.next(ctx).await? {
        let (late, some): (Vec<_>, Vec<_>) =
            some.into_iter().partition(|decision| matches!(decision.result, LostTradeResult::Duplicate(_)));
        duplicates.extend(late);
        write_some(ctx, open.id, some, &mut carriers, &mut written).await?;
    }
    write_some(ctx, open.id, duplicates, &mut carriers, &mut written).await?;
    Ok(written)
}

async fn write_some(
    ctx: &Ctx,
    id: i64,
    decisions: Vec<Decision>,
    carriers: &mut Carriers,
    written: &mut Written,
) -> Result<(), AppError> {
    let found = ctx.store.read(decisions, |tx, decisions| Box::pin(unknown(tx, decisions))).await;
    let chain_id = ctx.chain.chain_id();
    // One transaction per decision: a crash in between leaves complete trades only.
    for (decision, _) in found? {
        if let LostTradeResult::Made(made) = &decision.result {
            written.touched.insert(made.chain_market_id);
        }
        let intent = carriers.intent_of(ctx, &decision).await?;
        let step = Step { id, decision, intent, chain_id, now: ctx.now() };
        let done: Done = ctx.store.try_write(step, |tx, step| Box::pin(step.write(tx))).await?;
        written.unattributed += u64::from(done == Done::Unattributed);
    }
    Ok(())
}

/// The restoration of one decision, in one transaction.
struct Step {
    id: i64,
    decision: Decision,
    intent: Option<chain::Intent>,
    chain_id: u64,
    now: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Done {
    Written,
    Unattributed,
}

impl Step {
    async fn write(&self, tx: &mut Tx) -> Result<Done, AppError> {
        let Self { id, decision, now, .. } = self;
        let recovered = TraceEvent::recovered(decision.block_number, decision.tx_hash, *now);
        let (trade, changes) = match store::trades::find_any(tx, decision.trade_id).await? {
            // Checked again inside the transaction: the sync may have settled the trade since.
            Some(trade) if decision.result.fits(trade.state.status()) => return Ok(Done::Written),
            Some(trade) => {
                let reopened = store::trades::reopen(tx, &trade, &recovered).await?;
                let reopened = reopened.ok_or_else(moved)?;
                (reopened, Changes { corrected_trades: 1, ..Changes::default() })
            }
            None => {
                let Some(trade) = self.lost_trade(tx).await? else {
                    tracing::error!(trade.id = %decision.trade_id, account = %decision.account, block = decision.block_number,
                        "a trade on chain has no user, key or market in the database");
                    return Ok(Done::Unattributed);
                };
                if !store::trades::insert_recovered(tx, &trade, &recovered, *now).await? {
                    return Err(moved());
                }
                (trade, Changes { recovered_trades: 1, ..Changes::default() })
            }
        };
        if store::trades::apply(tx, &trade, &self.ending()?).await? != Moved::Moved {
            return Err(moved());
        }
        store::recoveries::add_changes(tx, *id, changes).await?;
        Ok(Done::Written)
    }

    async fn lost_trade(&self, tx: &mut Tx) -> Result<Option<Trade>, StoreError> {
        match &self.intent {
            Some(intent) => rebuild(tx, &self.decision, intent, self.chain_id).await,
            None => Ok(None),
        }
    }

    fn ending(&self) -> Result<Transition, AppError> {
        let ending = match self.decision.result.clone() {
            LostTradeResult::Made(made) => {
                let settlement = Settlement {
                    tx_hash: self.decision.tx_hash,
                    block_number: self.decision.block_number,
                    usdc: made.usdc,
                    tokens: made.tokens,
                    fee: made.fee,
                };
                Transition::complete(Status::Executing, settlement, self.now)
            }
            LostTradeResult::Failed(failure) | LostTradeResult::Duplicate(failure) => {
                Transition::fail(Status::Executing, failure, self.now)
            }
        };
        ending.map_err(AppError::internal)
    }
}

/// The error if another transaction changed the trade. The next tick tries again.
fn moved() -> AppError {
    AppError::new(ErrorCode::DependencyUnavailable).detail("A trade changed while it was being recovered.")
}

async fn end(ctx: &Ctx, id: i64, unattributed: u64) -> Result<Advance, AppError> {
    let ended = ctx
        .store
        .write((id, unattributed, ctx.now()), |tx, (id, unattributed, now)| {
            Box::pin(async move {
                let was_open = store::recoveries::end(tx, *id, *unattributed, *now).await?;
                let ended = store::recoveries::find(tx, *id).await?;
                if let Some(ended) = ended.as_ref().filter(|_| was_open) {
                    note(tx, Act::new("recovery.end", "recovery").after(report(ended)));
                }
                Ok(ended)
            })
        })
        .await;
    let Some(ended) = ended? else { return Ok(Advance::Idle) };
    let Changes { recovered_trades, corrected_trades, raised_nonces, unattributed_trades } = ended.changes;
    tracing::warn!(
        recovered_trades,
        corrected_trades,
        raised_nonces,
        unattributed_trades,
        generation = ended.generation,
        "recovered lost data from the chain: requests whose idempotency keys were lost are treated as new"
    );
    // Lanes stopped signing when the recovery was opened.
    ctx.wake.executor.notify_waiters();
    Ok(Advance::Done(Box::new(ended)))
}

/// Returns the audit log entry of a recovery.
fn report(recovery: &Recovery) -> serde_json::Value {
    let Changes { recovered_trades, corrected_trades, raised_nonces, unattributed_trades } = recovery.changes;
    json!({
        "reason": recovery.reason,
        "fromBlock": recovery.from_block,
        "untilBlock": recovery.until_block,
        "generation": recovery.generation,
        "recoveredTrades": recovered_trades,
        "correctedTrades": corrected_trades,
        "raisedNonces": raised_nonces,
        "unattributedTrades": unattributed_trades,
    })
}
