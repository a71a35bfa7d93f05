// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {IGate, Intent, Policy} from "../../src/interfaces/IGate.sol";
import {IMarketHub, MarketState, MarketTerms, Side, Status} from "../../src/interfaces/IMarketHub.sol";
import {ITestUSDC} from "./ITestUSDC.sol";
import {Log, Test} from "./Test.sol";

/// @notice A random history: three accounts trade by themselves and through the Gate, on markets that come, freeze, resolve
/// and are cancelled. It keeps books of its own, which the invariants compare with the contracts'.
contract Handler is Test {
    uint256 private constant WAD = 1e18;
    uint32 private constant KEY = 1;

    IMarketHub private immutable hub;
    IGate private immutable gate;
    ITestUSDC private immutable usdc;
    address private immutable resolver;
    address private immutable guardian;
    address private immutable executor;

    address[] public actors;

    /// @dev A daily window as the rule says it, next to the one that the Gate keeps in its word.
    mapping(address account => uint256) public windowStart;
    mapping(address account => uint256) public spent;
    mapping(bytes16 tradeId => uint256) private trades;
    uint256 public capsExceeded;
    uint256 public executedTwice;
    uint256 public raisedByOthers;
    uint256 public executed;
    uint256 public redeemed;

    constructor(
        IMarketHub hub_,
        IGate gate_,
        ITestUSDC usdc_,
        address resolver_,
        address guardian_,
        address executor_,
        address[] memory actors_
    ) {
        (hub, gate, usdc, actors) = (hub_, gate_, usdc_, actors_);
        (resolver, guardian, executor) = (resolver_, guardian_, executor_);
    }

    function actorCount() external view returns (uint256) {
        return actors.length;
    }

    // --- trading ---

    function buy(uint256 who, uint256 what, uint256 amount) external {
        (uint64 id, uint8 index, MarketState memory market) = _pick(what);
        vm.prank(_actor(who));
        try hub.buy(id, index, _bound(amount, 1, 3 * uint256(market.liquidity)), 0) {} catch {}
    }

    function buyTokens(uint256 who, uint256 what, uint256 amount) external {
        (uint64 id, uint8 index, MarketState memory market) = _pick(what);
        vm.prank(_actor(who));
        try hub.buyTokens(id, index, _bound(amount, 1, 3e12 * uint256(market.liquidity)), type(uint256).max) {} catch {}
    }

    function sell(uint256 who, uint256 what, uint256 amount) external {
        (uint64 id, uint8 index,) = _pick(what);
        uint256 held = hub.balanceOf(_actor(who), _id(id, index));
        if (held == 0) return;
        vm.prank(_actor(who));
        try hub.sell(id, index, amount % 4 == 0 ? held : _bound(amount, 1, held), 0) {} catch {}
    }

    function sellForUsdc(uint256 who, uint256 what, uint256 amount) external {
        (uint64 id, uint8 index, MarketState memory market) = _pick(what);
        vm.prank(_actor(who));
        try hub.sellForUsdc(id, index, _bound(amount, 1, market.liquidity), type(uint256).max) {} catch {}
    }

    function transfer(uint256 from, uint256 to, uint256 what, uint256 amount) external {
        (uint64 id, uint8 index,) = _pick(what);
        uint256 held = hub.balanceOf(_actor(from), _id(id, index));
        vm.prank(_actor(from));
        try hub.transfer(_actor(to), _id(id, index), _bound(amount, 0, held)) {} catch {}
    }

    /// @dev Three intents, nonces near the highest, now and then one again.
    function execute(uint256 who, uint256 what, uint256 seed) external {
        address account = _actor(who);
        Intent[] memory batch = new Intent[](3);
        bytes16[] memory ids = new bytes16[](3);
        for (uint256 i; i < batch.length; ++i) {
            seed = uint256(keccak256(abi.encode(seed)));
            uint256 top = gate.policy(account, KEY).nonceTop;
            uint256 nonce = seed % 4 == 0 ? _bound(seed >> 8, 0, top) : top + _bound(seed >> 8, 0, 6);
            ids[i] = bytes16(keccak256(abi.encode(account, nonce)));
            batch[i] = _randomIntent(account, nonce, what, seed, ids[i]);
        }
        uint256 perTrade = gate.policy(account, KEY).perTrade;
        uint256 daily = gate.policy(account, KEY).daily;
        uint256 expiry = gate.policy(account, KEY).expiry;
        vm.recordLogs();
        vm.prank(executor);
        gate.execute(batch);

        Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i; i < logs.length; ++i) {
            if (logs[i].emitter != address(hub)) continue;
            ++executed;
            if (++trades[bytes16(logs[i].topics[1])] > 1) ++executedTwice;
            if (block.timestamp > expiry) ++capsExceeded;
            (Side side, uint64 amount) = abi.decode(logs[i].data, (Side, uint64));
            if (side <= Side.BuyTokens) _account(account, amount, perTrade, daily);
        }
    }

    // --- policies ---

    function setPolicy(uint256 who, uint256 perTrade, uint256 daily, uint256 expiry) external {
        vm.prank(_actor(who));
        gate.setPolicy(
            KEY,
            uint64(_bound(perTrade, 1, 1e10)),
            uint64(_bound(daily, 1, 5e10)),
            uint32(block.timestamp + _bound(expiry, 0, 20 days))
        );
    }

    function reducePolicy(uint256 who, uint256 by, uint64 perTrade, uint64 daily, uint32 expiry) external {
        address account = _actor(who);
        Policy memory before = gate.policy(account, KEY);
        // Some of these are no executor; some are another account.
        address caller = by % 2 == 0 ? executor : _actor(by);
        vm.prank(caller);
        try gate.reducePolicy(account, KEY, perTrade, daily, expiry) {} catch {}
        if (by % 5 == 0) {
            vm.prank(caller);
            try gate.revokePolicy(account, KEY) {} catch {}
        }
        Policy memory policy = gate.policy(account, KEY);
        if (
            policy.perTrade > before.perTrade || policy.daily > before.daily || policy.expiry > before.expiry
                || policy.nonceTop < before.nonceTop || policy.spent < before.spent
        ) ++raisedByOthers;
    }

    // --- the life of markets ---

    function createMarket(uint256 seed) external {
        if (hub.marketCount() >= 6) return;
        MarketTerms memory terms;
        terms.ref = keccak256(abi.encode(hub.marketCount()));
        terms.outcomes = uint8(_bound(seed, 2, 5));
        terms.feeBps = uint16(_bound(seed >> 8, 0, 1000));
        terms.closeTime = uint32(block.timestamp + 400 days);
        terms.liquidity = uint64(_bound(seed >> 32, 1e6, 1e10));
        if (seed % 2 == 0) {
            terms.openingOdds = new uint256[](terms.outcomes);
            uint256 left = WAD;
            for (uint256 i = 1; i < terms.outcomes; ++i) {
                terms.openingOdds[i] = _bound(uint256(keccak256(abi.encode(seed, i))), 1e12, left / 2);
                left -= terms.openingOdds[i];
            }
            terms.openingOdds[0] = left;
        }
        vm.prank(resolver);
        hub.createMarket(terms);
    }

    function freezeOrUnfreeze(uint256 what) external {
        (uint64 id,, MarketState memory market) = _pick(what);
        vm.prank(guardian);
        if (market.status == Status.Open) {
            hub.freeze(id);
        } else {
            try hub.unfreeze(id) {} catch {}
        }
    }

    /// @dev Rare enough that markets live for a while.
    function settle(uint256 what, uint256 how) external {
        (uint64 id,, MarketState memory market) = _pick(what);
        if (how % 6 != 0 || hub.marketCount() < 3) return;
        uint256[] memory payouts = new uint256[](market.outcomes);
        uint256 left = WAD;
        for (uint256 i; i < payouts.length; ++i) {
            payouts[i] = (how >> 8) % 2 == 0
                ? ((how >> 16) % payouts.length == i ? WAD : 0)
                : _bound(uint256(keccak256(abi.encode(how, i))), 1, left / 2);
            left -= payouts[i];
        }
        vm.prank(resolver);
        if (how % 18 == 0) {
            try hub.cancel(id) {} catch {}
        } else if (how % 18 == 6) {
            try hub.cancelWithPayouts(id, payouts) {} catch {}
        } else {
            try hub.propose(id, payouts) {} catch {}
        }
    }

    function redeem(uint256 who, uint256 what) external {
        (uint64 id, uint8 index,) = _pick(what);
        try hub.redeem(_actor(who), id, index) returns (uint256 paid) {
            redeemed += paid;
        } catch {}
    }

    function topUp(uint256 who, uint256 what, uint64 amount) external {
        (uint64 id,,) = _pick(what);
        vm.prank(_actor(who));
        try hub.topUp(id, amount) {} catch {}
    }

    function sweepFees(uint256 what) external {
        (uint64 id,,) = _pick(what);
        hub.sweepFees(id);
    }

    function wait(uint256 time) external {
        vm.warp(block.timestamp + _bound(time, 1, 1 days));
    }

    function _account(address account, uint256 amount, uint256 perTrade, uint256 daily) private {
        if (block.timestamp >= windowStart[account] + 1 days) {
            (windowStart[account], spent[account]) = (block.timestamp, 0);
        }
        spent[account] += amount;
        if (amount > perTrade || spent[account] > daily) ++capsExceeded;
    }

    function _randomIntent(address account, uint256 nonce, uint256 what, uint256 seed, bytes16 tradeId)
        private
        view
        returns (Intent memory intent)
    {
        (uint64 id, uint8 index, MarketState memory market) = _pick(what ^ seed >> 200);
        Side side = Side((seed >> 16) % 5);
        uint256 amount = _bound(seed >> 24, 0, 2 * uint256(market.liquidity));
        uint256 tokens = _bound(seed >> 88, 0, 1e12 * uint256(market.liquidity));
        if (side == Side.BuyForUsdc) tokens = 0;
        if (side == Side.SellTokens || side == Side.SellAll) amount = 0;
        if (side == Side.SellForUsdc) tokens = type(uint128).max;
        intent.who = uint256(uint160(account)) << 96 | uint256(KEY) << 64 | nonce << 32 | block.timestamp;
        intent.what = uint256(id) << 80 | uint256(index) << 72 | uint256(side) << 64 | amount;
        intent.bound = tokens << 128 | uint128(tradeId);
    }

    function _actor(uint256 seed) private view returns (address) {
        return actors[seed % actors.length];
    }

    function _pick(uint256 seed) private view returns (uint64 id, uint8 index, MarketState memory market) {
        id = uint64(1 + seed % hub.marketCount());
        market = hub.market(id);
        index = uint8((seed >> 64) % market.outcomes);
    }

    function _id(uint64 market, uint256 index) private pure returns (uint256) {
        return uint256(market) << 8 | index;
    }
}
