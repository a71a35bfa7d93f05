//! `foretell admin chapter`.

use clap::Subcommand;
use domain::ids::ThreadId;
use store::catalog::Chapter;

use super::ctx::AdminCtx;
use super::missing;
use super::output::{CommandOutput, OutputRecord};
use super::subject::{self, Subject};
use super::values::overwrite;
use crate::start_error::StartError;

/// Commands for chapters.
#[derive(Debug, Subcommand)]
pub enum ChapterCommand {
    /// Add a chapter to a thread
    Create {
        /// The thread
        #[arg(long, value_name = "ID")]
        thread: ThreadId,
        /// The title
        #[arg(long)]
        title: String,
        /// The position in the thread, from 0 [default: after the last chapter]
        #[arg(long, value_name = "N")]
        position: Option<u32>,
    },
    /// List a thread's chapters by position
    List {
        /// The thread
        #[arg(long, value_name = "ID")]
        thread: ThreadId,
    },
    /// Show a chapter
    Show {
        #[command(flatten)]
        chapter: Subject<subject::Chapter>,
    },
    /// Change only the given values
    Update {
        #[command(flatten)]
        chapter: Subject<subject::Chapter>,
        /// The title
        #[arg(long)]
        title: Option<String>,
        /// The position in the thread, from 0
        #[arg(long, value_name = "N")]
        position: Option<u32>,
    },
}

pub async fn run(command: ChapterCommand, admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    match command {
        ChapterCommand::Create { thread, title, position } => {
            let added = app::catalog::add_chapter(&admin.ctx()?, thread, &title, position).await?;
            Ok(CommandOutput::One(record(&added)))
        }
        ChapterCommand::List { thread } => list(thread, admin).await,
        ChapterCommand::Show { chapter: Subject(chapter) } => {
            let found = admin
                .store
                .read(chapter.to_string(), |tx, id| Box::pin(store::catalog::find_chapter(tx, id)))
                .await;
            Ok(CommandOutput::One(record(&found?.ok_or_else(|| missing("chapter"))?)))
        }
        ChapterCommand::Update { chapter: Subject(chapter), title, position } => {
            let change = move |old: &mut Chapter| {
                overwrite(&mut old.title, title.as_ref());
                overwrite(&mut old.position, position.as_ref());
            };
            let changed = app::catalog::change_chapter(&admin.ctx()?, &chapter.to_string(), change).await?;
            Ok(CommandOutput::One(record(&changed)))
        }
    }
}

async fn list(thread: ThreadId, admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    let listed = admin
        .store
        .read(thread, |tx, id| {
            Box::pin(async move {
                let found = store::catalog::find_thread(tx, *id).await?;
                let chapters = store::catalog::list_chapters(tx, *id).await?;
                Ok(found.map(|_| chapters))
            })
        })
        .await;
    let chapters: Vec<Chapter> = listed?.ok_or_else(|| missing("thread"))?;
    Ok(CommandOutput::Many(chapters.iter().map(record).collect(), &["position", "id", "title"]))
}

fn record(chapter: &Chapter) -> OutputRecord {
    OutputRecord::new()
        .with("id", &chapter.id)
        .with("threadId", chapter.thread_id)
        .with("title", &chapter.title)
        .with("position", chapter.position)
}
