// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {IMarketHub, Status} from "../src/interfaces/IMarketHub.sol";
import {HistoryWord} from "../src/types/HistoryWord.sol";
import {MarketWord, MarketWordLib} from "../src/types/MarketWord.sol";
import {OutcomeWord} from "../src/types/OutcomeWord.sol";
import {TokenId} from "../src/types/TokenId.sol";
import {Test} from "./utils/Test.sol";

/// @notice The layouts of the hub's words, and the limits of their fields.
contract WordsTest is Test {
    uint256 private constant MAX_QUANTITY = type(uint104).max;

    function testFuzz_an_outcome_word_round_trips(
        uint104 quantity,
        uint32 period,
        uint32 usdc,
        uint8 count,
        uint104 next,
        uint32 later
    ) external pure {
        OutcomeWord word;
        for (uint256 i; i <= count; ++i) {
            word = word.traded(quantity, period, usdc);
        }
        vm.assertEq(word.quantity(), quantity);
        vm.assertEq(word.period(), period);
        vm.assertEq(word.volume(), uint256(usdc) * (uint256(count) + 1));
        vm.assertEq(word.trades(), uint256(count) + 1);
        OutcomeWord after_ = word.moved(next, later);
        vm.assertEq(after_.quantity(), next);
        vm.assertEq(after_.period(), later);
        vm.assertEq(after_.volume(), word.volume());
        vm.assertEq(after_.trades(), word.trades());
        vm.assertEq(after_.isUntouched(), false);
    }

    function test_a_full_counter_does_not_stop_a_trade() external pure {
        OutcomeWord full = OutcomeWord.wrap(uint256(type(uint64).max) << 24 | type(uint24).max);
        OutcomeWord word = full.traded(5, 7, 1);
        vm.assertEq(word.volume(), type(uint64).max);
        vm.assertEq(word.trades(), type(uint24).max);
        vm.assertEq(word.quantity(), 5);
        vm.assertEq(word.period(), 7);
        word = OutcomeWord.wrap(uint256(type(uint64).max - 1) << 24).traded(5, 7, type(uint64).max);
        vm.assertEq(word.volume(), type(uint64).max);
        vm.assertEq(word.trades(), 1);
    }

    function test_a_quantity_beyond_its_field_is_rejected() external {
        this.traded(MAX_QUANTITY);
        vm.expectRevert(IMarketHub.AmountTooLarge.selector);
        this.traded(MAX_QUANTITY + 1);
        vm.expectRevert(IMarketHub.AmountTooLarge.selector);
        this.moved(MAX_QUANTITY + 1);
    }

    function testFuzz_a_history_word_holds_the_last_two_periods(
        uint104 first,
        uint104 second,
        uint104 third,
        uint32 period,
        uint32 later
    ) external pure {
        HistoryWord word = HistoryWord.wrap(0).pushed(first, 0).pushed(second, period);
        vm.assertEq(word.latest(), second);
        vm.assertEq(word.earlier(), first);
        vm.assertEq(word.earlierPeriod(), period);
        word = word.pushed(third, later);
        vm.assertEq(word.latest(), third);
        vm.assertEq(word.earlier(), second);
        vm.assertEq(word.earlierPeriod(), later);
    }

    function testFuzz_a_market_word_round_trips(
        uint104 cost,
        uint48 liquidity,
        uint32 closeTime,
        uint8 outcomes,
        uint8 status,
        uint16 feeBps,
        uint104 after_,
        uint40 fee
    ) external pure {
        Status which = Status(status % 6);
        feeBps %= 1001;
        MarketWord word = MarketWordLib.pack(cost, liquidity, closeTime, outcomes, which, feeBps);
        for (uint256 i; i < 2; ++i) {
            vm.assertEq(word.cost(), i == 0 ? cost : after_);
            vm.assertEq(word.fees(), i == 0 ? 0 : fee);
            vm.assertEq(word.liquidity(), liquidity);
            vm.assertEq(word.closeTime(), closeTime);
            vm.assertEq(word.outcomes(), outcomes);
            vm.assertEq(uint256(word.storedStatus()), uint256(which));
            vm.assertEq(word.feeBps(), feeBps);
            word = word.traded(after_, fee);
        }
        vm.assertEq(word.fees(), 2 * uint256(fee));
        vm.assertEq(word.withoutFees().fees(), 0);
        vm.assertEq(word.withoutFees().cost(), after_);
        vm.assertEq(uint256(word.withStatus(Status.Cancelled).storedStatus()), uint256(Status.Cancelled));
        vm.assertEq(word.withStatus(Status.Cancelled).feeBps(), feeBps);
    }

    /// @dev Anyone can empty the counter with `sweepFees`, so it delays a trade and never prevents it.
    function test_fees_and_costs_beyond_their_fields_are_rejected() external {
        this.charged(type(uint48).max - 1, 1, type(uint104).max);
        vm.expectRevert(IMarketHub.AmountTooLarge.selector);
        this.charged(type(uint48).max, 1, 0);
        vm.expectRevert(IMarketHub.AmountTooLarge.selector);
        this.charged(0, 0, uint256(type(uint104).max) + 1);
    }

    function testFuzz_an_id_is_canonical_without_upper_bits(uint64 marketId, uint8 outcome, uint256 upper)
        external
        pure
    {
        uint256 id = TokenId.make(marketId, outcome);
        (bool isCanonical, uint64 market, uint8 index) = TokenId.split(id);
        vm.assertEq(isCanonical, true);
        vm.assertEq(market, marketId);
        vm.assertEq(index, outcome);
        (isCanonical,,) = TokenId.split(id | (upper | 1) << 72);
        vm.assertEq(isCanonical, false);
    }

    function traded(uint256 quantity) external pure {
        OutcomeWord.wrap(0).traded(quantity, 0, 0);
    }

    function moved(uint256 quantity) external pure {
        OutcomeWord.wrap(0).moved(quantity, 0);
    }

    function charged(uint256 fees, uint256 fee, uint256 cost) external pure {
        MarketWordLib.pack(0, 0, 0, 2, Status.Open, 0).traded(0, fees).traded(cost, fee);
    }
}
