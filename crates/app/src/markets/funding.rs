//! What a market's creation takes from the resolver: `b ln(1 / min odds)`, the most that the market maker can lose.

use alloy_primitives::{U256, U512};
use chain::{ChainError, Signer, calls};
use domain::Usdc;
use domain::key::Environment;

use crate::{AppError, Ctx};

const WAD: u64 = 1_000_000_000_000_000_000;
/// `ln 2`, WAD, rounded up.
const LN_2_WAD: u64 = 693_147_180_559_945_310;
/// Binary digits after the point of the logarithm, and of the number that it is taken of.
const LOG_BITS: usize = 24;
const POINT: usize = 128;

/// What the hub will take, or up to a ten-millionth of `b` more: computed with integers that are only ever rounded up. The
/// hub alone decides what it really takes. `opening_odds` are WAD; all equal where empty. `None` where it is no amount.
pub fn funding_ceil(liquidity: Usdc, outcomes: usize, opening_odds: &[U256]) -> Option<Usdc> {
    let inverse = match opening_odds.iter().min() {
        Some(least) if least.is_zero() => return None,
        Some(least) => (U256::from(WAD) << POINT).div_ceil(*least),
        None => U256::from(outcomes.max(1)) << POINT,
    };
    let log = log2_ceil(inverse);
    let funding = (U256::from(liquidity.atomic()) * log).checked_mul(U256::from(LN_2_WAD))?;
    let funding = funding.div_ceil(U256::from(WAD) << LOG_BITS);
    u64::try_from(funding).ok().filter(|atomic| *atomic <= i64::MAX as u64).map(Usdc::from_atomic)
}

/// The binary logarithm of a number of at least one, with [`POINT`] binary digits after the point, as a number with
/// [`LOG_BITS`] of them. Each squaring of what is left below two gives one more digit.
fn log2_ceil(number: U256) -> U256 {
    let one = U256::from(1) << POINT;
    let whole = number.bit_len().saturating_sub(POINT + 1);
    let mut left = number.div_ceil(U256::from(1) << whole);
    let mut log = U256::from(whole);
    for _ in 0..LOG_BITS {
        let square: U512 = left.widening_mul(left);
        left = U256::from(square.div_ceil(U512::from(one)));
        log <<= 1;
        if left >= one << 1 {
            left = left.div_ceil(U256::from(2));
            log += U256::from(1);
        }
    }
    if left > one { log + U256::from(1) } else { log }
}

/// Whether the resolver can pay for a market.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Funded {
    /// What the market takes at the most.
    pub needed: Usdc,
    /// What the resolver has: enough wherever test money can be made.
    pub balance: Usdc,
}

/// Lets the hub take a market's funding from the resolver. Where `minter` is given, and only then, what the resolver lacks is
/// made: test money.
pub async fn fund(
    ctx: &Ctx,
    resolver: &Signer,
    minter: Option<&Signer>,
    needed: Usdc,
) -> Result<Funded, AppError> {
    let contracts = ctx.chain.contracts();
    let mut balance = usdc_of(ctx.chain.usdc_balance(resolver.address()).await?);
    let minter = minter.filter(|_| ctx.config.environment == Environment::Test);
    if let (Some(minter), true) = (minter, balance < needed) {
        let mint = calls::mint(resolver.address(), U256::from(needed.saturating_sub(balance).atomic()));
        match ctx.chain.transact(minter, Some(contracts.usdc), mint).await {
            // A token that is not ours to make: the resolver has what it has.
            Ok(_) | Err(ChainError::Reverted(_)) => {}
            Err(error) => return Err(error.into()),
        }
        balance = usdc_of(ctx.chain.usdc_balance(resolver.address()).await?);
    }
    // An allowance of exactly this much: what another market's creation left is replaced, and nothing is left open.
    let approve = calls::approve(contracts.hub, U256::from(needed.atomic()));
    ctx.chain.transact(resolver, Some(contracts.usdc), approve).await?;
    Ok(Funded { needed, balance })
}

fn usdc_of(atomic: U256) -> Usdc {
    Usdc::from_atomic(u64::try_from(atomic).unwrap_or(i64::MAX as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn odds(hundredths: &[u64]) -> Vec<U256> {
        hundredths.iter().map(|odds| U256::from(odds * 10_000_000_000_000_000)).collect()
    }

    #[test]
    fn funding_is_b_times_the_logarithm_of_the_least_odds_inverse() {
        let b = Usdc::from_whole(1_000_000);
        // Exact values, rounded up to atomic units: b ln 2, b ln 3, b ln 250, b ln (1 / 0.35).
        for (outcomes, given, exact) in [
            (2, vec![], 693_147_180_560u64),
            (3, vec![], 1_098_612_288_669),
            (250, vec![], 5_521_460_917_863),
            (2, odds(&[65, 35]), 1_049_822_124_499),
        ] {
            let funding = funding_ceil(b, outcomes, &given).unwrap().atomic();
            assert!(funding >= exact && funding - exact <= 100_000, "{outcomes} {given:?}: {funding}");
        }
    }

    #[test]
    fn a_certain_outcome_beside_an_impossible_one_has_no_funding() {
        assert_eq!(funding_ceil(Usdc::from_whole(1), 2, &odds(&[100, 0])), None);
    }
}
