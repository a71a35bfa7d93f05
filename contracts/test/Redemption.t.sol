// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {IMarketHub, Status} from "../src/interfaces/IMarketHub.sol";
import {Fixture} from "./utils/Fixture.sol";

contract RedemptionTest is Fixture {
    /// @dev What the roundings of a handful of trades leave behind, atomic-6.
    uint256 private constant DUST = 5;
    uint256 private constant BOB_PAID = 5000 * USDC;
    uint256 private constant CAROL_PAID = 9000 * USDC;

    address private carol = _named("carol");
    uint64 private id;

    function setUp() public override {
        super.setUp();
        id = _market(2, 100, 1000 * USDC);
        _fund(alice, 1e5 * USDC, address(hub));
        _fund(bob, 1e5 * USDC, address(hub));
    }

    function test_a_winning_token_pays_one_usdc() external {
        uint256 tokens = _buy(alice, id, 0, 100 * USDC);
        _resolve(id, 0);
        uint256 before = usdc.balanceOf(alice);
        vm.prank(stranger);
        vm.assertEq(hub.redeem(alice, id, 0), tokens / 1e12);
        vm.assertEq(usdc.balanceOf(alice) - before, tokens / 1e12);
    }

    function test_a_redemption_is_logged() external {
        uint256 tokens = _buy(alice, id, 0, 100 * USDC);
        _resolve(id, 0);
        vm.expectEmit(address(hub));
        emit IMarketHub.Redeemed(alice, _id(id, 0), uint128(tokens), uint64(tokens / 1e12));
        hub.redeem(alice, id, 0);
    }

    function test_a_losing_token_pays_nothing() external {
        _buy(alice, id, 1, 100 * USDC);
        _resolve(id, 0);
        vm.assertEq(hub.redeemable(alice, id, 1), 0);
        vm.expectRevert(IMarketHub.NothingToRedeem.selector);
        hub.redeem(alice, id, 1);
    }

    function test_nothing_is_redeemed_twice() external {
        _buy(alice, id, 0, 100 * USDC);
        _resolve(id, 0);
        hub.redeem(alice, id, 0);
        vm.expectRevert(IMarketHub.NothingToRedeem.selector);
        hub.redeem(alice, id, 0);
    }

    function test_nothing_is_redeemed_before_the_end() external {
        _buy(alice, id, 0, 100 * USDC);
        vm.expectRevert(IMarketHub.NothingToRedeem.selector);
        hub.redeem(alice, id, 0);
    }

    function test_a_payout_vector_pays_each_outcome_its_part() external {
        uint256 yes = _buy(alice, id, 0, 100 * USDC);
        uint256 no = _buy(bob, id, 1, 60 * USDC);
        uint256[] memory payouts = new uint256[](2);
        (payouts[0], payouts[1]) = (0.75e18, 0.25e18);
        vm.prank(resolver);
        hub.cancelWithPayouts(id, payouts);
        vm.assertEq(hub.redeem(alice, id, 0), yes * 3 / 4 / 1e12);
        vm.assertEq(hub.redeem(bob, id, 1), no / 4 / 1e12);
    }

    function test_one_blocked_holder_does_not_hold_up_the_others() external {
        uint256 yes = _buy(alice, id, 0, 100 * USDC);
        uint256 more = _buy(bob, id, 0, 100 * USDC);
        _resolve(id, 0);
        usdc.blacklist(alice);
        address[] memory holders = new address[](4);
        uint256[] memory ids = new uint256[](4);
        (holders[0], holders[1], holders[2], holders[3]) = (alice, bob, stranger, bob);
        (ids[0], ids[1], ids[2], ids[3]) = (_id(id, 0), _id(id, 0), _id(id, 0), _id(99, 0));
        uint256[] memory paid = hub.redeemBatch(holders, ids);
        vm.assertEq(paid[0], 0);
        vm.assertEq(paid[1], more / 1e12);
        vm.assertEq(paid[2] + paid[3], 0);
        vm.assertEq(_balance(alice, id, 0), yes);
        usdc.unBlacklist(alice);
        vm.assertEq(hub.redeem(alice, id, 0), yes / 1e12);
    }

    function test_a_cancelled_market_refunds_what_was_paid_fees_included() external {
        _buy(alice, id, 0, 100 * USDC);
        _buy(bob, id, 1, 70 * USDC);
        _cancel();
        (uint256[] memory payouts, uint256 scale) = hub.resolution(id);
        vm.assertEq(payouts.length, 0);
        vm.assertEq(scale, WAD);
        vm.assertEq(hub.redeem(alice, id, 0), 100 * USDC);
        vm.assertEq(hub.redeem(bob, id, 1), 70 * USDC);
        // What is left of the funding is the treasury's already, but for dust below one unit of USDC.
        vm.assertLe(usdc.balanceOf(address(hub)), 1);
        vm.assertEq(usdc.balanceOf(treasury), 693_147_180);
    }

    function test_a_refund_is_scaled_down_when_the_pool_is_short() external {
        uint256 scale = _shortPool();
        vm.assertLe(scale, WAD - 1);
        uint256 due = uint256(_basis(bob, id, 0)) * scale / WAD;
        vm.assertEq(hub.redeem(bob, id, 0), due);
        vm.assertEq(_balance(bob, id, 0), 0);
        vm.expectRevert(IMarketHub.NothingToRedeem.selector);
        hub.redeem(bob, id, 0);
    }

    function test_a_top_up_reaches_those_who_redeemed_before_it() external {
        _shortPool();
        uint256 missing = BOB_PAID + CAROL_PAID - usdc.balanceOf(address(hub));
        uint256 first = hub.redeem(bob, id, 0);
        _fund(stranger, 1e5 * USDC, address(hub));
        vm.prank(stranger);
        hub.topUp(id, type(uint64).max);
        vm.assertApproxEqAbs(1e5 * USDC - usdc.balanceOf(stranger), missing, DUST);
        (, uint256 scale) = hub.resolution(id);
        vm.assertEq(scale, WAD);
        vm.assertEq(first + hub.redeem(bob, id, 0), BOB_PAID);
        vm.assertEq(hub.redeem(carol, id, 1), CAROL_PAID);
        vm.assertLe(usdc.balanceOf(address(hub)), DUST);
        vm.assertEq(_basis(bob, id, 0), 0);
    }

    function test_a_top_up_is_for_a_refund_only() external {
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.TransitionInvalid.selector, Status.Open, Status.Cancelled));
        hub.topUp(id, 1);
        _buy(alice, id, 0, USDC);
        _cancel();
        vm.expectRevert(IMarketHub.AmountZero.selector);
        hub.topUp(id, 1);
    }

    function _cancel() private {
        vm.prank(resolver);
        hub.cancel(id);
    }

    /// @dev Alice takes more than the funding out as profit, once on each side, before Bob's and Carol's market is cancelled.
    function _shortPool() private returns (uint256 scale) {
        _buy(alice, id, 0, 500 * USDC);
        _buy(bob, id, 0, BOB_PAID);
        _sellAll(alice, 0);
        _buy(alice, id, 1, 20 * USDC);
        _fund(carol, CAROL_PAID, address(hub));
        _buy(carol, id, 1, CAROL_PAID);
        _sellAll(alice, 1);
        hub.sweepFees(id);
        _cancel();
        (, scale) = hub.resolution(id);
    }

    function _sellAll(address who, uint8 index) private {
        uint256 held = _balance(who, id, index);
        vm.prank(who);
        hub.sell(id, index, held, 0);
    }
}
