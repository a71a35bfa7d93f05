// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

/// @notice One trade that a delegated key asks for, packed so that calldata stays cheap.
/// who:   account:160 | key:32 | nonce:32 | deadline:32        (high to low)
/// what:  0:112 | market:64 | outcome:8 | side:8 | usdc:64     (high to low)
/// bound: tokens:128 | tradeId:128                             (high to low)
struct Intent {
    uint256 who;
    uint256 what;
    uint256 bound;
}

struct Policy {
    uint64 perTrade; // USDC atomic-6, below 2^44
    uint64 daily; // USDC atomic-6, below 2^44
    uint64 spent; // within the window that began at windowStart
    uint32 windowStart; // Unix seconds
    uint32 expiry; // Unix seconds; zero: no policy
    uint32 nonceTop; // highest nonce used
    uint32 nonceBitmap; // bit i: nonceTop - 1 - i is used
}

/// @notice Delegations, and the batches that spend them. It can move an account's USDC only into the hub, as a buy for
/// that same account.
interface IGate {
    event PolicySet(address indexed account, uint32 indexed key, uint64 perTrade, uint64 daily, uint32 expiry);
    /// @notice The intent is settled without a trade; `reason` is the revert data, cut at 256 bytes.
    event Failed(bytes16 indexed tradeId, address indexed account, uint32 key, uint32 nonce, bytes reason);
    /// @notice The nonce was spent before: the intent's outcome is an earlier event.
    event Duplicate(bytes16 indexed tradeId, address indexed account, uint32 key, uint32 nonce);
    event Paused(bool paused);
    event HourlyVolumeCapSet(uint64 usdc);
    event ExecutorSet(address indexed executor, bool allowed);
    event GuardianTransferred(address indexed from, address indexed to);

    error NotExecutor();
    error NotAuthorized();
    error IsPaused();
    error PolicyInvalid();
    error PolicyMissing();
    error PolicyExpired(uint32 expiry);
    error PerTradeCapExceeded(uint256 usdc, uint256 cap);
    error DailyCapExceeded(uint256 usdc, uint256 left);
    error DeadlinePassed(uint32 deadline);
    /// @notice Nonces end at 2^28 - 1; such an intent fails without using anything up.
    error NonceTooLarge(uint32 nonce);
    error HourlyVolumeExceeded();
    error GasTooLow();
    error BatchTooLarge();

    /// @notice The caller is the account: sets caps and expiry of its key; spent, window and nonces stay as they are.
    function setPolicy(uint32 key, uint64 perTrade, uint64 daily, uint32 expiry) external;
    /// @notice Executor: lowers what is above the given values, never raises anything.
    function reducePolicy(address account, uint32 key, uint64 perTrade, uint64 daily, uint32 expiry) external;
    /// @notice Executor or the account itself.
    function revokePolicy(address account, uint32 key) external;
    function policy(address account, uint32 key) external view returns (Policy memory);
    /// @notice Nonces begin at 1. One that has fallen more than 32 behind the highest counts as used.
    function isNonceUsed(address account, uint32 key, uint32 nonce) external view returns (bool);

    /// @notice Executor only, at most 100. A policy and a deadline hold through their last second. Caps are for buys: the
    /// `usdc` of the intent must fit, and what the trade costs is drawn. Each intent ends in exactly one of the hub's `Trade` and `Failed`.
    function execute(Intent[] calldata intents) external;

    function setPaused(bool paused) external; // guardian
    function setHourlyVolumeCap(uint64 usdc) external; // guardian; 2^64 - 1 is no cap
    function setExecutor(address executor, bool allowed) external; // guardian
    function transferGuardian(address to) external; // guardian
    function guardian() external view returns (address);
    function isExecutor(address executor) external view returns (bool);
    function paused() external view returns (bool);
    /// @notice USDC atomic-6 that delegated trades may move within an hour, which begins with the first of them.
    function hourlyVolumeCap() external view returns (uint64);
    function hourlyVolume() external view returns (uint64 used, uint32 windowStart);
    function hub() external view returns (address);
    function usdc() external view returns (address);
}
