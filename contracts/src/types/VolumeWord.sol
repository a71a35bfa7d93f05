// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

/// @dev What all keys together may do in an hour, in one word, high to low:
/// paused:8 | windowStart:32 | used:64 | cap:64 (atomic-6)
type VolumeWord is uint256;

using VolumeWordLib for VolumeWord global;

library VolumeWordLib {
    uint256 private constant PAUSED = 160;
    uint256 private constant WINDOW_START = 128;
    uint256 private constant USED = 64;

    uint256 internal constant WINDOW = 1 hours;

    function paused(VolumeWord word) internal pure returns (bool) {
        return VolumeWord.unwrap(word) >> PAUSED != 0;
    }

    function windowStart(VolumeWord word) internal pure returns (uint32) {
        return uint32(VolumeWord.unwrap(word) >> WINDOW_START);
    }

    function used(VolumeWord word) internal pure returns (uint64) {
        return uint64(VolumeWord.unwrap(word) >> USED);
    }

    function cap(VolumeWord word) internal pure returns (uint64) {
        return uint64(VolumeWord.unwrap(word));
    }

    function withPaused(VolumeWord word, bool paused_) internal pure returns (VolumeWord) {
        uint256 rest = VolumeWord.unwrap(word) & (1 << PAUSED) - 1;
        return VolumeWord.wrap(paused_ ? rest | 1 << PAUSED : rest);
    }

    function withCap(VolumeWord word, uint64 cap_) internal pure returns (VolumeWord) {
        return VolumeWord.wrap(VolumeWord.unwrap(word) & ~uint256(type(uint64).max) | cap_);
    }

    /// @notice The word as of now: a new hour begins empty.
    function rolled(VolumeWord word) internal view returns (VolumeWord) {
        if (block.timestamp < windowStart(word) + WINDOW) return word;
        uint256 kept = VolumeWord.unwrap(word) & ~((1 << 96) - 1 << USED);
        return VolumeWord.wrap(kept | uint256(uint32(block.timestamp)) << WINDOW_START);
    }

    function left(VolumeWord word) internal pure returns (uint256) {
        (uint256 cap_, uint256 used_) = (cap(word), used(word));
        unchecked {
            return cap_ > used_ ? cap_ - used_ : 0;
        }
    }

    /// @notice Draws an amount that `left` has room for.
    function drawn(VolumeWord word, uint256 usdc) internal pure returns (VolumeWord) {
        unchecked {
            return VolumeWord.wrap(VolumeWord.unwrap(word) + (usdc << USED));
        }
    }
}
