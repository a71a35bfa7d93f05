// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

/// @notice The seats of a deployment. Executors are not among them: the Gate holds those, under the same owner and delay.
enum Role {
    Owner,
    Resolver,
    Guardian,
    Treasury
}

/// @notice The first holder of each seat. One address may hold several.
struct Roles {
    address owner; // proposes new holders and executors
    address resolver; // creates markets, proposes results and cancels
    address guardian; // freezes, pauses and vetoes
    address treasury; // receives fees and surplus
}

/// @notice Holds the roles of one deployment of hub and Gate. It cannot be upgraded, and it holds no funds.
///
/// A new holder waits: it is proposed, may be vetoed for `delay` seconds, and accepts the seat itself. Taking power away
/// does not wait. Each seat has a second seat that watches it, so that one lost or stolen key blocks nothing for longer
/// than about one delay and gains no other seat:
///
/// | Proposal | By | Can be vetoed by |
/// | --- | --- | --- |
/// | owner, resolver or treasury | owner | guardian |
/// | guardian | owner | resolver |
/// | owner (recovery: the owner's key is lost or stolen) | guardian | resolver |
///
/// A suspended resolver loses its power over markets at once and keeps its veto here until its successor has accepted.
/// Otherwise a stolen owner or guardian key could first remove the veto and then take the seat that it protects.
interface IAuthority {
    /// @notice `by` has proposed `to` for a seat.
    /// @param recovery The guardian proposed a new owner.
    /// @param acceptableAt Unix seconds from which `to` may accept.
    event RoleProposed(Role indexed role, address indexed to, address indexed by, bool recovery, uint64 acceptableAt);
    /// @notice The proposal of `to` is gone: vetoed, or withdrawn by its proposer.
    event RoleProposalRemoved(Role indexed role, address indexed to, address indexed by, bool recovery);
    /// @notice A seat has a new holder; `from` is zero for the first one.
    event RoleTransferred(Role indexed role, address indexed from, address indexed to);
    /// @notice The resolver has no power over markets until a successor accepts.
    event ResolverSuspended(address indexed resolver, address indexed by);

    /// @notice The caller does not hold the seat that this function needs.
    error NotAuthorized();
    /// @notice A seat cannot be given to the zero address.
    error AddressZero();
    /// @notice The delay is longer than `MAX_DELAY`.
    error DelayTooLong(uint32 delay);
    /// @notice There is no such proposal.
    error NotProposed(Role role);
    /// @notice The delay of the proposal is not over.
    error DelayNotOver(uint64 acceptableAt);

    /// @notice Owner: proposes a new holder of a seat, in place of an earlier proposal of the owner for it.
    /// @param to Not zero. It must call `accept` itself, which proves that its key exists.
    /// @dev Emits `RoleProposed`. Errors: `NotAuthorized`, `AddressZero`.
    function propose(Role role, address to) external;

    /// @notice Guardian: proposes a new owner, if the owner's key is lost or stolen. The owner cannot veto it.
    /// @param to Not zero. It must call `acceptRecovery` itself.
    /// @dev Emits `RoleProposed`. Errors: `NotAuthorized`, `AddressZero`.
    function proposeRecovery(address to) external;

    /// @notice The proposed holder takes its seat, once the delay is over.
    /// @dev Emits `RoleTransferred`. A new owner or guardian ends a pending recovery. Errors: `NotProposed`, `NotAuthorized`,
    /// `DelayNotOver`.
    function accept(Role role) external;

    /// @notice The owner that the guardian proposed takes its seat, once the delay is over. The old owner's proposals end.
    /// @dev Emits `RoleTransferred`. Errors: `NotProposed`, `NotAuthorized`, `DelayNotOver`.
    function acceptRecovery() external;

    /// @notice Removes a proposal of the owner: by the owner, or as a veto by the guardian (for its own seat: the resolver).
    /// @dev Emits `RoleProposalRemoved`. Errors: `NotProposed`, `NotAuthorized`.
    function veto(Role role) external;

    /// @notice Removes the guardian's proposal of a new owner: by the guardian, or as a veto by the resolver.
    /// @dev Emits `RoleProposalRemoved`. Errors: `NotProposed`, `NotAuthorized`.
    function vetoRecovery() external;

    /// @notice Owner or guardian: takes the resolver's power over markets away at once, until a successor accepts. The
    /// successor may be the same address.
    /// @dev Emits `ResolverSuspended`. Errors: `NotAuthorized`.
    function suspendResolver() external;

    /// @return The address that proposes new holders and executors.
    function owner() external view returns (address);
    /// @return The address that creates markets and proposes results; zero while it is suspended.
    function resolver() external view returns (address);
    /// @return The address that freezes, pauses and vetoes.
    function guardian() external view returns (address);
    /// @return The address that receives fees and surplus; never zero.
    function treasury() external view returns (address);
    /// @notice The holder of a seat, a suspended resolver included.
    function holder(Role role) external view returns (address);
    /// @return Whether the resolver is suspended.
    function isResolverSuspended() external view returns (bool);
    /// @notice The owner's pending proposal for a seat; zeros if there is none.
    /// @return to The proposed holder.
    /// @return acceptableAt Unix seconds.
    function proposed(Role role) external view returns (address to, uint64 acceptableAt);
    /// @notice The guardian's pending proposal of a new owner; zeros if there is none.
    /// @return to The proposed owner.
    /// @return acceptableAt Unix seconds.
    function proposedRecovery() external view returns (address to, uint64 acceptableAt);
    /// @return Seconds that every gain of power waits, here and in the Gate. Zero only in development.
    function delay() external view returns (uint32);
    /// @return The longest delay that a deployment may have, in seconds.
    function MAX_DELAY() external view returns (uint32);
}
