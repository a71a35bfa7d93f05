// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {HubSettings, IMarketHub, MarketTerms, OutcomeState, Status} from "../src/interfaces/IMarketHub.sol";
import {Fixture} from "./utils/Fixture.sol";

/// @notice Cancels: their steps, their payments, and the wash attack, which must gain nothing.
contract CancelTest is Fixture {
    uint32 private constant WINDOW = 2 days;
    uint32 private constant MIN_FREEZE = 3 days;
    uint32 private constant PERIOD = 1 days;
    uint32 private constant DEADLINE = 30 days;
    uint256 private constant MAX_LATE_VETOES = 2;

    address private carol = _named("carol");
    uint64 private id;

    function setUp() public override {
        super.setUp();
        _deploySystem(HubSettings(0, WINDOW, MIN_FREEZE, PERIOD, DEADLINE));
        // At the start of a period.
        vm.warp(block.timestamp / PERIOD * PERIOD + PERIOD);
        id = _market(2, 0, 1000 * USDC);
        address[3] memory traders = [alice, bob, carol];
        for (uint256 i; i < traders.length; ++i) {
            _fund(traders[i], 1e7 * USDC, address(hub));
        }
    }

    // --- the path ---

    function test_a_cancel_needs_the_minimum_freeze_and_the_veto_window() external {
        uint256 tokens = _buy(alice, id, 0, 100 * USDC);
        vm.warp(block.timestamp + 2 * PERIOD);
        _freeze();
        uint64 from = hub.schedule(id).cancellableAt;
        vm.assertEq(from, block.timestamp + MIN_FREEZE);
        vm.warp(from - 1);
        vm.prank(resolver);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.FrozenTooBriefly.selector, from));
        hub.proposeCancel(id);
        vm.warp(from);
        uint256[] memory reference_ = hub.referencePrices(id);
        vm.expectEmit(address(hub));
        emit IMarketHub.CancelProposed(id, reference_, uint64(block.timestamp + WINDOW));
        vm.prank(resolver);
        hub.proposeCancel(id);
        (bool isCancel,, uint256[] memory payouts) = hub.proposal(id);
        vm.assertEq(isCancel, true);
        vm.assertEq(abi.encode(payouts), abi.encode(reference_));
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.VetoWindowOpen.selector, block.timestamp + WINDOW));
        hub.finalize(id);
        vm.warp(block.timestamp + WINDOW);
        vm.expectEmit(address(hub));
        emit IMarketHub.MarketCancelled(id, reference_);
        vm.prank(stranger);
        hub.finalize(id);
        vm.assertEq(uint256(hub.market(id).status), uint256(Status.Cancelled));
        vm.assertEq(hub.redeem(alice, id, 0), tokens * reference_[0] / 1e30);
    }

    function test_an_open_market_cannot_be_cancelled() external {
        vm.prank(resolver);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.TransitionInvalid.selector, Status.Open, Status.Cancelled));
        hub.proposeCancel(id);
    }

    function test_unfreezing_restarts_the_minimum_freeze() external {
        _freeze();
        vm.warp(block.timestamp + MIN_FREEZE - 1);
        vm.startPrank(resolver);
        hub.unfreeze(id);
        vm.assertEq(hub.schedule(id).cancellableAt, 0);
        hub.freeze(id);
        vm.warp(block.timestamp + 1);
        vm.expectRevert();
        hub.proposeCancel(id);
    }

    function test_a_result_may_follow_a_vetoed_cancel() external {
        _proposeCancel();
        vm.prank(guardian);
        hub.veto(id);
        _resolve(id, 0);
        vm.warp(block.timestamp + WINDOW);
        hub.finalize(id);
        vm.assertEq(uint256(hub.market(id).status), uint256(Status.Resolved));
    }

    function test_a_cancel_does_not_replace_a_pending_result() external {
        _resolve(id, 0);
        vm.warp(block.timestamp + MIN_FREEZE);
        vm.prank(resolver);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.TransitionInvalid.selector, Status.Frozen, Status.Cancelled));
        hub.proposeCancel(id);
        hub.finalize(id);
        vm.assertEq(uint256(hub.market(id).status), uint256(Status.Resolved));
    }

    function test_the_minimum_freeze_counts_from_the_close_time() external {
        uint256 close = hub.market(id).closeTime;
        vm.warp(close);
        vm.assertEq(hub.schedule(id).frozenAt, close);
        vm.warp(close + MIN_FREEZE);
        vm.prank(guardian);
        hub.freeze(id);
        vm.assertEq(hub.schedule(id).frozenAt, close);
        vm.prank(resolver);
        hub.proposeCancel(id);
    }

    // --- without a resolver ---

    function test_anyone_can_propose_the_cancel_of_an_overdue_market() external {
        uint256 tokens = _buy(alice, id, 0, 100 * USDC);
        uint64 due = hub.schedule(id).resultDueAt;
        vm.warp(due);
        vm.prank(stranger);
        vm.expectRevert(IMarketHub.NotAuthorized.selector);
        hub.proposeCancel(id);
        vm.warp(due + 1);
        vm.prank(stranger);
        hub.proposeCancel(id);
        vm.warp(block.timestamp + WINDOW);
        hub.finalize(id);
        vm.assertEq(hub.redeem(alice, id, 0), tokens * hub.resolution(id)[0] / 1e30);
    }

    /// @dev The bound is the deadline, one veto window for each late veto, and one more.
    function test_a_hostile_guardian_can_delay_but_not_prevent_an_end() external {
        _buy(alice, id, 0, 100 * USDC);
        vm.prank(guardian);
        hub.freeze(id);
        // Before the deadline there is no bound on vetoes, since a stolen resolver's key must not outlast them.
        vm.warp(block.timestamp + MIN_FREEZE);
        for (uint256 i; i < 10; ++i) {
            vm.prank(resolver);
            hub.proposeCancel(id);
            vm.prank(guardian);
            hub.veto(id);
        }
        uint256 due = hub.schedule(id).resultDueAt;
        vm.warp(due + 1);
        for (uint256 i; i < MAX_LATE_VETOES; ++i) {
            hub.proposeCancel(id);
            vm.warp(block.timestamp + WINDOW - 1);
            vm.prank(guardian);
            hub.veto(id);
            vm.assertEq(hub.schedule(id).lateVetoes, i + 1);
        }
        hub.proposeCancel(id);
        vm.prank(guardian);
        vm.expectRevert(IMarketHub.VetoesUsedUp.selector);
        hub.veto(id);
        vm.warp(block.timestamp + WINDOW);
        hub.finalize(id);
        vm.assertLe(block.timestamp, due + 1 + (MAX_LATE_VETOES + 1) * WINDOW);
        vm.assertLe(1, hub.redeem(alice, id, 0));
    }

    function test_a_result_proposed_in_time_can_be_vetoed_late() external {
        vm.warp(hub.schedule(id).resultDueAt);
        _resolve(id, 0);
        vm.warp(block.timestamp + 1);
        vm.prank(guardian);
        hub.veto(id);
        vm.assertEq(hub.schedule(id).lateVetoes, 0);
        hub.proposeCancel(id);
    }

    // --- the reference prices ---

    function test_trades_of_the_last_whole_period_do_not_count() external {
        _buy(alice, id, 0, 300 * USDC);
        vm.warp(block.timestamp + PERIOD);
        uint256[] memory expected = hub.prices(id);
        _buy(bob, id, 1, 900 * USDC);
        vm.warp(block.timestamp + 2 * PERIOD - 1);
        _buy(bob, id, 1, 900 * USDC);
        _freeze();
        _expectReference(expected);
    }

    function test_a_trade_counts_after_a_whole_period() external {
        vm.warp(block.timestamp + PERIOD - 1);
        _buy(alice, id, 0, 300 * USDC);
        vm.warp(block.timestamp + PERIOD);
        _expectReference(_even(2));
        vm.warp(block.timestamp + 1);
        _expectReference(hub.prices(id));
    }

    function test_a_quiet_market_pays_its_last_prices() external {
        _buy(alice, id, 0, 300 * USDC);
        vm.warp(block.timestamp + 20 * PERIOD);
        _buy(alice, id, 1, 100 * USDC);
        uint256[] memory expected = hub.prices(id);
        vm.warp(block.timestamp + 7 * PERIOD);
        _freeze();
        _expectReference(expected);
    }

    function test_a_young_market_pays_its_opening_prices() external {
        MarketTerms memory terms = _terms(3, 0, 1000 * USDC);
        terms.openingOdds = new uint256[](3);
        (terms.openingOdds[0], terms.openingOdds[1], terms.openingOdds[2]) = (0.7e18, 0.2e18, 0.1e18);
        vm.prank(resolver);
        id = hub.createMarket(terms);
        _buy(alice, id, 1, 500 * USDC);
        vm.warp(block.timestamp + PERIOD);
        _buy(alice, id, 2, 500 * USDC);
        _freeze();
        uint256[] memory prices = hub.referencePrices(id);
        for (uint256 i; i < 3; ++i) {
            vm.assertApproxEqAbs(prices[i], terms.openingOdds[i], 1000);
        }
    }

    function test_a_late_cancel_counts_the_freeze_from_the_close_time() external {
        uint256 close = hub.market(id).closeTime;
        vm.warp(close - close % PERIOD - PERIOD);
        uint256[] memory expected = hub.prices(id);
        _buy(alice, id, 0, 300 * USDC);
        vm.warp(close - 1);
        _buy(bob, id, 0, 300 * USDC);
        vm.warp(close + 9 * PERIOD);
        _expectReference(expected);
        vm.prank(resolver);
        hub.freeze(id);
        vm.warp(close + 12 * PERIOD);
        _expectReference(expected);
    }

    function test_complete_sets_do_not_move_the_reference_prices() external {
        _buy(alice, id, 0, 300 * USDC);
        vm.warp(block.timestamp + 2 * PERIOD);
        uint256[] memory expected = hub.prices(id);
        vm.startPrank(bob);
        hub.split(id, 5000 * USDC);
        vm.warp(block.timestamp + PERIOD);
        hub.merge(id, 4000 * USDC);
        hub.transfer(alice, _id(id, 0), 1e18);
        vm.stopPrank();
        _buy(bob, id, 1, 10 * USDC);
        _freeze();
        _expectReference(expected);
    }

    /// @dev Compared with a model that reads every outcome at the start of every period.
    function testFuzz_the_reference_is_the_state_before_the_last_period(uint256 seed) external {
        uint8 outcomes = uint8(2 + seed % 4);
        id = _market(outcomes, 0, 1000 * USDC);
        uint256[][12] memory starts;
        uint256 first = block.timestamp / PERIOD;
        for (uint256 p; p < starts.length; ++p) {
            starts[p] = hub.prices(id);
            seed = uint256(keccak256(abi.encode(seed)));
            for (uint256 t; t < seed % 4; ++t) {
                uint8 index = uint8((seed >> 8 * t) % outcomes);
                if ((seed >> 40 + t) % 5 == 0) {
                    vm.prank(alice);
                    hub.split(id, USDC + (seed >> 100) % (500 * USDC));
                } else if (_balance(alice, id, index) > 1e18 && (seed >> 50 + t) % 2 == 0) {
                    uint256 tokens = _balance(alice, id, index) / 2;
                    vm.prank(alice);
                    hub.sell(id, index, tokens, 0);
                } else {
                    _buy(alice, id, index, USDC + (seed >> 100 + t) % (900 * USDC));
                }
            }
            if (p > 2 && seed >> 250 == 0) break;
            vm.warp(block.timestamp + PERIOD);
        }
        uint256 here = block.timestamp / PERIOD - first;
        _freeze();
        _expectReference(starts[here - 1]);
    }

    // --- nothing to gain ---

    /// @dev In the first edition this attack won 2,837 USDC for N = 2 and 6,258 of a pool of 7,079 for N = 8.
    function test_the_wash_attack_gains_nothing() external {
        uint8[5] memory counts = [2, 3, 8, 50, 250];
        for (uint256 i; i < counts.length; ++i) {
            uint256 snapshot = vm.snapshotState();
            _washAttack(counts[i], 0, true);
            vm.revertToState(snapshot);
            snapshot = vm.snapshotState();
            _washAttack(counts[i], 0, false);
            vm.revertToState(snapshot);
        }
    }

    /// @dev If the attacker foresees the cancel by less than a whole period, any trades lose, because C is convex.
    function testFuzz_trades_that_follow_the_reference_gain_nothing(uint256 seed, uint256 fee) external {
        uint8 outcomes = uint8(2 + seed % 9);
        id = _market(outcomes, uint16(_bound(fee, 0, 300)), 1000 * USDC);
        for (uint8 i; i < outcomes; ++i) {
            seed = uint256(keccak256(abi.encode(seed)));
            if (seed % 2 == 0) _buy(alice, id, i, _bound(seed >> 8, 1, 2000 * USDC));
        }
        vm.warp(block.timestamp + PERIOD);
        uint256 before = usdc.balanceOf(bob) + usdc.balanceOf(carol);
        for (uint256 t; t < 24; ++t) {
            seed = uint256(keccak256(abi.encode(seed)));
            address who = seed % 2 == 0 ? bob : carol;
            uint8 index = uint8((seed >> 8) % outcomes);
            uint256 held = _balance(who, id, index);
            if (seed >> 16 & 3 == 0 && held > 1e12) {
                vm.prank(who);
                hub.sell(id, index, _bound(seed >> 32, 1e12, held), 0);
            } else if (seed >> 16 & 15 == 1) {
                vm.prank(who);
                hub.split(id, _bound(seed >> 32, 1, 3000 * USDC));
            } else {
                vm.prank(who);
                try hub.buy(id, index, _bound(seed >> 32, 1, 4000 * USDC), 0) {} catch {}
            }
            if (t % 6 == 5) vm.warp(block.timestamp + PERIOD / 2 - 1);
        }
        _cancelSlowly();
        _redeemAll(bob, outcomes);
        _redeemAll(carol, outcomes);
        vm.assertLe(usdc.balanceOf(bob) + usdc.balanceOf(carol), before);
        _redeemAll(alice, outcomes);
        vm.assertLe(hub.market(id).fees, usdc.balanceOf(address(hub)));
    }

    /// @dev The cancel is foreseen by more than a period and the prices are skewed at its start. The pool's funding bounds the
    /// gain.
    function test_a_skewed_reference_costs_the_pool_at_most_its_funding() external {
        uint256 before = usdc.balanceOf(bob);
        vm.warp(block.timestamp + PERIOD - 1);
        uint256 tokens = _buy(bob, id, 0, 8000 * USDC);
        vm.warp(block.timestamp + 1);
        vm.prank(bob);
        hub.sell(id, 0, tokens, 0);
        vm.warp(block.timestamp + PERIOD);
        _buy(bob, id, 0, 8000 * USDC);
        _cancelSlowly();
        _redeemAll(bob, 2);
        vm.assertLe(usdc.balanceOf(bob) - before, 693_147_181);
    }

    // --- fees ---

    function test_sweeping_fees_changes_no_refund() external {
        id = _market(2, 200, 1000 * USDC);
        uint256 tokens = _buy(alice, id, 0, 1000 * USDC);
        vm.warp(block.timestamp + 2 * PERIOD);
        _freeze();
        vm.warp(block.timestamp + MIN_FREEZE);
        uint256 snapshot = vm.snapshotState();
        uint256[3] memory paid;
        for (uint256 i; i < 3; ++i) {
            if (i == 1) hub.sweepFees(id);
            vm.prank(resolver);
            hub.proposeCancel(id);
            if (i == 2) hub.sweepFees(id);
            vm.warp(block.timestamp + WINDOW);
            hub.finalize(id);
            paid[i] = hub.redeem(alice, id, 0);
            if (i == 0) vm.assertEq(hub.sweepFees(id), 20 * USDC);
            vm.revertToState(snapshot);
            snapshot = vm.snapshotState();
        }
        vm.assertEq(paid[0], tokens * hub.referencePrices(id)[0] / 1e30);
        vm.assertEq(paid[1], paid[0]);
        vm.assertEq(paid[2], paid[0]);
    }

    function test_a_cancel_of_250_outcomes_fits_a_transaction() external {
        id = _market(250, 0, 1000 * USDC);
        for (uint8 i; i < 250; ++i) {
            _buy(alice, id, i, USDC);
        }
        vm.warp(block.timestamp + PERIOD);
        for (uint8 i; i < 250; ++i) {
            _buy(alice, id, i, USDC);
        }
        _freeze();
        vm.warp(block.timestamp + MIN_FREEZE);
        vm.prank(resolver);
        uint256 gas = gasleft();
        hub.proposeCancel(id);
        vm.assertLe(gas - gasleft(), 12_000_000);
        vm.warp(block.timestamp + WINDOW);
        gas = gasleft();
        hub.finalize(id);
        vm.assertLe(gas - gasleft(), 12_000_000);
    }

    // --- helpers ---

    /// @dev Scouts buy every outcome before whales do and sell to them; whales hold what a cost basis would refund.
    function _washAttack(uint8 outcomes, uint16 feeBps, bool isSold) private {
        id = _market(outcomes, feeBps, 1000 * USDC);
        for (uint8 i; i < outcomes; ++i) {
            _buy(alice, id, i, 5000 * USDC / outcomes);
        }
        vm.warp(block.timestamp + PERIOD);
        (address scout, address whale) = (bob, carol);
        uint256 before = usdc.balanceOf(scout) + usdc.balanceOf(whale);
        for (uint256 round; round < 2; ++round) {
            for (uint8 i; i < outcomes && i < 10; ++i) {
                uint256 tokens = _buy(scout, id, i, 200 * USDC);
                _buy(whale, id, i, 4000 * USDC);
                if (!isSold) continue;
                vm.prank(scout);
                hub.sell(id, i, tokens, 0);
            }
            vm.warp(block.timestamp + PERIOD / 2);
        }
        _cancelSlowly();
        _redeemAll(scout, outcomes);
        _redeemAll(whale, outcomes);
        vm.assertLe(usdc.balanceOf(scout) + usdc.balanceOf(whale), before, "the attack gains");
        // And the others are paid in full.
        uint256[] memory payouts = hub.resolution(id);
        for (uint8 i; i < outcomes; ++i) {
            uint256 due = _balance(alice, id, i) * payouts[i] / 1e30;
            if (due != 0) vm.assertEq(hub.redeem(alice, id, i), due);
        }
    }

    function _freeze() private {
        vm.prank(resolver);
        hub.freeze(id);
    }

    function _proposeCancel() private {
        _freeze();
        vm.warp(block.timestamp + MIN_FREEZE);
        vm.prank(resolver);
        hub.proposeCancel(id);
    }

    function _cancelSlowly() private {
        _proposeCancel();
        vm.warp(block.timestamp + WINDOW);
        hub.finalize(id);
    }

    function _redeemAll(address who, uint8 outcomes) private {
        for (uint8 i; i < outcomes; ++i) {
            if (hub.redeemable(who, id, i) != 0) hub.redeem(who, id, i);
        }
    }

    function _even(uint256 outcomes) private pure returns (uint256[] memory prices) {
        prices = new uint256[](outcomes);
        for (uint256 i; i < outcomes; ++i) {
            prices[i] = WAD / outcomes;
        }
    }

    function _expectReference(uint256[] memory expected) private view {
        uint256[] memory prices = hub.referencePrices(id);
        uint256 sum;
        for (uint256 i; i < prices.length; ++i) {
            vm.assertApproxEqAbs(prices[i], expected[i], 1e9);
            sum += prices[i];
        }
        vm.assertEq(sum, WAD);
    }
}
