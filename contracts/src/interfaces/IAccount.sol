// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

struct Call {
    address target;
    uint256 value; // wei
    bytes data;
}

/// @notice A user's smart account, with 1 to 16 owners. Every single owner can do everything with it.
///
/// An owner is an EOA (20 bytes: its address) or a passkey (64 bytes: x and y of its P-256 public key).
///
/// A signature names the owner that made it:
/// - an EOA's is ECDSA's r, s, v (65 bytes). The address recovered from it is the name, so it needs no other.
/// - a passkey's is the owner's 64 bytes, followed by the ABI-encoded members of OpenZeppelin's `WebAuthnAuth`.
/// The name is the owner itself and not a position in a list. A signature therefore cannot come to mean another owner when
/// owners change between signing and relaying, and its check costs one storage read at most, however many owners there are.
/// The length decides between the two kinds: a passkey's signature is longer than 256 bytes.
///
/// A signature of a removed owner is not valid, also if it was made before the removal.
///
/// Owner-signed batches are EIP-712 typed data, domain ("Foretell Account", "1", chainId, this account):
/// `Batch(Call[] calls,uint256 nonce,uint256 deadline)Call(address target,uint256 value,bytes data)`.
interface IAccount {
    /// @notice A signed batch was executed.
    /// @param nonce The account's nonce that the batch was for.
    /// @param digest The digest that the owner signed.
    event Executed(uint256 indexed nonce, bytes32 digest);
    /// @notice `owner` can sign for the account from now on.
    event OwnerAdded(bytes owner);
    /// @notice `owner` can no longer sign for the account.
    event OwnerRemoved(bytes owner);

    /// @notice The signature is not one of a present owner for this batch at the account's present nonce.
    error SignatureInvalid();
    /// @notice The block is later than the batch's deadline.
    error DeadlinePassed();
    /// @notice The owner to be added is an owner already.
    error OwnerExists();
    /// @notice The owner to be removed is not an owner.
    error OwnerUnknown();
    /// @notice The account would have no owner.
    error LastOwner();
    /// @notice The account has `MAX_OWNERS` owners.
    error OwnerLimitReached();

    /// @notice The most owners an account can have: 16. It bounds the gas of `owners()`.
    function MAX_OWNERS() external view returns (uint256);

    /// @notice The owner that decides the account's address. It is in the account's code and may have been removed since.
    /// @return 20 bytes of an EOA or 64 of a passkey.
    function firstOwner() external view returns (bytes memory);
    /// @notice The present owners: the first owner if it is one of them, then the others in no particular order.
    /// @return 20 bytes of an EOA or 64 of a passkey, each.
    function owners() external view returns (bytes[] memory);
    /// @notice The number of present owners, 1 to `MAX_OWNERS`.
    function ownerCount() external view returns (uint256);
    /// @notice Whether `owner` (20 or 64 bytes) is a present owner. False for bytes of any other length.
    function isOwner(bytes memory owner) external view returns (bool);

    /// @notice Adds an owner. Callable only by the account itself (in a batch) and by the EntryPoint.
    /// Emits `OwnerAdded`.
    /// @dev Reverts with `AccountUnauthorized`, `OwnerInvalid`, `OwnerExists`, `OwnerLimitReached`.
    /// @param owner 20 bytes of an EOA, not zero, or 64 of a point of P-256.
    function addOwner(bytes calldata owner) external;
    /// @notice Removes an owner, the first one too, but never the last one. Callable only by the account itself (in a
    /// batch) and by the EntryPoint. Signatures that the owner made before are no longer valid; they would be again
    /// only if it were added again before their deadline or, for a user operation, before their nonce is used.
    /// Emits `OwnerRemoved`.
    /// @dev Reverts with `AccountUnauthorized`, `OwnerUnknown`, `LastOwner`.
    /// @param owner 20 bytes of an EOA or 64 of a passkey.
    function removeOwner(bytes calldata owner) external;

    /// @notice The nonce of the next signed batch, from 0.
    function nonce() external view returns (uint256);
    /// @notice Executes the calls in order if `signature` is a present owner's; any caller may relay it. Emits `Executed`.
    /// @dev Reverts with `DeadlinePassed`, `SignatureInvalid`, the first failed call's revert data, or `NonceExhausted` after
    /// 2^48 - 1 batches.
    /// @param calls The calls, of which either all take effect or none.
    /// @param deadline Unix seconds; the batch is valid through this second.
    /// @param signature An owner's signature over `digestOf(calls, nonce(), deadline)`.
    function executeSigned(Call[] calldata calls, uint256 deadline, bytes calldata signature) external;
    /// @notice The digest that an owner signs for `executeSigned`.
    /// @param calls The calls of the batch.
    /// @param nonce The account's nonce that the batch is for.
    /// @param deadline Unix seconds.
    function digestOf(Call[] calldata calls, uint256 nonce, uint256 deadline) external view returns (bytes32);
    /// @notice Whether the batch executed last is this one. A relayer that was overtaken learns from it that the owner has
    /// what it signed.
    /// @param calls The calls of the batch.
    /// @param deadline Unix seconds.
    function isLastBatch(Call[] calldata calls, uint256 deadline) external view returns (bool);
    /// @notice Executes the calls in order. Callable only by the account itself and by the EntryPoint, which calls it for a
    /// valid user operation: the exit through ERC-4337.
    /// @dev Reverts with `AccountUnauthorized` or the first failed call's revert data.
    /// @param calls The calls, of which either all take effect or none.
    function execute(Call[] calldata calls) external;
}

/// @notice Makes accounts.
interface IAccountFactory {
    /// @notice An account was made.
    /// @param account Its address.
    /// @param owner Its first owner: 20 bytes of an EOA or 64 of a passkey.
    /// @param salt The salt of its address.
    event AccountCreated(address indexed account, bytes owner, bytes32 salt);

    /// @notice The code that every account delegates to.
    function implementation() external view returns (address);
    /// @notice The address of the account with this first owner and salt, whether it exists or not.
    /// @param owner 20 bytes of an EOA or 64 of a passkey; not checked.
    /// @param salt Any value: an owner can have one account for each.
    function accountAddress(bytes calldata owner, bytes32 salt) external view returns (address);
    /// @notice Makes the account unless it exists, and returns its address. Emits `AccountCreated` if it was made.
    /// @dev Reverts with `OwnerInvalid`.
    /// @param owner The first owner: 20 bytes of an EOA or 64 of a passkey.
    /// @param salt The salt of its address.
    function createAccount(bytes calldata owner, bytes32 salt) external returns (address);
    /// @notice Makes the account unless it exists, and executes a signed batch of it. If this very batch is the one that the
    /// account executed last, because another relayer was first, it returns without doing anything.
    /// Emits `AccountCreated` if the account was made.
    /// @dev Reverts with `OwnerInvalid`, or as `IAccount.executeSigned`.
    /// @param owner The account's first owner: 20 bytes of an EOA or 64 of a passkey.
    /// @param salt The salt of the account's address.
    /// @param calls As for `IAccount.executeSigned`.
    /// @param deadline As for `IAccount.executeSigned`.
    /// @param signature As for `IAccount.executeSigned`.
    function createAndExecute(
        bytes calldata owner,
        bytes32 salt,
        Call[] calldata calls,
        uint256 deadline,
        bytes calldata signature
    ) external returns (address);
}
