//! `foretell admin market create`.

use app::markets::{self, NewMarket};
use clap::Args;
use domain::ids::{MarketId, ThreadId};
use domain::key::Environment;
use domain::{ErrorCode, Usdc};
use uuid::Uuid;

use super::shown_at;
use crate::cli::admin::ctx::AdminCtx;
use crate::cli::admin::output::Record;
use crate::cli::admin::refuse;
use crate::cli::admin::values::{Odds, When, usdc_text};
use crate::run::StartError;

/// What a market is made of.
#[derive(Debug, Args)]
pub struct CreateArgs {
    /// What is asked
    #[arg(long)]
    question: String,
    /// An outcome's name; given 2 to 250 times
    #[arg(long = "outcome", value_name = "NAME", required = true)]
    outcomes: Vec<String>,
    /// The outcomes' odds at the opening, summing to exactly 1: 0.6,0.4 [default: all equal]
    #[arg(long, value_name = "LIST")]
    opening_odds: Option<Odds>,
    /// The market maker's b: the larger, the less a trade moves the price
    #[arg(long, value_name = "USDC")]
    liquidity: Usdc,
    /// The fee on trades, in hundredths of a percent
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=1000))]
    fee_bps: u16,
    /// When trading ends: an instant such as 2027-01-01T00:00:00Z, or a time from now such as 30d
    #[arg(long, value_name = "ISO8601")]
    end_time: When,
    /// The thread that it belongs to, and with it the organization and the partner
    #[arg(long, value_name = "ID")]
    thread: Option<ThreadId>,
    /// The chapter of the thread
    #[arg(long, value_name = "ID")]
    chapter: Option<Uuid>,
    /// Such as sports [default: the thread's]
    #[arg(long)]
    category: Option<String>,
    /// A free word; may be given more than once [default: the thread's]
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Markdown
    #[arg(long)]
    description: Option<String>,
    /// The post that it came from
    #[arg(long, value_name = "URL")]
    source_url: Option<String>,
    /// Its place among the featured markets, the least first [default: not featured]
    #[arg(long, value_name = "N")]
    featured: Option<u32>,
    /// Finish a creation that was cut short: the id that it named, with the same arguments
    #[arg(long, value_name = "ID")]
    id: Option<MarketId>,
}

pub async fn create(args: CreateArgs, admin: &AdminCtx) -> Result<Record, StartError> {
    let ctx = admin.online().await?;
    let roles = admin.secrets()?.roles;
    let resolver = roles.resolver()?;
    let chapter = args.chapter.map(|id| id.to_string());
    let (thread, chapter) = app::catalog::place_of_market(&ctx, args.thread, chapter).await?;
    let opening_odds = args.opening_odds.map(|odds| odds.0).unwrap_or_default();
    let needed =
        markets::funding_ceil(args.liquidity, args.outcomes.len(), &opening_odds).ok_or_else(|| {
            refuse(ErrorCode::ValidationFailed, "The liquidity is more than any market can have.")
        })?;
    let id = args.id.unwrap_or_else(|| MarketId(ctx.uuid()));
    let of_thread = thread.as_ref();
    let new = NewMarket {
        id: Some(id),
        question: args.question,
        description: args.description,
        category: args.category.or_else(|| of_thread.and_then(|thread| thread.category.clone())),
        tags: match (args.tags, of_thread) {
            (tags, Some(thread)) if tags.is_empty() => thread.tags.clone(),
            (tags, _) => tags,
        },
        outcomes: args.outcomes,
        opening_odds,
        liquidity: args.liquidity,
        fee_bps: args.fee_bps,
        end_time: args.end_time.from(ctx.now()),
        thread_id: of_thread.map(|thread| thread.id),
        organization_id: of_thread.and_then(|thread| thread.organization_id),
        partner_id: of_thread.and_then(|thread| thread.partner_id),
        chapter_id: chapter.map(|chapter| chapter.id),
        source_url: args.source_url,
        featured_position: args.featured,
    };
    markets::check(&new, ctx.now())?;
    let minter = match ctx.config.environment {
        Environment::Test => roles.deployer().ok(),
        Environment::Live => None,
    };
    let funded = markets::fund(&ctx, &resolver, minter.as_ref(), needed).await?;
    if funded.balance < funded.needed {
        return Err(refuse(
            ErrorCode::InsufficientBalance,
            format!(
                "The market takes up to {} USDC from the resolver {}, who has {}.",
                usdc_text(funded.needed),
                resolver.address(),
                usdc_text(funded.balance)
            ),
        ));
    }
    let end_time = new.end_time;
    if let Err(error) = markets::create(&ctx, &resolver, new).await {
        let again = format!("do it again with --id {id} --end-time {end_time} and the same arguments");
        let detail = format!("{} To finish this creation, {again}.", error.detail);
        return Err(error.detail(detail).into());
    }
    let block = ctx.chain.head().await?.number;
    shown_at(admin, id, block).await
}
