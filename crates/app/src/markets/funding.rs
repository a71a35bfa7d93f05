//! The funding of a market, which the resolver pays: `b ln(1 / min odds)`, the maximum loss of the
//! market maker.

use alloy_primitives::{U256, U512};
use chain::{Call, ChainError, Signer, calls};
use domain::Usdc;
use domain::key::Environment;

use crate::roles::{ActResult, ActSender, send};
use crate::{AppError, Ctx};

const WAD: u64 = 1_000_000_000_000_000_000;
/// `ln 2`, WAD, rounded up.
const LN_2_WAD: u64 = 693_147_180_559_945_310;
/// Binary digits after the point of the logarithm, and of its argument.
const LOG_BITS: usize = 24;
const POINT: usize = 128;

/// Returns the funding that the hub takes, or up to a ten-millionth of `b` more: all integer
/// arithmetic rounds up. Only the hub decides the exact amount. `opening_odds` are WAD and empty if
/// all are equal. Returns `None` if the result is not an amount.
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

/// Returns the binary logarithm, with [`LOG_BITS`] binary digits after the point, of a number of at
/// least one with [`POINT`] binary digits after the point. Each squaring of the rest, which is below
/// two, gives one more digit.
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

/// The funding of a market and the means of the resolver.
#[derive(Debug, Clone)]
pub struct Funded {
    /// The maximum that the market takes.
    pub needed: Usdc,
    /// The resolver's balance.
    pub balance: Usdc,
    /// The approval of the funding for the hub.
    pub approval: ActResult,
}

/// Approves a market's funding for the hub. If `minter` is set, it mints missing USDC on test chains,
/// except for a wallet, for which nothing is sent.
pub async fn fund<'a>(
    ctx: &Ctx,
    resolver: impl Into<ActSender<'a>>,
    minter: Option<&Signer>,
    needed: Usdc,
) -> Result<Funded, AppError> {
    let resolver = resolver.into();
    let contracts = ctx.chain.contracts();
    let mut balance = usdc_of(ctx.chain.usdc_balance(resolver.address()).await?);
    let is_test = ctx.config.environment == Environment::Test;
    let minter = minter.filter(|_| is_test && matches!(resolver, ActSender::Key(_)));
    if let (Some(minter), true) = (minter, balance < needed) {
        let mint = calls::mint(resolver.address(), U256::from(needed.saturating_sub(balance).atomic()));
        match ctx.chain.transact(minter, Some(contracts.usdc), mint).await {
            // The minter does not own this token: the balance stays as it is.
            Ok(_) | Err(ChainError::Reverted(_)) => {}
            Err(error) => return Err(error.into()),
        }
        balance = usdc_of(ctx.chain.usdc_balance(resolver.address()).await?);
    }
    // Exactly this much: it replaces the rest of an earlier approval and leaves nothing over.
    let approve = Call::new(contracts.usdc, calls::approve(contracts.hub, U256::from(needed.atomic())));
    let approval = send(ctx, resolver, approve, None).await?;
    Ok(Funded { needed, balance, approval })
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
    fn funding_is_b_times_the_log_of_the_longest_odds() {
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
    fn odds_of_one_and_zero_have_no_funding() {
        assert_eq!(funding_ceil(Usdc::from_whole(1), 2, &odds(&[100, 0])), None);
    }
}
