//! `foretell admin organization`.

use clap::{Args, Subcommand};
use domain::ErrorCode;
use domain::ids::OrganizationId;
use store::catalog::Organization;

use super::ctx::AdminCtx;
use super::output::{CommandOutput, OutputRecord};
use super::subject::{self, Subject};
use super::values::{PageArgs, edit_text, overwrite, slug_of};
use super::{missing, refuse};
use crate::start_error::StartError;

/// Commands for organizations.
#[derive(Debug, Subcommand)]
pub enum OrganizationCommand {
    /// Add an organization
    Create {
        /// The name
        #[arg(long)]
        name: String,
        #[command(flatten)]
        about: ProfileArgs,
    },
    /// List organizations, newest first
    List(PageArgs),
    /// Show an organization
    Show {
        #[command(flatten)]
        organization: Subject<subject::Organization>,
    },
    /// Change only the given values. An empty text removes the old one
    Update {
        #[command(flatten)]
        organization: Subject<subject::Organization>,
        /// The name
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        about: ProfileArgs,
    },
}

/// The properties of organizations and partners.
#[derive(Debug, Clone, Args)]
pub struct ProfileArgs {
    /// The name in URLs [default: derived from the name]
    #[arg(long)]
    pub slug: Option<String>,
    /// A description in Markdown
    #[arg(long)]
    pub description: Option<String>,
    /// The URL of the logo
    #[arg(long, value_name = "URL")]
    pub logo: Option<String>,
    /// The URL of the website
    #[arg(long, value_name = "URL")]
    pub website: Option<String>,
}

/// Returns the given slug, or the one derived from the name.
pub fn slug_or_default(given: Option<&String>, name: &str) -> Result<String, StartError> {
    let slug = given.cloned().unwrap_or_else(|| slug_of(name));
    if slug.is_empty() {
        return Err(refuse(ErrorCode::ValidationFailed, "The name contains no letters a-z: set --slug."));
    }
    Ok(slug)
}

pub async fn run(command: OrganizationCommand, admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    match command {
        OrganizationCommand::Create { name, about } => {
            let ctx = admin.ctx()?;
            let slug = slug_or_default(about.slug.as_ref(), &name)?;
            let organization = Organization {
                id: OrganizationId(ctx.uuid()),
                name,
                slug,
                description: about.description,
                logo: about.logo,
                website: about.website,
            };
            Ok(CommandOutput::One(record(&app::catalog::add_organization(&ctx, organization).await?)))
        }
        OrganizationCommand::List(page) => list(page, admin).await,
        OrganizationCommand::Show { organization: Subject(organization) } => {
            let found = admin
                .store
                .read(organization, |tx, id| Box::pin(store::catalog::find_organization(tx, *id)))
                .await;
            Ok(CommandOutput::One(record(&found?.ok_or_else(|| missing("organization"))?)))
        }
        OrganizationCommand::Update { organization: Subject(organization), name, about } => {
            let change = move |old: &mut Organization| {
                overwrite(&mut old.name, name.as_ref());
                overwrite(&mut old.slug, about.slug.as_ref());
                edit_text(&mut old.description, about.description.as_ref());
                edit_text(&mut old.logo, about.logo.as_ref());
                edit_text(&mut old.website, about.website.as_ref());
            };
            let changed = app::catalog::change_organization(&admin.ctx()?, organization, change).await?;
            Ok(CommandOutput::One(record(&changed)))
        }
    }
}

async fn list(page: PageArgs, admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    let listed = admin
        .store
        .read((page.after.map(OrganizationId), page.limit), |tx, (after, limit)| {
            Box::pin(store::catalog::list_organizations(tx, *after, *limit))
        })
        .await;
    Ok(CommandOutput::Many(listed?.iter().map(record).collect(), &["id", "slug", "name"]))
}

fn record(organization: &Organization) -> OutputRecord {
    let Organization { id, name, slug, description, logo, website } = organization;
    OutputRecord::new()
        .with("id", id)
        .with("name", name)
        .with("slug", slug)
        .with("description", description)
        .with("logo", logo)
        .with("website", website)
}
