//! Seals every stored webhook secret again that was sealed under another than the current key, so that the old key can go.
//!
//! It runs beside the service. Each secret is replaced only where it is still the text that was read, so a rotation that comes
//! in between wins; and the service seals what is new under the current key already. A rotation also moves the text that it
//! replaces into the next column, where the same walk meets it or the one behind it: walks follow each other until one finds
//! nothing to do. Run again, it does nothing.

use domain::ids::KeyId;
use serde_json::json;
use store::StoreError;
use store::audit_log::Act;
use store::sealed::{Column, Sealed};

use super::webhook_secret::reseal;
use crate::audit_log::around;
use crate::{AppError, Ctx};

/// How many secrets are read and written at once, so that nobody waits for long.
pub const AT_ONCE: u32 = 100;
/// Walks after which it is clear that some process still seals under an old key.
const MAX_WALKS: u32 = 10;

/// What was done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rewrapped {
    /// How many secrets were sealed again.
    pub rewrapped: u64,
    /// The keys with a secret that no configured key opens, in their order.
    pub unreadable: Vec<KeyId>,
    /// Whether nothing but what is unreadable is left under another key.
    pub complete: bool,
}

/// A secret under another than the current key, and its text under the current one.
#[derive(Debug, Clone)]
struct Replacement {
    sealed: Sealed,
    /// None where no key opens it.
    new: Option<String>,
}

/// Some of a column's secrets on their way to the current key.
#[derive(Debug, Clone)]
pub struct Batch {
    column: Column,
    replacements: Vec<Replacement>,
}

impl Batch {
    /// Where the column's next batch begins; none where this was the last.
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

/// Seals everything again that needs it.
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
        tracing::error!(key.id = %key_id, "no configured key opens this key's webhook secret");
    }
    Ok(done)
}

/// Goes through every column once; how many secrets could be sealed again, whether or not another was faster.
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

/// The column's next secrets under another than the current key, behind the key `after`.
pub async fn read(ctx: &Ctx, column: Column, after: Option<KeyId>) -> Result<Batch, AppError> {
    let prefix = ctx.config.sealing_keys.current_prefix();
    let found: Result<Vec<Sealed>, StoreError> = ctx
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
    Ok(Batch { column, replacements })
}

/// Writes a batch; how many secrets were still as they had been read.
pub async fn write(ctx: &Ctx, batch: Batch) -> Result<u64, AppError> {
    let written: Result<u64, StoreError> = ctx
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
        .await;
    Ok(written?)
}
