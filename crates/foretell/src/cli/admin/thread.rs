//! `foretell admin thread`.

use clap::{Args, Subcommand};
use domain::Timestamp;
use domain::ids::{OrganizationId, PartnerId, ThreadId};
use store::catalog::Thread;

use super::ctx::AdminCtx;
use super::missing;
use super::output::{CommandOutput, OutputRecord};
use super::subject::{self, Subject};
use super::values::{Edit, PageArgs, edit_text, overwrite};
use crate::start_error::StartError;

/// Commands for threads.
#[derive(Debug, Subcommand)]
pub enum ThreadCommand {
    /// Create a thread. A thread with a partner belongs to the partner's organization
    Create {
        /// The title
        #[arg(long)]
        title: String,
        #[command(flatten)]
        about: ThreadArgs,
    },
    /// List threads, newest first
    List {
        /// Only those of this organization
        #[arg(long, value_name = "ID")]
        organization: Option<OrganizationId>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Show a thread
    Show {
        #[command(flatten)]
        thread: Subject<subject::Thread>,
    },
    /// Change only the given values. An empty text removes the old one. The thread's markets move
    /// with it to another organization or partner
    Update {
        #[command(flatten)]
        thread: Subject<subject::Thread>,
        /// The title
        #[arg(long)]
        title: Option<String>,
        #[command(flatten)]
        about: ThreadArgs,
    },
}

/// The properties of a thread except its title.
#[derive(Debug, Clone, Args)]
pub struct ThreadArgs {
    /// The organization of the thread, or none
    #[arg(long, value_name = "ID")]
    organization: Option<Edit<OrganizationId>>,
    /// The partner of the thread, or none
    #[arg(long, value_name = "ID")]
    partner: Option<Edit<PartnerId>>,
    /// A description in Markdown
    #[arg(long)]
    description: Option<String>,
    /// The URL of the cover image
    #[arg(long, value_name = "URL")]
    image: Option<String>,
    /// The URL of the background image
    #[arg(long, value_name = "URL")]
    background_image: Option<String>,
    /// A category, such as sports
    #[arg(long)]
    category: Option<String>,
    /// A tag. Repeat it for several; they replace all existing tags
    #[arg(long = "tag", value_name = "TAG")]
    tags: Option<Vec<String>>,
    /// When the thread starts, such as 2027-01-01T00:00:00Z, or none if it has already started
    #[arg(long, value_name = "ISO8601")]
    start_time: Option<Edit<Timestamp>>,
    /// When the thread ends, or none if it never ends
    #[arg(long, value_name = "ISO8601")]
    end_time: Option<Edit<Timestamp>>,
}

impl ThreadArgs {
    fn apply(&self, thread: &mut Thread) {
        if let Some(Edit(organization)) = self.organization {
            thread.organization_id = organization;
        }
        if let Some(Edit(partner)) = self.partner {
            thread.partner_id = partner;
        }
        edit_text(&mut thread.description, self.description.as_ref());
        edit_text(&mut thread.image, self.image.as_ref());
        edit_text(&mut thread.background_image, self.background_image.as_ref());
        edit_text(&mut thread.category, self.category.as_ref());
        if let Some(tags) = &self.tags {
            // An empty tag (`--tag ""`) removes all tags.
            thread.tags = tags.iter().filter(|tag| !tag.is_empty()).cloned().collect();
        }
        if let Some(Edit(start_time)) = self.start_time {
            thread.start_time = start_time;
        }
        if let Some(Edit(end_time)) = self.end_time {
            thread.end_time = end_time;
        }
    }
}

pub async fn run(command: ThreadCommand, admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    match command {
        ThreadCommand::Create { title, about } => {
            let ctx = admin.ctx()?;
            let mut thread = Thread {
                id: ThreadId(ctx.uuid()),
                organization_id: None,
                partner_id: None,
                title,
                description: None,
                image: None,
                background_image: None,
                category: None,
                tags: Vec::new(),
                start_time: None,
                end_time: None,
            };
            about.apply(&mut thread);
            Ok(CommandOutput::One(record(&app::catalog::add_thread(&ctx, thread).await?)))
        }
        ThreadCommand::List { organization, page } => list(organization, page, admin).await,
        ThreadCommand::Show { thread: Subject(thread) } => {
            let found =
                admin.store.read(thread, |tx, id| Box::pin(store::catalog::find_thread(tx, *id))).await;
            Ok(CommandOutput::One(record(&found?.ok_or_else(|| missing("thread"))?)))
        }
        ThreadCommand::Update { thread: Subject(thread), title, about } => {
            let change = move |old: &mut Thread| {
                overwrite(&mut old.title, title.as_ref());
                about.apply(old);
            };
            let changed = app::catalog::change_thread(&admin.ctx()?, thread, change).await?;
            Ok(CommandOutput::One(record(&changed)))
        }
    }
}

async fn list(
    organization: Option<OrganizationId>,
    page: PageArgs,
    admin: &AdminCtx,
) -> Result<CommandOutput, StartError> {
    let input = (organization, page.after.map(ThreadId), page.limit);
    let listed = admin
        .store
        .read(input, |tx, (organization, after, limit)| {
            Box::pin(store::catalog::list_threads(tx, *organization, *after, *limit))
        })
        .await;
    Ok(CommandOutput::Many(
        listed?.iter().map(record).collect(),
        &["id", "title", "category", "startTime", "endTime"],
    ))
}

fn record(thread: &Thread) -> OutputRecord {
    OutputRecord::new()
        .with("id", thread.id)
        .with("organizationId", thread.organization_id)
        .with("partnerId", thread.partner_id)
        .with("title", &thread.title)
        .with("description", &thread.description)
        .with("image", &thread.image)
        .with("backgroundImage", &thread.background_image)
        .with("category", &thread.category)
        .with("tags", &thread.tags)
        .with("startTime", thread.start_time)
        .with("endTime", thread.end_time)
}
