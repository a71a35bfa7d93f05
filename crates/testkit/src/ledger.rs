//! The reconciler of tests: compares the database with the chain, which is always right.

use std::collections::{HashMap, HashSet};

use alloy_primitives::{Address, B256};
use chain::{ChainMarketStatus, EventKind};
use domain::ids::{KeyId, MarketId, TradeId};
use domain::market::MarketStatus;
use domain::redemption::RedemptionStatus as Claimed;
use domain::trade::{State, Status};
use domain::usage::hour_of;
use domain::{Timestamp, Usdc, Wad};
use store::markets::{Market, Outcome};
use store::movements::Held;
use store::redemptions::Redemption;
use store::trades::{Traced, Trade};
use store::{Row, StoreError, Tx};

use crate::TestApp;

/// All data that is compared with the chain.
struct Ledger {
    accounts: Vec<(Address, i64)>,
    markets: Vec<(Market, Vec<Outcome>)>,
    positions: HashMap<(Address, MarketId, u8), Held>,
    trades: Vec<Trade>,
    traces: Vec<Vec<Traced>>,
    claims: Vec<Redemption>,
    spends: Vec<(i64, i64)>,
    counted: HashMap<HourOfKey, (i64, Usdc)>,
}

/// A key, the start of an hour, and an event of the key's trades.
type HourOfKey = (KeyId, Timestamp, String);

/// An event that ended an intent.
enum Ended {
    Traded { tokens: Wad, usdc: Usdc },
    Failed,
}

impl TestApp {
    /// Asserts that the database matches the chain:
    ///
    /// - Positions equal the balances on the hub.
    /// - Costs, quantities, volumes and counts of markets equal those on the hub.
    /// - Every ended trade ended exactly once, as the chain's events say.
    /// - Every completed claim has the payments of the chain's events, and no other claim has any.
    /// - Nothing is reserved for trades that have ended.
    /// - Traces are complete and contain the trade's end once.
    /// - Every trade is counted once in the hour of its creation and once in the hour of its end.
    /// - Every status of a trade has one event, and the events of each user are numbered without
    ///   gaps.
    /// - Every pending delivery is in a queue that is due at some time.
    ///
    /// # Panics
    /// If any of this does not hold.
    pub async fn assert_ledger_equals_chain(&self) {
        let ledger = self.ctx.store.read((), |tx, ()| Box::pin(read(tx))).await;
        let ledger = ledger.unwrap();
        self.assert_markets(&ledger).await;
        self.assert_positions(&ledger).await;
        self.assert_trades(&ledger).await;
        self.assert_claims(&ledger).await;
        assert_nothing_left_aside(&ledger);
        assert_traces_whole(&ledger);
        assert_counted_as_they_happened(&ledger);
        self.assert_events_tell_what_happened().await;
        self.assert_aggregates().await;
    }

    /// Asserts that all sums over movements equal a fresh computation, and that movements equal the
    /// chain's events.
    pub async fn assert_aggregates(&self) {
        let verified = app::ledger::aggregates::verify(&self.ctx).await.unwrap();
        assert!(verified.differences.is_empty(), "{:#?}", verified.differences);
    }

    async fn assert_markets(&self, ledger: &Ledger) {
        for (market, outcomes) in &ledger.markets {
            let Some(number) = market.chain_market_id else { continue };
            let on_chain = self.ctx.chain.market(number).await.unwrap();
            let status = match on_chain.status {
                ChainMarketStatus::Open => MarketStatus::Open,
                ChainMarketStatus::Resolved => MarketStatus::Resolved,
                ChainMarketStatus::Cancelled => MarketStatus::Cancelled,
                ChainMarketStatus::None | ChainMarketStatus::Listed | ChainMarketStatus::Frozen => {
                    MarketStatus::Frozen
                }
            };
            assert_eq!(market.status, status, "status of market {number}");
            assert_eq!(market.cost.0, on_chain.cost_wad, "cost of market {number}");
            assert_eq!(outcomes.len(), on_chain.outcomes.len(), "outcomes of market {number}");
            let volumes = on_chain.outcomes.iter().map(|outcome| outcome.volume_usdc_atomic).sum();
            assert_eq!(market.volume, Usdc::from_atomic(volumes), "volume of market {number}");
            let trades: u32 = on_chain.outcomes.iter().map(|outcome| outcome.trades).sum();
            assert_eq!(market.trade_count, u64::from(trades), "trades of market {number}");
            for (row, outcome) in outcomes.iter().zip(on_chain.outcomes) {
                let place = format!("outcome {} of market {number}", row.index);
                assert_eq!(row.quantity.0, outcome.quantity_wad, "quantity of {place}");
                assert_eq!(row.volume.atomic(), outcome.volume_usdc_atomic, "volume of {place}");
                assert_eq!(row.trade_count, u64::from(outcome.trades), "trades of {place}");
                if matches!(status, MarketStatus::Resolved | MarketStatus::Cancelled) {
                    // The hub does not subtract redeemed tokens from the supply.
                    continue;
                }
                let held = ledger
                    .positions
                    .values()
                    .filter(|held| held.market_id == market.id && held.outcome_index == row.index);
                let supply = held.fold(Wad::ZERO, |sum, held| sum.checked_add(held.position.tokens).unwrap());
                assert_eq!(supply.0, outcome.supply_wad, "supply of {place}");
            }
        }
    }

    async fn assert_positions(&self, ledger: &Ledger) {
        let numbers = ledger.markets.iter().map(|(market, _)| (market.id, market.chain_market_id));
        let numbers: HashMap<_, _> = numbers.collect();
        for held in ledger.positions.values() {
            let number = numbers[&held.market_id].expect("a market with positions is on chain");
            let on_chain = self.ctx.chain.position(held.account, number, held.outcome_index).await.unwrap();
            let place = format!("{} in outcome {} of market {number}", held.account, held.outcome_index);
            assert_eq!(held.position.tokens.0, on_chain, "tokens of {place}");
        }
        for (account, _) in &ledger.accounts {
            for (market, outcomes) in &ledger.markets {
                let Some(number) = market.chain_market_id else { continue };
                for outcome in outcomes {
                    let key = (*account, market.id, outcome.index);
                    let on_chain = self.ctx.chain.position(*account, number, outcome.index).await.unwrap();
                    let tokens = ledger.positions.get(&key).map_or(Wad::ZERO, |held| held.position.tokens);
                    assert_eq!(tokens.0, on_chain, "tokens of {account} in market {number}");
                }
            }
        }
    }

    async fn assert_trades(&self, ledger: &Ledger) {
        let head = self.ctx.chain.head().await.unwrap().number;
        let mut ended: HashMap<TradeId, Vec<Ended>> = HashMap::new();
        for event in self.ctx.chain.events(0, head).await.unwrap() {
            match event.kind {
                EventKind::Trade { trade_id: Some(id), tokens_wad, usdc_atomic, .. } => {
                    let (tokens, usdc) = (Wad::from(tokens_wad), Usdc::from_atomic(usdc_atomic));
                    ended.entry(TradeId(id)).or_default().push(Ended::Traded { tokens, usdc });
                }
                EventKind::IntentFailed { trade_id, .. } => {
                    ended.entry(TradeId(trade_id)).or_default().push(Ended::Failed);
                }
                _ => {}
            }
        }
        for trade in &ledger.trades {
            let events = ended.remove(&trade.id).unwrap_or_default();
            match (&trade.state, events.as_slice()) {
                (State::Completed(settlement), [Ended::Traded { tokens, usdc }]) => {
                    assert_eq!(
                        (settlement.tokens, settlement.usdc),
                        (*tokens, *usdc),
                        "what {} moved",
                        trade.id
                    );
                }
                (State::Failed(failure), [Ended::Failed]) => {
                    assert!(failure.tx_hash.is_some(), "{}", trade.id)
                }
                // These trades ended before anything was sent.
                (State::Failed(_) | State::Rejected(_), []) => {}
                (state, []) if !state.status().is_terminal() => {}
                (state, events) => panic!("{} is {} after {} events", trade.id, state.status(), events.len()),
            }
        }
        let unknown = ended.values().flatten().filter(|ended| matches!(ended, Ended::Traded { .. })).count();
        assert_eq!(unknown, 0, "trades on chain that no row knows");
    }

    async fn assert_claims(&self, ledger: &Ledger) {
        let numbers: HashMap<_, _> =
            ledger.markets.iter().map(|(market, _)| (market.id, market.chain_market_id)).collect();
        let head = self.ctx.chain.head().await.unwrap().number;
        let mut paid: HashMap<(Address, u64, u8), Vec<(B256, u64)>> = HashMap::new();
        for event in self.ctx.chain.events(0, head).await.unwrap() {
            if let EventKind::Redeemed { account, market_id, outcome, usdc_atomic, .. } = event.kind {
                let place = (account, market_id, outcome);
                paid.entry(place).or_default().push((event.tx_hash, usdc_atomic));
            }
        }
        let mut places = HashSet::new();
        for claim in &ledger.claims {
            let number = numbers[&claim.market_id].expect("a claimed market is on chain");
            let place = (claim.account, number, claim.outcome_index);
            assert!(places.insert(place), "two claims of {place:?}");
            let payments = paid.remove(&place).unwrap_or_default();
            let total = payments.iter().map(|(_, usdc)| usdc).sum();
            match claim.status {
                Claimed::Completed => {
                    assert_eq!(claim.paid, Usdc::from_atomic(total), "what {} was paid", claim.id);
                    assert_eq!(claim.tx_hash, payments.last().map(|(hash, _)| *hash), "{}", claim.id);
                }
                status => assert!(total == 0, "{} is {status} and was paid {total}", claim.id),
            }
        }
    }
}

fn assert_nothing_left_aside(ledger: &Ledger) {
    for (account, reserved) in &ledger.accounts {
        let open = ledger
            .trades
            .iter()
            .filter(|trade| trade.account == *account && !trade.state.status().is_terminal());
        let open: u64 = open.map(|trade| trade.reserved.atomic()).sum();
        assert_eq!(i64::try_from(open).unwrap(), *reserved, "what {account} has set aside");
    }
    for (kept, summed) in &ledger.spends {
        assert_eq!(kept, summed, "what a key has spent in its window, as kept and as summed from its trades");
    }
    for trade in &ledger.trades {
        if matches!(trade.state.status(), Status::Failed | Status::Rejected) {
            assert_eq!(trade.reserved, Usdc::ZERO, "{} holds nothing of its key's cap", trade.id);
        }
    }
}

fn assert_traces_whole(ledger: &Ledger) {
    for (trade, trace) in ledger.trades.iter().zip(&ledger.traces) {
        let id = trade.id;
        assert!(trace.iter().map(|event| event.seq).eq(1..=trace.len() as u32), "numbers of {id}'s trace");
        assert!(trace.is_sorted_by_key(|event| event.at), "times of {id}'s trace");
        assert_eq!(trace.last().map(|event| event.status), Some(trade.state.status()), "end of {id}'s trace");
        let of_kind = |kind: &str| trace.iter().filter(|event| event.kind == kind).count();
        let ends = of_kind("trade.completed") + of_kind("trade.failed") + of_kind("trade.rejected");
        // A recovery takes back an end that the chain contradicts.
        let is_taken_back = |pair: &&[Traced]| match pair {
            [before, after] => after.kind == "trade.recovered" && before.status.is_terminal(),
            _ => false,
        };
        let taken_back = trace.windows(2).filter(is_taken_back).count();
        let expected = usize::from(trade.state.status().is_terminal()) + taken_back;
        assert_eq!(ends, expected, "ends of {id}'s trace");
        assert!(
            of_kind("funds.reserved") <= 1 + taken_back
                && of_kind("funds.released") <= of_kind("funds.reserved")
        );
        assert_eq!(of_kind("trade.held"), usize::from(trade.held_until.is_some()), "whether {id} was held");
    }
}

fn assert_counted_as_they_happened(ledger: &Ledger) {
    let mut expected: HashMap<HourOfKey, (i64, Usdc)> = HashMap::new();
    for trade in &ledger.trades {
        let created = (trade.key_id, hour_of(trade.created_at), "created".to_owned());
        expected.entry(created).or_default().0 += 1;
        let Some(ended_at) = trade.ended_at else { continue };
        let ended = (trade.key_id, hour_of(ended_at), trade.state.status().to_string());
        let (count, volume) = expected.entry(ended).or_default();
        *count += 1;
        if let State::Completed(settlement) = &trade.state {
            *volume = volume.checked_add(settlement.usdc).unwrap();
        }
    }
    assert_eq!(ledger.counted, expected, "what is counted of keys' trades");
}

async fn read(tx: &mut Tx) -> Result<Ledger, StoreError> {
    const ACCOUNTS: &str = "SELECT address, reserved_usdc_atomic FROM accounts";
    const MARKETS: &str = "SELECT id FROM markets";
    const HOLDERS: &str = "SELECT DISTINCT account FROM positions";
    const TRADES: &str = "SELECT id FROM trades";
    const CLAIMS: &str = "SELECT user_id, id FROM redemptions";
    const SPENDS: &str =
        "SELECT spent_usdc_atomic, (SELECT CAST(COALESCE(SUM(t.reserved_usdc_atomic), 0) AS BIGINT)
        FROM trades t WHERE t.key_id = s.key_id AND t.created_at_ms > s.since_ms) AS reserved_usdc_atomic FROM key_spend s";
    const COUNTED: &str = "SELECT key_id, hour_ms, event, trades, volume_usdc_atomic FROM usage_trades";
    let mut markets = Vec::new();
    for id in tx.list(MARKETS, &[], |row| row.get("id")).await? {
        let market = store::markets::find(tx, id).await?.expect("the market was just listed");
        markets.push((market, store::markets::outcomes(tx, id).await?));
    }
    let mut positions = HashMap::new();
    for holder in tx.list(HOLDERS, &[], |row| row.get::<Address>("account")).await? {
        for held in store::movements::list_positions(tx, holder, None).await? {
            positions.insert((holder, held.market_id, held.outcome_index), held);
        }
    }
    let (mut trades, mut traces) = (Vec::new(), Vec::new());
    for id in tx.list(TRADES, &[], |row| row.get("id")).await? {
        trades.push(store::trades::find_any(tx, id).await?.expect("the trade was just listed"));
        traces.push(store::trades::list_trace(tx, id).await?);
    }
    let mut claims = Vec::new();
    for (user_id, id) in tx.list(CLAIMS, &[], |row| Ok((row.get("user_id")?, row.get("id")?))).await? {
        claims.push(store::redemptions::find(tx, user_id, id).await?.expect("the claim was just listed"));
    }
    Ok(Ledger {
        accounts: tx
            .list(ACCOUNTS, &[], |row| Ok((row.get("address")?, row.get("reserved_usdc_atomic")?)))
            .await?,
        markets,
        positions,
        trades,
        traces,
        claims,
        spends: tx
            .list(SPENDS, &[], |row| Ok((row.get("spent_usdc_atomic")?, row.get("reserved_usdc_atomic")?)))
            .await?,
        counted: tx.list(COUNTED, &[], counted).await?.into_iter().collect(),
    })
}

fn counted(row: &Row<'_>) -> Result<(HourOfKey, (i64, Usdc)), StoreError> {
    let hour = (row.get("key_id")?, row.get("hour_ms")?, row.get("event")?);
    Ok((hour, (row.get("trades")?, row.get("volume_usdc_atomic")?)))
}
