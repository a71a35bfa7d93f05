// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {IAuthority} from "./interfaces/IAuthority.sol";
import {Executor, IGate, Intent, Limits, Policy} from "./interfaces/IGate.sol";
import {IMarketHub, Side} from "./interfaces/IMarketHub.sol";
import {Intents} from "./libraries/Intents.sol";
import {ExecutorWord, ExecutorWordLib} from "./types/ExecutorWord.sol";
import {PolicyWord, PolicyWordLib} from "./types/PolicyWord.sol";

/// @dev Cells of words: a reference to a cell is hashed once and then read and written.
struct PolicyCell {
    PolicyWord word; // buys, expiry and nonces
    PolicyWord sales;
}

struct ExecutorCell {
    ExecutorWord word;
}

struct ExecutorProposal {
    address by; // zero: none
    uint64 hourlyCap;
    uint64 enactableAt;
}

/// @notice Accounts approve their USDC to this contract and to no other of the service. All it can do with that approval
/// is `transferFrom(account, hub)`, in the same call in which the hub credits the position to that account.
/// @dev Hub and Gate name each other as immutables: `Deployment` creates both in one transaction.
contract Gate is IGate {
    using Intents for uint256;
    using SafeERC20 for IERC20;

    uint256 public constant MAX_EXECUTORS = 16;

    uint256 private constant MAX_INTENTS = 100;
    uint256 private constant MAX_REASON = 256;
    /// @dev Well above what any single trade uses. A trade must never be recorded as failed for lack of gas.
    uint256 private constant GAS_PER_TRADE = 400_000;
    uint8 private constant LAST_BUY = uint8(Side.BuyTokens);

    IERC20 private immutable _usdc;
    IMarketHub private immutable _hub;
    IAuthority private immutable _authority;

    bool public paused;
    address[] private _executorList;
    mapping(address executor => ExecutorCell) private _executors;
    mapping(address executor => ExecutorProposal) private _proposals;
    mapping(address account => mapping(uint32 key => PolicyCell)) private _policies;

    modifier onlyOwnerOrGuardian() {
        if (msg.sender != _authority.guardian() && msg.sender != _authority.owner()) revert NotAuthorized();
        _;
    }

    /// @param executors_ The first executors, all with the same hourly cap; later ones wait for the authority's delay.
    constructor(address authority_, address usdc_, address hub_, address[] memory executors_, uint64 hourlyCap) {
        _authority = IAuthority(authority_);
        _usdc = IERC20(usdc_);
        _hub = IMarketHub(hub_);
        for (uint256 i; i < executors_.length; ++i) {
            _checkExecutor(executors_[i], hourlyCap);
            _setExecutor(executors_[i], hourlyCap);
        }
    }

    // --- delegations ---

    function setPolicy(uint32 key, Limits calldata limits) external {
        if (limits.expiry == 0) revert PolicyInvalid();
        _setLimits(msg.sender, key, limits);
    }

    function reducePolicy(address account, uint32 key, Limits calldata limits) external {
        if (!_executors[msg.sender].word.allowed()) revert NotExecutor();
        PolicyWord word = _policies[account][key].word;
        PolicyWord sales = _policies[account][key].sales;
        Limits memory lower = limits;
        if (lower.perTrade > word.perTrade()) lower.perTrade = word.perTrade();
        if (lower.daily > word.daily()) lower.daily = word.daily();
        if (lower.expiry > word.expiry()) lower.expiry = word.expiry();
        if (lower.salePerTrade > sales.perTrade()) lower.salePerTrade = sales.perTrade();
        if (lower.saleDaily > sales.daily()) lower.saleDaily = sales.daily();
        _setLimits(account, key, lower);
    }

    function revokePolicy(address account, uint32 key) external {
        if (msg.sender != account && !_executors[msg.sender].word.allowed()) revert NotAuthorized();
        _setLimits(account, key, Limits(0, 0, 0, 0, 0));
    }

    function policy(address account, uint32 key) external view returns (Policy memory) {
        PolicyWord word = _policies[account][key].word;
        PolicyWord sales = _policies[account][key].sales;
        return Policy({
            perTrade: word.perTrade(),
            daily: word.daily(),
            salePerTrade: sales.perTrade(),
            saleDaily: sales.daily(),
            expiry: word.expiry(),
            spent: word.spent(),
            windowStart: word.windowStart(),
            sold: sales.spent(),
            saleWindowStart: sales.windowStart(),
            nonceTop: word.nonceTop(),
            nonceBitmap: word.nonceBitmap()
        });
    }

    function isNonceUsed(address account, uint32 key, uint32 nonce) external view returns (bool) {
        return _policies[account][key].word.isUsed(nonce);
    }

    // --- trades ---

    function execute(Intent[] calldata intents) external {
        ExecutorWord executor_ = _executors[msg.sender].word;
        if (!executor_.allowed()) revert NotExecutor();
        if (executor_.paused()) revert IsPaused();
        if (intents.length > MAX_INTENTS) revert BatchTooLarge();
        if (executor_.cap() == ExecutorWordLib.NO_CAP) {
            for (uint256 i; i < intents.length; ++i) {
                _settle(intents[i], ExecutorWordLib.NO_CAP);
            }
            return;
        }
        executor_ = executor_.drained();
        for (uint256 i; i < intents.length; ++i) {
            uint256 moved = _settle(intents[i], executor_.left());
            executor_ = intents[i].what.side() <= LAST_BUY ? executor_.drawn(moved) : executor_.returned(moved);
        }
        _executors[msg.sender].word = executor_;
    }

    /// @notice One trade, for `execute` only: an outer call of its own, so that a failure undoes it and nothing else.
    /// @param volumeLeft USDC atomic-6 that the executor's cap leaves.
    /// @return usdc_ USDC atomic-6 that moved.
    /// @return tokens WAD that moved.
    /// @dev The name gives the lowest selector of the contract, which is compared first: the last one costs 450 gas more.
    function tradeIsolated(Intent calldata intent, uint256 volumeLeft)
        external
        returns (uint256 usdc_, uint256 tokens)
    {
        if (msg.sender != address(this)) revert NotAuthorized();
        bool done;
        (done, usdc_, tokens) = _call(address(_hub), IMarketHub.fillForKey.selector, intent, 0);
        if (!done) _revert(_reason());
        if (intent.what.side() <= LAST_BUY) {
            if (usdc_ > volumeLeft) revert HourlyVolumeExceeded();
            _usdc.safeTransferFrom(intent.who.account(), address(_hub), usdc_);
        } else if (tokens > intent.bound.tokens()) {
            revert SaleBoundExceeded(tokens, intent.bound.tokens());
        }
    }

    /// @dev Never reverts, except for lack of gas: an intent ends in the hub's `Trade`, in `Failed` or in `Duplicate`.
    /// @return moved USDC atomic-6, zero if the trade did not happen.
    function _settle(Intent calldata intent, uint256 volumeLeft) private returns (uint256 moved) {
        if (gasleft() < GAS_PER_TRADE) revert GasTooLow();
        uint256 who = intent.who;
        PolicyCell storage cell = _policies[who.account()][who.key()];
        PolicyWord word = cell.word;
        uint256 nonce = who.nonce();
        if (word.isUsed(nonce)) {
            emit Duplicate(intent.bound.tradeId(), who.account(), who.key(), uint32(nonce));
            return 0;
        }
        if (nonce > PolicyWordLib.MAX_NONCE) {
            _fail(intent, abi.encodeWithSelector(NonceTooLarge.selector, nonce));
            return 0;
        }
        PolicyWord used = word.withNonce(nonce);
        // A missing policy has the expiry zero.
        if (block.timestamp > word.expiry() || block.timestamp > who.deadline()) {
            cell.word = used;
            _fail(intent, _refusal(word.expiry(), who.deadline()));
            return 0;
        }
        bool isBuy = intent.what.side() <= LAST_BUY;
        return isBuy ? _settleBuy(cell, used, intent, volumeLeft) : _settleSale(cell, used, intent);
    }

    /// @dev The most that the trade can cost is drawn before another contract is called, and the rest given back.
    function _settleBuy(PolicyCell storage cell, PolicyWord used, Intent calldata intent, uint256 volumeLeft)
        private
        returns (uint256)
    {
        uint256 spend = intent.what.usdc();
        PolicyWord rolled = spend == 0 ? used : used.rolled();
        if (spend > rolled.perTrade() || spend > rolled.left()) {
            cell.word = used;
            bytes memory refusal = spend > rolled.perTrade()
                ? abi.encodeWithSelector(PerTradeCapExceeded.selector, spend, rolled.perTrade())
                : abi.encodeWithSelector(DailyCapExceeded.selector, spend, rolled.left());
            _fail(intent, refusal);
            return 0;
        }
        cell.word = rolled.charged(spend);
        (bool done, uint256 moved,) = _tryTrade(intent, volumeLeft);
        if (!done) cell.word = used;
        else if (spend > moved) cell.word = rolled.charged(moved);
        return moved;
    }

    /// @dev Counts the face value of the tokens, because the price at the moment of the sale may have been moved.
    function _settleSale(PolicyCell storage cell, PolicyWord used, Intent calldata intent) private returns (uint256) {
        cell.word = used;
        PolicyWord sales = cell.sales;
        PolicyWord rolled = sales.rolled();
        uint256 bound = intent.bound.tokens();
        uint256 face = _faceValue(bound);
        if (face > rolled.perTrade() || face > rolled.left()) {
            bytes memory refusal = face > rolled.perTrade()
                ? abi.encodeWithSelector(SalePerTradeCapExceeded.selector, face, rolled.perTrade())
                : abi.encodeWithSelector(SaleDailyCapExceeded.selector, face, rolled.left());
            _fail(intent, refusal);
            return 0;
        }
        cell.sales = rolled.charged(face);
        (bool done, uint256 moved, uint256 tokens) = _tryTrade(intent, 0);
        if (!done) cell.sales = sales;
        else if (bound > tokens) cell.sales = rolled.charged(_faceValue(tokens));
        return moved;
    }

    /// @return Why no trade of the key is allowed now, as an encoded error.
    function _refusal(uint256 expiry, uint256 deadline) private view returns (bytes memory) {
        if (block.timestamp > deadline) return abi.encodeWithSelector(DeadlinePassed.selector, deadline);
        if (expiry == 0) return abi.encodeWithSelector(PolicyMissing.selector);
        return abi.encodeWithSelector(PolicyExpired.selector, expiry);
    }

    /// @return Atomic-6, rounded up: a token pays at most 1 USDC.
    function _faceValue(uint256 tokens) private pure returns (uint256) {
        unchecked {
            return (tokens + 1e12 - 1) / 1e12;
        }
    }

    function _fail(Intent calldata intent, bytes memory reason) private {
        uint256 who = intent.who;
        emit Failed(intent.bound.tradeId(), who.account(), who.key(), who.nonce(), reason);
    }

    /// @return done Whether the trade happened; if not, it is logged.
    /// @return usdc_ USDC atomic-6 that moved.
    /// @return tokens WAD that moved.
    function _tryTrade(Intent calldata intent, uint256 volumeLeft)
        private
        returns (bool done, uint256 usdc_, uint256 tokens)
    {
        (done, usdc_, tokens) = _call(address(this), Gate.tradeIsolated.selector, intent, volumeLeft);
        if (!done) _fail(intent, _reason());
    }

    /// @dev Calls a function that takes an intent and one more word and returns two words. The compiler's own call costs
    /// 200 gas more: here the arguments stay in free memory, and the results are read where the call puts them.
    function _call(address target, bytes4 selector, Intent calldata intent, uint256 volumeLeft)
        private
        returns (bool done, uint256 usdc_, uint256 tokens)
    {
        assembly ("memory-safe") {
            let data := mload(0x40)
            mstore(data, selector)
            calldatacopy(add(data, 0x04), intent, 0x60)
            mstore(add(data, 0x64), volumeLeft)
            done := call(gas(), target, 0, data, 0x84, 0, 0x40)
            // A call to an address without code returns nothing.
            done := and(done, gt(returndatasize(), 0x3f))
            usdc_ := mul(done, mload(0))
            tokens := mul(done, mload(0x20))
        }
    }

    /// @return reason The revert data of the last call, but no more of it than an event may carry, whatever the callee
    /// returned.
    function _reason() private pure returns (bytes memory reason) {
        assembly ("memory-safe") {
            let size := returndatasize()
            if gt(size, MAX_REASON) { size := MAX_REASON }
            reason := mload(0x40)
            mstore(reason, size)
            returndatacopy(add(reason, 0x20), 0, size)
            mstore(0x40, add(reason, and(add(size, 0x3f), not(0x1f))))
        }
    }

    function _revert(bytes memory reason) private pure {
        assembly ("memory-safe") {
            revert(add(reason, 0x20), mload(reason))
        }
    }

    // --- executors and pause ---

    function proposeExecutor(address executor_, uint64 hourlyCap) external {
        if (msg.sender != _authority.owner()) revert NotAuthorized();
        _checkExecutor(executor_, hourlyCap);
        uint64 enactableAt = uint64(block.timestamp) + _authority.delay();
        _proposals[executor_] = ExecutorProposal(msg.sender, hourlyCap, enactableAt);
        emit ExecutorProposed(executor_, hourlyCap, enactableAt);
    }

    /// @dev What an owner proposed before it was replaced does not count: its key may have been stolen.
    function enactExecutor(address executor_) external {
        ExecutorProposal memory proposal = _proposals[executor_];
        if (proposal.by == address(0) || proposal.by != _authority.owner()) revert NotProposed(executor_);
        if (block.timestamp < proposal.enactableAt) revert DelayNotOver(proposal.enactableAt);
        delete _proposals[executor_];
        _setExecutor(executor_, proposal.hourlyCap);
    }

    function vetoExecutor(address executor_) external onlyOwnerOrGuardian {
        if (_proposals[executor_].by == address(0)) revert NotProposed(executor_);
        _removeProposal(executor_);
    }

    function lowerExecutor(address executor_, uint64 hourlyCap) external onlyOwnerOrGuardian {
        ExecutorWord word = _executors[executor_].word;
        if (hourlyCap >= word.cap()) revert CapNotLower();
        if (_proposals[executor_].by != address(0)) _removeProposal(executor_);
        if (hourlyCap != 0) {
            // With no cap nothing was counted, so the time since the last update gives nothing back.
            _executors[executor_].word = word.drained().withCap(hourlyCap);
        } else {
            delete _executors[executor_];
            _removeFromList(executor_);
        }
        emit ExecutorSet(executor_, hourlyCap != 0, hourlyCap);
    }

    function setPaused(bool paused_) external {
        if (msg.sender != _authority.guardian() && !(paused_ && msg.sender == _authority.owner())) {
            revert NotAuthorized();
        }
        paused = paused_;
        // In each executor's word as well, so that `execute` reads one word.
        for (uint256 i; i < _executorList.length; ++i) {
            ExecutorCell storage cell = _executors[_executorList[i]];
            cell.word = cell.word.withPaused(paused_);
        }
        emit Paused(paused_, msg.sender);
    }

    // --- views ---

    function executor(address executor_) external view returns (Executor memory) {
        ExecutorWord word = _executors[executor_].word;
        word = word.drained();
        return Executor(word.allowed(), word.paused(), word.cap(), word.used(), word.updatedAt());
    }

    function executors() external view returns (address[] memory) {
        return _executorList;
    }

    function isExecutor(address executor_) external view returns (bool) {
        return _executors[executor_].word.allowed();
    }

    function proposedExecutor(address executor_) external view returns (uint64 hourlyCap, uint64 enactableAt) {
        return (_proposals[executor_].hourlyCap, _proposals[executor_].enactableAt);
    }

    function authority() external view returns (address) {
        return address(_authority);
    }

    function hub() external view returns (address) {
        return address(_hub);
    }

    function usdc() external view returns (address) {
        return address(_usdc);
    }

    // --- helpers ---

    function _setLimits(address account, uint32 key, Limits memory limits) private {
        PolicyCell storage cell = _policies[account][key];
        cell.word = cell.word.withLimits(limits.perTrade, limits.daily, limits.expiry);
        cell.sales = cell.sales.withLimits(limits.salePerTrade, limits.saleDaily, 0);
        emit PolicySet(
            account, key, limits.perTrade, limits.daily, limits.salePerTrade, limits.saleDaily, limits.expiry
        );
    }

    function _checkExecutor(address executor_, uint64 hourlyCap) private pure {
        if (executor_ == address(0) || hourlyCap == 0) revert ExecutorInvalid();
    }

    function _setExecutor(address executor_, uint64 hourlyCap) private {
        ExecutorWord word = _executors[executor_].word;
        if (!word.allowed()) {
            if (_executorList.length == MAX_EXECUTORS) revert TooManyExecutors();
            _executorList.push(executor_);
        }
        // Drained under the old cap first: a higher cap does not speed up what has passed already.
        _executors[executor_].word = word.drained().withCap(hourlyCap).withPaused(paused);
        emit ExecutorSet(executor_, true, hourlyCap);
    }

    function _removeFromList(address executor_) private {
        uint256 last = _executorList.length - 1;
        for (uint256 i; i < last; ++i) {
            if (_executorList[i] == executor_) _executorList[i] = _executorList[last];
        }
        _executorList.pop();
    }

    function _removeProposal(address executor_) private {
        delete _proposals[executor_];
        emit ExecutorProposalRemoved(executor_, msg.sender);
    }
}
