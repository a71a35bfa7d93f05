// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {Account as ERC4337Account} from "@openzeppelin/contracts/account/Account.sol";
import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";
import {IAccount as IERC4337Account, PackedUserOperation} from "@openzeppelin/contracts/interfaces/IERC4337.sol";
import {Call, IAccount, IAccountFactory} from "../src/interfaces/IAccount.sol";
import {Owners} from "../src/libraries/Owners.sol";
import {Fixture} from "./utils/Fixture.sol";
import {Signers} from "./utils/Signers.sol";

/// @notice Accounts with several owners.
contract AccountOwnersTest is Fixture, Signers {
    uint256 private constant FIRST = 0xa11ce;
    uint256 private constant SECOND = 0xb0b;
    uint256 private constant PASSKEY = 0xbea7;
    address private constant ENTRY_POINT = 0x433709009B8330FDa32311DF1C2AFA402eD8D009;

    IAccountFactory private factory;
    IAccount private account;

    function setUp() public override {
        super.setUp();
        factory = IAccountFactory(_deploy("AccountFactory", ""));
        account = IAccount(factory.createAccount(_eoa(FIRST), 0));
        usdc.mint(address(account), 100 * USDC);
    }

    // --- the set ---

    function test_an_account_starts_with_its_first_owner() external view {
        _assertOwners(_list(_eoa(FIRST)));
        vm.assertEq(account.isOwner(_eoa(SECOND)), false);
        vm.assertEq(account.isOwner(""), false);
    }

    function test_owners_of_both_kinds_are_added_and_logged() external {
        vm.expectEmit(address(account));
        emit IAccount.OwnerAdded(_eoa(SECOND));
        _add(_eoa(SECOND));
        vm.expectEmit(address(account));
        emit IAccount.OwnerAdded(_passkey(PASSKEY));
        _add(_passkey(PASSKEY));
        _assertOwners(_list(_eoa(FIRST), _eoa(SECOND), _passkey(PASSKEY)));
    }

    function test_removing_an_owner_is_logged() external {
        _add(_eoa(SECOND));
        _add(_passkey(PASSKEY));
        vm.expectEmit(address(account));
        emit IAccount.OwnerRemoved(_eoa(SECOND));
        _remove(_eoa(SECOND));
        _assertOwners(_list(_eoa(FIRST), _passkey(PASSKEY)));
        vm.assertEq(account.isOwner(_eoa(SECOND)), false);
        _remove(_passkey(PASSKEY));
        _assertOwners(_list(_eoa(FIRST)));
        vm.assertEq(account.isOwner(_passkey(PASSKEY)), false);
    }

    function test_the_first_owner_can_be_removed_and_added_again() external {
        _add(_passkey(PASSKEY));
        _remove(_eoa(FIRST));
        _assertOwners(_list(_passkey(PASSKEY)));
        vm.assertEq(account.isOwner(_eoa(FIRST)), false);
        vm.assertEq(account.firstOwner(), _eoa(FIRST));
        vm.assertEq(factory.createAccount(_eoa(FIRST), 0), address(account));
        _add(_eoa(FIRST));
        _assertOwners(_list(_eoa(FIRST), _passkey(PASSKEY)));
    }

    function test_the_last_owner_cannot_be_removed() external {
        vm.expectRevert(IAccount.LastOwner.selector);
        _remove(_eoa(FIRST));
        _add(_passkey(PASSKEY));
        _remove(_eoa(FIRST));
        vm.expectRevert(IAccount.LastOwner.selector);
        _remove(_passkey(PASSKEY));
    }

    function test_an_owner_cannot_be_added_twice() external {
        vm.expectRevert(IAccount.OwnerExists.selector);
        _add(_eoa(FIRST));
        _add(_passkey(PASSKEY));
        vm.expectRevert(IAccount.OwnerExists.selector);
        _add(_passkey(PASSKEY));
    }

    function test_only_an_owner_can_be_removed() external {
        _add(_eoa(SECOND));
        _remove(_eoa(SECOND));
        vm.expectRevert(IAccount.OwnerUnknown.selector);
        _remove(_eoa(SECOND));
        vm.expectRevert(IAccount.OwnerUnknown.selector);
        _remove("");
    }

    function test_an_owner_that_can_never_sign_cannot_be_added() external {
        (uint256 x, uint256 y) = vm.publicKeyP256(PASSKEY);
        bytes[7] memory invalid = [
            bytes(""),
            new bytes(20),
            new bytes(64),
            abi.encodePacked(_eoa(SECOND), hex"00"),
            abi.encodePacked(x, y - 1),
            abi.encodePacked(x, y, hex"00"),
            abi.encode(x)
        ];
        for (uint256 i; i < invalid.length; ++i) {
            vm.expectRevert(Owners.OwnerInvalid.selector);
            _add(invalid[i]);
        }
    }

    function test_an_account_has_at_most_16_owners() external {
        for (uint256 i = 1; i < account.MAX_OWNERS(); ++i) {
            _add(i % 2 == 0 ? _eoa(SECOND + i) : _passkey(PASSKEY + i));
        }
        vm.assertEq(account.ownerCount(), 16);
        vm.expectRevert(IAccount.OwnerLimitReached.selector);
        _add(_eoa(SECOND));
        _remove(_eoa(FIRST));
        _add(_eoa(SECOND));
        vm.expectRevert(IAccount.OwnerLimitReached.selector);
        _add(_eoa(FIRST));
        vm.assertEq(account.owners().length, 16);
    }

    function test_only_the_account_and_the_entry_point_can_change_owners() external {
        bytes memory denied = abi.encodeWithSelector(ERC4337Account.AccountUnauthorized.selector, vm.addr(FIRST));
        vm.prank(vm.addr(FIRST));
        vm.expectRevert(denied);
        account.addOwner(_eoa(SECOND));
        vm.prank(ENTRY_POINT);
        account.addOwner(_eoa(SECOND));
        vm.prank(vm.addr(SECOND));
        vm.expectRevert(abi.encodeWithSelector(ERC4337Account.AccountUnauthorized.selector, vm.addr(SECOND)));
        account.removeOwner(_eoa(FIRST));
        vm.prank(ENTRY_POINT);
        account.removeOwner(_eoa(FIRST));
        _assertOwners(_list(_eoa(SECOND)));
    }

    function test_owners_of_one_account_are_not_owners_of_another() external {
        IAccount other = IAccount(factory.createAccount(_eoa(FIRST), bytes32(uint256(1))));
        _add(_eoa(SECOND));
        _remove(_eoa(FIRST));
        vm.assertEq(other.isOwner(_eoa(SECOND)), false);
        vm.assertEq(other.isOwner(_eoa(FIRST)), true);
    }

    // --- what owners sign ---

    function test_a_lost_device_is_replaced_by_two_signed_batches() external {
        bytes memory added = _passkey(PASSKEY);
        Call[] memory calls = _one(abi.encodeCall(account.addOwner, (added)));
        account.executeSigned(calls, block.timestamp, _signEoa(FIRST, _digest(calls)));
        calls = _one(abi.encodeCall(account.removeOwner, (_eoa(FIRST))));
        account.executeSigned(calls, block.timestamp, _signPasskey(PASSKEY, _digest(calls)));
        _assertOwners(_list(added));
        calls = _payment();
        account.executeSigned(calls, block.timestamp, _signPasskey(PASSKEY, _digest(calls)));
        vm.assertEq(usdc.balanceOf(bob), USDC);
    }

    function test_one_batch_can_add_an_owner_and_remove_the_last_one() external {
        Call[] memory calls = new Call[](2);
        calls[0] = Call(address(account), 0, abi.encodeCall(account.addOwner, (_passkey(PASSKEY))));
        calls[1] = Call(address(account), 0, abi.encodeCall(account.removeOwner, (_eoa(FIRST))));
        account.executeSigned(calls, block.timestamp, _signEoa(FIRST, _digest(calls)));
        _assertOwners(_list(_passkey(PASSKEY)));
        // The nonce survives the change of the first owner's state, which shares its word.
        vm.assertEq(account.nonce(), 1);
        vm.assertEq(account.isLastBatch(calls, block.timestamp), true);
    }

    function test_a_batch_that_removes_the_last_owner_fails_as_a_whole() external {
        Call[] memory calls = new Call[](2);
        calls[0] = _payment()[0];
        calls[1] = Call(address(account), 0, abi.encodeCall(account.removeOwner, (_eoa(FIRST))));
        bytes memory signature = _signEoa(FIRST, _digest(calls));
        vm.expectRevert(IAccount.LastOwner.selector);
        account.executeSigned(calls, block.timestamp, signature);
        _assertOwners(_list(_eoa(FIRST)));
    }

    function test_every_owner_can_sign_batches_messages_and_operations() external {
        _add(_eoa(SECOND));
        _add(_passkey(PASSKEY));
        Call[] memory calls = _payment();
        for (uint256 i; i < 3; ++i) {
            account.executeSigned(calls, block.timestamp, _sign(i, _digest(calls)));
            vm.assertEq(_isValidMessage(i), true);
            vm.assertEq(_validateOperation(i), 0);
        }
        vm.assertEq(usdc.balanceOf(bob), 3 * USDC);
    }

    function test_signatures_of_a_removed_owner_are_invalid() external {
        _add(_eoa(SECOND));
        _add(_passkey(PASSKEY));
        _add(_eoa(SECOND + 1));
        Call[] memory calls = _payment();
        bytes[3] memory signatures;
        for (uint256 i; i < 3; ++i) {
            signatures[i] = _sign(i, _digest(calls));
        }
        // Through the EntryPoint, so that the account's own nonce stays and only the owner is missing.
        _remove(_eoa(FIRST));
        _remove(_eoa(SECOND));
        _remove(_passkey(PASSKEY));
        for (uint256 i; i < 3; ++i) {
            vm.expectRevert(IAccount.SignatureInvalid.selector);
            account.executeSigned(calls, block.timestamp, signatures[i]);
            vm.assertEq(_isValidMessage(i), false);
            vm.assertEq(_validateOperation(i), 1);
        }
    }

    function test_a_signature_names_its_owner() external {
        _add(_passkey(PASSKEY));
        _add(_passkey(PASSKEY + 1));
        Call[] memory calls = _payment();
        bytes32 digest = _digest(calls);
        bytes memory assertion = _assertion(PASSKEY, digest, false, 0x05);
        bytes[4] memory invalid = [
            assertion, // no name
            abi.encodePacked(_passkey(PASSKEY + 1), assertion), // another owner's name
            abi.encodePacked(_passkey(PASSKEY + 2), assertion), // the name of no owner
            abi.encodePacked(_eoa(FIRST), _signEoa(FIRST, digest)) // an EOA has no name but its address
        ];
        for (uint256 i; i < invalid.length; ++i) {
            vm.expectRevert(IAccount.SignatureInvalid.selector);
            account.executeSigned(calls, block.timestamp, invalid[i]);
        }
        account.executeSigned(calls, block.timestamp, abi.encodePacked(_passkey(PASSKEY), assertion));
    }

    function test_a_stranger_named_as_owner_cannot_sign() external {
        Call[] memory calls = _payment();
        bytes memory signature = _signPasskey(PASSKEY, _digest(calls));
        vm.expectRevert(IAccount.SignatureInvalid.selector);
        account.executeSigned(calls, block.timestamp, signature);
        signature = _signEoa(SECOND, _digest(calls));
        vm.expectRevert(IAccount.SignatureInvalid.selector);
        account.executeSigned(calls, block.timestamp, signature);
    }

    function test_an_assertion_does_not_read_past_its_signature() external {
        _add(_passkey(PASSKEY));
        Call[] memory calls = _payment();
        bytes memory signature = _signPasskey(PASSKEY, _digest(calls));
        bytes memory data = abi.encodeCall(account.executeSigned, (calls, block.timestamp, signature));
        // The signature is the last of the parameters. It says that it ends before the client data that it points to.
        uint256 length = 0x20 + data.length - (signature.length + 31) / 32 * 32 - 0x20;
        uint256 shorter = signature.length - 64;
        assembly ("memory-safe") {
            mstore(add(data, length), shorter)
        }
        (bool done, bytes memory reason) = address(account).call(data);
        vm.assertEq(done, false);
        vm.assertEq(reason, abi.encodeWithSelector(IAccount.SignatureInvalid.selector));
    }

    // --- helpers ---

    function _sign(uint256 owner, bytes32 digest) private pure returns (bytes memory) {
        if (owner == 2) return _signPasskey(PASSKEY, digest);
        return _signEoa(owner == 0 ? FIRST : SECOND, digest);
    }

    function _isValidMessage(uint256 owner) private view returns (bool) {
        bytes32 hash = keccak256("message");
        bytes32 message = keccak256(abi.encode(keccak256("PersonalSign(bytes prefixed)"), hash));
        bytes32 domain = keccak256(
            abi.encode(
                keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"),
                keccak256("Foretell Account"),
                keccak256("1"),
                block.chainid,
                account
            )
        );
        bytes memory signature = _sign(owner, keccak256(abi.encodePacked(hex"1901", domain, message)));
        return IERC1271(address(account)).isValidSignature(hash, signature) == IERC1271.isValidSignature.selector;
    }

    function _validateOperation(uint256 owner) private returns (uint256) {
        PackedUserOperation memory operation;
        operation.sender = address(account);
        bytes32 hash = keccak256("operation");
        operation.signature = _sign(owner, hash);
        vm.prank(ENTRY_POINT);
        return IERC4337Account(address(account)).validateUserOp(operation, hash, 0);
    }

    function _digest(Call[] memory calls) private view returns (bytes32) {
        return account.digestOf(calls, account.nonce(), block.timestamp);
    }

    function _one(bytes memory data) private view returns (Call[] memory calls) {
        calls = new Call[](1);
        calls[0] = Call(address(account), 0, data);
    }

    function _payment() private view returns (Call[] memory calls) {
        calls = new Call[](1);
        calls[0] = Call(address(usdc), 0, abi.encodeCall(usdc.transfer, (bob, USDC)));
    }

    function _add(bytes memory owner) private {
        vm.prank(ENTRY_POINT);
        account.addOwner(owner);
    }

    function _remove(bytes memory owner) private {
        vm.prank(ENTRY_POINT);
        account.removeOwner(owner);
    }

    function _assertOwners(bytes[] memory expected) private view {
        vm.assertEq(abi.encode(account.owners()), abi.encode(expected));
        vm.assertEq(account.ownerCount(), expected.length);
        for (uint256 i; i < expected.length; ++i) {
            vm.assertEq(account.isOwner(expected[i]), true);
        }
    }

    function _list(bytes memory a) private pure returns (bytes[] memory list) {
        list = new bytes[](1);
        list[0] = a;
    }

    function _list(bytes memory a, bytes memory b) private pure returns (bytes[] memory list) {
        list = new bytes[](2);
        (list[0], list[1]) = (a, b);
    }

    function _list(bytes memory a, bytes memory b, bytes memory c) private pure returns (bytes[] memory list) {
        list = new bytes[](3);
        (list[0], list[1], list[2]) = (a, b, c);
    }
}
