//! `foretell admin market`.

mod create;
mod end;
mod update;

use app::markets;
use chain::{Receipt, Signer};
use clap::{Args, Subcommand};
use domain::ids::{MarketId, ThreadId};
use domain::market::MarketStatus;
use domain::page::{Page, Position};
use serde_json::{Value, json};
use store::StoreError;
use store::markets::{ListFilter, Market, Outcome};

use super::ctx::AdminCtx;
use super::missing;
use super::output::{Answer, Record};
use super::subject::{self, Subject};
use super::values::{BadValue, PageArgs, usdc_text, wad_text};
use crate::numbers;
use crate::run::StartError;
use crate::secrets::{Roles, SecretsError};

/// What can be done with markets.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Create a market on chain; the resolver pays its funding, with test money in development
    Create(Box<create::CreateArgs>),
    /// Change what is given of how a market is listed and leave the rest; an empty text takes the old one away
    Update(Box<update::UpdateArgs>),
    /// Stop trading for the moment
    Freeze(One),
    /// Let trading go on
    Unfreeze(One),
    /// Open a market that was listed first, once the listing delay is over
    Open(One),
    /// Propose what each outcome pays; final at once if the contracts have no veto window
    Resolve(end::ResolveArgs),
    /// Make a resolution final whose veto window is over
    Finalize(end::FinalizeArgs),
    /// Cancel a market: every holder is refunded what the position cost
    Cancel(end::CancelArgs),
    /// List markets on chain, the newest first
    List(ListArgs),
    /// Show a market
    Show(One),
}

/// One market.
#[derive(Debug, Args)]
pub struct One {
    #[command(flatten)]
    market: Subject<subject::Market>,
}

/// Which markets are listed.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// OPEN, FROZEN, RESOLVED or CANCELLED; may be given more than once
    #[arg(long, value_parser = status)]
    status: Vec<MarketStatus>,
    /// Of this thread
    #[arg(long, value_name = "ID")]
    thread: Option<ThreadId>,
    /// Of this category
    #[arg(long)]
    category: Option<String>,
    /// Whose question holds this text
    #[arg(long)]
    text: Option<String>,
    #[command(flatten)]
    page: PageArgs,
}

fn status(text: &str) -> Result<MarketStatus, BadValue> {
    text.to_uppercase().parse().map_err(|_| BadValue::new("OPEN, FROZEN, RESOLVED or CANCELLED"))
}

pub async fn run(verb: Verb, admin: &AdminCtx) -> Result<Answer, StartError> {
    let one = match verb {
        Verb::List(args) => return list(args, admin).await,
        Verb::Show(one) => show(one.market.0, admin).await,
        Verb::Create(args) => create::create(*args, admin).await,
        Verb::Update(args) => update::update(*args, admin).await,
        Verb::Freeze(one) => {
            let (ctx, signer) = with_role(admin, guardian_or_resolver).await?;
            followed(admin, one.market.0, markets::freeze(&ctx, &signer, one.market.0).await?).await
        }
        Verb::Unfreeze(one) => {
            let (ctx, signer) = with_role(admin, guardian_or_resolver).await?;
            followed(admin, one.market.0, markets::unfreeze(&ctx, &signer, one.market.0).await?).await
        }
        Verb::Open(one) => {
            let (ctx, signer) = with_role(admin, Roles::resolver).await?;
            followed(admin, one.market.0, markets::open(&ctx, &signer, one.market.0).await?).await
        }
        Verb::Resolve(args) => end::resolve(args, admin).await,
        Verb::Finalize(args) => end::finalize(args, admin).await,
        Verb::Cancel(args) => end::cancel(args, admin).await,
    };
    one.map(Answer::One)
}

async fn with_role(
    admin: &AdminCtx,
    role: impl FnOnce(&Roles) -> Result<Signer, SecretsError>,
) -> Result<(app::Ctx, Signer), StartError> {
    let signer = role(&admin.secrets()?.roles)?;
    Ok((admin.online().await?, signer))
}

/// The resolver may freeze too: where the guardian's key is kept elsewhere, the resolver's does.
fn guardian_or_resolver(roles: &Roles) -> Result<Signer, SecretsError> {
    roles.guardian().or_else(|error| if roles.guardian.is_none() { roles.resolver() } else { Err(error) })
}

async fn show(id: MarketId, admin: &AdminCtx) -> Result<Record, StartError> {
    let (market, outcomes) = find(admin, id).await?;
    let record = record(&market, &outcomes);
    if market.status != MarketStatus::Cancelled {
        return Ok(record);
    }
    Ok(record.with("cancelReason", markets::cancel_reason(&admin.ctx()?, id).await?))
}

/// The market once the running service's sync has seen what was done to it.
async fn followed(admin: &AdminCtx, id: MarketId, receipt: Receipt) -> Result<Record, StartError> {
    shown_at(admin, id, receipt.block_number)
        .await
        .map(|record| record.with("txHash", receipt.tx_hash.to_string()))
}

async fn shown_at(admin: &AdminCtx, id: MarketId, block: u64) -> Result<Record, StartError> {
    let synced = admin.follow(block).await?;
    let (market, outcomes) = find(admin, id).await?;
    let record = record(&market, &outcomes).with("synced", synced);
    Ok(if synced {
        record
    } else {
        record.with("why", "The chain has it, but no service's sync has read it yet.")
    })
}

async fn find(admin: &AdminCtx, id: MarketId) -> Result<(Market, Vec<Outcome>), StartError> {
    let found: Result<_, StoreError> = admin
        .store
        .read(id, |tx, id| {
            Box::pin(async move {
                Ok((store::markets::find(tx, *id).await?, store::markets::outcomes(tx, *id).await?))
            })
        })
        .await;
    let (market, outcomes) = found?;
    Ok((market.ok_or_else(|| missing("market"))?, outcomes))
}

async fn list(args: ListArgs, admin: &AdminCtx) -> Result<Answer, StartError> {
    let after = match args.page.after {
        Some(id) => {
            let (market, _) = find(admin, MarketId(id)).await?;
            Some(Position { created_at: market.created_at, id: market.id.to_string() })
        }
        None => None,
    };
    let filter = ListFilter {
        statuses: args.status,
        category: args.category,
        thread_id: args.thread,
        text: args.text,
        ..ListFilter::default()
    };
    let limit = args.page.limit;
    let listed: Result<Vec<_>, StoreError> = admin
        .store
        .read((filter, Page { limit, after }), |tx, (filter, page)| {
            Box::pin(store::markets::list(tx, filter, page))
        })
        .await;
    let listed = listed?;
    let records = listed.iter().take(limit as usize).map(|(market, outcomes)| record(market, outcomes));
    Ok(Answer::Many(records.collect(), &["id", "status", "question", "endTime", "tradeCount"]))
}

fn record(market: &Market, outcomes: &[Outcome]) -> Record {
    let outcomes: Vec<Value> = outcomes.iter().map(|outcome| outcome_value(market, outcome)).collect();
    Record::new()
        .with("id", market.id)
        .with("question", &market.question)
        .with("status", market.status)
        .with("onChain", market.chain_market_id.is_some())
        .with("chainMarketId", market.chain_market_id)
        .with("chainId", market.chain_id)
        .with("contractAddress", &market.contract_address)
        .with("outcomes", outcomes)
        .with("category", &market.category)
        .with("tags", &market.tags)
        .with("description", &market.description)
        .with("sourceUrl", &market.source_url)
        .with("featured", market.featured_position)
        .with("threadId", market.thread_id)
        .with("organizationId", market.organization_id)
        .with("partnerId", market.partner_id)
        .with("chapterId", &market.chapter_id)
        .with("liquidityUsdc", usdc_text(market.liquidity))
        .with("feeBps", market.fee_bps)
        .with("totalVolumeUsdc", usdc_text(market.volume))
        .with("tradeCount", market.trade_count)
        .with("endTime", market.end_time)
        .with("frozenAt", market.frozen_at)
        .with("resolvedAt", market.resolved_at)
        .with(
            "payouts",
            market.payouts.as_ref().map(|all| all.iter().map(|wad| wad_text(*wad)).collect::<Vec<_>>()),
        )
        .with("resolutionSource", &market.resolution_source)
        .with("resolutionTxHash", &market.resolution_tx_hash)
        .with("createdAt", market.created_at)
}

fn outcome_value(market: &Market, outcome: &Outcome) -> Value {
    // Before its creation is read from the chain a market has no prices.
    let priced = market.chain_market_id.map(|_| numbers::of_outcome(market, outcome));
    json!({
        "index": outcome.index,
        "label": outcome.label,
        "probability": priced.map(|probability| format!("{probability:.4}")),
        "supply": wad_text(outcome.supply()),
        "volumeUsdc": usdc_text(outcome.volume),
    })
}
