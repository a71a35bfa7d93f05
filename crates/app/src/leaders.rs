//! Who has gained and traded most, with what the positions that they still hold would gain now.

use alloy_primitives::U256;
use domain::market::probability_ppm;
use domain::{Usdc, UsdcDelta};
use store::StoreError;
use store::public::{Extent, Leader, LeaderSort, Listed, OpenPosition, Timeframe};

use crate::{AppError, Ctx};

/// One, in WAD. WAD of tokens times a price in millionths, over this, is atomic USDC.
const WAD: u64 = 1_000_000_000_000_000_000;
/// WAD of USDC in an atomic unit.
const WAD_PER_ATOMIC: u64 = 1_000_000_000_000;

/// An account with what its open positions would gain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranked {
    /// The account's figures.
    pub leader: Leader,
    /// The worth of its open positions over what they cost, at the prices that are shown.
    pub unrealized_pnl: UsdcDelta,
}

/// A piece of the leaderboard.
pub async fn leaders(
    ctx: &Ctx,
    timeframe: Timeframe,
    sort: LeaderSort,
    extent: Extent,
) -> Result<Listed<Ranked>, AppError> {
    let now = ctx.now();
    let read: Result<Listed<Ranked>, StoreError> = ctx
        .store
        .read((), move |tx, ()| {
            Box::pin(async move {
                let Listed { items, total } =
                    store::public::list_leaders(tx, timeframe, sort, extent, now).await?;
                let mut ranked = Vec::with_capacity(items.len());
                for leader in items {
                    let held = store::public::list_open_positions(tx, &leader.account).await?;
                    let unrealized_pnl = UsdcDelta(held.iter().map(|held| gain(held).0).sum());
                    ranked.push(Ranked { leader, unrealized_pnl });
                }
                Ok(Listed { items: ranked, total })
            })
        })
        .await;
    Ok(read?)
}

/// What the position is worth over what it cost, rounded down.
fn gain(held: &OpenPosition) -> UsdcDelta {
    UsdcDelta::between(worth(held), held.cost_basis)
}

fn worth(held: &OpenPosition) -> Usdc {
    if let Some(scale) = held.refund_scale {
        return atomic(U256::from(held.cost_basis.atomic()) * scale.0 / U256::from(WAD));
    }
    let payout = held.payouts.as_ref().and_then(|payouts| payouts.get(usize::from(held.outcome_index)));
    match payout {
        Some(payout) => atomic(held.tokens.0 * payout.0 / (U256::from(WAD) * U256::from(WAD_PER_ATOMIC))),
        None => {
            let price_ppm = probability_ppm(held.quantity, held.cost, held.liquidity);
            atomic(held.tokens.0 * U256::from(price_ppm) / U256::from(WAD))
        }
    }
}

fn atomic(atomic: U256) -> Usdc {
    Usdc::from_atomic(u64::try_from(atomic).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::Wad;
    use domain::ids::MarketId;
    use uuid::Uuid;

    /// 100 tokens of an outcome at 0.367879, which cost 30 USDC.
    fn held() -> OpenPosition {
        OpenPosition {
            market_id: MarketId(Uuid::from_u128(1)),
            outcome_index: 1,
            tokens: Wad::from_amount(Usdc::from_whole(100)),
            cost_basis: Usdc::from_whole(30),
            quantity: Wad::ZERO,
            cost: Wad::from_amount(Usdc::from_whole(100)),
            liquidity: Usdc::from_whole(100),
            payouts: None,
            refund_scale: None,
        }
    }

    #[test]
    fn an_open_position_is_worth_its_price_and_a_settled_one_what_it_pays() {
        assert_eq!(gain(&held()), UsdcDelta(6_787_900));
        let settled = |payouts: [Wad; 2]| OpenPosition { payouts: Some(payouts.to_vec()), ..held() };
        assert_eq!(gain(&settled([Wad::ZERO, Wad::ONE])), UsdcDelta(70_000_000));
        assert_eq!(gain(&settled([Wad::ONE, Wad::ZERO])), UsdcDelta(-30_000_000));
        let third = Wad(Wad::ONE.0 / U256::from(3));
        assert_eq!(gain(&settled([third, third])), UsdcDelta(3_333_333));
        let cancelled = OpenPosition { refund_scale: Some(third), ..held() };
        assert_eq!(gain(&cancelled), UsdcDelta(-20_000_001));
    }
}
