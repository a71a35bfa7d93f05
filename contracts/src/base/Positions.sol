// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {Status} from "../interfaces/IMarketHub.sol";
import {TokenId} from "../types/TokenId.sol";
import {HubStorage, PositionCell} from "./HubStorage.sol";

/// @notice Positions as ERC-6909 tokens. Only the holder, or whom the holder named, can transfer them.
abstract contract Positions is HubStorage {
    function transfer(address receiver, uint256 id, uint256 amount) external returns (bool) {
        return _transfer(msg.sender, receiver, id, amount);
    }

    function transferFrom(address sender, address receiver, uint256 id, uint256 amount) external returns (bool) {
        if (msg.sender != sender && !_operators[sender][msg.sender]) {
            uint256 allowed = _allowances[sender][msg.sender][id];
            if (allowed < amount) revert NotAuthorized();
            if (allowed != type(uint256).max) _allowances[sender][msg.sender][id] = allowed - amount;
        }
        return _transfer(sender, receiver, id, amount);
    }

    function approve(address spender, uint256 id, uint256 amount) external returns (bool) {
        _allowances[msg.sender][spender][id] = amount;
        emit Approval(msg.sender, spender, id, amount);
        return true;
    }

    function setOperator(address spender, bool approved) external returns (bool) {
        _operators[msg.sender][spender] = approved;
        emit OperatorSet(msg.sender, spender, approved);
        return true;
    }

    function balanceOf(address owner, uint256 id) external view returns (uint256) {
        return _positions[owner][id].word.balance();
    }

    function allowance(address owner, address spender, uint256 id) external view returns (uint256) {
        return _allowances[owner][spender][id];
    }

    function isOperator(address owner, address spender) external view returns (bool) {
        return _operators[owner][spender];
    }

    /// @notice ERC-165: itself and ERC-6909.
    function supportsInterface(bytes4 id) external pure returns (bool) {
        return id == 0x01ffc9a7 || id == 0x0f632fb3;
    }

    /// @dev A settled market is for redeeming: a refund in parts would not know whom a moved basis belongs to.
    function _transfer(address sender, address receiver, uint256 id, uint256 amount) private returns (bool) {
        if (receiver == address(0)) revert NotAuthorized();
        (uint64 marketId,) = TokenId.split(id);
        Status status = _known(marketId).current();
        if (status >= Status.Resolved) revert MarketNotTradeable(marketId, status);

        PositionCell storage from = _positions[sender][id];
        PositionCell storage to = _positions[receiver][id];
        uint256 basis;
        (from.word, basis) = from.word.minus(amount);
        to.word = to.word.plus(amount, basis);
        emit Transfer(msg.sender, sender, receiver, id, amount);
        return true;
    }
}
