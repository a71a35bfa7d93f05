// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {IMarketHub, Role, Status} from "../interfaces/IMarketHub.sol";
import {MarketWord} from "../types/MarketWord.sol";
import {OutcomeWord} from "../types/OutcomeWord.sol";
import {PositionWord} from "../types/PositionWord.sol";

/// @dev Cells of one word: a reference to a cell is hashed once and then read and written.
struct MarketCell {
    MarketWord word;
}

struct OutcomeCell {
    OutcomeWord word;
}

struct PositionCell {
    PositionWord word;
}

/// @dev What a trade never reads: one word for the calendar, one for a refund.
struct MarketRecord {
    uint40 openableAt;
    uint40 finalizableAt; // zero: nothing proposed
    bool cancelling; // the proposed payouts are those of a cancellation
    bool refunding; // cancelled, and paying back the cost basis
    uint64 surplus; // owed to the treasury, USDC atomic-6
    uint64 refundPool; // USDC atomic-6
    uint64 refundBasis; // USDC atomic-6
}

/// @notice What the hub remembers, and how USDC enters and leaves it.
abstract contract HubStorage is IMarketHub {
    using SafeERC20 for IERC20;

    IERC20 internal immutable _usdc;
    address internal immutable _gate;
    uint32 internal immutable _listingDelay;
    uint32 internal immutable _vetoWindow;

    uint64 internal _marketCount;
    mapping(Role => address) internal _roles;
    mapping(uint64 marketId => MarketCell) internal _markets;
    mapping(uint256 tokenId => OutcomeCell) internal _outcomes;
    mapping(address account => mapping(uint256 tokenId => PositionCell)) internal _positions;

    mapping(bytes32 ref => uint64 marketId) internal _marketOf;
    mapping(uint64 marketId => MarketRecord) internal _records;
    /// @dev q_i at the creation of the market; zero for equal odds.
    mapping(uint256 tokenId => uint256 quantity) internal _openings;
    /// @dev WAD per token, proposed or final.
    mapping(uint256 tokenId => uint256 payout) internal _payouts;

    mapping(address owner => mapping(address spender => bool)) internal _operators;
    mapping(address owner => mapping(address spender => mapping(uint256 tokenId => uint256))) internal _allowances;

    modifier only(Role role) {
        if (msg.sender != _roles[role]) revert NotAuthorized();
        _;
    }

    /// @dev Reverts for a market that does not exist.
    function _known(uint64 marketId) internal view returns (MarketWord market_) {
        market_ = _markets[marketId].word;
        if (MarketWord.unwrap(market_) == 0) revert MarketUnknown(marketId);
    }

    function _checkOutcome(MarketWord market_, uint8 index) internal pure {
        if (index >= market_.outcomes()) revert OutcomeInvalid(index);
    }

    function _pull(address from, uint256 amount) internal {
        _usdc.safeTransferFrom(from, address(this), amount);
    }

    function _push(address to, uint256 amount) internal {
        if (amount != 0) _usdc.safeTransfer(to, amount);
    }

    /// @notice Like `_push`, but tells of a failure instead of reverting: one blocked receiver must not stop the others.
    function _tryPush(address to, uint256 amount) internal returns (bool) {
        return amount == 0 || _usdc.trySafeTransfer(to, amount);
    }
}
