// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

struct Log {
    bytes32[] topics;
    bytes data;
    address emitter;
}

struct FuzzSelector {
    address addr;
    bytes4[] selectors;
}

/// @notice The cheat codes that these tests use.
interface Vm {
    function prank(address sender) external;
    function startPrank(address sender) external;
    function stopPrank() external;
    function warp(uint256 timestamp) external;
    function deal(address account, uint256 wei_) external;
    function store(address target, bytes32 slot, bytes32 value) external;
    function load(address target, bytes32 slot) external view returns (bytes32);
    function assume(bool condition) external pure;
    function addr(uint256 key) external pure returns (address);
    function sign(uint256 key, bytes32 digest) external pure returns (uint8 v, bytes32 r, bytes32 s);
    function signP256(uint256 key, bytes32 digest) external pure returns (bytes32 r, bytes32 s);
    function publicKeyP256(uint256 key) external pure returns (uint256 x, uint256 y);
    function getNonce(address account) external view returns (uint64);
    function computeCreateAddress(address deployer, uint256 nonce) external pure returns (address);
    function expectRevert() external;
    function expectRevert(bytes4 selector) external;
    function expectRevert(bytes calldata data) external;
    function expectEmit(address emitter) external;
    function readFile(string calldata path) external view returns (string memory);
    function parseJsonBytes(string calldata json, string calldata key) external pure returns (bytes memory);
    function recordLogs() external;
    function getRecordedLogs() external returns (Log[] memory);
    function snapshotState() external returns (uint256);
    function revertToState(uint256 id) external returns (bool);
    function snapshotGasLastCall(string calldata group, string calldata name) external returns (uint256);
    function assertEq(uint256 a, uint256 b) external pure;
    function assertEq(uint256 a, uint256 b, string calldata why) external pure;
    function assertEq(address a, address b) external pure;
    function assertEq(bytes32 a, bytes32 b) external pure;
    function assertEq(bytes calldata a, bytes calldata b) external pure;
    function assertEq(bool a, bool b) external pure;
    function assertLe(uint256 a, uint256 b) external pure;
    function assertLe(uint256 a, uint256 b, string calldata why) external pure;
    function assertGe(uint256 a, uint256 b, string calldata why) external pure;
    function assertApproxEqAbs(uint256 a, uint256 b, uint256 delta) external pure;
    function assertApproxEqAbs(uint256 a, uint256 b, uint256 delta, string calldata why) external pure;
}

/// @notice What forge looks for in a test contract, and nothing else.
abstract contract Test {
    Vm internal constant vm = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));
    bool public constant IS_TEST = true;

    address[] private _targets;
    FuzzSelector[] private _selectors;

    function targetContracts() external view returns (address[] memory) {
        return _targets;
    }

    function targetSelectors() external view returns (FuzzSelector[] memory) {
        return _selectors;
    }

    function _target(address handler, bytes4[] memory selectors) internal {
        _targets.push(handler);
        _selectors.push(FuzzSelector(handler, selectors));
    }

    /// @dev Deploys the bytecode that is committed, and that production deploys.
    function _deploy(string memory name, bytes memory arguments) internal returns (address made) {
        string memory json = vm.readFile(string.concat("artifacts/", name, ".json"));
        bytes memory code = abi.encodePacked(vm.parseJsonBytes(json, ".bytecode"), arguments);
        assembly ("memory-safe") {
            made := create(0, add(code, 0x20), mload(code))
        }
        require(made != address(0), name);
    }

    function _bound(uint256 value, uint256 low, uint256 high) internal pure returns (uint256) {
        return value >= low && value <= high ? value : low + value % (high - low + 1);
    }

    function _named(string memory name) internal pure returns (address) {
        return vm.addr(uint256(keccak256(bytes(name))));
    }
}
