//! The database's state of a catalog's items before an import.

use std::collections::{HashMap, HashSet};

use domain::ids::{MarketId, ThreadId};
use store::catalog::{self, Chapter, Organization, Partner, Thread};
use store::imports::{self, Import};
use store::markets::Market;
use store::{StoreError, Tx};

use super::document::Catalog;
use super::{ImportKind, ImportProblem};
use crate::Ctx;

/// The earlier imports of all items that the catalog contains or refers to, and the owners of its
/// slugs.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub organizations: HashMap<String, Organization>,
    pub imports: HashMap<(ImportKind, String), Import>,
    pub partners: HashMap<String, Partner>,
    pub threads: HashMap<String, Thread>,
    /// Threads of chapters that are referred to without their thread.
    pub threads_of_chapters: HashMap<ThreadId, Thread>,
    pub chapters: HashMap<String, Chapter>,
    pub markets: HashMap<String, (Market, Vec<String>)>,
    pub slugs: HashMap<(ImportKind, String), String>,
    /// The titles of all open threads, if the catalog has threads.
    pub titles: Vec<(ThreadId, String)>,
    /// The questions of the threads above, if the catalog has markets.
    pub questions: HashMap<ThreadId, Vec<(MarketId, String)>>,
}

pub(super) async fn read(ctx: &Ctx, catalog: &Catalog) -> Result<Known, StoreError> {
    let asked = (keys(catalog), slugs(catalog), ctx.now());
    ctx.store
        .read(asked, |tx, (keys, slugs, now)| {
            Box::pin(async move {
                let mut known = Known::default();
                for (kind, key) in keys {
                    known.find(tx, *kind, key).await?;
                }
                for (kind, slug) in slugs {
                    let owner = match kind {
                        ImportKind::Organization => {
                            catalog::organization_with_slug(tx, slug).await?.map(|id| id.to_string())
                        }
                        _ => catalog::partner_with_slug(tx, slug).await?.map(|id| id.to_string()),
                    };
                    known.slugs.extend(owner.map(|owner| ((*kind, slug.clone()), owner)));
                }
                if keys.iter().any(|(kind, _)| *kind == ImportKind::Thread) {
                    known.titles = catalog::open_titles(tx, *now).await?;
                }
                if keys.iter().any(|(kind, _)| *kind == ImportKind::Market) {
                    known.find_questions(tx).await?;
                }
                Ok(known)
            })
        })
        .await
}

impl Known {
    async fn find(&mut self, tx: &mut Tx, kind: ImportKind, key: &str) -> Result<(), StoreError> {
        let Some(import) = imports::find(tx, kind.as_str(), key).await? else { return Ok(()) };
        let owned = key.to_owned();
        // An invalid id leaves the item without a row, and references to it are rejected.
        let id = import.row_id.as_str();
        match kind {
            ImportKind::Organization => {
                if let Ok(id) = id.parse() {
                    let found = catalog::find_organization(tx, id).await?;
                    self.organizations.extend(found.map(|organization| (owned.clone(), organization)));
                }
            }
            ImportKind::Partner => {
                if let Ok(id) = id.parse() {
                    let found = catalog::find_partner(tx, id).await?;
                    self.partners.extend(found.map(|partner| (owned.clone(), partner)));
                }
            }
            ImportKind::Thread => {
                if let Ok(id) = id.parse() {
                    let found = catalog::find_thread(tx, id).await?;
                    self.threads.extend(found.map(|thread| (owned.clone(), thread)));
                }
            }
            ImportKind::Chapter => {
                if let Some(chapter) = catalog::find_chapter(tx, id).await? {
                    let thread = catalog::find_thread(tx, chapter.thread_id).await?;
                    self.threads_of_chapters.extend(thread.map(|thread| (thread.id, thread)));
                    self.chapters.insert(owned.clone(), chapter);
                }
            }
            ImportKind::Market => {
                if let Ok(id) = id.parse::<MarketId>()
                    && let Some(market) = store::markets::find(tx, id).await?
                {
                    let outcomes = store::markets::outcomes(tx, id).await?;
                    let labels = outcomes.into_iter().map(|outcome| outcome.label).collect();
                    self.markets.insert(owned.clone(), (market, labels));
                }
            }
        }
        self.imports.insert((kind, owned), import);
        Ok(())
    }

    async fn find_questions(&mut self, tx: &mut Tx) -> Result<(), StoreError> {
        let named = self.threads.values().map(|thread| thread.id);
        let threads: HashSet<_> = named.chain(self.threads_of_chapters.keys().copied()).collect();
        for id in threads {
            self.questions.insert(id, catalog::questions_in(tx, id).await?);
        }
        Ok(())
    }
}

/// Returns the keys of all items and of all their references.
fn keys(catalog: &Catalog) -> HashSet<(ImportKind, String)> {
    let Catalog { organizations, partners, threads, chapters, markets } = catalog;
    let mut keys: HashSet<(ImportKind, String)> = HashSet::new();
    let mut add = |kind, key: &str| {
        keys.insert((kind, key.to_owned()));
    };
    for item in organizations {
        add(ImportKind::Organization, &item.key);
    }
    for item in partners {
        add(ImportKind::Partner, &item.key);
        add(ImportKind::Organization, &item.organization);
    }
    for item in threads {
        add(ImportKind::Thread, &item.key);
        item.organization.iter().for_each(|key| add(ImportKind::Organization, key));
        item.partner.iter().for_each(|key| add(ImportKind::Partner, key));
    }
    for item in chapters {
        add(ImportKind::Chapter, &item.key);
        add(ImportKind::Thread, &item.thread);
    }
    for item in markets {
        add(ImportKind::Market, &item.key);
        item.thread.iter().for_each(|key| add(ImportKind::Thread, key));
        item.chapter.iter().for_each(|key| add(ImportKind::Chapter, key));
    }
    keys.retain(|(_, key)| is_key(key));
    keys
}

fn slugs(catalog: &Catalog) -> Vec<(ImportKind, String)> {
    let organizations = catalog.organizations.iter().map(|item| (ImportKind::Organization, &item.slug));
    let partners = catalog.partners.iter().map(|item| (ImportKind::Partner, &item.slug));
    let all = organizations.chain(partners).map(|(kind, slug)| (kind, slug.clone()));
    all.filter(|(_, slug)| !slug.contains('\0')).collect()
}

/// Returns whether a text is a valid author's key.
pub(super) fn is_key(key: &str) -> bool {
    let starts_well = key.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
    let well_formed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'/');
    starts_well && key.len() <= 100 && key.bytes().all(well_formed)
}

/// Returns a problem if the catalog has more than `most` items.
pub(super) fn too_large(catalog: &Catalog, most: usize) -> Option<ImportProblem> {
    let items = catalog.items();
    (items > most).then(|| ImportProblem::new("", format!("must have at most {most} items, got {items}")))
}
