//! The HTML of the embedded pages: templates, style, the single script, and the headers that
//! restrict a page to them.

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

use http_kit::{CachedBody, FailedRequest, Problem};
use presentation::links::SITE;
use presentation::{Chart, MarketFace, Theme, ThreadFace, chart};

const STYLE: &str = include_str!("../templates/embeds/page.css");
const SCRIPT: &str = include_str!("../templates/embeds/height.js");

/// The page loads nothing, runs only the script and style above, and may be embedded in any site.
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

/// The contents of a page's `<head>`, mainly for link previews.
#[derive(Debug)]
pub struct Head {
    pub theme: Option<&'static str>,
    pub site: &'static str,
    pub title: String,
    pub description: String,
    pub url: String,
    /// The card's URL.
    pub card: String,
    /// The oEmbed URL of this page.
    pub oembed: String,
    pub style: &'static str,
    pub script: &'static str,
}

impl Head {
    /// Creates a head without URLs, which only pages of existing resources have.
    pub fn new(theme: Theme, title: String, description: String) -> Self {
        let empty = String::new;
        Self {
            theme: theme.fixed(),
            site: SITE,
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

#[derive(Debug, Template)]
#[template(path = "embeds/market.html")]
pub struct MarketPage {
    pub head: Head,
    pub market: MarketFace,
    /// `None` while the history is being built.
    pub chart: Option<ChartPart>,
    /// The description as HTML.
    pub about: Option<String>,
}

/// A chart on a page. Its texts are HTML outside the SVG, so they are not stretched with the lines.
#[derive(Debug)]
pub struct ChartPart {
    pub lines: String,
    pub percents: [i64; 3],
    pub times: Vec<String>,
    /// Colors and names.
    pub legend: Vec<(usize, String)>,
}

impl ChartPart {
    /// Width of the plot in units.
    pub const WIDTH: i64 = chart::WIDTH;
    /// Height of the plot in pixels.
    pub const HEIGHT: i64 = chart::HEIGHT;

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

#[derive(Debug, Template)]
#[template(path = "embeds/thread.html")]
pub struct ThreadPage {
    pub head: Head,
    pub thread: ThreadFace,
    /// Base URL of the web application.
    pub app_url: String,
    /// The description as HTML.
    pub about: Option<String>,
}

#[derive(Debug, Template)]
#[template(path = "embeds/missing.html")]
struct MissingPage {
    head: Head,
}

/// The page that replaces a JSON error, because people see it inside another site. It reloads the
/// requested page automatically.
#[derive(Debug, Template)]
#[template(path = "embeds/unavailable.html")]
struct UnavailablePage {
    head: Head,
    is_limited: bool,
    retry_s: u32,
}

/// Returns the headers of every page.
fn headers() -> [(HeaderName, &'static str); 3] {
    [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, POLICY.as_str()),
        // Tells the web application which site a visitor comes from, but not which page.
        (REFERRER_POLICY, "strict-origin-when-cross-origin"),
    ]
}

/// Renders a template.
pub fn rendered(template: &impl Template) -> Result<CachedBody, Problem> {
    Ok(CachedBody::of(template.render().map_err(app::AppError::internal)?.into_bytes()))
}

/// Returns a page as a response.
pub fn answer(page: CachedBody) -> Response {
    (headers(), page.whole()).into_response()
}

/// Returns the page for a missing resource, in the same design.
pub fn missing(theme: Theme) -> Result<Response, Problem> {
    let head = Head::new(theme, "Not found".to_owned(), String::new());
    let (_, body) = rendered(&MissingPage { head })?.whole();
    Ok((StatusCode::NOT_FOUND, headers(), [(CACHE_CONTROL, "no-store")], body).into_response())
}

/// Maximum and default number of seconds before an unavailable page reloads.
const MOST_RETRY_S: u32 = 300;
const USUAL_RETRY_S: u32 = 30;

/// Returns the requested theme, if the request is for an embedded page.
fn theme_of(uri: &Uri) -> Option<Theme> {
    uri.path().strip_prefix("/embed/")?;
    let mut pairs = uri.query().unwrap_or_default().split('&');
    let word = pairs.find_map(|pair| pair.strip_prefix("theme="));
    let theme = Theme::WORDS.iter().find(|(known, _)| Some(*known) == word);
    Some(theme.map_or(Theme::Auto, |(_, theme)| *theme))
}

/// Replaces the body of a temporary error with a page, because people see it inside another site.
pub fn show_refusal(failed: &FailedRequest<'_>, problem: &Problem, response: &mut Response) {
    let Some(theme) = theme_of(failed.uri) else { return };
    let is_limited = problem.code() == ErrorCode::RateLimitExceeded;
    // Other errors are permanent, so reloading would not help.
    if !is_limited && !response.status().is_server_error() {
        return;
    }
    // Bounded, so that a page neither reloads in a loop nor stays unavailable for hours.
    let retry_s = problem.retry_after_s().unwrap_or(USUAL_RETRY_S).clamp(1, MOST_RETRY_S);
    let head = Head::new(theme, "Not available".to_owned(), String::new());
    let Ok(html) = (UnavailablePage { head, is_limited, retry_s }).render() else { return };
    *response.body_mut() = Body::from(html);
    for (name, value) in headers() {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
}
