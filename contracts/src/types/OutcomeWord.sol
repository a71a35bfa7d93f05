// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {IMarketHub} from "../interfaces/IMarketHub.sol";

/// @dev The state of one outcome in one word, high to low:
/// quantity (q_i, WAD):104 | basis (atomic-6):64 | volume (atomic-6):64 | trades:24
type OutcomeWord is uint256;

using OutcomeWordLib for OutcomeWord global;

library OutcomeWordLib {
    uint256 private constant QUANTITY = 152;
    uint256 private constant BASIS = 88;
    uint256 private constant VOLUME = 24;

    /// @notice The word of an outcome before its first trade.
    function opening(uint256 quantity_) internal pure returns (OutcomeWord) {
        return _pack(quantity_, 0, 0, 0);
    }

    /// @return q_i in WAD.
    function quantity(OutcomeWord word) internal pure returns (uint256) {
        return OutcomeWord.unwrap(word) >> QUANTITY;
    }

    /// @return What the holders paid for what they hold, USDC atomic-6.
    function basis(OutcomeWord word) internal pure returns (uint64) {
        return uint64(OutcomeWord.unwrap(word) >> BASIS);
    }

    /// @return USDC atomic-6 traded in both directions.
    function volume(OutcomeWord word) internal pure returns (uint64) {
        return uint64(OutcomeWord.unwrap(word) >> VOLUME);
    }

    function trades(OutcomeWord word) internal pure returns (uint32) {
        return uint24(OutcomeWord.unwrap(word));
    }

    function bought(OutcomeWord word, uint256 newQuantity, uint256 usdc) internal pure returns (OutcomeWord) {
        unchecked {
            return _traded(word, newQuantity, basis(word) + usdc, usdc);
        }
    }

    function sold(OutcomeWord word, uint256 newQuantity, uint256 basisOut, uint256 usdc)
        internal
        pure
        returns (OutcomeWord)
    {
        return _traded(word, newQuantity, basis(word) - basisOut, usdc);
    }

    /// @dev The two statistics stop at their maximum: a full counter must never stop a sale.
    function _traded(OutcomeWord word, uint256 newQuantity, uint256 newBasis, uint256 usdc)
        private
        pure
        returns (OutcomeWord)
    {
        unchecked {
            uint256 newVolume = volume(word) + usdc;
            uint256 newTrades = uint256(trades(word)) + 1;
            if (newVolume > type(uint64).max) newVolume = type(uint64).max;
            if (newTrades > type(uint24).max) newTrades = type(uint24).max;
            return _pack(newQuantity, newBasis, newVolume, newTrades);
        }
    }

    function _pack(uint256 quantity_, uint256 basis_, uint256 volume_, uint256 trades_)
        private
        pure
        returns (OutcomeWord)
    {
        if (quantity_ > type(uint104).max || basis_ > type(uint64).max) revert IMarketHub.AmountTooLarge();
        return OutcomeWord.wrap(quantity_ << QUANTITY | basis_ << BASIS | volume_ << VOLUME | trades_);
    }
}
