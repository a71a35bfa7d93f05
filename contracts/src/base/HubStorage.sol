// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {IAuthority} from "../interfaces/IAuthority.sol";
import {HubSettings, IMarketHub} from "../interfaces/IMarketHub.sol";
import {HistoryWord} from "../types/HistoryWord.sol";
import {MarketWord} from "../types/MarketWord.sol";
import {OutcomeWord} from "../types/OutcomeWord.sol";
import {TokenId} from "../types/TokenId.sol";

/// @dev Cells of one word: a reference to a cell is hashed once and then read and written.
struct MarketCell {
    MarketWord word;
}

struct OutcomeCell {
    OutcomeWord word;
}

struct HistoryCell {
    HistoryWord word;
}

struct BalanceCell {
    uint256 tokens; // WAD, below 2^128
}

/// @dev The part of a market that a trade never reads, in one word.
struct MarketRecord {
    uint40 openableAt;
    uint40 finalizableAt; // zero: nothing is proposed
    uint40 frozenAt; // when trading ended; meaningful while the stored status is `Frozen`
    bool cancelling; // the proposed payouts are those of a cancel
    bool held; // frozen by the guardian
    uint8 lateVetoes; // vetoes of cancels after the deadline of the result
    uint64 surplus; // owed to the treasury, USDC atomic-6
}

/// @notice The hub's storage, and the transfers of USDC into and out of it.
abstract contract HubStorage is IMarketHub {
    using SafeERC20 for IERC20;

    IERC20 internal immutable _usdc;
    address internal immutable _gate;
    IAuthority internal immutable _authority;
    uint32 internal immutable _listingDelay;
    uint32 internal immutable _vetoWindow;
    uint32 internal immutable _minFreeze;
    uint32 internal immutable _period;
    uint32 internal immutable _resultDeadline;

    uint64 internal _marketCount;
    mapping(uint64 marketId => MarketCell) internal _markets;
    mapping(uint256 tokenId => OutcomeCell) internal _outcomes;
    mapping(uint256 tokenId => HistoryCell) internal _history;
    mapping(address account => mapping(uint256 tokenId => BalanceCell)) internal _balances;

    mapping(bytes32 ref => uint64 marketId) internal _marketOf;
    mapping(uint64 marketId => MarketRecord) internal _records;
    /// @dev q_i at the creation of the market, two to a word; zero for equal odds. The even outcome is the lower half.
    mapping(uint256 tokenIdHalf => uint256 quantities) private _openings;
    /// @dev WAD per token, proposed or final.
    mapping(uint256 tokenId => uint256 payout) internal _payouts;

    mapping(address owner => mapping(address spender => bool)) internal _operators;
    mapping(address owner => mapping(address spender => mapping(uint256 tokenId => uint256))) internal _allowances;

    constructor(address usdc_, address gate_, address authority_, HubSettings memory settings_) {
        if (settings_.period == 0) revert TermsInvalid();
        _usdc = IERC20(usdc_);
        _gate = gate_;
        _authority = IAuthority(authority_);
        _listingDelay = settings_.listingDelay;
        _vetoWindow = settings_.vetoWindow;
        _minFreeze = settings_.minFreeze;
        _period = settings_.period;
        _resultDeadline = settings_.resultDeadline;
    }

    /// @dev Reverts for a market that does not exist.
    function _known(uint64 marketId) internal view returns (MarketWord market_) {
        market_ = _markets[marketId].word;
        if (MarketWord.unwrap(market_) == 0) revert MarketUnknown(marketId);
    }

    function _checkOutcome(MarketWord market_, uint8 index) internal pure {
        if (index >= market_.outcomes()) revert OutcomeInvalid(index);
    }

    /// @dev Reverts unless the id is that of an outcome which exists.
    function _checkId(uint256 id) internal view returns (MarketWord market_, uint64 marketId, uint8 index) {
        bool isCanonical;
        (isCanonical, marketId, index) = TokenId.split(id);
        if (!isCanonical) revert TokenUnknown(id);
        market_ = _known(marketId);
        _checkOutcome(market_, index);
    }

    // --- quantities ---

    function _currentPeriod() internal view returns (uint256) {
        unchecked {
            return block.timestamp / _period;
        }
    }

    function _opening(uint256 id) internal view returns (uint256) {
        return uint128(_openings[id >> 1] >> ((id & 1) << 7));
    }

    /// @dev Writes the opening quantities of a new market.
    function _setOpenings(uint64 marketId, uint256[] memory quantities) internal {
        for (uint256 i; i < quantities.length; i += 2) {
            uint256 word = quantities[i];
            if (i + 1 < quantities.length) word |= quantities[i + 1] << 128;
            if (word != 0) _openings[TokenId.make(marketId, i) >> 1] = word;
        }
    }

    function _quantity(uint256 id, OutcomeWord word) internal view returns (uint256) {
        return word.isUntouched() ? _opening(id) : word.quantity();
    }

    /// @dev Call it before the quantity of an outcome changes: stores the quantity with which the period began, unless the
    /// outcome has already changed in it.
    function _remember(uint256 id, OutcomeWord word, uint256 quantity_, uint256 period_) internal {
        if (word.period() == period_) return;
        HistoryCell storage cell = _history[id];
        if (word.isUntouched()) {
            if (quantity_ != 0) cell.word = HistoryWord.wrap(0).pushed(quantity_, 0);
        } else {
            cell.word = cell.word.pushed(quantity_, word.period());
        }
    }

    /// @dev q_i at the start of a period: at the earliest of the one before the last in which the market could be traded.
    function _quantityAt(uint256 id, uint256 period_) internal view returns (uint256) {
        OutcomeWord word = _outcomes[id].word;
        if (word.period() < period_) return _quantity(id, word);
        HistoryWord history = _history[id].word;
        bool isEarlier = word.period() > period_ && history.earlierPeriod() == period_;
        return isEarlier ? history.earlier() : history.latest();
    }

    // --- USDC ---

    function _pull(address from, uint256 amount) internal {
        _usdc.safeTransferFrom(from, address(this), amount);
    }

    function _push(address to, uint256 amount) internal {
        if (amount != 0) _usdc.safeTransfer(to, amount);
    }

    /// @notice Like `_push`, but returns false instead of reverting: one blocked receiver must not stop the others.
    function _tryPush(address to, uint256 amount) internal returns (bool) {
        return amount == 0 || _usdc.trySafeTransfer(to, amount);
    }
}
