//! The files that pages load: style, scripts and images. They are in one folder, named by the hash of
//! all files, so a browser can keep each of them forever.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use http_kit::{CachedBody, Problem};
use sha2::{Digest, Sha256};

const FOREVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
const NEVER: HeaderValue = HeaderValue::from_static("no-store");

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_bytes!(concat!("../assets/", $name)))),*]
    };
}

/// The files by name.
static FILES: &[(&str, &[u8])] = files![
    "app.css",
    "categories/climate.svg",
    "categories/crypto.svg",
    "categories/economy.svg",
    "categories/politics.svg",
    "categories/science.svg",
    "categories/sports.svg",
    "favicon.svg",
    "js/abi.js",
    "js/act.js",
    "js/bytes.js",
    "js/chart.js",
    "js/describe.js",
    "js/eip712.js",
    "js/file.js",
    "js/format.js",
    "js/forms.js",
    "js/keccak.js",
    "js/live.js",
    "js/main.js",
    "js/market.js",
    "js/outcomes.js",
    "js/own.js",
    "js/page.js",
    "js/part.js",
    "js/passkey.js",
    "js/request.js",
    "js/ticket.js",
    "js/wallet.js",
    "js/wallet_text.js",
    "logo.svg",
    "mark.svg",
];

/// Returns the names and bytes of all files.
pub fn all() -> impl Iterator<Item = (&'static str, &'static [u8])> {
    FILES.iter().copied()
}

/// The name of the folder.
static FOLDER: LazyLock<String> = LazyLock::new(|| {
    let all =
        FILES.iter().fold(Sha256::new(), |all, (name, bytes)| all.chain_update(name).chain_update(bytes));
    alloy_primitives::hex::encode(&all.finalize()[..8])
});

/// Returns the path of a file.
pub fn path_of(name: &str) -> String {
    format!("/assets/{}/{name}", *FOLDER)
}

/// Returns the path of a category's image, if it has one.
pub fn image_of(category: &str) -> Option<String> {
    let name = format!("categories/{category}.svg");
    FILES.iter().any(|(known, _)| *known == name).then(|| path_of(&name))
}

/// `GET /assets/{folder}/{*name}`.
pub async fn file(Path((folder, name)): Path<(String, String)>) -> Result<Response, Problem> {
    let (_, bytes) = FILES.iter().find(|(known, _)| *known == name).ok_or_else(Problem::not_found)?;
    let kind = match name.rsplit_once('.') {
        Some((_, "css")) => "text/css; charset=utf-8",
        Some((_, "js")) => "text/javascript; charset=utf-8",
        _ => "image/svg+xml",
    };
    // During a rolling update, a page of another version may ask this process. It must not keep the
    // answer, because the same name has other bytes there.
    let caching = if folder == *FOLDER { FOREVER } else { NEVER };
    Ok((
        [(CONTENT_TYPE, HeaderValue::from_static(kind)), (CACHE_CONTROL, caching)],
        CachedBody::of(bytes.to_vec()).whole(),
    )
        .into_response())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn names_in(folder: &Path, base: &Path, names: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.extension().and_then(|extension| extension.to_str()) {
                _ if path.is_dir() && !path.ends_with("tests") => names_in(&path, base, names),
                Some("css" | "js" | "svg") => {
                    names.push(path.strip_prefix(base).unwrap().to_str().unwrap().to_owned());
                }
                _ => {}
            }
        }
    }

    #[test]
    fn every_file_of_the_folder_is_served() {
        let base = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets");
        let mut names = Vec::new();
        names_in(&base, &base, &mut names);
        names.sort();
        assert_eq!(FILES.iter().map(|(name, _)| *name).collect::<Vec<_>>(), names);
    }

    #[test]
    fn only_known_categories_have_an_image() {
        assert!(image_of("economy").is_some_and(|path| path.ends_with("/categories/economy.svg")));
        assert_eq!(image_of("../app"), None);
        assert_eq!(image_of("gardening"), None);
    }
}
