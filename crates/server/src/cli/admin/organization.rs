//! `foretell admin organization`.

use clap::{Args, Subcommand};
use domain::ErrorCode;
use domain::ids::OrganizationId;
use store::StoreError;
use store::catalog::Organization;

use super::ctx::AdminCtx;
use super::output::{Answer, Record};
use super::subject::{self, Subject};
use super::values::{PageArgs, edit_text, overwrite, slug_of};
use super::{missing, refuse};
use crate::run::StartError;

/// What can be done with organizations.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Add an organization
    Create {
        /// Its name
        #[arg(long)]
        name: String,
        #[command(flatten)]
        about: AboutArgs,
    },
    /// Organizations, the newest first
    List(PageArgs),
    /// An organization
    Show {
        #[command(flatten)]
        organization: Subject<subject::Organization>,
    },
    /// Change what is given and leave the rest; an empty text takes the old one away
    Update {
        #[command(flatten)]
        organization: Subject<subject::Organization>,
        /// Its name
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        about: AboutArgs,
    },
}

/// What organizations and partners tell of themselves.
#[derive(Debug, Clone, Args)]
pub struct AboutArgs {
    /// Its name in addresses [default: made from the name]
    #[arg(long)]
    pub slug: Option<String>,
    /// Markdown
    #[arg(long)]
    pub description: Option<String>,
    /// An image's address
    #[arg(long, value_name = "URL")]
    pub logo: Option<String>,
    /// An address
    #[arg(long, value_name = "URL")]
    pub website: Option<String>,
}

/// The slug that is given, or the one that follows from the name.
pub fn slug_or_default(given: Option<&String>, name: &str) -> Result<String, StartError> {
    let slug = given.cloned().unwrap_or_else(|| slug_of(name));
    if slug.is_empty() {
        return Err(refuse(ErrorCode::ValidationFailed, "The name has no letters of a-z: give a --slug."));
    }
    Ok(slug)
}

pub async fn run(verb: Verb, admin: &AdminCtx) -> Result<Answer, StartError> {
    match verb {
        Verb::Create { name, about } => {
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
            Ok(Answer::One(record(&app::catalog::add_organization(&ctx, organization).await?)))
        }
        Verb::List(page) => list(page, admin).await,
        Verb::Show { organization: Subject(organization) } => {
            let found: Result<_, StoreError> = admin
                .store
                .read(organization, |tx, id| Box::pin(store::catalog::find_organization(tx, *id)))
                .await;
            Ok(Answer::One(record(&found?.ok_or_else(|| missing("organization"))?)))
        }
        Verb::Update { organization: Subject(organization), name, about } => {
            let change = move |old: &mut Organization| {
                overwrite(&mut old.name, name.as_ref());
                overwrite(&mut old.slug, about.slug.as_ref());
                edit_text(&mut old.description, about.description.as_ref());
                edit_text(&mut old.logo, about.logo.as_ref());
                edit_text(&mut old.website, about.website.as_ref());
            };
            let changed = app::catalog::change_organization(&admin.ctx()?, organization, change).await?;
            Ok(Answer::One(record(&changed)))
        }
    }
}

async fn list(page: PageArgs, admin: &AdminCtx) -> Result<Answer, StartError> {
    let listed: Result<Vec<_>, StoreError> = admin
        .store
        .read((page.after.map(OrganizationId), page.limit), |tx, (after, limit)| {
            Box::pin(store::catalog::list_organizations(tx, *after, *limit))
        })
        .await;
    Ok(Answer::Many(listed?.iter().map(record).collect(), &["id", "slug", "name"]))
}

fn record(organization: &Organization) -> Record {
    let Organization { id, name, slug, description, logo, website } = organization;
    Record::new()
        .with("id", id)
        .with("name", name)
        .with("slug", slug)
        .with("description", description)
        .with("logo", logo)
        .with("website", website)
}
