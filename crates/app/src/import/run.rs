//! Executes an import plan.

use chain::Signer;
use domain::ids::ThreadId;
use domain::{ErrorCode, Timestamp};
use serde_json::json;
use store::audit_log::{Act, note};
use store::imports::{self, Import};
use store::{StoreError, Tx, catalog as rows};

use super::plan::{ImportAction, ImportPlan, ImportRow, Step};
use super::{ImportError, ImportProblem};
use crate::catalog::names;
use crate::markets;
use crate::{AppError, Ctx};

/// The number of items per transaction.
const CHUNK: usize = 100;

/// Checks that the resolver can pay for the plan's markets. Always true if there is a `minter` of
/// test USDC.
pub async fn check_funding(
    ctx: &Ctx,
    plan: &ImportPlan,
    resolver: &Signer,
    minter: Option<&Signer>,
) -> Result<(), ImportError> {
    let needed = plan.funding.atomic();
    if needed == 0 || minter.is_some() {
        return Ok(());
    }
    let balance = ctx.chain.usdc_balance(resolver.address()).await.map_err(AppError::from)?;
    if balance >= alloy_primitives::U256::from(needed) {
        return Ok(());
    }
    Err(unfunded(plan, resolver, &balance.to_string()))
}

fn unfunded(plan: &ImportPlan, resolver: &Signer, balance_atomic: &str) -> ImportError {
    let count = plan.steps.iter().filter(|step| step.is_for_the_chain()).count();
    let detail = format!(
        "must be funded by the resolver {1}: the {count} new markets need up to {0} millionths of a USDC, and it has {balance_atomic}",
        plan.funding.atomic(),
        resolver.address()
    );
    ImportError::Refused(vec![ImportProblem::new("/markets", detail)])
}

/// Executes a plan, and calls `done` for each finished item. Items other than markets come first,
/// then one market at a time. If it is interrupted, another run with the same catalog continues it.
pub async fn run(
    ctx: &Ctx,
    plan: &ImportPlan,
    resolver: &Signer,
    minter: Option<&Signer>,
    done: &mut (dyn FnMut(&Step) + Send),
) -> Result<(), ImportError> {
    check_funding(ctx, plan, resolver, minter).await?;
    if plan.funding.atomic() > 0 {
        let funded = markets::fund(ctx, resolver, minter, plan.funding).await?;
        if funded.balance < funded.needed {
            return Err(unfunded(plan, resolver, &funded.balance.atomic().to_string()));
        }
    }
    let (on_chain, arranged): (Vec<_>, Vec<_>) = plan.steps.iter().partition(|step| step.is_for_the_chain());
    for chunk in arranged.chunks(CHUNK) {
        write(ctx, chunk.iter().map(|step| (*step).clone()).collect()).await?;
        chunk.iter().for_each(|step| done(step));
    }
    for step in on_chain {
        let ImportRow::Market(new) = &step.row else { continue };
        // The row and its key are committed before the market is created on chain. After a crash in
        // between, the next run finds the row and finishes the market under the same id.
        write(ctx, vec![step.clone()]).await?;
        markets::create(ctx, resolver, new.as_ref().clone()).await?;
        done(step);
    }
    Ok(())
}

async fn write(ctx: &Ctx, steps: Vec<Step>) -> Result<(), AppError> {
    let now = ctx.now();
    let markets = steps.iter().map(|step| match &step.row {
        ImportRow::Market(new) => new.id.map(|id| markets::row(ctx, id, new)),
        _ => None,
    });
    let steps: Vec<_> = markets.collect::<Vec<_>>().into_iter().zip(steps).collect();
    ctx.store
        .try_write((steps, now), |tx, (steps, now)| {
            Box::pin(async move {
                // Locked before the rows of organizations, in the same order as in changes of
                // threads. Another order could deadlock.
                store::traders::lock(tx).await?;
                let mut titled = Vec::new();
                for (market, step) in steps {
                    titled.extend(apply(tx, step, market.as_ref(), *now).await?);
                }
                names::check_titles(tx, &titled, *now).await
            })
        })
        .await
}

/// Writes an item. Returns its thread if that has a new title, or one that is open again.
async fn apply(
    tx: &mut Tx,
    step: &Step,
    market: Option<&store::markets::Market>,
    now: Timestamp,
) -> Result<Option<ThreadId>, AppError> {
    let mut titled = None;
    match step.action {
        ImportAction::Skip => return Ok(None),
        ImportAction::Create => {
            imports::insert(tx, &step.import, now).await.map_err(|e| made_meanwhile(&step.import, e))?
        }
        ImportAction::Update | ImportAction::Finish => imports::put_content(tx, &step.import, now).await?,
    }
    let is_new = step.action == ImportAction::Create;
    let action = if is_new { "import.create" } else { "import.update" };
    let act = Act::new(action, format!("{}:{}", step.kind.as_str(), step.id()));
    note(tx, act.after(json!({ "importKey": step.key() })));
    match &step.row {
        ImportRow::Organization(row) if is_new => rows::insert_organization(tx, row, now).await,
        ImportRow::Organization(row) => {
            rows::lock_organization(tx, row.id, now).await?;
            rows::put_organization(tx, row).await
        }
        ImportRow::Partner(row) if is_new => rows::insert_partner(tx, row, now).await,
        ImportRow::Partner(row) => {
            rows::lock_partner(tx, row.id, now).await?;
            rows::put_partner(tx, row).await
        }
        ImportRow::Thread(row) if is_new => {
            titled = Some(row.id);
            rows::insert_thread(tx, row, now).await
        }
        ImportRow::Thread(row) => {
            let old = rows::lock_thread(tx, row.id, now).await?;
            titled = old.filter(|old| names::is_renamed(old, row, now)).map(|old| old.id);
            rows::put_thread(tx, row).await
        }
        ImportRow::Chapter(row) if is_new => rows::insert_chapter(tx, row).await,
        ImportRow::Chapter(row) => rows::put_chapter(tx, row).await,
        ImportRow::Market(new) => {
            match market {
                Some(row) if is_new => markets::insert(tx, row, &new.outcomes).await?,
                Some(row) => crate::catalog::put_market(tx, new.listing(row.id)).await?,
                None => {}
            }
            return Ok(None);
        }
    }
    .map_err(crate::catalog::slug_taken)?;
    Ok(titled)
}

fn made_meanwhile(import: &Import, error: StoreError) -> AppError {
    if !error.is_conflict_on("imports_key") {
        return error.into();
    }
    let Import { kind, key, .. } = import;
    let detail = format!("A concurrent import created the {kind} {key:?}. Run the import again.");
    AppError::new(ErrorCode::ValidationFailed).detail(detail)
}
