//! The look of the pages: their templates, their style, their one script, and the headers that hold them to these.

use std::sync::LazyLock;

use askama::Template;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use domain::ErrorCode;
use sha2::{Digest, Sha256};

use super::face::MarketFace;
use super::thread_face::ThreadFace;
use crate::http::Stable;
use crate::public::Refusal;

const STYLE: &str = include_str!("../../../templates/embeds/page.css");
const SCRIPT: &str = include_str!("../../../templates/embeds/height.js");

/// A page loads nothing, runs what stands in it as it was written here, and may stand in any frame.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    format!(
        "default-src 'none'; style-src '{}'; script-src '{}'; base-uri 'none'; form-action 'none'; frame-ancestors *",
        hash(STYLE),
        hash(SCRIPT)
    )
});

fn hash(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(text.as_bytes())))
}

/// Which colours a page has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    /// Those that the reader's system prefers.
    Auto,
    Light,
    Dark,
}

impl Theme {
    /// Every theme and its word; the first where none is asked for.
    pub const WORDS: &'static [(&'static str, Self)] =
        &[("auto", Self::Auto), ("light", Self::Light), ("dark", Self::Dark)];

    /// The word where it is not left to the reader's system.
    pub const fn fixed(self) -> Option<&'static str> {
        match self {
            Self::Auto => None,
            Self::Light => Some("light"),
            Self::Dark => Some("dark"),
        }
    }
}

/// What a page's head says, to those who preview links above all.
#[derive(Debug)]
pub struct Head {
    pub theme: Option<&'static str>,
    pub site: &'static str,
    pub title: String,
    pub description: String,
    /// The page in the web application.
    pub url: String,
    /// The card's address.
    pub card: String,
    /// Where oEmbed tells of this page.
    pub oembed: String,
    pub style: &'static str,
    pub script: &'static str,
}

impl Head {
    /// The rest of it is the same for every page.
    pub fn new(theme: Theme, title: String, description: String) -> Self {
        let empty = String::new;
        Self {
            theme: theme.fixed(),
            site: super::SITE,
            title,
            description,
            url: empty(),
            card: empty(),
            oembed: empty(),
            style: STYLE,
            script: SCRIPT,
        }
    }
}

/// A market's page.
#[derive(Debug, Template)]
#[template(path = "embeds/market.html")]
pub struct MarketPage {
    pub head: Head,
    pub market: MarketFace,
    /// The chart's lines; none while the history is being put together.
    pub chart: Option<String>,
    pub width: i64,
    pub height: i64,
    /// The description as HTML.
    pub about: Option<String>,
}

/// A thread's page.
#[derive(Debug, Template)]
#[template(path = "embeds/thread.html")]
pub struct ThreadPage {
    pub head: Head,
    pub thread: ThreadFace,
    /// Where the web application stands.
    pub app_url: String,
    /// The description as HTML.
    pub about: Option<String>,
}

#[derive(Debug, Template)]
#[template(path = "embeds/missing.html")]
struct MissingPage {
    head: Head,
}

/// What every page is sent with.
fn headers() -> [(HeaderName, &'static str); 3] {
    [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, POLICY.as_str()),
        // The page of the web application is told from where it is come to, and not from which page.
        (REFERRER_POLICY, "strict-origin-when-cross-origin"),
    ]
}

/// A template's text.
pub fn rendered(template: &impl Template) -> Result<Stable, Refusal> {
    let unwritable = |error| app::AppError::new(ErrorCode::InternalError).caused_by(error);
    Ok(Stable::of(template.render().map_err(unwritable)?.into_bytes()))
}

/// A page as an answer.
pub fn answer(page: Stable) -> Response {
    (headers(), page.whole()).into_response()
}

/// The page that stands where there is nothing, in the same look: it is read by people within other pages.
pub fn missing(theme: Theme) -> Result<Response, Refusal> {
    let head = Head::new(theme, "Not found".to_owned(), String::new());
    let (_, body) = rendered(&MissingPage { head })?.whole();
    Ok((StatusCode::NOT_FOUND, headers(), [(CACHE_CONTROL, "no-store")], body).into_response())
}
