//! Reports requests to nodes, for metrics.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use alloy::rpc::json_rpc::RequestPacket;

/// Receives a report of each request to a node.
pub trait RpcObserver: Send + Sync {
    /// A node has answered, or has failed to. `is_usable` is false if the request must go to another
    /// node.
    fn answered(&self, method: &'static str, took: Duration, is_usable: bool);
}

/// The observer of all nodes, once there is one.
#[derive(Clone, Default)]
pub(super) struct Observer(Arc<OnceLock<Arc<dyn RpcObserver>>>);

impl Observer {
    /// Sets the observer, unless there is one.
    pub fn set(&self, observer: Arc<dyn RpcObserver>) {
        // Tests have several contexts over the same nodes: the first one observes them.
        drop(self.0.set(observer));
    }

    pub fn answered(&self, packet: &RequestPacket, took: Duration, is_usable: bool) {
        if let Some(observer) = self.0.get() {
            observer.answered(method_of(packet), took, is_usable);
        }
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Observer").field(&self.0.get().is_some()).finish()
    }
}

/// The names under which requests are reported: the methods that this crate uses, and two for the rest.
pub const RPC_METHODS: [&str; 18] = [
    "eth_blockNumber",
    "eth_call",
    "eth_chainId",
    "eth_estimateGas",
    "eth_feeHistory",
    "eth_gasPrice",
    "eth_getBalance",
    "eth_getBlockByHash",
    "eth_getBlockByNumber",
    "eth_getCode",
    "eth_getLogs",
    "eth_getStorageAt",
    "eth_getTransactionCount",
    "eth_getTransactionReceipt",
    "eth_maxPriorityFeePerGas",
    "eth_sendRawTransaction",
    BATCH,
    OTHER,
];
const BATCH: &str = "batch";
const OTHER: &str = "other";

fn method_of(packet: &RequestPacket) -> &'static str {
    let RequestPacket::Single(request) = packet else { return BATCH };
    RPC_METHODS.into_iter().find(|known| *known == request.method()).unwrap_or(OTHER)
}
