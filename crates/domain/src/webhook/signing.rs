//! Signs deliveries and verifies them like a receiver.
//!
//! Each delivery has two signatures. `X-Service-Signature` is this service's own, over
//! `<unix-ms>.<raw body>`. The headers of Standard Webhooks sign `<event id>.<unix-s>.<raw body>`,
//! so that any library for that standard can verify deliveries.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use subtle::{Choice, ConstantTimeEq};

use super::secret::WebhookSecret;
use crate::Timestamp;
use crate::signature::{self, MAX_SIGNATURES, SignatureHeader, SignatureRefusal, TOLERANCE_MS, hmac_sha256};

const USER_AGENT: &str = concat!("Foretell/", env!("CARGO_PKG_VERSION"), " (webhooks)");
/// The prefix of Standard Webhooks' signatures with a shared secret.
const STANDARD_SCHEME: &str = "v1,";

#[derive(Debug, Clone, Copy)]
pub struct Delivery<'a> {
    /// The same for all deliveries of the event.
    pub event_id: &'a str,
    /// The body's `apiVersion`.
    pub api_version: &'a str,
    pub body: &'a [u8],
    /// The signing secrets, newest first.
    pub secrets: &'a [&'a WebhookSecret],
    /// The time of this attempt. Each retry is signed again, so that receivers do not reject it as
    /// too old.
    pub at: Timestamp,
}

impl Delivery<'_> {
    /// Returns all headers of the delivery, with names in lower case.
    pub fn headers(&self) -> [(&'static str, String); 8] {
        [
            ("content-type", "application/json".to_owned()),
            ("user-agent", USER_AGENT.to_owned()),
            ("x-service-signature", self.service_signature()),
            ("x-service-event-id", self.event_id.to_owned()),
            ("x-service-api-version", self.api_version.to_owned()),
            ("webhook-id", self.event_id.to_owned()),
            ("webhook-timestamp", self.at.s().to_string()),
            ("webhook-signature", self.standard_signature()),
        ]
    }

    fn service_signature(&self) -> String {
        let time = self.at.ms().to_string();
        let under = |secret: &&WebhookSecret| {
            hmac_sha256(secret.expose().as_bytes(), &[time.as_bytes(), b".", self.body])
        };
        signature::header(self.at, &self.secrets.iter().map(under).collect::<Vec<_>>())
    }

    fn standard_signature(&self) -> String {
        let time = self.at.s().to_string();
        let under = |secret: &&WebhookSecret| {
            let signature = standard_mac(secret, self.event_id, &time, self.body);
            format!("{STANDARD_SCHEME}{}", STANDARD.encode(signature))
        };
        self.secrets.iter().map(under).collect::<Vec<_>>().join(" ")
    }
}

fn standard_mac(secret: &WebhookSecret, event_id: &str, time: &str, body: &[u8]) -> [u8; 32] {
    hmac_sha256(secret.bytes(), &[event_id.as_bytes(), b".", time.as_bytes(), b".", body])
}

/// Verifies a delivery's `X-Service-Signature` like a receiver with one secret. One of the
/// signatures must match and be made within five minutes of `now`.
///
/// # Errors
///
/// `Malformed`, `Stale` or `Mismatch`.
pub fn verify(
    header: &str,
    body: &[u8],
    secret: &WebhookSecret,
    now: Timestamp,
) -> Result<(), SignatureRefusal> {
    SignatureHeader::read(header, now)?.verify_body(secret.expose(), body)
}

/// The three headers of Standard Webhooks.
#[derive(Debug, Clone, Copy)]
pub struct StandardHeaders<'a> {
    pub id: &'a str,
    pub timestamp: &'a str,
    pub signature: &'a str,
}

/// Verifies a delivery's Standard Webhooks headers, like [`verify`] does for this service's own.
/// Signatures with an unknown scheme are ignored, as the standard requires.
///
/// # Errors
///
/// `Malformed`, `Stale` or `Mismatch`.
pub fn verify_standard(
    headers: StandardHeaders<'_>,
    body: &[u8],
    secret: &WebhookSecret,
    now: Timestamp,
) -> Result<(), SignatureRefusal> {
    let digits = headers.timestamp.len() <= 12 && headers.timestamp.bytes().all(|b| b.is_ascii_digit());
    let at_s: u64 = headers.timestamp.parse().ok().filter(|_| digits).ok_or(SignatureRefusal::Malformed)?;
    if now.since_ms(Timestamp::from_s(at_s)).abs() > TOLERANCE_MS {
        return Err(SignatureRefusal::Stale);
    }
    let expected = standard_mac(secret, headers.id, headers.timestamp, body);
    let mut given = headers.signature.split(' ').filter_map(|text| text.strip_prefix(STANDARD_SCHEME));
    // Compare all signatures completely, so that the time reveals nothing about the expected one.
    let one = given.by_ref().take(MAX_SIGNATURES).fold(Choice::from(0), |found, text| {
        let signature = STANDARD.decode(text).unwrap_or_default();
        found | signature.as_slice().ct_eq(&expected)
    });
    // More than `MAX_SIGNATURES` signatures are malformed, even if one of the first matches.
    match (bool::from(one), given.next()) {
        (_, Some(_)) => Err(SignatureRefusal::Malformed),
        (true, None) => Ok(()),
        (false, None) => Err(SignatureRefusal::Mismatch),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENT_ID: &str = "018f0000-0000-7000-8000-00000000000a";
    const BODY: &[u8] = br#"{"id":"018f0000-0000-7000-8000-00000000000a","type":"trade.completed","apiVersion":"2026-04-29","createdAt":"2026-04-29T12:00:00.000Z","data":{}}"#;
    const NOW: Timestamp = Timestamp::from_ms(1_777_464_000_123);

    /// Published test vectors for receivers, created with `openssl dgst -sha256 -mac HMAC`. The key
    /// is the issued text in one signature and its 32 bytes in the other.
    struct Vector {
        secret: &'static str,
        service: &'static str,
        standard: &'static str,
    }

    const NEW: Vector = Vector {
        secret: "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
        service: "946d69d4335d3f084026ae9a3562e55b587f44a88ea75ac52f460538c73703f7",
        standard: "ArDx0dlEuILo7nf/MHsGNLxluNtPw7nnlvLZQ6QKXdc=",
    };
    const OLD: Vector = Vector {
        secret: "whsec_//////////////////////////////////////////8=",
        service: "cb50e608b239ed13306f6f11c04c52c4db95b692641e601348397132a9d0cf84",
        standard: "Q8J5/KDSCH37J04OomIP2IGD6/bdhCalj4YfhFZSn6U=",
    };

    fn secret(vector: &Vector) -> WebhookSecret {
        vector.secret.parse().unwrap()
    }

    fn headers_under(vectors: &[&Vector]) -> Vec<(&'static str, String)> {
        let secrets: Vec<_> = vectors.iter().map(|vector| secret(vector)).collect();
        let secrets: Vec<_> = secrets.iter().collect();
        let delivery = Delivery {
            event_id: EVENT_ID,
            api_version: "2026-04-29",
            body: BODY,
            secrets: &secrets,
            at: NOW,
        };
        delivery.headers().to_vec()
    }

    fn header(headers: &[(&'static str, String)], name: &str) -> String {
        headers.iter().find(|(found, _)| *found == name).unwrap().1.clone()
    }

    #[test]
    fn a_delivery_carries_both_signatures_of_the_published_vector() {
        let version = env!("CARGO_PKG_VERSION");
        let expected = [
            ("content-type", "application/json".to_owned()),
            ("user-agent", format!("Foretell/{version} (webhooks)")),
            ("x-service-signature", format!("t=1777464000123,v1={}", NEW.service)),
            ("x-service-event-id", EVENT_ID.to_owned()),
            ("x-service-api-version", "2026-04-29".to_owned()),
            ("webhook-id", EVENT_ID.to_owned()),
            ("webhook-timestamp", "1777464000".to_owned()),
            ("webhook-signature", format!("v1,{}", NEW.standard)),
        ];
        assert_eq!(headers_under(&[&NEW]), expected);
    }

    #[test]
    fn the_receivers_guide_publishes_these_vectors() {
        let guide = include_str!("../../../../docs/webhooks.md");
        for Vector { secret, service, standard } in [NEW, OLD] {
            let row = format!("| `{secret}` | `{service}` | `{standard}` |");
            assert!(guide.contains(&row), "{row}");
        }
        let body = format!("\n{}\n", str::from_utf8(BODY).unwrap());
        assert!(guide.contains(&body) && guide.contains(EVENT_ID) && guide.contains("`1777464000123`"));
    }

    #[test]
    fn two_secrets_sign_in_order_and_each_verifies() {
        let headers = headers_under(&[&NEW, &OLD]);
        let service = header(&headers, "x-service-signature");
        let standard = header(&headers, "webhook-signature");
        assert_eq!(service, format!("t=1777464000123,v1={},v1={}", NEW.service, OLD.service));
        assert_eq!(standard, format!("v1,{} v1,{}", NEW.standard, OLD.standard));
        for vector in [&NEW, &OLD] {
            assert_eq!(verify(&service, BODY, &secret(vector), NOW), Ok(()));
            let headers = StandardHeaders { id: EVENT_ID, timestamp: "1777464000", signature: &standard };
            assert_eq!(verify_standard(headers, BODY, &secret(vector), NOW), Ok(()));
        }
        let stranger = WebhookSecret::from_bytes([7; 32]);
        assert_eq!(verify(&service, BODY, &stranger, NOW), Err(SignatureRefusal::Mismatch));
    }

    #[test]
    fn a_delivery_is_valid_for_five_minutes_and_only_for_its_body() {
        let text = header(&headers_under(&[&NEW]), "x-service-signature");
        let read = |body: &[u8], offset_ms| verify(&text, body, &secret(&NEW), NOW.plus_ms(offset_ms));
        for offset_ms in [TOLERANCE_MS, -TOLERANCE_MS] {
            assert_eq!(read(BODY, offset_ms), Ok(()));
            assert_eq!(read(BODY, offset_ms + offset_ms.signum()), Err(SignatureRefusal::Stale));
        }
        assert_eq!(read(&BODY[1..], 0), Err(SignatureRefusal::Mismatch));
        assert_eq!(verify("v1=", BODY, &secret(&NEW), NOW), Err(SignatureRefusal::Malformed));
    }

    #[test]
    fn the_key_is_the_issued_text_and_the_standard_uses_its_bytes() {
        let text = header(&headers_under(&[&NEW]), "x-service-signature");
        let decoded = hmac_sha256(secret(&NEW).bytes(), &[b"1777464000123.", BODY]);
        assert!(!text.contains(&alloy_primitives::hex::encode(decoded)));
    }

    #[test]
    fn the_standard_headers_are_parsed_as_strictly() {
        let read = |id, timestamp, signature: &str, now| {
            verify_standard(StandardHeaders { id, timestamp, signature }, BODY, &secret(&NEW), now)
        };
        let right = format!("v1,{}", NEW.standard);
        let signed_at = Timestamp::from_s(1_777_464_000);
        let (malformed, stale) = (Err(SignatureRefusal::Malformed), Err(SignatureRefusal::Stale));
        for offset_ms in [TOLERANCE_MS, -TOLERANCE_MS] {
            let just = signed_at.plus_ms(offset_ms);
            assert_eq!(read(EVENT_ID, "1777464000", &right, just), Ok(()));
            let over = just.plus_ms(offset_ms.signum());
            assert_eq!(read(EVENT_ID, "1777464000", &right, over), stale);
        }
        for timestamp in ["", "+1777464000", "1777464000.0", "now", "99999999999999999999"] {
            assert_eq!(read(EVENT_ID, timestamp, &right, NOW), malformed, "{timestamp}");
        }
        for signature in ["", "v1", "v1,", "v1,AAAA", NEW.standard, &right.replace("v1,", "v1a,")] {
            let read = read(EVENT_ID, "1777464000", signature, NOW);
            assert_eq!(read, Err(SignatureRefusal::Mismatch), "{signature}");
        }
        assert_eq!(read(EVENT_ID, "1777464000", &format!("v1a,AAAA {right}"), NOW), Ok(()));
        assert_eq!(read("another", "1777464000", &right, NOW), Err(SignatureRefusal::Mismatch));
        let nine = format!("{right}{}", " v1,AAAA".repeat(8));
        assert_eq!(read(EVENT_ID, "1777464000", &nine, NOW), malformed);
    }
}
