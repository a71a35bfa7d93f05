// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {MarketState, OutcomeState, Roles} from "./interfaces/IMarketHub.sol";
import {HubRoles} from "./base/HubRoles.sol";
import {HubStorage, MarketRecord} from "./base/HubStorage.sol";
import {Positions} from "./base/Positions.sol";
import {Redemption} from "./base/Redemption.sol";
import {Trading} from "./base/Trading.sol";
import {Lmsr} from "./libraries/Lmsr.sol";
import {MarketWord} from "./types/MarketWord.sol";
import {OutcomeWord} from "./types/OutcomeWord.sol";
import {PositionWord} from "./types/PositionWord.sol";
import {TokenId} from "./types/TokenId.sol";

/// @notice Every market and every position, and the USDC behind them. It cannot be upgraded and has no owner.
/// @dev Hub and Gate name each other as immutables. Whoever deploys them predicts the second address from the first's
/// CREATE nonce.
contract MarketHub is HubRoles, Trading, Positions, Redemption {
    constructor(address usdc_, address gate_, Roles memory roles, uint32 listingDelay_, uint32 vetoWindow_)
        HubRoles(roles)
    {
        _usdc = IERC20(usdc_);
        _gate = gate_;
        _listingDelay = listingDelay_;
        _vetoWindow = vetoWindow_;
    }

    function market(uint64 marketId) external view returns (MarketState memory) {
        MarketWord word = _known(marketId);
        return MarketState({
            status: word.current(),
            outcomes: word.outcomes(),
            feeBps: word.feeBps(),
            closeTime: word.closeTime(),
            liquidity: word.liquidity(),
            fees: word.fees(),
            cost: word.cost()
        });
    }

    function outcomes(uint64 marketId) external view returns (OutcomeState[] memory all) {
        all = new OutcomeState[](_known(marketId).outcomes());
        for (uint256 i; i < all.length; ++i) {
            all[i] = _outcomeState(TokenId.make(marketId, i));
        }
    }

    function outcome(uint64 marketId, uint8 index) external view returns (OutcomeState memory) {
        _checkOutcome(_known(marketId), index);
        return _outcomeState(TokenId.make(marketId, index));
    }

    function prices(uint64 marketId) external view returns (uint256[] memory all) {
        MarketWord word = _known(marketId);
        all = new uint256[](word.outcomes());
        for (uint256 i; i < all.length; ++i) {
            all[i] = Lmsr.price(word.liquidityWad(), word.cost() - _outcomes[TokenId.make(marketId, i)].word.quantity());
        }
    }

    function position(address account, uint256 tokenId) external view returns (uint256 balance, uint256 basis) {
        PositionWord word = _positions[account][tokenId].word;
        return (word.balance(), word.basis());
    }

    function schedule(uint64 marketId) external view returns (uint64 openableAt, uint64 finalizableAt) {
        _known(marketId);
        MarketRecord storage record = _records[marketId];
        return (record.openableAt, record.finalizableAt);
    }

    function marketOf(bytes32 ref) external view returns (uint64) {
        return _marketOf[ref];
    }

    function marketCount() external view returns (uint64) {
        return _marketCount;
    }

    function usdc() external view returns (address) {
        return address(_usdc);
    }

    function gate() external view returns (address) {
        return _gate;
    }

    function listingDelay() external view returns (uint32) {
        return _listingDelay;
    }

    function vetoWindow() external view returns (uint32) {
        return _vetoWindow;
    }

    function _outcomeState(uint256 id) private view returns (OutcomeState memory) {
        OutcomeWord word = _outcomes[id].word;
        return OutcomeState({
            quantity: word.quantity(),
            supply: word.quantity() - _openings[id],
            basis: word.basis(),
            volume: word.volume(),
            trades: word.trades()
        });
    }
}
