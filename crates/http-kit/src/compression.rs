//! gzip compression of responses.
//!
//! Compressing a page of markets costs more than the rest of its request. The stable part of a body
//! is therefore compressed once and cached under the hash of its bytes. The remainder (`_meta`,
//! about 100 bytes) differs in each response, and is appended to the same gzip stream as an
//! uncompressed block.
//!
//! Event streams are never compressed: their length is unknown, and each event must be sent at
//! once.

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, Entry, VARY};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use flate2::{Compress, Compression, FlushCompress};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::StablePart;
use super::envelope::SplitBody;

/// Minimum size for compression. Smaller bodies fit into one packet anyway.
const MIN_BYTES: u64 = 1_024;
/// Maximum size that is compressed on an async thread. More would block the thread for
/// milliseconds.
const INLINE_BYTES: usize = 128 << 10;
/// Size of the cache of compressed bodies.
const KEPT_BYTES: u64 = 16 << 20;
const TYPICAL_BYTES: usize = 4_096;
/// Compression level. A page of 20 markets (13 kB) shrinks to 2,880 bytes in 51 µs. zlib's default
/// level 6 gives 2,802 bytes in 69 µs, and level 1 gives 4,319 bytes in 26 µs.
const LEVEL: u32 = 2;
/// A gzip header without a file name and time.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
/// Maximum size of an uncompressed block (RFC 1951).
const STORED_BYTES: usize = 65_535;
const GZIP: HeaderValue = HeaderValue::from_static("gzip");

/// Cache of compressed stable parts, by the hash of their uncompressed bytes.
#[derive(Debug)]
pub struct CompressedBodies(Cache<StablePart, Deflated, Weigh>);

impl Default for CompressedBodies {
    fn default() -> Self {
        Self(Cache::with_weighter(KEPT_BYTES as usize / TYPICAL_BYTES, KEPT_BYTES, Weigh))
    }
}

#[derive(Debug, Clone)]
struct Weigh;

impl Weighter<StablePart, Deflated> for Weigh {
    fn weight(&self, _: &StablePart, deflated: &Deflated) -> u64 {
        (size_of::<(StablePart, Deflated)>() + deflated.bytes.len()) as u64
    }
}

/// The result of parsing `Accept-Encoding`: true if the client accepts gzip.
#[derive(Debug, Clone, Copy)]
pub struct AcceptsGzip(bool);

impl AcceptsGzip {
    pub fn of(request: &Request) -> Self {
        let mut lines = request.headers().get_all(ACCEPT_ENCODING).iter().peekable();
        Self(lines.peek().is_some() && accepts_gzip(lines.filter_map(|line| line.to_str().ok())))
    }
}

fn accepts_gzip<'a>(lines: impl Iterator<Item = &'a str>) -> bool {
    let mut by_name = None;
    let mut by_star = false;
    for item in lines.flat_map(|line| line.split(',')) {
        let mut parts = item.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let quality = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
        let wanted =
            quality.is_none_or(|quality| quality.trim().parse().is_ok_and(|quality: f32| quality > 0.0));
        match name {
            _ if name.eq_ignore_ascii_case("gzip") || name.eq_ignore_ascii_case("x-gzip") => {
                by_name = Some(wanted)
            }
            "*" => by_star = wanted,
            _ => {}
        }
    }
    // `*` only applies to encodings that are not listed.
    by_name.unwrap_or(by_star)
}

/// A response that is worth compressing.
#[derive(Debug, Clone, Copy)]
pub struct Compressible {
    stable: Option<StablePart>,
}

impl Compressible {
    /// Inspects a response. Must run before conditional requests are evaluated, because a 304 needs
    /// the same `Vary` header as its 200.
    pub fn of(response: &Response) -> Option<Self> {
        let headers = response.headers();
        // Streams have no exact size and are skipped.
        let large = response.body().size_hint().exact().is_some_and(|bytes| bytes >= MIN_BYTES);
        let is_fit = large && is_text(headers) && !headers.contains_key(CONTENT_ENCODING);
        is_fit.then(|| Self { stable: response.extensions().get().copied() })
    }

    /// Adds `Vary: Accept-Encoding`, and compresses the response if it has a body and the client
    /// accepts gzip.
    pub async fn finish(self, bodies: &CompressedBodies, accepts: AcceptsGzip, response: &mut Response) {
        vary(response.headers_mut());
        if !accepts.0 || response.status() == StatusCode::NOT_MODIFIED {
            return;
        }
        let body = std::mem::take(response.body_mut());
        match compressed(bodies, self.stable, body).await {
            Ok(body) => {
                *response.body_mut() = body;
                // The length is that of the uncompressed body. The server sets the new one.
                response.headers_mut().remove(CONTENT_LENGTH);
                response.headers_mut().insert(CONTENT_ENCODING, GZIP);
            }
            Err(Uncompressed(body)) => *response.body_mut() = body,
        }
    }
}

/// Returns whether a content type compresses well. Most image formats are already compressed.
fn is_text(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim_end();
    match essence.split_once('/') {
        Some(("text", "event-stream")) => false,
        Some(("text", _)) => true,
        Some(("application", name)) => {
            matches!(name, "json" | "problem+json" | "xml" | "javascript" | "yaml")
        }
        Some(("image", name)) => name == "svg+xml",
        _ => false,
    }
}

fn vary(headers: &mut HeaderMap) {
    match headers.entry(VARY) {
        Entry::Vacant(none) => drop(none.insert(HeaderValue::from_static("Accept-Encoding"))),
        Entry::Occupied(mut others) => {
            // Keep existing values: the response varies by several headers.
            let both = [others.get().as_bytes(), b", Accept-Encoding"].concat();
            if let Ok(both) = HeaderValue::from_bytes(&both) {
                others.insert(both);
            }
        }
    }
}

/// A body that could not be compressed, returned unchanged.
struct Uncompressed(Body);

async fn compressed(
    kept: &CompressedBodies,
    stable: Option<StablePart>,
    body: Body,
) -> Result<Body, Uncompressed> {
    let (first, rest) = frames(body).await?;
    let deflated = match stable.and_then(|stable| kept.0.get(&stable)) {
        Some(deflated) => deflated,
        None => {
            let uncompressed = || Uncompressed(Body::new(SplitBody::of(first.clone(), rest.clone())));
            let deflated = deflate_off_thread(first.clone()).await.ok_or_else(uncompressed)?;
            if let Some(stable) = stable {
                kept.0.insert(stable, deflated.clone());
            }
            deflated
        }
    };
    let end = deflated.end_with(&rest);
    Ok(Body::new(SplitBody::of(deflated.bytes, end)))
}

/// Splits a body into its first frame and the rest. If a body has a stable part, it is the first
/// frame.
async fn frames(mut body: Body) -> Result<(Bytes, Bytes), Uncompressed> {
    let mut frames = Vec::with_capacity(2);
    while let Some(frame) = body.frame().await {
        // Bodies of known length are in memory, so reading them cannot fail.
        frames.extend(frame.ok().and_then(|frame| frame.into_data().ok()));
    }
    let mut frames = frames.into_iter();
    let first = frames.next().unwrap_or_default();
    let rest: Vec<Bytes> = frames.collect();
    Ok((first, if let [rest] = &rest[..] { rest.clone() } else { rest.concat().into() }))
}

/// A gzip stream up to the end of the stable part, aligned to a byte boundary.
#[derive(Debug, Clone)]
struct Deflated {
    bytes: Bytes,
    crc: crc32fast::Hasher,
    stable_len: usize,
}

async fn deflate_off_thread(stable: Bytes) -> Option<Deflated> {
    if stable.len() <= INLINE_BYTES {
        return deflate(&stable);
    }
    tokio::task::spawn_blocking(move || deflate(&stable)).await.ok().flatten()
}

/// Compresses in one call into a buffer of worst-case size, because the library's `DeflateEncoder`
/// corrupts large inputs when it is flushed but not finished. The sync flush aligns the last block
/// to a byte boundary without ending the stream.
fn deflate(stable: &[u8]) -> Option<Deflated> {
    let mut out = Vec::with_capacity(HEADER.len() + stable.len() + stable.len() / 8 + 1_024);
    out.extend_from_slice(&HEADER);
    let mut deflater = Compress::new(Compression::new(LEVEL), false);
    deflater.compress_vec(stable, &mut out, FlushCompress::Sync).ok()?;
    let is_whole = deflater.total_in() == stable.len() as u64 && out.len() < out.capacity();
    let mut crc = crc32fast::Hasher::new();
    crc.update(stable);
    // Copy, so that the cache does not hold the worst-case buffer.
    is_whole.then(|| Deflated { bytes: Bytes::copy_from_slice(&out), crc, stable_len: stable.len() })
}

impl Deflated {
    /// Returns the rest of the stream: `rest` uncompressed, then the checksum and length of the
    /// whole.
    fn end_with(&self, rest: &[u8]) -> Bytes {
        let mut out = Vec::with_capacity(rest.len() + 16);
        let (head, last) = rest.split_at(rest.len() - rest.len() % STORED_BYTES);
        for block in head.chunks(STORED_BYTES) {
            store(&mut out, 0, block);
        }
        store(&mut out, 1, last);
        let mut crc = self.crc.clone();
        crc.update(rest);
        out.extend_from_slice(&crc.finalize().to_le_bytes());
        // The length is counted modulo 2^32 (RFC 1952).
        out.extend_from_slice(&((self.stable_len + rest.len()) as u32).to_le_bytes());
        Bytes::from(out)
    }
}

/// Appends an uncompressed block (RFC 1951, section 3.2.4).
fn store(out: &mut Vec<u8>, is_last: u8, block: &[u8]) {
    let len = block.len() as u16;
    // Only the lowest bit is used: the block type 0 means uncompressed.
    out.push(is_last);
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(&(!len).to_le_bytes());
    out.extend_from_slice(block);
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    fn inflated(deflated: &Deflated, rest: &[u8]) -> Vec<u8> {
        let stream = [&deflated.bytes[..], &deflated.end_with(rest)].concat();
        let mut whole = Vec::new();
        // The single-member decoder fails on a wrong checksum or length, and ignores trailing
        // bytes.
        let mut decoder = GzDecoder::new(&stream[..]);
        decoder.read_to_end(&mut whole).unwrap();
        assert!(decoder.into_inner().is_empty(), "the stream is one gzip member");
        whole
    }

    #[test]
    fn a_stable_part_and_the_rest_form_one_gzip_stream() {
        let stable = b"{\"data\":[1,2,3,4,5,6,7,8]".repeat(100);
        let deflated = deflate(&stable).unwrap();
        assert!(deflated.bytes.len() < stable.len() / 4);
        for rest in [0, 1, 100, STORED_BYTES - 1, STORED_BYTES, STORED_BYTES + 1, 3 * STORED_BYTES] {
            let rest: Vec<u8> = (0..rest).map(|n| n as u8).collect();
            assert_eq!(inflated(&deflated, &rest), [&stable[..], &rest].concat(), "{}", rest.len());
        }
        assert_eq!(inflated(&deflate(b"").unwrap(), b""), b"");
    }

    #[test]
    fn stable_parts_of_any_size_and_content_survive_compression() {
        let document: String = (0..20_000).map(|n| format!("{{\"id\":{n}}},")).collect();
        let document = document.as_bytes();
        let noise: Vec<u8> =
            (0..200_000u64).map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect();
        for len in [1, 1_023, 16_384, 32_768, 65_536, 131_073, document.len()] {
            let stable = &document[..len];
            assert_eq!(inflated(&deflate(stable).unwrap(), b"}"), [stable, b"}"].concat(), "{len}");
        }
        assert_eq!(inflated(&deflate(&noise).unwrap(), b""), noise);
    }

    #[test]
    fn gzip_is_negotiated_by_the_standard() {
        for (line, accepted) in [
            ("gzip", true),
            ("deflate, gzip;q=1.0, *;q=0.5", true),
            ("GZIP ; q=0.1", true),
            ("br, *", true),
            ("x-gzip", true),
            ("gzip;q=0", false),
            ("gzip;q=0, *", false),
            ("*;q=0, gzip", true),
            ("br", false),
            ("identity", false),
            ("", false),
            ("gzip;q=x", false),
        ] {
            assert_eq!(accepts_gzip([line].into_iter()), accepted, "{line:?}");
        }
    }

    #[test]
    fn a_stream_of_events_is_never_compressible() {
        let response = |kind: &'static str, body: Body| {
            let mut response = Response::new(body);
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
            response
        };
        let large = || Body::from("x".repeat(MIN_BYTES as usize));
        assert!(Compressible::of(&response("application/json", large())).is_some());
        assert!(Compressible::of(&response("text/html; charset=utf-8", large())).is_some());
        assert!(Compressible::of(&response("text/event-stream", large())).is_none());
        assert!(Compressible::of(&response("image/png", large())).is_none());
        let small = Body::from("x".repeat(MIN_BYTES as usize - 1));
        assert!(Compressible::of(&response("application/json", small)).is_none());
        let stream = Body::from_stream(futures::stream::empty::<Result<Bytes, std::convert::Infallible>>());
        assert!(Compressible::of(&response("application/json", stream)).is_none());
    }

    #[tokio::test]
    async fn a_stable_part_is_compressed_once_for_all_answers() {
        let kept = CompressedBodies::default();
        let answer = async |first: &'static [u8], rest: &'static [u8]| {
            let body = Body::new(SplitBody::of(Bytes::from_static(first), Bytes::from_static(rest)));
            let body = compressed(&kept, Some(StablePart::of(b"stable")), body).await.ok().unwrap();
            let bytes = body.collect().await.unwrap().to_bytes();
            let mut text = String::new();
            GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
            text
        };
        assert_eq!(answer(b"stable", b" first").await, "stable first");
        // The hash does not belong to these bytes, so the cached bytes must come back.
        assert_eq!(answer(b"not compressed again", b" second").await, "stable second");
        assert_eq!(kept.0.len(), 1);
    }
}
