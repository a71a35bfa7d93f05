//! Cards: pictures that stand for a market or a thread where a link to it is previewed.
//!
//! A card's address carries the version of the state that it shows. The current one is the same for good; every other
//! version leads to the current one. So previews that others keep are never wrong about their moment, and new ones are new.

mod draw;
mod fonts;
mod kept;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use std::convert::Infallible;

pub use draw::{HEIGHT, WIDTH};
pub use kept::Cards;

use super::chart::Chart;
use super::face::MarketFace;
use super::thread_face::ThreadFace;
use crate::http::{Shared, StablePart};
use crate::public::markets::get_market;
use crate::public::{Code, Refusal};

/// A card's address: whose it is, and the version that its file is named after.
#[derive(Debug)]
pub struct Address {
    id: String,
    /// `None` where the file is no picture.
    version: Option<String>,
}

impl<S: Send + Sync> FromRequestParts<S> for Address {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let path = Path::<(String, String)>::from_request_parts(parts, state).await;
        let (id, file) = path.map(|Path(parts)| parts).unwrap_or_default();
        Ok(Self { id, version: file.strip_suffix(".png").map(str::to_owned) })
    }
}

/// `GET /cards/markets/{id}/{file}`.
pub async fn of_market(State(app): State<Shared>, address: Address) -> Result<Response, Refusal> {
    let asked = address.version.ok_or_else(|| Refusal::new(Code::NotFound))?;
    let (market, outcomes) = get_market(&app, &address.id).await?;
    let face = MarketFace::new(&market, &outcomes, app.ctx.now());
    let version = face.version();
    if asked != version {
        return Ok(moved(&version));
    }
    let name = format!("markets/{}/{version}", face.id);
    if let Some(png) = app.cards.find(&name) {
        return Ok(answer(png));
    }
    let chart = Chart::read(&app, &market, &outcomes, &face).await?;
    let png = app.cards.png(&name, move |fonts| draw::market(fonts, &face, chart.as_ref())).await?;
    Ok(answer(png))
}

/// `GET /cards/threads/{id}/{file}`.
pub async fn of_thread(State(app): State<Shared>, address: Address) -> Result<Response, Refusal> {
    let asked = address.version.ok_or_else(|| Refusal::new(Code::NotFound))?;
    let (face, _) = ThreadFace::read(&app, &address.id).await?;
    let version = face.version();
    if asked != version {
        return Ok(moved(&version));
    }
    let name = format!("threads/{}/{version}", face.id);
    if let Some(png) = app.cards.find(&name) {
        return Ok(answer(png));
    }
    Ok(answer(app.cards.png(&name, move |fonts| draw::thread(fonts, &face)).await?))
}

/// To the card beside it that shows the state as it is.
fn moved(version: &str) -> Response {
    let headers = [(LOCATION, format!("{version}.png")), (CACHE_CONTROL, "public, max-age=5".to_owned())];
    (StatusCode::FOUND, headers).into_response()
}

fn answer(png: Bytes) -> Response {
    let headers = [(CONTENT_TYPE, "image/png"), (CACHE_CONTROL, "public, max-age=31536000, immutable")];
    (headers, Extension(StablePart::of(&png)), png).into_response()
}
