// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {FixedPointMathLib as Fp} from "solady/utils/FixedPointMathLib.sol";
import {IMarketHub} from "../interfaces/IMarketHub.sol";

/// @notice The logarithmic market scoring rule in cost-state form.
///
/// A market is `C = b ln sum_j exp(q_j / b)` and its quantities q_j. The price of outcome i is `exp(-v)` with
/// `v = (C - q_i) / b`, so a trade on i needs C and q_i and never looks at the other outcomes.
///
/// All numbers are WAD: b from 1e18 and below 2^88, `slack`, which is `C - q_i`, and quantities below 2^128, USDC below 2^104.
/// Within these bounds no unchecked product below reaches 2^256. Every result is rounded for the pool: what a trader pays or gives is never
/// too low, what a trader receives is never too high. `exp` and `ln` below are off by at most 1.5 and 1.05 wei near their
/// working range, hence a margin of 2 wei at each; where `exp` is large its error is relative and smaller than what the
/// margin at `ln` covers.
library Lmsr {
    uint256 internal constant WAD = 1e18;
    uint256 private constant MARGIN = 2;
    /// @dev A trade moves at most this many b of USDC: keeps every intermediate value in range.
    uint256 private constant MAX_SPAN = 10e18;
    /// @dev No buying at prices below e^-100.
    uint256 private constant MAX_V = 100e18;

    /// @notice Tokens that `cost` buys: `b ln(1 + (e^(cost/b) - 1) e^v)`, down.
    function tokensForCost(uint256 b, uint256 slack, uint256 cost) internal pure returns (uint256) {
        unchecked {
            // b is never zero: the compiler's check would cost 70 gas.
            uint256 v = Fp.rawDiv(slack * WAD, b);
            uint256 span = Fp.rawDiv(cost * WAD, b);
            if (span > MAX_SPAN || v > MAX_V) revert IMarketHub.AmountTooLarge();
            uint256 growth = Fp.zeroFloorSub(_expDown(span), WAD);
            // The one product that can outgrow a word: up to e^10 times e^100.
            uint256 gain = Fp.fullMulDiv(growth, _expDown(v), WAD);
            return b * _lnDown(WAD + gain) / WAD;
        }
    }

    /// @notice Cost of `tokens`: `b ln(1 + e^(tokens/b - v) - e^-v)`, up.
    function costOfTokens(uint256 b, uint256 slack, uint256 tokens) internal pure returns (uint256 cost) {
        unchecked {
            uint256 v = slack * WAD / b;
            uint256 d = _divUp(tokens * WAD, b);
            if (v > MAX_V || d > MAX_V + MAX_SPAN) revert IMarketHub.AmountTooLarge();
            uint256 after_ = _expUp(d - v);
            uint256 before = _expDown(0 - (v + 1));
            cost = _divUp(b * _lnUp(WAD + after_ - before), WAD);
            if (cost > b * MAX_SPAN / WAD) revert IMarketHub.AmountTooLarge();
        }
    }

    /// @notice Proceeds of `tokens`: `-b ln(1 - e^-v (1 - e^(-tokens/b)))`, down. Zero where the price vanishes.
    function proceedsOfTokens(uint256 b, uint256 slack, uint256 tokens) internal pure returns (uint256) {
        unchecked {
            uint256 v = _divUp(slack * WAD, b);
            uint256 d = tokens * WAD / b;
            uint256 decline = Fp.zeroFloorSub(WAD, _expUp(0 - d));
            uint256 loss = _expDown(0 - v) * decline / WAD;
            return b * Fp.zeroFloorSub(_minusLn(WAD - loss), MARGIN) / WAD;
        }
    }

    /// @notice Tokens to give for `proceeds`: `-b ln(1 - (1 - e^(-proceeds/b)) e^v)`, up.
    function tokensForProceeds(uint256 b, uint256 slack, uint256 proceeds) internal pure returns (uint256) {
        unchecked {
            uint256 v = _divUp(slack * WAD, b);
            uint256 span = _divUp(proceeds * WAD, b);
            if (span > MAX_SPAN) revert IMarketHub.AmountTooLarge();
            if (v > MAX_V) revert IMarketHub.LiquidityInsufficient();
            // At most one times e^100: no overflow.
            uint256 loss = _divUp((WAD - _expDown(0 - span)) * _expUp(v), WAD) + MARGIN;
            if (loss >= WAD) revert IMarketHub.LiquidityInsufficient();
            return _divUp(b * (_minusLn(WAD - loss) + MARGIN), WAD);
        }
    }

    /// @notice The price `e^-v`.
    function price(uint256 b, uint256 slack) internal pure returns (uint256) {
        unchecked {
            return uint256(Fp.expWad(-int256(slack * WAD / b)));
        }
    }

    /// @notice The prices of a market with these quantities, summing to exactly 1e18: `e^(q_i/b)` over the sum of all.
    /// @dev Each is rounded down; the outcome with the highest quantity receives what is missing, at most 250 wei.
    function shares(uint256 b, uint256[] memory quantities) internal pure returns (uint256[] memory prices) {
        unchecked {
            uint256 top;
            for (uint256 i = 1; i < quantities.length; ++i) {
                if (quantities[i] > quantities[top]) top = i;
            }
            prices = new uint256[](quantities.length);
            uint256 sum;
            for (uint256 i; i < quantities.length; ++i) {
                prices[i] = price(b, quantities[top] - quantities[i]);
                sum += prices[i];
            }
            uint256 rest = WAD;
            for (uint256 i; i < quantities.length; ++i) {
                prices[i] = prices[i] * WAD / sum;
                rest -= prices[i];
            }
            prices[top] += rest;
        }
    }

    /// @notice C of a market whose least likely outcome opens at `odds` and has no tokens: `b ln(1/odds)`, up.
    /// @dev Twice the margin, so that the quantities of `openingQuantity`, which lose one, stay positive.
    function openingCost(uint256 b, uint256 odds) internal pure returns (uint256) {
        return _divUp(b * (_minusLn(odds) + 2 * MARGIN), WAD);
    }

    /// @notice q_i of an outcome that opens at `odds`: `C - b ln(1/odds)`, down.
    function openingQuantity(uint256 b, uint256 cost, uint256 odds) internal pure returns (uint256) {
        return cost - _divUp(b * (_minusLn(odds) + MARGIN), WAD);
    }

    /// @dev Two's complement: a negative exponent comes as `0 - x`.
    function _expUp(uint256 x) private pure returns (uint256) {
        unchecked {
            return uint256(Fp.expWad(int256(x))) + MARGIN;
        }
    }

    function _expDown(uint256 x) private pure returns (uint256) {
        return Fp.zeroFloorSub(uint256(Fp.expWad(int256(x))), MARGIN);
    }

    /// @dev For arguments of at least one.
    function _lnUp(uint256 x) private pure returns (uint256) {
        unchecked {
            return uint256(Fp.lnWad(int256(x))) + MARGIN;
        }
    }

    /// @dev For arguments of at least one.
    function _lnDown(uint256 x) private pure returns (uint256) {
        return Fp.zeroFloorSub(uint256(Fp.lnWad(int256(x))), MARGIN);
    }

    /// @dev For arguments in (0, 1].
    function _minusLn(uint256 x) private pure returns (uint256) {
        unchecked {
            return uint256(-Fp.lnWad(int256(x)));
        }
    }

    function _divUp(uint256 x, uint256 y) private pure returns (uint256) {
        unchecked {
            return (x + y - 1) / y;
        }
    }
}
