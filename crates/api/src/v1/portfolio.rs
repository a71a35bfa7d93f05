//! The caller's smart account, its balance and its positions.

use app::portfolio::{Portfolio, ValuedPosition};
use axum::extract::State;
use chain::Policy;
use domain::ids::MarketId;
use domain::market::MarketStatus;
use domain::{Timestamp, Usdc, UsdcDelta, Wad};
use http_kit::{
    Caller, Meta, NoParameters, Parameters, Plain, PortfolioRead, Problem, Query, RawQuery, Shared, Single,
};
use serde::Serialize;
use utoipa::ToSchema;

use super::market_record::AsOf;
use super::numbers;
use crate::openapi::answers::answers;
use crate::openapi::formats::Address;

answers! {
    /// The account and the totals of its positions.
    PortfolioAnswer = single("portfolio", PortfolioRecord);
    /// All positions of the account.
    PositionsAnswer = plain(PositionRecord);
}

/// The account and the totals of its positions. Amounts are atomic-6 decimal strings.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Portfolio)]
#[serde(rename_all = "camelCase")]
pub struct PortfolioRecord {
    /// The address of the smart account.
    #[schema(value_type = Address)]
    address: alloy_primitives::Address,
    chain_id: u64,
    /// The USDC balance of the account on chain.
    usdc_balance: Usdc,
    /// USDC that is reserved for buys that have not ended.
    reserved_usdc: Usdc,
    /// The balance without the reserved USDC.
    available_usdc: Usdc,
    /// The value of the tokens at current prices.
    positions_value: Usdc,
    /// The sum of the balance and the value of the positions.
    total_value: Usdc,
    /// The cost of the tokens that are still held.
    cost_basis: Usdc,
    unrealized_pnl: UsdcDelta,
    realized_pnl: UsdcDelta,
    fees_paid: Usdc,
    open_positions: usize,
    /// The payout of settled positions that can be claimed.
    claimable_usdc: Usdc,
    delegation: DelegationRecord,
    as_of: AsOf,
}

/// The delegation of the calling key on chain.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Delegation)]
#[serde(rename_all = "camelCase")]
struct DelegationRecord {
    enabled: bool,
    expires_at: Option<Timestamp>,
    caps: CapsRecord,
}

/// The spending caps of a key's policy on chain.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DelegationCaps)]
#[serde(rename_all = "camelCase")]
pub(super) struct CapsRecord {
    per_trade_usdc: Usdc,
    daily_usdc: Usdc,
}

/// A position, valued by the average-cost method.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Position)]
#[serde(rename_all = "camelCase")]
pub struct PositionRecord {
    market_id: MarketId,
    question: String,
    market_status: MarketStatus,
    outcome_index: u8,
    outcome_label: String,
    tokens: Wad,
    /// The average cost of a held token, in USDC.
    avg_price: Option<f64>,
    cost_basis: Usdc,
    current_price: f64,
    value: Usdc,
    unrealized_pnl: UsdcDelta,
    realized_pnl: UsdcDelta,
    fees_paid: Usdc,
    claimable: bool,
    claimable_usdc: Usdc,
    updated_at: Timestamp,
}

/// The parameter `marketId`.
#[derive(Debug)]
pub struct PositionsQuery {
    market_id: Option<MarketId>,
}

impl Parameters for PositionsQuery {
    const NAMES: &'static [&'static str] = &["marketId"];

    fn read(given: &mut RawQuery<'_>) -> Option<Self> {
        Some(Self { market_id: given.parsed("marketId", "must be a UUID") })
    }
}

/// `GET /v1/portfolio`: the smart account, its balance on chain and the sum of its positions.
/// `SMART_ACCOUNT_NOT_PROVISIONED` if the user has none.
#[utoipa::path(
    get, path = "/v1/portfolio", operation_id = "getPortfolio", tag = "Portfolio",
    summary = "Read balance and totals",
    description = "The smart account, its balance on chain, the calling key's delegation, and the totals of its positions.",
    responses((status = 200, description = "The portfolio.", body = PortfolioAnswer)),
    extensions(("x-error-codes" = json!(["SMART_ACCOUNT_NOT_PROVISIONED"]))),
)]
pub async fn summary(
    State(app): State<Shared>,
    caller: Caller<PortfolioRead>,
    _: Query<NoParameters>,
    meta: Meta,
) -> Result<Single<PortfolioRecord>, Problem> {
    let portfolio = app::portfolio::summary(&app.ctx, &caller).await?;
    let record = PortfolioRecord::new(&portfolio, app.ctx.chain.chain_id(), app.ctx.now());
    Ok(meta.single("portfolio", record))
}

/// `GET /v1/portfolio/positions`: every position that holds tokens or has a history.
#[utoipa::path(
    get, path = "/v1/portfolio/positions", operation_id = "listPositions", tag = "Portfolio",
    summary = "List positions",
    description = "Every position that holds tokens or has a history, valued by the average-cost method. The list has no pages.",
    params(("marketId" = Option<MarketId>, Query, description = "Positions in this market.")),
    responses((status = 200, description = "The positions.", body = PositionsAnswer)),
    extensions(("x-error-codes" = json!(["SMART_ACCOUNT_NOT_PROVISIONED"]))),
)]
pub async fn positions(
    State(app): State<Shared>,
    caller: Caller<PortfolioRead>,
    Query(query): Query<PositionsQuery>,
    meta: Meta,
) -> Result<Plain<Vec<PositionRecord>>, Problem> {
    let positions = app::portfolio::positions(&app.ctx, &caller, query.market_id).await?;
    let now = app.ctx.now();
    Ok(meta.plain(positions.into_iter().map(|position| PositionRecord::new(position, now)).collect()))
}

impl CapsRecord {
    pub(super) const fn of(policy: &Policy) -> Self {
        Self {
            per_trade_usdc: Usdc::from_atomic(policy.per_trade_usdc_atomic),
            daily_usdc: Usdc::from_atomic(policy.daily_usdc_atomic),
        }
    }
}

impl PortfolioRecord {
    fn new(portfolio: &Portfolio, chain_id: u64, now: Timestamp) -> Self {
        let Portfolio { account, state, positions, as_of: (block, at) } = portfolio;
        let sum = |of: fn(&ValuedPosition) -> Usdc| positions.iter().map(of).fold(Usdc::ZERO, plus);
        let positions_value = sum(|position| position.value);
        let cost_basis = sum(|position| position.position().cost_basis);
        let realized = positions.iter().map(|position| position.position().realized_pnl.0);
        let usdc_balance = portfolio.cash();
        let policy = &state.policy;
        let delegation = DelegationRecord {
            enabled: state.lets_spend(now.s()),
            expires_at: (policy.expiry_s != 0).then(|| Timestamp::from_s(policy.expiry_s)),
            caps: CapsRecord::of(policy),
        };
        Self {
            address: account.address,
            chain_id,
            usdc_balance,
            reserved_usdc: account.reserved,
            // An owner may withdraw funds on chain that are reserved here.
            available_usdc: usdc_balance.saturating_sub(account.reserved),
            positions_value,
            total_value: plus(usdc_balance, positions_value),
            cost_basis,
            unrealized_pnl: UsdcDelta::between(positions_value, cost_basis),
            // Saturates for the same reason as the balance.
            realized_pnl: UsdcDelta(realized.fold(0, i64::saturating_add)),
            fees_paid: sum(|position| position.position().fees_paid),
            // Closed positions stay listed for their realized profit, but are not open.
            open_positions: positions.iter().filter(|position| position.is_open()).count(),
            claimable_usdc: sum(|position| position.claimable),
            delegation,
            as_of: AsOf { block: *block, at: *at },
        }
    }
}

impl PositionRecord {
    fn new(valued: ValuedPosition, now: Timestamp) -> Self {
        let position = *valued.position();
        Self {
            market_id: valued.market.id,
            market_status: valued.market.status_at(now),
            outcome_index: valued.held.outcome_index,
            tokens: position.tokens,
            avg_price: numbers::per_token(position.cost_basis, position.tokens),
            cost_basis: position.cost_basis,
            current_price: numbers::price(valued.price),
            value: valued.value,
            unrealized_pnl: valued.unrealized_pnl(),
            realized_pnl: position.realized_pnl,
            fees_paid: position.fees_paid,
            claimable: valued.is_claimable,
            claimable_usdc: valued.claimable,
            updated_at: valued.held.updated_at,
            question: valued.market.question,
            outcome_label: valued.label,
        }
    }
}

/// Adds two amounts, and saturates at the largest amount that can be shown.
fn plus(one: Usdc, other: Usdc) -> Usdc {
    one.checked_add(other).unwrap_or(Usdc::from_atomic(i64::MAX as u64))
}

#[cfg(test)]
mod tests {
    use super::super::market_record::testing;
    use super::*;
    use alloy_primitives::U256;
    use chain::AccountState;
    use domain::ids::UserId;
    use domain::position::Position;
    use store::movements::Held;
    use store::users::Account;
    use uuid::Uuid;

    fn valued() -> ValuedPosition {
        let (market, _) = testing::market();
        let position = Position {
            tokens: Wad::from_amount(Usdc::from_whole(20)),
            cost_basis: Usdc::from_whole(8),
            realized_pnl: UsdcDelta(-1_500_000),
            fees_paid: Usdc::from_atomic(80_000),
        };
        let account = alloy_primitives::Address::repeat_byte(0xbb);
        let (market_id, updated_at) = (market.id, Timestamp::from_ms(700));
        let held = Held { account, market_id, outcome_index: 0, position, updated_at };
        let price = Wad::from(500_000_000_000_000_000u128);
        let value = Usdc::from_whole(10);
        ValuedPosition {
            market,
            label: "Yes".into(),
            held,
            price,
            value,
            claimable: Usdc::ZERO,
            is_claimable: false,
        }
    }

    #[test]
    fn a_position_has_the_documented_members() {
        let record = PositionRecord::new(valued(), Timestamp::from_ms(5));
        insta::assert_snapshot!(serde_json::to_string_pretty(&record).unwrap());
    }

    #[test]
    fn a_portfolio_has_the_documented_members() {
        let user_id = UserId(Uuid::from_u128(9));
        let address = alloy_primitives::Address::repeat_byte(0xbb);
        let (first_owner, salt) = (String::new(), alloy_primitives::B256::ZERO);
        let reserved = Usdc::from_whole(5);
        let account = Account { user_id, address, first_owner, salt, reserved };
        let policy = Policy {
            per_trade_usdc_atomic: 1_000_000,
            daily_usdc_atomic: 2_000_000,
            expiry_s: 60,
            ..Policy::default()
        };
        let state = AccountState {
            provisioned: true,
            usdc_balance_atomic: U256::from(100_000_000u64),
            gate_allowance_atomic: U256::MAX,
            policy,
        };
        let as_of = (3, Timestamp::from_ms(1_000));
        let portfolio = Portfolio { account, state, positions: vec![valued(), valued()], as_of };
        let record = PortfolioRecord::new(&portfolio, 31_337, Timestamp::from_ms(5));
        insta::assert_snapshot!(serde_json::to_string_pretty(&record).unwrap());
    }
}
