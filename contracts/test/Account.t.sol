// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {IAccount as IERC4337Account, PackedUserOperation} from "@openzeppelin/contracts/interfaces/IERC4337.sol";
import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";
import {Call, IAccount, IAccountFactory} from "../src/interfaces/IAccount.sol";
import {Side} from "../src/interfaces/IMarketHub.sol";
import {Owners} from "../src/libraries/Owners.sol";
import {Fixture} from "./utils/Fixture.sol";
import {Signers} from "./utils/Signers.sol";

contract AccountTest is Fixture, Signers {
    uint256 private constant OWNER = 0xa11ce;
    uint256 private constant PASSKEY = 0xbea7;
    address private constant ENTRY_POINT = 0x433709009B8330FDa32311DF1C2AFA402eD8D009;

    IAccountFactory private factory;
    IAccount private account;
    IAccount private keyed;

    function setUp() public override {
        super.setUp();
        factory = IAccountFactory(_deploy("AccountFactory", ""));
        account = IAccount(factory.createAccount(_eoa(OWNER), 0));
        keyed = IAccount(factory.createAccount(_passkey(PASSKEY), 0));
        usdc.mint(address(account), 100 * USDC);
        usdc.mint(address(keyed), 100 * USDC);
    }

    // --- creation ---

    function test_the_address_is_known_before_the_account_exists() external {
        address known = factory.accountAddress(_eoa(OWNER), bytes32(uint256(5)));
        vm.assertEq(known.code.length, 0);
        vm.assertEq(factory.createAccount(_eoa(OWNER), bytes32(uint256(5))), known);
        vm.assertEq(IAccount(known).firstOwner(), _eoa(OWNER));
    }

    function test_creation_is_logged_once_and_idempotent() external {
        bytes32 salt = bytes32(uint256(5));
        address known = factory.accountAddress(_eoa(OWNER), salt);
        vm.expectEmit(address(factory));
        emit IAccountFactory.AccountCreated(known, _eoa(OWNER), salt);
        factory.createAccount(_eoa(OWNER), salt);
        vm.prank(stranger);
        vm.assertEq(factory.createAccount(_eoa(OWNER), salt), known);
    }

    function test_each_owner_and_salt_has_its_own_account() external view {
        address known = factory.accountAddress(_eoa(OWNER), 0);
        vm.assertEq(known == factory.accountAddress(_eoa(OWNER + 1), 0), false);
        vm.assertEq(known == factory.accountAddress(_eoa(OWNER), bytes32(uint256(1))), false);
    }

    function test_an_owner_that_can_never_sign_is_rejected() external {
        vm.expectRevert(Owners.OwnerInvalid.selector);
        factory.createAccount("", 0);
        vm.expectRevert(Owners.OwnerInvalid.selector);
        factory.createAccount(new bytes(20), 0);
        vm.expectRevert(Owners.OwnerInvalid.selector);
        factory.createAccount(abi.encodePacked(_eoa(OWNER), hex"00"), 0);
        vm.expectRevert(Owners.OwnerInvalid.selector);
        factory.createAccount(abi.encode(1, 2), 0);
    }

    function test_one_transaction_creates_approves_and_enables() external {
        for (uint256 i; i < 2; ++i) {
            bytes memory owner = i == 0 ? _eoa(OWNER) : _passkey(PASSKEY);
            bytes32 salt = bytes32(uint256(9));
            address known = factory.accountAddress(owner, salt);
            usdc.mint(known, 50 * USDC);
            Call[] memory calls = _enabling();
            bytes32 digest = _digestBeforehand(known, calls);
            bytes memory signature = i == 0 ? _signEoa(OWNER, digest) : _signPasskey(PASSKEY, digest);
            vm.prank(stranger);
            factory.createAndExecute(owner, salt, calls, block.timestamp, signature);

            uint64 id = _market(2, 0, 1000 * USDC);
            _execute(_intent(known, 1, id, 0, Side.BuyForUsdc, 20 * USDC, 0));
            vm.assertEq(usdc.balanceOf(known), 30 * USDC);
            vm.assertEq(_volume(id, 0), 20 * USDC);
        }
    }

    // --- a relayer that was overtaken ---

    function test_an_overtaken_relayer_of_the_first_batch_does_not_fail() external {
        (bytes memory owner, bytes32 salt) = (_eoa(OWNER), bytes32(uint256(9)));
        address known = factory.accountAddress(owner, salt);
        usdc.mint(known, 50 * USDC);
        Call[] memory calls = _payment(bob, USDC);
        bytes memory signature = _signEoa(OWNER, _digestBeforehand(known, calls));
        vm.prank(stranger);
        factory.createAndExecute(owner, salt, calls, block.timestamp, signature);
        vm.assertEq(factory.createAndExecute(owner, salt, calls, block.timestamp, signature), known);
        vm.assertEq(usdc.balanceOf(bob), USDC);
        vm.assertEq(IAccount(known).nonce(), 1);
    }

    function test_a_relayer_executes_its_batch_on_an_existing_account() external {
        (bytes memory owner, bytes32 salt) = (_eoa(OWNER), bytes32(uint256(9)));
        address known = factory.accountAddress(owner, salt);
        usdc.mint(known, 50 * USDC);
        Call[] memory calls = _payment(bob, USDC);
        bytes memory signature = _signEoa(OWNER, _digestBeforehand(known, calls));
        vm.prank(stranger);
        factory.createAccount(owner, salt);
        factory.createAndExecute(owner, salt, calls, block.timestamp, signature);
        vm.assertEq(usdc.balanceOf(bob), USDC);
    }

    function test_an_overtaken_batch_is_rejected() external {
        Call[] memory first = _payment(bob, USDC);
        account.executeSigned(first, block.timestamp, _signEoa(OWNER, account.digestOf(first, 0, block.timestamp)));
        vm.assertEq(account.isLastBatch(first, block.timestamp), true);
        vm.assertEq(account.isLastBatch(first, block.timestamp + 1), false);
        Call[] memory other = _payment(bob, 2 * USDC);
        vm.assertEq(account.isLastBatch(other, block.timestamp), false);
        bytes memory signature = _signEoa(OWNER, account.digestOf(other, 0, block.timestamp));
        vm.expectRevert(IAccount.SignatureInvalid.selector);
        factory.createAndExecute(_eoa(OWNER), 0, other, block.timestamp, signature);
        signature = _signEoa(OWNER, account.digestOf(other, 1, block.timestamp));
        account.executeSigned(other, block.timestamp, signature);
        vm.assertEq(account.isLastBatch(first, block.timestamp), false);
    }

    function test_a_new_account_has_no_last_batch() external view {
        vm.assertEq(account.isLastBatch(_payment(bob, USDC), block.timestamp), false);
    }

    // --- signed batches ---

    function test_anyone_can_relay_a_batch_signed_by_an_eoa() external {
        Call[] memory calls = _payment(bob, 30 * USDC);
        bytes32 digest = account.digestOf(calls, 0, block.timestamp);
        vm.expectEmit(address(account));
        emit IAccount.Executed(0, digest);
        vm.prank(stranger);
        account.executeSigned(calls, block.timestamp, _signEoa(OWNER, digest));
        vm.assertEq(usdc.balanceOf(bob), 30 * USDC);
        vm.assertEq(account.nonce(), 1);
    }

    function test_a_batch_signed_by_a_passkey_executes() external {
        Call[] memory calls = _payment(bob, 30 * USDC);
        bytes memory signature = _signPasskey(PASSKEY, keyed.digestOf(calls, 0, block.timestamp));
        keyed.executeSigned(calls, block.timestamp, signature);
        vm.assertEq(usdc.balanceOf(bob), 30 * USDC);
    }

    function test_the_digest_follows_the_standard() external view {
        Call[] memory calls = _enabling();
        vm.assertEq(account.digestOf(calls, 0, block.timestamp), _digestBeforehand(address(account), calls));
    }

    function test_a_signature_works_once() external {
        Call[] memory calls = _payment(bob, USDC);
        bytes memory signature = _signEoa(OWNER, account.digestOf(calls, 0, block.timestamp));
        account.executeSigned(calls, block.timestamp, signature);
        vm.expectRevert(IAccount.SignatureInvalid.selector);
        account.executeSigned(calls, block.timestamp, signature);
    }

    function test_a_signature_is_valid_only_for_one_account() external {
        IAccount other = IAccount(factory.createAccount(_eoa(OWNER), bytes32(uint256(1))));
        Call[] memory calls = _payment(bob, USDC);
        bytes memory signature = _signEoa(OWNER, other.digestOf(calls, 0, block.timestamp));
        vm.expectRevert(IAccount.SignatureInvalid.selector);
        account.executeSigned(calls, block.timestamp, signature);
    }

    function test_a_signature_covers_its_calls_and_deadline() external {
        Call[] memory calls = _payment(bob, USDC);
        bytes memory signature = _signEoa(OWNER, account.digestOf(calls, 0, block.timestamp));
        vm.expectRevert(IAccount.SignatureInvalid.selector);
        account.executeSigned(calls, block.timestamp + 1, signature);
        vm.expectRevert(IAccount.SignatureInvalid.selector);
        account.executeSigned(_payment(bob, 2 * USDC), block.timestamp, signature);
    }

    function test_a_batch_is_valid_through_the_last_second_of_its_deadline() external {
        Call[] memory calls = _payment(bob, USDC);
        uint256 deadline = block.timestamp + 60;
        bytes memory signature = _signEoa(OWNER, account.digestOf(calls, 0, deadline));
        vm.warp(deadline);
        account.executeSigned(calls, deadline, signature);
        vm.assertEq(usdc.balanceOf(bob), USDC);
    }

    function test_a_batch_is_rejected_after_its_deadline() external {
        Call[] memory calls = _payment(bob, USDC);
        bytes memory signature = _signEoa(OWNER, account.digestOf(calls, 0, block.timestamp));
        uint256 deadline = block.timestamp;
        vm.warp(deadline + 1);
        vm.expectRevert(IAccount.DeadlinePassed.selector);
        account.executeSigned(calls, deadline, signature);
    }

    function test_the_signature_of_another_key_is_rejected() external {
        Call[] memory calls = _payment(bob, USDC);
        bytes memory signature = _signEoa(OWNER + 1, account.digestOf(calls, 0, block.timestamp));
        vm.expectRevert(IAccount.SignatureInvalid.selector);
        account.executeSigned(calls, block.timestamp, signature);
        signature = _signPasskey(PASSKEY + 1, keyed.digestOf(calls, 0, block.timestamp));
        vm.expectRevert(IAccount.SignatureInvalid.selector);
        keyed.executeSigned(calls, block.timestamp, signature);
    }

    function test_a_high_s_is_rejected() external {
        Call[] memory calls = _payment(bob, USDC);
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(OWNER, account.digestOf(calls, 0, block.timestamp));
        vm.expectRevert(IAccount.SignatureInvalid.selector);
        account.executeSigned(
            calls, block.timestamp, abi.encodePacked(r, SECP256K1_ORDER - uint256(s), v == 27 ? uint8(28) : uint8(27))
        );
        bytes memory signature = _signPasskey(PASSKEY, keyed.digestOf(calls, 0, block.timestamp), true, 0x05);
        vm.expectRevert(IAccount.SignatureInvalid.selector);
        keyed.executeSigned(calls, block.timestamp, signature);
    }

    function test_a_passkey_must_have_verified_its_user() external {
        Call[] memory calls = _payment(bob, USDC);
        bytes memory signature = _signPasskey(PASSKEY, keyed.digestOf(calls, 0, block.timestamp), false, 0x01);
        vm.expectRevert(IAccount.SignatureInvalid.selector);
        keyed.executeSigned(calls, block.timestamp, signature);
    }

    function test_garbage_is_not_a_signature() external {
        Call[] memory calls = _payment(bob, USDC);
        bytes[4] memory garbage = [bytes(""), new bytes(64), new bytes(65), new bytes(500)];
        for (uint256 i; i < garbage.length; ++i) {
            vm.expectRevert(IAccount.SignatureInvalid.selector);
            account.executeSigned(calls, block.timestamp, garbage[i]);
            vm.expectRevert(IAccount.SignatureInvalid.selector);
            keyed.executeSigned(calls, block.timestamp, garbage[i]);
        }
    }

    function test_a_failed_call_reverts_the_batch_with_its_reason() external {
        Call[] memory calls = new Call[](2);
        calls[0] = _payment(bob, USDC)[0];
        calls[1] = _payment(bob, 100 * USDC)[0];
        bytes memory signature = _signEoa(OWNER, account.digestOf(calls, 0, block.timestamp));
        vm.expectRevert(bytes("ERC20: transfer amount exceeds balance"));
        account.executeSigned(calls, block.timestamp, signature);
        vm.assertEq(account.nonce(), 0);
        vm.assertEq(usdc.balanceOf(bob), 0);
    }

    function test_a_batch_can_send_ether() external {
        vm.deal(address(account), 2 ether);
        Call[] memory calls = new Call[](1);
        calls[0] = Call(bob, 1 ether, "");
        account.executeSigned(calls, block.timestamp, _signEoa(OWNER, account.digestOf(calls, 0, block.timestamp)));
        vm.assertEq(bob.balance, 1 ether);
    }

    function test_the_implementation_has_no_owner() external {
        IAccount bare = IAccount(factory.implementation());
        Call[] memory calls = _payment(bob, 0);
        bytes memory signature = _signEoa(OWNER, bare.digestOf(calls, 0, block.timestamp));
        vm.expectRevert(IAccount.SignatureInvalid.selector);
        bare.executeSigned(calls, block.timestamp, signature);
        vm.assertEq(bare.ownerCount(), 0);
        vm.assertEq(bare.owners().length, 0);
        vm.assertEq(bare.isOwner(bare.firstOwner()), false);
    }

    // --- the way out ---

    function test_only_the_entry_point_and_the_account_execute() external {
        Call[] memory calls = _payment(bob, USDC);
        vm.prank(vm.addr(OWNER));
        vm.expectRevert();
        account.execute(calls);
        vm.prank(ENTRY_POINT);
        account.execute(calls);
        vm.prank(address(account));
        account.execute(calls);
        vm.assertEq(usdc.balanceOf(bob), 2 * USDC);
    }

    function test_a_user_operation_of_an_owner_is_valid_and_pays_its_gas() external {
        vm.deal(address(account), 1 ether);
        bytes32 hash = keccak256("operation");
        vm.prank(ENTRY_POINT);
        vm.assertEq(_erc4337().validateUserOp(_operation(_signEoa(OWNER, hash)), hash, 0.1 ether), 0);
        vm.assertEq(ENTRY_POINT.balance, 0.1 ether);
    }

    function test_a_user_operation_of_another_is_invalid() external {
        bytes32 hash = keccak256("operation");
        vm.prank(ENTRY_POINT);
        vm.assertEq(_erc4337().validateUserOp(_operation(_signEoa(OWNER + 1, hash)), hash, 0), 1);
    }

    function test_only_the_entry_point_validates() external {
        bytes32 hash = keccak256("operation");
        vm.prank(stranger);
        vm.expectRevert();
        _erc4337().validateUserOp(_operation(_signEoa(OWNER, hash)), hash, 0);
    }

    // --- ERC-1271 ---

    function test_a_message_is_valid_only_for_its_account() external view {
        bytes32 hash = keccak256("message");
        bytes memory signature = _signEoa(OWNER, _personal(address(account), hash));
        vm.assertEq(_isValid(address(account), hash, signature), true);
        signature = _signPasskey(PASSKEY, _personal(address(keyed), hash));
        vm.assertEq(_isValid(address(keyed), hash, signature), true);
    }

    function test_a_bare_signature_of_a_hash_is_not_accepted() external view {
        bytes32 hash = keccak256("message");
        vm.assertEq(_isValid(address(account), hash, _signEoa(OWNER, hash)), false);
    }

    function test_a_message_for_another_account_of_the_owner_is_not_accepted() external {
        address other = factory.createAccount(_eoa(OWNER), bytes32(uint256(1)));
        bytes32 hash = keccak256("message");
        vm.assertEq(_isValid(address(account), hash, _signEoa(OWNER, _personal(other, hash))), false);
    }

    function _isValid(address signer, bytes32 hash, bytes memory signature) private view returns (bool) {
        return IERC1271(signer).isValidSignature(hash, signature) == IERC1271.isValidSignature.selector;
    }

    function _personal(address signer, bytes32 hash) private view returns (bytes32) {
        bytes32 message = keccak256(abi.encode(keccak256("PersonalSign(bytes prefixed)"), hash));
        return keccak256(abi.encodePacked(hex"1901", _domain(signer), message));
    }

    function _erc4337() private view returns (IERC4337Account) {
        return IERC4337Account(address(account));
    }

    function _operation(bytes memory signature) private view returns (PackedUserOperation memory operation) {
        operation.sender = address(account);
        operation.signature = signature;
    }

    function _payment(address to, uint256 amount) private view returns (Call[] memory calls) {
        calls = new Call[](1);
        calls[0] = Call(address(usdc), 0, abi.encodeCall(usdc.transfer, (to, amount)));
    }

    function _enabling() private view returns (Call[] memory calls) {
        uint32 expiry = uint32(block.timestamp + 30 days);
        calls = new Call[](2);
        calls[0] = Call(address(usdc), 0, abi.encodeCall(usdc.approve, (address(gate), type(uint256).max)));
        calls[1] = Call(address(gate), 0, abi.encodeCall(gate.setPolicy, (KEY, _limits(1e9, 5e9, expiry))));
    }

    function _domain(address verifier) private view returns (bytes32) {
        return keccak256(
            abi.encode(
                keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"),
                keccak256("Foretell Account"),
                keccak256("1"),
                block.chainid,
                verifier
            )
        );
    }

    /// @dev Computed like in a wallet, only from the typed data.
    function _digestBeforehand(address verifier, Call[] memory calls) private view returns (bytes32) {
        bytes32[] memory hashes = new bytes32[](calls.length);
        for (uint256 i; i < calls.length; ++i) {
            hashes[i] = keccak256(
                abi.encode(
                    keccak256("Call(address target,uint256 value,bytes data)"),
                    calls[i].target,
                    calls[i].value,
                    keccak256(calls[i].data)
                )
            );
        }
        bytes32 batch = keccak256(
            abi.encode(
                keccak256(
                    "Batch(Call[] calls,uint256 nonce,uint256 deadline)Call(address target,uint256 value,bytes data)"
                ),
                keccak256(abi.encodePacked(hashes)),
                uint256(0),
                block.timestamp
            )
        );
        return keccak256(abi.encodePacked(hex"1901", _domain(verifier), batch));
    }
}
