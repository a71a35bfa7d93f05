//! What markets are arranged under, as the operator writes it: checked here, so that every row that is read is whole.
//!
//! A change is a function over the row: it is run on what the row holds at that moment, and its outcome is checked like a
//! new row.

use domain::ErrorCode;
use domain::ids::{OrganizationId, PartnerId, ThreadId};
use store::catalog::{self, Chapter, Organization, Partner, Thread};
use store::{StoreError, Tx};

use crate::{AppError, Ctx};

/// The most characters of a description.
const MAX_DESCRIPTION: usize = 20_000;

/// Adds an organization.
pub async fn add_organization(ctx: &Ctx, organization: Organization) -> Result<Organization, AppError> {
    check_organization(&organization)?;
    let now = ctx.now();
    ctx.store
        .write((organization, now), |tx, (organization, now)| {
            Box::pin(async move {
                catalog::insert_organization(tx, organization, *now).await.map_err(slug_taken)?;
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
        .write((id, now, change), |tx, (id, now, change)| {
            Box::pin(async move {
                let found = catalog::lock_organization(tx, *id, *now).await?;
                let mut organization = found.ok_or_else(|| missing("organization"))?;
                change(&mut organization);
                check_organization(&organization)?;
                catalog::put_organization(tx, &organization).await.map_err(slug_taken)?;
                Ok(organization)
            })
        })
        .await
}

/// Adds a partner to its organization.
pub async fn add_partner(ctx: &Ctx, partner: Partner) -> Result<Partner, AppError> {
    check_partner(&partner)?;
    let now = ctx.now();
    ctx.store
        .write((partner, now), |tx, (partner, now)| {
            Box::pin(async move {
                let organization = catalog::find_organization(tx, partner.organization_id).await?;
                organization.ok_or_else(|| missing("organization"))?;
                catalog::insert_partner(tx, partner, *now).await.map_err(slug_taken)?;
                Ok(partner.clone())
            })
        })
        .await
}

/// Changes a partner; it stays with its organization.
pub async fn change_partner(
    ctx: &Ctx,
    id: PartnerId,
    change: impl Fn(&mut Partner) + Send + Sync + 'static,
) -> Result<Partner, AppError> {
    let now = ctx.now();
    ctx.store
        .write((id, now, change), |tx, (id, now, change)| {
            Box::pin(async move {
                let found = catalog::lock_partner(tx, *id, *now).await?;
                let mut partner = found.ok_or_else(|| missing("partner"))?;
                change(&mut partner);
                check_partner(&partner)?;
                catalog::put_partner(tx, &partner).await.map_err(slug_taken)?;
                Ok(partner)
            })
        })
        .await
}

/// Adds a thread. One that names a partner alone belongs to that partner's organization.
pub async fn add_thread(ctx: &Ctx, thread: Thread) -> Result<Thread, AppError> {
    let now = ctx.now();
    ctx.store
        .write((thread, now), |tx, (thread, now)| {
            Box::pin(async move {
                let mut thread = thread.clone();
                place_thread(tx, &mut thread).await?;
                check_thread(&thread)?;
                catalog::insert_thread(tx, &thread, *now).await?;
                Ok(thread)
            })
        })
        .await
}

/// Changes a thread. Its markets follow it to another organization or partner.
pub async fn change_thread(
    ctx: &Ctx,
    id: ThreadId,
    change: impl Fn(&mut Thread) + Send + Sync + 'static,
) -> Result<Thread, AppError> {
    let now = ctx.now();
    ctx.store
        .write((id, now, change), |tx, (id, now, change)| {
            Box::pin(async move {
                let found = catalog::lock_thread(tx, *id, *now).await?;
                let mut thread = found.ok_or_else(|| missing("thread"))?;
                change(&mut thread);
                place_thread(tx, &mut thread).await?;
                check_thread(&thread)?;
                catalog::put_thread(tx, &thread).await?;
                Ok(thread)
            })
        })
        .await
}

/// Adds a chapter at `position`, or behind the thread's last one.
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
        .write((chapter, position, now), |tx, (chapter, position, now)| {
            Box::pin(async move {
                check_text("/title", &chapter.title, 200)?;
                // The thread's row is taken, so that two chapters made at once get two places.
                let thread = catalog::lock_thread(tx, chapter.thread_id, *now).await?;
                thread.ok_or_else(|| missing("thread"))?;
                let position = match position {
                    Some(position) => *position,
                    None => catalog::next_position(tx, chapter.thread_id).await?,
                };
                let chapter = Chapter { position, ..chapter.clone() };
                catalog::insert_chapter(tx, &chapter).await?;
                Ok(chapter)
            })
        })
        .await
}

/// Changes a chapter; it stays with its thread.
pub async fn change_chapter(
    ctx: &Ctx,
    id: &str,
    change: impl Fn(&mut Chapter) + Send + Sync + 'static,
) -> Result<Chapter, AppError> {
    ctx.store
        .write((id.to_owned(), change), |tx, (id, change)| {
            Box::pin(async move {
                let mut chapter = catalog::lock_chapter(tx, id).await?.ok_or_else(|| missing("chapter"))?;
                change(&mut chapter);
                check_text("/title", &chapter.title, 200)?;
                catalog::put_chapter(tx, &chapter).await?;
                Ok(chapter)
            })
        })
        .await
}

/// The thread and the chapter that a new market is put under. A chapter alone names its thread.
pub async fn place_of_market(
    ctx: &Ctx,
    thread_id: Option<ThreadId>,
    chapter_id: Option<String>,
) -> Result<(Option<Thread>, Option<Chapter>), AppError> {
    ctx.store
        .read((thread_id, chapter_id), |tx, (thread_id, chapter_id)| {
            Box::pin(async move {
                let chapter = match chapter_id {
                    Some(id) => Some(catalog::find_chapter(tx, id).await?.ok_or_else(|| missing("chapter"))?),
                    None => None,
                };
                let of_chapter = chapter.as_ref().map(|chapter| chapter.thread_id);
                let thread_id = match (*thread_id, of_chapter) {
                    (Some(named), Some(of_chapter)) if named != of_chapter => {
                        return Err(AppError::field("/chapterId", "is a chapter of another thread"));
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

/// Sees to it that a thread's organization and partner exist and belong together.
async fn place_thread(tx: &mut Tx, thread: &mut Thread) -> Result<(), AppError> {
    if let Some(id) = thread.partner_id {
        let partner = catalog::find_partner(tx, id).await?.ok_or_else(|| missing("partner"))?;
        let organization = *thread.organization_id.get_or_insert(partner.organization_id);
        if organization != partner.organization_id {
            return Err(AppError::field("/partnerId", "is a partner of another organization"));
        }
    }
    if let Some(id) = thread.organization_id {
        catalog::find_organization(tx, id).await?.ok_or_else(|| missing("organization"))?;
    }
    Ok(())
}

fn check_organization(organization: &Organization) -> Result<(), AppError> {
    let Organization { name, slug, description, logo, website, .. } = organization;
    check_text("/name", name, 200)?;
    check_slug(slug)?;
    check_optional("/description", description.as_deref(), MAX_DESCRIPTION)?;
    check_url("/logo", logo.as_deref())?;
    check_url("/website", website.as_deref())
}

fn check_partner(partner: &Partner) -> Result<(), AppError> {
    let Partner { name, slug, description, logo, website, .. } = partner;
    check_text("/name", name, 200)?;
    check_slug(slug)?;
    check_optional("/description", description.as_deref(), MAX_DESCRIPTION)?;
    check_url("/logo", logo.as_deref())?;
    check_url("/website", website.as_deref())
}

fn check_thread(thread: &Thread) -> Result<(), AppError> {
    check_text("/title", &thread.title, 200)?;
    check_optional("/description", thread.description.as_deref(), MAX_DESCRIPTION)?;
    check_url("/image", thread.image.as_deref())?;
    check_url("/backgroundImage", thread.background_image.as_deref())?;
    check_optional("/category", thread.category.as_deref(), 100)?;
    if thread.tags.len() > 50 {
        return Err(AppError::field("/tags", "are at most 50"));
    }
    thread.tags.iter().try_for_each(|tag| check_text("/tags", tag, 100))?;
    match (thread.start_time, thread.end_time) {
        (Some(start), Some(end)) if start >= end => Err(AppError::field("/endTime", "is after the start")),
        _ => Ok(()),
    }
}

fn check_text(pointer: &str, text: &str, most: usize) -> Result<(), AppError> {
    if text.trim().is_empty() || text.chars().count() > most || text.contains('\0') {
        return Err(AppError::field(pointer, &format!("is 1 to {most} characters")));
    }
    Ok(())
}

fn check_optional(pointer: &str, text: Option<&str>, most: usize) -> Result<(), AppError> {
    text.map_or(Ok(()), |text| check_text(pointer, text, most))
}

fn check_url(pointer: &str, url: Option<&str>) -> Result<(), AppError> {
    let Some(url) = url else { return Ok(()) };
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let well_formed = rest.is_some_and(|rest| !rest.is_empty())
        && url.len() <= 2_000
        && !url.chars().any(|c| c.is_whitespace() || c.is_control());
    if well_formed { Ok(()) } else { Err(AppError::field(pointer, "is an http or https address")) }
}

fn check_slug(slug: &str) -> Result<(), AppError> {
    let word =
        |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    if slug.len() <= 100 && slug.split('-').all(word) {
        return Ok(());
    }
    Err(AppError::field(
        "/slug",
        "is lower-case words of a-z and 0-9 joined by hyphens, at most 100 characters",
    ))
}

fn slug_taken(error: StoreError) -> AppError {
    let taken = error.is_conflict_on("organizations_slug") || error.is_conflict_on("partners_slug");
    if taken { AppError::field("/slug", "is taken") } else { error.into() }
}

fn missing(what: &str) -> AppError {
    AppError::new(ErrorCode::ResourceNotFound).detail(format!("There is no {what} with this id."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slug_is_lower_case_words_joined_by_hyphens() {
        for slug in ["a", "northlight-media", "2026"] {
            assert!(check_slug(slug).is_ok(), "{slug}");
        }
        for slug in ["", "-a", "a-", "a--b", "A", "a b", "é", &"a".repeat(101)] {
            assert!(check_slug(slug).is_err(), "{slug}");
        }
    }

    #[test]
    fn an_address_is_http_or_https() {
        for url in ["https://example.org/logo.png", "http://localhost:3000"] {
            assert!(check_url("/logo", Some(url)).is_ok(), "{url}");
        }
        for url in ["", "https://", "javascript:alert(1)", "https://a b", "example.org"] {
            assert!(check_url("/logo", Some(url)).is_err(), "{url}");
        }
    }
}
