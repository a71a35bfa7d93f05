// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {IMarketHub, Status} from "../interfaces/IMarketHub.sol";

/// @dev The hot state of a market in one word, high to low:
/// cost (C, WAD):104 | liquidity (b, atomic-6):48 | closeTime:32 | fees (atomic-6):48 | outcomes:8 | status:4 | feeBps:12
type MarketWord is uint256;

using MarketWordLib for MarketWord global;

library MarketWordLib {
    uint256 private constant COST = 152;
    uint256 private constant LIQUIDITY = 104;
    uint256 private constant CLOSE_TIME = 72;
    uint256 private constant FEES = 24;
    uint256 private constant OUTCOMES = 16;
    uint256 private constant STATUS = 12;
    uint256 private constant KEPT_BY_TRADE = (1 << COST) - (1 << CLOSE_TIME) | (1 << FEES) - 1;

    function pack(uint256 cost_, uint48 liquidity_, uint32 closeTime_, uint8 outcomes_, Status status_, uint16 feeBps_)
        internal
        pure
        returns (MarketWord)
    {
        if (cost_ > type(uint104).max) revert IMarketHub.AmountTooLarge();
        return MarketWord.wrap(
            cost_ << COST | uint256(liquidity_) << LIQUIDITY | uint256(closeTime_) << CLOSE_TIME | uint256(outcomes_)
                << OUTCOMES | uint256(status_) << STATUS | feeBps_
        );
    }

    /// @return C in WAD.
    function cost(MarketWord word) internal pure returns (uint256) {
        return MarketWord.unwrap(word) >> COST;
    }

    /// @return b in USDC atomic-6.
    function liquidity(MarketWord word) internal pure returns (uint64) {
        return uint48(MarketWord.unwrap(word) >> LIQUIDITY);
    }

    /// @return b in WAD.
    function liquidityWad(MarketWord word) internal pure returns (uint256) {
        unchecked {
            return uint256(uint48(MarketWord.unwrap(word) >> LIQUIDITY)) * 1e12;
        }
    }

    function closeTime(MarketWord word) internal pure returns (uint32) {
        return uint32(MarketWord.unwrap(word) >> CLOSE_TIME);
    }

    /// @return USDC atomic-6 not yet swept.
    function fees(MarketWord word) internal pure returns (uint64) {
        return uint48(MarketWord.unwrap(word) >> FEES);
    }

    function outcomes(MarketWord word) internal pure returns (uint8) {
        return uint8(MarketWord.unwrap(word) >> OUTCOMES);
    }

    function feeBps(MarketWord word) internal pure returns (uint16) {
        return uint16(MarketWord.unwrap(word) & 0xfff);
    }

    /// @notice The status as written; `current` is the one that counts.
    function storedStatus(MarketWord word) internal pure returns (Status status) {
        // Spares the range check: only a `Status` was ever written there.
        assembly ("memory-safe") {
            status := and(shr(STATUS, word), 0xf)
        }
    }

    /// @notice An open market past its close time is frozen without anyone's doing.
    function current(MarketWord word) internal view returns (Status status) {
        status = storedStatus(word);
        if (status == Status.Open && block.timestamp >= closeTime(word)) status = Status.Frozen;
    }

    /// @notice Whether `current` is `Open`.
    function isOpen(MarketWord word) internal view returns (bool) {
        return MarketWord.unwrap(word) >> STATUS & 0xf == uint256(Status.Open) && block.timestamp < closeTime(word);
    }

    function withStatus(MarketWord word, Status status) internal pure returns (MarketWord) {
        return MarketWord.wrap(MarketWord.unwrap(word) & ~(uint256(0xf) << STATUS) | uint256(status) << STATUS);
    }

    function withoutFees(MarketWord word) internal pure returns (MarketWord) {
        return MarketWord.wrap(MarketWord.unwrap(word) & ~(uint256(type(uint48).max) << FEES));
    }

    /// @notice The market after a trade: the new C, and the fee on top of those before.
    function traded(MarketWord word, uint256 newCost, uint256 fee) internal pure returns (MarketWord) {
        unchecked {
            uint256 newFees = fees(word) + fee;
            if (newCost > type(uint104).max || newFees > type(uint48).max) revert IMarketHub.AmountTooLarge();
            return MarketWord.wrap(MarketWord.unwrap(word) & KEPT_BY_TRADE | newCost << COST | newFees << FEES);
        }
    }
}
