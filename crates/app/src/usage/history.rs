//! Usage over time.

use domain::ids::UserId;
use domain::key::KeyKind;
use domain::usage::{GraphRange, UsagePoint};

use crate::{AppError, Ctx};

/// Returns the usage of all API keys of a user, also of revoked ones, in the steps of a graph.
///
/// It includes all requests that this process counted. Those of other processes are included once
/// they are flushed.
pub async fn history(ctx: &Ctx, user_id: UserId, range: GraphRange) -> Result<Vec<UsagePoint>, AppError> {
    let now = ctx.now();
    // Block flushes during the read. Otherwise a count could move between memory and database and
    // be missed or counted twice.
    let _still = ctx.process.usage.hold_still().await;
    let read = ctx.store.read((user_id, range.start(now)), |tx, (user_id, since)| {
        Box::pin(async move {
            let keys = store::keys::list(tx, *user_id).await?;
            Ok::<_, store::StoreError>((keys, store::usage::list_hours(tx, *user_id, *since).await?))
        })
    });
    let (keys, mut hours) = read.await?;
    for key in keys.iter().filter(|key| key.kind == KeyKind::Api) {
        hours.extend(ctx.process.usage.of_key(key.id).iter().map(|counted| UsagePoint {
            requests: counted.counts.latency.count(),
            rejected: counted.counts.refusals().map(|(_, count)| count).sum(),
            ..UsagePoint::at(counted.hour)
        }));
    }
    Ok(range.sum(now, hours))
}
