// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

/// @notice One trade that a delegated key asks for, packed so that calldata stays cheap.
/// who:   account:160 | key:32 | nonce:32 | deadline:32        (high to low)
/// what:  0:112 | market:64 | outcome:8 | side:8 | usdc:64     (high to low)
/// bound: tokens:128 | tradeId:128                             (high to low)
/// `usdc` and `tokens` are as in `Side`, except that `SellAll` sells at most `tokens`.
struct Intent {
    uint256 who;
    uint256 what;
    uint256 bound;
}

/// @notice The limits of a key. Every amount is below 2^44 (17.6 million USDC).
struct Limits {
    uint64 perTrade; // USDC atomic-6 that one buy may cost
    uint64 daily; // USDC atomic-6 that buys may cost in a day
    uint64 salePerTrade; // face value that one sale may give: 1 USDC (1e6) for each token, whatever it is worth now
    uint64 saleDaily; // face value that sales may give in a day
    uint32 expiry; // Unix seconds; zero: no policy
}

/// @notice The limits of a key and what it has used of them.
struct Policy {
    uint64 perTrade; // limits: as in `Limits`
    uint64 daily;
    uint64 salePerTrade;
    uint64 saleDaily;
    uint32 expiry;
    uint64 spent; // USDC atomic-6, in the day that began at windowStart
    uint32 windowStart; // Unix seconds
    uint64 sold; // face value, in the day that began at saleWindowStart
    uint32 saleWindowStart; // Unix seconds
    uint32 nonceTop; // highest nonce used
    uint32 nonceBitmap; // bit i: nonceTop - 1 - i is used
}

/// @notice An executor's right.
struct Executor {
    bool allowed;
    bool paused;
    uint64 hourlyCap; // USDC atomic-6; 2^64 - 1: no cap
    uint64 used; // USDC atomic-6 of the cap that has not come back yet, at asOf
    uint32 asOf; // the block's time, Unix seconds
}

/// @notice Delegations, and the batches that spend them. It can move an account's USDC only into the hub, as a buy for
/// that same account. The owner and the guardian are those of the deployment's `IAuthority`.
///
/// An executor, its key stolen or not, takes from an account at most what the limits of its enabled keys allow: buys by
/// their cost, sales by their face value. A sale is not counted by its price, because the executor's thief may move
/// the price first. A token pays at most 1 USDC, so the face value is the most that a sale can lose.
interface IGate {
    /// @notice The limits of a key are now these; all zero: revoked.
    event PolicySet(
        address indexed account,
        uint32 indexed key,
        uint64 perTrade,
        uint64 daily,
        uint64 salePerTrade,
        uint64 saleDaily,
        uint32 expiry
    );
    /// @notice The intent is settled without a trade; `reason` is the revert data, cut at 256 bytes.
    event Failed(bytes16 indexed tradeId, address indexed account, uint32 key, uint32 nonce, bytes reason);
    /// @notice The nonce was spent before: the intent's outcome is an earlier event.
    event Duplicate(bytes16 indexed tradeId, address indexed account, uint32 key, uint32 nonce);
    /// @notice No executor executes, or all do again.
    event Paused(bool paused, address indexed by);
    /// @notice The owner has proposed an executor or a higher cap for one.
    /// @param enactableAt Unix seconds.
    event ExecutorProposed(address indexed executor, uint64 hourlyCap, uint64 enactableAt);
    /// @notice The proposal for this executor is gone: vetoed, or withdrawn by the owner.
    event ExecutorProposalRemoved(address indexed executor, address indexed by);
    /// @notice An executor's right is now this.
    event ExecutorSet(address indexed executor, bool allowed, uint64 hourlyCap);

    /// @notice The caller is not an executor.
    error NotExecutor();
    /// @notice The caller does not hold the role that this function needs.
    error NotAuthorized();
    /// @notice The Gate is paused.
    error IsPaused();
    /// @notice An amount is 2^44 or more, or the expiry is zero.
    error PolicyInvalid();
    /// @notice The account has not enabled the key, or has revoked it.
    error PolicyMissing();
    /// @notice The key's policy ended at `expiry`.
    error PolicyExpired(uint32 expiry);
    /// @notice The buy may cost more than the key's cap per trade.
    error PerTradeCapExceeded(uint256 usdc, uint256 cap);
    /// @notice The buy may cost more than the key's daily cap leaves.
    error DailyCapExceeded(uint256 usdc, uint256 left);
    /// @notice The sale may give more face value than the key's cap per sale.
    error SalePerTradeCapExceeded(uint256 face, uint256 cap);
    /// @notice The sale may give more face value than the key's daily sale cap leaves.
    error SaleDailyCapExceeded(uint256 face, uint256 left);
    /// @notice `SellAll`: the balance is above the intent's bound.
    error SaleBoundExceeded(uint256 tokens, uint256 bound);
    /// @notice The intent's deadline has passed.
    error DeadlinePassed(uint32 deadline);
    /// @notice Nonces end at 2^28 - 1; such an intent fails without using anything up.
    error NonceTooLarge(uint32 nonce);
    /// @notice The buy costs more than the executor's hourly cap leaves.
    error HourlyVolumeExceeded();
    /// @notice There is too little gas for the next trade; the whole batch is undone.
    error GasTooLow();
    /// @notice More than 100 intents.
    error BatchTooLarge();
    /// @notice There is no proposal for this executor, or its proposer is not the owner any more.
    error NotProposed(address executor);
    /// @notice The delay of the proposal is not over.
    error DelayNotOver(uint64 enactableAt);
    /// @notice `lowerExecutor` cannot raise a cap or add an executor.
    error CapNotLower();
    /// @notice An executor cannot be the zero address or have a cap of zero.
    error ExecutorInvalid();
    /// @notice The Gate already has `MAX_EXECUTORS`.
    error TooManyExecutors();

    // --- delegations ---

    /// @notice The caller is the account: sets the limits of its key. Usage and nonces stay as they are.
    /// @param key The account's own number for the key.
    /// @param limits Amounts below 2^44; the expiry is not zero. Zero sale limits: the key cannot sell.
    /// @dev Emits `PolicySet`. Errors: `PolicyInvalid`.
    function setPolicy(uint32 key, Limits calldata limits) external;
    /// @notice Executor: lowers each limit that is above the given value, and never raises one.
    /// @dev Emits `PolicySet`. Errors: `NotExecutor`.
    function reducePolicy(address account, uint32 key, Limits calldata limits) external;
    /// @notice Executor or the account itself: sets all limits to zero.
    /// @dev Emits `PolicySet`. Errors: `NotAuthorized`.
    function revokePolicy(address account, uint32 key) external;
    /// @notice The key's limits, and what it has used: a window older than a day counts as empty at the next trade.
    function policy(address account, uint32 key) external view returns (Policy memory);
    /// @notice Nonces begin at 1. One that has fallen more than 32 behind the highest counts as used. After nonce
    /// 2^28 - 1 the key is used up, and the account has to enable another one.
    function isNonceUsed(address account, uint32 key, uint32 nonce) external view returns (bool);

    // --- trades ---

    /// @notice Executor: at most 100 trades. A policy and a deadline hold through their last second. A trade draws its bound
    /// first (buys `usdc`, sales the face value of `tokens`, rounded up), and what it did not use comes back. Each
    /// intent ends in exactly one of the hub's `Trade`, `Failed` and `Duplicate`.
    /// @dev Errors: `NotExecutor`, `IsPaused`, `BatchTooLarge`, `GasTooLow`. All others end up in `Failed`.
    function execute(Intent[] calldata intents) external;

    // --- executors and pause ---

    /// @notice Owner: proposes an executor, or another cap for one. Replaces an earlier proposal for the same address.
    /// @param hourlyCap USDC atomic-6, not zero; 2^64 - 1: no cap. See `executor` for what counts.
    /// @dev Emits `ExecutorProposed`. Errors: `NotAuthorized`, `ExecutorInvalid`.
    function proposeExecutor(address executor, uint64 hourlyCap) external;
    /// @notice Anyone, once the authority's delay is over: the proposal takes effect.
    /// @dev Emits `ExecutorSet`. Errors: `NotProposed`, `DelayNotOver`, `TooManyExecutors`.
    function enactExecutor(address executor) external;
    /// @notice Guardian (a veto) or owner: removes the proposal for an executor.
    /// @dev Emits `ExecutorProposalRemoved`. Errors: `NotAuthorized`, `NotProposed`.
    function vetoExecutor(address executor) external;
    /// @notice Guardian or owner: lowers an executor's cap at once. Zero removes the executor. A pending proposal for it
    /// ends.
    /// @dev Emits `ExecutorSet`, and `ExecutorProposalRemoved` if one was pending. Errors: `NotAuthorized`, `CapNotLower`.
    function lowerExecutor(address executor, uint64 hourlyCap) external;
    /// @notice Guardian or owner: stops all executors at once. Only the guardian starts them again. Revocations still work.
    /// @dev Emits `Paused`. Errors: `NotAuthorized`.
    function setPaused(bool paused) external;

    /// @notice An executor's right. Its hourly cap counts what leaves accounts, net: buys draw on it, sales give back, but
    /// never more than was drawn. The cap also comes back by itself, evenly within an hour. So in any period of t hours,
    /// buys less sales are at most `hourlyCap * (1 + t)`, and buying and selling in turn uses up only what it costs.
    function executor(address executor) external view returns (Executor memory);
    /// @return All executors, in no order.
    function executors() external view returns (address[] memory);
    /// @return Whether the address is an executor, paused or not.
    function isExecutor(address executor) external view returns (bool);
    /// @notice The pending proposal for an executor; zeros if there is none.
    /// @return hourlyCap USDC atomic-6.
    /// @return enactableAt Unix seconds.
    function proposedExecutor(address executor) external view returns (uint64 hourlyCap, uint64 enactableAt);
    /// @return Whether the Gate is paused.
    function paused() external view returns (bool);
    /// @return The most executors that the Gate may have.
    function MAX_EXECUTORS() external view returns (uint256);
    /// @return The contract that holds the roles.
    function authority() external view returns (address);
    /// @return The market hub.
    function hub() external view returns (address);
    /// @return The token that accounts pay with.
    function usdc() external view returns (address);
}
