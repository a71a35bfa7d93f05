// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {Fill, Side, Status} from "../interfaces/IMarketHub.sol";
import {Pricing} from "../libraries/Pricing.sol";
import {MarketWord} from "../types/MarketWord.sol";
import {OutcomeWord} from "../types/OutcomeWord.sol";
import {PositionWord} from "../types/PositionWord.sol";
import {TokenId} from "../types/TokenId.sol";
import {HubStorage, MarketCell, OutcomeCell, PositionCell} from "./HubStorage.sol";

/// @notice Buying and selling. A trade reads and writes three words, however many outcomes the market has.
abstract contract Trading is HubStorage {
    function buy(uint64 marketId, uint8 index, uint256 usdc_, uint256 minTokens) external returns (Fill memory fill) {
        fill = _trade(msg.sender, marketId, index, Side.BuyForUsdc, usdc_, minTokens, 0);
        _pull(msg.sender, fill.usdc);
    }

    function buyTokens(uint64 marketId, uint8 index, uint256 tokens, uint256 maxUsdc)
        external
        returns (Fill memory fill)
    {
        fill = _trade(msg.sender, marketId, index, Side.BuyTokens, maxUsdc, tokens, 0);
        _pull(msg.sender, fill.usdc);
    }

    function sell(uint64 marketId, uint8 index, uint256 tokens, uint256 minUsdc) external returns (Fill memory fill) {
        fill = _trade(msg.sender, marketId, index, Side.SellTokens, minUsdc, tokens, 0);
        _push(msg.sender, fill.usdc);
    }

    function sellForUsdc(uint64 marketId, uint8 index, uint256 usdc_, uint256 maxTokens)
        external
        returns (Fill memory fill)
    {
        fill = _trade(msg.sender, marketId, index, Side.SellForUsdc, usdc_, maxTokens, 0);
        _push(msg.sender, fill.usdc);
    }

    function tradeFor(
        address account,
        uint64 marketId,
        uint8 index,
        Side side,
        uint256 usdc_,
        uint256 tokens,
        bytes16 tradeId
    ) external returns (uint256 moved) {
        if (msg.sender != _gate) revert NotAuthorized();
        moved = _trade(account, marketId, index, side, usdc_, tokens, tradeId).usdc;
        if (!Pricing.isBuy(side)) _push(account, moved);
    }

    function quote(uint64 marketId, uint8 index, Side side, uint256 amount) external view returns (Fill memory) {
        MarketWord market_ = _tradeable(marketId, index).word;
        return Pricing.fill(market_, _outcomes[TokenId.make(marketId, index)].word.quantity(), side, amount, amount);
    }

    /// @dev Everything of a trade except the USDC.
    function _trade(
        address account,
        uint64 marketId,
        uint8 index,
        Side side,
        uint256 usdc_,
        uint256 tokens,
        bytes16 tradeId
    ) private returns (Fill memory fill) {
        MarketCell storage market_ = _tradeable(marketId, index);
        uint256 id = TokenId.make(marketId, index);
        OutcomeCell storage outcome_ = _outcomes[id];
        PositionCell storage position_ = _positions[account][id];
        OutcomeWord before = outcome_.word;
        PositionWord held = position_.word;

        if (side == Side.SellAll) {
            tokens = held.balance();
            if (tokens == 0) revert PositionInsufficient(0, 0);
        } else if (side == Side.SellTokens && tokens > held.balance()) {
            revert PositionInsufficient(held.balance(), tokens);
        }

        MarketWord state = market_.word;
        fill = Pricing.fill(state, before.quantity(), side, usdc_, tokens);
        Pricing.checkBound(fill, side, usdc_, tokens);

        if (Pricing.isBuy(side)) {
            position_.word = held.plus(fill.tokens, fill.usdc);
            outcome_.word = before.bought(fill.quantityAfter, fill.usdc);
        } else {
            (PositionWord rest, uint256 basisOut) = held.minus(fill.tokens);
            position_.word = rest;
            outcome_.word = before.sold(fill.quantityAfter, basisOut, fill.usdc);
        }
        market_.word = state.traded(fill.costAfter, fill.fee);

        // The casts are safe: USDC is below 2^64 and tokens below 2^128, or the words above would have refused them.
        emit Trade(
            tradeId,
            account,
            id,
            side,
            uint64(fill.usdc),
            uint128(fill.tokens),
            uint64(fill.fee),
            fill.costAfter,
            fill.quantityAfter
        );
    }

    function _tradeable(uint64 marketId, uint8 index) private view returns (MarketCell storage market_) {
        market_ = _markets[marketId];
        MarketWord word = market_.word;
        if (MarketWord.unwrap(word) == 0) revert MarketUnknown(marketId);
        Status status = word.current();
        if (status != Status.Open) revert MarketNotTradeable(marketId, status);
        _checkOutcome(word, index);
    }
}
