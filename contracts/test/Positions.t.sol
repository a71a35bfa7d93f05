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

    // --- transfers ---

    function test_a_transfer_moves_tokens_and_is_logged() external {
        vm.expectEmit(address(hub));
        emit IMarketHub.Transfer(alice, alice, bob, id, tokens / 4);
        vm.prank(alice);
        vm.assertEq(hub.transfer(bob, id, tokens / 4), true);
        vm.assertEq(hub.balanceOf(bob, id), tokens / 4);
        vm.assertEq(hub.balanceOf(alice, id), tokens - tokens / 4);
    }

    function test_a_transfer_to_oneself_changes_nothing() external {
        vm.startPrank(alice);
        hub.transfer(alice, id, tokens / 3);
        hub.transfer(alice, id, tokens);
        hub.transferFrom(alice, alice, id, tokens);
        vm.assertEq(hub.balanceOf(alice, id), tokens);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.PositionInsufficient.selector, tokens, tokens + 1));
        hub.transfer(alice, id, tokens + 1);
    }

    function test_a_holder_can_transfer_zero_tokens() external {
        vm.prank(stranger);
        hub.transfer(bob, id, 0);
        vm.assertEq(hub.balanceOf(bob, id), 0);
    }

    function test_a_transfer_above_the_balance_is_rejected() external {
        vm.prank(alice);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.PositionInsufficient.selector, tokens, tokens + 1));
        hub.transfer(bob, id, tokens + 1);
    }

    function test_a_transfer_to_the_zero_address_is_rejected() external {
        vm.startPrank(alice);
        vm.expectRevert(IMarketHub.NotAuthorized.selector);
        hub.transfer(address(0), id, 1);
        vm.expectRevert(IMarketHub.NotAuthorized.selector);
        hub.transferFrom(alice, address(0), id, 1);
    }

    /// @dev In the first edition any stranger could log an id that no client could decode.
    function test_an_id_that_is_not_canonical_is_rejected() external {
        uint256[3] memory ids = [uint256(1) << 200 | id, uint256(1) << 72 | id, type(uint256).max];
        for (uint256 i; i < ids.length; ++i) {
            bytes memory error = abi.encodeWithSelector(IMarketHub.TokenUnknown.selector, ids[i]);
            vm.startPrank(stranger);
            vm.expectRevert(error);
            hub.transfer(stranger, ids[i], 0);
            vm.expectRevert(error);
            hub.transferFrom(stranger, alice, ids[i], 0);
            vm.stopPrank();
            vm.expectRevert(error);
            hub.name(ids[i]);
        }
    }

    function test_an_unknown_outcome_or_market_is_rejected() external {
        vm.startPrank(stranger);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.OutcomeInvalid.selector, 2));
        hub.transfer(bob, _id(market, 2), 0);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.MarketUnknown.selector, 77));
        hub.transfer(bob, _id(77, 0), 0);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.MarketUnknown.selector, 0));
        hub.transfer(bob, 0, 0);
    }

    function test_a_stranger_cannot_transfer_tokens() external {
        vm.startPrank(stranger);
        vm.expectRevert(IMarketHub.NotAuthorized.selector);
        hub.transferFrom(alice, stranger, id, 1);
    }

    /// @dev In the first edition this wrote empty positions into the lists of any account.
    function test_a_third_party_cannot_move_zero_tokens() external {
        vm.prank(stranger);
        vm.expectRevert(IMarketHub.AmountZero.selector);
        hub.transferFrom(alice, bob, id, 0);
        vm.prank(alice);
        hub.setOperator(bob, true);
        vm.prank(bob);
        vm.expectRevert(IMarketHub.AmountZero.selector);
        hub.transferFrom(alice, bob, id, 0);
    }

    function test_positions_of_a_settled_market_cannot_be_transferred() external {
        _resolve(market, 0);
        vm.prank(alice);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.MarketNotTradeable.selector, market, Status.Resolved));
        hub.transfer(bob, id, 1);
    }

    function test_positions_of_a_frozen_market_can_be_transferred() external {
        vm.prank(guardian);
        hub.freeze(market);
        vm.prank(alice);
        hub.transfer(bob, id, tokens);
        vm.assertEq(hub.balanceOf(bob, id), tokens);
    }

    // --- approvals ---

    function test_an_allowance_is_used_up() external {
        vm.prank(alice);
        hub.approve(bob, id, 5);
        vm.startPrank(bob);
        hub.transferFrom(alice, bob, id, 3);
        vm.assertEq(hub.allowance(alice, bob, id), 2);
        vm.expectRevert(IMarketHub.NotAuthorized.selector);
        hub.transferFrom(alice, bob, id, 3);
        hub.transferFrom(alice, bob, id, 2);
        vm.assertEq(hub.allowance(alice, bob, id), 0);
    }

    function test_an_infinite_allowance_is_not_reduced() external {
        vm.prank(alice);
        hub.approve(bob, id, type(uint256).max);
        vm.prank(bob);
        hub.transferFrom(alice, bob, id, 3);
        vm.assertEq(hub.allowance(alice, bob, id), type(uint256).max);
    }

    function test_an_allowance_covers_one_outcome_and_one_spender() external {
        vm.prank(alice);
        hub.approve(bob, _id(market, 1), type(uint256).max);
        vm.prank(bob);
        vm.expectRevert(IMarketHub.NotAuthorized.selector);
        hub.transferFrom(alice, bob, id, 1);
    }

    function test_an_operator_can_transfer_until_it_is_unset() external {
        vm.prank(alice);
        hub.setOperator(bob, true);
        vm.assertEq(hub.isOperator(alice, bob), true);
        vm.prank(bob);
        hub.transferFrom(alice, stranger, id, 7);
        vm.assertEq(hub.balanceOf(stranger, id), 7);
        vm.prank(alice);
        hub.setOperator(bob, false);
        vm.prank(bob);
        vm.expectRevert(IMarketHub.NotAuthorized.selector);
        hub.transferFrom(alice, stranger, id, 1);
    }

    // --- metadata ---

    function test_every_token_has_a_name_a_symbol_and_decimals() external view {
        vm.assertEq(bytes(hub.name(_id(market, 1))), "Foretell market 1 outcome 1");
        vm.assertEq(bytes(hub.symbol(_id(market, 1))), "FT-1-1");
        vm.assertEq(hub.decimals(_id(market, 1)), 18);
        vm.assertEq(
            bytes(hub.tokenURI(id)),
            "data:application/json,{\"name\":\"Foretell market 1 outcome 0\",\"symbol\":\"FT-1-0\",\"decimals\":18}"
        );
        vm.assertEq(bytes(hub.contractURI()), "data:application/json,{\"name\":\"Foretell positions\"}");
    }

    function test_an_unknown_token_has_no_metadata() external {
        bytes memory error = abi.encodeWithSelector(IMarketHub.OutcomeInvalid.selector, 2);
        uint256 unknown = _id(market, 2);
        vm.expectRevert(error);
        hub.symbol(unknown);
        vm.expectRevert(error);
        hub.decimals(unknown);
        vm.expectRevert(error);
        hub.tokenURI(unknown);
    }

    function test_the_hub_lists_its_interfaces() external view {
        vm.assertEq(IERC165(address(hub)).supportsInterface(0x0f632fb3), true); // ERC-6909
        vm.assertEq(IERC165(address(hub)).supportsInterface(0x01ffc9a7), true); // ERC-165
        bytes4 metadata = hub.name.selector ^ hub.symbol.selector ^ hub.decimals.selector;
        vm.assertEq(IERC165(address(hub)).supportsInterface(metadata), true);
        bytes4 content = hub.contractURI.selector ^ hub.tokenURI.selector;
        vm.assertEq(IERC165(address(hub)).supportsInterface(content), true);
        vm.assertEq(IERC165(address(hub)).supportsInterface(0xffffffff), false);
    }

    // --- batched views ---

    function test_many_views_run_in_one_call() external {
        uint64 other = _market(3, 0, 1000 * USDC);
        bytes[] memory calls = new bytes[](3);
        calls[0] = abi.encodeCall(hub.prices, (other));
        calls[1] = abi.encodeCall(hub.balanceOf, (alice, id));
        calls[2] = abi.encodeCall(hub.market, (market));
        bytes[] memory results = hub.viewBatch(calls);
        vm.assertEq(results[0], abi.encode(hub.prices(other)));
        vm.assertEq(abi.decode(results[1], (uint256)), tokens);
        vm.assertEq(results[2], abi.encode(hub.market(market)));
    }

    function test_a_failed_view_reverts_the_batch_and_writes_are_rejected() external {
        bytes[] memory calls = new bytes[](1);
        calls[0] = abi.encodeCall(hub.market, (99));
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.MarketUnknown.selector, 99));
        hub.viewBatch(calls);
        calls[0] = abi.encodeCall(hub.approve, (bob, id, 1));
        vm.expectRevert();
        hub.viewBatch{gas: 1_000_000}(calls);
    }
}
