//! Binds the nodes to the chain that the database belongs to: by chain id, first block and last
//! settled block.

use alloy_primitives::B256;
use async_trait::async_trait;
use chain::{ChainIdentity, Nodes};
use domain::ErrorCode;
use store::sync::CHAIN_IDENTITY;
use store::{Store, StoreError, Tx};

use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx};

/// The chain's identity according to the database.
struct Known {
    identity: Option<ChainIdentity>,
    /// The newest recorded block up to the last settled one.
    settled: Option<(u64, B256)>,
}

impl Known {
    async fn read(tx: &mut Tx) -> Result<Self, StoreError> {
        let settled = match store::sync::find_settled(tx).await? {
            Some(number) => store::sync::find_last(tx, Some(number)).await?,
            None => None,
        };
        let settled = settled.map(|block| (block.number, block.hash));
        Ok(Self { identity: read_identity(tx).await?, settled })
    }
}

async fn read_identity(tx: &mut Tx) -> Result<Option<ChainIdentity>, StoreError> {
    let text = store::sync::find_setting(tx, CHAIN_IDENTITY).await?;
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
}

/// Returns the identity of the database's chain, once a node has reported it.
pub async fn find_identity(store: &Store) -> Result<Option<ChainIdentity>, StoreError> {
    store.read((), |tx, ()| Box::pin(read_identity(tx))).await
}

/// Checks the nodes against the database, and stores an identity that was reported for the first
/// time. Wakes the waiting workers when a node becomes available.
pub async fn refresh(ctx: &Ctx) -> Result<(), AppError> {
    let Some(nodes) = ctx.chain.nodes() else { return Ok(()) };
    let was_available = nodes.is_available();
    let known = ctx.store.read((), |tx, ()| Box::pin(Known::read(tx))).await;
    let Known { identity, settled } = known?;
    if let Some(identity) = identity {
        nodes.expect(identity);
    }
    nodes.expect_settled(settled);
    // After the expectations are set, so that a node of another chain fails its check.
    nodes.check_all().await;
    if let Some(shown) = nodes.identity().filter(|shown| identity != Some(*shown) && nodes.is_available()) {
        keep(ctx, nodes, shown).await?;
    }
    if !was_available && nodes.is_available() {
        ctx.wake.executor.notify_waiters();
        ctx.wake.sync.notify_waiters();
    }
    Ok(())
}

/// Returns the rejection, or an error if it may come from a node of another chain.
///
/// The node in use may have switched chains since its last check. So a rejection that depends on
/// chain state is confirmed first.
pub async fn of_right_chain(ctx: &Ctx, refusal: AppError) -> AppError {
    let is_of_chain = matches!(
        refusal.code,
        ErrorCode::SmartAccountNotProvisioned
            | ErrorCode::WalletDelegationNotEnabled
            | ErrorCode::InsufficientBalance
            | ErrorCode::LiquidityInsufficient
            | ErrorCode::SlippageExceeded
            | ErrorCode::PositionNotClaimable
    );
    if !is_of_chain {
        return refusal;
    }
    match ctx.chain.confirm().await {
        Ok(()) => refusal,
        Err(error) => error.into(),
    }
}

/// Stores the identity, unless another process has stored one first. Then that one is used.
async fn keep(ctx: &Ctx, nodes: &Nodes, shown: ChainIdentity) -> Result<(), AppError> {
    let kept = ctx
        .store
        .write(shown, |tx, shown| {
            Box::pin(async move {
                if let Some(kept) = read_identity(tx).await?.filter(|kept| kept.genesis_hash.is_some()) {
                    return Ok(kept);
                }
                let text = serde_json::to_string(shown).unwrap_or_default();
                store::sync::put_setting(tx, CHAIN_IDENTITY, &text).await?;
                Ok(*shown)
            })
        })
        .await?;
    nodes.expect(kept);
    Ok(())
}

#[derive(Debug, Default)]
pub struct NodeWatcher;

#[async_trait]
impl Worker for NodeWatcher {
    fn name(&self) -> &'static str {
        "nodes"
    }

    async fn tick(&self, ctx: &Ctx) -> Result<Progress, AppError> {
        refresh(ctx).await.map(|()| Progress::Idle)
    }
}
