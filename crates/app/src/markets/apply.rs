//! From events to rows: one reading of the chain, folded over what the tables hold.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use alloy_primitives::{Address, B256};
use chain::{Event, EventKind, MarketStatus as OnChain};
use domain::ids::{MarketId, TradeId};
use domain::market::MarketStatus;
use domain::position;
use domain::{ErrorCode, Timestamp, Usdc, UsdcDelta, Wad};
use store::leases::Lease;
use store::market_statuses::StatusChange;
use store::markets::{AsOf, Market, Outcome};
use store::movements::{Held, IntentFailure, Kind, Movement};
use store::sync::SyncBlock;
use store::traders::Deeds;
use store::{StoreError, Tx};

use super::candles::Minutes;
use super::id_of;
use super::sync::settle_up_to;
use crate::lease;
use crate::trades::DUPLICATE;
use crate::{AppError, Ctx};

/// Consecutive blocks' events, with their times.
pub struct Reading {
    /// The last block that the reading builds on.
    after: Option<SyncBlock>,
    last: SyncBlock,
    events: Vec<(Event, Timestamp)>,
    chain_id: u64,
}

impl Reading {
    /// Reads the blocks `from..=to`, all of one branch and on top of `after`: the last block is asked for before and after
    /// everything else, and it stands for all blocks below it.
    pub async fn of(ctx: &Ctx, from: u64, to: u64, after: Option<SyncBlock>) -> Result<Self, AppError> {
        let taken_back = || {
            AppError::new(ErrorCode::DependencyUnavailable)
                .detail("The chain has taken back a block while it was read.")
        };
        let block = ctx.chain.block(to).await?.ok_or_else(taken_back)?;
        let events = ctx.chain.events(from, to).await?;
        if let Some(after) = &after {
            let parent = if from == to { block.parent_hash } else { hash_at(ctx, after.number).await? };
            if parent.to_string() != after.hash {
                return Err(taken_back());
            }
        }
        if hash_at(ctx, to).await? != block.hash {
            return Err(taken_back());
        }
        let mut times: HashMap<u64, Timestamp> = HashMap::from([(to, Timestamp::from_s(block.timestamp_s))]);
        let mut timed = Vec::with_capacity(events.len());
        for event in events {
            let at = match (event.timestamp_s, times.get(&event.block_number)) {
                (Some(s), _) => Timestamp::from_s(s),
                (None, Some(at)) => *at,
                (None, None) => {
                    let found = ctx.chain.block(event.block_number).await?;
                    let at = Timestamp::from_s(found.map_or(block.timestamp_s, |found| found.timestamp_s));
                    times.insert(event.block_number, at);
                    at
                }
            };
            timed.push((event, at));
        }
        let last =
            SyncBlock { number: to, hash: block.hash.to_string(), at: Timestamp::from_s(block.timestamp_s) };
        Ok(Self { after, last, events: timed, chain_id: ctx.chain.chain_id() })
    }

    /// How many events were read.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Writes the reading, and settles the trades of blocks up to `final_block`.
    pub async fn write(
        self,
        ctx: &Ctx,
        lease: &Lease,
        final_block: Option<u64>,
        keep_blocks: u64,
    ) -> Result<(), AppError> {
        let now = ctx.now();
        ctx.store
            .write((self, lease.clone(), final_block, keep_blocks, now), |tx, input| {
                Box::pin(async move {
                    let (reading, held, final_block, keep_blocks, now) = input;
                    lease::check(tx, held).await?;
                    if store::sync::find_last(tx, None).await? != reading.after {
                        return Err(AppError::new(ErrorCode::DependencyUnavailable)
                            .detail("The chain was read further."));
                    }
                    reading.apply(tx).await?;
                    let keep_from = reading.last.number.saturating_sub(*keep_blocks);
                    store::sync::put(tx, &reading.last, keep_from).await?;
                    match final_block {
                        Some(final_block) => settle_up_to(tx, *final_block, *now).await,
                        None => Ok(()),
                    }
                })
            })
            .await
    }

    async fn apply(&self, tx: &mut Tx) -> Result<(), AppError> {
        if self.events.is_empty() {
            return Ok(());
        }
        store::traders::lock(tx).await?;
        let mut fold = Fold { chain_id: self.chain_id, ..Fold::default() };
        for (event, at) in &self.events {
            fold.event(tx, event, *at).await?;
        }
        fold.write(tx).await
    }
}

async fn hash_at(ctx: &Ctx, number: u64) -> Result<B256, AppError> {
    Ok(ctx.chain.block(number).await?.map_or(B256::ZERO, |block| block.hash))
}

/// What the events of a reading have changed so far.
#[derive(Default)]
struct Fold {
    chain_id: u64,
    markets: BTreeMap<u64, Option<Touched>>,
    positions: Positions,
    deeds: Deeds,
    movements: Vec<Movement>,
    failures: Vec<IntentFailure>,
    statuses: Vec<StatusChange>,
}

struct Touched {
    market: Market,
    outcomes: Vec<Outcome>,
    changed_outcomes: BTreeSet<usize>,
    minutes: Minutes,
    changed: bool,
}

impl Touched {
    fn new(market: Market, outcomes: Vec<Outcome>) -> Self {
        let (changed_outcomes, minutes) = (BTreeSet::new(), Minutes::default());
        Self { market, outcomes, changed_outcomes, minutes, changed: false }
    }
}

impl Fold {
    async fn event(&mut self, tx: &mut Tx, event: &Event, at: Timestamp) -> Result<(), AppError> {
        match &event.kind {
            EventKind::MarketCreated { market_id, reference, cost_wad, quantities_wad, .. } => {
                let Some(id) = id_of(*reference) else { return Ok(()) };
                let quantities: Vec<Wad> = quantities_wad.iter().copied().map(Wad).collect();
                let as_of = AsOf { block: event.block_number, time: at };
                store::markets::mark_created(tx, id, *market_id, Wad(*cost_wad), &quantities, as_of).await?;
                self.markets.remove(market_id);
            }
            EventKind::MarketStatusChanged { market_id, status } => {
                self.change(tx, *market_id, event, at, |market| set_status(market, *status, at)).await?;
                self.note_status(*market_id, event, at);
            }
            EventKind::MarketResolved { market_id, payouts_wad } => {
                let tx_hash = event.tx_hash.to_string();
                self.change(tx, *market_id, event, at, |market| {
                    market.status = MarketStatus::Resolved;
                    market.payouts = Some(payouts_wad.iter().copied().map(Wad).collect());
                    market.resolution_tx_hash = Some(tx_hash);
                    market.resolved_at = Some(at);
                })
                .await?;
                self.note_status(*market_id, event, at);
            }
            EventKind::MarketCancelled { market_id, payouts_wad, scale_wad } => {
                let tx_hash = event.tx_hash.to_string();
                self.change(tx, *market_id, event, at, |market| {
                    market.status = MarketStatus::Cancelled;
                    market.payouts = Some(payouts_wad.iter().copied().map(Wad).collect());
                    market.refund_scale = Some(Wad(*scale_wad));
                    market.resolution_tx_hash = Some(tx_hash);
                    market.resolved_at = Some(at);
                })
                .await?;
                self.note_status(*market_id, event, at);
            }
            EventKind::MarketToppedUp { market_id, scale_wad, .. } => {
                self.change(tx, *market_id, event, at, |market| market.refund_scale = Some(Wad(*scale_wad)))
                    .await?;
            }
            EventKind::Trade {
                trade_id,
                account,
                market_id,
                outcome,
                side,
                usdc_atomic,
                tokens_wad,
                fee_atomic,
                cost_wad,
                quantity_wad,
            } => {
                let movement = Movement {
                    kind: if side.is_buy() { Kind::Buy } else { Kind::Sell },
                    usdc: Usdc::from_atomic(*usdc_atomic),
                    fee: Usdc::from_atomic(*fee_atomic),
                    cost: Some(Wad(*cost_wad)),
                    quantity: Some(Wad(*quantity_wad)),
                    trade_id: trade_id.map(TradeId),
                    ..moved(event, at, *account, *outcome, *tokens_wad)
                };
                self.movement(tx, *market_id, movement).await?;
            }
            EventKind::Redeemed { account, market_id, outcome, tokens_wad, usdc_atomic } => {
                let movement = Movement {
                    usdc: Usdc::from_atomic(*usdc_atomic),
                    ..moved(event, at, *account, *outcome, *tokens_wad)
                };
                self.movement(tx, *market_id, movement).await?;
            }
            EventKind::Transfer { sender, receiver, market_id, outcome, tokens_wad } => {
                let movement = Movement {
                    kind: Kind::Transfer,
                    counterparty: Some(text(*receiver)),
                    ..moved(event, at, *sender, *outcome, *tokens_wad)
                };
                self.movement(tx, *market_id, movement).await?;
            }
            EventKind::IntentFailed { trade_id, reason, .. } => {
                self.failures.push(failed(event, at, TradeId(*trade_id), &reason.to_string()));
            }
            EventKind::IntentDuplicate { trade_id, .. } => {
                self.failures.push(failed(event, at, TradeId(*trade_id), DUPLICATE));
            }
            EventKind::ResolutionProposed { .. }
            | EventKind::ResolutionVetoed { .. }
            | EventKind::PolicySet { .. } => {}
        }
        Ok(())
    }

    async fn touched(&mut self, tx: &mut Tx, number: u64) -> Result<Option<&mut Touched>, StoreError> {
        if let std::collections::btree_map::Entry::Vacant(vacant) = self.markets.entry(number) {
            let found = match store::markets::find_by_chain_id(tx, self.chain_id, number).await? {
                Some(market) => {
                    let outcomes = store::markets::outcomes(tx, market.id).await?;
                    Some(Touched::new(market, outcomes))
                }
                None => None,
            };
            vacant.insert(found);
        }
        Ok(self.markets.get_mut(&number).and_then(Option::as_mut))
    }

    async fn change(
        &mut self,
        tx: &mut Tx,
        number: u64,
        event: &Event,
        at: Timestamp,
        change: impl FnOnce(&mut Market),
    ) -> Result<(), AppError> {
        if let Some(touched) = self.touched(tx, number).await? {
            change(&mut touched.market);
            touched.market.as_of_block = event.block_number;
            touched.market.as_of = at;
            touched.changed = true;
        }
        Ok(())
    }

    /// Notes the status that a market has after an event, unless the event before said the same.
    fn note_status(&mut self, number: u64, event: &Event, at: Timestamp) {
        let Some(Some(Touched { market, .. })) = self.markets.get(&number) else { return };
        let change = StatusChange {
            market_id: market.id,
            id: place_of(event),
            block_number: event.block_number,
            status: market.status,
            at,
        };
        let last = self.statuses.iter().rev().find(|noted| noted.market_id == change.market_id);
        if last.is_none_or(|last| last.status != change.status) {
            self.statuses.push(change);
        }
    }

    /// A movement in a market that was not made here is nobody's business here.
    async fn movement(&mut self, tx: &mut Tx, number: u64, movement: Movement) -> Result<(), AppError> {
        let Some(touched) = self.touched(tx, number).await? else { return Ok(()) };
        let movement = Movement { market_id: touched.market.id, ..movement };
        add_to_market(&mut touched.market, &mut touched.outcomes, &movement);
        touched.minutes.add(&touched.market, &touched.outcomes, &movement);
        touched.changed = true;
        touched.changed_outcomes.insert(usize::from(movement.outcome_index));
        let realized_pnl = self.positions.add(tx, &movement).await?;
        let movement = Movement { realized_pnl, ..movement };
        self.deeds.add(&movement);
        self.movements.push(movement);
        Ok(())
    }

    async fn write(self, tx: &mut Tx) -> Result<(), AppError> {
        store::movements::insert(tx, &self.movements).await?;
        store::movements::insert_failures(tx, &self.failures).await?;
        store::market_statuses::put(tx, &self.statuses).await?;
        // Before the markets: where these stand in lists may depend on what is still owed to positions.
        self.positions.write(tx).await?;
        for touched in self.markets.into_values().flatten().filter(|touched| touched.changed) {
            let changed = touched.outcomes.into_iter().enumerate();
            let changed = changed.filter(|(index, _)| touched.changed_outcomes.contains(index));
            let outcomes: Vec<Outcome> = changed.map(|(_, outcome)| outcome).collect();
            store::markets::put_state(tx, &touched.market, &outcomes).await?;
            touched.minutes.append(tx, touched.market.id).await?;
        }
        Ok(self.deeds.write(tx).await?)
    }
}

fn set_status(market: &mut Market, status: OnChain, at: Timestamp) {
    match status {
        OnChain::Open => {
            market.status = MarketStatus::Open;
            market.frozen_at = None;
        }
        OnChain::Frozen => {
            market.status = MarketStatus::Frozen;
            market.frozen_at = Some(market.frozen_at.unwrap_or(at));
        }
        OnChain::Resolved => market.status = MarketStatus::Resolved,
        OnChain::Cancelled => market.status = MarketStatus::Cancelled,
        OnChain::None | OnChain::Listed => {}
    }
}

/// A market as it was at its opening.
pub fn reset(market: &mut Market, outcomes: &mut [Outcome]) {
    market.cost = market.opening_cost;
    market.volume = Usdc::ZERO;
    market.trade_count = 0;
    for outcome in outcomes {
        outcome.quantity = outcome.opening;
        outcome.volume = Usdc::ZERO;
        outcome.trade_count = 0;
    }
}

/// A market after one more movement.
pub fn add_to_market(market: &mut Market, outcomes: &mut [Outcome], movement: &Movement) {
    market.as_of_block = market.as_of_block.max(movement.block_number);
    market.as_of = movement.created_at;
    let (Some(cost), Some(quantity)) = (movement.cost, movement.quantity) else { return };
    market.cost = cost;
    market.volume = market.volume.checked_add(movement.usdc).unwrap_or(market.volume);
    market.trade_count += 1;
    if let Some(outcome) = outcomes.get_mut(usize::from(movement.outcome_index)) {
        outcome.quantity = quantity;
        outcome.volume = outcome.volume.checked_add(movement.usdc).unwrap_or(outcome.volume);
        outcome.trade_count += 1;
    }
}

fn text(address: Address) -> String {
    address.to_string().to_lowercase()
}

/// Where on the chain an event stands, as ids of movements tell it.
fn place_of(event: &Event) -> String {
    Movement::id_at(event.block_number, u32::try_from(event.log_index).unwrap_or(u32::MAX))
}

/// What every movement has; a redemption unless more is said.
fn moved(event: &Event, at: Timestamp, account: Address, outcome_index: u8, tokens_wad: u128) -> Movement {
    let log_index = u32::try_from(event.log_index).unwrap_or(u32::MAX);
    Movement {
        id: place_of(event),
        block_number: event.block_number,
        log_index,
        tx_hash: event.tx_hash.to_string(),
        kind: Kind::Redeem,
        market_id: MarketId(uuid::Uuid::nil()),
        outcome_index,
        account: text(account),
        counterparty: None,
        usdc: Usdc::ZERO,
        tokens: Wad::from(tokens_wad),
        fee: Usdc::ZERO,
        cost: None,
        quantity: None,
        trade_id: None,
        created_at: at,
        realized_pnl: UsdcDelta(0),
    }
}

fn failed(event: &Event, at: Timestamp, trade_id: TradeId, reason: &str) -> IntentFailure {
    IntentFailure {
        trade_id,
        block_number: event.block_number,
        log_index: u32::try_from(event.log_index).unwrap_or(u32::MAX),
        tx_hash: event.tx_hash.to_string(),
        reason: reason.to_owned(),
        at,
    }
}

/// Positions as movements change them: read when first touched, written once.
#[derive(Default)]
pub struct Positions {
    held: BTreeMap<(String, MarketId, u8), Held>,
}

impl Positions {
    /// Applies a movement to the position, or the two positions, that it touches. Answers what it realised.
    pub async fn add(&mut self, tx: &mut Tx, movement: &Movement) -> Result<UsdcDelta, AppError> {
        let Movement { usdc, tokens, fee, .. } = *movement;
        let moved = match movement.kind {
            Kind::Buy => position::Movement::Bought { usdc, tokens, fee },
            Kind::Sell => position::Movement::Sold { usdc, tokens, fee },
            Kind::Redeem => position::Movement::Redeemed { usdc, tokens },
            Kind::Transfer => position::Movement::Sent { tokens },
        };
        let sender = self.held(tx, &movement.account, movement).await?;
        let before = sender.position;
        self.move_one(tx, &movement.account, movement, moved).await?;
        if let (Kind::Transfer, Some(receiver)) = (movement.kind, &movement.counterparty) {
            let received = position::Movement::Received { tokens, cost_basis: before.cost_of(tokens) };
            self.move_one(tx, receiver, movement, received).await?;
            return Ok(UsdcDelta(0));
        }
        let after = self.held(tx, &movement.account, movement).await?.position;
        Ok(UsdcDelta(after.realized_pnl.0.saturating_sub(before.realized_pnl.0)))
    }

    /// Writes what was touched.
    pub async fn write(self, tx: &mut Tx) -> Result<(), AppError> {
        let held: Vec<Held> = self.held.into_values().collect();
        Ok(store::movements::put_positions(tx, &held).await?)
    }

    async fn move_one(
        &mut self,
        tx: &mut Tx,
        account: &str,
        movement: &Movement,
        moved: position::Movement,
    ) -> Result<(), AppError> {
        let held = self.held(tx, account, movement).await?;
        let after = held.position.after(moved).map_err(|error| {
            tracing::error!(account, market.id = %movement.market_id, movement.id = %movement.id, "the ledger is short");
            AppError::new(ErrorCode::InternalError).caused_by(error)
        })?;
        held.position = after;
        held.updated_at = movement.created_at;
        Ok(())
    }

    async fn held(&mut self, tx: &mut Tx, account: &str, movement: &Movement) -> Result<&mut Held, AppError> {
        let key = (account.to_owned(), movement.market_id, movement.outcome_index);
        let slot = match self.held.entry(key) {
            std::collections::btree_map::Entry::Occupied(slot) => slot.into_mut(),
            std::collections::btree_map::Entry::Vacant(slot) => {
                let (market_id, outcome_index) = (movement.market_id, movement.outcome_index);
                let found = store::movements::find_position(tx, account, market_id, outcome_index).await?;
                slot.insert(found.unwrap_or_else(|| Held {
                    account: account.to_owned(),
                    market_id,
                    outcome_index,
                    position: position::Position::default(),
                    updated_at: movement.created_at,
                }))
            }
        };
        Ok(slot)
    }
}
