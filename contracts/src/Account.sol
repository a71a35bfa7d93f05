// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {Account as ERC4337Account} from "@openzeppelin/contracts/account/Account.sol";
import {ERC4337Utils} from "@openzeppelin/contracts/account/utils/ERC4337Utils.sol";
import {IEntryPoint} from "@openzeppelin/contracts/interfaces/IERC4337.sol";
import {Clones} from "@openzeppelin/contracts/proxy/Clones.sol";
import {Address} from "@openzeppelin/contracts/utils/Address.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {WebAuthn} from "@openzeppelin/contracts/utils/cryptography/WebAuthn.sol";
import {ERC7739} from "@openzeppelin/contracts/utils/cryptography/signers/draft-ERC7739.sol";
import {Call, IAccount} from "./interfaces/IAccount.sol";
import {Batches} from "./libraries/Batches.sol";
import {Owners} from "./libraries/Owners.sol";
import {AccountWord} from "./types/AccountWord.sol";

/// @notice A user's smart account. It is a clone that carries its first owner in its own code, so there is no
/// initialisation to front-run. Only the account itself adds and removes owners, and it never removes its last one.
/// @dev ERC-1271 signatures are nested as ERC-7739 says, so that one owner's signature for one account is not valid for
/// another account of the same owner.
contract Account is IAccount, ERC4337Account, ERC7739 {
    using Owners for Owners.Set;

    /// @inheritdoc IAccount
    uint256 public constant MAX_OWNERS = 16;

    uint256 private constant ECDSA_LENGTH = 65;

    AccountWord private _word;
    /// @dev The owners besides the first one.
    Owners.Set private _added;

    constructor() EIP712("Foretell Account", "1") {}

    function executeSigned(Call[] calldata calls, uint256 deadline, bytes calldata signature) external {
        if (block.timestamp > deadline) revert DeadlinePassed();
        AccountWord word = _word;
        uint256 current = word.nonce();
        bytes32 digest = digestOf(calls, current, deadline);
        if (!_rawSignatureValidation(digest, signature)) revert SignatureInvalid();
        _word = word.advanced(digest);
        _run(calls);
        emit Executed(current, digest);
    }

    function execute(Call[] calldata calls) external onlyEntryPointOrSelf {
        _run(calls);
    }

    function addOwner(bytes calldata owner) external onlyEntryPointOrSelf {
        Owners.check(owner);
        if (isOwner(owner)) revert OwnerExists();
        if (ownerCount() == MAX_OWNERS) revert OwnerLimitReached();
        if (keccak256(owner) == keccak256(firstOwner())) _word = _word.withFirstRemoved(false);
        else _added.add(owner);
        emit OwnerAdded(owner);
    }

    function removeOwner(bytes calldata owner) external onlyEntryPointOrSelf {
        if (!isOwner(owner)) revert OwnerUnknown();
        if (ownerCount() == 1) revert LastOwner();
        bytes32 hash = keccak256(owner);
        if (_added.contains(hash)) _added.remove(hash);
        else _word = _word.withFirstRemoved(true);
        emit OwnerRemoved(owner);
    }

    function nonce() external view returns (uint256) {
        return _word.nonce();
    }

    function isLastBatch(Call[] calldata calls, uint256 deadline) external view returns (bool) {
        AccountWord word = _word;
        uint256 next = word.nonce();
        return next != 0 && word.isLastBatch(digestOf(calls, next - 1, deadline));
    }

    function owners() external view returns (bytes[] memory list) {
        bytes memory first = firstOwner();
        uint256 ahead = _isFirstActive(first) ? 1 : 0;
        uint256 added = _added.length();
        list = new bytes[](ahead + added);
        if (ahead == 1) list[0] = first;
        for (uint256 i; i < added; ++i) {
            list[ahead + i] = _added.get(i);
        }
    }

    function ownerCount() public view returns (uint256) {
        return _added.length() + (_isFirstActive(firstOwner()) ? 1 : 0);
    }

    function isOwner(bytes memory owner) public view returns (bool) {
        bytes32 hash = keccak256(owner);
        bytes memory first = firstOwner();
        return hash == keccak256(first) ? _isFirstActive(first) : _added.contains(hash);
    }

    function firstOwner() public view returns (bytes memory) {
        return Clones.fetchCloneArgs(address(this));
    }

    function digestOf(Call[] calldata calls, uint256 nonce_, uint256 deadline) public view returns (bytes32) {
        return _hashTypedDataV4(Batches.hash(calls, nonce_, deadline));
    }

    /// @notice The canonical EntryPoint v0.9.
    function entryPoint() public pure override returns (IEntryPoint) {
        return ERC4337Utils.ENTRYPOINT_V09;
    }

    /// @dev The form of signatures is described in IAccount. Both kinds reject a high s.
    function _rawSignatureValidation(bytes32 hash, bytes calldata signature) internal view override returns (bool) {
        if (signature.length == ECDSA_LENGTH) {
            (address signer, ECDSA.RecoverError err,) = ECDSA.tryRecoverCalldata(hash, signature);
            return err == ECDSA.RecoverError.NoError && isOwner(abi.encodePacked(signer));
        }
        if (signature.length < Owners.PASSKEY_LENGTH) return false;
        bytes calldata passkey = signature[:Owners.PASSKEY_LENGTH];
        if (!isOwner(passkey)) return false;
        (bool decoded, WebAuthn.WebAuthnAuth calldata auth) =
            WebAuthn.tryDecodeAuth(signature[Owners.PASSKEY_LENGTH:]);
        return decoded && WebAuthn.verify(abi.encodePacked(hash), auth, bytes32(passkey), bytes32(passkey[32:]));
    }

    /// @dev The implementation itself carries no owner: its code has another length.
    function _isFirstActive(bytes memory first) private view returns (bool) {
        return Owners.hasLength(first) && !_word.firstRemoved();
    }

    function _run(Call[] calldata calls) private {
        for (uint256 i; i < calls.length; ++i) {
            Call calldata call_ = calls[i];
            (bool success, bytes memory result) = call_.target.call{value: call_.value}(call_.data);
            Address.verifyCallResult(success, result);
        }
    }
}
