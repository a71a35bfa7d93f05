//! HMAC-SHA256 signatures with a shared secret, in the form `t=<unix-ms>,v1=<hex>`. The time is
//! part of the signed bytes. Clients can sign requests in this form. Verification takes the same
//! time whether or not a signature matches.

use alloy_primitives::hex;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::{Choice, ConstantTimeEq};

use crate::Timestamp;
use crate::time::MINUTE_MS;

/// The maximum difference between a signature's time and the current time, in either direction.
pub const TOLERANCE_MS: i64 = 5 * MINUTE_MS;
/// The maximum number of signatures in one header. Enough for overlapping secrets, and a small
/// amount of work for an unauthenticated request.
pub const MAX_SIGNATURES: usize = 8;
/// Enough digits for milliseconds until the year 33658.
const MAX_TIME_DIGITS: usize = 15;

/// Returns the HMAC-SHA256 of the concatenated `parts`.
pub fn hmac_sha256(secret: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    mac(secret, parts).finalize().into_bytes().into()
}

fn mac(secret: &[u8], parts: &[&[u8]]) -> Hmac<Sha256> {
    #[expect(clippy::expect_used, reason = "HMAC takes a key of any length")]
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes a key of any length");
    parts.iter().for_each(|part| mac.update(part));
    mac
}

/// Formats a header with these signatures made at `at`.
pub fn header(at: Timestamp, signatures: &[[u8; 32]]) -> String {
    let signatures = signatures.iter().map(|signature| format!(",v1={}", hex::encode(signature)));
    format!("t={}{}", at.ms(), signatures.collect::<String>())
}

/// The reason why a signature is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignatureRefusal {
    /// The header does not have exactly one `t` and one to eight `v1`.
    #[error(
        "The X-Service-Signature header must have the form t=<unix-ms>,v1=<64 hex digits>, with at most 8 v1 values."
    )]
    Malformed,
    /// The time differs too much from the current time.
    #[error("The time in the X-Service-Signature header must be within 5 minutes of the service's clock.")]
    Stale,
    /// The signature belongs to other bytes or another secret.
    #[error("No v1 value in the X-Service-Signature header matches this request and key.")]
    Mismatch,
}

/// The signed parts of a request. The time comes before them, and full stops separate all parts.
#[derive(Debug, Clone, Copy)]
pub struct SignedRequest<'a> {
    /// In upper case.
    pub method: &'a str,
    /// The path as sent, without the query.
    pub path: &'a str,
    /// The raw body; empty if there is none.
    pub body: &'a [u8],
}

impl SignedRequest<'_> {
    /// Returns the header with which a client signs this request. `secret` is its plaintext key.
    pub fn sign(&self, secret: &str, at: Timestamp) -> String {
        let signature = hmac_sha256(secret.as_bytes(), &self.parts(&at.ms().to_string()));
        header(at, &[signature])
    }

    fn parts<'p>(&'p self, time: &'p str) -> [&'p [u8]; 7] {
        [time.as_bytes(), b".", self.method.as_bytes(), b".", self.path.as_bytes(), b".", self.body]
    }
}

/// A parsed signature header that has not been verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignatureHeader<'a> {
    /// The time exactly as written, because these characters were signed.
    time: &'a str,
    made_at: Timestamp,
    signatures: Vec<[u8; 32]>,
}

impl<'a> SignatureHeader<'a> {
    /// Parses a header and checks its age at `now`. Neither needs the body, so a bad header can be
    /// rejected before the body arrives.
    ///
    /// # Errors
    ///
    /// `Malformed` or `Stale`.
    pub fn read(text: &'a str, now: Timestamp) -> Result<Self, SignatureRefusal> {
        let header = Self::parse(text).ok_or(SignatureRefusal::Malformed)?;
        // Both ends are included.
        let age_ms = now.since_ms(header.made_at);
        if (-TOLERANCE_MS..=TOLERANCE_MS).contains(&age_ms) {
            Ok(header)
        } else {
            Err(SignatureRefusal::Stale)
        }
    }

    fn parse(text: &'a str) -> Option<Self> {
        let (mut time, mut signatures) = (None, Vec::new());
        for element in text.split(',') {
            match element.trim_matches([' ', '\t']).split_once('=')? {
                ("t", value) if time.is_none() => time = Some(value),
                ("v1", value) if signatures.len() < MAX_SIGNATURES => signatures.push(signature(value)?),
                _ => return None,
            }
        }
        let time = time.filter(|_| !signatures.is_empty())?;
        let digits = (1..=MAX_TIME_DIGITS).contains(&time.len()) && time.bytes().all(|b| b.is_ascii_digit());
        let ms = time.parse().ok().filter(|_| digits)?;
        Some(Self { time, made_at: Timestamp::from_ms(ms), signatures })
    }

    /// Checks that one of the signatures is that of `request`. `secret` is the plaintext key.
    ///
    /// # Errors
    ///
    /// `Mismatch`
    pub fn verify(&self, secret: &str, request: SignedRequest<'_>) -> Result<(), SignatureRefusal> {
        self.verify_parts(secret, &request.parts(self.time))
    }

    /// Checks that one of the signatures is that of only `body`. Webhook deliveries use this form,
    /// because the method and path may change between sender and receiver.
    ///
    /// # Errors
    ///
    /// `Mismatch`
    pub fn verify_body(&self, secret: &str, body: &[u8]) -> Result<(), SignatureRefusal> {
        self.verify_parts(secret, &[self.time.as_bytes(), b".", body])
    }

    fn verify_parts(&self, secret: &str, parts: &[&[u8]]) -> Result<(), SignatureRefusal> {
        let expected = hmac_sha256(secret.as_bytes(), parts);
        // Compare all signatures completely, so that the time reveals nothing about the expected
        // one.
        let one = self.signatures.iter().fold(Choice::from(0), |found, given| found | given.ct_eq(&expected));
        if bool::from(one) { Ok(()) } else { Err(SignatureRefusal::Mismatch) }
    }
}

fn signature(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    hex::decode_to_slice(text, &mut bytes).ok().map(|()| bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "service_test_0123456789ABCDEFGHIJKLMNOPQRSTUV";
    const NOW: Timestamp = Timestamp::from_ms(1_777_464_000_000);
    const BODY: &[u8] = br#"{"marketId":"018f0000-0000-7000-8000-000000000001","outcomeIndex":0,"amount":"25.00","side":"buy"}"#;

    const TRADE: SignedRequest<'static> = SignedRequest { method: "POST", path: "/v1/trades", body: BODY };

    /// Published test vectors for client authors, created with `openssl dgst -sha256 -hmac`.
    const VECTORS: &[(SignedRequest<'static>, &str)] = &[
        (TRADE, "248bbcd92738e5d8a9ac626de7145edd4bceca5b2395a8741e6add4c25da184d"),
        (
            SignedRequest {
                method: "POST",
                path: "/v1/trades/018f0000-0000-7000-8000-000000000002/confirm",
                body: br#"{"token":"ct_x"}"#,
            },
            "e4b9e05d642c511f4676658258bd2317cb48948df32cb9f768c177927a804c05",
        ),
        (
            SignedRequest { method: "GET", path: "/v1/markets", body: b"" },
            "8aa9171153aace669220ffb2aac0b6061fcd17c61e70d3cd4321047c81889520",
        ),
    ];

    fn verified(header: &str, request: SignedRequest<'_>, now: Timestamp) -> Result<(), SignatureRefusal> {
        SignatureHeader::read(header, now)?.verify(KEY, request)
    }

    #[test]
    fn the_published_vectors_hold() {
        for (request, signature) in VECTORS {
            let header = format!("t=1777464000000,v1={signature}");
            assert_eq!(request.sign(KEY, NOW), header);
            assert_eq!(verified(&header, *request, NOW), Ok(()));
        }
    }

    #[test]
    fn a_signature_is_valid_for_exactly_five_minutes_either_way() {
        let header = TRADE.sign(KEY, NOW);
        for (offset_ms, verdict) in [
            (TOLERANCE_MS, Ok(())),
            (-TOLERANCE_MS, Ok(())),
            (TOLERANCE_MS + 1, Err(SignatureRefusal::Stale)),
            (-TOLERANCE_MS - 1, Err(SignatureRefusal::Stale)),
        ] {
            assert_eq!(verified(&header, TRADE, NOW.plus_ms(offset_ms)), verdict, "{offset_ms}");
        }
    }

    #[test]
    fn a_changed_request_does_not_match_its_signature() {
        let header = TRADE.sign(KEY, NOW);
        for other in [
            SignedRequest { method: "PUT", ..TRADE },
            SignedRequest { path: "/v1/trades/", ..TRADE },
            SignedRequest { body: b"", ..TRADE },
            SignedRequest { body: &BODY[1..], ..TRADE },
        ] {
            assert_eq!(verified(&header, other, NOW), Err(SignatureRefusal::Mismatch), "{other:?}");
        }
        let read = SignatureHeader::read(&header, NOW).unwrap();
        assert_eq!(read.verify("another key", TRADE), Err(SignatureRefusal::Mismatch));
        // The time is part of the signature.
        let later = header.replace("t=1777464000000", "t=1777464000001");
        assert_eq!(verified(&later, TRADE, NOW), Err(SignatureRefusal::Mismatch));
        let padded = header.replace("t=1777464000000", "t=01777464000000");
        assert_eq!(verified(&padded, TRADE, NOW), Err(SignatureRefusal::Mismatch));
    }

    #[test]
    fn one_valid_signature_of_up_to_eight_is_enough() {
        let right = TRADE.sign(KEY, NOW);
        let (time, v1) = right.split_once(',').unwrap();
        let wrong = format!("v1={}", "0".repeat(64));
        let wrongs = |count| vec![wrong.as_str(); count].join(",");
        for header in [
            format!("{time},{},{v1}", wrongs(7)),
            format!("{time},{v1},{}", wrongs(7)),
            format!("{v1},{time}"),
            format!("{time}, {v1}"),
            format!("{time},v1={}", v1[3..].to_uppercase()),
        ] {
            assert_eq!(verified(&header, TRADE, NOW), Ok(()), "{header}");
        }
        let nine = format!("{time},{v1},{}", wrongs(8));
        assert_eq!(verified(&nine, TRADE, NOW), Err(SignatureRefusal::Malformed));
        assert_eq!(verified(&format!("{time},{}", wrongs(8)), TRADE, NOW), Err(SignatureRefusal::Mismatch));
    }

    #[test]
    fn a_header_in_another_format_is_malformed() {
        let v1 = "a".repeat(64);
        for text in [
            "",
            "t=1777464000000",
            "t=1777464000000,",
            "v1",
            &format!("v1={v1}"),
            &format!("t=,v1={v1}"),
            &format!("t=-1777464000000,v1={v1}"),
            &format!("t=+1777464000000,v1={v1}"),
            &format!("t=1777464000.5,v1={v1}"),
            &format!("t=9999999999999999,v1={v1}"),
            &format!("t=1,t=1,v1={v1}"),
            &format!("t=1,v1={}", &v1[1..]),
            &format!("t=1,v1={v1}a"),
            &format!("t=1,v1=0x{}", &v1[2..]),
            &format!("t=1,v1={}", "g".repeat(64)),
            &format!("t=1,v0={v1}"),
            &format!("t=1,v1={v1},v2={v1}"),
            &format!("T=1,v1={v1}"),
            &format!("t=1;v1={v1}"),
        ] {
            assert_eq!(SignatureHeader::read(text, NOW), Err(SignatureRefusal::Malformed), "{text}");
        }
    }
}
