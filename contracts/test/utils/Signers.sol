// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {Base64} from "@openzeppelin/contracts/utils/Base64.sol";
import {Test} from "./Test.sol";

/// @notice What the two kinds of owner sign with: a wallet's key, and a browser's passkey.
abstract contract Signers is Test {
    uint256 internal constant P256_ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551;
    uint256 internal constant SECP256K1_ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141;

    function _eoa(uint256 key) internal pure returns (bytes memory) {
        return abi.encodePacked(vm.addr(key));
    }

    function _passkey(uint256 key) internal pure returns (bytes memory) {
        (uint256 x, uint256 y) = vm.publicKeyP256(key);
        return abi.encodePacked(x, y);
    }

    function _signEoa(uint256 key, bytes32 digest) internal pure returns (bytes memory) {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(key, digest);
        return abi.encodePacked(r, s, v);
    }

    /// @dev The owner's 64 bytes, then the six members as a parameter list, s low.
    function _signPasskey(uint256 key, bytes32 digest) internal pure returns (bytes memory) {
        return _signPasskey(key, digest, false, 0x05);
    }

    function _signPasskey(uint256 key, bytes32 digest, bool high, bytes1 flags) internal pure returns (bytes memory) {
        return abi.encodePacked(_passkey(key), _assertion(key, digest, high, flags));
    }

    /// @dev A browser's assertion without its owner's name.
    function _assertion(uint256 key, bytes32 digest, bool high, bytes1 flags) internal pure returns (bytes memory) {
        string memory json = string.concat(
            '{"type":"webauthn.get","challenge":"',
            Base64.encodeURL(abi.encodePacked(digest)),
            '","origin":"https://app.example","crossOrigin":false}'
        );
        bytes memory data = abi.encodePacked(sha256("app.example"), flags, uint32(0));
        (bytes32 r, bytes32 s) = vm.signP256(key, sha256(abi.encodePacked(data, sha256(bytes(json)))));
        if ((uint256(s) > P256_ORDER / 2) != high) s = bytes32(P256_ORDER - uint256(s));
        return abi.encode(r, s, uint256(23), uint256(1), data, json);
    }
}
