//! Lanes: the executors that share the accounts.

use alloy_primitives::Address;

/// Returns the lane of an account. All trades of an account go through one executor, which
/// preserves their order.
pub fn lane_of(account: Address, lanes: u16) -> u16 {
    // The last two bytes of an address are evenly distributed, so the lanes get equal shares.
    let last = account.as_slice().iter().rev().take(2).fold(0u16, |sum, byte| (sum << 8) | u16::from(*byte));
    last % lanes.max(1)
}

/// Returns the name of the lease under which one process runs a lane's executor.
pub fn lease_of(lane: u16) -> String {
    format!("executor:{lane}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_keep_their_lane_and_are_spread_over_all_lanes() {
        let lanes: Vec<_> = (0..6u8).map(|n| lane_of(Address::with_last_byte(n), 3)).collect();
        assert_eq!(lanes, [0, 1, 2, 0, 1, 2]);
        assert_eq!(lane_of(Address::with_last_byte(9), 0), 0);
    }
}
