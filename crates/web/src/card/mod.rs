//! Cards: preview images of a market or a thread for links on other sites.
//!
//! A card's URL contains the version of the shown state. The current version is immutable, and all
//! other versions redirect to it. Cached previews therefore always match their URL, and new
//! previews are current. While too many cards are being drawn, a page's last card is sent instead,
//! which caches may show only for seconds.

mod draw;
mod fonts;
mod kept;

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;

use app::AppError;
use axum::Extension;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};

use fonts::Fonts;
pub use kept::Cards;
use kept::{Card, CardClient, CardName};

use http_kit::{ClientAddress, Problem, PublicCode, Shared, StablePart};
use presentation::{Chart, MarketFace, ThreadFace};

use super::resources::{get_market, get_thread};

/// Caching of what the next trade changes. A cache may send it for ten minutes more while it fetches
/// what is current, so that a busy market's preview never waits for a drawing.
const FOR_SECONDS: &str = "public, max-age=5, stale-while-revalidate=600";

/// A card's URL: the resource's id, and the version from the file name.
#[derive(Debug)]
pub struct CardPath {
    id: String,
    /// `None` if the file is not a PNG.
    version: Option<String>,
}

impl<S: Send + Sync> FromRequestParts<S> for CardPath {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let path = Path::<(String, String)>::from_request_parts(parts, state).await;
        let (id, file) = path.map(|Path(parts)| parts).unwrap_or_default();
        Ok(Self { id, version: file.strip_suffix(".png").map(str::to_owned) })
    }
}

pub async fn of_market(
    State(app): State<Shared>,
    State(cards): State<Arc<Cards>>,
    ClientAddress(ip): ClientAddress,
    address: CardPath,
) -> Result<Response, Problem> {
    let asked = address.version.ok_or_else(|| Problem::from(PublicCode::NotFound))?;
    let (market, outcomes) = get_market(&app, &address.id).await?;
    let face = MarketFace::new(&market, &outcomes, app.ctx.now());
    let version = face.version();
    if asked != version {
        return Ok(moved(&version));
    }
    let name = CardName::new(format!("markets/{}", face.id), &version);
    let prepare = async {
        let chart = Chart::read(&app.ctx, &market, &outcomes, &face).await?;
        Ok::<_, AppError>(move |fonts: &Fonts| draw::market(fonts, &face, chart.as_ref()))
    };
    Ok(answer(cards.card(&name, client(&app, ip), prepare).await?))
}

pub async fn of_thread(
    State(app): State<Shared>,
    State(cards): State<Arc<Cards>>,
    ClientAddress(ip): ClientAddress,
    address: CardPath,
) -> Result<Response, Problem> {
    let asked = address.version.ok_or_else(|| Problem::from(PublicCode::NotFound))?;
    let (face, _) = ThreadFace::read(&app.ctx, get_thread(&app, &address.id).await?).await?;
    let version = face.version();
    if asked != version {
        return Ok(moved(&version));
    }
    let name = CardName::new(format!("threads/{}", face.id), &version);
    let prepare = async { Ok::<_, AppError>(move |fonts: &Fonts| draw::thread(fonts, &face)) };
    Ok(answer(cards.card(&name, client(&app, ip), prepare).await?))
}

fn client(app: &Shared, ip: IpAddr) -> CardClient<'_> {
    CardClient { budgets: app.ctx.budgets(), ip, now: app.ctx.now() }
}

/// Redirects to the card of the current state.
fn moved(version: &str) -> Response {
    let headers = [(LOCATION, format!("{version}.png")), (CACHE_CONTROL, FOR_SECONDS.to_owned())];
    (StatusCode::FOUND, headers).into_response()
}

fn answer(card: Card) -> Response {
    let (png, caching) = match card {
        Card::Current(png) => (png, "public, max-age=31536000, immutable"),
        Card::Earlier(png) => (png, FOR_SECONDS),
    };
    let headers = [(CONTENT_TYPE, "image/png"), (CACHE_CONTROL, caching)];
    (headers, Extension(StablePart::of(&png)), png).into_response()
}
