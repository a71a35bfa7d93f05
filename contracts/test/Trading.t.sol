// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {Fill, IMarketHub, MarketState, OutcomeState, Side, Status} from "../src/interfaces/IMarketHub.sol";
import {Fixture} from "./utils/Fixture.sol";

contract TradingTest is Fixture {
    uint64 private id;

    function setUp() public override {
        super.setUp();
        id = _market(3, 200, 1000 * USDC);
        _fund(alice, 1e6 * USDC, address(hub));
        _fund(bob, 1e6 * USDC, address(hub));
    }

    // --- fees ---

    function test_a_buy_for_usdc_spends_exactly_that_fee_included() external {
        uint256 before = usdc.balanceOf(alice);
        vm.prank(alice);
        Fill memory fill = hub.buy(id, 0, 10_000_001, 0);
        vm.assertEq(before - usdc.balanceOf(alice), 10_000_001);
        vm.assertEq(fill.fee, 200_001); // 2% of it, up
        vm.assertEq(fill.costAfter - fill.costBefore, (10_000_001 - 200_001) * 1e12);
    }

    function test_a_buy_of_tokens_receives_exactly_those() external {
        vm.prank(alice);
        Fill memory fill = hub.buyTokens(id, 0, 25e18, type(uint256).max);
        vm.assertEq(_balance(alice, id, 0), 25e18);
        uint256 net = fill.usdc - fill.fee;
        vm.assertEq(net, (fill.costAfter - fill.costBefore + 1e12 - 1) / 1e12);
        vm.assertEq(fill.fee, (net * 200 + 9799) / 9800);
    }

    function test_a_sale_of_tokens_pays_the_curve_less_the_fee() external {
        _buy(alice, id, 0, 50 * USDC);
        uint256 before = usdc.balanceOf(alice);
        vm.prank(alice);
        Fill memory fill = hub.sell(id, 0, 30e18, 0);
        uint256 gross = (fill.costBefore - fill.costAfter) / 1e12;
        vm.assertEq(fill.fee, (gross * 200 + 9999) / 10_000);
        vm.assertEq(usdc.balanceOf(alice) - before, gross - fill.fee);
    }

    function test_a_sale_for_usdc_pays_exactly_that() external {
        _buy(alice, id, 0, 50 * USDC);
        uint256 before = usdc.balanceOf(alice);
        vm.prank(alice);
        Fill memory fill = hub.sellForUsdc(id, 0, 7 * USDC, type(uint256).max);
        vm.assertEq(usdc.balanceOf(alice) - before, 7 * USDC);
        vm.assertEq(fill.fee, (uint256(7 * USDC) * 200 + 9799) / 9800);
        vm.assertEq(fill.costBefore - fill.costAfter, (7 * USDC + fill.fee) * 1e12);
    }

    function test_fees_stay_apart_until_they_are_swept_to_the_treasury() external {
        vm.prank(alice);
        uint256 fee = hub.buy(id, 0, 100 * USDC, 0).fee;
        vm.assertEq(hub.market(id).fees, fee);
        vm.prank(stranger);
        vm.assertEq(hub.sweepFees(id), fee);
        vm.assertEq(usdc.balanceOf(treasury), fee);
        vm.assertEq(hub.market(id).fees, 0);
        vm.assertEq(hub.sweepFees(id), 0);
    }

    // --- bounds ---

    function test_a_buy_with_too_few_tokens_is_refused() external {
        uint256 tokens = hub.quote(id, 1, Side.BuyForUsdc, 10 * USDC).tokens;
        vm.prank(alice);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.SlippageExceeded.selector, tokens, tokens + 1));
        hub.buy(id, 1, 10 * USDC, tokens + 1);
    }

    function test_a_buy_of_tokens_that_costs_too_much_is_refused() external {
        uint256 cost = hub.quote(id, 1, Side.BuyTokens, 10e18).usdc;
        vm.prank(alice);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.SlippageExceeded.selector, cost, cost - 1));
        hub.buyTokens(id, 1, 10e18, cost - 1);
    }

    function test_a_sale_that_pays_too_little_is_refused() external {
        _buy(alice, id, 1, 10 * USDC);
        uint256 paid = hub.quote(id, 1, Side.SellTokens, 5e18).usdc;
        vm.prank(alice);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.SlippageExceeded.selector, paid, paid + 1));
        hub.sell(id, 1, 5e18, paid + 1);
    }

    function test_a_sale_for_usdc_that_takes_too_many_tokens_is_refused() external {
        _buy(alice, id, 1, 10 * USDC);
        uint256 tokens = hub.quote(id, 1, Side.SellForUsdc, USDC).tokens;
        vm.prank(alice);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.SlippageExceeded.selector, tokens, tokens - 1));
        hub.sellForUsdc(id, 1, USDC, tokens - 1);
    }

    function test_nobody_sells_more_than_they_hold() external {
        uint256 tokens = _buy(alice, id, 1, 10 * USDC);
        _buy(bob, id, 1, 10 * USDC);
        vm.prank(alice);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.PositionInsufficient.selector, tokens, tokens + 1));
        hub.sell(id, 1, tokens + 1, 0);
        vm.prank(alice);
        vm.expectRevert();
        hub.sellForUsdc(id, 1, 11 * USDC, type(uint256).max);
    }

    function test_zero_amounts_are_refused() external {
        vm.startPrank(alice);
        vm.expectRevert(IMarketHub.AmountZero.selector);
        hub.buy(id, 0, 0, 0);
        vm.expectRevert(IMarketHub.AmountZero.selector);
        hub.buyTokens(id, 0, 0, 1);
        vm.expectRevert(IMarketHub.AmountZero.selector);
        hub.sell(id, 0, 0, 0);
        vm.expectRevert(IMarketHub.AmountZero.selector);
        hub.sellForUsdc(id, 0, 0, 0);
    }

    function test_amounts_beyond_their_words_are_refused() external {
        vm.startPrank(alice);
        vm.expectRevert(IMarketHub.AmountTooLarge.selector);
        hub.buy(id, 0, uint256(1) << 64, 0);
        vm.expectRevert(IMarketHub.AmountTooLarge.selector);
        hub.buyTokens(id, 0, uint256(1) << 128, type(uint256).max);
    }

    function test_an_outcome_that_is_not_there_is_refused() external {
        vm.prank(alice);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.OutcomeInvalid.selector, 3));
        hub.buy(id, 3, USDC, 0);
    }

    function test_an_unknown_market_is_refused() external {
        vm.prank(alice);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.MarketUnknown.selector, 99));
        hub.buy(99, 0, USDC, 0);
    }

    function test_trading_stops_by_itself_at_the_close_time() external {
        vm.warp(hub.market(id).closeTime);
        vm.assertEq(uint256(hub.market(id).status), uint256(Status.Frozen));
        vm.prank(alice);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.MarketNotTradeable.selector, id, Status.Frozen));
        hub.buy(id, 0, USDC, 0);
    }

    function test_only_the_gate_trades_for_an_account() external {
        vm.prank(alice);
        vm.expectRevert(IMarketHub.NotAuthorized.selector);
        hub.tradeFor(alice, id, 0, Side.BuyForUsdc, USDC, 0, TRADE_ID);
    }

    // --- records ---

    function test_a_trade_is_logged_with_the_state_it_leaves() external {
        Fill memory fill = hub.quote(id, 2, Side.BuyForUsdc, 20 * USDC);
        vm.expectEmit(address(hub));
        emit IMarketHub.Trade(
            0,
            alice,
            _id(id, 2),
            Side.BuyForUsdc,
            uint64(fill.usdc),
            uint128(fill.tokens),
            uint64(fill.fee),
            fill.costAfter,
            fill.quantityAfter
        );
        _buy(alice, id, 2, 20 * USDC);
    }

    function test_a_quote_is_what_the_trade_then_moves() external {
        _buy(alice, id, 0, 40 * USDC);
        Fill memory quoted = hub.quote(id, 0, Side.SellTokens, 9e18);
        vm.prank(alice);
        Fill memory done = hub.sell(id, 0, 9e18, 0);
        vm.assertEq(abi.encode(quoted), abi.encode(done));
    }

    function test_an_outcome_counts_its_volume_its_trades_and_its_basis() external {
        uint256 tokens = _buy(alice, id, 0, 40 * USDC);
        vm.prank(alice);
        uint256 paid = hub.sell(id, 0, tokens / 4, 0).usdc;
        OutcomeState memory state = hub.outcome(id, 0);
        vm.assertEq(state.volume, 40 * USDC + paid);
        vm.assertEq(state.trades, 2);
        vm.assertEq(state.basis, 30 * USDC);
        vm.assertEq(state.supply, tokens - tokens / 4);
    }

    function test_a_sale_takes_its_share_of_the_basis_rounded_up() external {
        uint256 tokens = _buy(alice, id, 0, 10 * USDC);
        vm.prank(alice);
        hub.sell(id, 0, tokens / 3, 0);
        vm.assertEq(_basis(alice, id, 0), 10 * USDC - (10 * USDC * (tokens / 3) + tokens - 1) / tokens);
    }

    // --- no free lunch ---

    function testFuzz_a_round_trip_never_profits(uint256 amount, uint256 before, uint256 kind, uint16 feeBps) external {
        uint64 market = _market(2, uint16(_bound(feeBps, 0, 1000)), _bound(before >> 64, 1, 1e6) * USDC);
        uint256 b = hub.market(market).liquidity;
        _fund(bob, 20 * b, address(hub));
        _fund(alice, 20 * b, address(hub));
        _tryBuy(bob, market, uint8(before & 1), _bound(before, 1, 5 * b));

        uint256 start = usdc.balanceOf(alice);
        uint256 tokens;
        if (kind & 1 == 0) {
            tokens = _tryBuy(alice, market, 0, _bound(amount, 1, 5 * b));
        } else {
            tokens = _bound(amount, 1, 5e12 * b);
            vm.prank(alice);
            hub.buyTokens(market, 0, tokens, type(uint256).max);
        }
        if (tokens != 0) {
            vm.prank(alice);
            hub.sell(market, 0, tokens, 0);
        }
        vm.assertLe(usdc.balanceOf(alice), start);
        vm.assertEq(_basis(alice, market, 0), 0);
    }

    function testFuzz_selling_in_two_ways_never_profits(uint256 amount, uint256 part) external {
        uint256 start = usdc.balanceOf(alice);
        _buy(alice, id, 0, _bound(amount, 1000, 5000 * USDC));
        uint256 worth = hub.quote(id, 0, Side.SellTokens, _balance(alice, id, 0)).usdc;
        part = _bound(part, 1, worth);
        vm.prank(alice);
        try hub.sellForUsdc(id, 0, part, type(uint256).max) {} catch {}
        uint256 rest = _balance(alice, id, 0);
        if (rest != 0) {
            vm.prank(alice);
            hub.sell(id, 0, rest, 0);
        }
        vm.assertLe(usdc.balanceOf(alice), start);
    }

    function testFuzz_prices_sum_to_one(uint256 seed) external {
        uint64 market = _market(uint8(_bound(seed, 2, 12)), 100, _bound(seed >> 8, 1, 1e6) * USDC);
        MarketState memory state = hub.market(market);
        _fund(alice, 1e14, address(hub));
        for (uint256 i; i < 12; ++i) {
            seed = uint256(keccak256(abi.encode(seed)));
            uint8 index = uint8(_bound(seed, 0, state.outcomes - 1));
            vm.prank(alice);
            try hub.buyTokens(
                market, index, _bound(seed >> 8, 1, 2e12 * uint256(state.liquidity)), type(uint256).max
            ) {}
                catch {}
            uint256 held = _balance(alice, market, index);
            if (seed & 3 == 0 && held != 0) {
                vm.prank(alice);
                hub.sell(market, index, _bound(seed >> 16, 1, held), 0);
            }
        }
        uint256 sum;
        uint256[] memory prices = hub.prices(market);
        for (uint256 i; i < prices.length; ++i) {
            sum += prices[i];
        }
        vm.assertApproxEqAbs(sum, WAD, 1e9);
    }

    function _tryBuy(address who, uint64 market, uint8 index, uint256 amount) private returns (uint256 tokens) {
        vm.prank(who);
        try hub.buy(market, index, amount, 0) returns (Fill memory fill) {
            tokens = fill.tokens;
        } catch {}
    }
}
