// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

/// @notice Where a market stands. `Listed` exists so that a market is seen for a while before its first trade.
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

/// @notice What a trade moves, and the two words of state it changes.
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
    bytes32 ref; // the creator's own name for the market: a second creation under it is refused
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
    uint64 basis; // what the holders paid for what they hold, USDC atomic-6; stays likewise
    uint64 volume; // USDC atomic-6 traded on this outcome, both directions
    uint32 trades;
}

struct Roles {
    address resolver; // creates, resolves and cancels markets
    address guardian; // freezes markets, vetoes resolutions
    address treasury; // receives fees and surplus
}

enum Role {
    Resolver,
    Guardian,
    Treasury
}

/// @notice All markets and all positions: LMSR in cost-state form. A token id is `marketId << 8 | outcome`.
interface IMarketHub {
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
    event ResolutionProposed(uint64 indexed marketId, uint256[] payouts, uint64 finalizableAt);
    event ResolutionVetoed(uint64 indexed marketId);
    /// @param payouts WAD per token of each outcome, summing to at most 1e18.
    event MarketResolved(uint64 indexed marketId, uint256[] payouts);
    /// @param payouts empty: every holder is refunded the cost basis times `scale` / 1e18.
    event MarketCancelled(uint64 indexed marketId, uint256[] payouts, uint256 scale);
    event MarketToppedUp(uint64 indexed marketId, uint64 usdc, uint256 scale);
    /// @param tradeId the caller's UUID; zero for a trade made past the Gate.
    /// @param cost C after the trade; `quantity` is q_i after the trade.
    event Trade(
        bytes16 indexed tradeId,
        address indexed account,
        uint256 indexed tokenId,
        Side side,
        uint64 usdc,
        uint128 tokens,
        uint64 fee,
        uint256 cost,
        uint256 quantity
    );
    event Redeemed(address indexed account, uint256 indexed tokenId, uint128 tokens, uint64 usdc);
    /// @dev ERC-6909. Logged for transfers between holders; trades and redemptions log the events above instead.
    event Transfer(
        address caller, address indexed sender, address indexed receiver, uint256 indexed id, uint256 amount
    );
    event RoleTransferred(Role indexed role, address indexed from, address indexed to);
    event OperatorSet(address indexed owner, address indexed spender, bool approved);
    event Approval(address indexed owner, address indexed spender, uint256 indexed id, uint256 amount);

    error MarketUnknown(uint64 marketId);
    error MarketNotTradeable(uint64 marketId, Status status);
    error MarketExists(bytes32 ref);
    error OutcomeInvalid(uint8 outcome);
    error TermsInvalid();
    error AmountZero();
    error AmountTooLarge();
    error SlippageExceeded(uint256 got, uint256 bound);
    error LiquidityInsufficient();
    error PositionInsufficient(uint256 have, uint256 want);
    error NothingToRedeem();
    error TransitionInvalid(Status from, Status to);
    error PayoutsInvalid();
    error VetoWindowOpen(uint64 finalizableAt);
    error NotAuthorized();

    // --- trading; the caller is the account ---
    function buy(uint64 marketId, uint8 outcome, uint256 usdc, uint256 minTokens) external returns (Fill memory);
    function buyTokens(uint64 marketId, uint8 outcome, uint256 tokens, uint256 maxUsdc) external returns (Fill memory);
    function sell(uint64 marketId, uint8 outcome, uint256 tokens, uint256 minUsdc) external returns (Fill memory);
    function sellForUsdc(uint64 marketId, uint8 outcome, uint256 usdc, uint256 maxTokens) external returns (Fill memory);

    /// @notice Gate only: the same trades for an account that delegated them. Fixed and bounding amounts as in `Side`.
    /// A sale is paid to `account` here; the USDC of a buy is for the Gate to bring in, in the same call.
    /// @return moved USDC atomic-6: the `usdc` of the fill.
    function tradeFor(
        address account,
        uint64 marketId,
        uint8 outcome,
        Side side,
        uint256 usdc,
        uint256 tokens,
        bytes16 tradeId
    ) external returns (uint256 moved);

    /// @notice Pays `account` what its tokens are worth in a resolved or cancelled market. Open to any caller.
    /// The tokens are gone then; the basis too, unless a refund was scaled down: it stays to claim what a top-up adds.
    function redeem(address account, uint64 marketId, uint8 outcome) external returns (uint256 usdc);
    /// @notice The same for many; a payment that fails leaves that position as it was and the others go on.
    function redeemBatch(address[] calldata accounts, uint256[] calldata tokenIds)
        external
        returns (uint256[] memory usdc);

    // --- market life ---
    /// @notice Resolver only. Takes the funding, `ceil(b ln(1 / min odds))`, from the caller.
    function createMarket(MarketTerms calldata terms) external returns (uint64 marketId);
    /// @notice Anyone, once the listing delay is over. With a delay of zero `createMarket` opens the market itself.
    function open(uint64 marketId) external;
    function freeze(uint64 marketId) external; // guardian or resolver
    function unfreeze(uint64 marketId) external; // guardian or resolver
    function propose(uint64 marketId, uint256[] calldata payouts) external; // resolver; freezes; finalizes at once when the veto window is zero
    function veto(uint64 marketId) external; // guardian
    function finalize(uint64 marketId) external; // anyone, after the window
    function cancel(uint64 marketId) external; // resolver: refund of cost basis, at once
    /// @notice Resolver. It names winners, so it is proposed, can be vetoed and is finalized like a resolution.
    function cancelWithPayouts(uint64 marketId, uint256[] calldata payouts) external;
    /// @notice Anyone: raises a scaled-down refund, by no more than is missing. Who redeemed before redeems the rest.
    function topUp(uint64 marketId, uint64 usdc) external;
    function sweepFees(uint64 marketId) external returns (uint64 usdc); // anyone; pays the treasury

    // --- views ---
    /// @notice What a trade would move now. `amount` is USDC or tokens, as `side` says; for SellAll, tokens.
    function quote(uint64 marketId, uint8 outcome, Side side, uint256 amount) external view returns (Fill memory);
    function market(uint64 marketId) external view returns (MarketState memory);
    function outcomes(uint64 marketId) external view returns (OutcomeState[] memory);
    function outcome(uint64 marketId, uint8 index) external view returns (OutcomeState memory);
    /// @notice WAD prices, summing to 1e18 within 1e9.
    function prices(uint64 marketId) external view returns (uint256[] memory);
    function position(address account, uint256 tokenId) external view returns (uint256 balance, uint256 basis);
    /// @notice Payouts of a resolved market, or of one cancelled with payouts; `scale` of a cost-basis refund.
    function resolution(uint64 marketId) external view returns (uint256[] memory payouts, uint256 scale);
    /// @notice USDC that `redeem` would pay now; zero where it would revert.
    function redeemable(address account, uint64 marketId, uint8 outcome) external view returns (uint256 usdc);
    function marketOf(bytes32 ref) external view returns (uint64 marketId);
    function marketCount() external view returns (uint64);
    function usdc() external view returns (address);
    function gate() external view returns (address);
    /// @notice Unix seconds from which the market may open, and its proposed resolution be finalized (zero: none proposed).
    function schedule(uint64 marketId) external view returns (uint64 openableAt, uint64 finalizableAt);

    // --- roles; none of them reaches a balance ---
    /// @notice The holder of a role hands it on.
    function transferRole(Role role, address to) external;
    function resolver() external view returns (address);
    function guardian() external view returns (address);
    function treasury() external view returns (address);
    /// @notice Seconds between the creation of a market and its first trade.
    function listingDelay() external view returns (uint32);
    /// @notice Seconds between a proposed resolution and its taking effect.
    function vetoWindow() external view returns (uint32);

    // --- positions as ERC-6909 tokens; a transfer takes its share of the basis along ---
    function transfer(address receiver, uint256 id, uint256 amount) external returns (bool);
    function transferFrom(address sender, address receiver, uint256 id, uint256 amount) external returns (bool);
    function approve(address spender, uint256 id, uint256 amount) external returns (bool);
    function setOperator(address spender, bool approved) external returns (bool);
    function balanceOf(address owner, uint256 id) external view returns (uint256);
    function allowance(address owner, address spender, uint256 id) external view returns (uint256);
    function isOperator(address owner, address spender) external view returns (bool);
}
