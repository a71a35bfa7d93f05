// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {IGate, Intent, Limits, Policy} from "../../src/interfaces/IGate.sol";
import {IMarketHub, MarketState, MarketTerms, Side, Status} from "../../src/interfaces/IMarketHub.sol";
import {ITestUSDC} from "./ITestUSDC.sol";
import {Log, Test} from "./Test.sol";

struct Day {
    uint256 start;
    uint256 used;
}

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

    /// @dev Daily windows as the rule says it, beside those that the Gate holds in its words.
    mapping(address account => Day) private bought;
    mapping(address account => Day) private sold;
    mapping(bytes16 tradeId => uint256) private trades;
    uint256 public capsExceeded;
    uint256 public executedTwice;
    uint256 public raisedByOthers;
    uint256 public executed;
    uint256 public redeemed;
    uint256 public setsNotConserved;

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
        Policy memory policy = gate.policy(account, KEY);
        vm.recordLogs();
        vm.prank(executor);
        gate.execute(batch);

        Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i; i < logs.length; ++i) {
            if (logs[i].emitter != address(hub) || logs[i].topics[0] != IMarketHub.Trade.selector) continue;
            if (_hasFailed(logs, logs[i].topics[1])) continue;
            ++executed;
            if (++trades[bytes16(logs[i].topics[1])] > 1) ++executedTwice;
            if (block.timestamp > policy.expiry) ++capsExceeded;
            (uint256 packed, uint256 amounts,) = abi.decode(logs[i].data, (uint256, uint256, uint256));
            if (Side(uint8(packed)) <= Side.BuyTokens) {
                _count(bought[account], amounts >> 192, policy.perTrade, policy.daily);
            } else {
                uint256 face = (uint256(uint128(amounts)) + 1e12 - 1) / 1e12;
                _count(sold[account], face, policy.salePerTrade, policy.saleDaily);
            }
        }
    }

    /// @dev Recorded logs include those of calls that were undone.
    function _hasFailed(Log[] memory logs, bytes32 tradeId) private view returns (bool) {
        for (uint256 i; i < logs.length; ++i) {
            if (logs[i].emitter == address(gate) && logs[i].topics[0] == IGate.Failed.selector) {
                if (logs[i].topics[1] == tradeId) return true;
            }
        }
        return false;
    }

    // --- policies ---

    function setPolicy(uint256 who, uint256 perTrade, uint256 daily, uint256 expiry) external {
        vm.prank(_actor(who));
        gate.setPolicy(
            KEY,
            Limits({
                perTrade: uint64(_bound(perTrade, 1, 1e10)),
                daily: uint64(_bound(daily, 1, 5e10)),
                salePerTrade: uint64(_bound(perTrade >> 64, 0, 3e10)),
                saleDaily: uint64(_bound(daily >> 64, 0, 10e10)),
                expiry: uint32(block.timestamp + _bound(expiry, 0, 20 days))
            })
        );
    }

    function reducePolicy(uint256 who, uint256 by, uint64 perTrade, uint64 daily, uint32 expiry) external {
        address account = _actor(who);
        Policy memory before = gate.policy(account, KEY);
        // Some of these are no executor; some are another account.
        address caller = by % 2 == 0 ? executor : _actor(by);
        vm.prank(caller);
        Limits memory limits = Limits(perTrade, daily, perTrade, daily, expiry);
        try gate.reducePolicy(account, KEY, limits) {} catch {}
        if (by % 5 == 0) {
            vm.prank(caller);
            try gate.revokePolicy(account, KEY) {} catch {}
        }
        Policy memory policy = gate.policy(account, KEY);
        if (
            policy.perTrade > before.perTrade || policy.daily > before.daily || policy.expiry > before.expiry
                || policy.nonceTop < before.nonceTop || policy.spent < before.spent
                || policy.salePerTrade > before.salePerTrade || policy.saleDaily > before.saleDaily
                || policy.sold < before.sold
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
        payouts[how % payouts.length] += left;
        if (how % 18 == 0) {
            vm.prank(resolver);
            try hub.freeze(id) {} catch {}
            vm.prank(resolver);
            try hub.proposeCancel(id) {} catch {}
        } else {
            vm.prank(resolver);
            try hub.propose(id, payouts) {} catch {}
        }
    }

    function redeem(uint256 who, uint256 what) external {
        (uint64 id, uint8 index,) = _pick(what);
        try hub.redeem(_actor(who), id, index) returns (uint256 paid) {
            redeemed += paid;
        } catch {}
    }

    /// @dev A complete set is worth what was paid for it, and no price moves.
    function moveSets(uint256 who, uint256 what, uint256 amount, bool isSplit) external {
        (uint64 id,, MarketState memory market) = _pick(what);
        address account = _actor(who);
        bytes32 prices = keccak256(abi.encode(hub.prices(id)));
        (uint256 usdcBefore, uint256 least) = (usdc.balanceOf(account), _leastBalance(account, id, market.outcomes));
        amount = _bound(amount, 1, market.liquidity);
        vm.prank(account);
        if (isSplit) {
            try hub.split(id, amount) {} catch {}
        } else {
            try hub.merge(id, amount) {} catch {}
        }
        uint256 leastAfter = _leastBalance(account, id, market.outcomes);
        if (usdcBefore * 1e12 + least != usdc.balanceOf(account) * 1e12 + leastAfter) ++setsNotConserved;
        if (keccak256(abi.encode(hub.prices(id))) != prices) ++setsNotConserved;
    }

    function sweepFees(uint256 what) external {
        (uint64 id,,) = _pick(what);
        hub.sweepFees(id);
    }

    function wait(uint256 time) external {
        vm.warp(block.timestamp + _bound(time, 1, 1 days));
    }

    function _count(Day storage day, uint256 amount, uint256 perTrade, uint256 daily) private {
        if (block.timestamp >= day.start + 1 days) (day.start, day.used) = (block.timestamp, 0);
        day.used += amount;
        if (amount > perTrade || day.used > daily) ++capsExceeded;
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
        if (side == Side.SellAll) tokens = hub.balanceOf(account, uint256(id) << 8 | index);
        if (side == Side.SellForUsdc) tokens = _bound(seed >> 88, 0, 5e12 * uint256(market.liquidity));
        intent.who = uint256(uint160(account)) << 96 | uint256(KEY) << 64 | nonce << 32 | block.timestamp;
        intent.what = uint256(id) << 80 | uint256(index) << 72 | uint256(side) << 64 | amount;
        intent.bound = tokens << 128 | uint128(tradeId);
    }

    function _leastBalance(address account, uint64 id, uint256 outcomes) private view returns (uint256 least) {
        least = type(uint256).max;
        for (uint256 i; i < outcomes; ++i) {
            uint256 balance = hub.balanceOf(account, _id(id, i));
            if (balance < least) least = balance;
        }
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
