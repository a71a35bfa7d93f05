//! Documents for search engines: the sitemaps of the web application's pages, and `robots.txt`.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use domain::Timestamp;
use domain::time::MINUTE_MS;
use pulldown_cmark_escape::escape_html_body_text;
use store::public::{SitemapPage, SitemapPageKind};
use tokio::sync::Mutex;

use http_kit::{PathId, Problem, PublicCode, Shared, StablePart};

/// Maximum number of URLs per file, from the sitemap protocol.
const MOST: u32 = 50_000;
const XML: &str = "application/xml; charset=utf-8";
/// One hour is enough, because search engines usually fetch sitemaps once per day.
const KEPT: &str = "public, max-age=3600";
const NAMESPACE: &str = "http://www.sitemaps.org/schemas/sitemap/0.9";

/// `GET /sitemap.xml`: the sitemap, or an index of sitemap files if one file is not enough.
pub async fn sitemap(
    State(app): State<Shared>,
    State(sitemaps): State<Arc<Sitemaps>>,
) -> Result<Response, Problem> {
    let counted = app.ctx.store.read((), |tx, ()| Box::pin(store::public::count_places(tx))).await;
    let (threads, markets) = counted?;
    // Up to the limit, a single file saves crawlers a request for an index.
    if threads + markets > u64::from(MOST) {
        return Ok(file(XML, Bytes::from(index(&app.app_url, threads, markets, MOST))));
    }
    let write = async || {
        let mut places = places(&app, SitemapPageKind::Thread, 0).await?;
        places.extend(self::places(&app, SitemapPageKind::Market, 0).await?);
        Ok(Some(urls(&app.app_url, &places)))
    };
    let written = sitemaps.find("", app.ctx.now(), write).await?;
    written.map(|bytes| file(XML, bytes)).ok_or_else(|| Problem::from(PublicCode::NotFound))
}

/// `GET /sitemaps/{id}`: one file of the index, e.g. `markets-0.xml`.
pub async fn sitemap_part(
    State(app): State<Shared>,
    State(sitemaps): State<Arc<Sitemaps>>,
    PathId(name): PathId,
) -> Result<Response, Problem> {
    let (kind, part) = part_of(&name).ok_or_else(|| Problem::from(PublicCode::NotFound))?;
    let write = async || {
        let places = places(&app, kind, part).await?;
        Ok((!places.is_empty()).then(|| urls(&app.app_url, &places)))
    };
    let written = sitemaps.find(&name, app.ctx.now(), write).await?;
    written.map(|bytes| file(XML, bytes)).ok_or_else(|| Problem::from(PublicCode::NotFound))
}

/// Cache of generated sitemaps. A full file takes megabytes, so files are generated one at a time
/// and at most once per minute. All responses share its bytes.
#[derive(Debug, Default)]
pub struct Sitemaps(Mutex<VecDeque<Written>>);

#[derive(Debug)]
struct Written {
    name: String,
    at: Timestamp,
    bytes: Bytes,
}

/// Maximum number of cached files, and their lifetime.
const KEPT_FILES: usize = 4;
const KEPT_MS: i64 = MINUTE_MS;

impl Sitemaps {
    /// Returns the cached file, or the one that `write` generates. Returns `None` if there is
    /// nothing to list.
    async fn find(
        &self,
        name: &str,
        now: Timestamp,
        write: impl AsyncFnOnce() -> Result<Option<String>, Problem>,
    ) -> Result<Option<Bytes>, Problem> {
        // The lock is held while the file is generated, so that concurrent requests wait instead of
        // generating it again.
        let mut kept = self.0.lock().await;
        kept.retain(|file| (0..KEPT_MS).contains(&now.since_ms(file.at)));
        if let Some(file) = kept.iter().find(|file| file.name == name) {
            return Ok(Some(file.bytes.clone()));
        }
        let Some(text) = write().await? else { return Ok(None) };
        if kept.len() == KEPT_FILES {
            kept.pop_front();
        }
        let bytes = Bytes::from(text);
        kept.push_back(Written { name: name.to_owned(), at: now, bytes: bytes.clone() });
        Ok(Some(bytes))
    }
}

pub async fn robots(State(app): State<Shared>) -> Response {
    // The pages for iframes stay crawlable. Search engines must read them to see their `noindex`.
    // The OpenAPI documents are the only files below the APIs' paths that are documentation.
    let text = format!(
        "User-agent: *\nAllow: /api/openapi.json\nAllow: /v1/openapi.json\nDisallow: /api/\nDisallow: /v1/\n\
         Sitemap: {}/sitemap.xml\n",
        app.app_url
    );
    file("text/plain; charset=utf-8", Bytes::from(text))
}

async fn places(app: &Shared, kind: SitemapPageKind, part: u32) -> Result<Vec<SitemapPage>, Problem> {
    let read = app
        .ctx
        .store
        .read(kind, move |tx, kind| Box::pin(store::public::list_places(tx, *kind, MOST, part)))
        .await;
    Ok(read?)
}

fn part_of(name: &str) -> Option<(SitemapPageKind, u32)> {
    let (kind, part) = name.strip_suffix(".xml")?.split_once('-')?;
    let kind =
        [SitemapPageKind::Thread, SitemapPageKind::Market].into_iter().find(|known| word(*known) == kind)?;
    // Reject other spellings of a number, and implausibly large numbers, because each name is a
    // cache key.
    let number = part.parse().ok().filter(|number: &u32| *number < 10_000 && number.to_string() == part)?;
    Some((kind, number))
}

const fn word(kind: SitemapPageKind) -> &'static str {
    match kind {
        SitemapPageKind::Thread => "threads",
        SitemapPageKind::Market => "markets",
    }
}

fn index(base: &str, threads: u64, markets: u64, most: u32) -> String {
    let base = escaped(base);
    let mut xml =
        format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<sitemapindex xmlns=\"{NAMESPACE}\">\n");
    for (kind, count) in [(SitemapPageKind::Thread, threads), (SitemapPageKind::Market, markets)] {
        for part in 0..count.div_ceil(u64::from(most)) {
            let _ = writeln!(xml, "<sitemap><loc>{base}/sitemaps/{}-{part}.xml</loc></sitemap>", word(kind));
        }
    }
    xml.push_str("</sitemapindex>\n");
    xml
}

fn urls(base: &str, places: &[SitemapPage]) -> String {
    let base = escaped(base);
    let mut xml = String::with_capacity(200 + places.len() * (base.len() + 120));
    let _ = write!(xml, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"{NAMESPACE}\">\n");
    for SitemapPage { kind, id, changed_at } in places {
        let kind = word(*kind);
        let _ = writeln!(xml, "<url><loc>{base}/{kind}/{id}</loc><lastmod>{changed_at}</lastmod></url>");
    }
    xml.push_str("</urlset>\n");
    xml
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    // A `String` accepts every write.
    let _ = escape_html_body_text(&mut escaped, text);
    escaped
}

fn file(kind: &'static str, bytes: Bytes) -> Response {
    let headers = [(CONTENT_TYPE, kind), (CACHE_CONTROL, KEPT)];
    (headers, Extension(StablePart::of(&bytes)), bytes).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_is_written_once_a_minute_and_at_most_four_are_cached() {
        let sitemaps = Sitemaps::default();
        let find = async |name: &'static str, ms: i64, text: &str| {
            let text = (!text.is_empty()).then(|| text.to_owned());
            let found = sitemaps.find(name, Timestamp::from_ms(ms), async || Ok(text)).await;
            found.unwrap_or_default().map(|bytes| bytes.to_vec())
        };
        assert_eq!(find("0", 1_000, "first").await, Some(b"first".to_vec()));
        assert_eq!(find("0", 60_999, "second").await, Some(b"first".to_vec()));
        assert_eq!(find("0", 61_000, "second").await, Some(b"second".to_vec()));
        // A file that does not exist is not cached.
        assert_eq!(find("1", 61_000, "").await, None);
        for name in ["1", "2", "3", "4"] {
            assert_eq!(find(name, 61_000, "x").await, Some(b"x".to_vec()));
        }
        assert_eq!(find("0", 61_001, "third").await, Some(b"third".to_vec()));
        assert_eq!(sitemaps.0.lock().await.len(), KEPT_FILES);
    }

    #[test]
    fn the_index_lists_every_part_by_name() {
        let xml = index("https://a.test", 3, 5, 2);
        let parts: Vec<_> =
            xml.split("/sitemaps/").skip(1).filter_map(|rest| rest.split('<').next()).collect();
        assert_eq!(
            parts,
            ["threads-0.xml", "threads-1.xml", "markets-0.xml", "markets-1.xml", "markets-2.xml"]
        );
        assert!(parts.iter().all(|name| part_of(name).is_some()));
        assert_eq!(part_of("markets-2.xml"), Some((SitemapPageKind::Market, 2)));
        for name in
            ["", "markets", "markets-0", "markets-.xml", "markets-00.xml", "other-0.xml", "markets-+1.xml"]
        {
            assert_eq!(part_of(name), None, "{name}");
        }
    }
}
