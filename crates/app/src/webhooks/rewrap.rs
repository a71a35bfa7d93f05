//! Encrypts all stored webhook secrets with the current key, so that an older key can be removed.
//!
//! The service may be running. A secret is only replaced if it has not changed since it was read,
//! so a concurrent rotation wins, and rotations already use the current key. A rotation also moves
//! the old text to the other column, which this pass may have finished. So passes are repeated
//! until one finds nothing to do. Idempotent.

use domain::ids::KeyId;
use serde_json::json;
use store::audit_log::Act;
use store::sealed::{Column, Sealed};

use super::secret::reseal;
use crate::audit_log::around;
use crate::{AppError, Ctx};

/// The number of secrets per transaction, so that no other write waits long.
pub const AT_ONCE: u32 = 100;
/// The number of passes after which another process must still be encrypting with an old key.
const MAX_WALKS: u32 = 10;

/// The result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rewrapped {
    /// The number of secrets that were encrypted again.
    pub rewrapped: u64,
    /// The API keys with a secret that no configured key decrypts, sorted.
    pub unreadable: Vec<KeyId>,
    /// Nothing is left under an old key, except unreadable secrets.
    pub complete: bool,
}

/// A secret under an old key, and the same encrypted with the current one.
#[derive(Debug, Clone)]
struct Replacement {
    sealed: Sealed,
    /// `None` if no key decrypts it.
    new: Option<String>,
}

/// Some of a column's secrets to replace.
#[derive(Debug, Clone)]
pub struct RewrapBatch {
    column: Column,
    replacements: Vec<Replacement>,
}

impl RewrapBatch {
    /// Returns the start of the column's next batch. `None` if this was the last one.
    fn next(&self) -> Option<KeyId> {
        let full = self.replacements.len() >= AT_ONCE as usize;
        self.replacements.last().filter(|_| full).map(|last| last.sealed.key_id)
    }

    fn unreadable(&self) -> impl Iterator<Item = KeyId> {
        self.replacements
            .iter()
            .filter(|replacement| replacement.new.is_none())
            .map(|replacement| replacement.sealed.key_id)
    }
}

/// Encrypts everything again that needs it.
pub async fn rewrap(ctx: &Ctx) -> Result<Rewrapped, AppError> {
    let after = |done: &Rewrapped| json!({ "rewrapped": done.rewrapped, "unreadable": done.unreadable.len(), "complete": done.complete });
    around(ctx, Act::new("secrets.rewrap", "secrets"), rewrap_all(ctx), after).await
}

async fn rewrap_all(ctx: &Ctx) -> Result<Rewrapped, AppError> {
    let mut done = Rewrapped::default();
    for _ in 0..MAX_WALKS {
        let found = walk(ctx, &mut done).await?;
        if found == 0 {
            done.complete = true;
            break;
        }
    }
    for key_id in &done.unreadable {
        tracing::error!(key.id = %key_id, "no configured sealing key can decrypt this key's webhook secret");
    }
    Ok(done)
}

/// Makes one pass over every column. Returns the number of secrets that needed replacement.
async fn walk(ctx: &Ctx, done: &mut Rewrapped) -> Result<usize, AppError> {
    let mut found = 0;
    done.unreadable.clear();
    for column in Column::ALL {
        let mut after = None;
        loop {
            let batch = read(ctx, column, after).await?;
            after = batch.next();
            done.unreadable.extend(batch.unreadable());
            found += batch.replacements.len() - batch.unreadable().count();
            done.rewrapped += write(ctx, batch).await?;
            if after.is_none() {
                break;
            }
        }
    }
    done.unreadable.sort_unstable();
    done.unreadable.dedup();
    Ok(found)
}

/// Returns the column's next secrets that are under an old key, after the key `after`.
pub async fn read(ctx: &Ctx, column: Column, after: Option<KeyId>) -> Result<RewrapBatch, AppError> {
    let prefix = ctx.config.sealing_keys.current_prefix();
    let found = ctx
        .store
        .read((column, prefix, after), |tx, (column, prefix, after)| {
            Box::pin(store::sealed::list_not_under(tx, *column, prefix, *after, AT_ONCE))
        })
        .await;
    let replacement = |sealed: Sealed| {
        let new = reseal(ctx, sealed.key_id, &sealed.text)?;
        Ok(Replacement { sealed, new })
    };
    let replacements = found?.into_iter().map(replacement).collect::<Result<_, AppError>>()?;
    Ok(RewrapBatch { column, replacements })
}

/// Writes a batch. Returns the number of secrets that were replaced, because they had not changed
/// since the read.
pub async fn write(ctx: &Ctx, batch: RewrapBatch) -> Result<u64, AppError> {
    Ok(ctx
        .store
        .write(batch, |tx, batch| {
            Box::pin(async move {
                let mut written = 0;
                for Replacement { sealed, new } in &batch.replacements {
                    let Some(new) = new else { continue };
                    written += u64::from(store::sealed::replace(tx, batch.column, sealed, new).await?);
                }
                Ok(written)
            })
        })
        .await?)
}
