// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

/// @notice The name of an outcome's token: `marketId << 8 | outcome`.
library TokenId {
    function make(uint64 marketId, uint256 outcome) internal pure returns (uint256) {
        return uint256(marketId) << 8 | outcome;
    }

    function split(uint256 id) internal pure returns (uint64 marketId, uint8 outcome) {
        return (uint64(id >> 8), uint8(id));
    }
}
