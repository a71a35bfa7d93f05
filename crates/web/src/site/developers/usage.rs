//! The overview for developers: usage over time, the keys with their limits, and a quick start.

use app::keys::list_own;
use app::usage;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use domain::Usdc;
use domain::usage::{GraphRange, UsagePoint};
use http_kit::{Parameters, Problem, Query, RawQuery, Shared};
use presentation::{Bars, amounts};

use super::caller_of;
use crate::site::markets::ListLink;
use crate::site::session::to_sign_in;
use crate::site::shell::{Reader, Section, Shell, answer, render};

/// The ranges that the page offers: their word, their name, and the name of one step.
const RANGES: [(&str, GraphRange, &str, &str); 3] = [
    ("day", GraphRange::Day, "24 hours", "an hour"),
    ("week", GraphRange::Week, "7 days", "6 hours"),
    ("month", GraphRange::Month, "30 days", "a day"),
];

/// The parameter `range`.
#[derive(Debug)]
pub struct OverviewQuery(GraphRange);

impl Parameters for OverviewQuery {
    const NAMES: &'static [&'static str] = &["range"];

    fn read(given: &mut RawQuery<'_>) -> Option<Self> {
        Some(Self(given.word("range", &RANGES.map(|(word, range, ..)| (word, range)))?))
    }
}

/// A graph and its numbers in words.
#[derive(Debug)]
struct Graph {
    id: &'static str,
    title: &'static str,
    total: String,
    /// The most in one step.
    most: String,
    colour: usize,
    bars: Bars,
}

impl Graph {
    fn new(
        (id, title, colour): (&'static str, &'static str, usize),
        points: &[UsagePoint],
        value: impl Fn(&UsagePoint) -> u64,
        text: impl Fn(u64) -> String,
    ) -> Self {
        let values: Vec<u64> = points.iter().map(value).collect();
        let total = values.iter().fold(0_u64, |sum, value| sum.saturating_add(*value));
        let most = values.iter().copied().max().unwrap_or_default();
        Self { id, title, total: text(total), most: text(most), colour, bars: Bars::new(&values) }
    }
}

/// A step of the graphs, in the table.
#[derive(Debug)]
struct StepLine {
    start: String,
    requests: String,
    rejected: String,
    trades: String,
    volume: String,
}

impl StepLine {
    fn new(point: &UsagePoint) -> Self {
        Self {
            start: amounts::minute(point.start),
            requests: amounts::grouped(point.requests),
            rejected: amounts::grouped(point.rejected),
            trades: amounts::grouped(point.trades),
            volume: amounts::dollars(point.volume),
        }
    }
}

/// A key and what is left of its limits.
#[derive(Debug)]
struct KeyLine {
    id: String,
    name: String,
    spent: String,
    left: String,
    daily: String,
    requests: String,
    rejected: String,
    /// The latency that 95% of the requests did not exceed.
    latency: String,
    last_used: String,
}

#[derive(Debug, Template)]
#[template(path = "site/developers/overview.html")]
struct OverviewPage {
    shell: Shell,
    ranges: Vec<ListLink>,
    /// The length of a step, in words.
    step: &'static str,
    graphs: Vec<Graph>,
    steps: Vec<StepLine>,
    keys: Vec<KeyLine>,
    per_minute: String,
    base_url: String,
    /// The beginning and the end of the person's newest key, as examples show it.
    example_key: Option<String>,
}

/// `GET /developers`.
pub async fn page(
    State(app): State<Shared>,
    reader: Reader,
    Query(OverviewQuery(range)): Query<OverviewQuery>,
) -> Result<Response, Problem> {
    let Some(person) = &reader.person else { return to_sign_in(&app, &reader.path) };
    let points = usage::history(&app.ctx, person.user_id(), range).await?;
    let keys = list_own(&app.ctx, person.user_id()).await?;
    let prefix = app.ctx.config.environment.prefix();
    let example_key =
        keys.iter().rev().find_map(|key| key.hint.clone()).map(|hint| format!("{prefix}…{hint}"));
    let mut lines = Vec::with_capacity(keys.len());
    for key in keys {
        let caller = caller_of(person, key);
        let used = usage::of_key(&app.ctx, &caller).await?;
        let day = &used.requests.day;
        lines.push(KeyLine {
            id: caller.key.id.to_string(),
            name: caller.key.name.clone(),
            spent: amounts::dollars(used.spend.last_24h),
            left: amounts::dollars(used.spend.remaining),
            daily: amounts::dollars(caller.limits().daily),
            requests: amounts::grouped(day.latency.count()),
            rejected: amounts::grouped(day.rate_limit_rejections() + day.auth_failures()),
            latency: day.latency.percentile_ms(95).map_or_else(|| "none".to_owned(), |ms| format!("{ms} ms")),
            last_used: used.last_used_at.map_or_else(|| "Never".to_owned(), amounts::minute),
        });
    }
    let link = |(word, of, label, _): &(&str, GraphRange, &str, &str)| ListLink {
        label: (*label).to_owned(),
        url: format!("/developers?range={word}"),
        is_current: *of == range,
    };
    let page = OverviewPage {
        shell: Shell::new(&reader, Section::None, "Developers"),
        ranges: RANGES.iter().map(link).collect(),
        step: RANGES.iter().find(|(_, of, ..)| *of == range).map_or("", |(.., step)| step),
        graphs: vec![
            Graph::new(("g-req", "Requests", 0), &points, |it| it.requests, amounts::grouped),
            Graph::new(("g-rej", "Rejected requests", 1), &points, |it| it.rejected, amounts::grouped),
            Graph::new(("g-tra", "Completed trades", 2), &points, |it| it.trades, amounts::grouped),
            Graph::new(
                ("g-vol", "Volume", 3),
                &points,
                |it| it.volume.atomic(),
                |atomic| amounts::dollars(Usdc::from_atomic(atomic)),
            ),
        ],
        steps: points.iter().filter(|it| **it != UsagePoint::at(it.start)).map(StepLine::new).collect(),
        keys: lines,
        per_minute: amounts::grouped(u64::from(
            person.user().tier.limits(&domain::key::LimitOverrides::default()).requests_per_minute,
        )),
        base_url: app.app_url.clone(),
        example_key,
    };
    Ok(answer(render(&page)?))
}
