//! The pages for frames of other sites.

use axum::extract::State;
use axum::response::Response;

use super::chart::Chart;
use super::face::MarketFace;
use super::oembed::discovery;
use super::page::{self, ChartPart, Head, MarketPage, Theme, ThreadPage};
use super::thread_face::ThreadFace;
use crate::http::{KeptBodies, PathId, Shared};
use crate::markdown;
use crate::public::market_record::next_end;
use crate::public::markets::get_market;
use crate::public::query::{Asked, Parameters, Query};
use crate::public::{Code, Refusal};

/// `theme`.
#[derive(Debug)]
pub struct PageQuery {
    theme: Theme,
}

impl Parameters for PageQuery {
    const NAMES: &'static [&'static str] = &["theme"];

    fn read(asked: &mut Asked<'_, '_>) -> Option<Self> {
        Some(Self { theme: asked.word("theme", Theme::WORDS)? })
    }
}

/// `GET /embed/markets/{id}`.
pub async fn market(
    State(app): State<Shared>,
    PathId(id): PathId,
    query: Query<PageQuery>,
) -> Result<Response, Refusal> {
    let theme = query.parameters.theme;
    let read = async || {
        let (market, outcomes) = get_market(&app, &id).await?;
        let now = app.ctx.now();
        let face = MarketFace::new(&market, &outcomes, now);
        let chart = Chart::read(&app, &market, &outcomes, &face).await?.map(|chart| ChartPart::new(&chart));
        let prices = face.outcomes.iter().map(|it| format!("{} {}", it.label, it.percent));
        let description = format!("{}. {}.", prices.collect::<Vec<_>>().join(", "), face.standing);
        let head = Head::new(theme, face.question.clone(), description);
        let head = addressed(&app, head, &format!("/markets/{}", face.id), &face.version());
        let about = markdown::about(market.description.as_deref());
        let page = MarketPage { head, market: face, chart, about };
        Ok::<_, Refusal>((page::rendered(&page)?, next_end(std::iter::once(&market), now)))
    };
    found(KeptBodies::for_a_moment(&app, &query.name, read).await, theme)
}

/// `GET /embed/threads/{id}`.
pub async fn thread(
    State(app): State<Shared>,
    PathId(id): PathId,
    query: Query<PageQuery>,
) -> Result<Response, Refusal> {
    let theme = query.parameters.theme;
    let read = async || {
        let (thread, until) = ThreadFace::read(&app, &id).await?;
        let description = format!("{}, {} traded.", thread.count(), thread.volume);
        let head = Head::new(theme, thread.title.clone(), description);
        let head = addressed(&app, head, &format!("/threads/{}", thread.id), &thread.version());
        let about = markdown::about(thread.description.as_deref());
        let page = ThreadPage { head, thread, app_url: app.app_url.clone(), about };
        Ok::<_, Refusal>((page::rendered(&page)?, until))
    };
    found(KeptBodies::for_a_moment(&app, &query.name, read).await, theme)
}

/// `head` with the addresses of what stands at `path` in the web application.
fn addressed(app: &Shared, head: Head, path: &str, version: &str) -> Head {
    let base = &app.app_url;
    let url = format!("{base}{path}");
    Head { card: card_address(app, path, version), oembed: discovery(base, &url), url, ..head }
}

/// Where the card of what stands at `path` in the web application is, in this version of it.
pub fn card_address(app: &Shared, path: &str, version: &str) -> String {
    format!("{}/cards{path}/{version}.png", app.app_url)
}

fn found(page: Result<crate::http::Stable, Refusal>, theme: Theme) -> Result<Response, Refusal> {
    match page {
        Ok(page) => Ok(page::answer(page)),
        Err(refusal) if matches!(refusal.code(), Code::MarketNotFound | Code::ThreadNotFound) => {
            page::missing(theme)
        }
        Err(refusal) => Err(refusal),
    }
}
