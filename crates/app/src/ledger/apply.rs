//! Applies the events of consecutive blocks to the stored markets and positions.
//!
//! The [`Fold`] collects all changes in memory and writes them once at the end. An event that
//! cannot be applied must not stop other markets: the error names the market, and the caller
//! repeats the fold without it.

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::Address;
use chain::{ChainEvent, ChainMarketStatus, EventKind};
use domain::ids::{MarketId, TradeId};
use domain::market::{MarketStatus, probability_ppm};
use domain::money::shares_by_weight;
use domain::position;
use domain::{Timestamp, Usdc, UsdcDelta, Wad};
use store::market_statuses::StatusChange;
use store::markets::{ChangeBlock, Market, Outcome};
use store::movements::{Held, IntentFailure, Movement, MovementKind};
use store::traders::Deeds;
use store::{StoreError, Tx};

use super::candles::Minutes;
use super::settle_trades::DUPLICATE;
use crate::AppError;
use crate::markets::id_of;

/// The reason why an event could not be applied.
#[derive(Debug)]
pub enum ApplyError {
    /// The event contradicts the stored state of its market.
    Market(MarketFault),
    /// An error that is not specific to one market.
    Other(AppError),
}

/// A market whose events cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarketFault {
    pub market_id: MarketId,
    /// The block of the event.
    pub block_number: u64,
    /// The reason as an identifier.
    pub reason: &'static str,
    /// The reason as a sentence.
    pub detail: String,
}

impl From<StoreError> for ApplyError {
    fn from(error: StoreError) -> Self {
        Self::Other(error.into())
    }
}

impl From<AppError> for ApplyError {
    fn from(error: AppError) -> Self {
        Self::Other(error)
    }
}

impl From<ApplyError> for AppError {
    fn from(error: ApplyError) -> Self {
        match error {
            ApplyError::Market(fault) => Self::internal(fault.detail),
            ApplyError::Other(error) => error,
        }
    }
}

/// The events to apply.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// If set, apply only events of the market with this number on chain.
    pub only: Option<u64>,
    /// Skip events of these markets.
    pub held_back: BTreeSet<u64>,
}

impl Selection {
    fn includes(&self, kind: &EventKind) -> bool {
        let number = kind.market_id();
        let is_held_back = number.is_some_and(|number| self.held_back.contains(&number));
        !is_held_back && self.only.is_none_or(|only| number == Some(only))
    }
}

/// The numbers of events that were not applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ignored {
    /// Logs that do not decode. The service's contracts do not write such logs.
    pub undecodable: u64,
    /// Transfers of zero tokens.
    pub empty_transfers: u64,
    /// Events of quarantined markets.
    pub held_back: u64,
}

/// The collected changes of the events so far.
#[derive(Default)]
pub struct Fold {
    chain_id: u64,
    selection: Selection,
    markets: BTreeMap<u64, Option<Touched>>,
    positions: Positions,
    deeds: Deeds,
    movements: Vec<Movement>,
    failures: Vec<IntentFailure>,
    statuses: Vec<StatusChange>,
    ignored: Ignored,
}

/// A split or merge of complete sets.
struct Sets {
    is_split: bool,
    usdc: Usdc,
    /// The market's `C` after the event.
    cost: Wad,
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
    /// Creates an empty fold. `deeds` holds the statistics to subtract if the same movements were
    /// taken back before.
    pub fn new(chain_id: u64, selection: Selection, deeds: Deeds) -> Self {
        Self { chain_id, selection, deeds, ..Self::default() }
    }

    /// Adds an event. After an error the fold must be discarded.
    pub async fn event(&mut self, tx: &mut Tx, event: &ChainEvent, at: Timestamp) -> Result<(), ApplyError> {
        if !self.selection.includes(&event.kind) {
            self.ignored.held_back += u64::from(self.selection.only.is_none());
            return Ok(());
        }
        match &event.kind {
            EventKind::MarketCreated { market_id, reference, cost_wad, quantities_wad, .. } => {
                let Some(id) = id_of(*reference) else { return Ok(()) };
                let quantities: Vec<Wad> = quantities_wad.iter().copied().map(Wad).collect();
                let as_of = ChangeBlock { block: event.block_number, time: at };
                store::markets::mark_created(tx, id, *market_id, Wad(*cost_wad), &quantities, as_of).await?;
                // Forget a cached "not found", so that later events in this fold find the created
                // market.
                self.markets.remove(market_id);
            }
            EventKind::MarketStatusChanged { market_id, status } => {
                self.change(tx, *market_id, event, at, |market| set_status(market, *status, at)).await?;
                self.note_status(*market_id, event, at);
            }
            EventKind::MarketResolved { market_id, payouts_wad } => {
                let tx_hash = event.tx_hash;
                self.change(tx, *market_id, event, at, |market| {
                    market.status = MarketStatus::Resolved;
                    market.payouts = Some(payouts_wad.iter().copied().map(Wad).collect());
                    market.resolution_tx_hash = Some(tx_hash);
                    market.resolved_at = Some(at);
                })
                .await?;
                self.note_status(*market_id, event, at);
            }
            EventKind::MarketCancelled { market_id, payouts_wad } => {
                let tx_hash = event.tx_hash;
                self.change(tx, *market_id, event, at, |market| {
                    market.status = MarketStatus::Cancelled;
                    market.payouts = Some(payouts_wad.iter().copied().map(Wad).collect());
                    market.resolution_tx_hash = Some(tx_hash);
                    market.resolved_at = Some(at);
                })
                .await?;
                self.note_status(*market_id, event, at);
            }
            EventKind::SetsMoved { account, market_id, is_split, usdc_atomic, cost_wad } => {
                let sets =
                    Sets { is_split: *is_split, usdc: Usdc::from_atomic(*usdc_atomic), cost: Wad(*cost_wad) };
                self.sets(tx, *market_id, event, at, *account, sets).await?;
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
                    kind: if side.is_buy() { MovementKind::Buy } else { MovementKind::Sell },
                    usdc: Usdc::from_atomic(*usdc_atomic),
                    fee: Usdc::from_atomic(*fee_atomic),
                    cost: Some(Wad(*cost_wad)),
                    quantity: Some(Wad(*quantity_wad)),
                    trade_id: trade_id.map(TradeId),
                    ..moved(event, at, *account, *outcome, *tokens_wad)
                };
                self.movement(tx, *market_id, event, movement).await?;
            }
            EventKind::Redeemed { account, market_id, outcome, tokens_wad, usdc_atomic } => {
                let movement = Movement {
                    usdc: Usdc::from_atomic(*usdc_atomic),
                    ..moved(event, at, *account, *outcome, *tokens_wad)
                };
                self.movement(tx, *market_id, event, movement).await?;
            }
            // Any account can make an empty transfer from any position: ignore them, or they would
            // fill the history.
            EventKind::Transfer { tokens_wad: 0, .. } => self.ignored.empty_transfers += 1,
            EventKind::Transfer { sender, receiver, market_id, outcome, tokens_wad } => {
                let movement = Movement {
                    kind: MovementKind::Transfer,
                    counterparty: Some(*receiver),
                    ..moved(event, at, *sender, *outcome, *tokens_wad)
                };
                self.movement(tx, *market_id, event, movement).await?;
            }
            EventKind::IntentFailed { .. } | EventKind::IntentDuplicate { .. } => {
                self.failures.extend(failure_of(event, at));
            }
            EventKind::Undecodable { market_id, detail } => {
                self.undecodable(tx, *market_id, event, detail).await?;
            }
            EventKind::ResolutionProposed { .. }
            | EventKind::CancelProposed { .. }
            | EventKind::ResolutionVetoed { .. }
            | EventKind::PolicySet { .. } => {}
        }
        Ok(())
    }

    /// Handles a log that does not decode. If it belongs to a market of this service, the contracts
    /// wrote something that this version does not understand, and the market fails. Other logs are
    /// ignored.
    async fn undecodable(
        &mut self,
        tx: &mut Tx,
        number: Option<u64>,
        event: &ChainEvent,
        detail: &str,
    ) -> Result<(), ApplyError> {
        let touched = match number {
            Some(number) => self.touched(tx, number, event).await?,
            None => None,
        };
        let Some(touched) = touched else {
            tracing::info!(block = event.block_number, tx.hash = %event.tx_hash, detail, "ignored a log that cannot be decoded");
            self.ignored.undecodable += 1;
            return Ok(());
        };
        let (market_id, detail) = (touched.market.id, detail.to_owned());
        let block_number = event.block_number;
        Err(ApplyError::Market(MarketFault { market_id, block_number, reason: "undecodable_event", detail }))
    }

    async fn touched(
        &mut self,
        tx: &mut Tx,
        number: u64,
        event: &ChainEvent,
    ) -> Result<Option<&mut Touched>, ApplyError> {
        if let std::collections::btree_map::Entry::Vacant(vacant) = self.markets.entry(number) {
            let found = match store::markets::find_by_chain_id(tx, self.chain_id, number).await? {
                Some(market) => {
                    let outcomes = store::markets::outcomes(tx, market.id).await;
                    let outcomes =
                        outcomes.map_err(|error| unreadable(market.id, event.block_number, error))?;
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
        event: &ChainEvent,
        at: Timestamp,
        change: impl FnOnce(&mut Market),
    ) -> Result<(), ApplyError> {
        if let Some(touched) = self.touched(tx, number, event).await? {
            change(&mut touched.market);
            touched.market.as_of_block = event.block_number;
            touched.market.as_of = at;
            touched.changed = true;
        }
        Ok(())
    }

    /// Records the market's status after an event, unless this fold already recorded the same
    /// status.
    fn note_status(&mut self, number: u64, event: &ChainEvent, at: Timestamp) {
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

    /// Adds a movement. Ignores movements in markets that this service did not create.
    async fn movement(
        &mut self,
        tx: &mut Tx,
        number: u64,
        event: &ChainEvent,
        movement: Movement,
    ) -> Result<(), ApplyError> {
        let Some(touched) = self.touched(tx, number, event).await? else { return Ok(()) };
        if usize::from(movement.outcome_index) >= touched.outcomes.len() {
            let fault = MarketFault {
                market_id: touched.market.id,
                block_number: event.block_number,
                reason: "unknown_outcome",
                detail: format!("the market has no outcome {}", movement.outcome_index),
            };
            return Err(ApplyError::Market(fault));
        }
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

    /// Adds a split or merge. It moves every outcome by the same amount, so it becomes one movement
    /// per outcome.
    async fn sets(
        &mut self,
        tx: &mut Tx,
        number: u64,
        event: &ChainEvent,
        at: Timestamp,
        account: Address,
        sets: Sets,
    ) -> Result<(), ApplyError> {
        let Some(touched) = self.touched(tx, number, event).await? else { return Ok(()) };
        let tokens = Wad::from_amount(sets.usdc);
        let market = &touched.market;
        // The USDC of a set is divided between the outcomes by their prices, as their cost basis.
        let weights =
            touched.outcomes.iter().map(|o| probability_ppm(o.quantity, market.cost, market.liquidity));
        let shares = shares_by_weight(sets.usdc, &weights.collect::<Vec<_>>());
        let moved_by = |quantity: Wad| {
            if sets.is_split { quantity.checked_add(tokens) } else { quantity.checked_sub(tokens) }
        };
        let quantities: Option<Vec<Wad>> = touched.outcomes.iter().map(|o| moved_by(o.quantity)).collect();
        let Some(quantities) = quantities else {
            let fault = MarketFault {
                market_id: market.id,
                block_number: event.block_number,
                reason: "overdrawn_sets",
                detail: format!("more sets are merged than an outcome has tokens: event {}", place_of(event)),
            };
            return Err(ApplyError::Market(fault));
        };
        let event_id = place_of(event);
        for ((index, usdc), quantity) in (0u8..).zip(shares).zip(quantities) {
            let movement = Movement {
                id: Movement::id_of_part(&event_id, index),
                kind: if sets.is_split { MovementKind::Split } else { MovementKind::Merge },
                usdc,
                tokens,
                cost: Some(sets.cost),
                quantity: Some(quantity),
                ..moved(event, at, account, index, 0)
            };
            self.movement(tx, number, event, movement).await?;
        }
        Ok(())
    }

    /// Writes all changes. Returns the numbers of ignored events.
    pub async fn write(self, tx: &mut Tx) -> Result<Ignored, AppError> {
        store::movements::insert(tx, &self.movements).await?;
        store::movements::insert_failures(tx, &self.failures).await?;
        store::market_statuses::put(tx, &self.statuses).await?;
        // Positions before markets: the order of markets in lists may depend on payouts that are
        // still owed to positions.
        self.positions.write(tx).await?;
        for touched in self.markets.into_values().flatten().filter(|touched| touched.changed) {
            let changed = touched.outcomes.into_iter().enumerate();
            let changed = changed.filter(|(index, _)| touched.changed_outcomes.contains(index));
            let outcomes: Vec<Outcome> = changed.map(|(_, outcome)| outcome).collect();
            store::markets::put_state(tx, &touched.market, &outcomes).await?;
            touched.minutes.append(tx, touched.market.id).await?;
        }
        self.deeds.write(tx).await?;
        Ok(self.ignored)
    }
}

/// Converts a store error. An unreadable stored value concerns only its market; any other error
/// concerns all.
fn unreadable(market_id: MarketId, block_number: u64, error: StoreError) -> ApplyError {
    match error {
        StoreError::Corrupt { .. } => ApplyError::Market(MarketFault {
            market_id,
            block_number,
            reason: "corrupt_rows",
            detail: error.to_string(),
        }),
        error => error.into(),
    }
}

fn set_status(market: &mut Market, status: ChainMarketStatus, at: Timestamp) {
    match status {
        ChainMarketStatus::Open => {
            market.status = MarketStatus::Open;
            market.frozen_at = None;
        }
        ChainMarketStatus::Frozen => {
            market.status = MarketStatus::Frozen;
            // Keep an earlier time: the clock may have frozen the market before the event.
            market.frozen_at = Some(market.frozen_at.unwrap_or(at));
        }
        ChainMarketStatus::Resolved => market.status = MarketStatus::Resolved,
        ChainMarketStatus::Cancelled => market.status = MarketStatus::Cancelled,
        ChainMarketStatus::None | ChainMarketStatus::Listed => {}
    }
}

/// Resets a market to its state at opening.
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

/// Adds one movement to a market's state.
pub fn add_to_market(market: &mut Market, outcomes: &mut [Outcome], movement: &Movement) {
    market.as_of_block = market.as_of_block.max(movement.block_number);
    market.as_of = movement.created_at;
    // Redemptions and transfers carry no market maker state, because they do not change it.
    let (Some(cost), Some(quantity)) = (movement.cost, movement.quantity) else { return };
    market.cost = cost;
    if movement.kind.moves_sets() {
        if let Some(outcome) = outcomes.get_mut(usize::from(movement.outcome_index)) {
            outcome.quantity = quantity;
        }
        return;
    }
    market.volume = market.volume.checked_add(movement.usdc).unwrap_or(market.volume);
    market.trade_count += 1;
    if let Some(outcome) = outcomes.get_mut(usize::from(movement.outcome_index)) {
        outcome.quantity = quantity;
        outcome.volume = outcome.volume.checked_add(movement.usdc).unwrap_or(outcome.volume);
        outcome.trade_count += 1;
    }
}

/// Returns the event's position on chain, in the form of movement ids.
fn place_of(event: &ChainEvent) -> String {
    Movement::id_at(event.block_number, u32::try_from(event.log_index).unwrap_or(u32::MAX))
}

/// Returns the common fields of a movement, as a redemption.
fn moved(
    event: &ChainEvent,
    at: Timestamp,
    account: Address,
    outcome_index: u8,
    tokens_wad: u128,
) -> Movement {
    let log_index = u32::try_from(event.log_index).unwrap_or(u32::MAX);
    Movement {
        id: place_of(event),
        block_number: event.block_number,
        log_index,
        tx_hash: event.tx_hash,
        kind: MovementKind::Redeem,
        market_id: MarketId(uuid::Uuid::nil()),
        outcome_index,
        account,
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

/// Returns the intent failure that an event reports, if it reports one.
pub fn failure_of(event: &ChainEvent, at: Timestamp) -> Option<IntentFailure> {
    let (trade_id, nonce, reason) = match &event.kind {
        EventKind::IntentFailed { trade_id, nonce, reason, .. } => (*trade_id, *nonce, reason.to_string()),
        EventKind::IntentDuplicate { trade_id, nonce, .. } => (*trade_id, *nonce, DUPLICATE.to_owned()),
        _ => return None,
    };
    Some(IntentFailure {
        trade_id: TradeId(trade_id),
        block_number: event.block_number,
        log_index: u32::try_from(event.log_index).unwrap_or(u32::MAX),
        tx_hash: event.tx_hash,
        nonce: Some(nonce),
        reason,
        at,
    })
}

/// Positions as movements change them. Each is read when first used and written once.
#[derive(Default)]
pub struct Positions {
    held: BTreeMap<(Address, MarketId, u8), Held>,
}

impl Positions {
    /// Applies a movement to its position, or to both positions of a transfer. Returns the realized
    /// profit.
    pub async fn add(&mut self, tx: &mut Tx, movement: &Movement) -> Result<UsdcDelta, ApplyError> {
        let Movement { usdc, tokens, fee, .. } = *movement;
        let moved = match movement.kind {
            MovementKind::Buy => position::Movement::Bought { usdc, tokens, fee },
            MovementKind::Sell => position::Movement::Sold { usdc, tokens, fee },
            MovementKind::Redeem => position::Movement::Redeemed { usdc, tokens },
            MovementKind::Transfer => position::Movement::Sent { tokens },
            MovementKind::Split => position::Movement::Bought { usdc, tokens, fee },
            MovementKind::Merge => position::Movement::Sold { usdc, tokens, fee },
        };
        // Read before the move: the receiver of a transfer takes over this cost basis.
        let sender = self.load_position(tx, movement.account, movement).await?;
        let before = sender.position;
        self.move_one(tx, movement.account, movement, moved).await?;
        if let (MovementKind::Transfer, Some(receiver)) = (movement.kind, movement.counterparty) {
            let received = position::Movement::Received { tokens, cost_basis: before.cost_of(tokens) };
            self.move_one(tx, receiver, movement, received).await?;
            return Ok(UsdcDelta(0));
        }
        let after = self.load_position(tx, movement.account, movement).await?.position;
        Ok(UsdcDelta(after.realized_pnl.0.saturating_sub(before.realized_pnl.0)))
    }

    /// Writes all positions that were used.
    pub async fn write(self, tx: &mut Tx) -> Result<(), AppError> {
        let held: Vec<Held> = self.held.into_values().collect();
        Ok(store::movements::put_positions(tx, &held).await?)
    }

    async fn move_one(
        &mut self,
        tx: &mut Tx,
        account: Address,
        movement: &Movement,
        moved: position::Movement,
    ) -> Result<(), ApplyError> {
        let held = self.load_position(tx, account, movement).await?;
        let after = held.position.after(moved).map_err(|error| {
            ApplyError::Market(MarketFault {
                market_id: movement.market_id,
                block_number: movement.block_number,
                reason: "overdrawn_position",
                detail: format!(
                    "{error}: {account:#x}, outcome {}, event {}",
                    movement.outcome_index, movement.id
                ),
            })
        })?;
        held.position = after;
        held.updated_at = movement.created_at;
        Ok(())
    }

    async fn load_position(
        &mut self,
        tx: &mut Tx,
        account: Address,
        movement: &Movement,
    ) -> Result<&mut Held, ApplyError> {
        let key = (account, movement.market_id, movement.outcome_index);
        let slot = match self.held.entry(key) {
            std::collections::btree_map::Entry::Occupied(slot) => slot.into_mut(),
            std::collections::btree_map::Entry::Vacant(slot) => {
                let (market_id, outcome_index) = (movement.market_id, movement.outcome_index);
                let found = store::movements::find_position(tx, account, market_id, outcome_index).await;
                let found = found.map_err(|error| unreadable(market_id, movement.block_number, error))?;
                slot.insert(found.unwrap_or_else(|| Held {
                    account,
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
