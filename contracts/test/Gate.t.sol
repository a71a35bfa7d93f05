// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {IGate, Intent, Policy} from "../src/interfaces/IGate.sol";
import {IMarketHub, Side, Status} from "../src/interfaces/IMarketHub.sol";
import {Fixture} from "./utils/Fixture.sol";

contract GateTest is Fixture {
    uint64 private constant PER_TRADE = uint64(1000 * USDC);
    uint64 private constant DAILY = uint64(5000 * USDC);

    uint64 private id;
    uint32 private expiry;

    function setUp() public override {
        super.setUp();
        id = _market(2, 100, 100_000 * USDC);
        _delegate(alice, 50_000 * USDC);
        expiry = gate.policy(alice, KEY).expiry;
    }

    // --- policies ---

    function test_an_account_sets_its_policy() external {
        vm.expectEmit(address(gate));
        emit IGate.PolicySet(bob, 3, 10, 20, expiry);
        vm.prank(bob);
        gate.setPolicy(3, 10, 20, expiry);
        Policy memory policy = gate.policy(bob, 3);
        vm.assertEq(policy.perTrade, 10);
        vm.assertEq(policy.daily, 20);
        vm.assertEq(policy.expiry, expiry);
        vm.assertEq(gate.policy(bob, 4).expiry, 0);
    }

    function test_caps_beyond_their_word_and_no_expiry_are_refused() external {
        vm.startPrank(bob);
        vm.expectRevert(IGate.PolicyInvalid.selector);
        gate.setPolicy(KEY, uint64(1) << 44, 1, expiry);
        vm.expectRevert(IGate.PolicyInvalid.selector);
        gate.setPolicy(KEY, 1, uint64(1) << 44, expiry);
        vm.expectRevert(IGate.PolicyInvalid.selector);
        gate.setPolicy(KEY, 1, 1, 0);
    }

    function test_setting_a_policy_keeps_what_was_spent_and_used() external {
        _execute(_buyIntent(1, 100 * USDC));
        vm.prank(alice);
        gate.setPolicy(KEY, 1, 2, expiry + 1);
        Policy memory policy = gate.policy(alice, KEY);
        vm.assertEq(policy.spent, 100 * USDC);
        vm.assertEq(policy.windowStart, block.timestamp);
        vm.assertEq(policy.nonceTop, 1);
        vm.assertEq(policy.perTrade, 1);
        vm.assertEq(policy.expiry, expiry + 1);
    }

    function test_an_executor_lowers_a_policy_and_never_raises_it() external {
        vm.expectEmit(address(gate));
        emit IGate.PolicySet(alice, KEY, 5, DAILY, expiry);
        vm.prank(executor);
        gate.reducePolicy(alice, KEY, 5, type(uint64).max, type(uint32).max);
        vm.prank(executor);
        gate.reducePolicy(alice, KEY, 9, 7, expiry - 1);
        Policy memory policy = gate.policy(alice, KEY);
        vm.assertEq(policy.perTrade, 5);
        vm.assertEq(policy.daily, 7);
        vm.assertEq(policy.expiry, expiry - 1);
    }

    function test_an_executor_cannot_make_a_policy_out_of_nothing() external {
        vm.prank(executor);
        gate.reducePolicy(bob, KEY, 10, 10, expiry);
        Policy memory policy = gate.policy(bob, KEY);
        vm.assertEq(policy.perTrade + policy.daily + policy.expiry, 0);
    }

    function test_others_do_not_lower_a_policy() external {
        vm.prank(guardian);
        vm.expectRevert(IGate.NotExecutor.selector);
        gate.reducePolicy(alice, KEY, 0, 0, 0);
    }

    function test_executor_and_account_revoke_and_others_do_not() external {
        vm.prank(bob);
        vm.expectRevert(IGate.NotAuthorized.selector);
        gate.revokePolicy(alice, KEY);
        vm.expectEmit(address(gate));
        emit IGate.PolicySet(alice, KEY, 0, 0, 0);
        vm.prank(executor);
        gate.revokePolicy(alice, KEY);
        _expectFailed(alice, 1, abi.encodeWithSelector(IGate.PolicyMissing.selector));
        _execute(_buyIntent(1, USDC));
        vm.startPrank(alice);
        gate.setPolicy(KEY, PER_TRADE, DAILY, expiry);
        gate.revokePolicy(alice, KEY);
        vm.assertEq(gate.policy(alice, KEY).expiry, 0);
    }

    // --- trades ---

    function test_a_delegated_buy_moves_usdc_from_the_account_to_the_hub() external {
        uint256 tokens = hub.quote(id, 1, Side.BuyForUsdc, 100 * USDC).tokens;
        (uint256 hubBefore, uint256 aliceBefore) = (usdc.balanceOf(address(hub)), usdc.balanceOf(alice));
        _execute(_intent(alice, 1, id, 1, Side.BuyForUsdc, 100 * USDC, tokens));
        vm.assertEq(aliceBefore - usdc.balanceOf(alice), 100 * USDC);
        vm.assertEq(usdc.balanceOf(address(hub)) - hubBefore, 100 * USDC);
        vm.assertEq(_balance(alice, id, 1), tokens);
        vm.assertEq(gate.policy(alice, KEY).spent, 100 * USDC);
    }

    function test_a_delegated_trade_is_logged_under_its_id() external {
        uint256 tokens = hub.quote(id, 1, Side.BuyForUsdc, 100 * USDC).tokens;
        vm.expectEmit(address(hub));
        emit IMarketHub.Trade(
            TRADE_ID,
            alice,
            _id(id, 1),
            Side.BuyForUsdc,
            uint64(100 * USDC),
            uint128(tokens),
            uint64(USDC),
            hub.market(id).cost + 99e18,
            tokens
        );
        _execute(_intent(alice, 1, id, 1, Side.BuyForUsdc, 100 * USDC, 0));
    }

    function test_a_buy_of_tokens_draws_only_what_it_cost() external {
        uint256 cost = hub.quote(id, 0, Side.BuyTokens, 100e18).usdc;
        _execute(_intent(alice, 1, id, 0, Side.BuyTokens, 900 * USDC, 100e18));
        vm.assertEq(_balance(alice, id, 0), 100e18);
        vm.assertEq(gate.policy(alice, KEY).spent, cost);
    }

    function test_the_bound_of_a_buy_of_tokens_counts_against_the_cap() external {
        _expectFailed(
            alice, 1, abi.encodeWithSelector(IGate.PerTradeCapExceeded.selector, PER_TRADE + 1, uint256(PER_TRADE))
        );
        _execute(_intent(alice, 1, id, 0, Side.BuyTokens, PER_TRADE + 1, 1e18));
    }

    function test_a_buy_of_tokens_without_a_bound_buys_nothing() external {
        uint256 before = usdc.balanceOf(alice);
        _execute(_intent(alice, 1, id, 0, Side.BuyTokens, 0, 1e18));
        vm.assertEq(usdc.balanceOf(alice), before);
        vm.assertEq(_balance(alice, id, 0), 0);
    }

    function test_sales_pay_the_account_and_draw_nothing() external {
        _execute(_buyIntent(1, 100 * USDC));
        uint256 before = usdc.balanceOf(alice);
        uint256 paid = hub.quote(id, 0, Side.SellTokens, 10e18).usdc;
        _execute(_intent(alice, 2, id, 0, Side.SellTokens, 0, 10e18));
        _execute(_intent(alice, 3, id, 0, Side.SellForUsdc, 5 * USDC, 50e18));
        vm.assertEq(usdc.balanceOf(alice) - before, paid + 5 * USDC);
        _execute(_intent(alice, 4, id, 0, Side.SellAll, 0, 0));
        vm.assertEq(_balance(alice, id, 0), 0);
        vm.assertEq(gate.policy(alice, KEY).spent, 100 * USDC);
    }

    function test_a_number_that_is_no_side_fails_by_itself() external {
        Intent memory intent = _buyIntent(1, USDC);
        intent.what |= 9 << 64;
        _expectFailed(alice, 1, abi.encodeWithSignature("Panic(uint256)", 0x21));
        _execute(intent);
    }

    // --- refusals ---

    function test_above_the_cap_per_trade_fails() external {
        _expectFailed(
            alice, 1, abi.encodeWithSelector(IGate.PerTradeCapExceeded.selector, PER_TRADE + 1, uint256(PER_TRADE))
        );
        _execute(_buyIntent(1, PER_TRADE + 1));
        vm.assertEq(gate.isNonceUsed(alice, KEY, 1), true);
    }

    function test_above_the_daily_cap_fails() external {
        for (uint32 nonce = 1; nonce <= 5; ++nonce) {
            _execute(_buyIntent(nonce, PER_TRADE));
        }
        _expectFailed(alice, 6, abi.encodeWithSelector(IGate.DailyCapExceeded.selector, 1, 0));
        _execute(_buyIntent(6, 1));
    }

    function test_a_new_day_begins_a_new_window() external {
        for (uint32 nonce = 1; nonce <= 5; ++nonce) {
            _execute(_buyIntent(nonce, PER_TRADE));
        }
        vm.warp(block.timestamp + 1 days - 1);
        _expectFailed(alice, 6, abi.encodeWithSelector(IGate.DailyCapExceeded.selector, 1, 0));
        _execute(_buyIntent(6, 1));
        vm.warp(block.timestamp + 1);
        _execute(_buyIntent(7, PER_TRADE));
        vm.assertEq(gate.policy(alice, KEY).spent, PER_TRADE);
    }

    function test_a_lowered_daily_cap_below_what_was_spent_leaves_nothing() external {
        _execute(_buyIntent(1, 100 * USDC));
        vm.prank(executor);
        gate.reducePolicy(alice, KEY, PER_TRADE, uint64(50 * USDC), expiry);
        _expectFailed(alice, 2, abi.encodeWithSelector(IGate.DailyCapExceeded.selector, 1, 0));
        _execute(_buyIntent(2, 1));
    }

    function test_without_a_policy_an_intent_fails() external {
        _fund(bob, 100 * USDC, address(gate));
        _expectFailed(bob, 1, abi.encodeWithSelector(IGate.PolicyMissing.selector));
        _execute(_intent(bob, 1, id, 0, Side.BuyForUsdc, USDC, 0));
        vm.assertEq(usdc.balanceOf(bob), 100 * USDC);
    }

    function test_an_expired_policy_fails_even_to_sell() external {
        _execute(_buyIntent(1, 10 * USDC));
        vm.warp(expiry);
        _execute(_intent(alice, 2, id, 0, Side.SellTokens, 0, 1e18));
        vm.warp(uint256(expiry) + 1);
        _expectFailed(alice, 3, abi.encodeWithSelector(IGate.PolicyExpired.selector, expiry));
        _execute(_intent(alice, 3, id, 0, Side.SellAll, 0, 0));
    }

    function test_after_its_deadline_an_intent_fails() external {
        Intent memory intent = _buyIntent(1, USDC);
        uint32 deadline = uint32(block.timestamp + 60);
        vm.warp(uint256(deadline) + 1);
        _expectFailed(alice, 1, abi.encodeWithSelector(IGate.DeadlinePassed.selector, deadline));
        _execute(intent);
        vm.assertEq(gate.isNonceUsed(alice, KEY, 1), true);
    }

    function test_a_failure_in_the_hub_is_told_with_its_reason() external {
        uint256 tokens = hub.quote(id, 0, Side.BuyForUsdc, USDC).tokens;
        _expectFailed(alice, 1, abi.encodeWithSelector(IMarketHub.SlippageExceeded.selector, tokens, tokens + 1));
        _execute(_intent(alice, 1, id, 0, Side.BuyForUsdc, USDC, tokens + 1));
        vm.prank(guardian);
        hub.freeze(id);
        _expectFailed(alice, 2, abi.encodeWithSelector(IMarketHub.MarketNotTradeable.selector, id, Status.Frozen));
        _execute(_buyIntent(2, USDC));
    }

    function test_a_failure_of_the_token_is_told_with_its_text() external {
        vm.prank(alice);
        usdc.approve(address(gate), 5);
        _expectFailed(alice, 1, _text("ERC20: transfer amount exceeds allowance"));
        _execute(_buyIntent(1, USDC));
        vm.prank(alice);
        usdc.approve(address(gate), type(uint256).max);
        usdc.blacklist(alice);
        _expectFailed(alice, 2, _text("Blacklistable: account is blacklisted"));
        _execute(_buyIntent(2, USDC));
        usdc.unBlacklist(alice);
        uint256 all = usdc.balanceOf(alice);
        vm.prank(alice);
        usdc.transfer(bob, all);
        _expectFailed(alice, 3, _text("ERC20: transfer amount exceeds balance"));
        _execute(_buyIntent(3, USDC));
        usdc.pause();
        _expectFailed(alice, 4, _text("Pausable: paused"));
        _execute(_buyIntent(4, USDC));
    }

    function test_a_failed_trade_gives_the_spend_back_and_leaves_no_trace() external {
        _execute(_buyIntent(1, 10 * USDC));
        bytes32 before = keccak256(abi.encode(hub.market(id), hub.outcomes(id), gate.policy(alice, KEY).spent));
        _execute(_intent(alice, 2, id, 0, Side.BuyForUsdc, 20 * USDC, type(uint128).max));
        vm.assertEq(keccak256(abi.encode(hub.market(id), hub.outcomes(id), gate.policy(alice, KEY).spent)), before);
        vm.assertEq(gate.isNonceUsed(alice, KEY, 2), true);
    }

    function test_one_failure_does_not_hold_up_the_rest_of_the_batch() external {
        Intent[] memory batch = new Intent[](3);
        batch[0] = _buyIntent(1, 10 * USDC);
        batch[1] = _buyIntent(2, PER_TRADE + 1);
        batch[2] = _buyIntent(3, 30 * USDC);
        vm.prank(executor);
        gate.execute(batch);
        vm.assertEq(gate.policy(alice, KEY).spent, 40 * USDC);
        vm.assertEq(_basis(alice, id, 0), 40 * USDC);
    }

    // --- nonces ---

    function test_a_second_use_of_a_nonce_is_refused() external {
        _execute(_buyIntent(1, 10 * USDC));
        uint256 before = usdc.balanceOf(alice);
        _expectDuplicate(alice, 1);
        _execute(_buyIntent(1, 10 * USDC));
        vm.assertEq(usdc.balanceOf(alice), before);
    }

    function test_a_second_use_within_one_batch_is_refused() external {
        Intent[] memory batch = new Intent[](2);
        (batch[0], batch[1]) = (_buyIntent(1, 10 * USDC), _buyIntent(1, 10 * USDC));
        vm.prank(executor);
        gate.execute(batch);
        vm.assertEq(gate.policy(alice, KEY).spent, 10 * USDC);
    }

    function test_the_nonce_of_a_failure_is_used_too() external {
        _execute(_buyIntent(1, PER_TRADE + 1));
        _expectDuplicate(alice, 1);
        _execute(_buyIntent(1, USDC));
    }

    function test_nonces_may_come_out_of_order_within_the_window() external {
        _execute(_buyIntent(40, USDC));
        _execute(_buyIntent(8, USDC)); // 32 behind the highest
        vm.assertEq(gate.policy(alice, KEY).spent, 2 * USDC);
        _expectDuplicate(alice, 8);
        _execute(_buyIntent(8, USDC));
    }

    function test_a_nonce_behind_the_window_counts_as_used() external {
        _execute(_buyIntent(40, USDC));
        vm.assertEq(gate.isNonceUsed(alice, KEY, 8), false);
        vm.assertEq(gate.isNonceUsed(alice, KEY, 7), true);
        _expectDuplicate(alice, 7);
        _execute(_buyIntent(7, USDC));
    }

    function test_nonce_zero_counts_as_used() external {
        vm.assertEq(gate.isNonceUsed(alice, KEY, 0), true);
        _expectDuplicate(alice, 0);
        _execute(_buyIntent(0, USDC));
    }

    function test_the_last_nonce_works_and_those_above_fail() external {
        uint32 last = uint32(1 << 28) - 1;
        _execute(_buyIntent(last, USDC));
        vm.assertEq(gate.policy(alice, KEY).spent, USDC);
        _expectFailed(alice, last + 1, abi.encodeWithSelector(IGate.NonceTooLarge.selector, last + 1));
        _execute(_buyIntent(last + 1, USDC));
    }

    function test_keys_have_nonces_and_caps_of_their_own() external {
        vm.prank(alice);
        gate.setPolicy(8, PER_TRADE, DAILY, expiry);
        _execute(_buyIntent(1, USDC));
        Intent memory intent = _buyIntent(1, 2 * USDC);
        intent.who ^= uint256(KEY ^ 8) << 64;
        _execute(intent);
        vm.assertEq(gate.policy(alice, KEY).spent, USDC);
        vm.assertEq(gate.policy(alice, 8).spent, 2 * USDC);
    }

    /// @dev Against a plain list of what was used.
    function testFuzz_each_nonce_is_taken_once(uint256 seed) external {
        uint256[] memory nonces = new uint256[](40);
        uint256 top;
        for (uint256 i; i < nonces.length; ++i) {
            seed = uint256(keccak256(abi.encode(seed)));
            uint256 nonce = 1 + (i * 3 + seed % 50) / 2;
            bool used = top >= 33 && nonce < top - 32;
            for (uint256 j; j < i; ++j) {
                used = used || nonces[j] == nonce;
            }
            vm.assertEq(gate.isNonceUsed(alice, KEY, uint32(nonce)), used);
            uint256 before = usdc.balanceOf(alice);
            _execute(_buyIntent(uint32(nonce), 7));
            vm.assertEq(before - usdc.balanceOf(alice), used ? 0 : 7);
            nonces[i] = nonce;
            if (nonce > top) top = nonce;
        }
    }

    // --- batches ---

    function test_only_an_executor_executes() external {
        vm.prank(guardian);
        vm.expectRevert(IGate.NotExecutor.selector);
        gate.execute(_one(_buyIntent(1, USDC)));
    }

    function test_a_batch_of_more_than_100_is_refused() external {
        vm.prank(executor);
        vm.expectRevert(IGate.BatchTooLarge.selector);
        gate.execute(new Intent[](101));
    }

    function test_a_starved_trade_stops_the_batch_and_is_not_recorded() external {
        vm.prank(executor);
        try gate.execute{gas: 380_000}(_one(_buyIntent(1, USDC))) {
            revert("executed");
        } catch (bytes memory reason) {
            vm.assertEq(reason, abi.encodeWithSelector(IGate.GasTooLow.selector));
        }
        vm.assertEq(gate.isNonceUsed(alice, KEY, 1), false);
    }

    function test_the_trade_of_a_batch_is_not_called_from_outside() external {
        (bool done, bytes memory reason) = address(gate)
            .call(abi.encodeWithSignature("trade(address,uint256,uint256,uint256)", alice, 0, 0, type(uint256).max));
        vm.assertEq(done, false);
        vm.assertEq(reason, abi.encodeWithSelector(IGate.NotAuthorized.selector));
    }

    // --- guardian ---

    function test_a_paused_gate_executes_nothing() external {
        vm.prank(guardian);
        gate.setPaused(true);
        vm.assertEq(gate.paused(), true);
        vm.prank(executor);
        vm.expectRevert(IGate.IsPaused.selector);
        gate.execute(_one(_buyIntent(1, USDC)));
        vm.prank(guardian);
        gate.setPaused(false);
        _execute(_buyIntent(1, USDC));
        vm.assertEq(_basis(alice, id, 0), USDC);
    }

    function test_a_paused_gate_still_takes_revocations() external {
        vm.prank(guardian);
        gate.setPaused(true);
        vm.prank(alice);
        gate.revokePolicy(alice, KEY);
        vm.assertEq(gate.policy(alice, KEY).expiry, 0);
    }

    function test_the_hourly_volume_counts_both_directions_of_all_accounts() external {
        _delegate(bob, 1000 * USDC);
        vm.prank(guardian);
        gate.setHourlyVolumeCap(uint64(100 * USDC));
        _execute(_buyIntent(1, 60 * USDC));
        _execute(_intent(alice, 2, id, 0, Side.SellForUsdc, 30 * USDC, 1000e18));
        _expectFailed(bob, 1, abi.encodeWithSelector(IGate.HourlyVolumeExceeded.selector));
        _execute(_intent(bob, 1, id, 0, Side.BuyForUsdc, 11 * USDC, 0));
        _execute(_intent(bob, 2, id, 0, Side.BuyForUsdc, 10 * USDC, 0));
        (uint64 used,) = gate.hourlyVolume();
        vm.assertEq(used, 100 * USDC);
        vm.assertEq(gate.policy(bob, KEY).spent, 10 * USDC);
    }

    function test_the_hourly_volume_begins_anew_after_an_hour() external {
        vm.prank(guardian);
        gate.setHourlyVolumeCap(uint64(100 * USDC));
        _execute(_buyIntent(1, 100 * USDC));
        vm.warp(block.timestamp + 1 hours);
        _execute(_buyIntent(2, 100 * USDC));
        vm.assertEq(_basis(alice, id, 0), 200 * USDC);
        vm.assertEq(gate.hourlyVolumeCap(), 100 * USDC);
    }

    function test_the_guardian_names_and_removes_executors() external {
        vm.startPrank(guardian);
        gate.setExecutor(bob, true);
        gate.setExecutor(executor, false);
        vm.stopPrank();
        vm.assertEq(gate.isExecutor(bob), true);
        vm.prank(executor);
        vm.expectRevert(IGate.NotExecutor.selector);
        gate.execute(_one(_buyIntent(1, USDC)));
        vm.prank(bob);
        gate.execute(_one(_buyIntent(1, USDC)));
        vm.assertEq(_basis(alice, id, 0), USDC);
    }

    function test_only_the_guardian_guards() external {
        vm.startPrank(executor);
        vm.expectRevert(IGate.NotAuthorized.selector);
        gate.setPaused(true);
        vm.expectRevert(IGate.NotAuthorized.selector);
        gate.setExecutor(bob, true);
        vm.expectRevert(IGate.NotAuthorized.selector);
        gate.setHourlyVolumeCap(0);
        vm.expectRevert(IGate.NotAuthorized.selector);
        gate.transferGuardian(executor);
        vm.stopPrank();
        vm.prank(guardian);
        gate.transferGuardian(bob);
        vm.assertEq(gate.guardian(), bob);
    }

    function _buyIntent(uint32 nonce, uint256 amount) private view returns (Intent memory) {
        return _intent(alice, nonce, id, 0, Side.BuyForUsdc, amount, 0);
    }

    function _text(string memory message) private pure returns (bytes memory) {
        return abi.encodeWithSignature("Error(string)", message);
    }
}
