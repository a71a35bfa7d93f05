// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {IMarketHub, MarketTerms, OutcomeState, Status} from "../src/interfaces/IMarketHub.sol";
import {Fixture} from "./utils/Fixture.sol";

contract SetsTest is Fixture {
    uint64 private id;

    function setUp() public override {
        super.setUp();
        id = _market(3, 200, 1000 * USDC);
        _fund(alice, 1e6 * USDC, address(hub));
        _fund(bob, 1e6 * USDC, address(hub));
    }

    function test_a_split_makes_one_token_of_each_outcome_and_moves_no_price() external {
        _buy(bob, id, 1, 300 * USDC);
        bytes memory prices = abi.encode(hub.prices(id));
        uint256 cost = hub.market(id).cost;
        uint256 before = usdc.balanceOf(alice);
        vm.expectEmit(address(hub));
        emit IMarketHub.Transfer(alice, address(0), alice, _id(id, 0), 70e18);
        vm.expectEmit(address(hub));
        emit IMarketHub.SetsSplit(alice, id, uint64(70 * USDC), cost + 70e18);
        vm.prank(alice);
        hub.split(id, 70 * USDC);
        for (uint256 i; i < 3; ++i) {
            vm.assertEq(_balance(alice, id, i), 70e18);
            vm.assertEq(hub.outcome(id, uint8(i)).volume, i == 1 ? 300 * USDC : 0);
        }
        vm.assertEq(before - usdc.balanceOf(alice), 70 * USDC);
        vm.assertEq(hub.market(id).cost, cost + 70e18);
        vm.assertEq(abi.encode(hub.prices(id)), prices);
        vm.assertEq(hub.market(id).fees, 6 * USDC);
    }

    function test_a_merge_returns_the_usdc_of_a_split() external {
        bytes memory state = abi.encode(hub.market(id), hub.outcomes(id));
        uint256 before = usdc.balanceOf(alice);
        vm.startPrank(alice);
        hub.split(id, 70 * USDC);
        vm.expectEmit(address(hub));
        emit IMarketHub.Transfer(alice, alice, address(0), _id(id, 0), 70e18);
        vm.expectEmit(address(hub));
        emit IMarketHub.SetsMerged(alice, id, uint64(70 * USDC), hub.market(id).cost - 70e18);
        hub.merge(id, 70 * USDC);
        vm.assertEq(usdc.balanceOf(alice), before);
        vm.assertEq(abi.encode(hub.market(id), hub.outcomes(id)), state);
        vm.assertEq(_balance(alice, id, 2), 0);
    }

    function test_tokens_bought_separately_can_be_merged() external {
        vm.startPrank(alice);
        for (uint8 i; i < 3; ++i) {
            hub.buyTokens(id, i, 10e18, type(uint256).max);
        }
        uint256 before = usdc.balanceOf(alice);
        hub.merge(id, 10 * USDC);
        vm.assertEq(usdc.balanceOf(alice) - before, 10 * USDC);
    }

    function test_a_merge_needs_every_outcome() external {
        vm.startPrank(alice);
        hub.split(id, 10 * USDC);
        hub.transfer(bob, _id(id, 2), 1);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.PositionInsufficient.selector, 10e18 - 1, 10e18));
        hub.merge(id, 10 * USDC);
    }

    function test_sets_of_a_market_with_opening_odds_settle() external {
        MarketTerms memory terms = _terms(3, 0, 1000 * USDC);
        terms.openingOdds = new uint256[](3);
        (terms.openingOdds[0], terms.openingOdds[1], terms.openingOdds[2]) = (0.7e18, 0.2e18, 0.1e18);
        vm.prank(resolver);
        id = hub.createMarket(terms);
        bytes memory prices = abi.encode(hub.prices(id));
        vm.startPrank(alice);
        hub.split(id, 5000 * USDC);
        vm.assertEq(abi.encode(hub.prices(id)), prices);
        hub.sell(id, 0, 5000e18, 0);
        vm.stopPrank();
        for (uint256 i; i < 3; ++i) {
            vm.assertEq(hub.outcome(id, uint8(i)).supply, i == 0 ? 0 : 5000e18);
        }
        _resolve(id, 1);
        vm.assertEq(hub.redeem(alice, id, 1), 5000 * USDC);
    }

    function test_sets_can_be_split_and_merged_only_in_an_open_market() external {
        vm.prank(alice);
        hub.split(id, 10 * USDC);
        vm.prank(guardian);
        hub.freeze(id);
        vm.startPrank(alice);
        bytes memory error = abi.encodeWithSelector(IMarketHub.MarketNotTradeable.selector, id, Status.Frozen);
        vm.expectRevert(error);
        hub.split(id, 1);
        vm.expectRevert(error);
        hub.merge(id, 1);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.MarketUnknown.selector, 9));
        hub.split(9, 1);
    }

    function test_amounts_out_of_range_are_rejected() external {
        vm.startPrank(alice);
        vm.expectRevert(IMarketHub.AmountZero.selector);
        hub.split(id, 0);
        vm.expectRevert(IMarketHub.AmountZero.selector);
        hub.merge(id, 0);
        vm.expectRevert(IMarketHub.AmountTooLarge.selector);
        hub.split(id, uint256(1) << 64);
        vm.expectRevert("ERC20: transfer amount exceeds balance");
        hub.split(id, 2e6 * USDC);
    }

    function test_a_set_is_worth_one_usdc_under_any_payouts() external {
        vm.prank(alice);
        hub.split(id, 30 * USDC);
        uint256[] memory payouts = new uint256[](3);
        (payouts[0], payouts[1], payouts[2]) = (0.5e18, 0.25e18, 0.25e18);
        vm.prank(resolver);
        hub.propose(id, payouts);
        vm.assertEq(hub.redeem(alice, id, 0) + hub.redeem(alice, id, 1) + hub.redeem(alice, id, 2), 30 * USDC);
    }

    function test_250_outcomes_split_and_merge_within_a_transaction() external {
        id = _market(250, 0, 1000 * USDC);
        vm.startPrank(alice);
        hub.split(id, 10 * USDC);
        vm.warp(block.timestamp + 1 days);
        uint256 gas = gasleft();
        hub.split(id, 10 * USDC);
        vm.assertLe(gas - gasleft(), 16_777_216);
        hub.merge(id, 20 * USDC);
        vm.assertEq(_balance(alice, id, 249), 0);
    }

    /// @dev Neither buying the parts and merging them nor splitting and selling them makes a profit.
    function testFuzz_sets_give_no_profit(uint256 seed, uint256 amount, bool splitFirst) external {
        _buy(bob, id, uint8(seed % 3), _bound(seed >> 8, 1000, 3000 * USDC));
        amount = _bound(amount, 1, 500 * USDC);
        uint256 before = usdc.balanceOf(alice);
        vm.startPrank(alice);
        if (splitFirst) {
            hub.split(id, amount);
            for (uint8 i; i < 3; ++i) {
                hub.sell(id, i, amount * 1e12, 0);
            }
        } else {
            for (uint8 i; i < 3; ++i) {
                hub.buyTokens(id, i, amount * 1e12, type(uint256).max);
            }
            hub.merge(id, amount);
        }
        vm.assertLe(usdc.balanceOf(alice), before);
        OutcomeState[] memory all = hub.outcomes(id);
        for (uint256 i; i < 3; ++i) {
            vm.assertLe(all[i].quantity, hub.market(id).cost);
        }
    }
}
