// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {Status} from "../interfaces/IMarketHub.sol";
import {Pricing} from "../libraries/Pricing.sol";
import {MarketWord} from "../types/MarketWord.sol";
import {TokenId} from "../types/TokenId.sol";
import {Balances} from "./Balances.sol";
import {BalanceCell} from "./HubStorage.sol";

/// @notice Pays the holders of a settled market. Any caller may trigger it; only the holder is ever paid.
abstract contract Redemption is Balances {
    uint256 private constant WAD = 1e18;

    function redeem(address account, uint64 marketId, uint8 index) external returns (uint256 usdc_) {
        _checkOutcome(_known(marketId), index);
        uint256 id = TokenId.make(marketId, index);
        BalanceCell storage cell = _balances[account][id];
        uint256 tokens = cell.tokens;
        usdc_ = _worth(id, tokens);
        if (usdc_ == 0) revert NothingToRedeem();
        // The position is written before anything is paid.
        cell.tokens = 0;
        _logRedeemed(account, id, tokens, usdc_);
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
            BalanceCell storage cell = _balances[account][id];
            uint256 tokens = cell.tokens;
            uint256 usdc_ = _worth(id, tokens);
            if (usdc_ == 0) continue;
            cell.tokens = 0;
            if (_tryPush(account, usdc_)) {
                paid[i] = usdc_;
                _logRedeemed(account, id, tokens, usdc_);
            } else {
                cell.tokens = tokens;
            }
        }
    }

    function redeemable(address account, uint64 marketId, uint8 index) external view returns (uint256) {
        uint256 id = TokenId.make(marketId, index);
        return _worth(id, _balances[account][id].tokens);
    }

    function resolution(uint64 marketId) external view returns (uint256[] memory payouts) {
        MarketWord market_ = _known(marketId);
        if (market_.storedStatus() >= Status.Resolved) payouts = _payoutsOf(marketId, market_);
    }

    function proposal(uint64 marketId)
        external
        view
        returns (bool isCancel, uint64 finalizableAt, uint256[] memory payouts)
    {
        MarketWord market_ = _known(marketId);
        (isCancel, finalizableAt) = (_records[marketId].cancelling, _records[marketId].finalizableAt);
        if (finalizableAt == 0) isCancel = false;
        else payouts = _payoutsOf(marketId, market_);
    }

    function _payoutsOf(uint64 marketId, MarketWord market_) private view returns (uint256[] memory payouts) {
        payouts = new uint256[](market_.outcomes());
        for (uint256 i; i < payouts.length; ++i) {
            payouts[i] = _payouts[TokenId.make(marketId, i)];
        }
    }

    function _logRedeemed(address account, uint256 id, uint256 tokens, uint256 usdc_) private {
        emit Transfer(msg.sender, account, address(0), id, tokens);
        emit Redeemed(account, id, uint128(tokens), uint64(usdc_));
    }

    /// @return USDC atomic-6 that the tokens are paid now, down.
    function _worth(uint256 id, uint256 tokens) private view returns (uint256) {
        // Balances exist only under canonical ids, so an id with upper bits is worth nothing.
        (, uint64 marketId,) = TokenId.split(id);
        if (tokens == 0 || _markets[marketId].word.storedStatus() < Status.Resolved) return 0;
        return tokens * _payouts[id] / (WAD * Pricing.SCALE);
    }
}
