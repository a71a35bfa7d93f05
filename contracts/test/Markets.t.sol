// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {IMarketHub, MarketTerms, Role, Side, Status} from "../src/interfaces/IMarketHub.sol";
import {Fixture} from "./utils/Fixture.sol";

contract MarketsTest is Fixture {
    uint32 private constant DELAY = 1 hours;
    uint32 private constant WINDOW = 2 hours;

    function setUp() public override {
        super.setUp();
        _deploySystem(DELAY, WINDOW);
        _fund(alice, 1e6 * USDC, address(hub));
    }

    // --- creation ---

    function test_creation_takes_b_ln_n_as_funding() external {
        uint256 before = usdc.balanceOf(resolver);
        _market(2, 0, 1000 * USDC);
        vm.assertEq(before - usdc.balanceOf(resolver), 693_147_181); // 1000 ln 2, up
    }

    function test_creation_with_odds_takes_b_ln_of_the_longest() external {
        MarketTerms memory terms = _terms(3, 0, 1000 * USDC);
        terms.openingOdds = _odds(0.5e18, 0.3e18, 0.2e18);
        uint256 before = usdc.balanceOf(resolver);
        vm.prank(resolver);
        uint64 id = hub.createMarket(terms);
        vm.assertEq(before - usdc.balanceOf(resolver), 1_609_437_913); // 1000 ln 5, up
        uint256[] memory prices = hub.prices(id);
        vm.assertApproxEqAbs(prices[0], 0.5e18, 1e3);
        vm.assertApproxEqAbs(prices[1], 0.3e18, 1e3);
        vm.assertApproxEqAbs(prices[2], 0.2e18, 1e3);
        vm.assertEq(hub.outcome(id, 0).supply, 0);
    }

    function test_an_even_market_begins_with_equal_prices_and_no_tokens() external {
        uint64 id = _market(4, 0, 1000 * USDC);
        for (uint256 i; i < 4; ++i) {
            vm.assertApproxEqAbs(hub.prices(id)[i], 0.25e18, 100);
            vm.assertEq(hub.outcomes(id)[i].quantity, 0);
        }
    }

    function test_a_market_can_have_250_outcomes() external {
        uint64 id = _market(250, 0, 1000 * USDC);
        vm.assertEq(hub.prices(id).length, 250);
    }

    function test_only_the_resolver_creates() external {
        MarketTerms memory terms = _terms(2, 0, USDC);
        vm.prank(guardian);
        vm.expectRevert(IMarketHub.NotAuthorized.selector);
        hub.createMarket(terms);
    }

    function test_a_second_market_under_the_same_reference_is_refused() external {
        MarketTerms memory terms = _terms(2, 0, USDC);
        vm.startPrank(resolver);
        uint64 id = hub.createMarket(terms);
        vm.assertEq(hub.marketOf(terms.ref), id);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.MarketExists.selector, terms.ref));
        hub.createMarket(terms);
    }

    function test_terms_out_of_range_are_refused() external {
        MarketTerms memory terms = _terms(1, 0, USDC);
        _expectTermsInvalid(terms);
        terms = _terms(251, 0, USDC);
        _expectTermsInvalid(terms);
        terms = _terms(2, 1001, USDC);
        _expectTermsInvalid(terms);
        terms = _terms(2, 0, USDC - 1);
        _expectTermsInvalid(terms);
        terms = _terms(2, 0, uint256(1) << 48);
        _expectTermsInvalid(terms);
        terms = _terms(2, 0, USDC);
        terms.closeTime = uint32(block.timestamp) + DELAY;
        _expectTermsInvalid(terms);
        terms = _terms(3, 0, USDC);
        terms.openingOdds = _odds(0.5e18, 0.3e18, 0.2e18 - 1);
        _expectTermsInvalid(terms);
        terms.openingOdds = _odds(1e18, 0, 0);
        _expectTermsInvalid(terms);
        terms.outcomes = 2;
        terms.openingOdds = _odds(0.5e18, 0.3e18, 0.2e18);
        _expectTermsInvalid(terms);
    }

    // --- listing ---

    function test_a_market_is_listed_before_it_opens() external {
        uint64 id = _market(2, 0, USDC);
        _expectStatus(id, Status.Listed);
        vm.prank(alice);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.MarketNotTradeable.selector, id, Status.Listed));
        hub.buy(id, 0, USDC, 0);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.TransitionInvalid.selector, Status.Listed, Status.Open));
        hub.open(id);
    }

    function test_anyone_opens_a_market_after_the_delay() external {
        uint64 id = _open();
        _expectStatus(id, Status.Open);
        _buy(alice, id, 0, USDC);
    }

    function test_a_market_past_its_close_time_is_not_opened() external {
        uint64 id = _market(2, 0, USDC);
        vm.warp(hub.market(id).closeTime);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.TransitionInvalid.selector, Status.Listed, Status.Open));
        hub.open(id);
    }

    function test_without_a_delay_creation_opens() external {
        _deploySystem(0, 0);
        _expectStatus(_market(2, 0, USDC), Status.Open);
    }

    function test_freezing_is_no_way_around_the_listing_delay() external {
        uint64 id = _market(2, 0, USDC);
        vm.startPrank(guardian);
        hub.freeze(id);
        hub.unfreeze(id);
        vm.stopPrank();
        _expectStatus(id, Status.Listed);
    }

    // --- freezing ---

    function test_guardian_and_resolver_freeze_and_unfreeze() external {
        uint64 id = _open();
        vm.prank(guardian);
        hub.freeze(id);
        _expectStatus(id, Status.Frozen);
        vm.prank(alice);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.MarketNotTradeable.selector, id, Status.Frozen));
        hub.buy(id, 0, USDC, 0);
        vm.prank(resolver);
        hub.unfreeze(id);
        _expectStatus(id, Status.Open);
    }

    function test_others_do_not_freeze() external {
        uint64 id = _open();
        vm.startPrank(treasury);
        vm.expectRevert(IMarketHub.NotAuthorized.selector);
        hub.freeze(id);
        vm.expectRevert(IMarketHub.NotAuthorized.selector);
        hub.unfreeze(id);
    }

    function test_a_market_past_its_close_time_is_not_unfrozen() external {
        uint64 id = _open();
        vm.startPrank(guardian);
        hub.freeze(id);
        vm.warp(hub.market(id).closeTime);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.TransitionInvalid.selector, Status.Frozen, Status.Open));
        hub.unfreeze(id);
    }

    // --- resolving ---

    function test_a_proposal_freezes_and_waits_for_the_veto_window() external {
        uint64 id = _open();
        _resolve(id, 0);
        _expectStatus(id, Status.Frozen);
        (, uint64 due) = hub.schedule(id);
        vm.assertEq(due, block.timestamp + WINDOW);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.VetoWindowOpen.selector, due));
        hub.finalize(id);
    }

    function test_anyone_finalizes_after_the_window() external {
        uint64 id = _open();
        _resolve(id, 1);
        vm.warp(block.timestamp + WINDOW);
        vm.prank(stranger);
        hub.finalize(id);
        _expectStatus(id, Status.Resolved);
        (uint256[] memory payouts,) = hub.resolution(id);
        vm.assertEq(payouts[0], 0);
        vm.assertEq(payouts[1], WAD);
    }

    function test_with_no_window_a_proposal_is_final_at_once() external {
        _deploySystem(0, 0);
        uint64 id = _market(2, 0, USDC);
        _resolve(id, 0);
        _expectStatus(id, Status.Resolved);
    }

    function test_the_guardian_vetoes_and_the_market_stays_frozen() external {
        uint64 id = _open();
        _resolve(id, 0);
        vm.prank(guardian);
        hub.veto(id);
        _expectStatus(id, Status.Frozen);
        vm.warp(block.timestamp + WINDOW);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.TransitionInvalid.selector, Status.Frozen, Status.Resolved));
        hub.finalize(id);
        vm.prank(guardian);
        hub.unfreeze(id);
        _expectStatus(id, Status.Open);
    }

    function test_only_the_guardian_vetoes() external {
        uint64 id = _open();
        _resolve(id, 0);
        vm.prank(resolver);
        vm.expectRevert(IMarketHub.NotAuthorized.selector);
        hub.veto(id);
    }

    function test_trading_does_not_go_on_under_a_proposal() external {
        uint64 id = _open();
        _resolve(id, 0);
        vm.prank(guardian);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.TransitionInvalid.selector, Status.Frozen, Status.Open));
        hub.unfreeze(id);
    }

    function test_a_second_proposal_begins_the_window_again() external {
        uint64 id = _open();
        _resolve(id, 0);
        vm.warp(block.timestamp + WINDOW - 1);
        _resolve(id, 1);
        vm.warp(block.timestamp + 1);
        (, uint64 due) = hub.schedule(id);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.VetoWindowOpen.selector, due));
        hub.finalize(id);
        vm.warp(due);
        hub.finalize(id);
        (uint256[] memory payouts,) = hub.resolution(id);
        vm.assertEq(payouts[0], 0);
    }

    function test_payouts_above_one_or_of_nothing_are_refused() external {
        uint64 id = _open();
        uint256[] memory payouts = new uint256[](2);
        vm.startPrank(resolver);
        vm.expectRevert(IMarketHub.PayoutsInvalid.selector);
        hub.propose(id, payouts);
        (payouts[0], payouts[1]) = (0.5e18, 0.5e18 + 1);
        vm.expectRevert(IMarketHub.PayoutsInvalid.selector);
        hub.propose(id, payouts);
        (payouts[0], payouts[1]) = (type(uint256).max, 2);
        vm.expectRevert(IMarketHub.PayoutsInvalid.selector);
        hub.propose(id, payouts);
        vm.expectRevert(IMarketHub.PayoutsInvalid.selector);
        hub.propose(id, new uint256[](3));
    }

    function test_only_the_resolver_proposes_and_cancels() external {
        uint64 id = _open();
        vm.startPrank(guardian);
        vm.expectRevert(IMarketHub.NotAuthorized.selector);
        hub.propose(id, _winner(2, 0));
        vm.expectRevert(IMarketHub.NotAuthorized.selector);
        hub.cancel(id);
        vm.expectRevert(IMarketHub.NotAuthorized.selector);
        hub.cancelWithPayouts(id, _winner(2, 0));
    }

    function test_what_is_settled_stays_settled() external {
        _deploySystem(0, 0);
        uint64 id = _market(2, 0, USDC);
        _resolve(id, 0);
        vm.startPrank(resolver);
        vm.expectRevert(
            abi.encodeWithSelector(IMarketHub.TransitionInvalid.selector, Status.Resolved, Status.Cancelled)
        );
        hub.cancel(id);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.TransitionInvalid.selector, Status.Resolved, Status.Resolved));
        hub.propose(id, _winner(2, 1));
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.TransitionInvalid.selector, Status.Resolved, Status.Frozen));
        hub.freeze(id);
    }

    function test_a_cancellation_with_payouts_waits_for_the_veto_window_too() external {
        uint64 id = _open();
        vm.prank(resolver);
        hub.cancelWithPayouts(id, _winner(2, 0));
        _expectStatus(id, Status.Frozen);
        vm.warp(block.timestamp + WINDOW);
        hub.finalize(id);
        _expectStatus(id, Status.Cancelled);
    }

    function test_a_refund_overrides_a_pending_proposal() external {
        uint64 id = _open();
        _buy(alice, id, 0, 10 * USDC);
        _resolve(id, 1);
        vm.prank(resolver);
        hub.cancel(id);
        _expectStatus(id, Status.Cancelled);
        vm.assertEq(hub.redeemable(alice, id, 0), 10 * USDC);
    }

    // --- surplus ---

    function test_finalizing_pays_the_surplus_to_the_treasury() external {
        _deploySystem(0, 0);
        uint64 id = _market(2, 0, 1000 * USDC);
        uint256 tokens = _buyDirect(id, 0, 100 * USDC);
        uint256 cash = hub.market(id).cost / 1e12;
        _resolve(id, 0);
        vm.assertEq(usdc.balanceOf(treasury), cash - tokens / 1e12);
    }

    function test_a_treasury_that_cannot_receive_does_not_hold_a_resolution_up() external {
        _deploySystem(0, 0);
        uint64 id = _market(2, 0, 1000 * USDC);
        uint256 cash = hub.market(id).cost / 1e12;
        usdc.blacklist(treasury);
        _resolve(id, 0);
        _expectStatus(id, Status.Resolved);
        usdc.unBlacklist(treasury);
        vm.assertEq(hub.sweepFees(id), cash);
        vm.assertEq(usdc.balanceOf(treasury), cash);
    }

    // --- roles ---

    function test_a_role_is_handed_on_by_its_holder_alone() external {
        vm.prank(resolver);
        vm.expectRevert(IMarketHub.NotAuthorized.selector);
        hub.transferRole(Role.Guardian, resolver);
        vm.prank(guardian);
        hub.transferRole(Role.Guardian, bob);
        vm.assertEq(hub.guardian(), bob);
    }

    function test_a_role_is_not_handed_to_nobody() external {
        vm.prank(treasury);
        vm.expectRevert(IMarketHub.NotAuthorized.selector);
        hub.transferRole(Role.Treasury, address(0));
    }

    function test_the_hub_tells_how_it_was_deployed() external view {
        vm.assertEq(hub.resolver(), resolver);
        vm.assertEq(hub.treasury(), treasury);
        vm.assertEq(hub.usdc(), address(usdc));
        vm.assertEq(hub.gate(), address(gate));
        vm.assertEq(gate.hub(), address(hub));
        vm.assertEq(hub.listingDelay(), DELAY);
        vm.assertEq(hub.vetoWindow(), WINDOW);
    }

    function _open() private returns (uint64 id) {
        id = _market(2, 0, 1000 * USDC);
        vm.warp(block.timestamp + DELAY);
        hub.open(id);
    }

    function _buyDirect(uint64 id, uint8 index, uint256 amount) private returns (uint256) {
        _fund(alice, amount, address(hub));
        return _buy(alice, id, index, amount);
    }

    function _expectStatus(uint64 id, Status status) private view {
        vm.assertEq(uint256(hub.market(id).status), uint256(status));
    }

    function _expectTermsInvalid(MarketTerms memory terms) private {
        vm.prank(resolver);
        vm.expectRevert(IMarketHub.TermsInvalid.selector);
        hub.createMarket(terms);
    }

    function _odds(uint256 a, uint256 b, uint256 c) private pure returns (uint256[] memory odds) {
        odds = new uint256[](3);
        (odds[0], odds[1], odds[2]) = (a, b, c);
    }
}
