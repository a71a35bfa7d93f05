// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {Fixture} from "./utils/Fixture.sol";

contract TestUSDCTest is Fixture {
    function setUp() public override {
        super.setUp();
        usdc.mint(alice, 100);
    }

    function test_it_has_six_decimals() external view {
        vm.assertEq(usdc.decimals(), 6);
    }

    function test_an_infinite_allowance_is_reduced_too() external {
        vm.prank(alice);
        usdc.approve(bob, type(uint256).max);
        vm.prank(bob);
        usdc.transferFrom(alice, bob, 40);
        vm.assertEq(usdc.allowance(alice, bob), type(uint256).max - 40);
    }

    function test_more_than_the_balance_is_rejected() external {
        vm.prank(alice);
        vm.expectRevert(bytes("ERC20: transfer amount exceeds balance"));
        usdc.transfer(bob, 101);
    }

    function test_more_than_the_allowance_is_rejected() external {
        vm.prank(bob);
        vm.expectRevert(bytes("ERC20: transfer amount exceeds allowance"));
        usdc.transferFrom(alice, bob, 1);
    }

    function test_a_blacklisted_address_cannot_send_receive_or_spend() external {
        vm.prank(alice);
        usdc.approve(bob, 10);
        usdc.blacklist(bob);
        vm.assertEq(usdc.isBlacklisted(bob), true);
        vm.prank(alice);
        vm.expectRevert(bytes("Blacklistable: account is blacklisted"));
        usdc.transfer(bob, 1);
        vm.prank(bob);
        vm.expectRevert(bytes("Blacklistable: account is blacklisted"));
        usdc.transferFrom(alice, stranger, 1);
    }

    function test_blacklisting_keeps_the_balance() external {
        usdc.blacklist(alice);
        vm.assertEq(usdc.balanceOf(alice), 100);
        usdc.unBlacklist(alice);
        vm.prank(alice);
        usdc.transfer(bob, 100);
        vm.assertEq(usdc.balanceOf(bob), 100);
    }

    function test_nothing_moves_while_paused() external {
        usdc.pause();
        vm.prank(alice);
        vm.expectRevert(bytes("Pausable: paused"));
        usdc.transfer(bob, 1);
        usdc.unpause();
        vm.prank(alice);
        usdc.transfer(bob, 1);
    }

    function test_only_minters_mint_and_only_the_owner_appoints_them() external {
        vm.startPrank(alice);
        vm.expectRevert(bytes("FiatToken: caller is not a minter"));
        usdc.mint(alice, 1);
        vm.expectRevert(bytes("Ownable: caller is not the owner"));
        usdc.setMinter(alice, true);
        vm.stopPrank();
        usdc.setMinter(alice, true);
        vm.prank(alice);
        usdc.mint(alice, 1);
        vm.assertEq(usdc.totalSupply(), 1e9 * USDC + 101);
    }

    function test_only_the_owner_can_pause_and_blacklist() external {
        vm.startPrank(alice);
        vm.expectRevert(bytes("Ownable: caller is not the owner"));
        usdc.pause();
        vm.expectRevert(bytes("Ownable: caller is not the owner"));
        usdc.blacklist(bob);
    }

    function test_a_minter_burns_its_own_tokens() external {
        usdc.mint(address(this), 5);
        usdc.burn(5);
        vm.assertEq(usdc.balanceOf(address(this)), 0);
    }
}
