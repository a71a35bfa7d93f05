//! `foretell admin market update`: changes a market's listing. Its terms are on chain and cannot
//! change.

use clap::{ArgGroup, Args};
use domain::ids::ThreadId;
use store::catalog::Listing;
use uuid::Uuid;

use super::{find, record};
use crate::cli::admin::ctx::AdminCtx;
use crate::cli::admin::output::OutputRecord;
use crate::cli::admin::subject::{self, Subject};
use crate::cli::admin::values::{Edit, edit_text};
use crate::start_error::StartError;

/// The values to change.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("change").required(true).multiple(true)
    .args(["description", "category", "tags", "thread", "chapter", "source_url", "featured"]))]
pub struct UpdateArgs {
    #[command(flatten)]
    market: Subject<subject::Market>,
    /// The description in Markdown
    #[arg(long)]
    description: Option<String>,
    /// The category, such as sports
    #[arg(long)]
    category: Option<String>,
    /// A tag. May be repeated; replaces all present tags
    #[arg(long = "tag", value_name = "TAG")]
    tags: Option<Vec<String>>,
    /// The thread of the market, which also sets its organization and its partner, or none
    #[arg(long, value_name = "ID")]
    thread: Option<Edit<ThreadId>>,
    /// The chapter of the thread, or none
    #[arg(long, value_name = "ID")]
    chapter: Option<Edit<Uuid>>,
    /// The URL of the post that the market is based on
    #[arg(long, value_name = "URL")]
    source_url: Option<String>,
    /// The place among the featured markets, lowest first, or none
    #[arg(long, value_name = "N")]
    featured: Option<Edit<u32>>,
}

impl UpdateArgs {
    fn apply(&self, listing: &mut Listing) {
        edit_text(&mut listing.description, self.description.as_ref());
        edit_text(&mut listing.category, self.category.as_ref());
        if let Some(tags) = &self.tags {
            listing.tags = tags.iter().filter(|tag| !tag.is_empty()).cloned().collect();
        }
        if let Some(Edit(thread)) = self.thread {
            listing.thread_id = thread;
        }
        if let Some(Edit(chapter)) = self.chapter {
            listing.chapter_id = chapter.map(|id| id.to_string());
        }
        edit_text(&mut listing.source_url, self.source_url.as_ref());
        if let Some(Edit(featured)) = self.featured {
            listing.featured_position = featured;
        }
    }
}

pub async fn update(args: UpdateArgs, admin: &AdminCtx) -> Result<OutputRecord, StartError> {
    let id = args.market.0;
    app::catalog::change_market(&admin.ctx()?, id, move |listing| args.apply(listing)).await?;
    let (market, outcomes) = find(admin, id).await?;
    Ok(record(&market, &outcomes))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Update {
        #[command(flatten)]
        args: UpdateArgs,
    }

    #[test]
    fn an_update_without_a_change_is_an_error() {
        let id = "0198f3a0-0000-7000-8000-000000000001";
        assert!(Update::try_parse_from(["update", id]).is_err());
        let changed = Update::try_parse_from(["update", id, "--category", "sports", "--featured", "1"]);
        assert_eq!(changed.unwrap().args.category.as_deref(), Some("sports"));
    }
}
