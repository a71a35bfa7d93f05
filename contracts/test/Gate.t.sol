// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {Executor, IGate, Intent, Limits, Policy} from "../src/interfaces/IGate.sol";
import {Fill, HubSettings, IMarketHub, Side, Status} from "../src/interfaces/IMarketHub.sol";
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
        emit IGate.PolicySet(bob, 3, 10, 20, 30, 40, expiry);
        vm.prank(bob);
        gate.setPolicy(3, Limits(10, 20, 30, 40, expiry));
        Policy memory policy = gate.policy(bob, 3);
        vm.assertEq(policy.salePerTrade, 30);
        vm.assertEq(policy.saleDaily, 40);
        vm.assertEq(policy.perTrade, 10);
        vm.assertEq(policy.daily, 20);
        vm.assertEq(policy.expiry, expiry);
        vm.assertEq(gate.policy(bob, 4).expiry, 0);
    }

    function test_oversized_caps_and_a_missing_expiry_are_rejected() external {
        vm.startPrank(bob);
        vm.expectRevert(IGate.PolicyInvalid.selector);
        gate.setPolicy(KEY, Limits(uint64(1) << 44, 1, 1, 1, expiry));
        vm.expectRevert(IGate.PolicyInvalid.selector);
        gate.setPolicy(KEY, Limits(1, uint64(1) << 44, 1, 1, expiry));
        vm.expectRevert(IGate.PolicyInvalid.selector);
        gate.setPolicy(KEY, Limits(1, 1, uint64(1) << 44, 1, expiry));
        vm.expectRevert(IGate.PolicyInvalid.selector);
        gate.setPolicy(KEY, Limits(1, 1, 1, uint64(1) << 44, expiry));
        vm.expectRevert(IGate.PolicyInvalid.selector);
        gate.setPolicy(KEY, Limits(1, 1, 1, 1, 0));
        uint64 most = (uint64(1) << 44) - 1;
        gate.setPolicy(KEY, Limits(most, most, most, most, type(uint32).max));
        Policy memory policy = gate.policy(bob, KEY);
        vm.assertEq(policy.perTrade & policy.daily & policy.salePerTrade & policy.saleDaily, most);
        vm.assertEq(policy.expiry, type(uint32).max);
        vm.assertEq(uint256(policy.spent) + policy.sold + policy.nonceTop + policy.nonceBitmap, 0);
    }

    function test_setting_a_policy_keeps_spending_and_used_nonces() external {
        _execute(_buyIntent(1, 100 * USDC));
        vm.prank(alice);
        gate.setPolicy(KEY, Limits(1, 2, 3, 4, expiry + 1));
        Policy memory policy = gate.policy(alice, KEY);
        vm.assertEq(policy.spent, 100 * USDC);
        vm.assertEq(policy.windowStart, block.timestamp);
        vm.assertEq(policy.nonceTop, 1);
        vm.assertEq(policy.perTrade, 1);
        vm.assertEq(policy.expiry, expiry + 1);
    }

    function test_an_executor_can_only_lower_a_policy() external {
        vm.expectEmit(address(gate));
        emit IGate.PolicySet(alice, KEY, 5, DAILY, 6, 10 * DAILY, expiry);
        vm.prank(executor);
        gate.reducePolicy(alice, KEY, Limits(5, type(uint64).max, 6, type(uint64).max, type(uint32).max));
        vm.prank(executor);
        gate.reducePolicy(alice, KEY, Limits(9, 7, 9, 8, expiry - 1));
        Policy memory policy = gate.policy(alice, KEY);
        vm.assertEq(policy.salePerTrade, 6);
        vm.assertEq(policy.saleDaily, 8);
        vm.assertEq(policy.perTrade, 5);
        vm.assertEq(policy.daily, 7);
        vm.assertEq(policy.expiry, expiry - 1);
    }

    function test_an_executor_cannot_create_a_policy() external {
        vm.prank(executor);
        gate.reducePolicy(bob, KEY, Limits(10, 10, 10, 10, expiry));
        Policy memory policy = gate.policy(bob, KEY);
        vm.assertEq(uint256(policy.perTrade) + policy.daily + policy.salePerTrade + policy.saleDaily + policy.expiry, 0);
    }

    function test_others_cannot_lower_a_policy() external {
        vm.prank(guardian);
        vm.expectRevert(IGate.NotExecutor.selector);
        gate.reducePolicy(alice, KEY, Limits(0, 0, 0, 0, 0));
    }

    function test_only_executor_and_account_can_revoke() external {
        vm.prank(bob);
        vm.expectRevert(IGate.NotAuthorized.selector);
        gate.revokePolicy(alice, KEY);
        vm.expectEmit(address(gate));
        emit IGate.PolicySet(alice, KEY, 0, 0, 0, 0, 0);
        vm.prank(executor);
        gate.revokePolicy(alice, KEY);
        _expectFailed(alice, 1, abi.encodeWithSelector(IGate.PolicyMissing.selector));
        _execute(_buyIntent(1, USDC));
        vm.startPrank(alice);
        gate.setPolicy(KEY, _limits(PER_TRADE, DAILY, expiry));
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
        Fill memory fill = hub.quote(id, 1, Side.BuyForUsdc, 100 * USDC);
        _expectTrade(TRADE_ID, alice, _id(id, 1), Side.BuyForUsdc, fill);
        _execute(_intent(alice, 1, id, 1, Side.BuyForUsdc, 100 * USDC, 0));
    }

    function test_a_buy_of_tokens_draws_only_its_cost() external {
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

    function test_sales_pay_the_account_and_do_not_use_the_caps_of_buys() external {
        _execute(_buyIntent(1, 100 * USDC));
        uint256 before = usdc.balanceOf(alice);
        uint256 paid = hub.quote(id, 0, Side.SellTokens, 10e18).usdc;
        _execute(_intent(alice, 2, id, 0, Side.SellTokens, 0, 10e18));
        _execute(_intent(alice, 3, id, 0, Side.SellForUsdc, 5 * USDC, 50e18));
        vm.assertEq(usdc.balanceOf(alice) - before, paid + 5 * USDC);
        _execute(_intent(alice, 4, id, 0, Side.SellAll, 0, 1000e18));
        vm.assertEq(_balance(alice, id, 0), 0);
        vm.assertEq(gate.policy(alice, KEY).spent, 100 * USDC);
    }

    function test_an_unknown_side_fails_only_its_intent() external {
        Intent memory intent = _buyIntent(1, USDC);
        intent.what |= 9 << 64;
        _expectFailed(alice, 1, abi.encodeWithSignature("Panic(uint256)", 0x21));
        _execute(intent);
    }

    // --- sale caps ---

    /// @dev The first edition sold 1,986 USDC of a position of 3,000 with a key capped at 1 USDC.
    function test_a_stolen_executor_sells_no_more_than_the_enabled_sale_caps() external {
        uint64 cap = uint64(USDC);
        vm.startPrank(alice);
        usdc.approve(address(hub), type(uint256).max);
        uint256 held = hub.buy(id, 0, 3000 * USDC, 0).tokens;
        gate.setPolicy(KEY, Limits(cap, cap, cap, cap, expiry));
        vm.stopPrank();
        for (uint32 nonce = 1; nonce < 40; ++nonce) {
            Side side = Side(uint256(Side.SellTokens) + nonce % 3);
            uint256 tokens = nonce % 2 == 0 ? held : 1e18;
            _execute(_intent(alice, nonce, id, 0, side, side == Side.SellForUsdc ? USDC / 100 : 0, tokens));
        }
        vm.assertLe(held - _balance(alice, id, 0), 1e18);
        vm.assertEq(gate.policy(alice, KEY).sold <= cap, true);
    }

    function test_a_sale_counts_the_face_value_rounded_up() external {
        _execute(_buyIntent(1, 100 * USDC));
        _execute(_intent(alice, 2, id, 0, Side.SellTokens, 0, 10e18 + 1));
        Policy memory policy = gate.policy(alice, KEY);
        vm.assertEq(policy.sold, 10 * USDC + 1);
        vm.assertEq(policy.saleWindowStart, block.timestamp);
    }

    function test_a_sale_for_usdc_or_of_all_counts_only_its_tokens() external {
        _execute(_buyIntent(1, 100 * USDC));
        uint256 before = _balance(alice, id, 0);
        _execute(_intent(alice, 2, id, 0, Side.SellForUsdc, 5 * USDC, 50e18));
        uint256 given = before - _balance(alice, id, 0);
        vm.assertEq(gate.policy(alice, KEY).sold, (given + 1e12 - 1) / 1e12);
        _execute(_intent(alice, 3, id, 0, Side.SellAll, 0, before));
        uint256 first = (given + 1e12 - 1) / 1e12;
        vm.assertEq(gate.policy(alice, KEY).sold, first + (before - given + 1e12 - 1) / 1e12);
    }

    function test_a_sale_of_all_above_its_bound_fails() external {
        _execute(_buyIntent(1, 100 * USDC));
        uint256 held = _balance(alice, id, 0);
        _expectFailed(alice, 2, abi.encodeWithSelector(IGate.SaleBoundExceeded.selector, held, held - 1));
        _execute(_intent(alice, 2, id, 0, Side.SellAll, 0, held - 1));
        vm.assertEq(_balance(alice, id, 0), held);
        vm.assertEq(gate.policy(alice, KEY).sold, 0);
        _execute(_intent(alice, 3, id, 0, Side.SellAll, 0, held));
        vm.assertEq(_balance(alice, id, 0), 0);
    }

    function test_a_sale_above_the_cap_per_trade_fails() external {
        _setSaleCaps(10 * USDC, 100 * USDC);
        _execute(_buyIntent(1, 100 * USDC));
        _expectFailed(
            alice, 2, abi.encodeWithSelector(IGate.SalePerTradeCapExceeded.selector, 10 * USDC + 1, 10 * USDC)
        );
        _execute(_intent(alice, 2, id, 0, Side.SellTokens, 0, 10e18 + 1));
        vm.assertEq(gate.isNonceUsed(alice, KEY, 2), true);
        _execute(_intent(alice, 3, id, 0, Side.SellTokens, 0, 10e18));
        vm.assertEq(gate.policy(alice, KEY).sold, 10 * USDC);
    }

    function test_a_sale_above_the_daily_cap_fails_until_the_next_day() external {
        _setSaleCaps(10 * USDC, 15 * USDC);
        _execute(_buyIntent(1, 100 * USDC));
        _execute(_intent(alice, 2, id, 0, Side.SellTokens, 0, 10e18));
        _expectFailed(alice, 3, abi.encodeWithSelector(IGate.SaleDailyCapExceeded.selector, 5 * USDC + 1, 5 * USDC));
        _execute(_intent(alice, 3, id, 0, Side.SellTokens, 0, 5e18 + 1));
        _execute(_intent(alice, 4, id, 0, Side.SellTokens, 0, 5e18));
        vm.warp(block.timestamp + 1 days);
        _execute(_intent(alice, 5, id, 0, Side.SellTokens, 0, 10e18));
        vm.assertEq(gate.policy(alice, KEY).sold, 10 * USDC);
    }

    function test_a_key_without_sale_caps_can_only_buy() external {
        _setSaleCaps(0, 0);
        _execute(_buyIntent(1, 100 * USDC));
        _expectFailed(alice, 2, abi.encodeWithSelector(IGate.SalePerTradeCapExceeded.selector, 1, 0));
        _execute(_intent(alice, 2, id, 0, Side.SellTokens, 0, 1));
    }

    function test_a_failed_sale_restores_its_face_value() external {
        _execute(_buyIntent(1, 100 * USDC));
        _execute(_intent(alice, 2, id, 0, Side.SellTokens, 0, 10e18));
        Policy memory before = gate.policy(alice, KEY);
        vm.warp(block.timestamp + 2 days);
        _execute(_intent(alice, 3, id, 0, Side.SellTokens, 1000 * USDC, 10e18));
        Policy memory policy = gate.policy(alice, KEY);
        vm.assertEq(policy.sold, before.sold);
        vm.assertEq(policy.saleWindowStart, before.saleWindowStart);
        vm.assertEq(policy.nonceTop, 3);
    }

    function test_buys_and_sales_have_separate_daily_windows() external {
        _execute(_buyIntent(1, 100 * USDC));
        vm.assertEq(gate.policy(alice, KEY).saleWindowStart, 0);
        uint32 start = gate.policy(alice, KEY).windowStart;
        vm.warp(block.timestamp + 2 days);
        _execute(_intent(alice, 2, id, 0, Side.SellTokens, 0, 1e18));
        Policy memory policy = gate.policy(alice, KEY);
        vm.assertEq(policy.windowStart, start);
        vm.assertEq(policy.spent, 100 * USDC);
        vm.assertEq(policy.saleWindowStart, block.timestamp);
    }

    function test_a_key_has_at_most_two_daily_windows_within_two_days() external {
        for (uint32 nonce = 1; nonce <= 5; ++nonce) {
            _execute(_buyIntent(nonce, PER_TRADE));
        }
        vm.warp(block.timestamp + 1 days);
        for (uint32 nonce = 6; nonce <= 10; ++nonce) {
            _execute(_buyIntent(nonce, PER_TRADE));
        }
        vm.warp(block.timestamp + 1 days - 1);
        _execute(_buyIntent(11, 1));
        vm.assertEq(gate.policy(alice, KEY).spent, DAILY);
    }

    // --- refusals ---

    function test_a_buy_above_the_cap_per_trade_fails() external {
        _expectFailed(
            alice, 1, abi.encodeWithSelector(IGate.PerTradeCapExceeded.selector, PER_TRADE + 1, uint256(PER_TRADE))
        );
        _execute(_buyIntent(1, PER_TRADE + 1));
        vm.assertEq(gate.isNonceUsed(alice, KEY, 1), true);
    }

    function test_a_buy_above_the_daily_cap_fails() external {
        for (uint32 nonce = 1; nonce <= 5; ++nonce) {
            _execute(_buyIntent(nonce, PER_TRADE));
        }
        _expectFailed(alice, 6, abi.encodeWithSelector(IGate.DailyCapExceeded.selector, 1, 0));
        _execute(_buyIntent(6, 1));
    }

    function test_a_new_day_starts_a_new_window() external {
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

    function test_a_daily_cap_lowered_below_the_spending_leaves_nothing() external {
        _execute(_buyIntent(1, 100 * USDC));
        vm.prank(executor);
        gate.reducePolicy(alice, KEY, _limits(PER_TRADE, 50 * USDC, expiry));
        _expectFailed(alice, 2, abi.encodeWithSelector(IGate.DailyCapExceeded.selector, 1, 0));
        _execute(_buyIntent(2, 1));
    }

    function test_an_intent_without_a_policy_fails() external {
        _fund(bob, 100 * USDC, address(gate));
        _expectFailed(bob, 1, abi.encodeWithSelector(IGate.PolicyMissing.selector));
        _execute(_intent(bob, 1, id, 0, Side.BuyForUsdc, USDC, 0));
        vm.assertEq(usdc.balanceOf(bob), 100 * USDC);
    }

    function test_a_sale_under_an_expired_policy_fails() external {
        _execute(_buyIntent(1, 10 * USDC));
        vm.warp(expiry);
        _execute(_intent(alice, 2, id, 0, Side.SellTokens, 0, 1e18));
        vm.warp(uint256(expiry) + 1);
        _expectFailed(alice, 3, abi.encodeWithSelector(IGate.PolicyExpired.selector, expiry));
        _execute(_intent(alice, 3, id, 0, Side.SellAll, 0, 1000e18));
    }

    function test_an_intent_fails_after_its_deadline() external {
        Intent memory intent = _buyIntent(1, USDC);
        uint32 deadline = uint32(block.timestamp + 60);
        vm.warp(uint256(deadline) + 1);
        _expectFailed(alice, 1, abi.encodeWithSelector(IGate.DeadlinePassed.selector, deadline));
        _execute(intent);
        vm.assertEq(gate.isNonceUsed(alice, KEY, 1), true);
    }

    function test_an_intent_executes_in_the_last_second_of_its_deadline() external {
        Intent memory intent = _buyIntent(1, USDC);
        vm.warp(block.timestamp + 60);
        _execute(intent);
        vm.assertEq(gate.policy(alice, KEY).spent, USDC);
    }

    function test_at_most_256_bytes_of_a_reason_are_logged() external {
        LoudHub loud = new LoudHub();
        IGate other = _gateFor(address(loud));
        vm.prank(alice);
        other.setPolicy(KEY, _limits(PER_TRADE, DAILY, expiry));
        loud.setSize(1000);
        vm.expectEmit(address(other));
        emit IGate.Failed(TRADE_ID, alice, KEY, 1, new bytes(256));
        vm.prank(executor);
        other.execute(_one(_buyIntent(1, USDC)));
        loud.setSize(0);
        vm.expectEmit(address(other));
        emit IGate.Failed(TRADE_ID, alice, KEY, 2, "");
        vm.prank(executor);
        other.execute(_one(_buyIntent(2, USDC)));
        vm.assertEq(other.policy(alice, KEY).spent, 0);
    }

    function test_a_failure_in_the_hub_is_logged_with_its_reason() external {
        uint256 tokens = hub.quote(id, 0, Side.BuyForUsdc, USDC).tokens;
        _expectFailed(alice, 1, abi.encodeWithSelector(IMarketHub.SlippageExceeded.selector, tokens, tokens + 1));
        _execute(_intent(alice, 1, id, 0, Side.BuyForUsdc, USDC, tokens + 1));
        vm.prank(guardian);
        hub.freeze(id);
        _expectFailed(alice, 2, abi.encodeWithSelector(IMarketHub.MarketNotTradeable.selector, id, Status.Frozen));
        _execute(_buyIntent(2, USDC));
    }

    function test_a_failure_of_the_token_is_logged_with_its_text() external {
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

    function test_a_failed_trade_restores_the_spend_and_changes_nothing() external {
        _execute(_buyIntent(1, 10 * USDC));
        bytes32 before = keccak256(abi.encode(hub.market(id), hub.outcomes(id), gate.policy(alice, KEY).spent));
        _execute(_intent(alice, 2, id, 0, Side.BuyForUsdc, 20 * USDC, type(uint128).max));
        vm.assertEq(keccak256(abi.encode(hub.market(id), hub.outcomes(id), gate.policy(alice, KEY).spent)), before);
        vm.assertEq(gate.isNonceUsed(alice, KEY, 2), true);
    }

    function test_a_failure_does_not_stop_the_rest_of_the_batch() external {
        Intent[] memory batch = new Intent[](3);
        batch[0] = _buyIntent(1, 10 * USDC);
        batch[1] = _buyIntent(2, PER_TRADE + 1);
        batch[2] = _buyIntent(3, 30 * USDC);
        vm.prank(executor);
        gate.execute(batch);
        vm.assertEq(gate.policy(alice, KEY).spent, 40 * USDC);
        vm.assertEq(_volume(id, 0), 40 * USDC);
    }

    // --- nonces ---

    function test_a_second_use_of_a_nonce_is_rejected() external {
        _execute(_buyIntent(1, 10 * USDC));
        uint256 before = usdc.balanceOf(alice);
        _expectDuplicate(alice, 1);
        _execute(_buyIntent(1, 10 * USDC));
        vm.assertEq(usdc.balanceOf(alice), before);
    }

    function test_a_second_use_within_one_batch_is_rejected() external {
        Intent[] memory batch = new Intent[](2);
        (batch[0], batch[1]) = (_buyIntent(1, 10 * USDC), _buyIntent(1, 10 * USDC));
        vm.prank(executor);
        gate.execute(batch);
        vm.assertEq(gate.policy(alice, KEY).spent, 10 * USDC);
    }

    function test_a_failure_uses_its_nonce() external {
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

    function test_the_last_nonce_works_and_higher_ones_fail() external {
        uint32 last = uint32(1 << 28) - 1;
        _execute(_buyIntent(last, USDC));
        vm.assertEq(gate.policy(alice, KEY).spent, USDC);
        _expectFailed(alice, last + 1, abi.encodeWithSelector(IGate.NonceTooLarge.selector, last + 1));
        _execute(_buyIntent(last + 1, USDC));
        // Nothing of a nonce above 28 bits reaches the word.
        Policy memory policy = gate.policy(alice, KEY);
        vm.assertEq(policy.nonceTop, last);
        vm.assertEq(policy.expiry, expiry);
        _expectFailed(alice, type(uint32).max, abi.encodeWithSelector(IGate.NonceTooLarge.selector, type(uint32).max));
        _execute(_buyIntent(type(uint32).max, USDC));
        vm.assertEq(keccak256(abi.encode(gate.policy(alice, KEY))), keccak256(abi.encode(policy)));
    }

    function test_an_account_can_replace_a_key_without_nonces_left() external {
        _execute(_intent(alice, uint32(1 << 28) - 1, id, 0, Side.SellTokens, 0, 0));
        _expectFailed(alice, uint32(1 << 28), abi.encodeWithSelector(IGate.NonceTooLarge.selector, uint32(1 << 28)));
        _execute(_buyIntent(uint32(1 << 28), USDC));
        vm.prank(alice);
        gate.setPolicy(8, _limits(PER_TRADE, DAILY, expiry));
        Intent memory intent = _buyIntent(1, USDC);
        intent.who ^= uint256(KEY ^ 8) << 64;
        _execute(intent);
        vm.assertEq(gate.policy(alice, 8).spent, USDC);
    }

    function test_each_key_has_its_own_nonces_and_caps() external {
        vm.prank(alice);
        gate.setPolicy(8, _limits(PER_TRADE, DAILY, expiry));
        _execute(_buyIntent(1, USDC));
        Intent memory intent = _buyIntent(1, 2 * USDC);
        intent.who ^= uint256(KEY ^ 8) << 64;
        _execute(intent);
        vm.assertEq(gate.policy(alice, KEY).spent, USDC);
        vm.assertEq(gate.policy(alice, 8).spent, 2 * USDC);
    }

    /// @dev Compared with a plain list of the used nonces.
    function testFuzz_each_nonce_is_used_once(uint256 seed) external {
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

    function test_only_an_executor_can_execute() external {
        vm.prank(guardian);
        vm.expectRevert(IGate.NotExecutor.selector);
        gate.execute(_one(_buyIntent(1, USDC)));
    }

    function test_a_batch_of_more_than_100_is_rejected() external {
        vm.prank(executor);
        vm.expectRevert(IGate.BatchTooLarge.selector);
        gate.execute(new Intent[](101));
    }

    function test_a_batch_of_exactly_100_executes() external {
        Intent[] memory batch = new Intent[](100);
        for (uint32 i; i < 100; ++i) {
            batch[i] = _buyIntent(i + 1, 2 + i);
        }
        vm.prank(executor);
        gate.execute(batch);
        vm.assertEq(gate.policy(alice, KEY).spent, 5150);
        vm.assertEq(gate.policy(alice, KEY).nonceTop, 100);
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

    function test_the_trade_function_cannot_be_called_from_outside() external {
        bytes memory call_ = abi.encodeWithSignature(
            "tradeIsolated((uint256,uint256,uint256),uint256)", _buyIntent(1, USDC), type(uint256).max
        );
        (bool done, bytes memory reason) = address(gate).call(call_);
        vm.assertEq(done, false);
        vm.assertEq(reason, abi.encodeWithSelector(IGate.NotAuthorized.selector));
    }

    // --- pause ---

    function test_a_paused_gate_executes_nothing() external {
        vm.expectEmit(address(gate));
        emit IGate.Paused(true, guardian);
        vm.prank(guardian);
        gate.setPaused(true);
        vm.assertEq(gate.paused(), true);
        vm.prank(executor);
        vm.expectRevert(IGate.IsPaused.selector);
        gate.execute(_one(_buyIntent(1, USDC)));
        vm.prank(guardian);
        gate.setPaused(false);
        _execute(_buyIntent(1, USDC));
        vm.assertEq(gate.policy(alice, KEY).spent, USDC);
    }

    function test_a_paused_gate_still_accepts_revocations() external {
        vm.prank(guardian);
        gate.setPaused(true);
        vm.prank(alice);
        gate.revokePolicy(alice, KEY);
        vm.assertEq(gate.policy(alice, KEY).expiry, 0);
    }

    function test_owner_and_guardian_can_pause_and_only_the_guardian_resumes() external {
        vm.startPrank(owner);
        gate.setPaused(true);
        vm.expectRevert(IGate.NotAuthorized.selector);
        gate.setPaused(false);
        vm.stopPrank();
        address[4] memory others = [executor, resolver, treasury, stranger];
        for (uint256 i; i < others.length; ++i) {
            vm.startPrank(others[i]);
            vm.expectRevert(IGate.NotAuthorized.selector);
            gate.setPaused(true);
            vm.expectRevert(IGate.NotAuthorized.selector);
            gate.setPaused(false);
            vm.stopPrank();
        }
        vm.prank(guardian);
        gate.setPaused(false);
        vm.assertEq(gate.paused(), false);
    }

    function test_an_executor_added_to_a_paused_gate_is_paused() external {
        vm.prank(owner);
        gate.proposeExecutor(bob, 1);
        vm.prank(guardian);
        gate.setPaused(true);
        gate.enactExecutor(bob);
        vm.assertEq(gate.executor(bob).paused, true);
        vm.prank(bob);
        vm.expectRevert(IGate.IsPaused.selector);
        gate.execute(_one(_buyIntent(1, USDC)));
        vm.prank(guardian);
        gate.setPaused(false);
        vm.assertEq(gate.executor(bob).paused, false);
    }

    // --- hourly caps ---

    function test_an_executor_without_a_cap_counts_nothing() external {
        _execute(_buyIntent(1, 60 * USDC));
        vm.assertEq(gate.executor(executor).used, 0);
        vm.assertEq(gate.executor(executor).hourlyCap, type(uint64).max);
    }

    function test_the_hourly_cap_counts_the_buys_of_all_accounts() external {
        _delegate(bob, 1000 * USDC);
        _cap(100 * USDC);
        _execute(_buyIntent(1, 60 * USDC));
        _expectFailed(bob, 1, abi.encodeWithSelector(IGate.HourlyVolumeExceeded.selector));
        _execute(_intent(bob, 1, id, 0, Side.BuyForUsdc, 40 * USDC + 1, 0));
        _execute(_intent(bob, 2, id, 0, Side.BuyForUsdc, 40 * USDC, 0));
        vm.assertEq(gate.executor(executor).used, 100 * USDC);
        vm.assertEq(gate.policy(bob, KEY).spent, 40 * USDC);
    }

    /// @dev In the first edition one account could use up the hourly cap of all others by buying and selling in turn.
    function test_wash_trades_do_not_use_up_the_hourly_cap() external {
        uint64 free = _market(2, 0, 100_000 * USDC);
        _delegate(bob, 1000 * USDC);
        _cap(100 * USDC);
        uint256 before = usdc.balanceOf(alice);
        for (uint32 nonce = 1; nonce < 40; nonce += 2) {
            _execute(_intent(alice, nonce, free, 0, Side.BuyForUsdc, 100 * USDC - 1000, 0));
            uint256 held = _balance(alice, free, 0);
            _execute(_intent(alice, nonce + 1, free, 0, Side.SellAll, 0, held));
        }
        // Used is exactly what washing has cost.
        vm.assertEq(gate.executor(executor).used, before - usdc.balanceOf(alice));
        vm.assertLe(before - usdc.balanceOf(alice), 100);
        _execute(_intent(bob, 1, id, 0, Side.BuyForUsdc, 99 * USDC, 0));
        vm.assertEq(gate.policy(bob, KEY).spent, 99 * USDC);
    }

    function test_sales_give_no_credit_for_later_buys() external {
        _execute(_buyIntent(1, 500 * USDC));
        _cap(100 * USDC);
        _execute(_intent(alice, 2, id, 0, Side.SellForUsdc, 200 * USDC, 1000e18));
        vm.assertEq(gate.executor(executor).used, 0);
        _expectFailed(alice, 3, abi.encodeWithSelector(IGate.HourlyVolumeExceeded.selector));
        _execute(_buyIntent(3, 100 * USDC + 1));
    }

    function test_sales_execute_when_the_hourly_cap_is_used_up() external {
        _cap(100 * USDC);
        _execute(_buyIntent(1, 100 * USDC));
        _execute(_intent(alice, 2, id, 0, Side.SellForUsdc, 30 * USDC, 1000e18));
        vm.assertEq(gate.executor(executor).used, 70 * USDC);
    }

    function test_the_hourly_cap_refills_evenly_within_an_hour() external {
        _cap(100 * USDC);
        _execute(_buyIntent(1, 100 * USDC));
        vm.warp(block.timestamp + 15 minutes);
        vm.assertEq(gate.executor(executor).used, 75 * USDC);
        _expectFailed(alice, 2, abi.encodeWithSelector(IGate.HourlyVolumeExceeded.selector));
        _execute(_buyIntent(2, 25 * USDC + 1));
        _execute(_buyIntent(3, 25 * USDC));
        vm.assertEq(gate.executor(executor).used, 100 * USDC);
        vm.warp(block.timestamp + 1 hours - 1);
        vm.assertEq(gate.executor(executor).used > 0, true);
        vm.warp(block.timestamp + 1);
        vm.assertEq(gate.executor(executor).used, 0);
    }

    /// @dev In the first edition twice the cap passed within two seconds. Any period of t hours lets cap * (1 + t) pass.
    function testFuzz_any_period_allows_at_most_its_share(uint256 seed) external {
        uint256 cap = 100 * USDC;
        _cap(cap);
        uint256 start = block.timestamp;
        uint256 before = usdc.balanceOf(alice);
        for (uint32 nonce = 1; nonce < 24; ++nonce) {
            seed = uint256(keccak256(abi.encode(seed)));
            if (seed % 3 == 0) {
                _execute(_intent(alice, nonce, id, 0, Side.SellForUsdc, _bound(seed >> 8, 1, 60 * USDC), 900e18));
            } else {
                _execute(_buyIntent(nonce, _bound(seed >> 8, 1, 120 * USDC)));
            }
            uint256 left = usdc.balanceOf(alice);
            uint256 most = cap + cap * (block.timestamp - start) / 1 hours;
            vm.assertLe(before > left ? before - left : 0, most, "more left than the cap allows");
            vm.warp(block.timestamp + (seed >> 128) % 20 minutes);
        }
    }

    function test_an_hourly_cap_lowered_below_its_use_leaves_nothing() external {
        _cap(100 * USDC);
        _execute(_buyIntent(1, 80 * USDC));
        _cap(50 * USDC);
        _expectFailed(alice, 2, abi.encodeWithSelector(IGate.HourlyVolumeExceeded.selector));
        _execute(_buyIntent(2, USDC));
        vm.assertEq(gate.executor(executor).used, 80 * USDC);
        vm.warp(block.timestamp + 1 hours);
        vm.assertEq(gate.executor(executor).used, 30 * USDC);
        _execute(_buyIntent(3, 20 * USDC));
    }

    function test_each_executor_has_its_own_hourly_cap() external {
        _cap(100 * USDC);
        vm.prank(owner);
        gate.proposeExecutor(bob, uint64(10 * USDC));
        gate.enactExecutor(bob);
        _execute(_buyIntent(1, 100 * USDC));
        vm.prank(bob);
        gate.execute(_one(_buyIntent(2, 10 * USDC)));
        vm.assertEq(gate.policy(alice, KEY).spent, 110 * USDC);
        vm.assertEq(gate.executor(bob).used, 10 * USDC);
    }

    // --- executors ---

    function test_a_new_executor_waits_for_the_delay() external {
        _deploySystem(HubSettings(0, 0, 0, 1 days, 30 days), 2 days);
        uint64 due = uint64(block.timestamp + 2 days);
        vm.expectEmit(address(gate));
        emit IGate.ExecutorProposed(bob, 7, due);
        vm.prank(owner);
        gate.proposeExecutor(bob, 7);
        (uint64 cap, uint64 enactableAt) = gate.proposedExecutor(bob);
        vm.assertEq(cap, 7);
        vm.assertEq(enactableAt, due);
        vm.warp(due - 1);
        vm.expectRevert(abi.encodeWithSelector(IGate.DelayNotOver.selector, due));
        gate.enactExecutor(bob);
        vm.assertEq(gate.isExecutor(bob), false);
        vm.warp(due);
        vm.expectEmit(address(gate));
        emit IGate.ExecutorSet(bob, true, 7);
        gate.enactExecutor(bob);
        Executor memory right = gate.executor(bob);
        vm.assertEq(right.allowed, true);
        vm.assertEq(right.paused, false);
        vm.assertEq(right.hourlyCap, 7);
        vm.assertEq(gate.executors().length, 2);
        vm.expectRevert(abi.encodeWithSelector(IGate.NotProposed.selector, bob));
        gate.enactExecutor(bob);
    }

    function test_a_higher_cap_waits_and_a_lower_one_does_not() external {
        _deploySystem(HubSettings(0, 0, 0, 1 days, 30 days), 2 days);
        _cap(100);
        vm.prank(guardian);
        gate.lowerExecutor(executor, 50);
        vm.assertEq(gate.executor(executor).hourlyCap, 50);
        vm.prank(owner);
        gate.lowerExecutor(executor, 49);
        for (uint64 cap = 49; cap < 51; ++cap) {
            vm.prank(guardian);
            vm.expectRevert(IGate.CapNotLower.selector);
            gate.lowerExecutor(executor, cap);
        }
        vm.prank(owner);
        gate.proposeExecutor(executor, 60);
        vm.assertEq(gate.executor(executor).hourlyCap, 49);
        vm.warp(block.timestamp + 2 days);
        gate.enactExecutor(executor);
        vm.assertEq(gate.executor(executor).hourlyCap, 60);
        vm.assertEq(gate.executors().length, 1);
    }

    /// @dev In the first edition the guardian named itself executor and lifted the cap, at once.
    function test_a_stolen_guardian_key_can_neither_add_executors_nor_raise_caps() external {
        vm.startPrank(guardian);
        vm.expectRevert(IGate.NotAuthorized.selector);
        gate.proposeExecutor(guardian, 1);
        vm.expectRevert(abi.encodeWithSelector(IGate.NotProposed.selector, guardian));
        gate.enactExecutor(guardian);
        vm.expectRevert(IGate.CapNotLower.selector);
        gate.lowerExecutor(guardian, 1);
        vm.stopPrank();
    }

    function test_the_guardian_can_stop_executors_of_a_stolen_owner_key() external {
        _deploySystem(HubSettings(0, 0, 0, 1 days, 30 days), 2 days);
        vm.prank(owner);
        gate.proposeExecutor(stranger, type(uint64).max);
        vm.expectEmit(address(gate));
        emit IGate.ExecutorProposalRemoved(stranger, guardian);
        vm.prank(guardian);
        gate.vetoExecutor(stranger);
        vm.warp(block.timestamp + 2 days);
        vm.expectRevert(abi.encodeWithSelector(IGate.NotProposed.selector, stranger));
        gate.enactExecutor(stranger);
        vm.prank(guardian);
        vm.expectRevert(abi.encodeWithSelector(IGate.NotProposed.selector, stranger));
        gate.vetoExecutor(stranger);
    }

    function test_the_proposals_of_a_replaced_owner_are_void() external {
        _deploySystem(HubSettings(0, 0, 0, 1 days, 30 days), 2 days);
        vm.prank(owner);
        gate.proposeExecutor(stranger, 1);
        vm.prank(guardian);
        authority.proposeRecovery(bob);
        vm.warp(block.timestamp + 2 days);
        vm.prank(bob);
        authority.acceptRecovery();
        vm.expectRevert(abi.encodeWithSelector(IGate.NotProposed.selector, stranger));
        gate.enactExecutor(stranger);
    }

    function test_removing_an_executor_takes_effect_at_once() external {
        vm.prank(owner);
        gate.proposeExecutor(executor, 5);
        vm.expectEmit(address(gate));
        emit IGate.ExecutorSet(executor, false, 0);
        vm.prank(guardian);
        gate.lowerExecutor(executor, 0);
        vm.assertEq(gate.isExecutor(executor), false);
        vm.assertEq(gate.executors().length, 0);
        vm.prank(executor);
        vm.expectRevert(IGate.NotExecutor.selector);
        gate.execute(_one(_buyIntent(1, USDC)));
        vm.startPrank(executor);
        vm.expectRevert(IGate.NotExecutor.selector);
        gate.reducePolicy(alice, KEY, Limits(0, 0, 0, 0, 0));
        vm.expectRevert(IGate.NotAuthorized.selector);
        gate.revokePolicy(alice, KEY);
        vm.stopPrank();
        vm.expectRevert(abi.encodeWithSelector(IGate.NotProposed.selector, executor));
        gate.enactExecutor(executor);
    }

    function test_removing_an_executor_keeps_the_others() external {
        address[3] memory more = [bob, stranger, treasury];
        for (uint256 i; i < more.length; ++i) {
            vm.prank(owner);
            gate.proposeExecutor(more[i], 1);
            gate.enactExecutor(more[i]);
        }
        vm.startPrank(owner);
        gate.lowerExecutor(bob, 0);
        gate.lowerExecutor(treasury, 0);
        vm.stopPrank();
        address[] memory all = gate.executors();
        vm.assertEq(all.length, 2);
        vm.assertEq(all[0] == executor && all[1] == stranger, true);
    }

    function test_invalid_executors_and_more_than_16_are_rejected() external {
        vm.startPrank(owner);
        vm.expectRevert(IGate.ExecutorInvalid.selector);
        gate.proposeExecutor(address(0), 1);
        vm.expectRevert(IGate.ExecutorInvalid.selector);
        gate.proposeExecutor(bob, 0);
        for (uint160 i = 1; i < 17; ++i) {
            gate.proposeExecutor(address(i), 1);
            if (i == 16) vm.expectRevert(IGate.TooManyExecutors.selector);
            gate.enactExecutor(address(i));
        }
        vm.assertEq(gate.executors().length, gate.MAX_EXECUTORS());
        // One that is there already may still get another cap.
        gate.proposeExecutor(address(1), 2);
        gate.enactExecutor(address(1));
        vm.assertEq(gate.executor(address(1)).hourlyCap, 2);
    }

    function test_others_cannot_change_executors() external {
        vm.prank(owner);
        gate.proposeExecutor(bob, 1);
        address[4] memory others = [executor, resolver, treasury, stranger];
        for (uint256 i; i < others.length; ++i) {
            vm.startPrank(others[i]);
            vm.expectRevert(IGate.NotAuthorized.selector);
            gate.proposeExecutor(others[i], 1);
            vm.expectRevert(IGate.NotAuthorized.selector);
            gate.lowerExecutor(executor, 0);
            vm.expectRevert(IGate.NotAuthorized.selector);
            gate.vetoExecutor(bob);
            vm.stopPrank();
        }
    }

    /// @dev Uses the guardian, because a lower cap does not wait.
    function _cap(uint256 hourly) private {
        vm.prank(guardian);
        gate.lowerExecutor(executor, uint64(hourly));
    }

    function _setSaleCaps(uint256 perTrade, uint256 daily) private {
        vm.prank(alice);
        gate.setPolicy(KEY, Limits(PER_TRADE, DAILY, uint64(perTrade), uint64(daily), expiry));
    }

    /// @dev A Gate whose hub is another contract.
    function _gateFor(address hub_) private returns (IGate) {
        address[] memory executors = new address[](1);
        executors[0] = executor;
        return IGate(_deploy("Gate", abi.encode(authority, usdc, hub_, executors, type(uint64).max)));
    }

    function _buyIntent(uint32 nonce, uint256 amount) private view returns (Intent memory) {
        return _intent(alice, nonce, id, 0, Side.BuyForUsdc, amount, 0);
    }

    function _text(string memory message) private pure returns (bytes memory) {
        return abi.encodeWithSignature("Error(string)", message);
    }
}

/// @notice A hub that reverts every trade with the configured number of bytes.
contract LoudHub {
    uint256 private size;

    function setSize(uint256 size_) external {
        size = size_;
    }

    fallback() external {
        uint256 size_ = size;
        assembly {
            revert(0x1000, size_)
        }
    }
}
