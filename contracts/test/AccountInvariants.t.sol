// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {IAccount, IAccountFactory} from "../src/interfaces/IAccount.sol";
import {AccountHandler} from "./utils/AccountHandler.sol";
import {Test} from "./utils/Test.sol";

/// @notice After any history of changes, the owners of an account must equal the model's. The handler requires that exactly
/// the owners' signatures are valid, and that the last owner is never removed.
contract AccountInvariantsTest is Test {
    AccountHandler private handler;

    function setUp() external {
        handler = new AccountHandler(IAccountFactory(_deploy("AccountFactory", "")));
        bytes4[] memory selectors = new bytes4[](7);
        selectors[0] = handler.add.selector;
        selectors[1] = handler.add.selector;
        selectors[2] = handler.add.selector;
        selectors[3] = handler.remove.selector;
        selectors[4] = handler.replace.selector;
        selectors[5] = handler.removeAllBut.selector;
        selectors[6] = handler.use.selector;
        _target(address(handler), selectors);
    }

    /// @dev A P-256 signature costs a few milliseconds to check without the precompile.
    /// forge-config: tests.invariant.runs = 24
    function invariant_the_owners_equal_the_model() external view {
        IAccount account = handler.account();
        bytes[] memory owners = account.owners();
        vm.assertGe(owners.length, 1, "no owner");
        vm.assertEq(owners.length, handler.ownerCount());
        vm.assertEq(account.ownerCount(), owners.length);
        for (uint256 i; i < handler.CANDIDATES(); ++i) {
            bytes memory candidate = handler.candidate(i);
            uint256 listed;
            for (uint256 j; j < owners.length; ++j) {
                if (keccak256(owners[j]) == keccak256(candidate)) ++listed;
            }
            vm.assertEq(listed, handler.isOwner(i) ? 1 : 0);
            vm.assertEq(account.isOwner(candidate), handler.isOwner(i));
        }
        vm.assertEq(account.nonce(), handler.batches());
    }
}
