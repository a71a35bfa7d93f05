// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {HistoryWord} from "../../src/types/HistoryWord.sol";
import {MarketWord} from "../../src/types/MarketWord.sol";
import {OutcomeWord} from "../../src/types/OutcomeWord.sol";
import {TokenId} from "../../src/types/TokenId.sol";

/// @notice The parts of the hub's words do not touch each other, for every word.
contract HubWordsSymbolic {
    function check_a_trade_updates_the_word_of_its_outcome(uint256 raw, uint104 quantity, uint32 period, uint64 usdc)
        external
        pure
    {
        OutcomeWord word = OutcomeWord.wrap(raw);
        OutcomeWord next = word.traded(quantity, period, usdc);
        assert(next.quantity() == quantity);
        assert(next.period() == period);
        uint256 volume = uint256(word.volume()) + usdc;
        assert(next.volume() == (volume > type(uint64).max ? type(uint64).max : volume));
        assert(next.trades() == (word.trades() == type(uint24).max ? type(uint24).max : word.trades() + 1));
    }

    function check_complete_sets_keep_volume_and_trades(uint256 raw, uint104 quantity, uint32 period) external pure {
        OutcomeWord word = OutcomeWord.wrap(raw);
        OutcomeWord next = word.moved(quantity, period);
        assert(next.quantity() == quantity);
        assert(next.period() == period);
        assert(next.volume() == word.volume());
        assert(next.trades() == word.trades());
    }

    function check_a_new_period_shifts_the_previous_one(uint256 raw, uint104 quantity, uint32 period) external pure {
        HistoryWord word = HistoryWord.wrap(raw);
        HistoryWord next = word.pushed(quantity, period);
        assert(next.latest() == quantity);
        assert(next.earlier() == word.latest());
        assert(next.earlierPeriod() == period);
    }

    function check_a_trade_keeps_the_terms_of_a_market(uint256 raw, uint104 cost, uint48 fee) external pure {
        MarketWord word = MarketWord.wrap(raw);
        if (uint256(word.fees()) + fee > type(uint48).max) return;
        MarketWord next = word.traded(cost, fee);
        assert(next.cost() == cost);
        assert(next.fees() == word.fees() + fee);
        assert(next.liquidity() == word.liquidity());
        assert(next.closeTime() == word.closeTime());
        assert(next.outcomes() == word.outcomes());
        assert(next.feeBps() == word.feeBps());
        assert(MarketWord.unwrap(next) & 0xffffff == raw & 0xffffff);
    }

    function check_an_id_names_one_outcome(uint256 id) external pure {
        (bool isCanonical, uint64 marketId, uint8 outcome) = TokenId.split(id);
        assert(isCanonical == (TokenId.make(marketId, outcome) == id));
    }
}
