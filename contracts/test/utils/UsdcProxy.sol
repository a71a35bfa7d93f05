// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

/// @notice The real USDC sits behind a proxy that asks at each call whether its admin is calling. This one costs the same,
/// so that gas is measured as it will be paid.
contract UsdcProxy {
    bytes32 private constant IMPLEMENTATION = keccak256("test.proxy.implementation");
    bytes32 private constant ADMIN = keccak256("test.proxy.admin");

    /// @param owner Written where the implementation keeps its owner.
    constructor(address implementation, address owner) {
        (bytes32 at_, bytes32 admin) = (IMPLEMENTATION, ADMIN);
        assembly ("memory-safe") {
            sstore(at_, implementation)
            sstore(admin, 1)
            sstore(0, owner)
        }
    }

    fallback() external payable {
        (bytes32 at_, bytes32 admin) = (IMPLEMENTATION, ADMIN);
        assembly {
            if eq(caller(), sload(admin)) { revert(0, 0) }
            calldatacopy(0, 0, calldatasize())
            let done := delegatecall(gas(), sload(at_), 0, calldatasize(), 0, 0)
            returndatacopy(0, 0, returndatasize())
            if done { return(0, returndatasize()) }
            revert(0, returndatasize())
        }
    }
}
