//! Tests of the contracts through the client, on the embedded chain and on anvil.
//!
//! `FORETELL_ANVIL` names anvil's binary. Without it, the tests on anvil print a message and pass.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "what a test cannot do without fails it")]

/// Creates two tests of each function `async fn(Node)`, one for each node.
macro_rules! on_both_nodes {
    ($($rule:ident),+ $(,)?) => {
        mod embedded {
            $(#[tokio::test] async fn $rule() { super::$rule($crate::world::Node::embedded()).await })+
        }
        mod anvil {
            $(#[tokio::test] async fn $rule() {
                if let Some(node) = $crate::world::Node::anvil().await { super::$rule(node).await }
            })+
        }
    };
}

mod accounts;
mod browser_vectors;
mod curve;
mod deployment;
mod entry_point;
mod owners;
mod parity;
mod passkey;
mod refusals;
mod settlement;
mod trading;
mod transactions;
mod world;
