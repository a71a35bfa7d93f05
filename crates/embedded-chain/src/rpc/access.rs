//! Limits on the methods and the work that a caller of the JSON-RPC endpoint may request.

use std::time::Duration;

/// The limits for one caller's requests.
#[derive(Debug, Clone, Copy)]
pub struct Access {
    /// Allows `evm_mine` and `foretell_mine`.
    pub test_methods: bool,
    /// The maximum gas of one `eth_call`.
    pub call_gas: u64,
    /// The total gas after which an `eth_estimateGas` stops refining its estimate.
    pub estimate_gas: u64,
    /// The maximum number of blocks of one `eth_getLogs`.
    pub log_blocks: u64,
    /// The time after which the remaining requests of a batch are rejected.
    pub batch_time: Duration,
    /// The total length of the responses, in bytes, after which the remaining requests of a batch
    /// are rejected.
    pub batch_bytes: usize,
}

impl Access {
    /// Limits for callers in this process.
    pub(super) const UNLIMITED: Self = Self { test_methods: true, ..Self::OPERATOR };

    /// Limits for the operator's own commands.
    pub const OPERATOR: Self = Self {
        test_methods: false,
        call_gas: u64::MAX,
        estimate_gas: u64::MAX,
        log_blocks: 100_000,
        batch_time: Duration::MAX,
        batch_bytes: usize::MAX,
    };

    /// Limits for unknown callers. A call holds a lock that a new block must wait for, so its gas
    /// limit bounds how long trading can be delayed.
    pub const PUBLIC: Self = Self {
        test_methods: false,
        call_gas: 10_000_000,
        estimate_gas: 50_000_000,
        log_blocks: 10_000,
        batch_time: Duration::from_secs(1),
        batch_bytes: 8 << 20,
    };
}
