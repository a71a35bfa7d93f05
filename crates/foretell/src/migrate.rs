//! Applies database migrations and records them in the audit log.

use std::path::Path;
use std::sync::Arc;

use domain::Clock;
use serde_json::{Value, json};
use store::Store;
use store::audit_log::{Act, Actor, Filter, note};

use crate::deployment;
use crate::start_error::StartError;

/// Applies the pending migrations and returns their names. Also logs a contract deployment that was
/// made before the database existed.
pub async fn apply(
    store: &Store,
    clock: &Arc<dyn Clock>,
    actor: Actor,
    deployment: &Path,
) -> Result<Vec<String>, StartError> {
    let applied = store.migrate(clock.now()).await?;
    if !applied.is_empty() {
        let acting = store.acting_as(actor, Arc::clone(clock));
        record(&acting, Act::new("migrate", "database").after(json!({ "applied": applied }))).await?;
    }
    // On every start, not only after a migration: the deployment may be newer than the schema.
    log_deployment(store, clock, deployment).await?;
    Ok(applied)
}

/// Logs the recorded deployment, unless it was logged before.
pub async fn log_deployment(
    store: &Store,
    clock: &Arc<dyn Clock>,
    deployment: &Path,
) -> Result<(), StartError> {
    let Some(record_of) = deployment::read(deployment)? else { return Ok(()) };
    let subject = format!("gate:{}", record_of.gate());
    let filter =
        Filter { action: Some("deploy".to_owned()), subject: Some(subject.clone()), ..Filter::default() };
    let logged =
        store.read(filter, |tx, filter| Box::pin(store::audit_log::list_after(tx, filter, 0, 1))).await;
    if !logged?.is_empty() {
        return Ok(());
    }
    let acting = store.acting_as(record_of.actor(), Arc::clone(clock));
    let after: Value = serde_json::to_value(&record_of).unwrap_or_default();
    record(&acting, Act::new("deploy", subject).after(after)).await
}

async fn record(store: &Store, act: Act) -> Result<(), StartError> {
    let written = store
        .write(act, |tx, act| {
            Box::pin(async move {
                note(tx, act.clone());
                Ok(())
            })
        })
        .await;
    Ok(written?)
}
