// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {IAuthority, Role, Roles} from "../src/interfaces/IAuthority.sol";
import {Test} from "./utils/Test.sol";

contract AuthorityTest is Test {
    uint32 private constant DELAY = 2 days;

    address private owner = _named("owner");
    address private resolver = _named("resolver");
    address private guardian = _named("guardian");
    address private treasury = _named("treasury");
    address private fresh = _named("fresh");
    address private thief = _named("thief");
    IAuthority private authority;

    function setUp() external {
        vm.warp(1_800_000_000);
        authority = _authority(DELAY);
    }

    function test_the_first_holders_and_the_delay_are_the_deployed_ones() external view {
        vm.assertEq(authority.owner(), owner);
        vm.assertEq(authority.resolver(), resolver);
        vm.assertEq(authority.guardian(), guardian);
        vm.assertEq(authority.treasury(), treasury);
        vm.assertEq(uint256(authority.delay()), DELAY);
    }

    function test_empty_seats_and_excessive_delays_are_rejected() external {
        for (uint256 i; i < 4; ++i) {
            address[4] memory all = [owner, resolver, guardian, treasury];
            all[i] = address(0);
            vm.assertEq(_creates(Roles(all[0], all[1], all[2], all[3]), DELAY), false);
        }
        Roles memory roles = Roles(owner, resolver, guardian, treasury);
        vm.assertEq(_creates(roles, authority.MAX_DELAY()), true);
        vm.assertEq(_creates(roles, authority.MAX_DELAY() + 1), false);
    }

    // --- hand-over ---

    function test_the_new_holder_accepts_each_seat_after_the_delay() external {
        for (uint8 i = 4; i > 0; --i) {
            Role role = Role(i - 1);
            address before = authority.holder(role);
            uint64 due = uint64(block.timestamp) + DELAY;
            vm.expectEmit(address(authority));
            emit IAuthority.RoleProposed(role, fresh, owner, false, due);
            _propose(role, fresh);
            (address to, uint64 acceptableAt) = authority.proposed(role);
            vm.assertEq(to, fresh);
            vm.assertEq(acceptableAt, due);

            vm.warp(due - 1);
            _expect(abi.encodeWithSelector(IAuthority.DelayNotOver.selector, due));
            vm.prank(fresh);
            authority.accept(role);
            vm.assertEq(authority.holder(role), before);

            vm.warp(due);
            _expect(abi.encodeWithSelector(IAuthority.NotAuthorized.selector));
            vm.prank(thief);
            authority.accept(role);
            vm.expectEmit(address(authority));
            emit IAuthority.RoleTransferred(role, before, fresh);
            vm.prank(fresh);
            authority.accept(role);
            vm.assertEq(authority.holder(role), fresh);

            _expect(abi.encodeWithSelector(IAuthority.NotProposed.selector, role));
            vm.prank(fresh);
            authority.accept(role);
        }
    }

    function test_only_the_owner_can_propose_holders() external {
        address[4] memory others = [resolver, guardian, treasury, thief];
        for (uint256 i; i < others.length; ++i) {
            for (uint8 role; role < 4; ++role) {
                _expect(abi.encodeWithSelector(IAuthority.NotAuthorized.selector));
                vm.prank(others[i]);
                authority.propose(Role(role), others[i]);
            }
        }
    }

    function test_a_seat_cannot_be_proposed_to_the_zero_address() external {
        _expect(abi.encodeWithSelector(IAuthority.AddressZero.selector));
        _propose(Role.Guardian, address(0));
        _expect(abi.encodeWithSelector(IAuthority.AddressZero.selector));
        vm.prank(guardian);
        authority.proposeRecovery(address(0));
    }

    function test_a_second_proposal_replaces_the_first_and_waits_its_own_delay() external {
        _propose(Role.Resolver, thief);
        vm.warp(block.timestamp + DELAY);
        _propose(Role.Resolver, fresh);
        _expect(abi.encodeWithSelector(IAuthority.NotAuthorized.selector));
        vm.prank(thief);
        authority.accept(Role.Resolver);
        _expect(abi.encodeWithSelector(IAuthority.DelayNotOver.selector, uint64(block.timestamp) + DELAY));
        vm.prank(fresh);
        authority.accept(Role.Resolver);
    }

    function test_without_a_delay_the_new_holder_can_accept_at_once() external {
        authority = _authority(0);
        _propose(Role.Treasury, fresh);
        vm.prank(fresh);
        authority.accept(Role.Treasury);
        vm.assertEq(authority.treasury(), fresh);
    }

    // --- vetoes: one lost or stolen key neither gains a seat nor blocks one ---

    function test_guardian_and_resolver_keep_seats_from_a_stolen_owner_key() external {
        for (uint8 i; i < 4; ++i) {
            Role role = Role(i);
            _propose(role, thief);
            vm.warp(block.timestamp + DELAY);
            address watcher = role == Role.Guardian ? resolver : guardian;
            vm.expectEmit(address(authority));
            emit IAuthority.RoleProposalRemoved(role, thief, watcher, false);
            vm.prank(watcher);
            authority.veto(role);
            _expect(abi.encodeWithSelector(IAuthority.NotProposed.selector, role));
            vm.prank(thief);
            authority.accept(role);
        }
    }

    function test_a_stolen_owner_key_cannot_remove_the_guardians_veto() external {
        vm.prank(owner);
        authority.suspendResolver();
        _propose(Role.Guardian, thief);
        vm.prank(resolver);
        authority.veto(Role.Guardian);
        vm.warp(block.timestamp + DELAY);
        _expect(abi.encodeWithSelector(IAuthority.NotProposed.selector, Role.Guardian));
        vm.prank(thief);
        authority.accept(Role.Guardian);
    }

    function test_guardian_and_resolver_can_replace_a_stolen_owner() external {
        _propose(Role.Treasury, thief);
        vm.expectEmit(address(authority));
        emit IAuthority.RoleProposed(Role.Owner, fresh, guardian, true, uint64(block.timestamp) + DELAY);
        vm.prank(guardian);
        authority.proposeRecovery(fresh);
        // Neither a veto nor a proposal of its own stops the recovery.
        _expect(abi.encodeWithSelector(IAuthority.NotAuthorized.selector));
        vm.prank(owner);
        authority.vetoRecovery();
        _propose(Role.Owner, thief);
        vm.warp(block.timestamp + DELAY - 1);
        _expect(abi.encodeWithSelector(IAuthority.DelayNotOver.selector, uint64(block.timestamp) + 1));
        vm.prank(fresh);
        authority.acceptRecovery();
        vm.warp(block.timestamp + 1);
        _expect(abi.encodeWithSelector(IAuthority.NotAuthorized.selector));
        vm.prank(thief);
        authority.acceptRecovery();
        vm.prank(fresh);
        authority.acceptRecovery();
        vm.assertEq(authority.owner(), fresh);
        // What the thief prepared is gone.
        for (uint8 role; role < 4; ++role) {
            (address to,) = authority.proposed(Role(role));
            vm.assertEq(to, address(0));
        }
        _expect(abi.encodeWithSelector(IAuthority.NotProposed.selector, Role.Owner));
        vm.prank(fresh);
        authority.acceptRecovery();
    }

    function test_a_hostile_guardian_can_neither_keep_nor_gain_a_seat() external {
        vm.prank(guardian);
        authority.proposeRecovery(guardian);
        vm.prank(guardian);
        authority.suspendResolver();
        vm.expectEmit(address(authority));
        emit IAuthority.RoleProposalRemoved(Role.Owner, guardian, resolver, true);
        vm.prank(resolver);
        authority.vetoRecovery();

        _propose(Role.Guardian, fresh);
        _expect(abi.encodeWithSelector(IAuthority.NotAuthorized.selector));
        vm.prank(guardian);
        authority.veto(Role.Guardian);
        vm.prank(guardian);
        authority.proposeRecovery(thief);
        vm.warp(block.timestamp + DELAY);
        vm.prank(fresh);
        authority.accept(Role.Guardian);
        vm.assertEq(authority.guardian(), fresh);
        // The old guardian's recovery went with it.
        _expect(abi.encodeWithSelector(IAuthority.NotProposed.selector, Role.Owner));
        vm.prank(thief);
        authority.acceptRecovery();
    }

    function test_a_hostile_resolver_cannot_keep_its_seat() external {
        _propose(Role.Resolver, fresh);
        _expect(abi.encodeWithSelector(IAuthority.NotAuthorized.selector));
        vm.prank(resolver);
        authority.veto(Role.Resolver);
        vm.warp(block.timestamp + DELAY);
        vm.prank(fresh);
        authority.accept(Role.Resolver);
        vm.assertEq(authority.resolver(), fresh);
    }

    function test_a_lost_key_of_each_seat_can_be_replaced() external {
        for (uint8 i = 1; i < 4; ++i) {
            _propose(Role(i), fresh);
        }
        vm.prank(guardian);
        authority.proposeRecovery(fresh);
        vm.warp(block.timestamp + DELAY);
        vm.startPrank(fresh);
        authority.accept(Role.Treasury);
        authority.accept(Role.Resolver);
        authority.acceptRecovery();
        vm.stopPrank();
        vm.assertEq(authority.owner(), fresh);
        vm.assertEq(authority.resolver(), fresh);
        vm.assertEq(authority.treasury(), fresh);
    }

    function test_the_proposer_can_withdraw_and_strangers_cannot_veto() external {
        _propose(Role.Treasury, fresh);
        vm.prank(guardian);
        authority.proposeRecovery(fresh);
        address[2] memory others = [treasury, thief];
        for (uint256 i; i < others.length; ++i) {
            _expect(abi.encodeWithSelector(IAuthority.NotAuthorized.selector));
            vm.prank(others[i]);
            authority.veto(Role.Treasury);
            _expect(abi.encodeWithSelector(IAuthority.NotAuthorized.selector));
            vm.prank(others[i]);
            authority.vetoRecovery();
        }
        vm.prank(owner);
        authority.veto(Role.Treasury);
        vm.prank(guardian);
        authority.vetoRecovery();
        _expect(abi.encodeWithSelector(IAuthority.NotProposed.selector, Role.Treasury));
        vm.prank(guardian);
        authority.veto(Role.Treasury);
        _expect(abi.encodeWithSelector(IAuthority.NotProposed.selector, Role.Owner));
        vm.prank(resolver);
        authority.vetoRecovery();
    }

    // --- suspension ---

    function test_only_owner_and_guardian_can_suspend_the_resolver() external {
        address[3] memory others = [resolver, treasury, thief];
        for (uint256 i; i < others.length; ++i) {
            _expect(abi.encodeWithSelector(IAuthority.NotAuthorized.selector));
            vm.prank(others[i]);
            authority.suspendResolver();
        }
        address[2] memory able = [owner, guardian];
        for (uint256 i; i < able.length; ++i) {
            authority = _authority(DELAY);
            vm.expectEmit(address(authority));
            emit IAuthority.ResolverSuspended(resolver, able[i]);
            vm.prank(able[i]);
            authority.suspendResolver();
            vm.assertEq(authority.resolver(), address(0));
            vm.assertEq(authority.isResolverSuspended(), true);
            vm.assertEq(authority.holder(Role.Resolver), resolver);
        }
    }

    function test_a_suspension_ends_with_the_next_resolver() external {
        vm.prank(guardian);
        authority.suspendResolver();
        _propose(Role.Resolver, resolver);
        vm.warp(block.timestamp + DELAY);
        vm.prank(resolver);
        authority.accept(Role.Resolver);
        vm.assertEq(authority.resolver(), resolver);
        vm.assertEq(authority.isResolverSuspended(), false);
    }

    /// @dev Any history of calls by one stolen key, while the other seats answer each of its proposals.
    function testFuzz_one_stolen_key_cannot_gain_a_second_seat(uint256 stolen, uint256 seed) external {
        Role seat = Role(stolen % 4);
        address key = authority.holder(seat);
        for (uint256 n; n < 24; ++n) {
            seed = uint256(keccak256(abi.encode(seed)));
            Role role = Role((seed >> 8) % 4);
            bytes[7] memory calls = [
                abi.encodeCall(authority.propose, (role, thief)),
                abi.encodeCall(authority.proposeRecovery, (thief)),
                abi.encodeCall(authority.accept, (role)),
                abi.encodeCall(authority.acceptRecovery, ()),
                abi.encodeCall(authority.veto, (role)),
                abi.encodeCall(authority.vetoRecovery, ()),
                abi.encodeCall(authority.suspendResolver, ())
            ];
            vm.prank(seed % 3 == 0 ? thief : key);
            (bool done,) = address(authority).call(calls[(seed >> 16) % calls.length]);
            done;
            _watch(seat);
            vm.warp(block.timestamp + (seed >> 24) % (2 * DELAY));
            for (uint8 i; i < 4; ++i) {
                vm.assertEq(authority.holder(Role(i)) == thief, false);
            }
        }
    }

    /// @dev Each seat except the stolen one removes the thief's proposals that it may remove.
    function _watch(Role stolen) private {
        address[4] memory seats = [owner, resolver, guardian, treasury];
        for (uint8 i; i < 4; ++i) {
            if (Role(i) == stolen) continue;
            for (uint8 role; role < 4; ++role) {
                vm.prank(seats[i]);
                try authority.veto(Role(role)) {} catch {}
            }
            vm.prank(seats[i]);
            try authority.vetoRecovery() {} catch {}
        }
    }

    function _propose(Role role, address to) private {
        vm.prank(owner);
        authority.propose(role, to);
    }

    function _expect(bytes memory reason) private {
        vm.expectRevert(reason);
    }

    function _authority(uint32 delay) private returns (IAuthority) {
        return IAuthority(_deploy("Authority", abi.encode(Roles(owner, resolver, guardian, treasury), delay)));
    }

    function _creates(Roles memory roles, uint32 delay) private returns (bool) {
        try this.create(roles, delay) {
            return true;
        } catch {
            return false;
        }
    }

    function create(Roles calldata roles, uint32 delay) external {
        _deploy("Authority", abi.encode(roles, delay));
    }
}
