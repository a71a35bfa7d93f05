// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {Status} from "../interfaces/IMarketHub.sol";
import {Pricing} from "../libraries/Pricing.sol";
import {MarketWord} from "../types/MarketWord.sol";
import {PositionWord, PositionWordLib} from "../types/PositionWord.sol";
import {TokenId} from "../types/TokenId.sol";
import {MarketRecord, PositionCell} from "./HubStorage.sol";
import {Lifecycle} from "./Lifecycle.sol";

/// @notice Paying the holders of a settled market. Any caller may trigger it; only the holder is ever paid.
abstract contract Redemption is Lifecycle {
    uint256 private constant WAD = 1e18;

    function redeem(address account, uint64 marketId, uint8 index) external returns (uint256 usdc_) {
        _checkOutcome(_known(marketId), index);
        uint256 id = TokenId.make(marketId, index);
        PositionWord held;
        (held, usdc_) = _take(account, id);
        if (usdc_ == 0) revert NothingToRedeem();
        emit Redeemed(account, id, uint128(held.balance()), uint64(usdc_));
        _push(account, usdc_);
    }

    function redeemBatch(address[] calldata accounts, uint256[] calldata tokenIds)
        external
        returns (uint256[] memory paid)
    {
        if (accounts.length != tokenIds.length) revert TermsInvalid();
        paid = new uint256[](accounts.length);
        for (uint256 i; i < accounts.length; ++i) {
            (address account, uint256 id) = (accounts[i], tokenIds[i]);
            (PositionWord held, uint256 usdc_) = _take(account, id);
            if (usdc_ == 0) continue;
            if (_tryPush(account, usdc_)) {
                paid[i] = usdc_;
                emit Redeemed(account, id, uint128(held.balance()), uint64(usdc_));
            } else {
                _positions[account][id].word = held;
            }
        }
    }

    function redeemable(address account, uint64 marketId, uint8 index) external view returns (uint256 usdc_) {
        uint256 id = TokenId.make(marketId, index);
        (usdc_,) = _worth(id, _positions[account][id].word);
    }

    function resolution(uint64 marketId) external view returns (uint256[] memory payouts, uint256 scale) {
        MarketWord market_ = _known(marketId);
        MarketRecord storage record = _records[marketId];
        if (record.refunding) return (payouts, _refundScale(record));
        if (market_.storedStatus() < Status.Resolved) return (payouts, 0);
        payouts = new uint256[](market_.outcomes());
        for (uint256 i; i < payouts.length; ++i) {
            payouts[i] = _payouts[TokenId.make(marketId, i)];
        }
    }

    /// @dev Writes the position before anything is paid.
    function _take(address account, uint256 id) private returns (PositionWord held, uint256 usdc_) {
        PositionCell storage cell = _positions[account][id];
        held = cell.word;
        PositionWord rest;
        (usdc_, rest) = _worth(id, held);
        if (usdc_ != 0) cell.word = rest;
    }

    /// @return usdc_ What the position is paid now, atomic-6, down.
    /// @return rest The position after that. A refund in full, and every payout, ends it; a scaled refund takes the
    /// tokens and leaves the basis, with what was paid on it, so that a later top-up reaches those who came early.
    function _worth(uint256 id, PositionWord held) private view returns (uint256 usdc_, PositionWord rest) {
        (uint64 marketId,) = TokenId.split(id);
        Status status = _markets[marketId].word.storedStatus();
        if (status < Status.Resolved) return (0, held);

        if (status == Status.Cancelled) {
            MarketRecord storage record = _records[marketId];
            if (record.refunding) {
                uint256 scale = _refundScale(record);
                uint256 due = held.basis() * scale / WAD;
                usdc_ = due - held.refunded();
                if (scale != WAD) rest = PositionWordLib.pack(0, held.basis(), due);
                return (usdc_, rest);
            }
        }
        usdc_ = held.balance() * _payouts[id] / (WAD * Pricing.SCALE);
    }
}
