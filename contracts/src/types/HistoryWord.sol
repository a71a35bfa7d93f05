// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

/// @dev The quantity of one outcome at the start of the last two reference periods in which it changed, high to low:
/// unused:16 | latest (q_i, WAD):104 | earlier (q_i, WAD):104 | earlierPeriod:32
///
/// `latest` belongs to the period in the outcome's own word, `earlier` to `earlierPeriod`.
type HistoryWord is uint256;

using HistoryWordLib for HistoryWord global;

library HistoryWordLib {
    uint256 private constant LATEST = 136;
    uint256 private constant EARLIER = 32;

    /// @return q_i in WAD.
    function latest(HistoryWord word) internal pure returns (uint256) {
        return uint104(HistoryWord.unwrap(word) >> LATEST);
    }

    /// @return q_i in WAD.
    function earlier(HistoryWord word) internal pure returns (uint256) {
        return uint104(HistoryWord.unwrap(word) >> EARLIER);
    }

    function earlierPeriod(HistoryWord word) internal pure returns (uint256) {
        return uint32(HistoryWord.unwrap(word));
    }

    /// @notice The word after a further period has begun with the quantity `quantity`.
    /// @param period The period that `latest` belonged to so far.
    function pushed(HistoryWord word, uint256 quantity, uint256 period) internal pure returns (HistoryWord) {
        return HistoryWord.wrap(quantity << LATEST | latest(word) << EARLIER | period);
    }
}
