// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {Lmsr} from "../src/libraries/Lmsr.sol";
import {IMarketHub} from "../src/interfaces/IMarketHub.sol";
import {Test} from "./utils/Test.sol";

/// @notice The four formulas, over the whole range in which they are used.
contract LmsrTest is Test {
    uint256 private constant WAD = 1e18;
    uint256 private constant B = 1000e18;
    /// @dev C - q of a market with two equal outcomes: v = ln 2.
    uint256 private constant EVEN = 693147180559945309417;
    uint256 private constant TOKENS_FOR_COST = 190902828926381891978;
    uint256 private constant COST_OF_TOKENS = 51249479513625585412;
    uint256 private constant PROCEEDS_OF_TOKENS = 48750520486374414587;
    uint256 private constant TOKENS_FOR_PROCEEDS = 211122548861282845788;

    function test_values_equal_high_precision_arithmetic() external pure {
        vm.assertApproxEqAbs(Lmsr.tokensForCost(B, EVEN, 100e18), TOKENS_FOR_COST, 1e5);
        vm.assertApproxEqAbs(Lmsr.costOfTokens(B, EVEN, 100e18), COST_OF_TOKENS, 1e5);
        vm.assertApproxEqAbs(Lmsr.proceedsOfTokens(B, EVEN, 100e18), PROCEEDS_OF_TOKENS, 1e5);
        vm.assertApproxEqAbs(Lmsr.tokensForProceeds(B, EVEN, 100e18), TOKENS_FOR_PROCEEDS, 1e5);
    }

    function test_values_are_rounded_for_the_pool() external pure {
        vm.assertLe(Lmsr.tokensForCost(B, EVEN, 100e18), TOKENS_FOR_COST);
        vm.assertLe(COST_OF_TOKENS, Lmsr.costOfTokens(B, EVEN, 100e18));
        vm.assertLe(Lmsr.proceedsOfTokens(B, EVEN, 100e18), PROCEEDS_OF_TOKENS);
        vm.assertLe(TOKENS_FOR_PROCEEDS, Lmsr.tokensForProceeds(B, EVEN, 100e18));
    }

    function test_every_result_keeps_its_margin() external pure {
        // ln 2, up to the wei. The margin of the opening cost is 4 wei for b = 1, that of a quantity is 2.
        uint256 ln2 = 693147180559945310;
        uint256 cost = Lmsr.openingCost(WAD, 0.5e18);
        vm.assertEq(cost, ln2 + 4);
        vm.assertEq(Lmsr.openingQuantity(WAD, cost, 0.5e18), cost - ln2 - 2);
    }

    function test_price_in_an_even_market_is_one_half() external pure {
        vm.assertApproxEqAbs(Lmsr.price(B, EVEN), 0.5e18, 2);
    }

    function test_selling_at_a_vanishing_price_pays_nothing() external pure {
        vm.assertEq(Lmsr.proceedsOfTokens(B, 45 * B, 1e18), 0);
    }

    function test_the_curve_never_pays_more_than_it_holds() external {
        vm.expectRevert(IMarketHub.LiquidityInsufficient.selector);
        this.tokensForProceeds(B, EVEN, 694e18);
    }

    function test_a_trade_of_more_than_ten_b_is_rejected() external {
        vm.expectRevert(IMarketHub.AmountTooLarge.selector);
        this.tokensForCost(B, EVEN, 10 * B + 1e12);
    }

    function test_tokens_worth_more_than_ten_b_are_rejected() external {
        vm.expectRevert(IMarketHub.AmountTooLarge.selector);
        this.costOfTokens(B, EVEN, 11 * B);
    }

    function testFuzz_buying_for_usdc_and_selling_back_never_profits(uint256 b, uint256 v, uint256 cost) external pure {
        (b, v, cost) = _range(b, v, cost);
        uint256 slack = b * v / WAD;
        uint256 tokens = Lmsr.tokensForCost(b, slack, cost);
        vm.assertLe(tokens, slack + cost, "the quantity never passes C");
        vm.assertLe(Lmsr.proceedsOfTokens(b, slack + cost - tokens, tokens), cost);
    }

    function testFuzz_buying_tokens_and_selling_back_never_profits(uint256 b, uint256 v, uint256 tokens) external pure {
        (b, v, tokens) = _range(b, v, tokens);
        uint256 slack = b * v / WAD;
        uint256 cost = Lmsr.costOfTokens(b, slack, tokens);
        vm.assertLe(tokens, slack + cost, "the quantity never passes C");
        vm.assertLe(Lmsr.proceedsOfTokens(b, slack + cost - tokens, tokens), cost);
    }

    function testFuzz_selling_and_buying_back_never_profits(uint256 b, uint256 v, uint256 tokens) external pure {
        (b, v, tokens) = _range(b, v, tokens);
        uint256 slack = b * v / WAD;
        uint256 proceeds = Lmsr.proceedsOfTokens(b, slack, tokens);
        vm.assertLe(proceeds, tokens);
        if (proceeds != 0 && proceeds <= 10 * b && slack + tokens - proceeds <= 100 * b) {
            vm.assertLe(Lmsr.tokensForCost(b, slack + tokens - proceeds, proceeds), tokens);
        }
    }

    function testFuzz_tokens_for_an_exact_sale_are_worth_it(uint256 b, uint256 v, uint256 proceeds) external pure {
        (b, v, proceeds) = _range(b, v, proceeds);
        v = _bound(v, 0, 30e18);
        uint256 slack = b * v / WAD;
        // At most half of what the curve could pay: -b ln(1 - price).
        uint256 price = Lmsr.price(b, slack);
        proceeds = _bound(proceeds, 1, 1 + b / 2 * price / WAD);
        uint256 tokens = Lmsr.tokensForProceeds(b, slack, proceeds);
        vm.assertLe(proceeds, tokens);
        uint256 worth = Lmsr.proceedsOfTokens(b, slack, tokens);
        // Selling those very tokens pays the same within the margins, which weigh the more the lower the price.
        vm.assertLe(proceeds, worth + b / 1e16 + 1e3);
    }

    function testFuzz_splitting_a_buy_gains_nothing(uint256 b, uint256 v, uint256 cost, uint256 part) external pure {
        (b, v, cost) = _range(b, v, cost);
        part = _bound(part, 0, cost);
        uint256 slack = b * v / WAD;
        uint256 whole = Lmsr.tokensForCost(b, slack, cost);
        uint256 first = Lmsr.tokensForCost(b, slack, part);
        uint256 rest = slack + part - first;
        uint256 second = rest <= 100 * b ? Lmsr.tokensForCost(b, rest, cost - part) : 0;
        // One rounding against the buyer instead of two: a few wei per b, more where e^v magnifies them.
        uint256 margin = (b / WAD + 1) * 8 + whole / 1e6;
        vm.assertLe(first + second, whole + margin);
    }

    function testFuzz_more_usdc_never_buys_fewer_tokens(uint256 b, uint256 v, uint256 cost, uint256 more)
        external
        pure
    {
        (b, v, cost) = _range(b, v, cost);
        more = _bound(more, cost, 10 * b);
        uint256 slack = b * v / WAD;
        vm.assertLe(Lmsr.tokensForCost(b, slack, cost), Lmsr.tokensForCost(b, slack, more));
    }

    function tokensForProceeds(uint256 b, uint256 slack, uint256 proceeds) external pure returns (uint256) {
        return Lmsr.tokensForProceeds(b, slack, proceeds);
    }

    function tokensForCost(uint256 b, uint256 slack, uint256 cost) external pure returns (uint256) {
        return Lmsr.tokensForCost(b, slack, cost);
    }

    function costOfTokens(uint256 b, uint256 slack, uint256 tokens) external pure returns (uint256) {
        return Lmsr.costOfTokens(b, slack, tokens);
    }

    /// @dev b from one USDC to the largest, v up to 60, amounts up to 9 b; both ends on a logarithmic scale.
    function _range(uint256 b, uint256 v, uint256 amount) private pure returns (uint256, uint256, uint256) {
        b = _bound(b % (1 << _bound(b >> 128, 1, 48)), 1e6, (1 << 48) - 1) * 1e12;
        v = _bound(v, 0, 60e18);
        amount = _bound(amount % (1 << _bound(amount >> 128, 1, 100)), 1, 9 * b);
        return (b, v, amount);
    }
}
