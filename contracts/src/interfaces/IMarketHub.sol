// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {Intent} from "./IGate.sol";

/// @notice The states of a market. `Listed` exists so that a market can be seen for a while before its first trade.
enum Status {
    None,
    Listed,
    Open,
    Frozen,
    Resolved,
    Cancelled
}

/// @notice The five ways to trade. Amounts: USDC in atomic-6, tokens in WAD.
enum Side {
    BuyForUsdc, // spend exactly `usdc`, fee included; receive at least `tokens`
    BuyTokens, // receive exactly `tokens`; spend at most `usdc`, fee included
    SellTokens, // give exactly `tokens`; receive at least `usdc`, after the fee
    SellForUsdc, // receive exactly `usdc`, after the fee; give at most `tokens`
    SellAll // give the whole balance; receive at least `usdc`, after the fee
}

/// @notice The amounts of a trade, and the two words of state it changes.
struct Fill {
    uint256 usdc; // atomic-6, fee included: what leaves the buyer, what reaches the seller
    uint256 tokens; // WAD: what the buyer receives, what the seller gives
    uint256 fee; // atomic-6
    uint256 costBefore; // C, WAD
    uint256 costAfter; // C, WAD
    uint256 quantityBefore; // q_i, WAD
    uint256 quantityAfter; // q_i, WAD
}

struct MarketTerms {
    bytes32 ref; // the creator's own name for the market: a second creation under it is rejected
    uint8 outcomes; // 2 to 250
    uint16 feeBps; // 0 to 1000
    uint32 closeTime; // Unix seconds, later than the listing delay; trading stops by itself then
    uint64 liquidity; // b, USDC atomic-6
    uint256[] openingOdds; // WAD, summing to 1e18; empty: all equal
}

struct MarketState {
    Status status; // `Frozen` also when an open market is past its close time
    uint8 outcomes;
    uint16 feeBps;
    uint32 closeTime;
    uint64 liquidity; // b, USDC atomic-6
    uint64 fees; // collected and not yet swept, USDC atomic-6
    uint256 cost; // C, WAD
}

struct OutcomeState {
    uint256 quantity; // q_i, WAD
    uint256 supply; // tokens held by traders, WAD; redemptions leave it as it was when the market was settled
    uint64 volume; // USDC atomic-6 traded on this outcome, both directions; complete sets do not count
    uint32 trades;
}

/// @notice The times of a market, Unix seconds.
struct Schedule {
    uint64 openableAt; // anyone may open it from then
    uint64 frozenAt; // trading ended then; zero while it goes on
    uint64 cancellableAt; // a cancel may be proposed from then; zero while trading goes on
    uint64 finalizableAt; // the proposal may be finalized from then; zero: nothing is proposed
    uint64 resultDueAt; // afterwards no result can be proposed, and anyone may propose the cancel
    bool isHeld; // frozen by the guardian: only the guardian unfreezes it
    uint8 lateVetoes; // vetoes of cancels after `resultDueAt`; two at most
}

/// @notice The delays of a deployment, in seconds. Zero (for `period`: short) only in development.
struct HubSettings {
    uint32 listingDelay; // between the creation of a market and its first trade
    uint32 vetoWindow; // between a proposal and its taking effect
    uint32 minFreeze; // between the end of trading and the proposal of a cancel
    uint32 period; // length of a reference period, which decides what a cancel pays; at least 1
    uint32 resultDeadline; // between the close time and the last proposal of a result
}

/// @notice All markets and all positions: LMSR in cost-state form. A token id is `marketId << 8 | outcome`.
///
/// Every function that names a market reverts with `MarketUnknown` if there is none, and every one that names an outcome
/// with `OutcomeInvalid` if the market lacks it.
interface IMarketHub {
    /// @param cost C, WAD, which is also the funding.
    /// @param quantities q_i, WAD.
    event MarketCreated(
        uint64 indexed marketId,
        bytes32 indexed ref,
        uint8 outcomes,
        uint16 feeBps,
        uint32 closeTime,
        uint64 liquidity,
        uint256 cost,
        uint256[] quantities
    );
    event MarketStatusChanged(uint64 indexed marketId, Status status);
    /// @notice The guardian froze the market, or lifted that freeze.
    event MarketHeld(uint64 indexed marketId, bool held);
    /// @param payouts WAD per token of each outcome, summing to 1e18.
    event ResolutionProposed(uint64 indexed marketId, uint256[] payouts, uint64 finalizableAt);
    /// @param payouts the reference prices, WAD per token of each outcome, summing to 1e18.
    event CancelProposed(uint64 indexed marketId, uint256[] payouts, uint64 finalizableAt);
    /// @notice The proposal, of a result or of a cancel, is withdrawn.
    event ResolutionVetoed(uint64 indexed marketId);
    event MarketResolved(uint64 indexed marketId, uint256[] payouts);
    event MarketCancelled(uint64 indexed marketId, uint256[] payouts);
    /// @notice A trade, in three packed words. The `Transfer` before it has the account and the token id as topics.
    /// @param tradeId the caller's UUID; zero for a trade that did not come through the Gate.
    /// @param what high to low: account:160 | unused:16 | marketId:64 | outcome:8 | side:8
    /// @param amounts high to low: usdc (atomic-6):64 | fee (atomic-6):64 | tokens (WAD):128
    /// @param state after the trade, high to low: C (WAD):128 | q_i (WAD):128
    event Trade(bytes16 indexed tradeId, uint256 what, uint256 amounts, uint256 state);
    /// @notice `usdc` became `usdc * 1e12` tokens of every outcome.
    /// @param usdc atomic-6.
    /// @param cost C after it, WAD. Every q_i rose by `usdc * 1e12`.
    event SetsSplit(address indexed account, uint64 indexed marketId, uint64 usdc, uint256 cost);
    /// @notice `usdc * 1e12` tokens of every outcome became `usdc`.
    /// @param usdc atomic-6.
    /// @param cost C after it, WAD. Every q_i fell by `usdc * 1e12`.
    event SetsMerged(address indexed account, uint64 indexed marketId, uint64 usdc, uint256 cost);
    event Redeemed(address indexed account, uint256 indexed tokenId, uint128 tokens, uint64 usdc);
    /// @notice ERC-6909. A buy and a split mint from the zero address; a sale, a merge and a redemption burn to it.
    event Transfer(
        address caller, address indexed sender, address indexed receiver, uint256 indexed id, uint256 amount
    );
    /// @notice ERC-6909.
    event OperatorSet(address indexed owner, address indexed spender, bool approved);
    /// @notice ERC-6909.
    event Approval(address indexed owner, address indexed spender, uint256 indexed id, uint256 amount);

    error MarketUnknown(uint64 marketId);
    error MarketNotTradeable(uint64 marketId, Status status);
    error MarketExists(bytes32 ref);
    error OutcomeInvalid(uint8 outcome);
    /// @notice The id has bits above those of a market and an outcome.
    error TokenUnknown(uint256 id);
    /// @notice The terms of a market or of the deployment are out of range, or two lists differ in length.
    error TermsInvalid();
    error AmountZero();
    /// @notice The amount is beyond what the curve or a word of storage can hold.
    error AmountTooLarge();
    error SlippageExceeded(uint256 got, uint256 bound);
    /// @notice The curve cannot pay that amount.
    error LiquidityInsufficient();
    error PositionInsufficient(uint256 have, uint256 want);
    error NothingToRedeem();
    error TransitionInvalid(Status from, Status to);
    /// @notice The payouts do not fit the number of outcomes, or do not sum to exactly 1e18.
    error PayoutsInvalid();
    error VetoWindowOpen(uint64 finalizableAt);
    error FrozenTooBriefly(uint64 cancellableAt);
    error ResultTooLate(uint64 resultDueAt);
    /// @notice The guardian has vetoed two cancels of this market after the deadline of its result.
    error VetoesUsedUp();
    error NotAuthorized();

    // --- trading; the caller is the account ---

    /// @notice Buys for exactly `usdc`, fee included. The hub needs an allowance of USDC from the caller.
    /// @param usdc atomic-6.
    /// @param minTokens WAD.
    /// @dev Emits `Transfer` and `Trade`. Errors: `MarketNotTradeable`, `AmountZero`, `AmountTooLarge`, `SlippageExceeded`,
    /// and those of USDC.
    function buy(uint64 marketId, uint8 outcome, uint256 usdc, uint256 minTokens) external returns (Fill memory);
    /// @notice Like `buy`, with an ERC-2612 permit of `usdc` for the hub, signed by the caller. A permit that fails is
    /// ignored, since an allowance may exist already.
    /// @param deadline Unix seconds; of the permit.
    /// @param v of the signature, as are `r` and `s`.
    /// @dev Events and errors as `buy`. An account that is a contract approves in the same batch instead.
    function buyWithPermit(
        uint64 marketId,
        uint8 outcome,
        uint256 usdc,
        uint256 minTokens,
        uint256 deadline,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external returns (Fill memory);
    /// @notice Buys exactly `tokens`.
    /// @param tokens WAD.
    /// @param maxUsdc atomic-6, fee included.
    /// @dev Events and errors as `buy`.
    function buyTokens(uint64 marketId, uint8 outcome, uint256 tokens, uint256 maxUsdc) external returns (Fill memory);
    /// @notice Sells exactly `tokens`.
    /// @param tokens WAD.
    /// @param minUsdc atomic-6, after the fee.
    /// @dev Emits `Transfer` and `Trade`. Errors: those of `buy`, and `PositionInsufficient`.
    function sell(uint64 marketId, uint8 outcome, uint256 tokens, uint256 minUsdc) external returns (Fill memory);
    /// @notice Sells for exactly `usdc`.
    /// @param usdc atomic-6, after the fee.
    /// @param maxTokens WAD.
    /// @dev Events as `sell`; errors too, and `LiquidityInsufficient`.
    function sellForUsdc(uint64 marketId, uint8 outcome, uint256 usdc, uint256 maxTokens) external returns (Fill memory);

    /// @notice Gate only: the same trades for an account that delegated them. Fixed and bounding amounts as in `Side`.
    /// A sale is paid to the account here; the Gate brings in the USDC of a buy, in the same call.
    /// @return movedUsdc USDC atomic-6: the `usdc` of the fill.
    /// @return movedTokens WAD: the `tokens` of the fill.
    /// @dev Events and errors as the functions above, and `NotAuthorized`. The name gives the lowest selector of the
    /// contract, which is compared first: the last one costs 1,000 gas more.
    function fillForKey(Intent calldata intent) external returns (uint256 movedUsdc, uint256 movedTokens);

    // --- complete sets: one token of each outcome for 1 USDC, without a fee ---

    /// @notice Turns USDC of the caller into tokens of every outcome, while the market is open. No price changes.
    /// @param usdc atomic-6; the caller receives `usdc * 1e12` WAD of each.
    /// @dev Emits one `Transfer` per outcome, then `SetsSplit`. Errors: `MarketNotTradeable`, `AmountZero`, `AmountTooLarge`,
    /// and those of USDC.
    function split(uint64 marketId, uint256 usdc) external;
    /// @notice Turns tokens of every outcome into USDC for the caller, while the market is open. No price changes.
    /// @param usdc atomic-6; the caller gives `usdc * 1e12` WAD of each.
    /// @dev Emits one `Transfer` per outcome, then `SetsMerged`. Errors: those of `split`, and `PositionInsufficient`.
    function merge(uint64 marketId, uint256 usdc) external;

    // --- redemption; open to any caller ---

    /// @notice Pays `account` for all its tokens of an outcome of a resolved or cancelled market, and burns them.
    /// @return usdc atomic-6, rounded down.
    /// @dev Emits `Transfer` and `Redeemed`. Errors: `NothingToRedeem`, and those of USDC.
    function redeem(address account, uint64 marketId, uint8 outcome) external returns (uint256 usdc);
    /// @notice The same for many; a payment that fails leaves that position as it was, and the others go on.
    /// @return usdc atomic-6; zero if nothing was paid.
    /// @dev Events as `redeem`. Errors: `TermsInvalid` for lists of different length.
    function redeemBatch(address[] calldata accounts, uint256[] calldata tokenIds)
        external
        returns (uint256[] memory usdc);

    // --- market life ---

    /// @notice Resolver only. Takes the funding, `ceil(b ln(1 / min odds))`, from the caller, who must have approved it.
    /// Without a listing delay the market is open at once.
    /// @dev Emits `MarketCreated`, `MarketStatusChanged`. Errors: `NotAuthorized`, `TermsInvalid`, `MarketExists`, and USDC's.
    function createMarket(MarketTerms calldata terms) external returns (uint64 marketId);
    /// @notice Anyone, once the listing delay is over and before the close time.
    /// @dev Emits `MarketStatusChanged`. Errors: `TransitionInvalid`.
    function open(uint64 marketId) external;
    /// @notice Guardian or resolver: stops trading. The guardian may also freeze a market that the resolver has frozen,
    /// so that the resolver cannot unfreeze it.
    /// @dev Emits `MarketStatusChanged`, and `MarketHeld` for the guardian. Errors: `NotAuthorized`, `TransitionInvalid`.
    function freeze(uint64 marketId) external;
    /// @notice Guardian; the resolver too unless the guardian has frozen the market. Not under a proposal, and not past the
    /// close time.
    /// @dev Emits `MarketStatusChanged`, and `MarketHeld`. Errors: `NotAuthorized`, `TransitionInvalid`.
    function unfreeze(uint64 marketId) external;
    /// @notice Resolver, until the deadline of the result: proposes what one token of each outcome pays, and freezes the
    /// market. Final at once if the veto window is zero. One proposal at a time: only a veto makes room for another.
    /// @param payouts WAD, summing to exactly 1e18.
    /// @dev Emits `ResolutionProposed`, `MarketStatusChanged`. Errors: `NotAuthorized`, `TransitionInvalid`, `PayoutsInvalid`,
    /// `ResultTooLate`.
    function propose(uint64 marketId, uint256[] calldata payouts) external;
    /// @notice Resolver; after the deadline of the result, anyone. Proposes that every token pays the reference price of its
    /// outcome: the price at the start of the reference period before the one in which trading ended. The market must have
    /// been frozen (or closed) for `minFreeze` seconds. Final at once if the veto window is zero.
    /// @dev Emits `CancelProposed`. Errors: `NotAuthorized`, `TransitionInvalid`, `FrozenTooBriefly`.
    function proposeCancel(uint64 marketId) external;
    /// @notice Guardian: withdraws the proposal, until it is finalized. The market stays frozen. After the deadline of the
    /// result, at most two cancels of a market can be vetoed.
    /// @dev Emits `ResolutionVetoed`. Errors: `NotAuthorized`, `TransitionInvalid`, `VetoesUsedUp`.
    function veto(uint64 marketId) external;
    /// @notice Anyone, after the veto window. Sends to the treasury what no payout needs; if that transfer fails, it waits
    /// for `sweepFees`.
    /// @dev Emits `MarketStatusChanged`, then `MarketResolved` or `MarketCancelled`. Errors: `TransitionInvalid`,
    /// `VetoWindowOpen`.
    function finalize(uint64 marketId) external;
    /// @notice Anyone, at any time: sends fees, and surplus that is still here, to the treasury. Refunds never need them.
    /// @return usdc atomic-6.
    /// @dev Errors: those of USDC.
    function sweepFees(uint64 marketId) external returns (uint64 usdc);

    // --- views ---

    /// @notice The amounts that a trade would move now. `amount` is USDC or tokens, as `side` says; for SellAll, tokens.
    /// @dev Errors: those of the trade, except that no balance and no bound is checked.
    function quote(uint64 marketId, uint8 outcome, Side side, uint256 amount) external view returns (Fill memory);
    /// @return The state of a market.
    function market(uint64 marketId) external view returns (MarketState memory);
    /// @return The state of every outcome, in order.
    function outcomes(uint64 marketId) external view returns (OutcomeState[] memory);
    /// @return The state of one outcome.
    function outcome(uint64 marketId, uint8 index) external view returns (OutcomeState memory);
    /// @return WAD. They sum to 1e18 within 1e9, up to a lead of 20 b of one outcome over another (see the README).
    function prices(uint64 marketId) external view returns (uint256[] memory);
    /// @notice Many views of this contract in one call, all of the same block.
    /// @param calls the call data of each.
    /// @return results the return data of each, in order.
    /// @dev Reverts as the first view that reverts.
    function viewBatch(bytes[] calldata calls) external view returns (bytes[] memory results);
    /// @return payouts WAD per token of a resolved or cancelled market; empty before.
    function resolution(uint64 marketId) external view returns (uint256[] memory payouts);
    /// @return isCancel whether the proposal is a cancel.
    /// @return finalizableAt Unix seconds; zero: nothing is proposed.
    /// @return payouts WAD per token; empty if nothing is proposed.
    function proposal(uint64 marketId)
        external
        view
        returns (bool isCancel, uint64 finalizableAt, uint256[] memory payouts);
    /// @return WAD per token, summing to 1e18: what a cancel would pay. While trading goes on: if it ended now.
    function referencePrices(uint64 marketId) external view returns (uint256[] memory);
    /// @return usdc atomic-6 that `redeem` would pay now; zero if it would revert.
    function redeemable(address account, uint64 marketId, uint8 outcome) external view returns (uint256 usdc);
    /// @return marketId of the market created under this reference; zero if there is none.
    function marketOf(bytes32 ref) external view returns (uint64 marketId);
    /// @return The number of markets; ids run from 1.
    function marketCount() external view returns (uint64);
    /// @return The times of a market.
    function schedule(uint64 marketId) external view returns (Schedule memory);
    /// @return The delays of this deployment.
    function settings() external view returns (HubSettings memory);
    /// @return The token that everything is paid in.
    function usdc() external view returns (address);
    /// @return The contract that trades for accounts.
    function gate() external view returns (address);
    /// @return The contract that holds the roles; none of them reaches a balance.
    function authority() external view returns (address);

    // --- positions as ERC-6909 tokens ---

    /// @notice Sends tokens of a market that is not settled.
    /// @param amount WAD; zero changes nothing.
    /// @dev Emits `Transfer`. Errors: `TokenUnknown`, `MarketNotTradeable`, `PositionInsufficient`, `NotAuthorized` for the
    /// zero address as receiver.
    function transfer(address receiver, uint256 id, uint256 amount) external returns (bool);
    /// @notice The same by an operator or an approved spender. An allowance of 2^256 - 1 is not used up.
    /// @dev Events and errors as `transfer`; `NotAuthorized` without approval, `AmountZero` if the caller is not the sender.
    function transferFrom(address sender, address receiver, uint256 id, uint256 amount) external returns (bool);
    /// @notice Lets `spender` transfer up to `amount` (WAD) of the caller's tokens.
    /// @dev Emits `Approval`.
    function approve(address spender, uint256 id, uint256 amount) external returns (bool);
    /// @notice Lets `spender` transfer all of the caller's tokens, until unset.
    /// @dev Emits `OperatorSet`.
    function setOperator(address spender, bool approved) external returns (bool);
    /// @return WAD.
    function balanceOf(address owner, uint256 id) external view returns (uint256);
    /// @return WAD.
    function allowance(address owner, address spender, uint256 id) external view returns (uint256);
    /// @return Whether `spender` may transfer all tokens of `owner`.
    function isOperator(address owner, address spender) external view returns (bool);
    /// @return The name of an outcome's token.
    /// @dev Errors: `TokenUnknown`.
    function name(uint256 id) external view returns (string memory);
    /// @return The symbol of an outcome's token.
    /// @dev Errors: `TokenUnknown`.
    function symbol(uint256 id) external view returns (string memory);
    /// @return 18.
    /// @dev Errors: `TokenUnknown`.
    function decimals(uint256 id) external view returns (uint8);
    /// @return A JSON document as a data URI.
    function contractURI() external view returns (string memory);
    /// @return A JSON document as a data URI.
    /// @dev Errors: `TokenUnknown`.
    function tokenURI(uint256 id) external view returns (string memory);
    /// @notice ERC-165: itself, and ERC-6909 with its metadata and content URI extensions.
    function supportsInterface(bytes4 id) external view returns (bool);
}
