// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {IAuthority, Roles} from "../src/interfaces/IAuthority.sol";
import {IDeployer} from "../src/interfaces/IDeployer.sol";
import {Test} from "./utils/Test.sol";
import {CREATE3} from "solady/utils/CREATE3.sol";

contract DeployerTest is Test {
    bytes32 private constant SALT = keccak256("one");

    address private alice = _named("alice");
    address private bob = _named("bob");
    IDeployer private deployer;

    function setUp() external {
        deployer = IDeployer(_deploy("Deployer", ""));
    }

    function test_the_address_depends_on_sender_and_salt() external {
        address expected = deployer.addressOf(alice, SALT);
        vm.expectEmit(address(deployer));
        emit IDeployer.Deployed(alice, SALT, expected);
        vm.prank(alice);
        vm.assertEq(deployer.deploy(SALT, _code(7)), expected);
        vm.assertEq(uint256(IAuthority(expected).delay()), 7);
    }

    function test_the_address_is_the_documented_one() external view {
        bytes32 salt = keccak256(abi.encode(alice, SALT));
        vm.assertEq(deployer.addressOf(alice, SALT), CREATE3.predictDeterministicAddress(salt, address(deployer)));
    }

    function test_the_address_does_not_depend_on_the_code() external {
        uint256 snapshot = vm.snapshotState();
        vm.prank(alice);
        address first = deployer.deploy(SALT, _code(7));
        vm.revertToState(snapshot);
        vm.prank(alice);
        vm.assertEq(deployer.deploy(SALT, _code(8)), first);
    }

    function test_another_sender_or_salt_gives_another_address() external {
        vm.prank(bob);
        address taken = deployer.deploy(SALT, _code(7));
        vm.assertEq(taken == deployer.addressOf(alice, SALT), false);
        vm.assertEq(deployer.addressOf(alice, SALT) == deployer.addressOf(alice, keccak256("two")), false);
        vm.prank(alice);
        deployer.deploy(SALT, _code(7));
    }

    function test_a_salt_works_once_and_a_failed_constructor_frees_it() external {
        vm.startPrank(alice);
        bytes memory bad = _code(type(uint32).max);
        vm.expectRevert();
        deployer.deploy(SALT, bad);
        deployer.deploy(SALT, _code(7));
        bytes memory good = _code(7);
        vm.expectRevert();
        deployer.deploy(SALT, good);
    }

    function _code(uint32 delay) private view returns (bytes memory) {
        string memory json = vm.readFile("artifacts/Authority.json");
        return
            abi.encodePacked(vm.parseJsonBytes(json, ".bytecode"), abi.encode(Roles(alice, alice, alice, alice), delay));
    }
}
