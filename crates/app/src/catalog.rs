//! The catalog of organizations, partners, threads and chapters, with validation on every write.
//!
//! A change is a function over the current row. It runs inside the transaction on the locked row,
//! and its result is validated like a new row.

pub(crate) mod check;
mod listing;
pub(crate) mod names;

pub use listing::change_market;
pub(crate) use listing::put_market;

use std::fmt::Display;

use domain::ErrorCode;
use domain::ids::{OrganizationId, PartnerId, ThreadId};
use domain::trade::FieldError;
use serde::Serialize;
use store::audit_log::{Act, note};
use store::catalog::{self, Chapter, Organization, Partner, Thread};
use store::{StoreError, Tx};

use crate::{AppError, Ctx};

pub async fn add_organization(ctx: &Ctx, organization: Organization) -> Result<Organization, AppError> {
    checked(check::organization(&organization))?;
    let now = ctx.now();
    ctx.store
        .try_write((organization, now), |tx, (organization, now)| {
            Box::pin(async move {
                catalog::insert_organization(tx, organization, *now).await.map_err(slug_taken)?;
                note(tx, created("organization.create", "organization", organization.id, organization));
                Ok(organization.clone())
            })
        })
        .await
}

/// Changes an organization.
pub async fn change_organization(
    ctx: &Ctx,
    id: OrganizationId,
    change: impl Fn(&mut Organization) + Send + Sync + 'static,
) -> Result<Organization, AppError> {
    let now = ctx.now();
    ctx.store
        .try_write((id, now, change), |tx, (id, now, change)| {
            Box::pin(async move {
                let found = catalog::lock_organization(tx, *id, *now).await?;
                let old = found.ok_or_else(|| missing("organization"))?;
                let mut organization = old.clone();
                change(&mut organization);
                checked(check::organization(&organization))?;
                catalog::put_organization(tx, &organization).await.map_err(slug_taken)?;
                note_change(tx, "organization.update", "organization", id, &old, &organization);
                Ok(organization)
            })
        })
        .await
}

pub async fn add_partner(ctx: &Ctx, partner: Partner) -> Result<Partner, AppError> {
    checked(check::partner(&partner))?;
    let now = ctx.now();
    ctx.store
        .try_write((partner, now), |tx, (partner, now)| {
            Box::pin(async move {
                let organization = catalog::find_organization(tx, partner.organization_id).await?;
                organization.ok_or_else(|| missing("organization"))?;
                catalog::insert_partner(tx, partner, *now).await.map_err(slug_taken)?;
                note(tx, created("partner.create", "partner", partner.id, partner));
                Ok(partner.clone())
            })
        })
        .await
}

/// Changes a partner. It cannot move to another organization.
pub async fn change_partner(
    ctx: &Ctx,
    id: PartnerId,
    change: impl Fn(&mut Partner) + Send + Sync + 'static,
) -> Result<Partner, AppError> {
    let now = ctx.now();
    ctx.store
        .try_write((id, now, change), |tx, (id, now, change)| {
            Box::pin(async move {
                let found = catalog::lock_partner(tx, *id, *now).await?;
                let old = found.ok_or_else(|| missing("partner"))?;
                let mut partner = old.clone();
                change(&mut partner);
                checked(check::partner(&partner))?;
                catalog::put_partner(tx, &partner).await.map_err(slug_taken)?;
                note_change(tx, "partner.update", "partner", id, &old, &partner);
                Ok(partner)
            })
        })
        .await
}

/// Adds a thread. A thread with only a partner belongs to that partner's organization.
///
/// # Errors
/// Also a field error of `/title` if people can take it for the title of another open thread.
pub async fn add_thread(ctx: &Ctx, thread: Thread) -> Result<Thread, AppError> {
    let now = ctx.now();
    ctx.store
        .try_write((thread, now), |tx, (thread, now)| {
            Box::pin(async move {
                // Lock, so that of two concurrent threads with one title the second sees the first.
                store::traders::lock(tx).await?;
                let mut thread = thread.clone();
                place_thread(tx, &mut thread).await?;
                checked(check::thread(&thread))?;
                catalog::insert_thread(tx, &thread, *now).await?;
                names::check_titles(tx, &[thread.id], *now).await?;
                note(tx, created("thread.create", "thread", thread.id, &thread));
                Ok(thread)
            })
        })
        .await
}

/// Changes a thread. Its markets move to its new organization and partner with it.
///
/// # Errors
/// Also a field error of `/title` if it is renamed or opened again, and people can take its title
/// for that of another open thread.
pub async fn change_thread(
    ctx: &Ctx,
    id: ThreadId,
    change: impl Fn(&mut Thread) + Send + Sync + 'static,
) -> Result<Thread, AppError> {
    let now = ctx.now();
    ctx.store
        .try_write((id, now, change), |tx, (id, now, change)| {
            Box::pin(async move {
                let found = catalog::lock_thread(tx, *id, *now).await?;
                let old = found.ok_or_else(|| missing("thread"))?;
                let mut thread = old.clone();
                change(&mut thread);
                place_thread(tx, &mut thread).await?;
                checked(check::thread(&thread))?;
                catalog::put_thread(tx, &thread).await?;
                if names::is_renamed(&old, &thread, *now) {
                    names::check_titles(tx, &[thread.id], *now).await?;
                }
                note_change(tx, "thread.update", "thread", id, &old, &thread);
                Ok(thread)
            })
        })
        .await
}

/// Adds a chapter at `position`, by default after the thread's last one.
pub async fn add_chapter(
    ctx: &Ctx,
    thread_id: ThreadId,
    title: &str,
    position: Option<u32>,
) -> Result<Chapter, AppError> {
    let chapter = Chapter {
        id: ctx.uuid().to_string(),
        thread_id,
        title: title.to_owned(),
        position: position.unwrap_or_default(),
    };
    let now = ctx.now();
    ctx.store
        .try_write((chapter, position, now), |tx, (chapter, position, now)| {
            Box::pin(async move {
                checked(check::chapter(chapter))?;
                // Lock the thread, so that two concurrent chapters get different positions.
                let thread = catalog::lock_thread(tx, chapter.thread_id, *now).await?;
                thread.ok_or_else(|| missing("thread"))?;
                let position = match position {
                    Some(position) => *position,
                    None => catalog::next_position(tx, chapter.thread_id).await?,
                };
                let chapter = Chapter { position, ..chapter.clone() };
                catalog::insert_chapter(tx, &chapter).await?;
                note(tx, created("chapter.create", "chapter", &chapter.id, &chapter));
                Ok(chapter)
            })
        })
        .await
}

/// Changes a chapter. It cannot move to another thread.
pub async fn change_chapter(
    ctx: &Ctx,
    id: &str,
    change: impl Fn(&mut Chapter) + Send + Sync + 'static,
) -> Result<Chapter, AppError> {
    ctx.store
        .try_write((id.to_owned(), change), |tx, (id, change)| {
            Box::pin(async move {
                let old = catalog::lock_chapter(tx, id).await?.ok_or_else(|| missing("chapter"))?;
                let mut chapter = old.clone();
                change(&mut chapter);
                checked(check::chapter(&chapter))?;
                catalog::put_chapter(tx, &chapter).await?;
                note_change(tx, "chapter.update", "chapter", id, &old, &chapter);
                Ok(chapter)
            })
        })
        .await
}

fn created(action: &'static str, kind: &str, id: impl Display, row: impl Serialize) -> Act {
    Act::new(action, format!("{kind}:{id}")).after(row)
}

/// Records a change in the audit log if the row has changed.
pub(super) fn note_change<T: PartialEq + Serialize>(
    tx: &mut Tx,
    action: &'static str,
    kind: &str,
    id: impl Display,
    old: &T,
    new: &T,
) {
    if old != new {
        note(tx, Act::new(action, format!("{kind}:{id}")).before(old).after(new));
    }
}

/// Returns the thread and chapter of a new market. A chapter implies its thread.
pub async fn place_of_market(
    ctx: &Ctx,
    thread_id: Option<ThreadId>,
    chapter_id: Option<String>,
) -> Result<(Option<Thread>, Option<Chapter>), AppError> {
    ctx.store
        .try_read((thread_id, chapter_id), |tx, (thread_id, chapter_id)| {
            Box::pin(async move {
                let chapter = match chapter_id {
                    Some(id) => Some(catalog::find_chapter(tx, id).await?.ok_or_else(|| missing("chapter"))?),
                    None => None,
                };
                let of_chapter = chapter.as_ref().map(|chapter| chapter.thread_id);
                let thread_id = match (*thread_id, of_chapter) {
                    (Some(named), Some(of_chapter)) if named != of_chapter => {
                        return Err(AppError::field("/chapterId", "must be a chapter of the same thread"));
                    }
                    (named, of_chapter) => named.or(of_chapter),
                };
                let thread = match thread_id {
                    Some(id) => Some(catalog::find_thread(tx, id).await?.ok_or_else(|| missing("thread"))?),
                    None => None,
                };
                Ok((thread, chapter))
            })
        })
        .await
}

/// Returns the organization and partner of a market's thread, which are also the market's.
///
/// Locks the thread until the transaction ends. Otherwise a concurrent change of the thread could
/// miss this market.
pub(crate) async fn owners_of(
    tx: &mut Tx,
    thread_id: Option<ThreadId>,
) -> Result<(Option<OrganizationId>, Option<PartnerId>), AppError> {
    let Some(id) = thread_id else { return Ok((None, None)) };
    let thread = catalog::hold_thread(tx, id).await?.ok_or_else(|| missing("thread"))?;
    Ok((thread.organization_id, thread.partner_id))
}

/// Checks that a thread's organization and partner exist and belong together. Fills in the
/// partner's organization.
async fn place_thread(tx: &mut Tx, thread: &mut Thread) -> Result<(), AppError> {
    if let Some(id) = thread.partner_id {
        let partner = catalog::find_partner(tx, id).await?.ok_or_else(|| missing("partner"))?;
        let organization = *thread.organization_id.get_or_insert(partner.organization_id);
        if organization != partner.organization_id {
            return Err(AppError::field("/partnerId", "must be a partner of the same organization"));
        }
    }
    if let Some(id) = thread.organization_id {
        catalog::find_organization(tx, id).await?.ok_or_else(|| missing("organization"))?;
    }
    Ok(())
}

/// Returns an error with all field errors, if there are any.
pub(crate) fn checked(errors: Vec<FieldError>) -> Result<(), AppError> {
    if errors.is_empty() { Ok(()) } else { Err(AppError::validation(&errors)) }
}

pub(crate) fn slug_taken(error: StoreError) -> AppError {
    let taken = error.is_conflict_on("organizations_slug") || error.is_conflict_on("partners_slug");
    if taken { AppError::field("/slug", "is already taken") } else { error.into() }
}

fn missing(what: &str) -> AppError {
    AppError::new(ErrorCode::ResourceNotFound).detail(format!("There is no {what} with this id."))
}
