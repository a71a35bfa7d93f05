// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {HubSettings, MarketState, OutcomeState, Schedule, Status} from "./interfaces/IMarketHub.sol";
import {HubStorage, MarketRecord} from "./base/HubStorage.sol";
import {Lifecycle} from "./base/Lifecycle.sol";
import {Positions} from "./base/Positions.sol";
import {Redemption} from "./base/Redemption.sol";
import {Trading} from "./base/Trading.sol";
import {Lmsr} from "./libraries/Lmsr.sol";
import {MarketWord} from "./types/MarketWord.sol";
import {OutcomeWord} from "./types/OutcomeWord.sol";
import {TokenId} from "./types/TokenId.sol";

/// @notice Every market and every position, and the USDC behind them. It cannot be upgraded, and no role reaches a balance.
/// @dev Hub and Gate name each other as immutables. The deployer predicts the second address from the first's CREATE nonce.
contract MarketHub is Trading, Positions, Lifecycle, Redemption {
    constructor(address usdc_, address gate_, address authority_, HubSettings memory settings_)
        HubStorage(usdc_, gate_, authority_, settings_)
    {}

    function market(uint64 marketId) external view returns (MarketState memory) {
        return _marketState(_known(marketId));
    }

    function outcomes(uint64 marketId) external view returns (OutcomeState[] memory) {
        return _outcomeStates(marketId, _known(marketId));
    }

    function outcome(uint64 marketId, uint8 index) external view returns (OutcomeState memory) {
        _checkOutcome(_known(marketId), index);
        return _outcomeState(TokenId.make(marketId, index));
    }

    function prices(uint64 marketId) external view returns (uint256[] memory all) {
        return _prices(marketId, _known(marketId));
    }

    function viewBatch(bytes[] calldata calls) external view returns (bytes[] memory results) {
        results = new bytes[](calls.length);
        for (uint256 i; i < calls.length; ++i) {
            (bool done, bytes memory result) = address(this).staticcall(calls[i]);
            if (!done) {
                assembly ("memory-safe") {
                    revert(add(result, 0x20), mload(result))
                }
            }
            results[i] = result;
        }
    }

    function schedule(uint64 marketId) external view returns (Schedule memory) {
        MarketWord word = _known(marketId);
        MarketRecord storage record = _records[marketId];
        uint256 frozenAt = _frozenAt(marketId, word);
        return Schedule({
            openableAt: record.openableAt,
            frozenAt: uint64(frozenAt),
            cancellableAt: frozenAt == 0 ? 0 : uint64(frozenAt + _minFreeze),
            finalizableAt: record.finalizableAt,
            resultDueAt: uint64(_resultDueAt(word)),
            isHeld: record.held,
            lateVetoes: record.lateVetoes
        });
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

    function authority() external view returns (address) {
        return address(_authority);
    }

    function settings() external view returns (HubSettings memory) {
        return HubSettings({
            listingDelay: _listingDelay,
            vetoWindow: _vetoWindow,
            minFreeze: _minFreeze,
            period: _period,
            resultDeadline: _resultDeadline
        });
    }

    function _marketState(MarketWord word) private view returns (MarketState memory) {
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

    function _outcomeStates(uint64 marketId, MarketWord word) private view returns (OutcomeState[] memory all) {
        all = new OutcomeState[](word.outcomes());
        for (uint256 i; i < all.length; ++i) {
            all[i] = _outcomeState(TokenId.make(marketId, i));
        }
    }

    function _outcomeState(uint256 id) private view returns (OutcomeState memory) {
        OutcomeWord word = _outcomes[id].word;
        uint256 quantity = _quantity(id, word);
        return OutcomeState({
            quantity: quantity, supply: quantity - _opening(id), volume: word.volume(), trades: word.trades()
        });
    }

    function _prices(uint64 marketId, MarketWord word) private view returns (uint256[] memory all) {
        all = new uint256[](word.outcomes());
        for (uint256 i; i < all.length; ++i) {
            uint256 id = TokenId.make(marketId, i);
            all[i] = Lmsr.price(word.liquidityWad(), word.cost() - _quantity(id, _outcomes[id].word));
        }
    }
}
