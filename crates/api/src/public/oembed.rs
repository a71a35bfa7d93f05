//! oEmbed: tells other sites how to embed one of our pages, given its URL.

use axum::extract::State;
use axum::response::Response;
use http_kit::{NamedQuery, Parameters, Problem, PublicCode, RawQuery, Shared, number};
use presentation::links::{CARD_HEIGHT, CARD_WIDTH, SITE, card_url};
use presentation::{MarketFace, Theme, ThreadFace, markdown, next_end, page_height};
use serde::Serialize;
use utoipa::ToSchema;

use super::answer::Meta;
use super::markets::get_market;
use super::threads::get_thread;

/// Default width of the iframe, in pixels.
const WIDTH: u32 = 600;
/// Lifetime of a response in seconds. It can be long because the page in the iframe refreshes its
/// prices itself.
const CACHE_AGE_S: u32 = 300;

/// The parameters of the request.
#[derive(Debug)]
pub struct OembedQuery {
    url: String,
    json: bool,
    max_width: Option<u32>,
    max_height: Option<u32>,
}

impl Parameters for OembedQuery {
    const NAMES: &'static [&'static str] = &["url", "format", "maxwidth", "maxheight"];

    fn read(asked: &mut RawQuery<'_>) -> Option<Self> {
        let url = asked
            .required("url", "must be the URL of a market's or a thread's page", |url| Some(url.to_owned()));
        let json = asked.text("format").is_none_or(|format| format == "json");
        let pixels = |text: &str| number(text).filter(|pixels| (1..=100_000).contains(pixels));
        const PIXELS: &str = "must be a number of pixels from 1 to 100000";
        let (max_width, max_height) =
            (asked.with("maxwidth", PIXELS, pixels), asked.with("maxheight", PIXELS, pixels));
        Some(Self { url: url?, json, max_width, max_height })
    }
}

impl OembedQuery {
    /// Returns the width of the iframe.
    fn width(&self) -> u32 {
        self.max_width.map_or(WIDTH, |most| most.min(WIDTH))
    }
}

/// An oEmbed 1.0 resource of type rich.
#[derive(Debug, Serialize, ToSchema)]
pub struct OembedAnswer {
    /// Always `1.0`.
    version: &'static str,
    /// Always `rich`.
    #[serde(rename = "type")]
    kind: &'static str,
    provider_name: &'static str,
    provider_url: String,
    title: String,
    /// The number of seconds for which the response may be cached.
    cache_age: u32,
    /// The HTML of the frame.
    html: String,
    /// In pixels.
    width: u32,
    /// In pixels.
    height: u32,
    /// The URL of the card image. Omitted if the card is larger than the requested size.
    #[serde(skip_serializing_if = "Option::is_none")]
    thumbnail_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thumbnail_width: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thumbnail_height: Option<u32>,
}

/// `GET /api/oembed`.
#[utoipa::path(
    get, path = "/api/oembed", operation_id = "getOembed", tag = "Embedding", summary = "Embed a page by its URL",
    description = "oEmbed 1.0 as JSON, for the pages of markets and threads in the web application and for \
        those under /embed, with the theme of the page. Any other URL is 404, and any other format than json is \
        501.",
    params(
        ("url" = String, Query, format = "uri", example = "https://foretell.example/markets/01a3185c-5000-7003-b061-1e97da9cfe87",
            description = "The URL of the page."),
        ("format" = Option<String>, Query, example = "json", description = "Only json is supported."),
        ("maxwidth" = Option<u32>, Query, minimum = 1, maximum = 100000, description = "The maximum width of the frame in pixels."),
        ("maxheight" = Option<u32>, Query, minimum = 1, maximum = 100000, description = "The maximum height of the frame in pixels."),
    ),
    responses((status = 200, description = "The page to embed.", body = OembedAnswer)),
    extensions(("x-error-codes" = json!(["FORMAT_NOT_SUPPORTED", "MARKET_NOT_FOUND", "NOT_FOUND", "THREAD_NOT_FOUND"]))),
)]
pub async fn oembed(
    State(app): State<Shared>,
    query: NamedQuery<OembedQuery>,
    meta: Meta,
) -> Result<Response, Problem> {
    let NamedQuery { parameters: asked, name } = query;
    if !asked.json {
        return Err(Problem::from(PublicCode::FormatNotSupported));
    }
    // Only our own pages, so that the route cannot be used to embed other sites.
    let page = Page::of(&app.app_url, &asked.url).ok_or_else(|| Problem::from(PublicCode::NotFound))?;
    let read = async || match page.kind {
        Kind::Market => {
            let (market, outcomes) = get_market(&app, page.id).await?;
            let now = app.ctx.now();
            let face = MarketFace::new(&market, &outcomes, now);
            let (path, version) = (format!("/markets/{}", face.id), face.version());
            let has_about = markdown::about(market.description.as_deref()).is_some();
            let height = page_height::of_market(&face, has_about, asked.width());
            let answer = OembedAnswer::new(&app, &asked, page.theme, face.question, &path, &version, height);
            Ok((answer, next_end(std::iter::once(&market), now)))
        }
        Kind::Thread => {
            let (face, until) = ThreadFace::read(&app.ctx, get_thread(&app, page.id).await?).await?;
            let (path, version) = (format!("/threads/{}", face.id), face.version());
            let has_about = markdown::about(face.description.as_deref()).is_some();
            let height = page_height::of_thread(&face, has_about, asked.width());
            let answer = OembedAnswer::new(&app, &asked, page.theme, face.title, &path, &version, height);
            Ok((answer, until))
        }
    };
    meta.kept(&app, &name, read).await
}

impl OembedAnswer {
    fn new(
        app: &Shared,
        asked: &OembedQuery,
        theme: Option<&str>,
        title: String,
        path: &str,
        version: &str,
        height: u32,
    ) -> Self {
        let width = asked.width();
        let height = asked.max_height.map_or(height, |most| most.min(height));
        let base = &app.app_url;
        let fits = asked.max_width.is_none_or(|most| most >= CARD_WIDTH)
            && asked.max_height.is_none_or(|most| most >= CARD_HEIGHT);
        let theme = theme.map(|theme| format!("?theme={theme}")).unwrap_or_default();
        // The sandbox omits `allow-same-origin`, so the page's script can do nothing except report
        // its height.
        let html = format!(
            "<iframe src=\"{}\" width=\"{width}\" height=\"{height}\" title=\"{}\" loading=\"lazy\" \
             sandbox=\"allow-scripts allow-popups allow-popups-to-escape-sandbox\" \
             style=\"border:0;max-width:100%\"></iframe>",
            attribute(&format!("{base}/embed{path}{theme}")),
            attribute(&title),
        );
        Self {
            version: "1.0",
            kind: "rich",
            provider_name: SITE,
            provider_url: base.clone(),
            title,
            cache_age: CACHE_AGE_S,
            html,
            width,
            height,
            thumbnail_url: fits.then(|| card_url(base, path, version)),
            thumbnail_width: fits.then_some(CARD_WIDTH),
            thumbnail_height: fits.then_some(CARD_HEIGHT),
        }
    }
}

/// Escapes a text for an attribute value in double quotes.
fn attribute(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Market,
    Thread,
}

/// The page that a URL refers to.
#[derive(Debug, PartialEq, Eq)]
struct Page<'a> {
    kind: Kind,
    id: &'a str,
    theme: Option<&'static str>,
}

impl<'a> Page<'a> {
    /// Parses the URL of a page of the web application at `base`. The scheme may be http or https and
    /// may differ from that of `base`.
    fn of(base: &str, url: &'a str) -> Option<Self> {
        let (base, url) = (without_scheme(base)?, without_scheme(url)?);
        let path = url.get(base.len()..).filter(|_| url[..base.len()].eq_ignore_ascii_case(base))?;
        let path = path.split_once('#').map_or(path, |(path, _)| path);
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let (is_embed, path) = match path.strip_prefix("/embed/") {
            Some(rest) => (true, rest),
            None => (false, path.strip_prefix('/')?),
        };
        let (kind, id) = path.strip_suffix('/').unwrap_or(path).split_once('/')?;
        let kind = match kind {
            "markets" => Kind::Market,
            "threads" => Kind::Thread,
            _ => return None,
        };
        let theme = query.split('&').find_map(|pair| pair.strip_prefix("theme="));
        let known = Theme::WORDS.iter().find(|(word, _)| Some(*word) == theme);
        let theme = known.filter(|_| is_embed).and_then(|(_, theme)| theme.fixed());
        Some(Self { kind, id, theme }).filter(|_| !id.is_empty() && !id.contains('/'))
    }
}

fn without_scheme(url: &str) -> Option<&str> {
    let (scheme, rest) = url.split_once("://")?;
    (scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http")).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "https://foretell.test";

    #[test]
    fn urls_of_market_and_thread_pages_are_recognized() {
        let page = |kind, theme| Some(Page { kind, id: "7", theme });
        for (url, expected) in [
            ("https://foretell.test/markets/7", page(Kind::Market, None)),
            ("http://FORETELL.test/markets/7/?utm=1#top", page(Kind::Market, None)),
            ("https://foretell.test/threads/7?theme=dark", page(Kind::Thread, None)),
            ("https://foretell.test/embed/threads/7?a=b&theme=dark", page(Kind::Thread, Some("dark"))),
            ("https://foretell.test/embed/markets/7?theme=auto", page(Kind::Market, None)),
            ("https://foretell.test/embed/markets/7?theme=%22", page(Kind::Market, None)),
        ] {
            assert_eq!(Page::of(BASE, url), expected, "{url}");
        }
    }

    #[test]
    fn other_urls_are_not_recognized() {
        for url in [
            "",
            "7",
            "/markets/7",
            "ftp://foretell.test/markets/7",
            "https://foretell.test",
            "https://foretell.test/",
            "https://foretell.test/markets/",
            "https://foretell.test/markets/7/8",
            "https://foretell.test/partners/7",
            "https://foretell.test.evil.test/markets/7",
            "https://evil.test/https://foretell.test/markets/7",
            "https://foretell.tést/markets/7",
            "https://foretell.tes",
        ] {
            assert_eq!(Page::of(BASE, url), None, "{url}");
        }
    }

    #[test]
    fn a_title_cannot_end_its_attribute() {
        assert_eq!(attribute("\"><script>&"), "&quot;&gt;&lt;script&gt;&amp;");
    }
}
