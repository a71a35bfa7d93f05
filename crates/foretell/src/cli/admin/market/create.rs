//! `foretell admin market create`.

use app::markets::{self, NewMarket};
use app::roles::{ActResult, Senders};
use chain::Role;
use clap::Args;
use domain::ids::{MarketId, ThreadId};
use domain::key::Environment;
use domain::{ErrorCode, Usdc};
use uuid::Uuid;

use super::{market_id, shown_at};
use crate::cli::admin::act::ActArgs;
use crate::cli::admin::ctx::AdminCtx;
use crate::cli::admin::output::CommandOutput;
use crate::cli::admin::refuse;
use crate::cli::admin::values::{Odds, When, usdc_text};
use crate::start_error::StartError;

/// The terms and the listing of a new market.
#[derive(Debug, Args)]
pub struct CreateMarketArgs {
    /// The question
    #[arg(long)]
    question: String,
    /// The name of an outcome. Repeat it 2 to 250 times
    #[arg(long = "outcome", value_name = "NAME", required = true)]
    outcomes: Vec<String>,
    /// The opening odds of the outcomes, such as 0.6,0.4. They must sum to exactly 1 [default: all equal]
    #[arg(long, value_name = "LIST")]
    opening_odds: Option<Odds>,
    /// The liquidity b of the market maker: the larger it is, the less a trade moves the price
    #[arg(long, value_name = "USDC")]
    liquidity: Usdc,
    /// The fee on trades in hundredths of a percent
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=1000))]
    fee_bps: u16,
    /// The end of trading: a time such as 2027-01-01T00:00:00Z, or a time from now such as 30d
    #[arg(long, value_name = "ISO8601")]
    end_time: When,
    /// The thread of the market, which also sets its organization and its partner
    #[arg(long, value_name = "ID")]
    thread: Option<ThreadId>,
    /// The chapter of the thread
    #[arg(long, value_name = "ID")]
    chapter: Option<Uuid>,
    /// The category, such as sports [default: the thread's]
    #[arg(long)]
    category: Option<String>,
    /// A tag. May be repeated [default: the thread's]
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// The description in Markdown
    #[arg(long)]
    description: Option<String>,
    /// The URL of the post that the market is based on
    #[arg(long, value_name = "URL")]
    source_url: Option<String>,
    /// The place among the featured markets, lowest first [default: not featured]
    #[arg(long, value_name = "N")]
    featured: Option<u32>,
    /// Finish an interrupted creation: the id of its error message, with the same arguments
    #[arg(long, value_name = "ID")]
    id: Option<MarketId>,
    #[command(flatten)]
    act: ActArgs,
}

pub async fn create(args: CreateMarketArgs, admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    let ctx = admin.online().await?;
    let resolver = args.act.acting(admin, &ctx, Senders::Roles(&[Role::Resolver]), None).await?;
    let chapter = args.chapter.map(|id| id.to_string());
    let (thread, chapter) = app::catalog::place_of_market(&ctx, args.thread, chapter).await?;
    let opening_odds = args.opening_odds.map(|odds| odds.0).unwrap_or_default();
    let needed =
        markets::funding_ceil(args.liquidity, args.outcomes.len(), &opening_odds).ok_or_else(|| {
            refuse(ErrorCode::ValidationFailed, "The liquidity is too large: no market can have this much.")
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
    markets::check_question(&ctx, &new).await?;
    // A repeated command shows a market that is on chain. There is nothing left to print.
    if args.act.is_printed() && markets::is_on_chain(&ctx, id).await? {
        return Err(StartError::InvalidState("the market is on chain already".to_owned()));
    }
    // Only test chains have USDC that the deployer can mint.
    let minter = match ctx.config.environment {
        Environment::Test => admin.secrets()?.roles.deployer().ok(),
        Environment::Live => None,
    };
    let funded = markets::fund(&ctx, resolver.sender(), minter.as_ref(), needed).await?;
    if funded.balance < funded.needed {
        return Err(refuse(
            ErrorCode::InsufficientBalance,
            format!(
                "The market takes up to {} USDC from the resolver {}, which has {} USDC.",
                usdc_text(funded.needed),
                resolver.address(),
                usdc_text(funded.balance)
            ),
        ));
    }
    let (end_time, title) = (new.end_time, format!("Create the market {:?}", new.question));
    // The id must be repeated: a new id would create a second market.
    let created = markets::create(&ctx, resolver.sender(), new).await.map_err(|error| {
        let again = format!("run it again with --id {id} --end-time {end_time} and the same arguments");
        let detail = format!("{} To finish this creation, {again}.", error.detail);
        error.detail(detail)
    })?;
    match (funded.approval, created.sent) {
        (ActResult::Printed(approve), Some(ActResult::Printed(create))) => {
            Ok(resolver.print(&ctx, &title, &[approve, create], market_id(id)))
        }
        _ => {
            let block = ctx.chain.head().await?.number;
            shown_at(admin, id, block).await.map(CommandOutput::One)
        }
    }
}
