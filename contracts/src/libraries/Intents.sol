// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

/// @notice Reads the three words of an `Intent`; the layout is written there.
library Intents {
    function account(uint256 who) internal pure returns (address) {
        return address(uint160(who >> 96));
    }

    function key(uint256 who) internal pure returns (uint32) {
        return uint32(who >> 64);
    }

    function nonce(uint256 who) internal pure returns (uint32) {
        return uint32(who >> 32);
    }

    function deadline(uint256 who) internal pure returns (uint32) {
        return uint32(who);
    }

    /// @notice The id of the outcome's token: the market's and the outcome's number, as `TokenId` has them.
    function tokenId(uint256 what) internal pure returns (uint256) {
        return uint72(what >> 72);
    }

    /// @return A `Side`, or a number that is none.
    function side(uint256 what) internal pure returns (uint8) {
        return uint8(what >> 64);
    }

    /// @return USDC atomic-6.
    function usdc(uint256 what) internal pure returns (uint256) {
        return uint64(what);
    }

    /// @return WAD.
    function tokens(uint256 bound) internal pure returns (uint256) {
        return bound >> 128;
    }

    function tradeId(uint256 bound) internal pure returns (bytes16) {
        return bytes16(uint128(bound));
    }
}
