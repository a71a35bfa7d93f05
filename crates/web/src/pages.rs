//! The pages for iframes on other sites.

use axum::extract::State;
use axum::response::Response;
use http_kit::{CachedBody, NamedQuery, Parameters, PathId, Problem, PublicCode, RawQuery, Shared};
use presentation::links::{card_url, oembed_url};
use presentation::{Chart, MarketFace, Theme, ThreadFace, markdown, next_end};

use super::page::{self, ChartPart, Head, MarketPage, ThreadPage};
use super::resources::{get_market, get_thread};

/// The parameter `theme`.
#[derive(Debug)]
pub struct PageQuery {
    theme: Theme,
}

impl Parameters for PageQuery {
    const NAMES: &'static [&'static str] = &["theme"];

    fn read(asked: &mut RawQuery<'_>) -> Option<Self> {
        Some(Self { theme: asked.word("theme", Theme::WORDS)? })
    }
}

pub async fn market(
    State(app): State<Shared>,
    PathId(id): PathId,
    query: NamedQuery<PageQuery>,
) -> Result<Response, Problem> {
    let theme = query.parameters.theme;
    let read = async || {
        let (market, outcomes) = get_market(&app, &id).await?;
        let now = app.ctx.now();
        let face = MarketFace::new(&market, &outcomes, now);
        let chart =
            Chart::read(&app.ctx, &market, &outcomes, &face).await?.map(|chart| ChartPart::new(&chart));
        let prices = face.outcomes.iter().map(|it| format!("{} {}", it.label, it.percent));
        let description = format!("{}. {}.", prices.collect::<Vec<_>>().join(", "), face.standing);
        let head = Head::new(theme, face.question.clone(), description);
        let head = addressed(&app, head, &format!("/markets/{}", face.id), &face.version());
        let about = markdown::about(market.description.as_deref());
        let page = MarketPage { head, market: face, chart, about };
        Ok::<_, Problem>((page::rendered(&page)?, next_end(std::iter::once(&market), now)))
    };
    found(app.responses.for_a_moment(&app.ctx, &query.name, read).await, theme)
}

pub async fn thread(
    State(app): State<Shared>,
    PathId(id): PathId,
    query: NamedQuery<PageQuery>,
) -> Result<Response, Problem> {
    let theme = query.parameters.theme;
    let read = async || {
        let (thread, until) = ThreadFace::read(&app.ctx, get_thread(&app, &id).await?).await?;
        let description = format!("{}, {} traded.", thread.count(), thread.volume);
        let head = Head::new(theme, thread.title.clone(), description);
        let head = addressed(&app, head, &format!("/threads/{}", thread.id), &thread.version());
        let about = markdown::about(thread.description.as_deref());
        let page = ThreadPage { head, thread, app_url: app.app_url.clone(), about };
        Ok::<_, Problem>((page::rendered(&page)?, until))
    };
    found(app.responses.for_a_moment(&app.ctx, &query.name, read).await, theme)
}

/// Sets the URLs in `head` for the resource at `path` in the web application.
fn addressed(app: &Shared, head: Head, path: &str, version: &str) -> Head {
    let base = &app.app_url;
    let url = format!("{base}{path}");
    Head { card: card_url(base, path, version), oembed: oembed_url(base, &url), url, ..head }
}

fn found(page: Result<CachedBody, Problem>, theme: Theme) -> Result<Response, Problem> {
    match page {
        Ok(page) => Ok(page::answer(page)),
        Err(refusal)
            if matches!(refusal.public_code(), PublicCode::MarketNotFound | PublicCode::ThreadNotFound) =>
        {
            // A missing page is HTML too, because people see it inside another site.
            page::missing(theme)
        }
        Err(refusal) => Err(refusal),
    }
}
