use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Computes HMAC-SHA256 as hex.
pub(crate) fn hmac_hex(secret: &str, parts: &[&[u8]]) -> String {
    #[expect(clippy::expect_used, reason = "HMAC takes keys of any length")]
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("a key of any length");
    parts.iter().for_each(|part| mac.update(part));
    hex::encode(mac.finalize().into_bytes())
}

/// Returns `X-Service-Signature` for a request. `path` has no query.
#[must_use]
pub fn request_signature(key: &str, at_ms: u64, method: &str, path: &str, body: &str) -> String {
    let message = format!("{at_ms}.{method}.{path}.");
    let signature = hmac_hex(key, &[message.as_bytes(), body.as_bytes()]);
    format!("t={at_ms},v1={signature}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn requests_are_signed_like_the_vectors() {
        let table: Value = serde_json::from_str(include_str!("../../behaviors/behaviors.json")).unwrap();
        for vector in table["signatures"].as_array().unwrap() {
            let text = |member: &str| vector[member].as_str().unwrap();
            let at_ms = vector["timeMs"].as_u64().unwrap();
            let signature = request_signature(text("key"), at_ms, text("method"), text("path"), text("body"));
            assert_eq!(signature, format!("t={at_ms},v1={}", text("v1")));
        }
    }
}
