// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {Role, Roles} from "../interfaces/IMarketHub.sol";
import {HubStorage} from "./HubStorage.sol";

/// @notice Who may move a market through its life. Each role can only hand itself on.
abstract contract HubRoles is HubStorage {
    constructor(Roles memory roles) {
        _setRole(Role.Resolver, roles.resolver);
        _setRole(Role.Guardian, roles.guardian);
        _setRole(Role.Treasury, roles.treasury);
    }

    function transferRole(Role role, address to) external only(role) {
        _setRole(role, to);
    }

    function resolver() external view returns (address) {
        return _roles[Role.Resolver];
    }

    function guardian() external view returns (address) {
        return _roles[Role.Guardian];
    }

    function treasury() external view returns (address) {
        return _roles[Role.Treasury];
    }

    function _setRole(Role role, address to) private {
        if (to == address(0)) revert NotAuthorized();
        emit RoleTransferred(role, _roles[role], to);
        _roles[role] = to;
    }
}
