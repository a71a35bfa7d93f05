// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {Call, IAccount, IAccountFactory} from "../src/interfaces/IAccount.sol";
import {IGate, Intent, Policy} from "../src/interfaces/IGate.sol";
import {Role} from "../src/interfaces/IAuthority.sol";
import {IMarketHub, MarketTerms, Side} from "../src/interfaces/IMarketHub.sol";
import {Fixture} from "./utils/Fixture.sol";
import {Signers} from "./utils/Signers.sol";
import {Log} from "./utils/Test.sol";

/// @notice Every role, and a stranger, calls every function of the contracts against an account that has enabled a key and
/// holds USDC and a position. The account's USDC must stay or move into its own positions, the payouts of its positions
/// must reach it, and its position must stay its own.
contract AccountCustodyTest is Fixture, Signers {
    uint256 private constant OWNER = 0xa11ce;
    uint256 private constant MALLORY = 0xbad;

    IAccountFactory private factory;
    IAccount private victim;
    IAccount private sibling; // another account of the same owner
    address private thief;
    uint64 private id;
    uint64 private won;
    address[] private actors;
    Policy private granted;

    function setUp() public override {
        super.setUp();
        factory = IAccountFactory(_deploy("AccountFactory", ""));
        victim = IAccount(factory.createAccount(_eoa(OWNER), 0));
        sibling = IAccount(factory.createAccount(_eoa(OWNER), bytes32(uint256(1))));
        thief = vm.addr(MALLORY);
        id = _market(2, 100, 10_000 * USDC);
        won = _market(2, 100, 10_000 * USDC);

        usdc.mint(address(victim), 10_000 * USDC);
        Call[] memory calls = new Call[](2);
        calls[0] = Call(address(usdc), 0, abi.encodeCall(usdc.approve, (address(gate), type(uint256).max)));
        calls[1] = Call(address(gate), 0, abi.encodeCall(gate.setPolicy, (KEY, _limits(1e9, 5e9, _later()))));
        victim.executeSigned(calls, _later(), _signEoa(OWNER, victim.digestOf(calls, 0, _later())));

        _execute(_intent(address(victim), 1, id, 0, Side.BuyForUsdc, 500 * USDC, 0));
        _execute(_intent(address(victim), 2, won, 0, Side.BuyForUsdc, 500 * USDC, 0));
        granted = gate.policy(address(victim), KEY);
        _resolve(won, 0);
        actors = [executor, guardian, resolver, treasury, stranger, thief];
        _fund(thief, 1000 * USDC, address(hub));
        _fund(thief, 1000 * USDC, address(gate));
    }

    function test_no_role_can_take_usdc_or_positions() external {
        (address[] memory targets, bytes[] memory calls) = _everything();
        for (uint256 a; a < actors.length; ++a) {
            uint256 snapshot = vm.snapshotState();
            for (uint256 i; i < calls.length; ++i) {
                _attempt(actors[a], targets[i], calls[i]);
            }
            vm.revertToState(snapshot);
        }
    }

    function testFuzz_no_two_roles_together_can_take_them(uint256 seed) external {
        (address[] memory targets, bytes[] memory calls) = _everything();
        for (uint256 n; n < 12; ++n) {
            seed = uint256(keccak256(abi.encode(seed)));
            uint256 i = seed % calls.length;
            _attempt(actors[(seed >> 64) % actors.length], targets[i], calls[i]);
            vm.warp(block.timestamp + (seed >> 128) % 2 days);
        }
    }

    function testFuzz_no_calldata_can_take_them(uint256 actor, uint256 target, uint256 which, bytes32[6] calldata words)
        external
    {
        (address[] memory targets, bytes[] memory calls) = _everything();
        bytes4 selector = bytes4(calls[which % calls.length]);
        // Words that mean something now and then, anything otherwise.
        bytes memory data = abi.encodePacked(selector);
        for (uint256 i; i < words.length; ++i) {
            uint256 word = uint256(words[i]);
            uint256[6] memory telling = [uint256(uint160(address(victim))), uint160(thief), id, won, KEY, _id(id, 0)];
            data = abi.encodePacked(data, word % 3 == 0 ? word >> 200 : telling[word % 6]);
        }
        _attempt(actors[actor % actors.length], targets[target % targets.length], data);
    }

    function test_a_stolen_executor_can_only_buy_for_the_account_within_its_caps() external {
        vm.startPrank(executor);
        for (uint32 nonce = 3; nonce < 30; ++nonce) {
            gate.execute(_one(_intent(address(victim), nonce, id, uint8(nonce % 2), Side.BuyForUsdc, 1000 * USDC, 0)));
        }
        vm.stopPrank();
        // 1,000 of the daily 5,000 were spent before.
        vm.assertEq(usdc.balanceOf(address(victim)), 5000 * USDC);
        vm.assertEq(_volume(id, 0) + _volume(id, 1), 4500 * USDC);
    }

    function test_a_stolen_executor_cannot_trade_after_a_revocation() external {
        vm.prank(address(victim));
        gate.revokePolicy(address(victim), KEY);
        uint256 before = usdc.balanceOf(address(victim));
        vm.startPrank(executor);
        gate.reducePolicy(address(victim), KEY, _limits(1e9, 5e9, _later()));
        gate.execute(_one(_intent(address(victim), 3, id, 0, Side.BuyForUsdc, USDC, 0)));
        vm.assertEq(usdc.balanceOf(address(victim)), before);
    }

    function test_withdrawing_the_approval_stops_every_trade() external {
        vm.prank(address(victim));
        usdc.approve(address(gate), 0);
        uint256 before = usdc.balanceOf(address(victim));
        _execute(_intent(address(victim), 3, id, 0, Side.BuyForUsdc, USDC, 0));
        vm.assertEq(usdc.balanceOf(address(victim)), before);
    }

    function test_a_relayed_batch_cannot_be_replayed() external {
        Call[] memory calls = new Call[](1);
        calls[0] = Call(address(usdc), 0, abi.encodeCall(usdc.transfer, (bob, 10 * USDC)));
        usdc.mint(address(sibling), 100 * USDC);
        bytes memory signature = _signEoa(OWNER, victim.digestOf(calls, 1, _later()));
        victim.executeSigned(calls, _later(), signature);
        vm.expectRevert(IAccount.SignatureInvalid.selector);
        victim.executeSigned(calls, _later(), signature);
        vm.expectRevert(IAccount.SignatureInvalid.selector);
        sibling.executeSigned(calls, _later(), signature);
        vm.expectRevert(IAccount.SignatureInvalid.selector);
        factory.createAndExecute(_eoa(OWNER), bytes32(uint256(2)), calls, _later(), signature);
        vm.assertEq(usdc.balanceOf(bob), 10 * USDC);
    }

    function test_an_account_created_by_a_stranger_belongs_to_its_owner() external {
        bytes32 salt = bytes32(uint256(77));
        address known = factory.accountAddress(_eoa(OWNER), salt);
        usdc.mint(known, 100 * USDC);
        vm.startPrank(thief);
        factory.createAccount(_eoa(OWNER), salt);
        vm.assertEq(IAccount(known).firstOwner(), _eoa(OWNER));
        Call[] memory calls = new Call[](1);
        calls[0] = Call(address(usdc), 0, abi.encodeCall(usdc.transfer, (thief, 1)));
        bytes memory signature = _signEoa(MALLORY, IAccount(known).digestOf(calls, 0, _later()));
        vm.expectRevert(IAccount.SignatureInvalid.selector);
        factory.createAndExecute(_eoa(OWNER), salt, calls, _later(), signature);
    }

    function test_no_selector_of_an_account_adds_another_owner() external {
        string[5] memory guesses = [
            "initialize(bytes)", "initialize(address)", "setOwner(address)", "transferOwnership(address)", "init(bytes)"
        ];
        for (uint256 i; i < guesses.length; ++i) {
            (bool done,) = address(victim).call(abi.encodeWithSignature(guesses[i], thief));
            vm.assertEq(done, false);
        }
        for (uint256 i; i < actors.length; ++i) {
            vm.prank(actors[i]);
            vm.expectRevert();
            victim.addOwner(_eoa(MALLORY));
            vm.prank(actors[i]);
            vm.expectRevert();
            victim.removeOwner(_eoa(OWNER));
        }
        vm.assertEq(victim.ownerCount(), 1);
        vm.assertEq(victim.isOwner(_eoa(OWNER)), true);
    }

    /// @dev Makes one attempt and then checks what must always hold.
    function _attempt(address actor, address target, bytes memory data) private {
        uint256 before = usdc.balanceOf(address(victim));
        vm.recordLogs();
        vm.prank(actor);
        (bool done,) = target.call{gas: 5_000_000}(data);
        done;
        uint256 bought;
        uint256 received;
        Log[] memory logs = vm.getRecordedLogs();
        bytes32 me = bytes32(uint256(uint160(address(victim))));
        for (uint256 i; i < logs.length; ++i) {
            (bytes32 topic, address emitter) = (logs[i].topics[0], logs[i].emitter);
            if (emitter == address(usdc) && topic == IERC20.Transfer.selector && logs[i].topics[1] == me) {
                vm.assertEq(address(uint160(uint256(logs[i].topics[2]))), address(hub));
            } else if (emitter == address(hub) && topic == IMarketHub.Trade.selector) {
                (address account, Side side, uint256 amount) = _tradeOf(logs[i].data);
                if (account != address(victim)) continue;
                if (side <= Side.BuyTokens) bought += amount;
                else received += amount;
            } else if (emitter == address(hub) && topic == IMarketHub.Redeemed.selector && logs[i].topics[1] == me) {
                (, uint64 amount) = abi.decode(logs[i].data, (uint128, uint64));
                received += amount;
            } else if (emitter == address(hub) && topic == IMarketHub.Transfer.selector) {
                // Only sales and redemptions burn; they are counted above.
                vm.assertEq(logs[i].topics[1] == me && logs[i].topics[2] != 0, false);
            }
        }
        // Gifts are welcome.
        vm.assertLe(before + received, usdc.balanceOf(address(victim)) + bought, "USDC left the account");
        Policy memory policy = gate.policy(address(victim), KEY);
        vm.assertLe(policy.perTrade, granted.perTrade, "cap raised");
        vm.assertLe(policy.daily, granted.daily, "cap raised");
        vm.assertLe(policy.expiry, granted.expiry, "expiry raised");
        vm.assertLe(policy.spent, granted.daily, "cap exceeded");
        vm.assertEq(usdc.balanceOf(address(gate)), 0);
        vm.assertEq(usdc.allowance(address(victim), thief), 0);
    }

    /// @dev Every function that writes, with the arguments that a thief would choose.
    function _everything() private view returns (address[] memory targets, bytes[] memory calls) {
        targets = new address[](50);
        calls = new bytes[](50);
        uint256 n;
        address me = address(victim);
        uint256 all = type(uint256).max;

        // The token.
        (targets[n], calls[n++]) = (address(usdc), abi.encodeCall(usdc.transferFrom, (me, thief, USDC)));
        (targets[n], calls[n++]) = (address(usdc), abi.encodeCall(usdc.transferFrom, (me, address(gate), USDC)));
        (targets[n], calls[n++]) = (address(usdc), abi.encodeCall(usdc.approve, (thief, all)));

        // The Gate.
        Intent[] memory batch = new Intent[](8);
        batch[0] = _intent(me, 3, id, 1, Side.BuyForUsdc, 700 * USDC, 0);
        batch[1] = _intent(me, 4, id, 0, Side.SellAll, 0, 1000e18);
        batch[2] = _intent(me, 5, id, 0, Side.SellTokens, 0, 1e18);
        batch[3] = _intent(me, 6, id, 1, Side.BuyTokens, 900 * USDC, 5e18);
        batch[4] = _intent(thief, 1, id, 0, Side.SellAll, 0, 0);
        batch[5] = _intent(me, 1, id, 0, Side.BuyForUsdc, 700 * USDC, 0);
        batch[6] = _intent(me, 7, id, 1, Side.SellForUsdc, USDC, type(uint128).max);
        batch[7] = _intent(me, 8, id, 0, Side.BuyForUsdc, 1001 * USDC, 0);
        (targets[n], calls[n++]) = (address(gate), abi.encodeCall(gate.execute, (batch)));
        (targets[n], calls[n++]) =
        (address(gate), abi.encodeWithSignature("tradeIsolated((uint256,uint256,uint256),uint256)", batch[0], all));
        (targets[n], calls[n++]) = (address(gate), abi.encodeCall(gate.setPolicy, (KEY, _limits(1e12, 1e12, _later()))));
        (targets[n], calls[n++]) =
        (address(gate), abi.encodeCall(gate.reducePolicy, (me, KEY, _limits(1e12, 1e12, type(uint32).max))));
        (targets[n], calls[n++]) =
        (address(gate), abi.encodeCall(gate.reducePolicy, (me, KEY, _limits(9e8, 4e9, _later() - 1))));
        (targets[n], calls[n++]) = (address(gate), abi.encodeCall(gate.setPaused, (false)));
        (targets[n], calls[n++]) = (address(gate), abi.encodeCall(gate.lowerExecutor, (thief, 1)));
        (targets[n], calls[n++]) = (address(gate), abi.encodeCall(gate.proposeExecutor, (thief, type(uint64).max)));
        (targets[n], calls[n++]) = (address(gate), abi.encodeCall(gate.enactExecutor, (thief)));

        // Trading and positions.
        (targets[n], calls[n++]) =
        (address(hub), abi.encodeCall(hub.fillForKey, (_intent(me, 9, id, 0, Side.SellAll, 0, 0))));
        (targets[n], calls[n++]) = (address(hub), abi.encodeCall(hub.buy, (id, 0, 50 * USDC, 0)));
        (targets[n], calls[n++]) = (address(hub), abi.encodeCall(hub.buyTokens, (id, 1, 1e18, all)));
        (targets[n], calls[n++]) = (address(hub), abi.encodeCall(hub.sell, (id, 0, 1e18, 0)));
        (targets[n], calls[n++]) = (address(hub), abi.encodeCall(hub.sellForUsdc, (id, 0, USDC, all)));
        (targets[n], calls[n++]) = (address(hub), abi.encodeCall(hub.transfer, (thief, _id(id, 0), 1e18)));
        (targets[n], calls[n++]) = (address(hub), abi.encodeCall(hub.transferFrom, (me, thief, _id(id, 0), 1e18)));
        (targets[n], calls[n++]) = (address(hub), abi.encodeCall(hub.transferFrom, (me, thief, _id(won, 0), 1e18)));
        (targets[n], calls[n++]) = (address(hub), abi.encodeCall(hub.approve, (thief, _id(id, 0), all)));
        (targets[n], calls[n++]) = (address(hub), abi.encodeCall(hub.setOperator, (thief, true)));

        // Settling.
        (targets[n], calls[n++]) = (address(hub), abi.encodeCall(hub.freeze, (id)));
        (targets[n], calls[n++]) = (address(hub), abi.encodeCall(hub.unfreeze, (id)));
        (targets[n], calls[n++]) = (address(hub), abi.encodeCall(hub.veto, (id)));
        (targets[n], calls[n++]) = (address(hub), abi.encodeCall(hub.open, (id)));
        (targets[n], calls[n++]) = (address(hub), abi.encodeCall(hub.finalize, (id)));
        (targets[n], calls[n++]) = (address(hub), abi.encodeCall(hub.sweepFees, (id)));
        (targets[n], calls[n++]) = (address(hub), abi.encodeCall(hub.split, (id, USDC)));
        (targets[n], calls[n++]) = (address(hub), abi.encodeCall(hub.merge, (id, USDC)));
        (targets[n], calls[n++]) =
        (address(hub), abi.encodeCall(hub.buyWithPermit, (id, 0, USDC, 0, _later(), 27, bytes32(0), bytes32(0))));
        (targets[n], calls[n++]) = (address(hub), abi.encodeCall(hub.redeem, (me, won, 0)));
        (targets[n], calls[n++]) = (address(hub), abi.encodeCall(hub.redeem, (thief, won, 0)));
        (targets[n], calls[n++]) = (address(hub), abi.encodeCall(hub.redeemBatch, (_two(me, thief), _ids(won))));
        (targets[n], calls[n++]) = (address(authority), abi.encodeCall(authority.propose, (Role.Treasury, thief)));
        (targets[n], calls[n++]) = (address(authority), abi.encodeCall(authority.propose, (Role.Resolver, thief)));
        MarketTerms memory terms = _terms(2, 0, USDC);
        (targets[n], calls[n++]) = (address(hub), abi.encodeCall(hub.createMarket, (terms)));

        // The account, as its owner's neighbour would.
        Call[] memory theft = new Call[](1);
        theft[0] = Call(address(usdc), 0, abi.encodeCall(usdc.transfer, (thief, USDC)));
        bytes memory forged = _signEoa(MALLORY, victim.digestOf(theft, victim.nonce(), _later()));
        bytes memory siblings = _signEoa(OWNER, sibling.digestOf(theft, sibling.nonce(), _later()));
        (targets[n], calls[n++]) = (me, abi.encodeCall(victim.execute, (theft)));
        (targets[n], calls[n++]) = (me, abi.encodeCall(victim.executeSigned, (theft, _later(), forged)));
        (targets[n], calls[n++]) = (me, abi.encodeCall(victim.executeSigned, (theft, _later(), siblings)));
        (targets[n], calls[n++]) = (me, abi.encodeCall(victim.executeSigned, (theft, _later(), "")));
        (targets[n], calls[n++]) = (me, abi.encodeWithSignature("initialize(bytes)", _eoa(MALLORY)));
        (targets[n], calls[n++]) =
        (address(factory), abi.encodeCall(factory.createAndExecute, (_eoa(OWNER), 0, theft, _later(), forged)));
        (targets[n], calls[n++]) =
        (address(factory), abi.encodeCall(factory.createAndExecute, (_eoa(OWNER), 0, theft, _later(), siblings)));
        (targets[n], calls[n++]) = (address(factory), abi.encodeCall(factory.createAccount, (_eoa(MALLORY), 0)));

        // Last, because they end the market: cancelling, resolving against the victim, resolving it away.
        (targets[n], calls[n++]) = (address(hub), abi.encodeCall(hub.propose, (id, _winner(2, 1))));
        (targets[n], calls[n++]) = (address(hub), abi.encodeCall(hub.freeze, (id)));
        (targets[n], calls[n++]) = (address(hub), abi.encodeCall(hub.proposeCancel, (id)));
        (targets[n], calls[n++]) = (address(gate), abi.encodeCall(gate.revokePolicy, (me, KEY)));
        (targets[n], calls[n++]) = (address(gate), abi.encodeCall(gate.setPaused, (true)));
        vm.assertEq(n, calls.length);
    }

    function _two(address a, address b) private pure returns (address[] memory list) {
        list = new address[](2);
        (list[0], list[1]) = (a, b);
    }

    function _ids(uint64 market) private pure returns (uint256[] memory list) {
        list = new uint256[](2);
        (list[0], list[1]) = (_id(market, 0), _id(market, 0));
    }

    function _later() private pure returns (uint32) {
        return 1_800_000_000 + 90 days;
    }
}
