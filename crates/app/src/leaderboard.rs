//! Who has gained and traded most: what was realised in a timeframe, and beside it what open positions are worth now.

use domain::market::probability_for_display;
use domain::{Usdc, UsdcDelta, Wad};
use store::StoreError;
use store::public::{Extent, Leader, LeaderSort, Listed, OpenPosition, Timeframe};

use crate::Ctx;

/// An account's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranked {
    /// From 1.
    pub rank: u64,
    /// What it did in the timeframe.
    pub leader: Leader,
    /// What its open positions are worth now over what they cost, whatever the timeframe.
    pub unrealized_pnl: UsdcDelta,
}

/// The accounts that have done something in the timeframe, the greatest first.
pub async fn leaderboard(
    ctx: &Ctx,
    timeframe: Timeframe,
    sort: LeaderSort,
    extent: Extent,
) -> Result<Listed<Ranked>, StoreError> {
    let input = (timeframe, sort, extent, ctx.now());
    ctx.store
        .read(input, |tx, (timeframe, sort, extent, now)| {
            Box::pin(async move {
                let leaders = store::public::list_leaders(tx, *timeframe, *sort, *extent, *now).await?;
                let mut items = Vec::with_capacity(leaders.items.len());
                for (rank, leader) in (u64::from(extent.offset) + 1..).zip(leaders.items) {
                    let open = store::public::list_open_positions(tx, &leader.account).await?;
                    let unrealized = open.iter().map(|position| unrealized(position).0).sum();
                    items.push(Ranked { rank, leader, unrealized_pnl: UsdcDelta(unrealized) });
                }
                Ok(Listed { items, total: leaders.total })
            })
        })
        .await
}

/// What a position is worth over what it cost: at what its market pays where that is settled, and at the current price
/// otherwise. For display alone.
#[expect(
    clippy::float_arithmetic,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a display value"
)]
fn unrealized(p: &OpenPosition) -> UsdcDelta {
    let per_token = |price: f64| (p.tokens.to_f64_for_display() * price * 1e6).floor().max(0.0) as u64;
    let display = |wad: &Wad| wad.to_f64_for_display();
    let value = match (&p.payouts, &p.refund_scale) {
        (_, Some(scale)) => (p.cost_basis.to_f64_for_display() * scale.to_f64_for_display() * 1e6) as u64,
        (Some(payouts), None) => per_token(payouts.get(usize::from(p.outcome_index)).map_or(0.0, display)),
        (None, None) => {
            let (quantity, cost) = (display(&p.quantity), display(&p.cost));
            per_token(probability_for_display(quantity, cost, p.liquidity.to_f64_for_display()))
        }
    };
    UsdcDelta::between(Usdc::from_atomic(value), p.cost_basis)
}

#[cfg(test)]
mod tests {
    use domain::ids::MarketId;

    use super::*;

    fn position() -> OpenPosition {
        OpenPosition {
            market_id: MarketId(uuid::Uuid::nil()),
            outcome_index: 0,
            tokens: Wad::from_amount(Usdc::from_whole(10)),
            cost_basis: Usdc::from_whole(4),
            quantity: Wad::from_amount(Usdc::from_whole(7)),
            cost: Wad::from_amount(Usdc::from_whole(7)),
            liquidity: Usdc::from_whole(100),
            payouts: None,
            refund_scale: None,
        }
    }

    #[test]
    fn an_open_position_is_worth_its_price_a_settled_one_its_payout_a_refund_its_cost() {
        assert_eq!(unrealized(&position()), UsdcDelta(6_000_000));
        let lost = OpenPosition { payouts: Some(vec![Wad::ZERO, Wad::ONE]), ..position() };
        assert_eq!(unrealized(&lost), UsdcDelta(-4_000_000));
        let refunded = OpenPosition { refund_scale: Some(Wad::ONE), ..lost };
        assert_eq!(unrealized(&refunded), UsdcDelta(0));
    }
}
