//! `foretell admin market`.

mod create;
mod end;
mod update;

use std::time::Duration;

use app::markets::{self, Move};
use app::roles::ActResult;
use chain::Receipt;
use clap::{Args, Subcommand};
use domain::ids::{MarketId, ThreadId};
use domain::market::MarketStatus;
use domain::page::{Page, PagePosition};
use domain::{Timestamp, Wad};
use presentation::numbers;
use serde_json::{Value, json};
use store::markets::{Market, MarketListFilter, Outcome};

use super::act::ActArgs;
use super::consent::{ConsentArgs, WithoutTerminal};
use super::ctx::AdminCtx;
use super::missing;
use super::output::{CommandOutput, OutputRecord};
use super::subject::{self, Subject};
use super::values::{BadValue, PageArgs, usdc_text, wad_text};
use crate::start_error::StartError;

/// The maximum time that `show` waits for the chain. It works without it.
const CHAIN_TIMEOUT: Duration = Duration::from_secs(3);

/// Commands for markets.
#[derive(Debug, Subcommand)]
pub enum MarketCommand {
    /// Create a market on chain. The resolver pays its funding, in development with test USDC
    Create(Box<create::CreateMarketArgs>),
    /// Change only the given values of a market's listing. An empty text removes the old one
    Update(Box<update::UpdateArgs>),
    /// Stop trading. Acts as the guardian or the resolver
    Freeze(MoveArgs),
    /// Resume trading. Acts as the guardian or the resolver
    Unfreeze(MoveArgs),
    /// Open a listed market after the listing delay. Uses any key that is present
    Open(MoveArgs),
    /// Propose the payout of each outcome. Final at once without a veto window. Acts as the resolver
    Resolve(end::ResolveArgs),
    /// Remove a proposed result or cancel. The market stays frozen. Acts as the guardian
    Veto(VetoArgs),
    /// Make a proposed result or cancel final after the veto window. Uses any key that is present
    Finalize(end::FinalizeArgs),
    /// Cancel a market: every token pays its reference price. Acts as the resolver
    Cancel(end::CancelArgs),
    /// List markets on chain, newest first
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

/// A move of one market.
#[derive(Debug, Args)]
pub struct MoveArgs {
    #[command(flatten)]
    market: Subject<subject::Market>,
    #[command(flatten)]
    act: ActArgs,
}

/// A market whose proposal is removed.
#[derive(Debug, Args)]
pub struct VetoArgs {
    #[command(flatten)]
    market: Subject<subject::Market>,
    #[command(flatten)]
    act: ActArgs,
    #[command(flatten)]
    consent: ConsentArgs,
}

/// Filters of the list.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only this status: OPEN, FROZEN, RESOLVED or CANCELLED. May be repeated
    #[arg(long, value_parser = status)]
    status: Vec<MarketStatus>,
    /// Only those of this thread
    #[arg(long, value_name = "ID")]
    thread: Option<ThreadId>,
    /// Only those of this category
    #[arg(long)]
    category: Option<String>,
    /// Only those whose question contains this text
    #[arg(long)]
    text: Option<String>,
    #[command(flatten)]
    page: PageArgs,
}

fn status(text: &str) -> Result<MarketStatus, BadValue> {
    // Operators type statuses in either case.
    text.to_uppercase().parse().map_err(|_| BadValue::new("OPEN, FROZEN, RESOLVED or CANCELLED"))
}

pub async fn run(command: MarketCommand, admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    match command {
        MarketCommand::List(args) => list(args, admin).await,
        MarketCommand::Show(one) => show(one.market.0, admin).await.map(CommandOutput::One),
        MarketCommand::Create(args) => create::create(*args, admin).await,
        MarketCommand::Update(args) => update::update(*args, admin).await.map(CommandOutput::One),
        MarketCommand::Freeze(args) => make(admin, args.market.0, &args.act, Move::FREEZE).await,
        MarketCommand::Unfreeze(args) => make(admin, args.market.0, &args.act, Move::Unfreeze).await,
        MarketCommand::Open(args) => make(admin, args.market.0, &args.act, Move::Open).await,
        MarketCommand::Veto(args) => veto(args, admin).await,
        MarketCommand::Resolve(args) => end::resolve(args, admin).await,
        MarketCommand::Finalize(args) => end::finalize(args, admin).await,
        MarketCommand::Cancel(args) => end::cancel(args, admin).await,
    }
}

/// Makes a move and returns the market, or prints the move's transaction.
async fn make(
    admin: &AdminCtx,
    id: MarketId,
    act: &ActArgs,
    wanted: Move,
) -> Result<CommandOutput, StartError> {
    let (market, _) = find(admin, id).await?;
    let ctx = admin.online().await?;
    let acting = act.acting(admin, &ctx, wanted.senders(), None).await?;
    let title = title_of(&wanted, &market);
    match markets::make_move(&ctx, acting.sender(), id, wanted).await? {
        ActResult::Mined(receipt) => followed(admin, id, receipt).await.map(CommandOutput::One),
        ActResult::Printed(call) => Ok(acting.print(&ctx, &title, &[call], market_id(id))),
    }
}

/// The title of a printed transaction.
fn title_of(wanted: &Move, market: &Market) -> String {
    let verb = match wanted {
        Move::Freeze { .. } => "Freeze",
        Move::Unfreeze => "Unfreeze",
        Move::Open => "Open",
        Move::Resolve { payouts, .. } => {
            let payouts: Vec<String> = payouts.iter().map(|payout| wad_text(Wad(*payout))).collect();
            return format!("Propose the payouts {} of the market {:?}", payouts.join(", "), market.question);
        }
        Move::ProposeCancel { .. } => "Propose the cancel of",
        Move::Veto => "Veto the proposal of",
        Move::Finalize => "Finalize the proposal of",
    };
    format!("{verb} the market {:?}", market.question)
}

/// The additional member of a market's printed transactions.
fn market_id(id: MarketId) -> OutputRecord {
    OutputRecord::new().with("marketId", id)
}

async fn veto(args: VetoArgs, admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    let id = args.market.0;
    let (market, _) = find(admin, id).await?;
    if !args.act.is_printed() {
        // A script that stops a false result must not be blocked by a prompt.
        let act = format!("Removes the proposed result or cancel of {:?}.", market.question);
        args.consent.obtain(&act, &id.to_string(), WithoutTerminal::Proceed)?;
    }
    make(admin, id, &args.act, Move::Veto).await
}

async fn show(id: MarketId, admin: &AdminCtx) -> Result<OutputRecord, StartError> {
    let (market, outcomes) = find(admin, id).await?;
    let record = record(&market, &outcomes);
    match market.status {
        MarketStatus::Cancelled => {
            Ok(record.with("cancelReason", markets::cancel_reason(&admin.ctx()?, id).await?))
        }
        MarketStatus::Open | MarketStatus::Frozen if market.chain_market_id.is_some() => {
            // The market must be shown even if the chain does not answer.
            let proposal = tokio::time::timeout(CHAIN_TIMEOUT, proposal_of(id, admin)).await;
            Ok(match proposal {
                Ok(Ok(proposal)) => record.with("proposal", proposal),
                _ => record,
            })
        }
        _ => Ok(record),
    }
}

/// Returns the market's pending proposal from the chain; null if there is none.
async fn proposal_of(id: MarketId, admin: &AdminCtx) -> Result<Value, StartError> {
    let proposal = markets::proposal(&admin.online().await?, id).await?;
    Ok(proposal.map_or(Value::Null, |proposal| {
        let payouts = proposal.payouts_wad.iter().map(|payout| wad_text(Wad(*payout)));
        json!({
            "kind": if proposal.is_cancel { "cancel" } else { "result" },
            "payouts": payouts.collect::<Vec<_>>(),
            "finalizableAt": Timestamp::from_s(proposal.finalizable_at_s),
        })
    }))
}

/// Returns the market after the running service's sync has read the block of the receipt.
async fn followed(admin: &AdminCtx, id: MarketId, receipt: Receipt) -> Result<OutputRecord, StartError> {
    shown_at(admin, id, receipt.block_number)
        .await
        .map(|record| record.with("txHash", receipt.tx_hash.to_string()))
}

async fn shown_at(admin: &AdminCtx, id: MarketId, block: u64) -> Result<OutputRecord, StartError> {
    let synced = admin.follow(block).await?;
    let (market, outcomes) = find(admin, id).await?;
    let record = record(&market, &outcomes).with("synced", synced);
    Ok(if synced {
        record
    } else {
        record.with("why", "The transaction is on chain, but the sync of the service has not read it yet.")
    })
}

async fn find(admin: &AdminCtx, id: MarketId) -> Result<(Market, Vec<Outcome>), StartError> {
    let found = admin
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

async fn list(args: ListArgs, admin: &AdminCtx) -> Result<CommandOutput, StartError> {
    let after = match args.page.after {
        Some(id) => {
            let (market, _) = find(admin, MarketId(id)).await?;
            Some(PagePosition { created_at: market.created_at, id: market.id.to_string() })
        }
        None => None,
    };
    let filter = MarketListFilter {
        statuses: args.status,
        category: args.category,
        thread_id: args.thread,
        text: args.text,
        ..MarketListFilter::default()
    };
    let limit = args.page.limit;
    let listed = admin
        .store
        .read((filter, Page { limit, after }), |tx, (filter, page)| {
            Box::pin(store::markets::list(tx, filter, page))
        })
        .await;
    let listed = listed?;
    let records = listed.iter().take(limit as usize).map(|(market, outcomes)| record(market, outcomes));
    Ok(CommandOutput::Many(records.collect(), &["id", "status", "question", "endTime", "tradeCount"]))
}

fn record(market: &Market, outcomes: &[Outcome]) -> OutputRecord {
    let outcomes: Vec<Value> = outcomes.iter().map(|outcome| outcome_value(market, outcome)).collect();
    OutputRecord::new()
        .with("id", market.id)
        .with("question", &market.question)
        .with("status", market.status)
        .with("onChain", market.chain_market_id.is_some())
        .with("chainMarketId", market.chain_market_id)
        .with("chainId", market.chain_id)
        .with("contractAddress", market.contract_address)
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
        .with("resolutionTxHash", market.resolution_tx_hash)
        .with("createdAt", market.created_at)
}

fn outcome_value(market: &Market, outcome: &Outcome) -> Value {
    // A market has no prices before the sync has read its creation.
    let priced = market.chain_market_id.map(|_| numbers::of_outcome(market, outcome));
    json!({
        "index": outcome.index,
        "label": outcome.label,
        "probability": priced.map(|probability| format!("{probability:.4}")),
        "supply": wad_text(outcome.supply()),
        "volumeUsdc": usdc_text(outcome.volume),
    })
}
