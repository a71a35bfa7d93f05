// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {IAuthority, Roles} from "../../src/interfaces/IAuthority.sol";
import {IGate, Intent, Limits} from "../../src/interfaces/IGate.sol";
import {Fill, HubSettings, IMarketHub, MarketTerms, Side} from "../../src/interfaces/IMarketHub.sol";
import {ITestUSDC} from "./ITestUSDC.sol";
import {Test} from "./Test.sol";

/// @notice The whole system as it is deployed, and the moves that most tests begin with.
/// @dev Contracts are known by their interfaces alone.
abstract contract Fixture is Test {
    uint256 internal constant USDC = 1e6;
    uint256 internal constant WAD = 1e18;
    uint32 internal constant KEY = 7;
    bytes16 internal constant TRADE_ID = 0x0193f2b4c8d07aa18b0e5f2d6c9a4e11;

    address internal owner = _named("owner");
    address internal resolver = _named("resolver");
    address internal guardian = _named("guardian");
    address internal treasury = _named("treasury");
    address internal executor = _named("executor");
    address internal stranger = _named("stranger");
    address internal alice = _named("alice");
    address internal bob = _named("bob");

    ITestUSDC internal usdc;
    IAuthority internal authority;
    IMarketHub internal hub;
    IGate internal gate;

    function setUp() public virtual {
        vm.warp(1_800_000_000);
        usdc = ITestUSDC(_deploy("TestUSDC", abi.encode(this)));
        _deploySystem(0, 0);
    }

    /// @dev Delays of a development chain, except for these two.
    function _deploySystem(uint32 listingDelay, uint32 vetoWindow) internal {
        _deploySystem(HubSettings(listingDelay, vetoWindow, 0, 1 days, 30 days), 0);
    }

    function _deploySystem(HubSettings memory settings) internal {
        _deploySystem(settings, 0);
    }

    /// @dev The Gate's address is predicted from the nonce.
    /// @param delay Of the authority: what a gain of power waits.
    function _deploySystem(HubSettings memory settings, uint32 delay) internal {
        authority = IAuthority(_deploy("Authority", abi.encode(Roles(owner, resolver, guardian, treasury), delay)));
        address predicted = vm.computeCreateAddress(address(this), vm.getNonce(address(this)) + 1);
        hub = IMarketHub(_deploy("MarketHub", abi.encode(usdc, predicted, authority, settings)));
        address[] memory executors = new address[](1);
        executors[0] = executor;
        gate = IGate(_deploy("Gate", abi.encode(authority, usdc, hub, executors, type(uint64).max)));
        vm.assertEq(address(gate), predicted);
        _fund(resolver, 1e9 * USDC, address(hub));
    }

    function _fund(address who, uint256 amount, address spender) internal {
        usdc.mint(who, amount);
        vm.prank(who);
        usdc.approve(spender, type(uint256).max);
    }

    /// @dev USDC, and the delegation of a key: as an owner's first batch does it.
    function _delegate(address who, uint256 amount) internal {
        _fund(who, amount, address(gate));
        vm.prank(who);
        gate.setPolicy(KEY, _limits(1000 * USDC, 5000 * USDC, block.timestamp + 30 days));
    }

    /// @dev Ten tokens may be sold for each USDC that may be spent.
    function _limits(uint256 perTrade, uint256 daily, uint256 expiry) internal pure returns (Limits memory) {
        return Limits(uint64(perTrade), uint64(daily), uint64(10 * perTrade), uint64(10 * daily), uint32(expiry));
    }

    function _terms(uint8 outcomes, uint16 feeBps, uint256 liquidity) internal view returns (MarketTerms memory) {
        return MarketTerms({
            ref: keccak256(abi.encode(hub.marketCount())),
            outcomes: outcomes,
            feeBps: feeBps,
            closeTime: uint32(block.timestamp + 60 days),
            liquidity: uint64(liquidity),
            openingOdds: new uint256[](0)
        });
    }

    function _market(uint8 outcomes, uint16 feeBps, uint256 liquidity) internal returns (uint64) {
        MarketTerms memory terms = _terms(outcomes, feeBps, liquidity);
        vm.prank(resolver);
        return hub.createMarket(terms);
    }

    function _buy(address who, uint64 id, uint8 outcome, uint256 amount) internal returns (uint256) {
        vm.prank(who);
        return hub.buy(id, outcome, amount, 0).tokens;
    }

    function _winner(uint256 outcomes, uint256 index) internal pure returns (uint256[] memory payouts) {
        payouts = new uint256[](outcomes);
        payouts[index] = WAD;
    }

    /// @dev Freezes the market, and cancels it at once: only without a minimum freeze and a veto window.
    function _cancel(uint64 id) internal {
        vm.startPrank(resolver);
        hub.freeze(id);
        hub.proposeCancel(id);
        vm.stopPrank();
    }

    function _resolve(uint64 id, uint256 index) internal {
        uint256[] memory payouts = _winner(hub.market(id).outcomes, index);
        vm.prank(resolver);
        hub.propose(id, payouts);
    }

    function _id(uint64 market, uint256 outcome) internal pure returns (uint256) {
        return uint256(market) << 8 | outcome;
    }

    function _balance(address who, uint64 market, uint256 outcome) internal view returns (uint256 balance) {
        balance = hub.balanceOf(who, _id(market, outcome));
    }

    /// @dev USDC traded on an outcome.
    function _volume(uint64 market, uint256 outcome) internal view returns (uint256) {
        return hub.outcome(market, uint8(outcome)).volume;
    }

    /// @dev The event of a trade, as the hub packs it.
    function _expectTrade(bytes16 tradeId, address who, uint256 id, Side side, Fill memory fill) internal {
        vm.expectEmit(address(hub));
        emit IMarketHub.Trade(
            tradeId,
            uint256(uint160(who)) << 96 | id << 8 | uint256(side),
            fill.usdc << 192 | fill.fee << 128 | fill.tokens,
            fill.costAfter << 128 | fill.quantityAfter
        );
    }

    /// @dev The side and the USDC of a `Trade`, from its data.
    function _tradeOf(bytes memory data) internal pure returns (address account, Side side, uint256 amount) {
        (uint256 what, uint256 amounts,) = abi.decode(data, (uint256, uint256, uint256));
        return (address(uint160(what >> 96)), Side(uint8(what)), amounts >> 192);
    }

    function _intent(address who, uint32 nonce, uint64 market, uint8 outcome, Side side, uint256 amount, uint256 tokens)
        internal
        view
        returns (Intent memory)
    {
        return Intent({
            who: uint256(uint160(who)) << 96 | uint256(KEY) << 64 | uint256(nonce) << 32 | block.timestamp + 60,
            what: uint256(market) << 80 | uint256(outcome) << 72 | uint256(side) << 64 | amount,
            bound: tokens << 128 | uint128(TRADE_ID)
        });
    }

    function _one(Intent memory intent) internal pure returns (Intent[] memory list) {
        list = new Intent[](1);
        list[0] = intent;
    }

    function _execute(Intent memory intent) internal {
        vm.prank(executor);
        gate.execute(_one(intent));
    }

    function _expectFailed(address who, uint32 nonce, bytes memory reason) internal {
        vm.expectEmit(address(gate));
        emit IGate.Failed(TRADE_ID, who, KEY, nonce, reason);
    }

    function _expectDuplicate(address who, uint32 nonce) internal {
        vm.expectEmit(address(gate));
        emit IGate.Duplicate(TRADE_ID, who, KEY, nonce);
    }
}
