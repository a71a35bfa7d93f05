//! Cursors of lists.
//!
//! A cursor contains the sort key and id of the last returned row, bound to its route and filters
//! by a MAC. It refers only to values that do not change, so later insertions do not affect it, and
//! it does not expire.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::page::PagePosition;
use domain::{SecretKey, Timestamp};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a cursor of this route and these filters")]
pub struct CursorError;

/// Encodes and decodes cursors with a server secret.
#[derive(Clone)]
pub struct CursorCodec {
    secret: SecretKey,
}

const MAC_LEN: usize = 16;
const MAX_CURSOR_LEN: usize = 512;

impl CursorCodec {
    pub fn new(secret: impl Into<SecretKey>) -> Self {
        Self { secret: secret.into() }
    }

    /// Encodes `position` as an opaque cursor for the list with this route and these filters.
    pub fn encode(&self, route: &str, filters: &str, position: &PagePosition) -> String {
        let payload = format!("{}.{}", position.created_at.ms(), position.id);
        let mut bytes = self.mac(route, filters, payload.as_bytes()).to_vec();
        bytes.extend_from_slice(payload.as_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Decodes a cursor and verifies that it belongs to this route and these filters.
    pub fn decode(&self, route: &str, filters: &str, text: &str) -> Result<PagePosition, CursorError> {
        if text.len() > MAX_CURSOR_LEN {
            return Err(CursorError);
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| CursorError)?;
        let (mac, payload) = bytes.split_at_checked(MAC_LEN).ok_or(CursorError)?;
        if !bool::from(self.mac(route, filters, payload).ct_eq(mac)) {
            return Err(CursorError);
        }
        let payload = std::str::from_utf8(payload).map_err(|_| CursorError)?;
        let (ms, id) = payload.split_once('.').ok_or(CursorError)?;
        let ms = ms.parse().map_err(|_| CursorError)?;
        Ok(PagePosition { created_at: Timestamp::from_ms(ms), id: id.to_owned() })
    }

    fn mac(&self, route: &str, filters: &str, payload: &[u8]) -> [u8; MAC_LEN] {
        #[expect(clippy::expect_used, reason = "HMAC takes a key of any length")]
        let mut mac =
            Hmac::<Sha256>::new_from_slice(self.secret.expose()).expect("HMAC takes a key of any length");
        // Hash both parts, so that no other pair of route and filters gives the same input.
        mac.update(&Sha256::digest(route.as_bytes()));
        mac.update(&Sha256::digest(filters.as_bytes()));
        mac.update(payload);
        let full = mac.finalize().into_bytes();
        let mut cut = [0; MAC_LEN];
        cut.copy_from_slice(&full[..MAC_LEN]);
        cut
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use proptest::prelude::*;

    static CODEC: LazyLock<CursorCodec> = LazyLock::new(|| CursorCodec::new([7; 32]));

    fn position() -> PagePosition {
        PagePosition { created_at: Timestamp::from_ms(1_777_464_000_123), id: "a.b".into() }
    }

    #[test]
    fn a_cursor_round_trips_to_its_position() {
        let text = CODEC.encode("/v1/trades", "status=pending", &position());
        assert_eq!(CODEC.decode("/v1/trades", "status=pending", &text), Ok(position()));
    }

    #[test]
    fn a_cursor_of_another_route_filter_or_server_is_rejected() {
        let text = CODEC.encode("/v1/trades", "status=pending", &position());
        assert_eq!(CODEC.decode("/v1/markets", "status=pending", &text), Err(CursorError));
        assert_eq!(CODEC.decode("/v1/trades", "status=failed", &text), Err(CursorError));
        assert_eq!(CursorCodec::new([8; 32]).decode("/v1/trades", "status=pending", &text), Err(CursorError));
    }

    #[test]
    fn the_same_position_always_gives_the_same_text() {
        assert_eq!(CODEC.encode("r", "f", &position()), CODEC.encode("r", "f", &position()));
    }

    proptest! {
        #[test]
        fn other_text_is_not_a_cursor(text in "\\PC{0,200}") {
            prop_assert_eq!(CODEC.decode("r", "f", &text), Err(CursorError));
        }

        #[test]
        fn a_cursor_with_a_changed_byte_is_rejected(at in 0usize..40, byte: u8) {
            let text = CODEC.encode("r", "f", &position());
            let mut bytes = URL_SAFE_NO_PAD.decode(&text).unwrap();
            let at = at % bytes.len();
            prop_assume!(bytes[at] != byte);
            bytes[at] = byte;
            prop_assert_eq!(CODEC.decode("r", "f", &URL_SAFE_NO_PAD.encode(bytes)), Err(CursorError));
        }
    }
}
