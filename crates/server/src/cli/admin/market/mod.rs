//! `foretell admin market`.

mod create;

use alloy_primitives::U256;
use app::markets;
use chain::{Receipt, Signer};
use clap::{Args, Subcommand};
use domain::ErrorCode;
use domain::ids::{MarketId, ThreadId};
use domain::market::MarketStatus;
use domain::page::{Page, Position};
use serde_json::{Value, json};
use store::StoreError;
use store::markets::{ListFilter, Market, Outcome};

use super::ctx::AdminCtx;
use super::output::{Answer, Record};
use super::values::{BadValue, PageArgs, Payouts, usdc_text, wad_text};
use super::{missing, refuse};
use crate::run::StartError;
use crate::secrets::{Roles, SecretsError};

/// What can be done with markets.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Create a market on chain; the resolver pays its funding, with test money in development
    Create(Box<create::CreateArgs>),
    /// Stop trading for the moment
    Freeze(One),
    /// Let trading go on
    Unfreeze(One),
    /// Open a market that was listed first, once the listing delay is over
    Open(One),
    /// Say what each outcome pays; final at once where the contracts have no veto window
    Resolve(ResolveArgs),
    /// Make a resolution final whose veto window is over
    Finalize(One),
    /// Call the market off: every holder is refunded what the position cost
    Cancel(One),
    /// Markets on chain, the newest first
    List(ListArgs),
    /// A market
    Show(One),
}

/// One market.
#[derive(Debug, Args)]
pub struct One {
    /// The market
    #[arg(long, value_name = "ID")]
    market: MarketId,
}

/// How a market ended.
#[derive(Debug, Args)]
pub struct ResolveArgs {
    /// The market
    #[arg(long, value_name = "ID")]
    market: MarketId,
    #[command(flatten)]
    result: ResultArgs,
    /// Where the result was taken from
    #[arg(long, value_name = "TEXT")]
    source: Option<String>,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct ResultArgs {
    /// The outcome that won, from 0
    #[arg(long, value_name = "N")]
    outcome: Option<u8>,
    /// What one token of each outcome pays, at most 1 in all: 1,0 or 0.5,0.5
    #[arg(long, value_name = "LIST")]
    payouts: Option<Payouts>,
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
        Verb::Show(one) => find(admin, one.market).await.map(|(market, outcomes)| record(&market, &outcomes)),
        Verb::Create(args) => create::create(*args, admin).await,
        Verb::Freeze(one) => {
            let (ctx, signer) = with_role(admin, guardian_or_resolver).await?;
            followed(admin, one.market, markets::freeze(&ctx, &signer, one.market).await?).await
        }
        Verb::Unfreeze(one) => {
            let (ctx, signer) = with_role(admin, guardian_or_resolver).await?;
            followed(admin, one.market, markets::unfreeze(&ctx, &signer, one.market).await?).await
        }
        Verb::Open(one) => {
            let (ctx, signer) = with_role(admin, Roles::resolver).await?;
            followed(admin, one.market, markets::open(&ctx, &signer, one.market).await?).await
        }
        Verb::Finalize(one) => {
            let (ctx, signer) = with_role(admin, Roles::resolver).await?;
            followed(admin, one.market, markets::finalize(&ctx, &signer, one.market).await?).await
        }
        Verb::Cancel(one) => {
            let (ctx, signer) = with_role(admin, Roles::resolver).await?;
            followed(admin, one.market, markets::cancel(&ctx, &signer, one.market).await?).await
        }
        Verb::Resolve(args) => resolve(args, admin).await,
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

async fn resolve(args: ResolveArgs, admin: &AdminCtx) -> Result<Record, StartError> {
    let (_, outcomes) = find(admin, args.market).await?;
    let Payouts(payouts) = payouts_of(args.result, outcomes.len())?;
    let (ctx, signer) = with_role(admin, Roles::resolver).await?;
    let receipt = markets::resolve(&ctx, &signer, args.market, payouts, args.source).await?;
    let record = followed(admin, args.market, receipt).await?;
    let (market, _) = find(admin, args.market).await?;
    if market.status == MarketStatus::Resolved {
        return Ok(record);
    }
    let next = format!("foretell admin market finalize --market {}", market.id);
    Ok(record.with("proposed", true).with("next", format!("once the veto window is over: {next}")))
}

fn payouts_of(result: ResultArgs, outcomes: usize) -> Result<Payouts, StartError> {
    let invalid = |detail: String| refuse(ErrorCode::OutcomeIndexInvalid, detail);
    match result {
        ResultArgs { outcome: Some(outcome), .. } if usize::from(outcome) >= outcomes => {
            Err(invalid(format!("The market has the outcomes 0 to {}.", outcomes.saturating_sub(1))))
        }
        ResultArgs { outcome: Some(outcome), .. } => Ok(Payouts::winner(outcome, outcomes)),
        ResultArgs { payouts: Some(Payouts(payouts)), .. } if payouts.len() == outcomes => {
            Ok(Payouts(payouts))
        }
        _ => Err(invalid(format!("The market has {outcomes} outcomes: give as many payouts."))),
    }
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
    let (cost, quantity): (U256, U256) = (market.cost.0, outcome.quantity.0);
    // Before its creation is read from the chain a market has no prices.
    let priced =
        market.chain_market_id.map(|_| chain::lmsr::probability(cost, quantity, market.liquidity.atomic()));
    json!({
        "index": outcome.index,
        "label": outcome.label,
        "probability": priced.map(|probability| format!("{probability:.4}")),
        "supply": wad_text(outcome.supply()),
        "volumeUsdc": usdc_text(outcome.volume),
    })
}
