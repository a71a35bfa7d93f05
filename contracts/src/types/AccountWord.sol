// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

/// @dev State that every signed batch of an account reads and writes, in one word, high to low:
/// lastBatch:200 (the high bits of the digest of the batch executed last) | firstRemoved:8 | nonce:48
type AccountWord is uint256;

using AccountWordLib for AccountWord global;

library AccountWordLib {
    uint256 private constant LAST_BATCH = 56;
    uint256 private constant FIRST_REMOVED = 48;
    uint256 private constant MAX_NONCE = type(uint48).max;

    error NonceExhausted();

    function nonce(AccountWord word) internal pure returns (uint256) {
        return AccountWord.unwrap(word) & MAX_NONCE;
    }

    function firstRemoved(AccountWord word) internal pure returns (bool) {
        return uint8(AccountWord.unwrap(word) >> FIRST_REMOVED) != 0;
    }

    /// @dev False for every digest before the first batch.
    function isLastBatch(AccountWord word, bytes32 digest) internal pure returns (bool) {
        return nonce(word) != 0 && AccountWord.unwrap(word) >> LAST_BATCH == uint256(digest) >> LAST_BATCH;
    }

    /// @notice The word after the batch of this digest.
    function advanced(AccountWord word, bytes32 digest) internal pure returns (AccountWord) {
        uint256 current = nonce(word);
        if (current == MAX_NONCE) revert NonceExhausted();
        uint256 flags = AccountWord.unwrap(word) & (1 << LAST_BATCH) - (1 << FIRST_REMOVED);
        return AccountWord.wrap(uint256(digest) >> LAST_BATCH << LAST_BATCH | flags | current + 1);
    }

    function withFirstRemoved(AccountWord word, bool removed) internal pure returns (AccountWord) {
        uint256 rest = AccountWord.unwrap(word) & ~(uint256(0xff) << FIRST_REMOVED);
        return AccountWord.wrap(removed ? rest | 1 << FIRST_REMOVED : rest);
    }
}
