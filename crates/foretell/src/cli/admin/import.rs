//! `foretell admin import`: imports a catalog from a file.
//!
//! On a terminal, a progress bar is shown. Otherwise each completed item is printed as a line of
//! JSON, and the last line is a summary. Running the same command again continues an interrupted
//! import.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use app::Ctx;
use app::import::{self, Format, ImportAction, ImportError, ImportKind, ImportPlan, Step};
use clap::{Args, ValueEnum};
use domain::key::Environment;
use indicatif::{ProgressBar, ProgressStyle};

use super::ctx::AdminCtx;
use super::output::{CommandOutput, OutputRecord, print_line};
use super::values::usdc_text;
use crate::start_error::StartError;

/// Maximum size of the file.
const MAX_BYTES: u64 = 32 << 20;

/// The options of an import.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// The catalogue file, in JSON or YAML
    file: PathBuf,
    /// The format of the file [default: JSON for names that end in .json, else YAML]
    #[arg(long, value_enum)]
    format: Option<Language>,
    /// Check the file and print what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Language {
    Json,
    Yaml,
}

pub async fn run(args: ImportArgs, json: bool, admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    let (text, format) = read(&args)?;
    let catalogue = import::read(&text, format).map_err(StartError::Import)?;
    // An import without markets needs no chain.
    let ctx = if catalogue.markets.is_empty() { admin.ctx()? } else { admin.online().await? };
    let roles = admin.secrets()?.roles;
    let resolver = roles.resolver()?;
    // USDC can only be minted in the test environment.
    let minter = match ctx.config.environment {
        Environment::Test => roles.deployer().ok(),
        Environment::Live => None,
    };
    let plan = import::plan(&ctx, &catalogue).await;
    let plan = plan.map_err(|error| refused(error.locate(&text, format)))?;
    let mut shown = Shown::new(json || !std::io::stdout().is_terminal(), plan.steps.len());
    if args.dry_run {
        // A dry run must also report missing funds.
        import::check_funding(&ctx, &plan, &resolver, minter.as_ref()).await.map_err(refused)?;
        plan.steps.iter().for_each(|step| shown.planned(step));
        return shown.end(summary(&plan, true));
    }
    let done = import::run(&ctx, &plan, &resolver, minter.as_ref(), &mut |step| shown.step(step)).await;
    if let Err(error) = done {
        shown.clear();
        return Err(refused(error));
    }
    let summary = summary(&plan, false).with("synced", followed(admin, &ctx, &plan).await?);
    shown.end(summary)
}

fn read(args: &ImportArgs) -> Result<(String, Format), StartError> {
    let fail = |source| StartError::File { path: args.file.display().to_string(), source };
    // Check the size before reading the file into memory.
    if std::fs::metadata(&args.file).map_err(fail)?.len() > MAX_BYTES {
        return Err(StartError::Other(format!("{} must be at most 32 MiB", args.file.display())));
    }
    let text = std::fs::read_to_string(&args.file).map_err(fail)?;
    let format = args.format.unwrap_or_else(|| language_of(&args.file));
    let format = if format == Language::Json { Format::Json } else { Format::Yaml };
    Ok((text, format))
}

fn language_of(file: &Path) -> Language {
    let is_json = file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    if is_json { Language::Json } else { Language::Yaml }
}

fn refused(error: ImportError) -> StartError {
    match error {
        ImportError::Refused(problems) => StartError::Import(problems),
        ImportError::Failed(error) => {
            let detail =
                format!("{} Run the same import again: it continues where it stopped.", error.detail);
            error.detail(detail).into()
        }
    }
}

/// Waits for the running service to index the plan's markets. Returns whether it did.
async fn followed(admin: &AdminCtx, ctx: &Ctx, plan: &ImportPlan) -> Result<bool, StartError> {
    // Skipped markets count too: the run that created them may have been killed before this wait.
    if !plan.steps.iter().any(|step| step.kind == ImportKind::Market) {
        return Ok(true);
    }
    admin.follow(ctx.chain.head().await?.number).await
}

fn summary(plan: &ImportPlan, dry_run: bool) -> OutputRecord {
    OutputRecord::new()
        .with("dryRun", dry_run)
        .with("items", plan.steps.len())
        .with("created", plan.count(ImportAction::Create))
        .with("finished", plan.count(ImportAction::Finish))
        .with("updated", plan.count(ImportAction::Update))
        .with("skipped", plan.count(ImportAction::Skip))
        .with("fundingUsdc", usdc_text(plan.funding))
}

/// The progress display of a run.
enum Shown {
    Lines,
    Bar(ProgressBar),
}

impl Shown {
    fn new(lines: bool, steps: usize) -> Self {
        if lines {
            return Self::Lines;
        }
        let bar = ProgressBar::new(steps as u64);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}") {
            bar.set_style(style);
        }
        Self::Bar(bar)
    }

    /// Prints a step that a run would execute.
    fn planned(&mut self, step: &Step) {
        match self {
            Self::Lines => self.step(step),
            Self::Bar(_) if step.action == ImportAction::Skip => {}
            Self::Bar(bar) => {
                let changed = match step.changed() {
                    [] => String::new(),
                    members => format!(" ({})", members.join(", ")),
                };
                bar.suspend(|| println!("{} {} {}{changed}", step.action.as_str(), step.kind, step.key()));
            }
        }
    }

    fn step(&mut self, step: &Step) {
        match self {
            Self::Lines => {
                let record = OutputRecord::new()
                    .with("kind", step.kind.as_str())
                    .with("key", step.key())
                    .with("id", step.id())
                    .with("action", step.action.as_str());
                let record = match step.changed() {
                    [] => record,
                    members => record.with("changed", members),
                };
                // A closed pipe must not stop the import.
                drop(print_line(&serde_json::to_string(&record).unwrap_or_default()));
            }
            Self::Bar(bar) => {
                bar.inc(1);
                bar.set_message(format!("{} {}", step.kind, step.key()));
            }
        }
    }

    fn clear(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }

    fn end(self, summary: OutputRecord) -> Result<CommandOutput, StartError> {
        self.clear();
        match self {
            Self::Lines => {
                print_line(
                    &serde_json::to_string(&OutputRecord::new().with("summary", summary)).unwrap_or_default(),
                )?;
                Ok(CommandOutput::Printed)
            }
            Self::Bar(_) => Ok(CommandOutput::One(summary)),
        }
    }
}
