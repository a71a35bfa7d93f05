// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {HubSettings, IMarketHub, MarketTerms, Side, Status} from "../src/interfaces/IMarketHub.sol";
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

    function test_creation_costs_b_ln_n() external {
        uint256 before = usdc.balanceOf(resolver);
        _market(2, 0, 1000 * USDC);
        vm.assertEq(before - usdc.balanceOf(resolver), 693_147_181); // 1000 ln 2, up
    }

    function test_creation_with_odds_costs_b_ln_of_the_longest() external {
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

    function test_an_even_market_starts_with_equal_prices_and_no_tokens() external {
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

    function test_only_the_resolver_creates_markets() external {
        MarketTerms memory terms = _terms(2, 0, USDC);
        vm.prank(guardian);
        vm.expectRevert(IMarketHub.NotAuthorized.selector);
        hub.createMarket(terms);
    }

    function test_a_second_market_with_the_same_reference_is_rejected() external {
        MarketTerms memory terms = _terms(2, 0, USDC);
        vm.startPrank(resolver);
        uint64 id = hub.createMarket(terms);
        vm.assertEq(hub.marketOf(terms.ref), id);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.MarketExists.selector, terms.ref));
        hub.createMarket(terms);
    }

    function test_terms_out_of_range_are_rejected() external {
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

    function test_terms_at_the_ends_of_their_ranges_are_accepted() external {
        _fund(resolver, 1e9 * USDC, address(hub));
        MarketTerms memory terms = _terms(2, 0, USDC);
        terms.closeTime = uint32(block.timestamp) + DELAY + 1;
        _expectCreated(terms);
        _expectCreated(_terms(250, 1000, type(uint48).max));
    }

    function _expectCreated(MarketTerms memory terms) private {
        vm.prank(resolver);
        uint64 id = hub.createMarket(terms);
        vm.assertEq(hub.market(id).outcomes, terms.outcomes);
        vm.assertEq(hub.market(id).feeBps, terms.feeBps);
        vm.assertEq(hub.market(id).closeTime, terms.closeTime);
        vm.assertEq(hub.market(id).liquidity, terms.liquidity);
    }

    function test_the_list_of_outcomes_agrees_with_each_of_them() external {
        uint64 id = _open();
        _buy(alice, id, 1, USDC);
        uint256 count = hub.outcomes(id).length;
        vm.assertEq(count, hub.market(id).outcomes);
        for (uint256 i; i < count; ++i) {
            vm.assertEq(abi.encode(hub.outcomes(id)[i]), abi.encode(hub.outcome(id, uint8(i))));
        }
        vm.assertEq(hub.outcomes(id)[1].trades, 1);
        vm.assertEq(hub.outcomes(id)[1].volume, USDC);
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

    function test_anyone_can_open_a_market_after_the_delay() external {
        uint64 id = _open();
        _expectStatus(id, Status.Open);
        _buy(alice, id, 0, USDC);
    }

    function test_a_market_past_its_close_time_cannot_be_opened() external {
        uint64 id = _market(2, 0, USDC);
        vm.warp(hub.market(id).closeTime);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.TransitionInvalid.selector, Status.Listed, Status.Open));
        hub.open(id);
    }

    function test_without_a_delay_creation_opens_the_market() external {
        _deploySystem(0, 0);
        _expectStatus(_market(2, 0, USDC), Status.Open);
    }

    function test_freezing_does_not_bypass_the_listing_delay() external {
        uint64 id = _market(2, 0, USDC);
        vm.startPrank(guardian);
        hub.freeze(id);
        hub.unfreeze(id);
        vm.stopPrank();
        _expectStatus(id, Status.Listed);
    }

    // --- freezing ---

    function test_guardian_and_resolver_can_freeze_and_unfreeze() external {
        uint64 id = _open();
        vm.prank(guardian);
        hub.freeze(id);
        _expectStatus(id, Status.Frozen);
        vm.prank(alice);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.MarketNotTradeable.selector, id, Status.Frozen));
        hub.buy(id, 0, USDC, 0);
        vm.prank(guardian);
        hub.unfreeze(id);
        _expectStatus(id, Status.Open);
        vm.startPrank(resolver);
        hub.freeze(id);
        hub.unfreeze(id);
        _expectStatus(id, Status.Open);
    }

    /// @dev In the first edition the resolver could.
    function test_only_the_guardian_lifts_its_own_freeze() external {
        uint64 id = _open();
        vm.expectEmit(address(hub));
        emit IMarketHub.MarketHeld(id, true);
        vm.prank(guardian);
        hub.freeze(id);
        vm.assertEq(hub.schedule(id).isHeld, true);
        vm.prank(resolver);
        vm.expectRevert(IMarketHub.NotAuthorized.selector);
        hub.unfreeze(id);
        vm.expectEmit(address(hub));
        emit IMarketHub.MarketHeld(id, false);
        vm.prank(guardian);
        hub.unfreeze(id);
        vm.assertEq(hub.schedule(id).isHeld, false);
    }

    function test_the_guardian_can_take_over_a_freeze_of_the_resolver() external {
        uint64 id = _open();
        vm.prank(resolver);
        hub.freeze(id);
        uint64 frozenAt = hub.schedule(id).frozenAt;
        vm.warp(block.timestamp + 5);
        vm.prank(guardian);
        hub.freeze(id);
        vm.assertEq(hub.schedule(id).frozenAt, frozenAt);
        vm.prank(resolver);
        vm.expectRevert(IMarketHub.NotAuthorized.selector);
        hub.unfreeze(id);
        bytes memory error = abi.encodeWithSelector(IMarketHub.TransitionInvalid.selector, Status.Frozen, Status.Frozen);
        vm.prank(resolver);
        vm.expectRevert(error);
        hub.freeze(id);
        vm.prank(guardian);
        vm.expectRevert(error);
        hub.freeze(id);
    }

    function test_others_cannot_freeze() external {
        uint64 id = _open();
        vm.startPrank(treasury);
        vm.expectRevert(IMarketHub.NotAuthorized.selector);
        hub.freeze(id);
        vm.expectRevert(IMarketHub.NotAuthorized.selector);
        hub.unfreeze(id);
    }

    function test_a_market_past_its_close_time_cannot_be_unfrozen() external {
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
        uint64 due = hub.schedule(id).finalizableAt;
        vm.assertEq(due, block.timestamp + WINDOW);
        (bool isCancel, uint64 at, uint256[] memory payouts) = hub.proposal(id);
        vm.assertEq(isCancel, false);
        vm.assertEq(at, due);
        vm.assertEq(abi.encode(payouts), abi.encode(_winner(2, 0)));
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.VetoWindowOpen.selector, due));
        hub.finalize(id);
    }

    function test_anyone_can_finalize_after_the_window() external {
        uint64 id = _open();
        _resolve(id, 1);
        vm.warp(block.timestamp + WINDOW);
        vm.prank(stranger);
        hub.finalize(id);
        _expectStatus(id, Status.Resolved);
        uint256[] memory payouts = hub.resolution(id);
        vm.assertEq(payouts[0], 0);
        vm.assertEq(payouts[1], WAD);
    }

    function test_without_a_window_a_proposal_is_final_at_once() external {
        _deploySystem(0, 0);
        uint64 id = _market(2, 0, USDC);
        _resolve(id, 0);
        _expectStatus(id, Status.Resolved);
    }

    function test_a_vetoed_market_stays_frozen() external {
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

    function test_trading_stops_during_a_proposal() external {
        uint64 id = _open();
        _resolve(id, 0);
        vm.prank(guardian);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.TransitionInvalid.selector, Status.Frozen, Status.Open));
        hub.unfreeze(id);
    }

    /// @dev A proposer that could restart the window could delay an end without limit.
    function test_only_one_proposal_can_be_pending() external {
        uint64 id = _open();
        _resolve(id, 0);
        bytes memory error =
            abi.encodeWithSelector(IMarketHub.TransitionInvalid.selector, Status.Frozen, Status.Resolved);
        vm.prank(resolver);
        vm.expectRevert(error);
        hub.propose(id, _winner(2, 1));
        vm.prank(guardian);
        hub.veto(id);
        _resolve(id, 1);
        vm.warp(hub.schedule(id).finalizableAt);
        hub.finalize(id);
        vm.assertEq(hub.resolution(id)[0], 0);
    }

    function test_a_veto_clears_the_proposal() external {
        uint64 id = _open();
        uint256[] memory payouts = new uint256[](2);
        (payouts[0], payouts[1]) = (0.5e18, 0.5e18);
        vm.prank(resolver);
        hub.propose(id, payouts);
        vm.prank(guardian);
        hub.veto(id);
        (, uint64 at, uint256[] memory left) = hub.proposal(id);
        vm.assertEq(at + left.length, 0);
        _resolve(id, 1);
        vm.warp(hub.schedule(id).finalizableAt);
        hub.finalize(id);
        vm.assertEq(abi.encode(hub.resolution(id)), abi.encode(_winner(2, 1)));
    }

    function test_a_result_has_a_deadline() external {
        uint64 id = _open();
        uint64 due = hub.schedule(id).resultDueAt;
        vm.assertEq(due, hub.market(id).closeTime + 30 days);
        vm.warp(due + 1);
        vm.prank(resolver);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.ResultTooLate.selector, due));
        hub.propose(id, _winner(2, 0));
        vm.warp(due);
        _resolve(id, 0);
        vm.warp(due + WINDOW);
        hub.finalize(id);
        _expectStatus(id, Status.Resolved);
    }

    function test_payouts_that_do_not_sum_to_exactly_one_are_rejected() external {
        uint64 id = _open();
        uint256[] memory payouts = new uint256[](2);
        vm.startPrank(resolver);
        vm.expectRevert(IMarketHub.PayoutsInvalid.selector);
        hub.propose(id, payouts);
        (payouts[0], payouts[1]) = (0.5e18, 0.5e18 + 1);
        vm.expectRevert(IMarketHub.PayoutsInvalid.selector);
        hub.propose(id, payouts);
        // In the first edition these were accepted, and all but one wei per token went to the treasury.
        (payouts[0], payouts[1]) = (1, 0);
        vm.expectRevert(IMarketHub.PayoutsInvalid.selector);
        hub.propose(id, payouts);
        (payouts[0], payouts[1]) = (0.5e18, 0.5e18 - 1);
        vm.expectRevert(IMarketHub.PayoutsInvalid.selector);
        hub.propose(id, payouts);
        (payouts[0], payouts[1]) = (type(uint256).max - 1e18 + 2, 2e18 - 1);
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
        hub.proposeCancel(id);
    }

    function test_a_settled_market_stays_settled() external {
        _deploySystem(0, 0);
        uint64 id = _market(2, 0, USDC);
        _resolve(id, 0);
        vm.startPrank(resolver);
        vm.expectRevert(
            abi.encodeWithSelector(IMarketHub.TransitionInvalid.selector, Status.Resolved, Status.Cancelled)
        );
        hub.proposeCancel(id);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.TransitionInvalid.selector, Status.Resolved, Status.Resolved));
        hub.propose(id, _winner(2, 1));
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.TransitionInvalid.selector, Status.Resolved, Status.Frozen));
        hub.freeze(id);
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

    function test_a_blocked_treasury_does_not_delay_a_resolution() external {
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

    function test_opening_quantities_are_not_owed_and_small_surplus_is_paid() external {
        _deploySystem(0, 0);
        MarketTerms memory terms = _terms(3, 0, USDC);
        terms.openingOdds = _odds(0.5e18, 0.3e18, 0.2e18);
        vm.prank(resolver);
        uint64 id = hub.createMarket(terms);
        uint256 tokens = _buyDirect(id, 0, 2 * USDC);
        uint256 cash = hub.market(id).cost / 1e12;
        uint256 surplus = cash - tokens / 1e12;
        vm.assertLe(surplus, USDC - 1);
        _resolve(id, 0);
        vm.assertEq(usdc.balanceOf(treasury), surplus);
        vm.assertEq(hub.redeem(alice, id, 0), tokens / 1e12);
        vm.assertLe(usdc.balanceOf(address(hub)), 1);
    }

    // --- deployment ---

    function test_the_hub_uses_the_roles_of_the_authority() external {
        vm.prank(owner);
        authority.suspendResolver();
        MarketTerms memory terms = _terms(2, 0, USDC);
        vm.prank(resolver);
        vm.expectRevert(IMarketHub.NotAuthorized.selector);
        hub.createMarket(terms);
    }

    function test_a_reference_period_of_zero_is_rejected() external {
        bytes memory arguments = abi.encode(usdc, gate, authority, HubSettings(0, 0, 0, 0, 0));
        bytes memory code =
            abi.encodePacked(vm.parseJsonBytes(vm.readFile("artifacts/MarketHub.json"), ".bytecode"), arguments);
        address made;
        assembly ("memory-safe") {
            made := create(0, add(code, 0x20), mload(code))
        }
        vm.assertEq(made, address(0));
    }

    function test_the_hub_returns_its_deployment_settings() external view {
        vm.assertEq(hub.authority(), address(authority));
        vm.assertEq(hub.usdc(), address(usdc));
        vm.assertEq(hub.gate(), address(gate));
        vm.assertEq(gate.hub(), address(hub));
        vm.assertEq(abi.encode(hub.settings()), abi.encode(HubSettings(DELAY, WINDOW, 0, 1 days, 30 days)));
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
