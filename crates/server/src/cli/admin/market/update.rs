//! `foretell admin market update`: how a market is listed. Its terms are the chain's and do not change.

use clap::{ArgGroup, Args};
use domain::ids::ThreadId;
use store::catalog::Listing;
use uuid::Uuid;

use super::{find, record};
use crate::cli::admin::ctx::AdminCtx;
use crate::cli::admin::output::Record;
use crate::cli::admin::subject::{self, Subject};
use crate::cli::admin::values::{Edit, edit_text};
use crate::run::StartError;

/// What can be changed of a market.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("change").required(true).multiple(true)
    .args(["description", "category", "tags", "thread", "chapter", "source_url", "featured"]))]
pub struct UpdateArgs {
    #[command(flatten)]
    market: Subject<subject::Market>,
    /// Markdown
    #[arg(long)]
    description: Option<String>,
    /// Such as sports
    #[arg(long)]
    category: Option<String>,
    /// A free word; may be given more than once, and replaces all that were there
    #[arg(long = "tag", value_name = "TAG")]
    tags: Option<Vec<String>>,
    /// The thread that it belongs to, and with it the organization and the partner, or none
    #[arg(long, value_name = "ID")]
    thread: Option<Edit<ThreadId>>,
    /// The chapter of the thread, or none
    #[arg(long, value_name = "ID")]
    chapter: Option<Edit<Uuid>>,
    /// The post that it came from
    #[arg(long, value_name = "URL")]
    source_url: Option<String>,
    /// Its place among the featured markets, the least first, or none
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

pub async fn update(args: UpdateArgs, admin: &AdminCtx) -> Result<Record, StartError> {
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
