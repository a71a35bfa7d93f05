// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

struct Call {
    address target;
    uint256 value;
    bytes data;
}

/// @notice A user's smart account. The owner is an EOA (20 bytes) or a passkey (64 bytes: P-256 x, y).
/// Owner-signed batches are EIP-712 typed data, domain ("Foretell Account", "1", chainId, this account):
/// `Batch(Call[] calls,uint256 nonce,uint256 deadline)Call(address target,uint256 value,bytes data)`.
interface IAccount {
    event Executed(uint256 indexed nonce, bytes32 digest);

    error SignatureInvalid();
    error NonceInvalid(uint256 expected);
    error DeadlinePassed();

    function owner() external view returns (bytes memory);
    function nonce() external view returns (uint256);
    /// @notice Runs the calls if `signature` is the owner's over them; any caller may relay it.
    /// An EOA owner signs with ECDSA (65 bytes), a passkey with WebAuthn (ABI-encoded members of OpenZeppelin's WebAuthnAuth).
    function executeSigned(Call[] calldata calls, uint256 deadline, bytes calldata signature) external;
    /// @notice The digest that the owner signs for `executeSigned` at the given nonce.
    function digestOf(Call[] calldata calls, uint256 nonce, uint256 deadline) external view returns (bytes32);
    /// @notice The EntryPoint's or the account's own call (the way out through ERC-4337).
    function execute(Call[] calldata calls) external;
}

interface IAccountFactory {
    event AccountCreated(address indexed account, bytes owner, bytes32 salt);

    /// @notice Neither an address nor a point of the P-256 curve.
    error OwnerInvalid();

    /// @notice The code that every account delegates to.
    function implementation() external view returns (address);
    function accountAddress(bytes calldata owner, bytes32 salt) external view returns (address);
    /// @notice Makes the account if it is not there yet; returns its address either way.
    function createAccount(bytes calldata owner, bytes32 salt) external returns (address);
    /// @notice Makes the account if needed and relays its owner's first batch, in one transaction.
    function createAndExecute(
        bytes calldata owner,
        bytes32 salt,
        Call[] calldata calls,
        uint256 deadline,
        bytes calldata signature
    ) external returns (address);
}
