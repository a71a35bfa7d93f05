//! The look of the pages: their templates, their style, their one script, and the headers that hold them to these.

use std::sync::LazyLock;

use askama::Template;
use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use axum::http::{HeaderName, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use domain::ErrorCode;
use sha2::{Digest, Sha256};

use super::chart::Chart;
use super::face::MarketFace;
use super::thread_face::ThreadFace;
use crate::http::Stable;
use crate::public::{Code, Refusal};

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
    /// `None` while the history is being put together.
    pub chart: Option<ChartPart>,
    /// The description as HTML.
    pub about: Option<String>,
}

/// A chart on a page. Its texts are not part of the lines: they keep their size while the lines are stretched.
#[derive(Debug)]
pub struct ChartPart {
    pub lines: String,
    pub percents: [i64; 3],
    pub times: Vec<String>,
    /// Colours and names.
    pub legend: Vec<(usize, String)>,
}

impl ChartPart {
    /// The lines' width in units.
    pub const WIDTH: i64 = super::chart::WIDTH;
    /// The lines' height in pixels.
    pub const HEIGHT: i64 = super::chart::HEIGHT;

    pub fn new(chart: &Chart) -> Self {
        let legend = chart.legend().into_iter().map(|(colour, label)| (colour, label.to_owned()));
        Self {
            lines: chart.lines(),
            percents: chart.percents(),
            times: chart.times(),
            legend: legend.collect(),
        }
    }
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

/// The page that a reader sees within another site instead of a refusal for programs. It loads the asked-for page again
/// by itself.
#[derive(Debug, Template)]
#[template(path = "embeds/unavailable.html")]
struct UnavailablePage {
    head: Head,
    is_limited: bool,
    retry_s: u32,
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

/// The longest wait before a page that was refused is loaded again, and the wait if the refusal names none, in seconds.
const MOST_RETRY_S: u32 = 300;
const USUAL_RETRY_S: u32 = 30;

/// The theme that a request asks for if it asks for a page for frames.
pub fn theme_of(uri: &Uri) -> Option<Theme> {
    uri.path().strip_prefix("/embed/")?;
    let mut pairs = uri.query().unwrap_or_default().split('&');
    let word = pairs.find_map(|pair| pair.strip_prefix("theme="));
    let theme = Theme::WORDS.iter().find(|(known, _)| Some(*known) == word);
    Some(theme.map_or(Theme::Auto, |(_, theme)| *theme))
}

/// Puts a page into a refusal that waiting helps against: people read it within another site.
pub fn show_refusal(response: &mut Response, refusal: &Refusal, theme: Theme) {
    let is_limited = refusal.code() == Code::RateLimitExceeded;
    if !is_limited && !response.status().is_server_error() {
        return;
    }
    let retry_s = refusal.retry_s().unwrap_or(USUAL_RETRY_S).clamp(1, MOST_RETRY_S);
    let head = Head::new(theme, "Not available".to_owned(), String::new());
    let Ok(html) = (UnavailablePage { head, is_limited, retry_s }).render() else { return };
    *response.body_mut() = Body::from(html);
    for (name, value) in headers() {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
}
