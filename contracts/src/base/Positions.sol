// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {IERC165} from "@openzeppelin/contracts/utils/introspection/IERC165.sol";
import {IERC6909, IERC6909ContentURI, IERC6909Metadata} from "@openzeppelin/contracts/interfaces/IERC6909.sol";
import {LibString} from "solady/utils/LibString.sol";
import {Status} from "../interfaces/IMarketHub.sol";
import {MarketWord} from "../types/MarketWord.sol";
import {Balances} from "./Balances.sol";

/// @notice Positions as ERC-6909 tokens, with its metadata extensions. Only the holder, or a spender that the holder
/// approved, can transfer them.
abstract contract Positions is Balances {
    using LibString for uint256;

    function transfer(address receiver, uint256 id, uint256 amount) external returns (bool) {
        return _transfer(msg.sender, receiver, id, amount);
    }

    function transferFrom(address sender, address receiver, uint256 id, uint256 amount) external returns (bool) {
        if (msg.sender != sender) {
            // Nothing needs no allowance, so anyone could write such transfers into the history of any account.
            if (amount == 0) revert AmountZero();
            if (!_operators[sender][msg.sender]) {
                uint256 allowed = _allowances[sender][msg.sender][id];
                if (allowed < amount) revert NotAuthorized();
                if (allowed != type(uint256).max) _allowances[sender][msg.sender][id] = allowed - amount;
            }
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
        return _balances[owner][id].tokens;
    }

    function allowance(address owner, address spender, uint256 id) external view returns (uint256) {
        return _allowances[owner][spender][id];
    }

    function isOperator(address owner, address spender) external view returns (bool) {
        return _operators[owner][spender];
    }

    // --- metadata ---

    function name(uint256 id) external view returns (string memory) {
        return _name(id);
    }

    function symbol(uint256 id) external view returns (string memory) {
        return _symbol(id);
    }

    function decimals(uint256 id) external view returns (uint8) {
        _checkId(id);
        return 18;
    }

    function contractURI() external pure returns (string memory) {
        return "data:application/json,{\"name\":\"Foretell positions\"}";
    }

    /// @dev Made here rather than read from a server: it cannot change, and it needs none.
    function tokenURI(uint256 id) external view returns (string memory) {
        return string.concat(
            "data:application/json,{\"name\":\"", _name(id), "\",\"symbol\":\"", _symbol(id), "\",\"decimals\":18}"
        );
    }

    function supportsInterface(bytes4 id) external pure returns (bool) {
        return id == type(IERC165).interfaceId || id == type(IERC6909).interfaceId
            || id == type(IERC6909Metadata).interfaceId || id == type(IERC6909ContentURI).interfaceId;
    }

    function _name(uint256 id) private view returns (string memory) {
        (, uint64 marketId, uint8 index) = _checkId(id);
        return string.concat("Foretell market ", uint256(marketId).toString(), " outcome ", uint256(index).toString());
    }

    function _symbol(uint256 id) private view returns (string memory) {
        (, uint64 marketId, uint8 index) = _checkId(id);
        return string.concat("FT-", uint256(marketId).toString(), "-", uint256(index).toString());
    }

    /// @dev The tokens of a settled market can only be redeemed.
    function _transfer(address sender, address receiver, uint256 id, uint256 amount) private returns (bool) {
        if (receiver == address(0)) revert NotAuthorized();
        (MarketWord market_, uint64 marketId,) = _checkId(id);
        Status status = market_.current();
        if (status >= Status.Resolved) revert MarketNotTradeable(marketId, status);

        _debit(_balances[sender][id], amount);
        _credit(_balances[receiver][id], amount);
        emit Transfer(msg.sender, sender, receiver, id, amount);
        return true;
    }
}
