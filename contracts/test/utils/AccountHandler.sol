// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";
import {IAccount as IERC4337Account, PackedUserOperation} from "@openzeppelin/contracts/interfaces/IERC4337.sol";
import {Call, IAccount, IAccountFactory} from "../../src/interfaces/IAccount.sol";
import {Signers} from "./Signers.sol";

/// @notice A random history of an account's owners: candidates of both kinds, owners at the moment or not, sign batches that
/// add and remove candidates. It holds a model of the owners, and requires of every step that it succeeds exactly if the model
/// says so.
contract AccountHandler is Signers {
    address private constant ENTRY_POINT = 0x433709009B8330FDa32311DF1C2AFA402eD8D009;
    uint256 private constant MAX_OWNERS = 16;
    uint256 public constant CANDIDATES = 20;

    IAccount public immutable account;

    mapping(uint256 candidate => bool) public isOwner;
    uint256 public ownerCount;
    uint256 public batches;
    uint256 public value;

    constructor(IAccountFactory factory) {
        account = IAccount(factory.createAccount(candidate(0), 0));
        (isOwner[0], ownerCount) = (true, 1);
    }

    /// @dev Even ones are EOAs, odd ones passkeys.
    function candidate(uint256 index) public pure returns (bytes memory) {
        return index % 2 == 0 ? _eoa(index + 1) : _passkey(index + 1);
    }

    function ping() external {
        ++value;
    }

    function add(uint256 signer, uint256 added) external {
        (signer, added) = (_pick(signer), _pick(added));
        bool valid = isOwner[signer] && !isOwner[added] && ownerCount < MAX_OWNERS;
        _batch(signer, _one(address(account), abi.encodeCall(account.addOwner, (candidate(added)))), valid);
        if (valid) _added(added);
    }

    function remove(uint256 signer, uint256 removed) external {
        (signer, removed) = (_pick(signer), _pick(removed));
        bool valid = isOwner[signer] && isOwner[removed] && ownerCount > 1;
        _batch(signer, _one(address(account), abi.encodeCall(account.removeOwner, (candidate(removed)))), valid);
        if (valid) _removed(removed);
    }

    function replace(uint256 signer, uint256 added, uint256 removed) external {
        (signer, added, removed) = (_pick(signer), _pick(added), _pick(removed));
        if (added == removed) return;
        bool valid = isOwner[signer] && isOwner[removed] && !isOwner[added] && ownerCount < MAX_OWNERS;
        Call[] memory calls = new Call[](2);
        calls[0] = Call(address(account), 0, abi.encodeCall(account.addOwner, (candidate(added))));
        calls[1] = Call(address(account), 0, abi.encodeCall(account.removeOwner, (candidate(removed))));
        _batch(signer, calls, valid);
        if (!valid) return;
        _added(added);
        _removed(removed);
    }

    /// @dev Repeats until one owner is left, so that histories come near the last one.
    function removeAllBut(uint256 survivor) external {
        survivor = _pick(survivor);
        if (!isOwner[survivor]) return;
        for (uint256 i; i < CANDIDATES; ++i) {
            if (i == survivor || !isOwner[i]) continue;
            _batch(survivor, _one(address(account), abi.encodeCall(account.removeOwner, (candidate(i)))), true);
            _removed(i);
        }
        _batch(survivor, _one(address(account), abi.encodeCall(account.removeOwner, (candidate(survivor)))), false);
    }

    /// @dev A batch, a user operation and a message.
    function use(uint256 signer) external {
        signer = _pick(signer);
        uint256 before = value;
        _batch(signer, _one(address(this), abi.encodeCall(this.ping, ())), isOwner[signer]);
        require(value == (isOwner[signer] ? before + 1 : before), "effect");

        PackedUserOperation memory operation;
        bytes32 hash = keccak256(abi.encode("operation", batches));
        (operation.sender, operation.signature) = (address(account), _sign(signer, hash));
        vm.prank(ENTRY_POINT);
        uint256 refused = IERC4337Account(address(account)).validateUserOp(operation, hash, 0);
        require(refused == (isOwner[signer] ? 0 : 1), "operation");

        bytes memory signature = _sign(signer, _personal(hash));
        bool valid = IERC1271(address(account)).isValidSignature(hash, signature) == IERC1271.isValidSignature.selector;
        require(valid == isOwner[signer], "message");
    }

    function _batch(uint256 signer, Call[] memory calls, bool valid) private {
        bytes memory signature = _sign(signer, account.digestOf(calls, account.nonce(), block.timestamp));
        try account.executeSigned(calls, block.timestamp, signature) {
            require(valid, "a batch took effect that must not");
            ++batches;
        } catch {
            require(!valid, "a batch failed that must take effect");
        }
    }

    function _sign(uint256 signer, bytes32 digest) private pure returns (bytes memory) {
        return signer % 2 == 0 ? _signEoa(signer + 1, digest) : _signPasskey(signer + 1, digest);
    }

    function _personal(bytes32 hash) private view returns (bytes32) {
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
        return keccak256(abi.encodePacked(hex"1901", domain, message));
    }

    function _added(uint256 index) private {
        (isOwner[index], ownerCount) = (true, ownerCount + 1);
    }

    function _removed(uint256 index) private {
        (isOwner[index], ownerCount) = (false, ownerCount - 1);
    }

    /// @dev An owner in about half of the cases once there are several.
    function _pick(uint256 seed) private view returns (uint256 index) {
        index = seed % CANDIDATES;
        if (seed / CANDIDATES % 2 == 0) return index;
        while (!isOwner[index]) index = (index + 1) % CANDIDATES;
    }

    function _one(address target, bytes memory data) private pure returns (Call[] memory calls) {
        calls = new Call[](1);
        calls[0] = Call(target, 0, data);
    }
}
