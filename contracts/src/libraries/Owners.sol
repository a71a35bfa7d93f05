// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {P256} from "@openzeppelin/contracts/utils/cryptography/P256.sol";

/// @notice Owners of accounts: the rule for a valid owner, and the set of owners that an account stores.
/// An owner is an EOA (20 bytes: its address) or a passkey (64 bytes: x and y of a P-256 point).
library Owners {
    uint256 internal constant EOA_LENGTH = 20;
    uint256 internal constant PASSKEY_LENGTH = 64;

    /// @dev An EOA is stored as its address in the high 20 bytes of `x`, and 0 in `y`. No point of P-256 has y = 0.
    struct Stored {
        bytes32 x;
        bytes32 y;
    }

    /// @dev `position` is the index in `list` plus 1, by the hash of the owner's bytes; 0 for an owner that is not stored.
    struct Set {
        mapping(bytes32 ownerHash => uint256) position;
        Stored[] list;
    }

    /// @notice The owner is neither a nonzero address (20 bytes) nor a point of P-256 (64 bytes).
    error OwnerInvalid();

    /// @notice Reverts unless `owner` can sign: USDC sent to an account whose owner cannot sign would be lost.
    function check(bytes calldata owner) internal pure {
        bool valid = owner.length == EOA_LENGTH
            ? bytes20(owner) != 0
            : owner.length == PASSKEY_LENGTH && P256.isValidPublicKey(bytes32(owner), bytes32(owner[32:]));
        if (!valid) revert OwnerInvalid();
    }

    function hasLength(bytes memory owner) internal pure returns (bool) {
        return owner.length == EOA_LENGTH || owner.length == PASSKEY_LENGTH;
    }

    function contains(Set storage set, bytes32 ownerHash) internal view returns (bool) {
        return set.position[ownerHash] != 0;
    }

    function length(Set storage set) internal view returns (uint256) {
        return set.list.length;
    }

    /// @dev The caller has checked that the owner is valid and not in the set.
    function add(Set storage set, bytes calldata owner) internal {
        bool isEoa = owner.length == EOA_LENGTH;
        set.list.push(Stored(isEoa ? bytes32(bytes20(owner)) : bytes32(owner), isEoa ? bytes32(0) : bytes32(owner[32:])));
        set.position[keccak256(owner)] = set.list.length;
    }

    /// @dev The caller has checked that the owner is in the set. The last of the list takes its position.
    function remove(Set storage set, bytes32 ownerHash) internal {
        uint256 position = set.position[ownerHash];
        uint256 last = set.list.length;
        if (position != last) {
            Stored memory moved = set.list[last - 1];
            set.list[position - 1] = moved;
            set.position[keccak256(_bytes(moved))] = position;
        }
        set.list.pop();
        delete set.position[ownerHash];
    }

    function get(Set storage set, uint256 index) internal view returns (bytes memory) {
        return _bytes(set.list[index]);
    }

    function _bytes(Stored memory stored) private pure returns (bytes memory) {
        return stored.y == 0 ? abi.encodePacked(bytes20(stored.x)) : abi.encodePacked(stored.x, stored.y);
    }
}
