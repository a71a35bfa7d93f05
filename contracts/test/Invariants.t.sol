// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {MarketState, OutcomeState, Status} from "../src/interfaces/IMarketHub.sol";
import {Fixture} from "./utils/Fixture.sol";
import {Handler} from "./utils/Handler.sol";

/// @notice Invariants after any history.
contract InvariantsTest is Fixture {
    Handler private handler;
    address[] private holders;

    function setUp() public override {
        super.setUp();
        _market(2, 100, 1000 * USDC);
        _market(3, 0, 10 * USDC);
        holders = [alice, bob, stranger];
        handler = new Handler(hub, gate, usdc, resolver, guardian, executor, holders);
        for (uint256 i; i < holders.length; ++i) {
            _delegate(holders[i], 1e7 * USDC);
            vm.prank(holders[i]);
            usdc.approve(address(hub), type(uint256).max);
        }
        bytes4[] memory selectors = new bytes4[](16);
        selectors[0] = handler.buy.selector;
        selectors[1] = handler.buyTokens.selector;
        selectors[2] = handler.sell.selector;
        selectors[3] = handler.sellForUsdc.selector;
        selectors[4] = handler.transfer.selector;
        selectors[5] = handler.execute.selector;
        selectors[6] = handler.execute.selector;
        selectors[7] = handler.setPolicy.selector;
        selectors[8] = handler.reducePolicy.selector;
        selectors[9] = handler.createMarket.selector;
        selectors[10] = handler.freezeOrUnfreeze.selector;
        selectors[11] = handler.settle.selector;
        selectors[12] = handler.redeem.selector;
        selectors[13] = handler.moveSets.selector;
        selectors[14] = handler.sweepFees.selector;
        selectors[15] = handler.wait.selector;
        _target(address(handler), selectors);
    }

    /// @dev The hub's USDC covers C and the fees of every live market, and the claims of the holders of every settled one.
    function invariant_the_hub_is_solvent() external view {
        uint256 owed;
        for (uint64 id = 1; id <= hub.marketCount(); ++id) {
            MarketState memory market = hub.market(id);
            owed += market.fees;
            if (market.status < Status.Resolved) {
                owed += market.cost / 1e12;
                continue;
            }
            for (uint8 i; i < market.outcomes; ++i) {
                for (uint256 h; h < holders.length; ++h) {
                    owed += hub.redeemable(holders[h], id, i);
                }
            }
        }
        vm.assertLe(owed, usdc.balanceOf(address(hub)), "owed more than held");
    }

    /// @dev C covers every quantity, so also every mix of payouts that sums to one.
    function invariant_every_resolution_can_be_paid() external view {
        for (uint64 id = 1; id <= hub.marketCount(); ++id) {
            uint256 cost = hub.market(id).cost;
            OutcomeState[] memory all = hub.outcomes(id);
            for (uint256 i; i < all.length; ++i) {
                vm.assertLe(all[i].quantity, cost, "quantity above C");
            }
        }
    }

    function invariant_prices_sum_to_one() external view {
        for (uint64 id = 1; id <= hub.marketCount(); ++id) {
            uint256 sum;
            uint256[] memory prices = hub.prices(id);
            for (uint256 i; i < prices.length; ++i) {
                sum += prices[i];
            }
            vm.assertApproxEqAbs(sum, WAD, 1e9, "prices");
        }
    }

    function invariant_complete_sets_conserve_value() external view {
        vm.assertEq(handler.setsNotConserved(), 0, "a split or merge moved value or a price");
    }

    /// @dev Reference prices sum to exactly one, so they can be paid like any other payouts.
    function invariant_reference_prices_sum_to_exactly_one() external view {
        for (uint64 id = 1; id <= hub.marketCount(); ++id) {
            uint256 sum;
            uint256[] memory prices = hub.referencePrices(id);
            for (uint256 i; i < prices.length; ++i) {
                sum += prices[i];
            }
            vm.assertEq(sum, WAD, "reference prices");
        }
    }

    function invariant_positions_add_up() external view {
        for (uint64 id = 1; id <= hub.marketCount(); ++id) {
            MarketState memory market = hub.market(id);
            if (market.status >= Status.Resolved) continue;
            for (uint8 i; i < market.outcomes; ++i) {
                OutcomeState memory outcome = hub.outcome(id, i);
                uint256 supply;
                for (uint256 h; h < holders.length; ++h) {
                    supply += _balance(holders[h], id, i);
                }
                vm.assertEq(supply, outcome.supply, "supply");
            }
        }
    }

    function invariant_the_gate_follows_policies_and_holds_no_usdc() external view {
        vm.assertEq(handler.capsExceeded(), 0, "a cap or an expiry was exceeded");
        vm.assertEq(handler.executedTwice(), 0, "a nonce was executed twice");
        vm.assertEq(handler.raisedByOthers(), 0, "a policy was raised by another than its account");
        vm.assertEq(usdc.balanceOf(address(gate)), 0, "the Gate holds USDC");
    }
}
