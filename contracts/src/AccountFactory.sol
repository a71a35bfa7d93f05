// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {Clones} from "@openzeppelin/contracts/proxy/Clones.sol";
import {Account} from "./Account.sol";
import {Call, IAccount, IAccountFactory} from "./interfaces/IAccount.sol";
import {Owners} from "./libraries/Owners.sol";

/// @notice Makes accounts at addresses known beforehand: CREATE2 from the first owner, which is part of the account's
/// code, and a salt. Any caller may make any account; the result is the same.
contract AccountFactory is IAccountFactory {
    address public immutable implementation = address(new Account());

    function accountAddress(bytes calldata owner, bytes32 salt) public view returns (address) {
        return Clones.predictDeterministicAddressWithImmutableArgs(implementation, owner, salt);
    }

    function createAccount(bytes calldata owner, bytes32 salt) external returns (address account) {
        (account,) = _create(owner, salt);
    }

    function createAndExecute(
        bytes calldata owner,
        bytes32 salt,
        Call[] calldata calls,
        uint256 deadline,
        bytes calldata signature
    ) external returns (address account) {
        bool isNew;
        (account, isNew) = _create(owner, salt);
        // Another relayer was first with this very batch: its owner has what it signed.
        if (!isNew && IAccount(account).isLastBatch(calls, deadline)) return account;
        IAccount(account).executeSigned(calls, deadline, signature);
    }

    function _create(bytes calldata owner, bytes32 salt) private returns (address account, bool isNew) {
        Owners.check(owner);
        account = accountAddress(owner, salt);
        isNew = account.code.length == 0;
        if (!isNew) return (account, isNew);
        Clones.cloneDeterministicWithImmutableArgs(implementation, owner, salt);
        emit AccountCreated(account, owner, salt);
    }
}
