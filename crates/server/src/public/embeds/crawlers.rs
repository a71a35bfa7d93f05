//! What search engines read: which pages the web application has, and where they may look.

use std::collections::VecDeque;
use std::fmt::Write as _;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use domain::Timestamp;
use domain::time::MINUTE_MS;
use store::StoreError;
use store::public::{Place, PlaceKind};
use tokio::sync::Mutex;

use crate::http::{PathId, Shared, StablePart};
use crate::public::{Code, Refusal};

/// The most addresses of one file, by the protocol.
const MOST: u32 = 50_000;
const XML: &str = "application/xml; charset=utf-8";
/// Search engines come by the day.
const KEPT: &str = "public, max-age=3600";
const NAMESPACE: &str = "http://www.sitemaps.org/schemas/sitemap/0.9";

/// `GET /sitemap.xml`: the pages, or the files that tell them where one file cannot.
pub async fn sitemap(State(app): State<Shared>) -> Result<Response, Refusal> {
    let counted: Result<_, StoreError> =
        app.ctx.store.read((), |tx, ()| Box::pin(store::public::count_places(tx))).await;
    let (threads, markets) = counted?;
    if threads + markets > u64::from(MOST) {
        return Ok(file(XML, Bytes::from(index(&app.app_url, threads, markets, MOST))));
    }
    let write = async || {
        let mut places = places(&app, PlaceKind::Thread, 0).await?;
        places.extend(self::places(&app, PlaceKind::Market, 0).await?);
        Ok(Some(urls(&app.app_url, &places)))
    };
    let written = app.sitemaps.find("", app.ctx.now(), write).await?;
    written.map(|bytes| file(XML, bytes)).ok_or_else(|| Refusal::new(Code::NotFound))
}

/// `GET /sitemaps/{id}`: one of these files, such as `markets-0.xml`.
pub async fn sitemap_part(State(app): State<Shared>, PathId(name): PathId) -> Result<Response, Refusal> {
    let (kind, part) = part_of(&name).ok_or_else(|| Refusal::new(Code::NotFound))?;
    let write = async || {
        let places = places(&app, kind, part).await?;
        Ok((!places.is_empty()).then(|| urls(&app.app_url, &places)))
    };
    let written = app.sitemaps.find(&name, app.ctx.now(), write).await?;
    written.map(|bytes| file(XML, bytes)).ok_or_else(|| Refusal::new(Code::NotFound))
}

/// The files that were written lately. A full one has megabytes, so each is written once in a while, one at a time, and everybody
/// who is sent it shares its bytes.
#[derive(Debug, Default)]
pub struct Sitemaps(Mutex<VecDeque<Written>>);

#[derive(Debug)]
struct Written {
    name: String,
    at: Timestamp,
    bytes: Bytes,
}

/// How many are kept, and for how long.
const KEPT_FILES: usize = 4;
const KEPT_MS: i64 = MINUTE_MS;

impl Sitemaps {
    /// The file of this name as it is kept, or else as `write` writes it; none where there is nothing to write.
    async fn find(
        &self,
        name: &str,
        now: Timestamp,
        write: impl AsyncFnOnce() -> Result<Option<String>, Refusal>,
    ) -> Result<Option<Bytes>, Refusal> {
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

/// `GET /robots.txt`.
pub async fn robots(State(app): State<Shared>) -> Response {
    // The pages for frames stay readable: only so is seen that they are not to be listed.
    let text =
        format!("User-agent: *\nDisallow: /api/\nDisallow: /v1/\nSitemap: {}/sitemap.xml\n", app.app_url);
    file("text/plain; charset=utf-8", Bytes::from(text))
}

async fn places(app: &Shared, kind: PlaceKind, part: u32) -> Result<Vec<Place>, Refusal> {
    let read: Result<_, StoreError> = app
        .ctx
        .store
        .read(kind, move |tx, kind| Box::pin(store::public::list_places(tx, *kind, MOST, part)))
        .await;
    Ok(read?)
}

fn part_of(name: &str) -> Option<(PlaceKind, u32)> {
    let (kind, part) = name.strip_suffix(".xml")?.split_once('-')?;
    let kind = [PlaceKind::Thread, PlaceKind::Market].into_iter().find(|known| word(*known) == kind)?;
    // One spelling of each number, and no part that could not be.
    let number = part.parse().ok().filter(|number: &u32| *number < 10_000 && number.to_string() == part)?;
    Some((kind, number))
}

const fn word(kind: PlaceKind) -> &'static str {
    match kind {
        PlaceKind::Thread => "threads",
        PlaceKind::Market => "markets",
    }
}

fn index(base: &str, threads: u64, markets: u64, most: u32) -> String {
    let base = escaped(base);
    let mut xml =
        format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<sitemapindex xmlns=\"{NAMESPACE}\">\n");
    for (kind, count) in [(PlaceKind::Thread, threads), (PlaceKind::Market, markets)] {
        for part in 0..count.div_ceil(u64::from(most)) {
            let _ = writeln!(xml, "<sitemap><loc>{base}/sitemaps/{}-{part}.xml</loc></sitemap>", word(kind));
        }
    }
    xml.push_str("</sitemapindex>\n");
    xml
}

fn urls(base: &str, places: &[Place]) -> String {
    let base = escaped(base);
    let mut xml = String::with_capacity(200 + places.len() * (base.len() + 120));
    let _ = write!(xml, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"{NAMESPACE}\">\n");
    for Place { kind, id, changed_at } in places {
        let kind = word(*kind);
        let _ = writeln!(xml, "<url><loc>{base}/{kind}/{id}</loc><lastmod>{changed_at}</lastmod></url>");
    }
    xml.push_str("</urlset>\n");
    xml
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn file(kind: &'static str, bytes: Bytes) -> Response {
    let headers = [(CONTENT_TYPE, kind), (CACHE_CONTROL, KEPT)];
    (headers, Extension(StablePart::of(&bytes)), bytes).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_is_written_once_in_a_minute_and_no_more_than_four_are_kept() {
        let sitemaps = Sitemaps::default();
        let find = async |name: &'static str, ms: i64, text: &str| {
            let text = (!text.is_empty()).then(|| text.to_owned());
            let found = sitemaps.find(name, Timestamp::from_ms(ms), async || Ok(text)).await;
            found.unwrap_or_default().map(|bytes| bytes.to_vec())
        };
        assert_eq!(find("0", 1_000, "first").await, Some(b"first".to_vec()));
        assert_eq!(find("0", 60_999, "second").await, Some(b"first".to_vec()));
        assert_eq!(find("0", 61_000, "second").await, Some(b"second".to_vec()));
        // What is not there is not kept.
        assert_eq!(find("1", 61_000, "").await, None);
        for name in ["1", "2", "3", "4"] {
            assert_eq!(find(name, 61_000, "x").await, Some(b"x".to_vec()));
        }
        assert_eq!(find("0", 61_001, "third").await, Some(b"third".to_vec()));
        assert_eq!(sitemaps.0.lock().await.len(), KEPT_FILES);
    }

    #[test]
    fn the_index_names_every_part_and_each_part_is_known_by_its_name() {
        let xml = index("https://a.test", 3, 5, 2);
        let parts: Vec<_> =
            xml.split("/sitemaps/").skip(1).filter_map(|rest| rest.split('<').next()).collect();
        assert_eq!(
            parts,
            ["threads-0.xml", "threads-1.xml", "markets-0.xml", "markets-1.xml", "markets-2.xml"]
        );
        assert!(parts.iter().all(|name| part_of(name).is_some()));
        assert_eq!(part_of("markets-2.xml"), Some((PlaceKind::Market, 2)));
        for name in
            ["", "markets", "markets-0", "markets-.xml", "markets-00.xml", "other-0.xml", "markets-+1.xml"]
        {
            assert_eq!(part_of(name), None, "{name}");
        }
    }
}
