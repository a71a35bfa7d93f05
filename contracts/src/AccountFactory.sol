// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {Clones} from "@openzeppelin/contracts/proxy/Clones.sol";
import {P256} from "@openzeppelin/contracts/utils/cryptography/P256.sol";
import {Account} from "./Account.sol";
import {Call, IAccount, IAccountFactory} from "./interfaces/IAccount.sol";

/// @notice Makes accounts at addresses known beforehand: CREATE2 from the owner, which is part of the account's code, and
/// a salt. Anyone may make anyone's account; it is the same account whoever does.
contract AccountFactory is IAccountFactory {
    address public immutable implementation = address(new Account());

    function accountAddress(bytes calldata owner, bytes32 salt) public view returns (address) {
        return Clones.predictDeterministicAddressWithImmutableArgs(implementation, owner, salt);
    }

    function createAccount(bytes calldata owner, bytes32 salt) public returns (address account) {
        _checkOwner(owner);
        account = accountAddress(owner, salt);
        if (account.code.length != 0) return account;
        Clones.cloneDeterministicWithImmutableArgs(implementation, owner, salt);
        emit AccountCreated(account, owner, salt);
    }

    function createAndExecute(
        bytes calldata owner,
        bytes32 salt,
        Call[] calldata calls,
        uint256 deadline,
        bytes calldata signature
    ) external returns (address account) {
        account = createAccount(owner, salt);
        IAccount(account).executeSigned(calls, deadline, signature);
    }

    /// @dev An account whose owner can never sign would swallow what is sent to it.
    function _checkOwner(bytes calldata owner) private pure {
        if (owner.length == 20) {
            if (bytes20(owner) == 0) revert OwnerInvalid();
        } else if (owner.length == 64) {
            if (!P256.isValidPublicKey(bytes32(owner), bytes32(owner[32:]))) revert OwnerInvalid();
        } else {
            revert OwnerInvalid();
        }
    }
}
