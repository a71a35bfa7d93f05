//! Acts on the catalog: threads, and imports of files.

use domain::ErrorCode;
use domain::ids::{OrganizationId, PartnerId, ThreadId};
use serde::{Deserialize, Serialize};
use store::catalog::{self as rows, Thread};

use super::summary::{Outcome, Summary};
use crate::import::{self, Format, ImportAction, ImportError, ImportPlan, ImportProblem};
use crate::sessions::Person;
use crate::{AppError, Ctx, PersonError, catalog};

/// The maximum number of problems of a file that one error lists.
const MOST_PROBLEMS: usize = 20;

/// The maximum number of problems of a file that its page lists.
const MAX_SHOWN_PROBLEMS: usize = 200;

/// A new thread, or new values of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadEdit {
    pub id: ThreadId,
    pub title: String,
    pub description: Option<String>,
    pub category: Option<String>,
    pub tags: Vec<String>,
    pub image: Option<String>,
    pub organization_id: Option<OrganizationId>,
    pub partner_id: Option<PartnerId>,
}

impl ThreadEdit {
    fn apply(&self, thread: &mut Thread) {
        let edit = self.clone();
        thread.title = edit.title;
        thread.description = edit.description;
        thread.category = edit.category;
        thread.tags = edit.tags;
        thread.image = edit.image;
        thread.organization_id = edit.organization_id;
        thread.partner_id = edit.partner_id;
    }

    fn empty(&self) -> Thread {
        Thread {
            id: self.id,
            organization_id: None,
            partner_id: None,
            title: String::new(),
            description: None,
            image: None,
            background_image: None,
            category: None,
            tags: Vec::new(),
            start_time: None,
            end_time: None,
        }
    }

    async fn stored(&self, ctx: &Ctx) -> Result<Option<Thread>, AppError> {
        Ok(ctx.store.read(self.id, |tx, id| Box::pin(rows::find_thread(tx, *id))).await?)
    }

    pub(super) async fn describe(&self, ctx: &Ctx) -> Result<Summary, AppError> {
        let stored = self.stored(ctx).await?;
        let verb = if stored.is_some() { "Edit" } else { "Create" };
        let old = stored.unwrap_or_else(|| self.empty());
        let mut new = old.clone();
        self.apply(&mut new);
        catalog::checked(catalog::check::thread(&new))?;
        if old == new {
            return Err(AppError::new(ErrorCode::ValidationFailed).detail("Nothing would change."));
        }
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let id = |value: Option<String>| value.unwrap_or_default();
        Ok(Summary::new(format!("{verb} the thread “{}”", new.title), "/admin/catalog")
            .change("Title", &old.title, &new.title)
            .change("Description", &text(&old.description), &text(&new.description))
            .change("Category", &text(&old.category), &text(&new.category))
            .change("Tags", &old.tags.join(", "), &new.tags.join(", "))
            .change("Image", &text(&old.image), &text(&new.image))
            .change(
                "Organization",
                &id(old.organization_id.map(|id| id.to_string())),
                &id(new.organization_id.map(|id| id.to_string())),
            )
            .change(
                "Partner",
                &id(old.partner_id.map(|id| id.to_string())),
                &id(new.partner_id.map(|id| id.to_string())),
            )
            .then("Changes what everyone reads. The thread's markets move with it to another organization or partner."))
    }

    pub(super) async fn run(self, ctx: &Ctx) -> Result<Outcome, AppError> {
        if self.stored(ctx).await?.is_some() {
            catalog::change_thread(ctx, self.id, move |thread| self.apply(thread)).await?;
            return Ok(Outcome::done("The thread was changed."));
        }
        let mut thread = self.empty();
        self.apply(&mut thread);
        let thread = catalog::add_thread(ctx, thread).await?;
        Ok(Outcome::done(format!("The thread has the id {}.", thread.id)))
    }
}

/// A catalog file to import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportFile {
    pub text: String,
    pub is_json: bool,
}

/// An item of a planned import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportItem {
    pub kind: &'static str,
    pub key: String,
    pub action: &'static str,
    /// The changed members of an update.
    pub changed: String,
}

/// The plan of an import for a page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportPreview {
    pub items: Vec<ImportItem>,
    /// The problems that prevent the import, one sentence each.
    pub problems: Vec<String>,
}

/// Returns what the import of a file would do now.
///
/// # Errors
/// `AdminRequired`
pub async fn preview_import(
    ctx: &Ctx,
    person: &Person,
    file: &ImportFile,
) -> Result<ImportPreview, PersonError> {
    person.require_admin(ctx)?;
    let plan = match file.plan(ctx).await {
        Ok(plan) => plan,
        Err(ImportError::Failed(error)) => return Err(error.into()),
        Err(ImportError::Refused(problems)) => {
            let mut lines: Vec<_> =
                problems.iter().take(MAX_SHOWN_PROBLEMS).map(ToString::to_string).collect();
            let others = problems.len() - lines.len();
            lines.extend((others > 0).then(|| format!("{others} more problems.")));
            return Ok(ImportPreview { items: Vec::new(), problems: lines });
        }
    };
    let item = |step: &import::Step| ImportItem {
        kind: step.kind.as_str(),
        key: step.key().to_owned(),
        action: step.action.as_str(),
        changed: step.changed().join(", "),
    };
    Ok(ImportPreview { items: plan.steps.iter().map(item).collect(), problems: Vec::new() })
}

impl ImportFile {
    async fn plan(&self, ctx: &Ctx) -> Result<ImportPlan, ImportError> {
        let format = if self.is_json { Format::Json } else { Format::Yaml };
        let text = self.text.clone();
        let catalog = ctx.process.parsers.run(move || import::read(&text, format)).await?;
        let catalog = catalog.map_err(ImportError::Refused)?;
        let error = match import::plan(ctx, &catalog).await {
            Ok(plan) => return Ok(plan),
            Err(error) => error,
        };
        let text = self.text.clone();
        Err(ctx.process.parsers.run(move || error.locate(&text, format)).await?)
    }

    pub(super) async fn describe(&self, ctx: &Ctx) -> Result<Summary, AppError> {
        let plan = self.plan(ctx).await.map_err(refused)?;
        let count = |action| plan.count(action).to_string();
        let on_chain = plan.steps.iter().filter(|step| step.is_for_the_chain()).count();
        let mut summary = Summary::new("Import a catalog", "/admin/catalog")
            .fact("Created", count(ImportAction::Create))
            .fact("Updated", count(ImportAction::Update))
            .fact("Finished", count(ImportAction::Finish))
            .fact("Unchanged", count(ImportAction::Skip));
        for step in plan.steps.iter().filter(|step| step.action != ImportAction::Skip) {
            let changed = step.changed().join(", ");
            let value = if changed.is_empty() {
                step.action.as_str().to_owned()
            } else {
                format!("update {changed}")
            };
            summary = summary.fact(format!("{} {}", step.kind, step.key()), value);
        }
        if on_chain > 0 {
            signer(ctx)?;
            summary = summary.then(format!(
                "Creates {on_chain} markets on chain, funded with up to {} USDC by the resolver. Their terms can never change.",
                plan.funding.to_decimal()
            ));
        }
        Ok(summary
            .then("Changes what everyone reads.")
            .then("If the import is interrupted, importing the same file again finishes it and creates nothing twice."))
    }

    pub(super) async fn run(self, ctx: &Ctx) -> Result<Outcome, AppError> {
        let plan = self.plan(ctx).await.map_err(refused)?;
        let signer = signer(ctx)?;
        let minter = ctx.config.web.as_ref().and_then(|web| web.role_keys.minter.as_ref());
        let mut done = 0_usize;
        import::run(ctx, &plan, signer, minter, &mut |_| done += 1).await.map_err(|error| {
            let error = refused(error);
            let detail =
                format!("{} {done} items were done before. Import the file again to go on.", error.detail);
            error.detail(detail)
        })?;
        Ok(Outcome::done(format!("Items: {done}.")))
    }
}

/// Returns the resolver's key. An import never prints its transactions.
fn signer(ctx: &Ctx) -> Result<&chain::Signer, AppError> {
    let keys = ctx.config.web.as_ref().map(|web| &web.role_keys);
    let missing = || {
        AppError::new(ErrorCode::ValidationFailed).detail(
            "This service does not have the resolver's key. Import the file with `foretell admin import`.",
        )
    };
    keys.and_then(|keys| keys.resolver.as_ref()).ok_or_else(missing)
}

fn refused(error: ImportError) -> AppError {
    match error {
        ImportError::Failed(error) => error,
        ImportError::Refused(problems) => {
            let lines: Vec<String> =
                problems.iter().take(MOST_PROBLEMS).map(ImportProblem::to_string).collect();
            AppError::new(ErrorCode::ValidationFailed)
                .detail(format!("The file cannot be imported: {}", lines.join("; ")))
        }
    }
}
