//! The contracts through their client, once on the embedded chain and once on anvil.
//!
//! `FORETELL_ANVIL` names anvil's binary; without it the half on anvil says so and passes.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "what a test cannot do without fails it")]

/// Makes two tests of each function `async fn(Node)`: one a node.
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
mod curve;
mod deployment;
mod endings;
mod parity;
mod passkey;
mod refusals;
mod trading;
mod transactions;
mod world;
