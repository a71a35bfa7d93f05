// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {MarketTerms, Status} from "../interfaces/IMarketHub.sol";
import {Lmsr} from "../libraries/Lmsr.sol";
import {Pricing} from "../libraries/Pricing.sol";
import {MarketWord, MarketWordLib} from "../types/MarketWord.sol";
import {TokenId} from "../types/TokenId.sol";
import {Balances} from "./Balances.sol";
import {MarketRecord} from "./HubStorage.sol";

/// @notice The life of a market, from its listing to its settlement.
///
/// Listed -> Open <-> Frozen -> Resolved or Cancelled. Results and cancels take the same path: proposed, vetoed or not,
/// final after the veto window.
abstract contract Lifecycle is Balances {
    uint256 private constant MIN_OUTCOMES = 2;
    uint256 private constant MAX_OUTCOMES = 250;
    uint256 private constant MAX_FEE_BPS = 1000;
    uint256 private constant MIN_LIQUIDITY = 1e6;
    uint256 private constant MIN_ODDS = 1e12;
    uint256 private constant WAD = 1e18;
    /// @dev How many cancels of one market the guardian can veto after the deadline of its result.
    uint256 private constant MAX_LATE_VETOES = 2;

    modifier onlyResolver() {
        if (!_isResolver()) revert NotAuthorized();
        _;
    }

    function createMarket(MarketTerms calldata terms) external onlyResolver returns (uint64 marketId) {
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
        _setOpenings(marketId, quantities);
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

    // --- freezing ---

    function freeze(uint64 marketId) external {
        bool isGuardian = _isGuardian();
        if (!isGuardian && !_isResolver()) revert NotAuthorized();
        MarketWord market_ = _known(marketId);
        MarketRecord storage record = _records[marketId];
        Status status = market_.storedStatus();
        if (status >= Status.Resolved || (status == Status.Frozen && (!isGuardian || record.held))) {
            revert TransitionInvalid(status, Status.Frozen);
        }
        if (status != Status.Frozen) _freeze(marketId, market_);
        if (isGuardian) _setHeld(marketId, true);
    }

    /// @dev A market frozen while listed goes back to being listed: freezing is no way around the listing delay. One with
    /// a proposal stays frozen, because its result is already known.
    function unfreeze(uint64 marketId) external {
        bool isGuardian = _isGuardian();
        if (!isGuardian && !_isResolver()) revert NotAuthorized();
        MarketWord market_ = _known(marketId);
        MarketRecord storage record = _records[marketId];
        if (record.held && !isGuardian) revert NotAuthorized();
        Status status = market_.storedStatus();
        Status next = block.timestamp < record.openableAt ? Status.Listed : Status.Open;
        if (status != Status.Frozen || record.finalizableAt != 0 || block.timestamp >= market_.closeTime()) {
            revert TransitionInvalid(status, next);
        }
        _setStatus(marketId, market_, next);
        if (record.held) _setHeld(marketId, false);
    }

    // --- settling ---

    function propose(uint64 marketId, uint256[] calldata payouts) external onlyResolver {
        MarketWord market_ = _known(marketId);
        _checkProposable(marketId, market_, Status.Resolved);
        if (block.timestamp > _resultDueAt(market_)) revert ResultTooLate(uint64(_resultDueAt(market_)));
        if (payouts.length != market_.outcomes()) revert PayoutsInvalid();
        uint256 sum;
        for (uint256 i; i < payouts.length; ++i) {
            if (payouts[i] > WAD) revert PayoutsInvalid();
            sum += payouts[i];
        }
        if (sum != WAD) revert PayoutsInvalid();

        if (market_.storedStatus() != Status.Frozen) market_ = _freeze(marketId, market_);
        uint64 due = _propose(marketId, payouts, false);
        emit ResolutionProposed(marketId, payouts, due);
        if (_vetoWindow == 0) _finalize(marketId, market_);
    }

    function proposeCancel(uint64 marketId) external {
        MarketWord market_ = _known(marketId);
        bool isLate = block.timestamp > _resultDueAt(market_);
        if (!isLate && !_isResolver()) revert NotAuthorized();
        _checkProposable(marketId, market_, Status.Cancelled);

        uint256 frozenAt = _frozenAt(marketId, market_);
        if (frozenAt == 0) revert TransitionInvalid(market_.current(), Status.Cancelled);
        if (block.timestamp < frozenAt + _minFreeze) revert FrozenTooBriefly(uint64(frozenAt + _minFreeze));
        if (market_.storedStatus() != Status.Frozen) market_ = _freeze(marketId, market_);
        uint256[] memory payouts = _referencePrices(marketId, market_, frozenAt);
        uint64 due = _propose(marketId, payouts, true);
        emit CancelProposed(marketId, payouts, due);
        if (_vetoWindow == 0) _finalize(marketId, market_);
    }

    function veto(uint64 marketId) external {
        if (!_isGuardian()) revert NotAuthorized();
        MarketWord market_ = _known(marketId);
        MarketRecord storage record = _records[marketId];
        if (record.finalizableAt == 0) revert TransitionInvalid(market_.current(), Status.Frozen);
        if (record.cancelling && block.timestamp > _resultDueAt(market_)) {
            if (record.lateVetoes >= MAX_LATE_VETOES) revert VetoesUsedUp();
            ++record.lateVetoes;
        }
        record.finalizableAt = 0;
        record.cancelling = false;
        for (uint256 i; i < market_.outcomes(); ++i) {
            uint256 id = TokenId.make(marketId, i);
            if (_payouts[id] != 0) delete _payouts[id];
        }
        emit ResolutionVetoed(marketId);
    }

    function finalize(uint64 marketId) external {
        MarketWord market_ = _known(marketId);
        uint64 due = _records[marketId].finalizableAt;
        if (due == 0) revert TransitionInvalid(market_.current(), Status.Resolved);
        if (block.timestamp < due) revert VetoWindowOpen(due);
        _finalize(marketId, market_);
    }

    function sweepFees(uint64 marketId) external returns (uint64 usdc_) {
        MarketWord market_ = _known(marketId);
        MarketRecord storage record = _records[marketId];
        usdc_ = market_.fees() + record.surplus;
        _markets[marketId].word = market_.withoutFees();
        if (record.surplus != 0) record.surplus = 0;
        _push(_authority.treasury(), usdc_);
    }

    function referencePrices(uint64 marketId) external view returns (uint256[] memory) {
        MarketWord market_ = _known(marketId);
        uint256 frozenAt = _frozenAt(marketId, market_);
        return _referencePrices(marketId, market_, frozenAt == 0 ? block.timestamp : frozenAt);
    }

    function _isResolver() private view returns (bool) {
        return msg.sender == _authority.resolver();
    }

    function _isGuardian() private view returns (bool) {
        return msg.sender == _authority.guardian();
    }

    function _resultDueAt(MarketWord market_) internal view returns (uint256) {
        return uint256(market_.closeTime()) + _resultDeadline;
    }

    /// @dev When trading ended; zero while it goes on. A market past its close time is frozen since then.
    function _frozenAt(uint64 marketId, MarketWord market_) internal view returns (uint256) {
        if (market_.storedStatus() >= Status.Frozen) return _records[marketId].frozenAt;
        return block.timestamp >= market_.closeTime() ? market_.closeTime() : 0;
    }

    /// @dev Prices at the start of the period before the one in which trading ended.
    function _referencePrices(uint64 marketId, MarketWord market_, uint256 frozenAt)
        private
        view
        returns (uint256[] memory)
    {
        uint256 period_ = frozenAt / _period;
        // The start of period zero is before any market.
        if (period_ != 0) --period_;
        uint256[] memory quantities = new uint256[](market_.outcomes());
        for (uint256 i; i < quantities.length; ++i) {
            quantities[i] = _quantityAt(TokenId.make(marketId, i), period_);
        }
        return Lmsr.shares(market_.liquidityWad(), quantities);
    }

    function _checkProposable(uint64 marketId, MarketWord market_, Status to) private view {
        Status status = market_.current();
        if (status >= Status.Resolved || _records[marketId].finalizableAt != 0) revert TransitionInvalid(status, to);
    }

    function _propose(uint64 marketId, uint256[] memory payouts, bool cancelling) private returns (uint64 due) {
        for (uint256 i; i < payouts.length; ++i) {
            if (payouts[i] != 0) _payouts[TokenId.make(marketId, i)] = payouts[i];
        }
        due = uint64(block.timestamp + _vetoWindow);
        _records[marketId].finalizableAt = uint40(due);
        _records[marketId].cancelling = cancelling;
    }

    /// @dev The treasury receives what no payout needs: cash less the sum of supplies at their payouts.
    function _finalize(uint64 marketId, MarketWord market_) private {
        MarketRecord storage record = _records[marketId];
        uint256[] memory payouts = new uint256[](market_.outcomes());
        uint256 owed;
        for (uint256 i; i < payouts.length; ++i) {
            uint256 id = TokenId.make(marketId, i);
            payouts[i] = _payouts[id];
            if (payouts[i] == 0) continue;
            owed += (_quantity(id, _outcomes[id].word) - _opening(id)) * payouts[i];
        }
        // C covers every supply, so any mix of payouts too; and redemptions, each rounded down, never exceed their sum.
        record.surplus = _toUint64(market_.cost() / Pricing.SCALE - owed / (WAD * Pricing.SCALE));
        record.finalizableAt = 0;

        Status to = record.cancelling ? Status.Cancelled : Status.Resolved;
        _setStatus(marketId, market_, to);
        if (to == Status.Resolved) emit MarketResolved(marketId, payouts);
        else emit MarketCancelled(marketId, payouts);
        _paySurplus(marketId);
    }

    /// @dev A treasury that cannot receive must not hold a resolution up: then the surplus waits for `sweepFees`.
    function _paySurplus(uint64 marketId) private {
        MarketRecord storage record = _records[marketId];
        uint64 surplus = record.surplus;
        if (surplus == 0) return;
        record.surplus = 0;
        if (!_tryPush(_authority.treasury(), surplus)) record.surplus = surplus;
    }

    /// @dev A market past its close time has been frozen since then, whenever that is written down.
    function _freeze(uint64 marketId, MarketWord market_) private returns (MarketWord) {
        uint256 closeTime = market_.closeTime();
        _records[marketId].frozenAt = uint40(block.timestamp < closeTime ? block.timestamp : closeTime);
        return _setStatus(marketId, market_, Status.Frozen);
    }

    function _setHeld(uint64 marketId, bool held) private {
        _records[marketId].held = held;
        emit MarketHeld(marketId, held);
    }

    function _setStatus(uint64 marketId, MarketWord market_, Status status) private returns (MarketWord after_) {
        after_ = market_.withStatus(status);
        _markets[marketId].word = after_;
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

    function _toUint64(uint256 value) private pure returns (uint64) {
        if (value > type(uint64).max) revert AmountTooLarge();
        return uint64(value);
    }
}
