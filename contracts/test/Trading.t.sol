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

    function test_a_buy_for_usdc_spends_exactly_that_amount_with_its_fee() external {
        uint256 before = usdc.balanceOf(alice);
        vm.prank(alice);
        Fill memory fill = hub.buy(id, 0, 10_000_001, 0);
        vm.assertEq(before - usdc.balanceOf(alice), 10_000_001);
        vm.assertEq(fill.fee, 200_001); // 2% of it, up
        vm.assertEq(fill.costAfter - fill.costBefore, (10_000_001 - 200_001) * 1e12);
    }

    function test_a_buy_of_tokens_receives_exactly_that_amount() external {
        vm.prank(alice);
        Fill memory fill = hub.buyTokens(id, 0, 25e18, type(uint256).max);
        vm.assertEq(_balance(alice, id, 0), 25e18);
        uint256 net = fill.usdc - fill.fee;
        vm.assertEq(net, (fill.costAfter - fill.costBefore + 1e12 - 1) / 1e12);
        vm.assertEq(fill.fee, (net * 200 + 9799) / 9800);
    }

    function test_a_sale_of_tokens_pays_the_curve_minus_the_fee() external {
        _buy(alice, id, 0, 50 * USDC);
        uint256 before = usdc.balanceOf(alice);
        vm.prank(alice);
        Fill memory fill = hub.sell(id, 0, 30e18, 0);
        uint256 gross = (fill.costBefore - fill.costAfter) / 1e12;
        vm.assertEq(fill.fee, (gross * 200 + 9999) / 10_000);
        vm.assertEq(usdc.balanceOf(alice) - before, gross - fill.fee);
    }

    function test_a_sale_for_usdc_pays_exactly_that_amount() external {
        _buy(alice, id, 0, 50 * USDC);
        uint256 before = usdc.balanceOf(alice);
        vm.prank(alice);
        Fill memory fill = hub.sellForUsdc(id, 0, 7 * USDC, type(uint256).max);
        vm.assertEq(usdc.balanceOf(alice) - before, 7 * USDC);
        vm.assertEq(fill.fee, (uint256(7 * USDC) * 200 + 9799) / 9800);
        vm.assertEq(fill.costBefore - fill.costAfter, (7 * USDC + fill.fee) * 1e12);
    }

    function test_fees_are_separate_until_swept_to_the_treasury() external {
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

    function test_a_buy_with_too_few_tokens_is_rejected() external {
        uint256 tokens = hub.quote(id, 1, Side.BuyForUsdc, 10 * USDC).tokens;
        vm.prank(alice);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.SlippageExceeded.selector, tokens, tokens + 1));
        hub.buy(id, 1, 10 * USDC, tokens + 1);
    }

    function test_a_buy_of_tokens_that_costs_too_much_is_rejected() external {
        uint256 cost = hub.quote(id, 1, Side.BuyTokens, 10e18).usdc;
        vm.prank(alice);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.SlippageExceeded.selector, cost, cost - 1));
        hub.buyTokens(id, 1, 10e18, cost - 1);
    }

    function test_a_sale_that_pays_too_little_is_rejected() external {
        _buy(alice, id, 1, 10 * USDC);
        uint256 paid = hub.quote(id, 1, Side.SellTokens, 5e18).usdc;
        vm.prank(alice);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.SlippageExceeded.selector, paid, paid + 1));
        hub.sell(id, 1, 5e18, paid + 1);
    }

    function test_a_sale_for_usdc_that_needs_too_many_tokens_is_rejected() external {
        _buy(alice, id, 1, 10 * USDC);
        uint256 tokens = hub.quote(id, 1, Side.SellForUsdc, USDC).tokens;
        vm.prank(alice);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.SlippageExceeded.selector, tokens, tokens - 1));
        hub.sellForUsdc(id, 1, USDC, tokens - 1);
    }

    function test_a_sale_above_the_balance_is_rejected() external {
        uint256 tokens = _buy(alice, id, 1, 10 * USDC);
        _buy(bob, id, 1, 10 * USDC);
        vm.prank(alice);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.PositionInsufficient.selector, tokens, tokens + 1));
        hub.sell(id, 1, tokens + 1, 0);
        vm.prank(alice);
        vm.expectRevert();
        hub.sellForUsdc(id, 1, 11 * USDC, type(uint256).max);
    }

    function test_zero_amounts_are_rejected() external {
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

    function test_amounts_beyond_their_fields_are_rejected() external {
        vm.startPrank(alice);
        vm.expectRevert(IMarketHub.AmountTooLarge.selector);
        hub.buy(id, 0, uint256(1) << 64, 0);
        vm.expectRevert(IMarketHub.AmountTooLarge.selector);
        hub.buyTokens(id, 0, uint256(1) << 128, type(uint256).max);
    }

    function test_an_unknown_outcome_is_rejected() external {
        vm.prank(alice);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.OutcomeInvalid.selector, 3));
        hub.buy(id, 3, USDC, 0);
    }

    function test_an_unknown_market_is_rejected() external {
        vm.prank(alice);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.MarketUnknown.selector, 99));
        hub.buy(99, 0, USDC, 0);
    }

    function test_trading_stops_automatically_at_the_close_time() external {
        vm.warp(hub.market(id).closeTime);
        vm.assertEq(uint256(hub.market(id).status), uint256(Status.Frozen));
        vm.prank(alice);
        vm.expectRevert(abi.encodeWithSelector(IMarketHub.MarketNotTradeable.selector, id, Status.Frozen));
        hub.buy(id, 0, USDC, 0);
    }

    function test_only_the_gate_can_trade_for_an_account() external {
        vm.prank(alice);
        vm.expectRevert(IMarketHub.NotAuthorized.selector);
        hub.fillForKey(_intent(alice, 1, id, 0, Side.BuyForUsdc, USDC, 0));
    }

    // --- records ---

    function test_a_trade_is_logged_with_the_new_state() external {
        Fill memory fill = hub.quote(id, 2, Side.BuyForUsdc, 20 * USDC);
        vm.expectEmit(address(hub));
        emit IMarketHub.Transfer(alice, address(0), alice, _id(id, 2), fill.tokens);
        _expectTrade(0, alice, _id(id, 2), Side.BuyForUsdc, fill);
        _buy(alice, id, 2, 20 * USDC);
    }

    function test_a_quote_equals_the_trade() external {
        _buy(alice, id, 0, 40 * USDC);
        Fill memory quoted = hub.quote(id, 0, Side.SellTokens, 9e18);
        vm.prank(alice);
        Fill memory done = hub.sell(id, 0, 9e18, 0);
        vm.assertEq(abi.encode(quoted), abi.encode(done));
    }

    function test_an_outcome_counts_its_volume_and_its_trades() external {
        uint256 tokens = _buy(alice, id, 0, 40 * USDC);
        vm.prank(alice);
        uint256 paid = hub.sell(id, 0, tokens / 4, 0).usdc;
        OutcomeState memory state = hub.outcome(id, 0);
        vm.assertEq(state.volume, 40 * USDC + paid);
        vm.assertEq(state.trades, 2);
        vm.assertEq(state.supply, tokens - tokens / 4);
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

    /// @dev Beyond a lead of 20 b the least price has fewer digits than the sum needs. A trade then loses up to four wei times
    /// `1 / price` of the sum, always for the pool.
    function testFuzz_prices_of_a_one_sided_market_sum_to_one_within_bounds(uint256 seed, uint256 lead) external {
        uint64 market = _market(2, 0, 1000 * USDC);
        _fund(alice, 1e14, address(hub));
        uint256 b = uint256(hub.market(market).liquidity) * 1e12;
        uint256 tokens = _bound(lead, 1, 35 * b);
        vm.startPrank(alice);
        while (tokens != 0) {
            uint256 part = tokens < 9 * b ? tokens : 9 * b;
            hub.buyTokens(market, 0, part, type(uint256).max);
            tokens -= part;
        }
        uint256 bound = 1e9 + _lostBound(market);
        for (uint256 i; i < 6; ++i) {
            seed = uint256(keccak256(abi.encode(seed)));
            try hub.buy(market, 1, _bound(seed, 1, 100 * USDC), 0) {} catch {}
            bound += _lostBound(market);
        }
        uint256[] memory prices = hub.prices(market);
        vm.assertLe(prices[0] + prices[1], WAD + 1e9);
        vm.assertLe(WAD, prices[0] + prices[1] + bound);
    }

    function test_a_buy_below_the_price_floor_is_rejected() external {
        uint64 market = _market(2, 0, USDC);
        _fund(alice, 1e14, address(hub));
        vm.startPrank(alice);
        for (uint256 i; i < 11; ++i) {
            hub.buy(market, 0, 10 * USDC, 0);
        }
        vm.expectRevert(IMarketHub.AmountTooLarge.selector);
        hub.buy(market, 1, USDC, 0);
        vm.expectRevert(IMarketHub.AmountTooLarge.selector);
        hub.buyTokens(market, 1, 1e18, type(uint256).max);
        hub.sell(market, 0, 20e18, 0);
        hub.buy(market, 1, USDC, 0);
    }

    function test_a_permit_replaces_the_approval() external {
        uint256 key = 0xca401;
        address who = vm.addr(key);
        usdc.mint(who, 10 * USDC);
        bytes32 permit = keccak256(
            abi.encode(
                keccak256("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)"),
                who,
                hub,
                10 * USDC,
                0,
                block.timestamp
            )
        );
        bytes32 digest = keccak256(abi.encodePacked(hex"1901", usdc.DOMAIN_SEPARATOR(), permit));
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(key, digest);
        vm.prank(stranger);
        vm.expectRevert("ERC20: transfer amount exceeds allowance");
        hub.buyWithPermit(id, 0, 10 * USDC, 0, block.timestamp, v, r, s);
        // Someone else may have used the permit before.
        usdc.permit(who, address(hub), 10 * USDC, block.timestamp, v, r, s);
        vm.prank(who);
        hub.buyWithPermit(id, 0, 10 * USDC, 0, block.timestamp, v, r, s);
        vm.assertEq(usdc.balanceOf(who) + usdc.allowance(who, address(hub)), 0);
    }

    function _lostBound(uint64 market) private view returns (uint256) {
        uint256 least = hub.prices(market)[1];
        return least == 0 ? WAD : 4 * WAD / least;
    }

    function _tryBuy(address who, uint64 market, uint8 index, uint256 amount) private returns (uint256 tokens) {
        vm.prank(who);
        try hub.buy(market, index, amount, 0) returns (Fill memory fill) {
            tokens = fill.tokens;
        } catch {}
    }
}
