//! Cards: preview images of a market or a thread for links on other sites.
//!
//! A card's URL contains the version of the shown state. The current version is immutable, and all
//! other versions redirect to it. Cached previews therefore always match their URL, and new
//! previews are current.

mod draw;
mod fonts;
mod kept;

use std::convert::Infallible;
use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};

pub use kept::Cards;

use http_kit::{Problem, PublicCode, Shared, StablePart};
use presentation::{Chart, MarketFace, ThreadFace};

use super::resources::{get_market, get_thread};

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
    address: CardPath,
) -> Result<Response, Problem> {
    let asked = address.version.ok_or_else(|| Problem::from(PublicCode::NotFound))?;
    let (market, outcomes) = get_market(&app, &address.id).await?;
    let face = MarketFace::new(&market, &outcomes, app.ctx.now());
    let version = face.version();
    if asked != version {
        return Ok(moved(&version));
    }
    let name = format!("markets/{}/{version}", face.id);
    if let Some(png) = cards.find(&name) {
        return Ok(answer(png));
    }
    let chart = Chart::read(&app.ctx, &market, &outcomes, &face).await?;
    let png = cards.png(&name, move |fonts| draw::market(fonts, &face, chart.as_ref())).await?;
    Ok(answer(png))
}

pub async fn of_thread(
    State(app): State<Shared>,
    State(cards): State<Arc<Cards>>,
    address: CardPath,
) -> Result<Response, Problem> {
    let asked = address.version.ok_or_else(|| Problem::from(PublicCode::NotFound))?;
    let (face, _) = ThreadFace::read(&app.ctx, get_thread(&app, &address.id).await?).await?;
    let version = face.version();
    if asked != version {
        return Ok(moved(&version));
    }
    let name = format!("threads/{}/{version}", face.id);
    if let Some(png) = cards.find(&name) {
        return Ok(answer(png));
    }
    Ok(answer(cards.png(&name, move |fonts| draw::thread(fonts, &face)).await?))
}

/// Redirects to the card of the current state.
fn moved(version: &str) -> Response {
    let headers = [(LOCATION, format!("{version}.png")), (CACHE_CONTROL, "public, max-age=5".to_owned())];
    (StatusCode::FOUND, headers).into_response()
}

fn answer(png: Bytes) -> Response {
    let headers = [(CONTENT_TYPE, "image/png"), (CACHE_CONTROL, "public, max-age=31536000, immutable")];
    (headers, Extension(StablePart::of(&png)), png).into_response()
}
