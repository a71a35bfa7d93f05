//! What the database knows of a catalogue's items before it is imported.

use std::collections::{HashMap, HashSet};

use domain::ids::{MarketId, ThreadId};
use store::catalog::{self, Chapter, Organization, Partner, Thread};
use store::imports::{self, Import};
use store::markets::Market;
use store::{StoreError, Tx};

use super::document::Catalogue;
use super::{Kind, Problem};
use crate::Ctx;

/// What was imported before of what the catalogue holds or names, and whose the slugs are.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub organizations: HashMap<String, Organization>,
    pub imports: HashMap<(Kind, String), Import>,
    pub partners: HashMap<String, Partner>,
    pub threads: HashMap<String, Thread>,
    /// Those of chapters that are named without their thread.
    pub threads_of_chapters: HashMap<ThreadId, Thread>,
    pub chapters: HashMap<String, Chapter>,
    pub markets: HashMap<String, (Market, Vec<String>)>,
    pub slugs: HashMap<(Kind, String), String>,
}

pub(super) async fn read(ctx: &Ctx, catalogue: &Catalogue) -> Result<Known, StoreError> {
    let asked = (keys(catalogue), slugs(catalogue));
    ctx.store
        .read(asked, |tx, (keys, slugs)| {
            Box::pin(async move {
                let mut known = Known::default();
                for (kind, key) in keys {
                    known.find(tx, *kind, key).await?;
                }
                for (kind, slug) in slugs {
                    let owner = match kind {
                        Kind::Organization => {
                            catalog::organization_with_slug(tx, slug).await?.map(|id| id.to_string())
                        }
                        _ => catalog::partner_with_slug(tx, slug).await?.map(|id| id.to_string()),
                    };
                    known.slugs.extend(owner.map(|owner| ((*kind, slug.clone()), owner)));
                }
                Ok(known)
            })
        })
        .await
}

impl Known {
    async fn find(&mut self, tx: &mut Tx, kind: Kind, key: &str) -> Result<(), StoreError> {
        let Some(import) = imports::find(tx, kind.as_str(), key).await? else { return Ok(()) };
        let owned = key.to_owned();
        // An id that does not read leaves the item without its row: what names it is refused.
        let id = import.row_id.as_str();
        match kind {
            Kind::Organization => {
                if let Ok(id) = id.parse() {
                    let found = catalog::find_organization(tx, id).await?;
                    self.organizations.extend(found.map(|organization| (owned.clone(), organization)));
                }
            }
            Kind::Partner => {
                if let Ok(id) = id.parse() {
                    let found = catalog::find_partner(tx, id).await?;
                    self.partners.extend(found.map(|partner| (owned.clone(), partner)));
                }
            }
            Kind::Thread => {
                if let Ok(id) = id.parse() {
                    let found = catalog::find_thread(tx, id).await?;
                    self.threads.extend(found.map(|thread| (owned.clone(), thread)));
                }
            }
            Kind::Chapter => {
                if let Some(chapter) = catalog::find_chapter(tx, id).await? {
                    let thread = catalog::find_thread(tx, chapter.thread_id).await?;
                    self.threads_of_chapters.extend(thread.map(|thread| (thread.id, thread)));
                    self.chapters.insert(owned.clone(), chapter);
                }
            }
            Kind::Market => {
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
}

/// The keys of all items, and all that they name.
fn keys(catalogue: &Catalogue) -> HashSet<(Kind, String)> {
    let Catalogue { organizations, partners, threads, chapters, markets } = catalogue;
    let mut keys: HashSet<(Kind, String)> = HashSet::new();
    let mut add = |kind, key: &str| {
        keys.insert((kind, key.to_owned()));
    };
    for item in organizations {
        add(Kind::Organization, &item.key);
    }
    for item in partners {
        add(Kind::Partner, &item.key);
        add(Kind::Organization, &item.organization);
    }
    for item in threads {
        add(Kind::Thread, &item.key);
        item.organization.iter().for_each(|key| add(Kind::Organization, key));
        item.partner.iter().for_each(|key| add(Kind::Partner, key));
    }
    for item in chapters {
        add(Kind::Chapter, &item.key);
        add(Kind::Thread, &item.thread);
    }
    for item in markets {
        add(Kind::Market, &item.key);
        item.thread.iter().for_each(|key| add(Kind::Thread, key));
        item.chapter.iter().for_each(|key| add(Kind::Chapter, key));
    }
    keys.retain(|(_, key)| is_key(key));
    keys
}

fn slugs(catalogue: &Catalogue) -> Vec<(Kind, String)> {
    let organizations = catalogue.organizations.iter().map(|item| (Kind::Organization, &item.slug));
    let partners = catalogue.partners.iter().map(|item| (Kind::Partner, &item.slug));
    let all = organizations.chain(partners).map(|(kind, slug)| (kind, slug.clone()));
    all.filter(|(_, slug)| !slug.contains('\0')).collect()
}

/// Whether a text can be an author's key.
pub(super) fn is_key(key: &str) -> bool {
    let starts_well = key.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
    let well_formed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'/');
    starts_well && key.len() <= 100 && key.bytes().all(well_formed)
}

/// A catalogue that is too large to be judged as a whole.
pub(super) fn too_large(catalogue: &Catalogue, most: usize) -> Option<Problem> {
    let items = catalogue.items();
    (items > most).then(|| Problem::new("", format!("must have at most {most} items, got {items}")))
}
