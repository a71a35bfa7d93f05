// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {Intent} from "../src/interfaces/IGate.sol";
import {Call, IAccount, IAccountFactory} from "../src/interfaces/IAccount.sol";
import {MarketTerms, Side} from "../src/interfaces/IMarketHub.sol";
import {Fixture} from "./utils/Fixture.sol";
import {ITestUSDC} from "./utils/ITestUSDC.sol";
import {Signers} from "./utils/Signers.sol";
import {UsdcProxy} from "./utils/UsdcProxy.sol";

/// @notice Whole transactions with a token as expensive as USDC behind its proxy. tools/gas.js runs them in isolation.
contract GasTest is Fixture, Signers {
    uint256 private constant ACCOUNTS = 50;
    uint32 private constant FIRST = 1;

    uint64 private two;
    uint64 private eight;

    function setUp() public override {
        vm.warp(1_800_000_000);
        usdc = ITestUSDC(address(new UsdcProxy(_deploy("TestUSDC", abi.encode(this)), address(this))));
        usdc.setMinter(address(this), true);
        _deploySystem(0, 0);
        two = _market(2, 100, 10_000 * USDC);
        eight = _market(8, 100, 10_000 * USDC);

        Intent[] memory first = new Intent[](2 * ACCOUNTS);
        for (uint256 i; i < ACCOUNTS; ++i) {
            _delegate(_holder(i), 10_000 * USDC);
            first[2 * i] = _intent(_holder(i), FIRST, two, 0, Side.BuyForUsdc, 5 * USDC, 0);
            first[2 * i + 1] = _intent(_holder(i), FIRST + 1, eight, 0, Side.BuyForUsdc, 5 * USDC, 0);
        }
        vm.prank(executor);
        gate.execute(first);
        _fund(alice, 1000 * USDC, address(hub));
        _buy(alice, two, 0, 5 * USDC);
    }

    function test_delegated_buys() external {
        _measureBatch("delegated buy, alone, N=2", two, Side.BuyForUsdc, 1);
        _measureBatch("delegated buy, alone, N=8", eight, Side.BuyForUsdc, 1);
        _measureBatch("delegated buy, batch of 10, N=2", two, Side.BuyForUsdc, 10);
        _measureBatch("delegated buy, batch of 10, N=8", eight, Side.BuyForUsdc, 10);
        _measureBatch("delegated buy, batch of 50, N=2", two, Side.BuyForUsdc, 50);
    }

    function test_delegated_other_sides() external {
        _measureBatch("delegated buy of tokens, alone, N=2", two, Side.BuyTokens, 1);
        _measureBatch("delegated sale of tokens, alone, N=2", two, Side.SellTokens, 1);
        _measureBatch("delegated sale for USDC, alone, N=2", two, Side.SellForUsdc, 1);
        _measureBatch("delegated sale of tokens, batch of 10, N=2", two, Side.SellTokens, 10);
        _measureBatch("delegated sale of all, alone, N=2", two, Side.SellAll, 1);
    }

    function test_direct_trades() external {
        vm.prank(alice);
        hub.buy(two, 0, 3 * USDC, 0);
        _record("direct buy");
        vm.prank(alice);
        hub.sell(two, 0, 1e18, 0);
        _record("direct sale");
    }

    function test_first_buy_of_an_account() external {
        _delegate(bob, 100 * USDC);
        _execute(_intent(bob, 1, two, 1, Side.BuyForUsdc, 5 * USDC, 0));
        _record("delegated buy, first of the account");
    }

    function test_redemptions() external {
        _resolve(two, 0);
        hub.redeem(_holder(0), two, 0);
        _record("redemption, alone");
        address[] memory holders = new address[](10);
        uint256[] memory ids = new uint256[](10);
        for (uint256 i; i < 10; ++i) {
            holders[i] = _holder(i + 1);
            ids[i] = _id(two, 0);
        }
        hub.redeemBatch(holders, ids);
        _record("redemption, batch of 10");
    }

    function test_creation_of_markets() external {
        MarketTerms memory terms = _terms(2, 100, 1000 * USDC);
        vm.prank(resolver);
        hub.createMarket(terms);
        _record("creation of a market, N=2");
        terms = _terms(8, 100, 1000 * USDC);
        vm.prank(resolver);
        hub.createMarket(terms);
        _record("creation of a market, N=8");
    }

    function test_creation_with_opening_odds() external {
        MarketTerms memory terms = _terms(250, 100, 1000 * USDC);
        terms.openingOdds = new uint256[](250);
        uint256 left = WAD;
        for (uint256 i = 1; i < 250; ++i) {
            terms.openingOdds[i] = 3e15 + i * 1e12;
            left -= terms.openingOdds[i];
        }
        terms.openingOdds[0] = left;
        vm.prank(resolver);
        hub.createMarket(terms);
        _record("creation of a market with opening odds, N=250");
    }

    /// @dev Each outcome writes its history once a reference period; the first time into a zero word.
    function test_first_trades_of_a_period() external {
        for (uint256 day; day < 2; ++day) {
            vm.warp(block.timestamp + 1 days);
            string memory name = day == 0 ? "direct buy, first history of the outcome" : "direct buy, first of a period";
            vm.prank(alice);
            hub.buy(two, 0, 3 * USDC, 0);
            _record(name);
        }
    }

    function test_complete_sets() external {
        vm.startPrank(alice);
        hub.split(two, 3 * USDC);
        _record("split of complete sets, N=2");
        hub.merge(two, 1 * USDC);
        _record("merge of complete sets, N=2");
        hub.split(eight, 3 * USDC);
        _record("split of complete sets, N=8");
    }

    function test_cancels() external {
        vm.startPrank(resolver);
        hub.freeze(eight);
        hub.proposeCancel(eight);
        _record("cancel of a market, N=8");
    }

    function test_first_batch_of_an_account() external {
        IAccountFactory factory = IAccountFactory(_deploy("AccountFactory", ""));
        (uint256 eoa, uint256 passkey) = (0xa11ce, 0xbea7);
        (address first, Call[] memory calls, bytes32 digest) = _firstBatch(factory, _eoa(eoa));
        factory.createAndExecute(_eoa(eoa), 0, calls, block.timestamp, _signEoa(eoa, digest));
        _record("account: create, approve, enable a key (EOA owner)");
        vm.assertEq(gate.policy(first, KEY).daily, 5e9);

        (first, calls, digest) = _firstBatch(factory, _passkey(passkey));
        factory.createAndExecute(_passkey(passkey), 0, calls, block.timestamp, _signPasskey(passkey, digest));
        _record("account: create, approve, enable a key (passkey owner)");
        vm.assertEq(gate.policy(first, KEY).daily, 5e9);
    }

    function _measureBatch(string memory name, uint64 market, Side side, uint256 count) private {
        Intent[] memory batch = new Intent[](count);
        for (uint256 i; i < count; ++i) {
            (uint256 amount, uint256 tokens) = (3 * USDC, 0);
            if (side == Side.BuyTokens || side == Side.SellTokens) (amount, tokens) = (0, 1e18);
            if (side == Side.BuyTokens) amount = 3 * USDC;
            if (side == Side.SellForUsdc) (amount, tokens) = (USDC / 2, 1e18);
            if (side == Side.SellAll) (amount, tokens) = (0, 100e18);
            uint32 nonce = gate.policy(_holder(i), KEY).nonceTop + 1;
            batch[i] = _intent(_holder(i), nonce, market, 0, side, amount, tokens);
        }
        uint32 before = hub.outcome(market, 0).trades;
        vm.prank(executor);
        gate.execute(batch);
        _record(name);
        vm.assertEq(hub.outcome(market, 0).trades, before + count);
    }

    function _record(string memory name) private {
        vm.snapshotGasLastCall("gas", name);
    }

    /// @dev The digest comes from an account that is then undone, because this measures the transaction that creates it.
    function _firstBatch(IAccountFactory factory, bytes memory owner)
        private
        returns (address account, Call[] memory calls, bytes32 digest)
    {
        account = factory.accountAddress(owner, 0);
        usdc.mint(account, 100 * USDC);
        calls = new Call[](2);
        calls[0] = Call(address(usdc), 0, abi.encodeCall(usdc.approve, (address(gate), type(uint256).max)));
        calls[1] =
            Call(address(gate), 0, abi.encodeCall(gate.setPolicy, (KEY, _limits(1e9, 5e9, block.timestamp + 30 days))));
        uint256 snapshot = vm.snapshotState();
        factory.createAccount(owner, 0);
        digest = IAccount(account).digestOf(calls, 0, block.timestamp);
        vm.revertToState(snapshot);
    }

    function _holder(uint256 i) private pure returns (address) {
        return vm.addr(0xa11ce + i);
    }
}
