// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {MarketTerms, Role, Status} from "../interfaces/IMarketHub.sol";
import {Lmsr} from "../libraries/Lmsr.sol";
import {Pricing} from "../libraries/Pricing.sol";
import {MarketWord, MarketWordLib} from "../types/MarketWord.sol";
import {OutcomeWordLib} from "../types/OutcomeWord.sol";
import {TokenId} from "../types/TokenId.sol";
import {HubStorage, MarketRecord} from "./HubStorage.sol";

/// @notice From listing to the final word on a market.
///
/// Listed -> Open <-> Frozen -> Resolved or Cancelled. Payouts, of a resolution or of a cancellation, take effect after
/// the veto window; a plain refund chooses no winner and takes effect at once.
abstract contract Lifecycle is HubStorage {
    uint256 private constant MIN_OUTCOMES = 2;
    uint256 private constant MAX_OUTCOMES = 250;
    uint256 private constant MAX_FEE_BPS = 1000;
    uint256 private constant MIN_LIQUIDITY = 1e6;
    uint256 private constant MIN_ODDS = 1e12;
    uint256 private constant WAD = 1e18;

    function createMarket(MarketTerms calldata terms) external only(Role.Resolver) returns (uint64 marketId) {
        if (
            terms.outcomes < MIN_OUTCOMES || terms.outcomes > MAX_OUTCOMES || terms.feeBps > MAX_FEE_BPS
                || terms.closeTime <= block.timestamp + _listingDelay || terms.liquidity < MIN_LIQUIDITY
                || terms.liquidity > type(uint48).max
        ) revert TermsInvalid();
        if (_marketOf[terms.ref] != 0) revert MarketExists(terms.ref);

        marketId = ++_marketCount;
        _marketOf[terms.ref] = marketId;
        _records[marketId].openableAt = uint40(block.timestamp + _listingDelay);

        (uint256 cost, uint256[] memory quantities) = _openingState(terms);
        for (uint256 i; i < quantities.length; ++i) {
            if (quantities[i] == 0) continue;
            uint256 id = TokenId.make(marketId, i);
            _openings[id] = quantities[i];
            _outcomes[id].word = OutcomeWordLib.opening(quantities[i]);
        }
        bool opensNow = _listingDelay == 0;
        _markets[marketId].word = MarketWordLib.pack(
            cost,
            uint48(terms.liquidity),
            terms.closeTime,
            terms.outcomes,
            opensNow ? Status.Open : Status.Listed,
            terms.feeBps
        );
        emit MarketCreated(
            marketId, terms.ref, terms.outcomes, terms.feeBps, terms.closeTime, terms.liquidity, cost, quantities
        );
        if (opensNow) emit MarketStatusChanged(marketId, Status.Open);

        _pull(msg.sender, (cost + Pricing.SCALE - 1) / Pricing.SCALE);
    }

    function open(uint64 marketId) external {
        MarketWord market_ = _known(marketId);
        Status status = market_.current();
        if (
            status != Status.Listed || block.timestamp < _records[marketId].openableAt
                || block.timestamp >= market_.closeTime()
        ) {
            revert TransitionInvalid(status, Status.Open);
        }
        _setStatus(marketId, market_, Status.Open);
    }

    function freeze(uint64 marketId) external {
        _checkGuardianOrResolver();
        MarketWord market_ = _known(marketId);
        Status status = market_.storedStatus();
        if (status != Status.Listed && status != Status.Open) revert TransitionInvalid(status, Status.Frozen);
        _setStatus(marketId, market_, Status.Frozen);
    }

    /// @dev A market frozen while listed goes back to being listed: freezing is no way around the listing delay. One with
    /// a proposed resolution stays frozen: trading on a known result is for nobody.
    function unfreeze(uint64 marketId) external {
        _checkGuardianOrResolver();
        MarketWord market_ = _known(marketId);
        MarketRecord storage record = _records[marketId];
        Status status = market_.storedStatus();
        Status next = block.timestamp < record.openableAt ? Status.Listed : Status.Open;
        if (status != Status.Frozen || record.finalizableAt != 0 || block.timestamp >= market_.closeTime()) {
            revert TransitionInvalid(status, next);
        }
        _setStatus(marketId, market_, next);
    }

    function propose(uint64 marketId, uint256[] calldata payouts) external only(Role.Resolver) {
        _propose(marketId, payouts, false);
    }

    function cancelWithPayouts(uint64 marketId, uint256[] calldata payouts) external only(Role.Resolver) {
        _propose(marketId, payouts, true);
    }

    function veto(uint64 marketId) external only(Role.Guardian) {
        MarketWord market_ = _known(marketId);
        if (_records[marketId].finalizableAt == 0) revert TransitionInvalid(market_.current(), Status.Frozen);
        _withdrawProposal(marketId, market_);
        emit ResolutionVetoed(marketId);
    }

    function finalize(uint64 marketId) external {
        MarketWord market_ = _known(marketId);
        uint64 due = _records[marketId].finalizableAt;
        if (due == 0) revert TransitionInvalid(market_.current(), Status.Resolved);
        if (block.timestamp < due) revert VetoWindowOpen(due);
        _finalize(marketId, market_);
    }

    /// @dev The pool is the market's cash with the fees that are still here; a refund gives those back too.
    function cancel(uint64 marketId) external only(Role.Resolver) {
        MarketWord market_ = _known(marketId);
        _checkUnsettled(market_, Status.Cancelled);
        MarketRecord storage record = _records[marketId];
        if (record.finalizableAt != 0) _withdrawProposal(marketId, market_);

        uint256 basis;
        for (uint256 i; i < market_.outcomes(); ++i) {
            basis += _outcomes[TokenId.make(marketId, i)].word.basis();
        }
        uint256 pool = market_.cost() / Pricing.SCALE + market_.fees();
        if (pool > basis) {
            record.surplus = _toUint64(pool - basis);
            pool = basis;
        }
        record.refunding = true;
        record.refundPool = _toUint64(pool);
        record.refundBasis = _toUint64(basis);

        _markets[marketId].word = market_.withoutFees().withStatus(Status.Cancelled);
        emit MarketStatusChanged(marketId, Status.Cancelled);
        emit MarketCancelled(marketId, new uint256[](0), _refundScale(record));
        _paySurplus(marketId);
    }

    /// @notice Takes no more than is missing.
    function topUp(uint64 marketId, uint64 usdc_) external {
        MarketWord market_ = _known(marketId);
        MarketRecord storage record = _records[marketId];
        if (!record.refunding) revert TransitionInvalid(market_.current(), Status.Cancelled);
        uint64 missing = record.refundBasis - record.refundPool;
        if (usdc_ > missing) usdc_ = missing;
        if (usdc_ == 0) revert AmountZero();
        record.refundPool += usdc_;
        emit MarketToppedUp(marketId, usdc_, _refundScale(record));
        _pull(msg.sender, usdc_);
    }

    function sweepFees(uint64 marketId) external returns (uint64 usdc_) {
        MarketWord market_ = _known(marketId);
        MarketRecord storage record = _records[marketId];
        usdc_ = market_.fees() + record.surplus;
        _markets[marketId].word = market_.withoutFees();
        if (record.surplus != 0) record.surplus = 0;
        _push(_roles[Role.Treasury], usdc_);
    }

    /// @notice The part of its basis that a refund pays, WAD, down.
    function _refundScale(MarketRecord storage record) internal view returns (uint256) {
        (uint256 pool, uint256 basis) = (record.refundPool, record.refundBasis);
        return pool >= basis ? WAD : pool * WAD / basis;
    }

    function _propose(uint64 marketId, uint256[] calldata payouts, bool cancelling) private {
        MarketWord market_ = _known(marketId);
        Status to = cancelling ? Status.Cancelled : Status.Resolved;
        _checkUnsettled(market_, to);

        uint256 outcomes_ = market_.outcomes();
        if (payouts.length != outcomes_) revert PayoutsInvalid();
        uint256 sum;
        for (uint256 i; i < outcomes_; ++i) {
            if (payouts[i] > WAD) revert PayoutsInvalid();
            sum += payouts[i];
            uint256 id = TokenId.make(marketId, i);
            if (_payouts[id] != payouts[i]) _payouts[id] = payouts[i];
        }
        if (sum == 0 || sum > WAD) revert PayoutsInvalid();

        uint256 due = block.timestamp + _vetoWindow;
        _records[marketId].finalizableAt = uint40(due);
        _records[marketId].cancelling = cancelling;
        if (market_.storedStatus() != Status.Frozen) {
            market_ = market_.withStatus(Status.Frozen);
            _setStatus(marketId, market_, Status.Frozen);
        }
        emit ResolutionProposed(marketId, payouts, uint64(due));
        if (_vetoWindow == 0) _finalize(marketId, market_);
    }

    /// @dev What no payout needs is the treasury's: cash less the sum of supplies at their payouts.
    function _finalize(uint64 marketId, MarketWord market_) private {
        MarketRecord storage record = _records[marketId];
        uint256[] memory payouts = new uint256[](market_.outcomes());
        uint256 owed;
        for (uint256 i; i < payouts.length; ++i) {
            uint256 id = TokenId.make(marketId, i);
            payouts[i] = _payouts[id];
            if (payouts[i] == 0) continue;
            owed += (_outcomes[id].word.quantity() - _openings[id]) * payouts[i];
        }
        // C covers every supply, so any mix of payouts too; and redemptions, each rounded down, never exceed their sum.
        record.surplus = _toUint64(market_.cost() / Pricing.SCALE - owed / (WAD * Pricing.SCALE));
        record.finalizableAt = 0;

        Status to = record.cancelling ? Status.Cancelled : Status.Resolved;
        _setStatus(marketId, market_, to);
        if (to == Status.Resolved) emit MarketResolved(marketId, payouts);
        else emit MarketCancelled(marketId, payouts, 0);
        _paySurplus(marketId);
    }

    function _withdrawProposal(uint64 marketId, MarketWord market_) private {
        _records[marketId].finalizableAt = 0;
        _records[marketId].cancelling = false;
        for (uint256 i; i < market_.outcomes(); ++i) {
            uint256 id = TokenId.make(marketId, i);
            if (_payouts[id] != 0) delete _payouts[id];
        }
    }

    /// @dev A treasury that cannot receive must not hold a resolution up: then the surplus waits for `sweepFees`.
    function _paySurplus(uint64 marketId) private {
        MarketRecord storage record = _records[marketId];
        uint256 surplus = record.surplus;
        if (surplus == 0) return;
        record.surplus = 0;
        if (!_tryPush(_roles[Role.Treasury], surplus)) record.surplus = uint64(surplus);
    }

    function _setStatus(uint64 marketId, MarketWord market_, Status status) private {
        _markets[marketId].word = market_.withStatus(status);
        emit MarketStatusChanged(marketId, status);
    }

    /// @dev With odds given, `q_i = C + b ln p_i`, C such that the least likely outcome begins at zero.
    function _openingState(MarketTerms calldata terms)
        private
        pure
        returns (uint256 cost, uint256[] memory quantities)
    {
        uint256[] calldata odds = terms.openingOdds;
        uint256 b = terms.liquidity * Pricing.SCALE;
        quantities = new uint256[](terms.outcomes);
        if (odds.length == 0) return (Lmsr.openingCost(b, WAD / terms.outcomes), quantities);

        if (odds.length != terms.outcomes) revert TermsInvalid();
        uint256 least = WAD;
        uint256 sum;
        for (uint256 i; i < odds.length; ++i) {
            if (odds[i] < MIN_ODDS || odds[i] > WAD) revert TermsInvalid();
            sum += odds[i];
            if (odds[i] < least) least = odds[i];
        }
        if (sum != WAD) revert TermsInvalid();
        cost = Lmsr.openingCost(b, least);
        for (uint256 i; i < odds.length; ++i) {
            quantities[i] = Lmsr.openingQuantity(b, cost, odds[i]);
        }
    }

    function _checkUnsettled(MarketWord market_, Status to) private view {
        Status status = market_.current();
        if (status >= Status.Resolved) revert TransitionInvalid(status, to);
    }

    function _checkGuardianOrResolver() private view {
        if (msg.sender != _roles[Role.Guardian] && msg.sender != _roles[Role.Resolver]) revert NotAuthorized();
    }

    function _toUint64(uint256 value) private pure returns (uint64) {
        if (value > type(uint64).max) revert AmountTooLarge();
        return uint64(value);
    }
}
