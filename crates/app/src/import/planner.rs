//! Plans an import: validates the catalog as a whole and decides the action for each item.

mod arrangement;
mod changes;
mod market;
mod names;

use std::collections::HashMap;

use domain::ids::{OrganizationId, ThreadId};
use domain::text::shown;
use domain::trade::FieldError;
use domain::{Timestamp, Usdc};
use serde_json::Value;
use sha2::{Digest, Sha256};
use store::catalog::{Chapter, Partner, Thread};
use store::imports::Import;
use uuid::Uuid;

use super::document::Catalog;
use super::known::{self, Known};
use super::plan::{ImportAction, ImportPlan, ImportRow, Step};
use super::{ImportError, ImportKind, ImportProblem};
use crate::{AppError, Ctx, markets};

/// The maximum number of items per catalog.
const MAX_ITEMS: usize = 10_000;

/// Plans an import without changing anything. For a market whose creation was interrupted, asks the
/// chain whether it exists.
pub async fn plan(ctx: &Ctx, catalog: &Catalog) -> Result<ImportPlan, ImportError> {
    if let Some(problem) = known::too_large(catalog, MAX_ITEMS) {
        return Err(ImportError::Refused(vec![problem]));
    }
    let known = known::read(ctx, catalog).await?;
    let new_id = || ctx.uuid();
    let mut planner = Planner::new(&known, ctx.now(), &new_id);
    planner.organizations(&catalog.organizations);
    planner.partners(&catalog.partners);
    planner.threads(&catalog.threads);
    planner.chapters(&catalog.chapters);
    planner.markets(&catalog.markets);
    planner.check_names();
    let Planner { mut steps, problems, .. } = planner;
    if !problems.is_empty() {
        return Err(ImportError::Refused(problems));
    }
    settle_finished(ctx, &known, &mut steps).await?;
    let funding = funding(&steps)?;
    Ok(ImportPlan { steps, funding })
}

/// Changes the action of markets that are on chain but not read by the sync yet: they need nothing
/// more on chain.
async fn settle_finished(ctx: &Ctx, known: &Known, steps: &mut [Step]) -> Result<(), AppError> {
    for step in steps.iter_mut().filter(|step| step.action == ImportAction::Finish) {
        let ImportRow::Market(new) = &step.row else { continue };
        let Some(id) = new.id else { continue };
        if ctx.chain.market_of(markets::reference_of(id)).await?.is_some() {
            let old = known.imports.get(&(step.kind, step.import.key.clone()));
            let same = old.is_some_and(|old| old.content_hash == step.import.content_hash);
            step.action = if same { ImportAction::Skip } else { ImportAction::Update };
        }
    }
    Ok(())
}

fn funding(steps: &[Step]) -> Result<Usdc, ImportError> {
    let mut funding = Usdc::ZERO;
    for step in steps.iter().filter(|step| step.is_for_the_chain()) {
        let ImportRow::Market(new) = &step.row else { continue };
        let one = markets::funding_ceil(new.liquidity, new.outcomes.len(), &new.opening_odds);
        funding = one.and_then(|one| funding.checked_add(one)).ok_or_else(|| {
            ImportError::Refused(vec![ImportProblem::new(
                "/markets",
                "must need less USDC in total than can exist",
            )])
        })?;
    }
    Ok(funding)
}

struct Planner<'a> {
    known: &'a Known,
    now: Timestamp,
    new_id: &'a (dyn Fn() -> Uuid + Sync),
    steps: Vec<Step>,
    problems: Vec<ImportProblem>,
    /// The path of each key in this file.
    seen: HashMap<(ImportKind, &'a str), String>,
    slugs: HashMap<(ImportKind, &'a str), String>,
    organizations: HashMap<&'a str, OrganizationId>,
    partners: HashMap<&'a str, Partner>,
    /// As they will be after the run.
    threads: HashMap<&'a str, Thread>,
    /// As this file describes them.
    said_threads: HashMap<ThreadId, Thread>,
    chapters: HashMap<&'a str, Chapter>,
    next_position: HashMap<&'a str, u32>,
}

impl<'a> Planner<'a> {
    fn new(known: &'a Known, now: Timestamp, new_id: &'a (dyn Fn() -> Uuid + Sync)) -> Self {
        Self {
            known,
            now,
            new_id,
            steps: Vec::new(),
            problems: Vec::new(),
            seen: HashMap::new(),
            slugs: HashMap::new(),
            organizations: HashMap::new(),
            partners: HashMap::new(),
            threads: HashMap::new(),
            said_threads: HashMap::new(),
            chapters: HashMap::new(),
            next_position: HashMap::new(),
        }
    }

    fn refuse(&mut self, at: &str, member: &str, detail: impl Into<String>) {
        self.problems.push(ImportProblem::new(format!("{at}/{member}"), detail));
    }

    fn refuse_fields(&mut self, at: &str, errors: Vec<FieldError>) {
        for FieldError { pointer, detail } in errors {
            self.problems.push(ImportProblem::new(format!("{at}{pointer}"), detail));
        }
    }

    fn import(&self, kind: ImportKind, key: &str) -> Option<&'a Import> {
        self.known.imports.get(&(kind, key.to_owned()))
    }

    /// Returns the row id of a key, or a new id.
    fn id_of(&self, kind: ImportKind, key: &str) -> Uuid {
        let known = self.import(kind, key).and_then(|import| Uuid::try_parse(&import.row_id).ok());
        known.unwrap_or_else(|| (self.new_id)())
    }

    fn check_key(&mut self, kind: ImportKind, key: &'a str, at: &str) {
        if !known::is_key(key) {
            let requirement =
                "must have 1 to 100 characters of a-z, A-Z, 0-9 and . _ - /, the first a letter or digit";
            self.refuse(at, "key", format!("{requirement}, got {}", shown(key)));
        }
        if let Some(first) = self.seen.insert((kind, key), at.to_owned()) {
            self.refuse(at, "key", format!("must be unique: {} is the key of {first}", shown(key)));
        }
    }

    fn check_slug(&mut self, kind: ImportKind, slug: &'a str, id: Uuid, at: &str) {
        if let Some(first) = self.slugs.insert((kind, slug), at.to_owned()) {
            self.refuse(at, "slug", format!("must be unique: {} is the slug of {first}", shown(slug)));
        }
        let owner = self.known.slugs.get(&(kind, slug.to_owned()));
        if owner.is_some_and(|owner| *owner != id.to_string()) {
            self.refuse(at, "slug", format!("is already taken by another {kind}, got {}", shown(slug)));
        }
    }

    /// Reports an unknown key, unless the item is in this file. An invalid item in this file
    /// already has its own problem.
    fn unknown(&mut self, at: &str, member: &str, kind: ImportKind, key: &str) {
        if self.seen.contains_key(&(kind, key)) {
            return;
        }
        let requirement =
            format!("must be the key of a known {kind}, in this file or in a file imported earlier");
        let detail = format!("{requirement}, got {}", shown(key));
        self.refuse(at, member, detail);
    }

    /// Checks that a fixed parent did not change.
    fn check_stays(&mut self, kind: ImportKind, key: &str, terms: &Value, at: &str, member: &str) {
        if self.import(kind, key).is_some_and(|old| old.terms_hash != digest(terms)) {
            self.refuse(at, member, format!("cannot change: the {member} of the {kind} is fixed"));
        }
    }

    fn step(&mut self, kind: ImportKind, key: &str, id: Uuid, said: (&Value, &Value), row: ImportRow) {
        let (terms, content) = said;
        let import = Import {
            kind: kind.as_str().to_owned(),
            key: key.to_owned(),
            row_id: id.to_string(),
            terms_hash: digest(terms),
            content_hash: digest(content),
        };
        let changed = changes::members(self.known, key, &row);
        let action = match self.import(kind, key) {
            None => ImportAction::Create,
            Some(old) if old.content_hash == import.content_hash => ImportAction::Skip,
            Some(_) => ImportAction::Update,
        };
        self.steps.push(Step { kind, action, import, row, changed });
    }
}

/// Returns a digest that depends only on the content.
fn digest(said: &Value) -> String {
    hex::encode(Sha256::digest(said.to_string()))
}
