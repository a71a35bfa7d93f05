// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {Account} from "../../src/Account.sol";
import {AccountFactory} from "../../src/AccountFactory.sol";
import {Owners} from "../../src/libraries/Owners.sol";
import {Vm} from "../utils/Test.sol";

/// @notice The set of owners, for every owner: of both kinds in the library, of EOAs in the whole account. Points of P-256 are
/// beyond a solver, so whether a passkey is valid is left to the tests.
contract OwnerSetSymbolic {
    using Owners for Owners.Set;

    Vm private constant vm = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));
    address private constant FIRST = address(0xa11ce);

    Owners.Set private set;
    Account private account;

    function setUp() external {
        AccountFactory factory = new AccountFactory();
        account = Account(payable(factory.createAccount(abi.encodePacked(FIRST), 0)));
    }

    // --- the library ---

    function add(bytes calldata owner) external {
        set.add(owner);
    }

    /// @dev `removed` is any of three owners of both kinds; the others stay, once each.
    function check_a_removal_removes_only_one_owner(address a, bytes32 x, bytes32 y, address b, uint8 which) external {
        if (a == b || y == 0) return;
        uint256 removed = which == 0 ? 0 : which == 1 ? 1 : 2;
        bytes[3] memory owners = [abi.encodePacked(a), abi.encodePacked(x, y), abi.encodePacked(b)];
        for (uint256 i; i < 3; ++i) {
            this.add(owners[i]);
        }
        assert(set.length() == 3);
        set.remove(keccak256(owners[removed]));
        assert(set.length() == 2);
        for (uint256 i; i < 3; ++i) {
            bytes32 hash = keccak256(owners[i]);
            uint256 listed;
            for (uint256 j; j < 2; ++j) {
                if (keccak256(set.get(j)) == hash) ++listed;
            }
            assert(set.contains(hash) == (i != removed));
            assert(listed == (i != removed ? 1 : 0));
        }
    }

    // --- the account ---

    function _call(bytes memory data) private returns (bool done) {
        vm.prank(address(account));
        (done,) = address(account).call(data);
    }

    function _add(address owner) private returns (bool) {
        return _call(abi.encodeCall(Account.addOwner, (abi.encodePacked(owner))));
    }

    function _remove(address owner) private returns (bool) {
        return _call(abi.encodeCall(Account.removeOwner, (abi.encodePacked(owner))));
    }

    function _has(address owner) private view returns (bool) {
        return account.isOwner(abi.encodePacked(owner));
    }

    function check_only_the_account_and_the_entry_point_change_owners(address caller, address owner) external {
        if (caller == address(account) || caller == address(account.entryPoint())) return;
        vm.prank(caller);
        (bool added,) = address(account).call(abi.encodeCall(Account.addOwner, (abi.encodePacked(owner))));
        vm.prank(caller);
        (bool removed,) = address(account).call(abi.encodeCall(Account.removeOwner, (abi.encodePacked(FIRST))));
        assert(!added && !removed);
        assert(account.ownerCount() == 1);
    }

    /// @dev An owner is added exactly if it is valid and new, and no other becomes one with it.
    function check_an_addition_adds_only_one_owner(address added, address other) external {
        if (other == added) return;
        bool before = _has(other);
        bool isNew = added != address(0) && added != FIRST;
        assert(_add(added) == isNew);
        assert(_has(added) == (added != address(0)));
        assert(_has(other) == before);
        assert(account.ownerCount() == (isNew ? 2 : 1));
    }

    /// @dev An addition and two removals of any owners: at least one owner is left, and the count is that of the list.
    function check_an_account_always_has_an_owner(address a, address b, address c) external {
        _add(a);
        _remove(b);
        _remove(c);
        uint256 count = account.ownerCount();
        assert(count == 1 || count == 2);
        assert(account.owners().length == count);
        assert((_has(FIRST) ? 1 : 0) + (a != FIRST && _has(a) ? 1 : 0) == count);
    }
}
