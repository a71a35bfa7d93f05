//! `foretell admin partner`.

use clap::{Subcommand, ValueEnum};
use domain::ids::{OrganizationId, PartnerId};
use store::catalog::Partner;

use super::ctx::AdminCtx;
use super::missing;
use super::organization::{ProfileArgs, slug_or_default};
use super::output::{CommandOutput, OutputRecord};
use super::subject::{self, Subject};
use super::values::{PageArgs, edit_text, overwrite};
use crate::start_error::StartError;

/// The status of a partner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StatusArg {
    /// Shown as active.
    Active,
    /// Shown as inactive.
    Inactive,
}

/// Commands for partners.
#[derive(Debug, Subcommand)]
pub enum PartnerCommand {
    /// Add a partner to an organization
    Create {
        /// The organization of the partner
        #[arg(long, value_name = "ID")]
        organization: OrganizationId,
        /// The name
        #[arg(long)]
        name: String,
        /// The status of the partner
        #[arg(long, value_enum, default_value_t = StatusArg::Active)]
        status: StatusArg,
        #[command(flatten)]
        about: ProfileArgs,
    },
    /// List partners, newest first
    List {
        /// Only those of this organization
        #[arg(long, value_name = "ID")]
        organization: Option<OrganizationId>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Show a partner
    Show {
        #[command(flatten)]
        partner: Subject<subject::Partner>,
    },
    /// Change only the given values. An empty text removes the old one
    Update {
        #[command(flatten)]
        partner: Subject<subject::Partner>,
        /// The name
        #[arg(long)]
        name: Option<String>,
        /// The status of the partner
        #[arg(long, value_enum)]
        status: Option<StatusArg>,
        #[command(flatten)]
        about: ProfileArgs,
    },
}

pub async fn run(command: PartnerCommand, admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    match command {
        PartnerCommand::Create { organization, name, status, about } => {
            let ctx = admin.ctx()?;
            let slug = slug_or_default(about.slug.as_ref(), &name)?;
            let partner = Partner {
                id: PartnerId(ctx.uuid()),
                organization_id: organization,
                name,
                slug,
                description: about.description,
                logo: about.logo,
                website: about.website,
                active: status == StatusArg::Active,
            };
            Ok(CommandOutput::One(record(&app::catalog::add_partner(&ctx, partner).await?)))
        }
        PartnerCommand::List { organization, page } => list(organization, page, admin).await,
        PartnerCommand::Show { partner: Subject(partner) } => {
            let found =
                admin.store.read(partner, |tx, id| Box::pin(store::catalog::find_partner(tx, *id))).await;
            Ok(CommandOutput::One(record(&found?.ok_or_else(|| missing("partner"))?)))
        }
        PartnerCommand::Update { partner: Subject(partner), name, status, about } => {
            let change = move |old: &mut Partner| {
                overwrite(&mut old.name, name.as_ref());
                overwrite(&mut old.slug, about.slug.as_ref());
                edit_text(&mut old.description, about.description.as_ref());
                edit_text(&mut old.logo, about.logo.as_ref());
                edit_text(&mut old.website, about.website.as_ref());
                old.active = status.map_or(old.active, |status| status == StatusArg::Active);
            };
            let changed = app::catalog::change_partner(&admin.ctx()?, partner, change).await?;
            Ok(CommandOutput::One(record(&changed)))
        }
    }
}

async fn list(
    organization: Option<OrganizationId>,
    page: PageArgs,
    admin: &AdminCtx,
) -> Result<CommandOutput, StartError> {
    let input = (organization, page.after.map(PartnerId), page.limit);
    let listed = admin
        .store
        .read(input, |tx, (organization, after, limit)| {
            Box::pin(store::catalog::list_partners(tx, *organization, *after, *limit))
        })
        .await;
    Ok(CommandOutput::Many(
        listed?.iter().map(record).collect(),
        &["id", "slug", "name", "status", "organizationId"],
    ))
}

fn record(partner: &Partner) -> OutputRecord {
    OutputRecord::new()
        .with("id", partner.id)
        .with("organizationId", partner.organization_id)
        .with("name", &partner.name)
        .with("slug", &partner.slug)
        .with("description", &partner.description)
        .with("logo", &partner.logo)
        .with("website", &partner.website)
        .with("status", partner.status())
}
