// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {Call} from "../interfaces/IAccount.sol";

/// @notice The EIP-712 struct hash of an account's batch.
library Batches {
    bytes32 private constant CALL_TYPE = keccak256("Call(address target,uint256 value,bytes data)");
    bytes32 private constant BATCH_TYPE =
        keccak256("Batch(Call[] calls,uint256 nonce,uint256 deadline)Call(address target,uint256 value,bytes data)");

    function hash(Call[] calldata calls, uint256 nonce, uint256 deadline) internal pure returns (bytes32) {
        bytes32[] memory hashes = new bytes32[](calls.length);
        for (uint256 i; i < calls.length; ++i) {
            hashes[i] = keccak256(abi.encode(CALL_TYPE, calls[i].target, calls[i].value, keccak256(calls[i].data)));
        }
        return keccak256(abi.encode(BATCH_TYPE, keccak256(abi.encodePacked(hashes)), nonce, deadline));
    }
}
