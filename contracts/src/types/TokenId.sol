// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

/// @notice The id of an outcome's token: `marketId << 8 | outcome`. The upper 184 bits are zero.
library TokenId {
    function make(uint64 marketId, uint256 outcome) internal pure returns (uint256) {
        return uint256(marketId) << 8 | outcome;
    }

    /// @return isCanonical Whether the id has no bits above the market's.
    function split(uint256 id) internal pure returns (bool isCanonical, uint64 marketId, uint8 outcome) {
        return (id >> 72 == 0, uint64(id >> 8), uint8(id));
    }
}
