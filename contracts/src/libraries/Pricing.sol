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

    /// @notice Computes what a trade moves, and reverts if that is worse than the trader's bound.
    /// @param f Set to the amounts of the trade. An argument, because memory for a second `Fill` would cost 200 gas.
    /// @param usdc atomic-6: the exact amount if `side` fixes the USDC, else the bound.
    /// @param tokens WAD: the exact amount if `side` fixes the tokens, else the bound.
    function fill(Fill memory f, MarketWord market, uint256 quantity, Side side, uint256 usdc, uint256 tokens)
        internal
        pure
    {
        uint256 b = market.liquidityWad();
        uint256 cost = market.cost();
        uint256 slack = cost - quantity;
        uint256 feeBps = market.feeBps();
        f.costBefore = cost;
        f.quantityBefore = quantity;

        // USDC is below 2^64, tokens below 2^128, and a sale never moves more than the tokens sold, which `_checkSold` holds
        // below the quantity, and so below C.
        unchecked {
            if (side == Side.BuyForUsdc) {
                _checkAmount(usdc, type(uint64).max);
                uint256 fee = _ceil(usdc * feeBps, BPS);
                uint256 moved = (usdc - fee) * SCALE;
                uint256 bought = Lmsr.tokensForCost(b, slack, moved);
                if (bought == 0) revert IMarketHub.AmountZero();
                if (bought < tokens) revert IMarketHub.SlippageExceeded(bought, tokens);
                f.usdc = usdc;
                f.fee = fee;
                f.tokens = bought;
                f.costAfter = cost + moved;
                f.quantityAfter = quantity + bought;
            } else if (side == Side.BuyTokens) {
                _checkAmount(tokens, type(uint128).max);
                uint256 moved = Lmsr.costOfTokens(b, slack, tokens);
                uint256 net = _ceil(moved, SCALE);
                f.tokens = tokens;
                f.fee = _ceil(net * feeBps, BPS - feeBps);
                f.usdc = net + f.fee;
                if (f.usdc > usdc) revert IMarketHub.SlippageExceeded(f.usdc, usdc);
                f.costAfter = cost + moved;
                f.quantityAfter = quantity + tokens;
            } else {
                uint256 moved;
                if (side == Side.SellForUsdc) {
                    _checkAmount(usdc, type(uint64).max);
                    f.usdc = usdc;
                    f.fee = _ceil(usdc * feeBps, BPS - feeBps);
                    moved = (usdc + f.fee) * SCALE;
                    f.tokens = Lmsr.tokensForProceeds(b, slack, moved);
                    _checkSold(f.tokens, quantity);
                    if (f.tokens > tokens) revert IMarketHub.SlippageExceeded(f.tokens, tokens);
                } else {
                    _checkAmount(tokens, type(uint128).max);
                    _checkSold(tokens, quantity);
                    moved = Lmsr.proceedsOfTokens(b, slack, tokens);
                    uint256 gross = moved / SCALE;
                    f.tokens = tokens;
                    f.fee = _ceil(gross * feeBps, BPS);
                    f.usdc = gross - f.fee;
                    if (f.usdc < usdc) revert IMarketHub.SlippageExceeded(f.usdc, usdc);
                }
                f.costAfter = cost - moved;
                f.quantityAfter = quantity - f.tokens;
            }
        }
        // Follows from the roundings; kept because every payout rests on it.
        if (f.quantityAfter > f.costAfter) revert IMarketHub.LiquidityInsufficient();
    }

    /// @notice Like `fill`, for a trader without a bound.
    /// @param amount USDC or tokens, whichever `side` fixes.
    function quote(Fill memory f, MarketWord market, uint256 quantity, Side side, uint256 amount) internal pure {
        bool isUsdc = side == Side.BuyForUsdc || side == Side.SellForUsdc;
        bool isMaximum = side == Side.BuyTokens || side == Side.SellForUsdc;
        uint256 bound = isMaximum ? type(uint256).max : 0;
        fill(f, market, quantity, side, isUsdc ? amount : bound, isUsdc ? bound : amount);
    }

    function isBuy(Side side) internal pure returns (bool) {
        return side <= Side.BuyTokens;
    }

    function _checkAmount(uint256 amount, uint256 max) private pure {
        if (amount == 0) revert IMarketHub.AmountZero();
        if (amount > max) revert IMarketHub.AmountTooLarge();
    }

    function _checkSold(uint256 tokens, uint256 quantity) private pure {
        if (tokens > quantity) revert IMarketHub.PositionInsufficient(quantity, tokens);
    }

    function _ceil(uint256 a, uint256 b) private pure returns (uint256) {
        unchecked {
            return (a + b - 1) / b;
        }
    }
}
