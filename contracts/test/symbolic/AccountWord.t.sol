// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {AccountWord} from "../../src/types/AccountWord.sol";

/// @notice The parts of an account's word do not touch each other, for every word.
contract AccountWordSymbolic {
    uint256 private constant MAX_NONCE = type(uint48).max;

    function check_a_batch_only_increments_the_nonce(uint256 raw, bytes32 digest) external pure {
        AccountWord word = AccountWord.wrap(raw);
        if (word.nonce() == MAX_NONCE) return;
        AccountWord next = word.advanced(digest);
        assert(next.nonce() == word.nonce() + 1);
        assert(next.firstRemoved() == word.firstRemoved());
        assert(next.isLastBatch(digest));
    }

    function advance(uint256 raw, bytes32 digest) external pure returns (uint256) {
        return AccountWord.unwrap(AccountWord.wrap(raw).advanced(digest));
    }

    function check_the_nonce_never_wraps(uint256 raw, bytes32 digest) external view {
        (bool done,) = address(this).staticcall(abi.encodeCall(this.advance, (raw, digest)));
        assert(done == (AccountWord.wrap(raw).nonce() != MAX_NONCE));
    }

    function check_the_last_batch_is_recognized_by_its_high_bits(uint256 raw, bytes32 digest, bytes32 other)
        external
        pure
    {
        AccountWord word = AccountWord.wrap(raw);
        if (word.nonce() == MAX_NONCE) return;
        assert(word.advanced(digest).isLastBatch(other) == (bytes25(digest) == bytes25(other)));
    }

    function check_nonce_zero_has_no_last_batch(uint256 raw, bytes32 digest) external pure {
        assert(!AccountWord.wrap(raw & ~MAX_NONCE).isLastBatch(digest));
    }

    function check_removing_the_first_owner_keeps_the_nonce_and_the_last_batch(
        uint256 raw,
        bool removed,
        bytes32 digest
    ) external pure {
        AccountWord word = AccountWord.wrap(raw);
        AccountWord next = word.withFirstRemoved(removed);
        assert(next.firstRemoved() == removed);
        assert(next.nonce() == word.nonce());
        assert(next.isLastBatch(digest) == word.isLastBatch(digest));
    }
}
