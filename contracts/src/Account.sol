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

/// @notice A user's smart account. It is a clone that carries its owner in its own code: there is nothing to initialise,
/// nothing to front-run, and nobody, the owner included, can put another owner in its place.
/// @dev ERC-1271 signatures are nested as ERC-7739 says, so that one owner's signature for one account does not hold for
/// another account of the same owner.
contract Account is IAccount, ERC4337Account, ERC7739 {
    uint256 private constant EOA_LENGTH = 20;
    uint256 private constant PASSKEY_LENGTH = 64;

    uint256 public nonce;

    constructor() EIP712("Foretell Account", "1") {}

    function executeSigned(Call[] calldata calls, uint256 deadline, bytes calldata signature) external {
        if (block.timestamp > deadline) revert DeadlinePassed();
        uint256 current = nonce++;
        bytes32 digest = digestOf(calls, current, deadline);
        if (!_rawSignatureValidation(digest, signature)) revert SignatureInvalid();
        _run(calls);
        emit Executed(current, digest);
    }

    function execute(Call[] calldata calls) external onlyEntryPointOrSelf {
        _run(calls);
    }

    function digestOf(Call[] calldata calls, uint256 nonce_, uint256 deadline) public view returns (bytes32) {
        return _hashTypedDataV4(Batches.hash(calls, nonce_, deadline));
    }

    function owner() public view returns (bytes memory) {
        return Clones.fetchCloneArgs(address(this));
    }

    /// @notice The canonical EntryPoint v0.9.
    function entryPoint() public pure override returns (IEntryPoint) {
        return ERC4337Utils.ENTRYPOINT_V09;
    }

    /// @dev Both kinds refuse a high s. The implementation itself has no owner of either length: nothing is valid there.
    function _rawSignatureValidation(bytes32 hash, bytes calldata signature) internal view override returns (bool) {
        bytes memory owner_ = owner();
        if (owner_.length == EOA_LENGTH) {
            (address signer, ECDSA.RecoverError err,) = ECDSA.tryRecoverCalldata(hash, signature);
            return err == ECDSA.RecoverError.NoError && signer == address(bytes20(owner_));
        }
        if (owner_.length == PASSKEY_LENGTH) {
            (bool decoded, WebAuthn.WebAuthnAuth calldata auth) = WebAuthn.tryDecodeAuth(signature);
            if (!decoded) return false;
            (bytes32 x, bytes32 y) = abi.decode(owner_, (bytes32, bytes32));
            return WebAuthn.verify(abi.encodePacked(hash), auth, x, y);
        }
        return false;
    }

    function _run(Call[] calldata calls) private {
        for (uint256 i; i < calls.length; ++i) {
            Call calldata call_ = calls[i];
            (bool success, bytes memory result) = call_.target.call{value: call_.value}(call_.data);
            Address.verifyCallResult(success, result);
        }
    }
}
