// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {IAuthority, Role, Roles} from "./interfaces/IAuthority.sol";

/// @dev The owner's proposal for a seat, or the guardian's for the owner's seat.
struct Proposal {
    address to; // zero: none
    uint64 acceptableAt;
}

/// @notice The seats of one deployment and the rules by which they change hands.
contract Authority is IAuthority {
    uint32 public constant MAX_DELAY = 30 days;

    uint32 public immutable delay;

    mapping(Role => address) private _holders;
    mapping(Role => Proposal) private _proposals;
    Proposal private _recovery;
    bool public isResolverSuspended;

    modifier only(Role role) {
        if (msg.sender != _holders[role]) revert NotAuthorized();
        _;
    }

    /// @param roles The first holders; none is zero.
    /// @param delay_ Seconds, at most `MAX_DELAY`.
    constructor(Roles memory roles, uint32 delay_) {
        if (delay_ > MAX_DELAY) revert DelayTooLong(delay_);
        delay = delay_;
        _seat(Role.Owner, roles.owner);
        _seat(Role.Resolver, roles.resolver);
        _seat(Role.Guardian, roles.guardian);
        _seat(Role.Treasury, roles.treasury);
    }

    // --- gaining power ---

    function propose(Role role, address to) external only(Role.Owner) {
        _proposals[role] = _proposal(role, to, false);
    }

    function proposeRecovery(address to) external only(Role.Guardian) {
        _recovery = _proposal(Role.Owner, to, true);
    }

    function accept(Role role) external {
        _checkAcceptable(_proposals[role], role);
        // A recovery was meant for the old owner, or comes from a guardian that is replaced.
        if (role == Role.Owner || role == Role.Guardian) delete _recovery;
        if (role == Role.Resolver) isResolverSuspended = false;
        delete _proposals[role];
        _seat(role, msg.sender);
    }

    function acceptRecovery() external {
        _checkAcceptable(_recovery, Role.Owner);
        delete _recovery;
        // A stolen owner key may have prepared these.
        for (uint8 role; role <= uint8(Role.Treasury); ++role) {
            delete _proposals[Role(role)];
        }
        _seat(Role.Owner, msg.sender);
    }

    // --- taking power away ---

    function veto(Role role) external {
        address to = _proposals[role].to;
        if (to == address(0)) revert NotProposed(role);
        Role watcher = role == Role.Guardian ? Role.Resolver : Role.Guardian;
        if (msg.sender != _holders[Role.Owner] && msg.sender != _holders[watcher]) revert NotAuthorized();
        delete _proposals[role];
        emit RoleProposalRemoved(role, to, msg.sender, false);
    }

    function vetoRecovery() external {
        address to = _recovery.to;
        if (to == address(0)) revert NotProposed(Role.Owner);
        if (msg.sender != _holders[Role.Guardian] && msg.sender != _holders[Role.Resolver]) revert NotAuthorized();
        delete _recovery;
        emit RoleProposalRemoved(Role.Owner, to, msg.sender, true);
    }

    function suspendResolver() external {
        if (msg.sender != _holders[Role.Owner] && msg.sender != _holders[Role.Guardian]) revert NotAuthorized();
        isResolverSuspended = true;
        emit ResolverSuspended(_holders[Role.Resolver], msg.sender);
    }

    // --- views ---

    function owner() external view returns (address) {
        return _holders[Role.Owner];
    }

    function resolver() external view returns (address) {
        return isResolverSuspended ? address(0) : _holders[Role.Resolver];
    }

    function guardian() external view returns (address) {
        return _holders[Role.Guardian];
    }

    function treasury() external view returns (address) {
        return _holders[Role.Treasury];
    }

    function holder(Role role) external view returns (address) {
        return _holders[role];
    }

    function proposed(Role role) external view returns (address to, uint64 acceptableAt) {
        Proposal memory proposal = _proposals[role];
        return (proposal.to, proposal.acceptableAt);
    }

    function proposedRecovery() external view returns (address to, uint64 acceptableAt) {
        return (_recovery.to, _recovery.acceptableAt);
    }

    // --- helpers ---

    function _proposal(Role role, address to, bool recovery) private returns (Proposal memory proposal) {
        if (to == address(0)) revert AddressZero();
        proposal = Proposal(to, uint64(block.timestamp) + delay);
        emit RoleProposed(role, to, msg.sender, recovery, proposal.acceptableAt);
    }

    function _checkAcceptable(Proposal memory proposal, Role role) private view {
        if (proposal.to == address(0)) revert NotProposed(role);
        if (msg.sender != proposal.to) revert NotAuthorized();
        if (block.timestamp < proposal.acceptableAt) revert DelayNotOver(proposal.acceptableAt);
    }

    function _seat(Role role, address to) private {
        if (to == address(0)) revert AddressZero();
        emit RoleTransferred(role, _holders[role], to);
        _holders[role] = to;
    }
}
