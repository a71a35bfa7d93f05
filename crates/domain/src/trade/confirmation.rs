//! Confirmation of high-value trades: the token that releases a held trade, and the checks of a
//! confirmation in order.

use alloy_primitives::U256;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use super::State;
use super::state::is_end_of_key;
use crate::code::ErrorCode;
use crate::ids::TradeId;
use crate::key::BASE62;
use crate::{SecretKey, Timestamp};

/// The prefix of every token.
const PREFIX: &str = "ct_";
/// The base62 digits of a 256-bit number.
const DIGITS: usize = 43;

/// The key from which confirmation tokens are derived. A trade's token depends only on this key and
/// the trade's id. A replayed request therefore returns the same token, and no token is stored.
#[derive(Clone)]
pub struct ConfirmationKey(SecretKey);

impl ConfirmationKey {
    /// Derives the key from the server's pepper. The pepper cannot be derived from the key.
    pub fn derive(pepper: &[u8]) -> Self {
        Self(mac(pepper, b"confirmation token").into())
    }

    /// Returns the token that releases the trade.
    pub fn token(&self, id: TradeId) -> String {
        let mut number = U256::from_be_bytes(mac(self.0.expose(), id.0.as_bytes()));
        let mut digits = [0u8; DIGITS];
        // Includes leading zeros, so that all tokens have the same length.
        for digit in digits.iter_mut().rev() {
            let (rest, remainder) = number.div_rem(U256::from(BASE62.len()));
            *digit = BASE62[remainder.to::<usize>()];
            number = rest;
        }
        PREFIX.chars().chain(digits.into_iter().map(char::from)).collect()
    }

    /// Returns true if `token` releases the trade. The comparison takes constant time.
    pub fn accepts(&self, id: TradeId, token: &str) -> bool {
        self.token(id).as_bytes().ct_eq(token.as_bytes()).into()
    }
}

fn mac(key: &[u8], message: &[u8]) -> [u8; 32] {
    #[expect(clippy::expect_used, reason = "HMAC takes a key of any length")]
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(message);
    mac.finalize().into_bytes().into()
}

/// The reason why a trade is not released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfirmRefusal {
    /// The trade was never held.
    NeverHeld,
    /// The confirmation window is over, even if the trade has not been failed yet.
    Expired,
    /// The token does not belong to this trade.
    WrongToken,
    /// The key that created the trade was revoked or has expired, and the trade failed with it.
    KeyEnded,
    /// The trade was already released.
    Used,
}

/// Checks a confirmation at `now` of a trade in `state`. `held_until` is the end of its window, or
/// `None` if it was never held. Checks in the order of [`ConfirmRefusal`]. A trade that was
/// released in time does not expire later.
pub fn check_confirmation(
    state: &State,
    held_until: Option<Timestamp>,
    now: Timestamp,
    token_fits: bool,
) -> Result<(), ConfirmRefusal> {
    let Some(held_until) = held_until else { return Err(ConfirmRefusal::NeverHeld) };
    match state {
        // The worker may not have failed the trade yet. Expiry comes before the token, so that a
        // late confirmation always reports it.
        State::PendingConfirmation { .. } if held_until <= now => Err(ConfirmRefusal::Expired),
        State::Failed(failure) if failure.code == ErrorCode::ConfirmationExpired => {
            Err(ConfirmRefusal::Expired)
        }
        _ if !token_fits => Err(ConfirmRefusal::WrongToken),
        State::PendingConfirmation { .. } => Ok(()),
        State::Failed(failure) if is_end_of_key(failure) => Err(ConfirmRefusal::KeyEnded),
        _ => Err(ConfirmRefusal::Used),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trade::{Failure, Status, Transition};
    use uuid::Uuid;

    const UNTIL: Timestamp = Timestamp::from_ms(1_000);

    fn id(number: u128) -> TradeId {
        TradeId(Uuid::from_u128(number))
    }

    fn failed(code: ErrorCode) -> State {
        State::Failed(Failure { code, message: "m".into(), tx_hash: None })
    }

    #[test]
    fn a_token_is_a_prefix_and_43_stable_base62_characters() {
        let key = ConfirmationKey::derive(&[7; 32]);
        let token = key.token(id(1));
        let digits = token.strip_prefix("ct_").unwrap();
        assert_eq!(digits.len(), 43);
        assert!(digits.bytes().all(|digit| digit.is_ascii_alphanumeric()));
        assert_eq!(key.token(id(1)), token);
        insta::assert_snapshot!(token);
    }

    #[test]
    fn a_token_is_valid_only_for_its_trade_and_secret() {
        let key = ConfirmationKey::derive(&[7; 32]);
        let token = key.token(id(1));
        assert!(key.accepts(id(1), &token));
        assert!(!key.accepts(id(2), &token));
        assert!(!ConfirmationKey::derive(&[8; 32]).accepts(id(1), &token));
        for text in ["", "ct_", &token[1..], &token[..45], &format!("{token}0"), &token.to_lowercase()] {
            assert!(!key.accepts(id(1), text), "{text}");
        }
    }

    #[test]
    fn the_window_ends_exactly_at_its_end() {
        let held = State::PendingConfirmation { expires_at: UNTIL };
        let at = |ms| check_confirmation(&held, Some(UNTIL), Timestamp::from_ms(ms), true);
        assert_eq!(at(999), Ok(()));
        assert_eq!(at(1_000), Err(ConfirmRefusal::Expired));
    }

    #[test]
    fn the_first_reason_in_the_documented_order_is_reported() {
        let held = State::PendingConfirmation { expires_at: UNTIL };
        let (early, late) = (Timestamp::from_ms(0), Timestamp::from_ms(5_000));
        let expired = failed(ErrorCode::ConfirmationExpired);
        let key_ended = Transition::end_with_key(Status::PendingConfirmation, early).unwrap().to;
        for (state, held_until, now, fits, refusal) in [
            (&State::Pending, None, late, false, ConfirmRefusal::NeverHeld),
            (&held, Some(UNTIL), late, false, ConfirmRefusal::Expired),
            (&expired, Some(UNTIL), early, false, ConfirmRefusal::Expired),
            (&held, Some(UNTIL), early, false, ConfirmRefusal::WrongToken),
            (&State::Executing, Some(UNTIL), late, false, ConfirmRefusal::WrongToken),
            (&key_ended, Some(UNTIL), late, false, ConfirmRefusal::WrongToken),
            (&key_ended, Some(UNTIL), late, true, ConfirmRefusal::KeyEnded),
            (&State::Pending, Some(UNTIL), early, true, ConfirmRefusal::Used),
            (&State::Executing, Some(UNTIL), late, true, ConfirmRefusal::Used),
            (&failed(ErrorCode::RequestTimeout), Some(UNTIL), late, true, ConfirmRefusal::Used),
        ] {
            assert_eq!(check_confirmation(state, held_until, now, fits), Err(refusal), "{state:?}");
        }
    }
}
