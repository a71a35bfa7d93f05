// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {BalanceCell, HubStorage} from "./HubStorage.sol";

/// @notice Changes of what accounts hold. Every one logs the ERC-6909 `Transfer`, so that wallets and indexers follow.
abstract contract Balances is HubStorage {
    function _mint(address account, uint256 id, uint256 tokens) internal {
        _credit(_balances[account][id], tokens);
        emit Transfer(msg.sender, address(0), account, id, tokens);
    }

    function _burn(address account, uint256 id, uint256 tokens) internal {
        _burnFrom(_balances[account][id], account, id, tokens);
    }

    function _burnFrom(BalanceCell storage cell, address account, uint256 id, uint256 tokens) internal {
        _debit(cell, tokens);
        emit Transfer(msg.sender, account, address(0), id, tokens);
    }

    function _credit(BalanceCell storage cell, uint256 tokens) internal {
        // Both are below 2^128.
        unchecked {
            uint256 after_ = cell.tokens + tokens;
            if (after_ > type(uint128).max) revert AmountTooLarge();
            cell.tokens = after_;
        }
    }

    function _debit(BalanceCell storage cell, uint256 tokens) internal {
        uint256 have = cell.tokens;
        if (tokens > have) revert PositionInsufficient(have, tokens);
        unchecked {
            cell.tokens = have - tokens;
        }
    }
}
