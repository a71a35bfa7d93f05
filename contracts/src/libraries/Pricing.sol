// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {Fill, IMarketHub, Side} from "../interfaces/IMarketHub.sol";
import {MarketWord} from "../types/MarketWord.sol";
import {Lmsr} from "./Lmsr.sol";

/// @notice From what a trader asks to what moves: the curve of `Lmsr` in USDC atomic-6, with the fee.
///
/// The pool's cash is at least C. Where the curve's own figure has more digits than USDC, the trader's is rounded for the
/// pool, C moves by the exact one, and the dust stays behind. So C never drifts away from its quantities.
library Pricing {
    uint256 internal constant BPS = 1e4;
    /// @dev WAD per USDC atomic-6.
    uint256 internal constant SCALE = 1e12;

    /// @param usdc Used by the sides that fix the USDC, atomic-6.
    /// @param tokens Used by the sides that fix the tokens, WAD.
    function fill(MarketWord market, uint256 quantity, Side side, uint256 usdc, uint256 tokens)
        internal
        pure
        returns (Fill memory f)
    {
        uint256 b = market.liquidityWad();
        uint256 cost = market.cost();
        uint256 slack = cost - quantity;
        uint256 feeBps = market.feeBps();
        f.costBefore = cost;
        f.quantityBefore = quantity;

        bool exactUsdc = side == Side.BuyForUsdc || side == Side.SellForUsdc;
        uint256 given = exactUsdc ? usdc : tokens;
        if (given == 0) revert IMarketHub.AmountZero();
        if (given > (exactUsdc ? type(uint64).max : type(uint128).max)) revert IMarketHub.AmountTooLarge();

        // USDC is below 2^64, tokens below 2^128, and a sale never moves more than the tokens sold, which the line above the
        // subtraction holds below the quantity, and so below C.
        unchecked {
            if (side == Side.BuyForUsdc) {
                f.usdc = usdc;
                f.fee = _ceil(usdc * feeBps, BPS);
                uint256 moved = (usdc - f.fee) * SCALE;
                f.tokens = Lmsr.tokensForCost(b, slack, moved);
                if (f.tokens == 0) revert IMarketHub.AmountZero();
                f.costAfter = cost + moved;
                f.quantityAfter = quantity + f.tokens;
            } else if (side == Side.BuyTokens) {
                uint256 moved = Lmsr.costOfTokens(b, slack, tokens);
                uint256 net = _ceil(moved, SCALE);
                f.tokens = tokens;
                f.fee = _ceil(net * feeBps, BPS - feeBps);
                f.usdc = net + f.fee;
                f.costAfter = cost + moved;
                f.quantityAfter = quantity + tokens;
            } else {
                uint256 moved;
                if (side == Side.SellForUsdc) {
                    f.usdc = usdc;
                    f.fee = _ceil(usdc * feeBps, BPS - feeBps);
                    moved = (usdc + f.fee) * SCALE;
                    f.tokens = Lmsr.tokensForProceeds(b, slack, moved);
                } else {
                    moved = Lmsr.proceedsOfTokens(b, slack, tokens);
                    uint256 gross = moved / SCALE;
                    f.tokens = tokens;
                    f.fee = _ceil(gross * feeBps, BPS);
                    f.usdc = gross - f.fee;
                }
                if (f.tokens > quantity) revert IMarketHub.PositionInsufficient(quantity, f.tokens);
                f.costAfter = cost - moved;
                f.quantityAfter = quantity - f.tokens;
            }
        }
        // Follows from the roundings; kept because every payout rests on it.
        if (f.quantityAfter > f.costAfter) revert IMarketHub.LiquidityInsufficient();
    }

    /// @notice Reverts if the fill is worse than the trader's bound, the amount that `side` does not fix.
    function checkBound(Fill memory f, Side side, uint256 usdc, uint256 tokens) internal pure {
        if (side == Side.BuyForUsdc) {
            if (f.tokens < tokens) revert IMarketHub.SlippageExceeded(f.tokens, tokens);
        } else if (side == Side.BuyTokens) {
            if (f.usdc > usdc) revert IMarketHub.SlippageExceeded(f.usdc, usdc);
        } else if (side == Side.SellForUsdc) {
            if (f.tokens > tokens) revert IMarketHub.SlippageExceeded(f.tokens, tokens);
        } else {
            if (f.usdc < usdc) revert IMarketHub.SlippageExceeded(f.usdc, usdc);
        }
    }

    function isBuy(Side side) internal pure returns (bool) {
        return side <= Side.BuyTokens;
    }

    function _ceil(uint256 a, uint256 b) private pure returns (uint256) {
        unchecked {
            return (a + b - 1) / b;
        }
    }
}
