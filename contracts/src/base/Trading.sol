// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {IERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/IERC20Permit.sol";
import {Intent} from "../interfaces/IGate.sol";
import {Fill, Side, Status} from "../interfaces/IMarketHub.sol";
import {Intents} from "../libraries/Intents.sol";
import {Pricing} from "../libraries/Pricing.sol";
import {MarketWord} from "../types/MarketWord.sol";
import {OutcomeWord} from "../types/OutcomeWord.sol";
import {TokenId} from "../types/TokenId.sol";
import {Balances} from "./Balances.sol";
import {BalanceCell, MarketCell, OutcomeCell} from "./HubStorage.sol";

/// @notice Buying and selling. A trade reads and writes three words, however many outcomes the market has; the first one
/// of an outcome in a reference period writes a fourth.
abstract contract Trading is Balances {
    using Intents for uint256;

    function buy(uint64 marketId, uint8 index, uint256 usdc_, uint256 minTokens) external returns (Fill memory fill) {
        fill = _trade(msg.sender, TokenId.make(marketId, index), Side.BuyForUsdc, usdc_, minTokens, 0);
        _pull(msg.sender, fill.usdc);
    }

    function buyWithPermit(
        uint64 marketId,
        uint8 index,
        uint256 usdc_,
        uint256 minTokens,
        uint256 deadline,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external returns (Fill memory fill) {
        // Anyone can use up a permit first. The allowance is there then, and the transfer below decides.
        try IERC20Permit(address(_usdc)).permit(msg.sender, address(this), usdc_, deadline, v, r, s) {} catch {}
        fill = _trade(msg.sender, TokenId.make(marketId, index), Side.BuyForUsdc, usdc_, minTokens, 0);
        _pull(msg.sender, fill.usdc);
    }

    function buyTokens(uint64 marketId, uint8 index, uint256 tokens, uint256 maxUsdc)
        external
        returns (Fill memory fill)
    {
        fill = _trade(msg.sender, TokenId.make(marketId, index), Side.BuyTokens, maxUsdc, tokens, 0);
        _pull(msg.sender, fill.usdc);
    }

    function sell(uint64 marketId, uint8 index, uint256 tokens, uint256 minUsdc) external returns (Fill memory fill) {
        fill = _trade(msg.sender, TokenId.make(marketId, index), Side.SellTokens, minUsdc, tokens, 0);
        _push(msg.sender, fill.usdc);
    }

    function sellForUsdc(uint64 marketId, uint8 index, uint256 usdc_, uint256 maxTokens)
        external
        returns (Fill memory fill)
    {
        fill = _trade(msg.sender, TokenId.make(marketId, index), Side.SellForUsdc, usdc_, maxTokens, 0);
        _push(msg.sender, fill.usdc);
    }

    function fillForKey(Intent calldata intent) external returns (uint256 movedUsdc, uint256 movedTokens) {
        if (msg.sender != _gate) revert NotAuthorized();
        address account = intent.who.account();
        (uint256 what, uint256 bound) = (intent.what, intent.bound);
        Side side = Side(what.side());
        Fill memory fill = _trade(account, what.tokenId(), side, what.usdc(), bound.tokens(), bound.tradeId());
        (movedUsdc, movedTokens) = (fill.usdc, fill.tokens);
        if (!Pricing.isBuy(side)) _push(account, movedUsdc);
    }

    function quote(uint64 marketId, uint8 index, Side side, uint256 amount) external view returns (Fill memory fill) {
        MarketWord market_ = _markets[marketId].word;
        _checkTradeable(market_, marketId);
        _checkOutcome(market_, index);
        uint256 id = TokenId.make(marketId, index);
        Pricing.quote(fill, market_, _quantity(id, _outcomes[id].word), side, amount);
    }

    // --- complete sets ---

    function split(uint64 marketId, uint256 usdc_) external {
        uint256 cost = _moveSets(marketId, usdc_, true);
        emit SetsSplit(msg.sender, marketId, uint64(usdc_), cost);
        _pull(msg.sender, usdc_);
    }

    function merge(uint64 marketId, uint256 usdc_) external {
        uint256 cost = _moveSets(marketId, usdc_, false);
        emit SetsMerged(msg.sender, marketId, uint64(usdc_), cost);
        _push(msg.sender, usdc_);
    }

    /// @dev C and every q_i move by the same amount, so that no price changes and C still covers every payout.
    function _moveSets(uint64 marketId, uint256 usdc_, bool isSplit) private returns (uint256 cost) {
        if (usdc_ == 0) revert AmountZero();
        if (usdc_ > type(uint64).max) revert AmountTooLarge();
        MarketCell storage cell = _markets[marketId];
        MarketWord market_ = cell.word;
        _checkTradeable(market_, marketId);

        uint256 tokens = usdc_ * Pricing.SCALE;
        uint256 period_ = _currentPeriod();
        uint256 count = market_.outcomes();
        for (uint256 i; i < count; ++i) {
            uint256 id = TokenId.make(marketId, i);
            // First, since a merge of more than is held must report the position.
            if (isSplit) _mint(msg.sender, id, tokens);
            else _burn(msg.sender, id, tokens);
            OutcomeCell storage outcome_ = _outcomes[id];
            OutcomeWord before = outcome_.word;
            uint256 quantity_ = _quantity(id, before);
            _remember(id, before, quantity_, period_);
            outcome_.word = before.moved(isSplit ? quantity_ + tokens : quantity_ - tokens, period_);
        }
        cost = isSplit ? market_.cost() + tokens : market_.cost() - tokens;
        cell.word = market_.traded(cost, 0);
    }

    /// @dev Everything of a trade except the USDC.
    function _trade(address account, uint256 id, Side side, uint256 usdc_, uint256 tokens, bytes16 tradeId)
        private
        returns (Fill memory fill)
    {
        (, uint64 marketId, uint8 index) = TokenId.split(id);
        MarketCell storage market_ = _markets[marketId];
        MarketWord state = market_.word;
        _checkTradeable(state, marketId);
        _checkOutcome(state, index);
        BalanceCell storage balance_ = _balances[account][id];

        bool isBuy = Pricing.isBuy(side);
        if (!isBuy) {
            if (side == Side.SellAll) {
                tokens = balance_.tokens;
                if (tokens == 0) revert PositionInsufficient(0, 0);
            } else if (side == Side.SellTokens && tokens > balance_.tokens) {
                revert PositionInsufficient(balance_.tokens, tokens);
            }
        }

        OutcomeCell storage outcome_ = _outcomes[id];
        OutcomeWord before = outcome_.word;
        {
            uint256 quantity_ = _quantity(id, before);
            Pricing.fill(fill, state, quantity_, side, usdc_, tokens);
            uint256 period_ = _currentPeriod();
            _remember(id, before, quantity_, period_);
            outcome_.word = before.traded(fill.quantityAfter, period_, fill.usdc);
        }
        market_.word = state.traded(fill.costAfter, fill.fee);

        if (isBuy) {
            _credit(balance_, fill.tokens);
            emit Transfer(msg.sender, address(0), account, id, fill.tokens);
        } else {
            _burnFrom(balance_, account, id, fill.tokens);
        }

        // USDC is below 2^64, tokens, C and quantities are below 2^128: the words above reject anything larger.
        emit Trade(
            tradeId,
            uint256(uint160(account)) << 96 | id << 8 | uint256(side),
            fill.usdc << 192 | fill.fee << 128 | fill.tokens,
            fill.costAfter << 128 | fill.quantityAfter
        );
    }

    function _checkTradeable(MarketWord market_, uint64 marketId) private view {
        if (market_.isOpen()) return;
        if (MarketWord.unwrap(market_) == 0) revert MarketUnknown(marketId);
        revert MarketNotTradeable(marketId, market_.current());
    }
}
