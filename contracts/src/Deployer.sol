// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {CREATE3} from "solady/utils/CREATE3.sol";
import {IDeployer} from "./interfaces/IDeployer.sol";

/// @notice It has no arguments, so the common deterministic deployer puts it at one address on every chain.
contract Deployer is IDeployer {
    function deploy(bytes32 salt, bytes calldata initCode) external returns (address created) {
        created = CREATE3.deployDeterministic(initCode, _salt(msg.sender, salt));
        emit Deployed(msg.sender, salt, created);
    }

    function addressOf(address sender, bytes32 salt) external view returns (address) {
        return CREATE3.predictDeterministicAddress(_salt(sender, salt));
    }

    function _salt(address sender, bytes32 salt) private pure returns (bytes32) {
        return keccak256(abi.encode(sender, salt));
    }
}
