// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {IMarketHub} from "../interfaces/IMarketHub.sol";

/// @dev The state of one outcome in one word, high to low:
/// unused:32 | period:32 | quantity (q_i, WAD):104 | volume (atomic-6):64 | trades:24
///
/// `period` is the reference period in which the quantity last changed. The word is zero until the outcome is first
/// traded; its quantity is the opening quantity then.
type OutcomeWord is uint256;

using OutcomeWordLib for OutcomeWord global;

library OutcomeWordLib {
    uint256 private constant PERIOD = 192;
    uint256 private constant QUANTITY = 88;
    uint256 private constant VOLUME = 24;
    uint256 private constant STATISTICS = (1 << QUANTITY) - 1;

    function isUntouched(OutcomeWord word) internal pure returns (bool) {
        return OutcomeWord.unwrap(word) == 0;
    }

    /// @return q_i in WAD; zero while the word is untouched.
    function quantity(OutcomeWord word) internal pure returns (uint256) {
        return uint104(OutcomeWord.unwrap(word) >> QUANTITY);
    }

    /// @return USDC atomic-6 traded in both directions.
    function volume(OutcomeWord word) internal pure returns (uint64) {
        return uint64(OutcomeWord.unwrap(word) >> VOLUME);
    }

    function trades(OutcomeWord word) internal pure returns (uint32) {
        return uint24(OutcomeWord.unwrap(word));
    }

    function period(OutcomeWord word) internal pure returns (uint256) {
        return OutcomeWord.unwrap(word) >> PERIOD;
    }

    /// @notice The word after a trade.
    /// @dev The two statistics stop at their maximum: a full counter must never stop a sale.
    function traded(OutcomeWord word, uint256 newQuantity, uint256 period_, uint256 usdc)
        internal
        pure
        returns (OutcomeWord)
    {
        unchecked {
            uint256 newVolume = volume(word) + usdc;
            uint256 newTrades = uint256(trades(word)) + 1;
            if (newVolume > type(uint64).max) newVolume = type(uint64).max;
            if (newTrades > type(uint24).max) newTrades = type(uint24).max;
            return _pack(newQuantity, period_, newVolume << VOLUME | newTrades);
        }
    }

    /// @notice The word after complete sets were split or merged, which is not a trade.
    function moved(OutcomeWord word, uint256 newQuantity, uint256 period_) internal pure returns (OutcomeWord) {
        return _pack(newQuantity, period_, OutcomeWord.unwrap(word) & STATISTICS);
    }

    function _pack(uint256 quantity_, uint256 period_, uint256 statistics) private pure returns (OutcomeWord) {
        if (quantity_ > type(uint104).max) revert IMarketHub.AmountTooLarge();
        return OutcomeWord.wrap(period_ << PERIOD | quantity_ << QUANTITY | statistics);
    }
}
