//! The page of one market, with every act that its state allows.

use std::time::Duration;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use chain::{MarketSchedule, Proposal};
use domain::ids::MarketId;
use domain::market::MarketStatus;
use domain::{Timestamp, Wad};
use http_kit::{PathId, Problem, Shared};
use presentation::{amounts, market_face, numbers};
use store::markets::{Market, Outcome};

use super::markets::status_of;
use super::overview::age;
use super::{Admin, Area};
use crate::site::shell::{Reader, Section, Shell, answer, render};

/// The time that the chain has to answer. The page is shown without it.
const CHAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// An outcome with its price and what all its tokens would pay.
#[derive(Debug)]
struct OutcomeLine {
    index: u8,
    label: String,
    price: String,
    tokens: String,
    volume: String,
    /// The payout of one token, of the proposal or of the result.
    payout: Option<String>,
}

/// A proposal that has been neither vetoed nor finalized.
#[derive(Debug)]
struct ProposalLine {
    kind: &'static str,
    from: String,
    from_iso: String,
    /// The time until the end of the veto window. `None` if it is over.
    left: Option<String>,
}

/// What the chain says about the market.
#[derive(Debug)]
struct ScheduleLine {
    cancellable: Option<String>,
    result_due: Option<String>,
    is_held: bool,
    proposal: Option<ProposalLine>,
}

#[derive(Debug, Template)]
#[template(path = "site/admin/market.html")]
struct MarketPage {
    shell: Shell,
    area: Area,
    id: String,
    path: String,
    question: String,
    status: (&'static str, &'static str),
    is_open: bool,
    has_ended: bool,
    outcomes: Vec<OutcomeLine>,
    liquidity: String,
    fee: String,
    volume: String,
    trades: u64,
    ends: String,
    frozen: Option<String>,
    number: Option<u64>,
    source: Option<String>,
    quarantined: Option<String>,
    /// `None` if the market has ended, or if the chain does not answer.
    schedule: Option<ScheduleLine>,
    description: String,
    category: String,
    tags: String,
    source_url: String,
    thread: String,
    chapter: String,
    featured: String,
}

/// `GET /admin/markets/{id}`.
pub async fn page(
    State(app): State<Shared>,
    _: Admin,
    reader: Reader,
    PathId(id): PathId,
) -> Result<Response, Problem> {
    let id: MarketId = id.parse().map_err(|_| Problem::not_found())?;
    let found = app.ctx.store.read(id, |tx, id| {
        Box::pin(async move {
            Ok((store::markets::find(tx, *id).await?, store::markets::outcomes(tx, *id).await?))
        })
    });
    let (market, outcomes) = found.await?;
    let market = market.ok_or_else(Problem::not_found)?;
    let has_ended = matches!(market.status, MarketStatus::Resolved | MarketStatus::Cancelled);
    let schedule = match market.chain_market_id.filter(|_| !has_ended) {
        Some(number) => tokio::time::timeout(CHAIN_TIMEOUT, app.ctx.chain.schedule(number))
            .await
            .ok()
            .and_then(Result::ok),
        None => None,
    };
    let page = MarketPage::new(&reader, &market, &outcomes, schedule.as_ref(), app.ctx.now());
    Ok(answer(render(&page)?))
}

impl MarketPage {
    fn new(
        reader: &Reader,
        market: &Market,
        outcomes: &[Outcome],
        schedule: Option<&MarketSchedule>,
        now: Timestamp,
    ) -> Self {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let proposal = schedule.and_then(|schedule| schedule.proposal.as_ref()).filter(|it| !it.is_cancel);
        Self {
            shell: Shell::new(reader, Section::None, market.question.clone()),
            area: Area::Markets,
            id: market.id.to_string(),
            path: format!("/admin/markets/{}", market.id),
            question: market.question.clone(),
            status: status_of(market.status),
            is_open: market.status == MarketStatus::Open,
            has_ended: matches!(market.status, MarketStatus::Resolved | MarketStatus::Cancelled),
            outcomes: outcomes.iter().map(|outcome| OutcomeLine::new(market, outcome, proposal)).collect(),
            liquidity: amounts::dollars(market.liquidity),
            fee: format!("{}%", numbers::decimal(&market.fee_bps, 2)),
            volume: amounts::dollars(market.volume),
            trades: market.trade_count,
            ends: amounts::minute(market.end_time),
            frozen: market.frozen_at.map(amounts::minute),
            number: market.chain_market_id,
            source: market.resolution_source.clone(),
            quarantined: market.quarantined_at.map(amounts::minute),
            schedule: schedule.map(|schedule| ScheduleLine::new(schedule, now)),
            description: text(&market.description),
            category: text(&market.category),
            tags: market.tags.join(", "),
            source_url: text(&market.source_url),
            thread: market.thread_id.map(|id| id.to_string()).unwrap_or_default(),
            chapter: text(&market.chapter_id),
            featured: market.featured_position.map(|place| place.to_string()).unwrap_or_default(),
        }
    }
}

impl OutcomeLine {
    fn new(market: &Market, outcome: &Outcome, proposal: Option<&Proposal>) -> Self {
        let index = usize::from(outcome.index);
        let settled = market.payouts.as_ref().and_then(|payouts| payouts.get(index).copied());
        let proposed = proposal.and_then(|proposal| proposal.payouts_wad.get(index).copied()).map(Wad);
        let price = numbers::of_outcome(market, outcome);
        Self {
            index: outcome.index,
            label: outcome.label.clone(),
            price: format!("{}%", numbers::decimal(&market_face::ppm(price), 4)),
            tokens: amounts::tokens(outcome.supply()),
            volume: amounts::dollars(outcome.volume),
            payout: settled.or(proposed).map(|payout| numbers::decimal(&payout.0, 18)),
        }
    }
}

impl ScheduleLine {
    fn new(schedule: &MarketSchedule, now: Timestamp) -> Self {
        let minute = |at_s| amounts::minute(Timestamp::from_s(at_s));
        Self {
            cancellable: schedule.cancellable_at_s.map(minute),
            // Years ahead: the deployment has no deadline.
            result_due: (schedule.result_due_at_s < u64::from(u32::MAX))
                .then(|| minute(schedule.result_due_at_s)),
            is_held: schedule.is_held,
            proposal: schedule.proposal.as_ref().map(|proposal| ProposalLine::new(proposal, now)),
        }
    }
}

impl ProposalLine {
    fn new(proposal: &Proposal, now: Timestamp) -> Self {
        let from = Timestamp::from_s(proposal.finalizable_at_s);
        Self {
            kind: if proposal.is_cancel { "cancel" } else { "result" },
            from: amounts::minute(from),
            from_iso: from.to_string(),
            left: (from > now).then(|| age(now, from)),
        }
    }
}
