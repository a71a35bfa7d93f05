// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

/// @dev An executor's right and its volume, in one word, high to low: paused:1 | allowed:1 | updatedAt:32 | used:64 | cap:64
/// (atomic-6). The volume is a bucket: it fills with what leaves accounts and drains evenly, a whole cap in an hour.
type ExecutorWord is uint256;

using ExecutorWordLib for ExecutorWord global;

library ExecutorWordLib {
    uint256 private constant PAUSED = 161;
    uint256 private constant ALLOWED = 160;
    uint256 private constant UPDATED_AT = 128;
    uint256 private constant USED = 64;
    uint256 private constant VOLUME_MASK = (1 << 96) - 1 << USED;

    uint256 internal constant WINDOW = 1 hours;
    uint256 internal constant NO_CAP = type(uint64).max;

    function paused(ExecutorWord word) internal pure returns (bool) {
        return ExecutorWord.unwrap(word) >> PAUSED & 1 == 1;
    }

    function allowed(ExecutorWord word) internal pure returns (bool) {
        return ExecutorWord.unwrap(word) >> ALLOWED & 1 == 1;
    }

    function updatedAt(ExecutorWord word) internal pure returns (uint32) {
        return uint32(ExecutorWord.unwrap(word) >> UPDATED_AT);
    }

    function used(ExecutorWord word) internal pure returns (uint64) {
        return uint64(ExecutorWord.unwrap(word) >> USED);
    }

    function cap(ExecutorWord word) internal pure returns (uint64) {
        return uint64(ExecutorWord.unwrap(word));
    }

    function withPaused(ExecutorWord word, bool paused_) internal pure returns (ExecutorWord) {
        uint256 rest = ExecutorWord.unwrap(word) & ~(uint256(1) << PAUSED);
        return ExecutorWord.wrap(paused_ ? rest | 1 << PAUSED : rest);
    }

    /// @notice An allowed executor with this cap; what it has used stays.
    function withCap(ExecutorWord word, uint64 cap_) internal pure returns (ExecutorWord) {
        uint256 rest = ExecutorWord.unwrap(word) & ~uint256(type(uint64).max);
        return ExecutorWord.wrap(rest | 1 << ALLOWED | cap_);
    }

    /// @notice The word as of now: the part of the cap that the elapsed time gives back, rounded down, is free again.
    function drained(ExecutorWord word) internal view returns (ExecutorWord) {
        unchecked {
            uint256 elapsed = block.timestamp - updatedAt(word);
            uint256 back = elapsed < WINDOW ? elapsed * cap(word) / WINDOW : cap(word);
            uint256 used_ = used(word);
            used_ = used_ > back ? used_ - back : 0;
            return ExecutorWord.wrap(
                ExecutorWord.unwrap(word) & ~VOLUME_MASK | uint256(uint32(block.timestamp)) << UPDATED_AT | used_
                    << USED
            );
        }
    }

    /// @notice USDC atomic-6 that the cap leaves.
    function left(ExecutorWord word) internal pure returns (uint256) {
        (uint256 cap_, uint256 used_) = (cap(word), used(word));
        unchecked {
            return cap_ > used_ ? cap_ - used_ : 0;
        }
    }

    /// @notice Draws an amount that `left` has room for.
    function drawn(ExecutorWord word, uint256 usdc) internal pure returns (ExecutorWord) {
        unchecked {
            return ExecutorWord.wrap(ExecutorWord.unwrap(word) + (usdc << USED));
        }
    }

    /// @notice Gives back what a sale paid, but never more than was drawn: sales are no credit for later.
    function returned(ExecutorWord word, uint256 usdc) internal pure returns (ExecutorWord) {
        uint256 used_ = used(word);
        unchecked {
            return ExecutorWord.wrap(ExecutorWord.unwrap(word) - ((usdc < used_ ? usdc : used_) << USED));
        }
    }
}
