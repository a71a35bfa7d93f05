//! Indexes that are built while others write, as steps of migrations.
//!
//! PostgreSQL builds them outside of any transaction. A killed or failed build leaves an invalid index,
//! which the next attempt removes. The row of the migration is locked during the build by a
//! transaction of a second connection, which ends with this process.

use super::connection::{PooledConnection, Uncommitted};
use super::options::Statements;
use super::pools::{PoolAccess, Sessions};
use super::{Postgres, Workload};
use crate::{StoreError, params};

/// A step of a migration that builds an index.
pub(crate) struct IndexStep<'a> {
    pub(crate) migration: &'static str,
    /// The number of steps before this one.
    pub(crate) number: i64,
    /// The state of the migration after this step.
    pub(crate) state: &'static str,
    /// The index's name.
    pub(crate) name: &'a str,
    /// The statement that builds it.
    pub(crate) sql: &'a str,
    /// The statement that locks the migration's row if this step is the next one.
    pub(crate) claim: &'static str,
    /// The statement that records the step.
    pub(crate) record: &'static str,
}

/// Whether an index with this name is usable.
const IS_VALID: &str = "SELECT found.indisvalid FROM pg_class class
    JOIN pg_index found ON found.indexrelid = class.oid
    JOIN pg_namespace space ON space.oid = class.relnamespace
    WHERE class.relname = $1 AND space.nspname = current_schema()";

impl Postgres {
    /// See [`crate::engine::Database::build_index`].
    pub(crate) async fn build_index(
        &self,
        index: &IndexStep<'_>,
        attempts: usize,
    ) -> Result<bool, StoreError> {
        let sessions = self.pools.of(Workload::Maintenance, PoolAccess::Write);
        let mut lock = PooledConnection::begun(sessions).await?;
        if !claim(&mut lock, index).await.map_err(|fault| fault.error)? {
            lock.rollback().await;
            return Ok(false);
        }
        let mut attempt = 1;
        loop {
            match build(sessions, index).await {
                Ok(()) => break,
                // The table is in use, or the build lost a deadlock. Both leave an invalid index.
                Err(StoreError::Locked(_) | StoreError::Unavailable(_)) if attempt < attempts => attempt += 1,
                Err(error) => return Err(error),
            }
        }
        let record = params![index.state, index.migration, index.number];
        lock.exec(index.record, &record).await.map_err(|fault| fault.error)?;
        lock.commit().await.map_err(Uncommitted::into_error)?;
        Ok(true)
    }
}

/// Waits for the migration's row and locks it. Returns false if the step was already done.
async fn claim(
    lock: &mut PooledConnection,
    index: &IndexStep<'_>,
) -> Result<bool, super::super::fault::EngineFault> {
    let is_mine = !lock.rows(index.claim, &params![index.migration, index.number]).await?.is_empty();
    // The transaction is idle during the build. A simple statement after the query also closes its
    // portal, whose snapshot would make the build wait for this transaction.
    lock.batch("SET LOCAL idle_in_transaction_session_timeout = 0").await?;
    Ok(is_mine)
}

async fn build(sessions: &Sessions, index: &IndexStep<'_>) -> Result<(), StoreError> {
    let mut conn = PooledConnection::get(sessions).await?;
    let built = build_on(&mut conn, sessions, index).await;
    // Its lock timeout is not that of the pool.
    conn.discard();
    built.map_err(|fault| fault.error)
}

async fn build_on(
    conn: &mut PooledConnection,
    sessions: &Sessions,
    index: &IndexStep<'_>,
) -> Result<(), super::super::fault::EngineFault> {
    // Behind a pooler, the setting would apply to a session of others.
    if sessions.statements == Statements::Named {
        conn.batch("SET lock_timeout = 2000").await?;
    }
    let found = conn.rows(IS_VALID, &params![index.name]).await?;
    match found.first().map(|row| row.get::<_, bool>(0)) {
        Some(true) => return Ok(()),
        Some(false) => conn.batch(&format!("DROP INDEX CONCURRENTLY IF EXISTS {}", index.name)).await?,
        None => {}
    }
    conn.batch(index.sql).await
}
