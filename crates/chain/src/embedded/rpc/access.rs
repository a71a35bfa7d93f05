//! What a caller of the JSON-RPC endpoint may ask for, and how much work it may cause.

use std::time::Duration;

/// The bounds of one caller's requests.
#[derive(Debug, Clone, Copy)]
pub struct Access {
    /// Allows `evm_mine` and `foretell_mine`.
    pub test_methods: bool,
    /// The most gas of one `eth_call`.
    pub call_gas: u64,
    /// The gas after which an `eth_estimateGas` stops narrowing its estimate.
    pub estimate_gas: u64,
    /// The most blocks of one `eth_getLogs`.
    pub log_blocks: u64,
    /// The time after which the remaining requests of a batch are refused.
    pub batch_time: Duration,
    /// The length of the answers, in bytes, after which the remaining requests of a batch are refused.
    pub batch_bytes: usize,
}

impl Access {
    /// For callers in this process.
    pub(super) const UNLIMITED: Self = Self { test_methods: true, ..Self::OPERATOR };

    /// For the operator's own commands.
    pub const OPERATOR: Self = Self {
        test_methods: false,
        call_gas: u64::MAX,
        estimate_gas: u64::MAX,
        log_blocks: 100_000,
        batch_time: Duration::MAX,
        batch_bytes: usize::MAX,
    };

    /// For callers that the service does not know. A call runs under the lock that a new block waits for, so its gas bounds
    /// how long trading may wait for it.
    pub const PUBLIC: Self = Self {
        test_methods: false,
        call_gas: 10_000_000,
        estimate_gas: 50_000_000,
        log_blocks: 10_000,
        batch_time: Duration::from_secs(1),
        batch_bytes: 8 << 20,
    };
}
