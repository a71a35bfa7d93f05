// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {IERC165} from "@openzeppelin/contracts/utils/introspection/IERC165.sol";
import {IMarketHub, Status} from "../src/interfaces/IMarketHub.sol";
import {Fixture} from "./utils/Fixture.sol";

contract PositionsTest is Fixture {
    uint64 private market;
    uint256 private id;
    uint256 private tokens;

    function setUp() public override {
        super.setUp();
        market = _market(2, 0, 1000 * USDC);
        id = _id(market, 0);
        _fund(alice, 1000 * USDC, address(hub));
        tokens = _buy(alice, market, 0, 100 * USDC);
    }

    function test_a_transfer_takes_its_share_of_the_basis_along() external {
        vm.prank(alice);
        vm.assertEq(hub.transfer(bob, id, tokens / 4), true);
        vm.assertEq(hub.balanceOf(bob, id), tokens / 4);
        vm.assertEq(_basis(bob, market, 0) + _basis(alice, market, 0), 100 * USDC);
        vm.assertApproxEqAbs(_basis(bob, market, 0), 25 * USDC, 1);
    }

    function test_a_transfer_to_oneself_changes_nothing() external {
        vm.prank(alice);
        hub.transfer(alice, id, tokens / 3);
        vm.assertEq(hub.balanceOf(alice, id), tokens);
        vm.assertEq(_basis(alice, market, 0), 100 * USDC);
    }

    function test_nobody_transfers_what_they_do_not_hold() external {
        vm.prank(alice);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.PositionInsufficient.selector, tokens, tokens + 1));
        hub.transfer(bob, id, tokens + 1);
    }

    function test_a_stranger_transfers_nothing() external {
        vm.prank(stranger);
        vm.expectRevert(IMarketHub.NotAuthorized.selector);
        hub.transferFrom(alice, stranger, id, 1);
    }

    function test_an_allowance_is_used_up() external {
        vm.prank(alice);
        hub.approve(bob, id, 5);
        vm.startPrank(bob);
        hub.transferFrom(alice, bob, id, 3);
        vm.assertEq(hub.allowance(alice, bob, id), 2);
        vm.expectRevert(IMarketHub.NotAuthorized.selector);
        hub.transferFrom(alice, bob, id, 3);
    }

    function test_an_operator_transfers_until_unset() external {
        vm.prank(alice);
        hub.setOperator(bob, true);
        vm.prank(bob);
        hub.transferFrom(alice, stranger, id, 7);
        vm.assertEq(hub.balanceOf(stranger, id), 7);
        vm.prank(alice);
        hub.setOperator(bob, false);
        vm.prank(bob);
        vm.expectRevert(IMarketHub.NotAuthorized.selector);
        hub.transferFrom(alice, stranger, id, 1);
    }

    function test_positions_of_a_settled_market_are_not_transferred() external {
        _resolve(market, 0);
        vm.prank(alice);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.MarketNotTradeable.selector, market, Status.Resolved));
        hub.transfer(bob, id, 1);
    }

    function test_the_hub_says_that_it_is_erc6909() external view {
        vm.assertEq(IERC165(address(hub)).supportsInterface(0x0f632fb3), true);
        vm.assertEq(IERC165(address(hub)).supportsInterface(0x01ffc9a7), true);
        vm.assertEq(IERC165(address(hub)).supportsInterface(0xffffffff), false);
    }
}
