// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {IGate} from "../interfaces/IGate.sol";

/// @dev What one key of one account may do, and what it has done, in one word, high to low:
/// perTrade:44 | daily:44 | spent:44 (atomic-6) | windowStart:32 | expiry:32 | nonceTop:28 | nonceBitmap:32
/// A key has one word for buys, and a second one of the same layout for sales, without expiry and nonces.
type PolicyWord is uint256;

using PolicyWordLib for PolicyWord global;

library PolicyWordLib {
    uint256 private constant PER_TRADE = 212;
    uint256 private constant DAILY = 168;
    uint256 private constant SPENT = 124;
    uint256 private constant WINDOW_START = 92;
    uint256 private constant EXPIRY = 60;
    uint256 private constant NONCE_TOP = 32;

    uint256 private constant AMOUNT_MASK = (1 << 44) - 1;
    uint256 private constant NONCES_MASK = (1 << 60) - 1;
    uint256 private constant SPENDING_MASK = (1 << 76) - 1 << WINDOW_START;

    uint256 internal constant MAX_AMOUNT = AMOUNT_MASK;
    uint256 internal constant MAX_NONCE = (1 << 28) - 1;
    uint256 internal constant WINDOW = 1 days;

    function perTrade(PolicyWord word) internal pure returns (uint64) {
        return uint64(PolicyWord.unwrap(word) >> PER_TRADE);
    }

    function daily(PolicyWord word) internal pure returns (uint64) {
        return uint64(PolicyWord.unwrap(word) >> DAILY & AMOUNT_MASK);
    }

    function spent(PolicyWord word) internal pure returns (uint64) {
        return uint64(PolicyWord.unwrap(word) >> SPENT & AMOUNT_MASK);
    }

    function windowStart(PolicyWord word) internal pure returns (uint32) {
        return uint32(PolicyWord.unwrap(word) >> WINDOW_START);
    }

    function expiry(PolicyWord word) internal pure returns (uint32) {
        return uint32(PolicyWord.unwrap(word) >> EXPIRY);
    }

    function nonceTop(PolicyWord word) internal pure returns (uint32) {
        return uint32(PolicyWord.unwrap(word) >> NONCE_TOP & MAX_NONCE);
    }

    function nonceBitmap(PolicyWord word) internal pure returns (uint32) {
        return uint32(PolicyWord.unwrap(word));
    }

    /// @notice New caps and expiry; usage and nonces stay.
    function withLimits(PolicyWord word, uint64 perTrade_, uint64 daily_, uint32 expiry_)
        internal
        pure
        returns (PolicyWord)
    {
        if (perTrade_ > MAX_AMOUNT || daily_ > MAX_AMOUNT) revert IGate.PolicyInvalid();
        uint256 kept = PolicyWord.unwrap(word) & (NONCES_MASK | SPENDING_MASK);
        return
            PolicyWord.wrap(
                kept | uint256(perTrade_) << PER_TRADE | uint256(daily_) << DAILY | uint256(expiry_) << EXPIRY
            );
    }

    /// @dev Nonce 0 counts as used, so that an empty word needs no flag of its own.
    function isUsed(PolicyWord word, uint256 nonce) internal pure returns (bool) {
        uint256 top = nonceTop(word);
        if (nonce > top) return false;
        if (nonce == top) return true;
        uint256 behind;
        unchecked {
            behind = top - nonce - 1;
        }
        return behind >= 32 || nonceBitmap(word) >> behind & 1 == 1;
    }

    /// @notice Marks a nonce that is not used yet and not above the maximum.
    function withNonce(PolicyWord word, uint256 nonce) internal pure returns (PolicyWord) {
        uint256 top = nonceTop(word);
        uint256 bitmap = nonceBitmap(word);
        unchecked {
            if (nonce > top) {
                uint256 ahead = nonce - top;
                // The old top becomes the bit `ahead - 1`; what is shifted past 32 bits has left the window.
                bitmap = uint32(bitmap << ahead | 1 << ahead - 1);
                top = nonce;
            } else {
                bitmap |= 1 << top - nonce - 1;
            }
        }
        return PolicyWord.wrap(PolicyWord.unwrap(word) & ~NONCES_MASK | top << NONCE_TOP | bitmap);
    }

    /// @notice The word as of now. A window begins with its first use and ends a day later.
    function rolled(PolicyWord word) internal view returns (PolicyWord) {
        unchecked {
            if (block.timestamp < windowStart(word) + WINDOW) return word;
        }
        uint256 kept = PolicyWord.unwrap(word) & ~SPENDING_MASK;
        return PolicyWord.wrap(kept | uint256(uint32(block.timestamp)) << WINDOW_START);
    }

    /// @notice The amount that the daily cap leaves in the window of the word.
    function left(PolicyWord word) internal pure returns (uint256) {
        (uint256 cap, uint256 used) = (daily(word), spent(word));
        unchecked {
            return cap > used ? cap - used : 0;
        }
    }

    /// @notice Draws an amount that `left` has room for.
    function charged(PolicyWord word, uint256 amount) internal pure returns (PolicyWord) {
        unchecked {
            return PolicyWord.wrap(PolicyWord.unwrap(word) + (amount << SPENT));
        }
    }
}
