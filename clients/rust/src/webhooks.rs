//! Verifies the deliveries of webhooks.

use std::time::{Duration, SystemTime};

use subtle::{Choice, ConstantTimeEq};

use crate::clock::{Clock, SystemClock};
use crate::signing::hmac_hex;
use crate::types::WebhookEvent;

/// A delivery that must be answered with 400 and ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VerificationError {
    /// The header is missing or wrong.
    #[error("the signature header must be t=<unix-ms>,v1=<hex>")]
    Malformed,
    /// The delivery is a repetition, or the clock is wrong.
    #[error("the signature's time is too far from the clock")]
    Stale,
    /// The body or the secret is another one.
    #[error("no signature belongs to this body and secret")]
    Different,
    /// The body is signed, but it is not an event.
    #[error("the body is not an event")]
    Unreadable,
}

/// The rules by which deliveries are verified.
#[derive(Debug, Clone, Copy)]
pub struct VerifyOptions {
    /// The allowed difference between the signature's time and the clock.
    pub tolerance: Duration,
    /// The present. Default: the clock.
    pub now: Option<SystemTime>,
}

impl Default for VerifyOptions {
    fn default() -> Self {
        Self { tolerance: Duration::from_secs(300), now: None }
    }
}

/// Returns the header `X-Service-Signature` of a delivery, for tests of a receiver.
#[must_use]
pub fn sign(body: &[u8], secret: &str, at: SystemTime) -> String {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let at_ms = since.as_millis().to_string();
    format!("t={at_ms},v1={}", hmac_hex(secret, &[at_ms.as_bytes(), b".", body]))
}

/// Verifies a delivery and returns its event.
///
/// `body` has the bytes as they arrived, not a body that was parsed and serialized again. `header`
/// is `X-Service-Signature`. `secrets` are the secret of the key, or both of them during a rotation.
///
/// # Errors
///
/// If the delivery must be ignored.
pub fn verify(body: &[u8], header: &str, secrets: &[&str]) -> Result<WebhookEvent, VerificationError> {
    verify_with(body, header, secrets, VerifyOptions::default())
}

/// Verifies a delivery with another tolerance or clock. See [`verify`].
///
/// # Errors
///
/// If the delivery must be ignored.
pub fn verify_with(
    body: &[u8],
    header: &str,
    secrets: &[&str],
    options: VerifyOptions,
) -> Result<WebhookEvent, VerificationError> {
    let elements = header.split(',').filter_map(|element| element.split_once('='));
    let elements: Vec<_> = elements.map(|(name, value)| (name.trim(), value.trim())).collect();
    let values = |wanted: &str| -> Vec<&str> {
        let matching = elements.iter().filter(|(name, value)| *name == wanted && !value.is_empty());
        matching.map(|(_, value)| *value).collect()
    };
    let (times, signatures) = (values("t"), values("v1"));
    let [time] = times[..] else { return Err(VerificationError::Malformed) };
    let is_number = time.len() <= 15 && time.bytes().all(|byte| byte.is_ascii_digit());
    let (true, false, Ok(at_ms)) = (is_number, signatures.is_empty(), time.parse()) else {
        return Err(VerificationError::Malformed);
    };
    let now = options.now.unwrap_or_else(|| SystemClock.now());
    let at = SystemTime::UNIX_EPOCH + Duration::from_millis(at_ms);
    let distance = now.duration_since(at).unwrap_or_else(|ahead| ahead.duration());
    if distance > options.tolerance {
        return Err(VerificationError::Stale);
    }
    let mut matches = Choice::from(0);
    for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
        let expected = hmac_hex(secret, &[time.as_bytes(), b".", body]);
        // Every pair is compared, so that the time does not show which one matches.
        for signature in &signatures {
            matches |= signature.as_bytes().ct_eq(expected.as_bytes());
        }
    }
    if !bool::from(matches) {
        return Err(VerificationError::Different);
    }
    serde_json::from_slice(body).map_err(|_| VerificationError::Unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn deliveries_are_verified_like_the_vectors() {
        let table: Value = serde_json::from_str(include_str!("../../behaviors/behaviors.json")).unwrap();
        let vectors = table["webhooks"].as_array().unwrap();
        assert!(vectors.len() > 20);
        for vector in vectors {
            let text = |member: &str| vector[member].as_str().unwrap();
            let millis = |member: &str| vector[member].as_u64().map(Duration::from_millis);
            let options = VerifyOptions {
                now: millis("nowMs").map(|since| SystemTime::UNIX_EPOCH + since),
                tolerance: millis("toleranceMs").unwrap_or(VerifyOptions::default().tolerance),
            };
            let secrets: Vec<&str> =
                vector["secrets"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
            let verified = verify_with(text("body").as_bytes(), text("header"), &secrets, options);
            assert_eq!(Some(verified.is_ok()), vector["valid"].as_bool(), "{}: {verified:?}", vector["id"]);
            if let Ok(event) = verified {
                let body: Value = serde_json::from_str(text("body")).unwrap();
                assert_eq!(serde_json::to_value(event).unwrap(), body);
            }
        }
    }

    #[test]
    fn an_empty_secret_signs_nothing() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_millis(5);
        let options = VerifyOptions { now: Some(now), ..VerifyOptions::default() };
        let header = format!("t=5,v1={}", hmac_hex("", &[b"5.", b"{}"]));
        assert_eq!(verify_with(b"{}", &header, &[""], options), Err(VerificationError::Different));
    }

    #[test]
    fn deliveries_are_signed_like_the_vectors() {
        let table: Value = serde_json::from_str(include_str!("../../behaviors/behaviors.json")).unwrap();
        for vector in table["deliveries"].as_array().unwrap() {
            let text = |member: &str| vector[member].as_str().unwrap();
            let at_ms = vector["timeMs"].as_u64().unwrap();
            let at = SystemTime::UNIX_EPOCH + Duration::from_millis(at_ms);
            let header = sign(text("body").as_bytes(), text("secret"), at);
            assert_eq!(header, format!("t={at_ms},v1={}", text("v1")));
        }
    }

    #[test]
    fn a_signature_by_the_clock_is_accepted() {
        let body = br#"{"id":"x","type":"y","apiVersion":"2026-04-29","createdAt":"","data":{}}"#;
        assert!(verify(body, &sign(body, "whsec_x", SystemClock.now()), &["whsec_x"]).is_ok());
    }
}
