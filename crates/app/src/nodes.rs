//! Keeps the nodes to the chain that the database knows: its id, its first block, and the last block that was settled.

use chain::{ChainIdentity, Nodes};
use domain::ErrorCode;
use store::{Store, StoreError, Tx};

use crate::worker::{Progress, Worker};
use crate::{AppError, Ctx};

const IDENTITY: &str = "chain.identity";

/// What the database knows of the chain.
struct Known {
    identity: Option<ChainIdentity>,
    /// The last settled block, by the newest note that is not above it.
    settled: Option<(u64, String)>,
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
    let text = store::sync::find_setting(tx, IDENTITY).await?;
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
}

/// The chain that this database belongs to, once a node has shown it.
pub async fn find_identity(store: &Store) -> Result<Option<ChainIdentity>, StoreError> {
    store.read((), |tx, ()| Box::pin(read_identity(tx))).await
}

/// Tells the nodes what the database knows, checks them, and stores what they have shown for the first time. Wakes the
/// workers that wait for a node if there is one again.
pub async fn refresh(ctx: &Ctx) -> Result<(), AppError> {
    let Some(nodes) = ctx.chain.nodes() else { return Ok(()) };
    let was_available = nodes.is_available();
    let known: Result<Known, StoreError> = ctx.store.read((), |tx, ()| Box::pin(Known::read(tx))).await;
    let Known { identity, settled } = known?;
    if let Some(identity) = identity {
        nodes.expect(identity);
    }
    nodes.expect_settled(match settled {
        Some((number, hash)) => Some((number, hash.parse().map_err(internal)?)),
        None => None,
    });
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

/// A refusal that may follow from what the chain says, or why it must not be believed: the node in use answers for another
/// chain, and no check has seen it yet.
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

/// Stores the chain, unless another process has stored one: then that one counts.
async fn keep(ctx: &Ctx, nodes: &Nodes, shown: ChainIdentity) -> Result<(), AppError> {
    let kept: Result<ChainIdentity, StoreError> = ctx
        .store
        .write(shown, |tx, shown| {
            Box::pin(async move {
                if let Some(kept) = read_identity(tx).await?.filter(|kept| kept.genesis_hash.is_some()) {
                    return Ok(kept);
                }
                let text = serde_json::to_string(shown).unwrap_or_default();
                store::sync::put_setting(tx, IDENTITY, &text).await?;
                Ok(*shown)
            })
        })
        .await;
    nodes.expect(kept?);
    Ok(())
}

fn internal(error: impl std::error::Error + Send + Sync + 'static) -> AppError {
    AppError::new(ErrorCode::InternalError).caused_by(error)
}

/// The worker that checks the nodes.
#[derive(Debug, Default)]
pub struct NodeWatcher;

impl Worker for NodeWatcher {
    fn name(&self) -> &'static str {
        "nodes"
    }

    async fn tick(&self, ctx: &Ctx) -> Result<Progress, AppError> {
        refresh(ctx).await.map(|()| Progress::Idle)
    }
}
