//! Lanes: the executors that share the accounts.

use alloy_primitives::Address;

use crate::words::words;

words! {
    /// The state of a lane.
    LaneState, UnknownLaneState {
        /// Accounts are assigned to it.
        Active = "active",
        /// It gets no new trades and finishes those it has.
        Draining = "draining",
        /// It signs nothing any more. Its number is never given to another executor.
        Removed = "removed",
    }
}

words! {
    /// The holder of an executor's key.
    SignerKind, UnknownSignerKind {
        /// The secrets file.
        File = "file",
        /// A web3signer server.
        Web3signer = "web3signer",
        /// AWS KMS.
        AwsKms = "aws-kms",
        /// GCP KMS.
        GcpKms = "gcp-kms",
    }
}

/// Returns the lane of an account, out of the given numbers. All trades of an account go through one
/// executor, which preserves their order.
///
/// The numbers must be sorted, so that every process assigns the same one. Without any, the lane is 0.
pub fn assign(account: Address, lanes: &[u16]) -> u16 {
    // The last two bytes of an address are evenly distributed, so the lanes get equal shares.
    let last =
        account.as_slice().iter().rev().take(2).fold(0usize, |sum, byte| (sum << 8) | usize::from(*byte));
    last.checked_rem(lanes.len()).and_then(|place| lanes.get(place)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_keep_their_lane_and_are_spread_over_all_lanes() {
        let lanes: Vec<_> = (0..6u8).map(|n| assign(Address::with_last_byte(n), &[0, 1, 2])).collect();
        assert_eq!(lanes, [0, 1, 2, 0, 1, 2]);
        assert_eq!(assign(Address::with_last_byte(9), &[]), 0);
    }

    #[test]
    fn only_the_given_lanes_get_accounts() {
        let lanes: Vec<_> = (0..4u8).map(|n| assign(Address::repeat_byte(n), &[1, 7])).collect();
        assert_eq!(lanes, [1, 7, 1, 7]);
    }
}
