// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {ExecutorWord} from "../../src/types/ExecutorWord.sol";
import {PolicyWord, PolicyWordLib} from "../../src/types/PolicyWord.sol";

/// @notice The parts of the Gate's words do not touch each other, nonces are used once, and caps hold, for every word.
contract GateWordsSymbolic {
    uint256 private constant NONCES = (1 << 60) - 1;
    uint256 private constant LIMITS = ~uint256((1 << 168) - 1);

    function check_new_limits_change_no_usage_and_no_nonce(uint256 raw, uint64 perTrade, uint64 daily, uint32 expiry)
        external
        pure
    {
        if (perTrade > PolicyWordLib.MAX_AMOUNT || daily > PolicyWordLib.MAX_AMOUNT) return;
        PolicyWord word = PolicyWord.wrap(raw);
        PolicyWord next = word.withLimits(perTrade, daily, expiry);
        assert(next.perTrade() == perTrade && next.daily() == daily && next.expiry() == expiry);
        assert(next.spent() == word.spent() && next.windowStart() == word.windowStart());
        assert(PolicyWord.unwrap(next) & NONCES == raw & NONCES);
    }

    function check_a_charge_stays_within_its_cap_and_changes_nothing_else(uint256 raw, uint256 amount) external pure {
        PolicyWord word = PolicyWord.wrap(raw);
        if (amount > word.left()) return;
        PolicyWord next = word.charged(amount);
        assert(next.spent() == word.spent() + amount);
        assert(amount == 0 || next.spent() <= next.daily());
        assert(PolicyWord.unwrap(next) & LIMITS == raw & LIMITS);
        assert(next.windowStart() == word.windowStart() && next.expiry() == word.expiry());
        assert(PolicyWord.unwrap(next) & NONCES == raw & NONCES);
    }

    function check_a_used_nonce_stays_used(uint256 raw, uint32 nonce, uint32 later) external pure {
        PolicyWord word = PolicyWord.wrap(raw);
        if (nonce > PolicyWordLib.MAX_NONCE || later > PolicyWordLib.MAX_NONCE) return;
        if (word.isUsed(nonce) || word.isUsed(later) || nonce == later) return;
        PolicyWord next = word.withNonce(nonce);
        assert(next.isUsed(nonce));
        if (!next.isUsed(later)) assert(next.withNonce(later).isUsed(nonce));
        assert(PolicyWord.unwrap(next) & ~NONCES == raw & ~NONCES);
    }

    function check_a_draw_within_an_executors_cap_stays_within_it(uint256 raw, uint256 usdc) external pure {
        ExecutorWord word = ExecutorWord.wrap(raw);
        if (usdc > word.left()) return;
        ExecutorWord next = word.drawn(usdc);
        assert(next.used() == word.used() + usdc);
        assert(usdc == 0 || next.used() <= next.cap());
        assert(next.cap() == word.cap() && next.updatedAt() == word.updatedAt());
        assert(next.allowed() == word.allowed() && next.paused() == word.paused());
    }

    function check_a_sale_restores_at_most_the_drawn_volume(uint256 raw, uint256 usdc) external pure {
        ExecutorWord word = ExecutorWord.wrap(raw);
        ExecutorWord next = word.returned(usdc);
        assert(next.used() == (usdc < word.used() ? word.used() - usdc : 0));
        assert(next.cap() == word.cap() && next.updatedAt() == word.updatedAt());
        assert(next.allowed() == word.allowed() && next.paused() == word.paused());
    }

    function check_pausing_and_caps_change_nothing_else(uint256 raw, bool paused, uint64 cap) external pure {
        ExecutorWord word = ExecutorWord.wrap(raw);
        ExecutorWord next = word.withPaused(paused);
        assert(next.paused() == paused && next.allowed() == word.allowed());
        assert(next.cap() == word.cap() && next.used() == word.used() && next.updatedAt() == word.updatedAt());
        next = word.withCap(cap);
        assert(next.allowed() && next.cap() == cap && next.paused() == word.paused());
        assert(next.used() == word.used() && next.updatedAt() == word.updatedAt());
    }
}
