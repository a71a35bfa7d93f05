// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

/// @notice Creates contracts at addresses that depend only on the sender and a salt, on every chain. Hub and Gate name each
/// other in their code: each one's address is known before either has a code that could be hashed. The sender is part of the
/// address, so no other sender can put something else there.
interface IDeployer {
    /// @notice `sender` created a contract.
    event Deployed(address indexed sender, bytes32 indexed salt, address created);

    /// @notice Creates a contract with the caller's salt.
    /// @param initCode Creation code and constructor arguments.
    /// @return created The address that `addressOf(msg.sender, salt)` gives.
    /// @dev Emits `Deployed`. Reverts with `DeploymentFailed` (solady's CREATE3) if the salt is used or the constructor reverts.
    function deploy(bytes32 salt, bytes calldata initCode) external returns (address created);

    /// @return The address of the contract that `sender` creates with `salt`.
    function addressOf(address sender, bytes32 salt) external view returns (address);
}
