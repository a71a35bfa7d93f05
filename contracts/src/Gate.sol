// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {IGate, Intent, Policy} from "./interfaces/IGate.sol";
import {IMarketHub, Side} from "./interfaces/IMarketHub.sol";
import {Intents} from "./libraries/Intents.sol";
import {PolicyWord, PolicyWordLib} from "./types/PolicyWord.sol";
import {VolumeWord} from "./types/VolumeWord.sol";

/// @dev A cell of one word: a reference to it is hashed once and then read and written.
struct PolicyCell {
    PolicyWord word;
}

/// @notice Accounts approve their USDC to this contract and to no other of the service. All it can do with that approval
/// is `transferFrom(account, hub)`, in the same call in which the hub credits the position to that account.
/// @dev Hub and Gate name each other as immutables. Whoever deploys them predicts the second address from the first's
/// CREATE nonce.
contract Gate is IGate {
    using Intents for uint256;
    using SafeERC20 for IERC20;

    uint256 private constant MAX_INTENTS = 100;
    uint256 private constant MAX_REASON = 256;
    /// @dev Well above what any single trade uses. A trade must never be recorded as failed for want of gas.
    uint256 private constant GAS_PER_TRADE = 400_000;
    uint8 private constant LAST_BUY = uint8(Side.BuyTokens);

    IERC20 private immutable _usdc;
    IMarketHub private immutable _hub;

    address public guardian;
    VolumeWord private _volume;
    mapping(address executor => bool) public isExecutor;
    mapping(address account => mapping(uint32 key => PolicyCell)) private _policies;

    modifier onlyExecutor() {
        if (!isExecutor[msg.sender]) revert NotExecutor();
        _;
    }

    modifier onlyGuardian() {
        if (msg.sender != guardian) revert NotAuthorized();
        _;
    }

    constructor(address usdc_, address hub_, address guardian_, address[] memory executors, uint64 hourlyVolumeCap_) {
        _usdc = IERC20(usdc_);
        _hub = IMarketHub(hub_);
        _setGuardian(guardian_);
        for (uint256 i; i < executors.length; ++i) {
            _setExecutor(executors[i], true);
        }
        _setHourlyVolumeCap(hourlyVolumeCap_);
    }

    // --- delegations ---

    function setPolicy(uint32 key, uint64 perTrade, uint64 daily, uint32 expiry) external {
        if (expiry == 0) revert PolicyInvalid();
        _setLimits(msg.sender, key, perTrade, daily, expiry);
    }

    function reducePolicy(address account, uint32 key, uint64 perTrade, uint64 daily, uint32 expiry)
        external
        onlyExecutor
    {
        PolicyWord word = _policies[account][key].word;
        if (perTrade > word.perTrade()) perTrade = word.perTrade();
        if (daily > word.daily()) daily = word.daily();
        if (expiry > word.expiry()) expiry = word.expiry();
        _setLimits(account, key, perTrade, daily, expiry);
    }

    function revokePolicy(address account, uint32 key) external {
        if (msg.sender != account && !isExecutor[msg.sender]) revert NotAuthorized();
        _setLimits(account, key, 0, 0, 0);
    }

    function policy(address account, uint32 key) external view returns (Policy memory) {
        return _policies[account][key].word.unpack();
    }

    function isNonceUsed(address account, uint32 key, uint32 nonce) external view returns (bool) {
        return _policies[account][key].word.isUsed(nonce);
    }

    // --- trades ---

    function execute(Intent[] calldata intents) external onlyExecutor {
        if (intents.length > MAX_INTENTS) revert BatchTooLarge();
        VolumeWord volume = _volume;
        if (volume.paused()) revert IsPaused();

        volume = volume.rolled();
        for (uint256 i; i < intents.length; ++i) {
            Intent calldata intent = intents[i];
            volume = volume.drawn(_settle(intent.who, intent.what, intent.bound, volume.left()));
        }
        _volume = volume;
    }

    /// @notice One trade, for `execute` alone: an outer call of its own, so that a failure undoes it and nothing else.
    /// @param volumeLeft USDC atomic-6 that the hour has left.
    function trade(address account, uint256 what, uint256 bound, uint256 volumeLeft) external returns (uint256 moved) {
        if (msg.sender != address(this)) revert NotAuthorized();
        uint8 side = what.side();
        moved = _hub.tradeFor(
            account, what.marketId(), what.outcome(), Side(side), what.usdc(), bound.tokens(), bound.tradeId()
        );
        if (moved > volumeLeft) revert HourlyVolumeExceeded();
        if (side <= LAST_BUY) _usdc.safeTransferFrom(account, address(_hub), moved);
    }

    /// @dev Never reverts, except for want of gas: an intent ends in the hub's `Trade`, in `Failed` or in `Duplicate`.
    /// @return moved USDC atomic-6, zero if the trade did not happen.
    function _settle(uint256 who, uint256 what, uint256 bound, uint256 volumeLeft) private returns (uint256 moved) {
        if (gasleft() < GAS_PER_TRADE) revert GasTooLow();
        address account = who.account();
        PolicyCell storage cell = _policies[account][who.key()];
        PolicyWord word = cell.word;
        if (word.isUsed(who.nonce())) {
            emit Duplicate(bound.tradeId(), account, who.key(), who.nonce());
            return 0;
        }
        uint256 spend = what.side() <= LAST_BUY ? what.usdc() : 0;
        PolicyWord rolled = spend == 0 ? word : word.rolled();
        bytes memory reason = _refusal(rolled, who, spend);
        if (reason.length != 0) {
            if (who.nonce() <= PolicyWordLib.MAX_NONCE) cell.word = word.withNonce(who.nonce());
            emit Failed(bound.tradeId(), account, who.key(), who.nonce(), reason);
            return 0;
        }

        // The most that the trade can cost is drawn before anyone else is called, the rest given back afterwards.
        rolled = rolled.withNonce(who.nonce());
        cell.word = rolled.charged(spend);

        bool done;
        (done, moved, reason) = _tryTrade(account, what, bound, volumeLeft);
        if (!done) {
            if (spend != 0) cell.word = word.withNonce(who.nonce());
            emit Failed(bound.tradeId(), account, who.key(), who.nonce(), reason);
        } else if (spend > moved) {
            cell.word = rolled.charged(moved);
        }
    }

    /// @return Why the policy does not allow the trade, as an encoded error; empty if it does.
    function _refusal(PolicyWord word, uint256 who, uint256 spend) private view returns (bytes memory) {
        if (who.nonce() > PolicyWordLib.MAX_NONCE) return abi.encodeWithSelector(NonceTooLarge.selector, who.nonce());
        if (block.timestamp > who.deadline()) return abi.encodeWithSelector(DeadlinePassed.selector, who.deadline());
        uint32 expiry = word.expiry();
        if (expiry == 0) return abi.encodeWithSelector(PolicyMissing.selector);
        if (block.timestamp > expiry) return abi.encodeWithSelector(PolicyExpired.selector, expiry);
        if (spend > word.perTrade()) {
            return abi.encodeWithSelector(PerTradeCapExceeded.selector, spend, word.perTrade());
        }
        if (spend > word.left()) return abi.encodeWithSelector(DailyCapExceeded.selector, spend, word.left());
        return "";
    }

    /// @dev Copies no more of the revert data than the event may carry, whatever the callee returns.
    function _tryTrade(address account, uint256 what, uint256 bound, uint256 volumeLeft)
        private
        returns (bool done, uint256 moved, bytes memory reason)
    {
        bytes memory data = abi.encodeCall(Gate.trade, (account, what, bound, volumeLeft));
        assembly ("memory-safe") {
            done := call(gas(), address(), 0, add(data, 0x20), mload(data), 0, 0x20)
            switch done
            case 0 {
                let size := returndatasize()
                if gt(size, MAX_REASON) { size := MAX_REASON }
                reason := mload(0x40)
                mstore(reason, size)
                returndatacopy(add(reason, 0x20), 0, size)
                mstore(0x40, add(reason, and(add(size, 0x3f), not(0x1f))))
            }
            default { moved := mload(0) }
        }
    }

    // --- guardian ---

    function setPaused(bool paused_) external onlyGuardian {
        _volume = _volume.withPaused(paused_);
        emit Paused(paused_);
    }

    function setHourlyVolumeCap(uint64 usdc_) external onlyGuardian {
        _setHourlyVolumeCap(usdc_);
    }

    function setExecutor(address executor, bool allowed) external onlyGuardian {
        _setExecutor(executor, allowed);
    }

    function transferGuardian(address to) external onlyGuardian {
        _setGuardian(to);
    }

    // --- views ---

    function hub() external view returns (address) {
        return address(_hub);
    }

    function usdc() external view returns (address) {
        return address(_usdc);
    }

    function paused() external view returns (bool) {
        return _volume.paused();
    }

    function hourlyVolumeCap() external view returns (uint64) {
        return _volume.cap();
    }

    function hourlyVolume() external view returns (uint64 used, uint32 windowStart) {
        VolumeWord volume = _volume.rolled();
        return (volume.used(), volume.windowStart());
    }

    // --- helpers ---

    function _setLimits(address account, uint32 key, uint64 perTrade, uint64 daily, uint32 expiry) private {
        PolicyCell storage cell = _policies[account][key];
        cell.word = cell.word.withLimits(perTrade, daily, expiry);
        emit PolicySet(account, key, perTrade, daily, expiry);
    }

    function _setHourlyVolumeCap(uint64 usdc_) private {
        _volume = _volume.withCap(usdc_);
        emit HourlyVolumeCapSet(usdc_);
    }

    function _setExecutor(address executor, bool allowed) private {
        isExecutor[executor] = allowed;
        emit ExecutorSet(executor, allowed);
    }

    function _setGuardian(address to) private {
        if (to == address(0)) revert NotAuthorized();
        emit GuardianTransferred(guardian, to);
        guardian = to;
    }
}
