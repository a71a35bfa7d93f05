// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {IMarketHub} from "../interfaces/IMarketHub.sol";

/// @dev What one account holds of one outcome in one word, high to low:
/// balance (tokens, WAD):128 | basis (atomic-6):64 | refunded (atomic-6):64
/// `refunded` is what a refund that was scaled down has paid so far; zero in every other case.
type PositionWord is uint256;

using PositionWordLib for PositionWord global;

library PositionWordLib {
    uint256 private constant BALANCE = 128;
    uint256 private constant BASIS = 64;

    function pack(uint256 balance_, uint256 basis_, uint256 refunded_) internal pure returns (PositionWord) {
        if (balance_ > type(uint128).max || basis_ > type(uint64).max) revert IMarketHub.AmountTooLarge();
        return PositionWord.wrap(balance_ << BALANCE | basis_ << BASIS | refunded_);
    }

    /// @return Tokens in WAD.
    function balance(PositionWord word) internal pure returns (uint256) {
        return PositionWord.unwrap(word) >> BALANCE;
    }

    /// @return USDC atomic-6 paid for the balance, fees included.
    function basis(PositionWord word) internal pure returns (uint256) {
        return uint64(PositionWord.unwrap(word) >> BASIS);
    }

    function refunded(PositionWord word) internal pure returns (uint256) {
        return uint64(PositionWord.unwrap(word));
    }

    function plus(PositionWord word, uint256 tokens, uint256 basisIn) internal pure returns (PositionWord) {
        // Both summands are checked by those who make them: tokens below 2^129, basis below 2^66.
        unchecked {
            return pack(balance(word) + tokens, basis(word) + basisIn, refunded(word));
        }
    }

    /// @notice Takes tokens out, and their share of the basis, rounded up: what stays never claims more than its share.
    function minus(PositionWord word, uint256 tokens) internal pure returns (PositionWord rest, uint256 basisOut) {
        uint256 have = balance(word);
        if (tokens > have) revert IMarketHub.PositionInsufficient(have, tokens);
        if (tokens == 0) return (word, 0);
        // At most 2^64 * 2^128; and the share of the basis is at most the basis.
        unchecked {
            basisOut = (basis(word) * tokens + have - 1) / have;
            rest = pack(have - tokens, basis(word) - basisOut, refunded(word));
        }
    }
}
