// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {IMarketHub} from "../src/interfaces/IMarketHub.sol";
import {Fixture} from "./utils/Fixture.sol";

contract RedemptionTest is Fixture {
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

    function test_a_redemption_burns_tokens_and_is_logged() external {
        uint256 tokens = _buy(alice, id, 0, 100 * USDC);
        _resolve(id, 0);
        vm.expectEmit(address(hub));
        emit IMarketHub.Transfer(stranger, alice, address(0), _id(id, 0), tokens);
        vm.expectEmit(address(hub));
        emit IMarketHub.Redeemed(alice, _id(id, 0), uint128(tokens), uint64(tokens / 1e12));
        vm.prank(stranger);
        hub.redeem(alice, id, 0);
        vm.assertEq(_balance(alice, id, 0), 0);
    }

    function test_a_losing_token_pays_nothing() external {
        _buy(alice, id, 1, 100 * USDC);
        _resolve(id, 0);
        vm.assertEq(hub.redeemable(alice, id, 1), 0);
        vm.expectRevert(IMarketHub.NothingToRedeem.selector);
        hub.redeem(alice, id, 1);
    }

    function test_a_position_cannot_be_redeemed_twice() external {
        _buy(alice, id, 0, 100 * USDC);
        _resolve(id, 0);
        hub.redeem(alice, id, 0);
        vm.expectRevert(IMarketHub.NothingToRedeem.selector);
        hub.redeem(alice, id, 0);
    }

    function test_a_position_cannot_be_redeemed_before_the_end() external {
        _buy(alice, id, 0, 100 * USDC);
        vm.expectRevert(IMarketHub.NothingToRedeem.selector);
        hub.redeem(alice, id, 0);
        vm.assertEq(hub.resolution(id).length, 0);
    }

    function test_a_position_cannot_be_redeemed_during_a_proposal() external {
        _deploySystem(0, 1 days);
        id = _market(2, 0, 1000 * USDC);
        vm.prank(alice);
        usdc.approve(address(hub), type(uint256).max);
        _buy(alice, id, 0, 100 * USDC);
        _resolve(id, 0);
        vm.assertEq(hub.redeemable(alice, id, 0), 0);
        vm.expectRevert(IMarketHub.NothingToRedeem.selector);
        hub.redeem(alice, id, 0);
    }

    function test_a_payout_vector_pays_each_outcome_its_share() external {
        uint256 yes = _buy(alice, id, 0, 100 * USDC);
        uint256 no = _buy(bob, id, 1, 60 * USDC);
        uint256[] memory payouts = new uint256[](2);
        (payouts[0], payouts[1]) = (0.75e18, 0.25e18);
        vm.prank(resolver);
        hub.propose(id, payouts);
        vm.assertEq(abi.encode(hub.resolution(id)), abi.encode(payouts));
        vm.assertEq(hub.redeem(alice, id, 0), yes * 3 / 4 / 1e12);
        vm.assertEq(hub.redeem(bob, id, 1), no / 4 / 1e12);
    }

    function test_a_blocked_holder_does_not_delay_others() external {
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

    function test_lists_of_different_length_are_rejected() external {
        vm.expectRevert(IMarketHub.TermsInvalid.selector);
        hub.redeemBatch(new address[](2), new uint256[](1));
    }
}
