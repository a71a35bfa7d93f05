//! Sessions of the web application: the token, and the rules for their lifetime.

use std::fmt;
use std::str::FromStr;

use alloy_primitives::hex;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use crate::Timestamp;
use crate::time::{DAY_MS, MINUTE_MS};

/// The time without a request after which a session expires.
pub const IDLE_MS: i64 = 14 * DAY_MS;
/// The time after which a session expires in any case, counted from its last renewal.
pub const LIFETIME_MS: i64 = 90 * DAY_MS;
/// The time for which a step-up counts.
pub const STEP_UP_MS: i64 = 5 * MINUTE_MS;
/// The interval at which the last use of a session is stored.
pub const TOUCH_MS: i64 = MINUTE_MS;

const TOKEN_BYTES: usize = 32;

/// The token of a session: 256 random bits, in unpadded base64url. It exists only in the user's
/// cookie. `Debug` does not print it.
#[derive(Clone)]
pub struct SessionToken(SecretString);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a session token")]
pub struct ParseTokenError;

impl SessionToken {
    pub fn new(random: [u8; TOKEN_BYTES]) -> Self {
        Self(URL_SAFE_NO_PAD.encode(random).into())
    }

    /// Returns the SHA-256 of the token, in hex. Only this is stored. It has no pepper, because a
    /// token of 256 bits cannot be guessed.
    pub fn digest(&self) -> String {
        hex::encode(Sha256::digest(self.expose()))
    }

    /// Returns the token itself, for the cookie.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl fmt::Debug for SessionToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionToken(…)")
    }
}

impl FromStr for SessionToken {
    type Err = ParseTokenError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match URL_SAFE_NO_PAD.decode(text) {
            Ok(bytes) if bytes.len() == TOKEN_BYTES => Ok(Self(text.into())),
            _ => Err(ParseTokenError),
        }
    }
}

/// The times of a session that decide whether it is live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionTimes {
    /// The last use that was stored.
    pub last_used_at: Timestamp,
    /// The time of the current token: the sign-in, or the last step-up.
    pub renewed_at: Timestamp,
    /// The last step-up. The Unix epoch if there was none.
    pub stepped_up_at: Timestamp,
    pub ended_at: Option<Timestamp>,
}

impl SessionTimes {
    /// The times of a session that begins. Signing in is a step-up, if it is done with a credential
    /// that may step up.
    pub const fn beginning(now: Timestamp) -> Self {
        Self { last_used_at: now, renewed_at: now, stepped_up_at: now, ended_at: None }
    }

    /// The same times without a step-up.
    #[must_use]
    pub const fn without_step_up(self) -> Self {
        Self { stepped_up_at: Timestamp::from_ms(0), ..self }
    }

    pub const fn is_live(&self, now: Timestamp) -> bool {
        self.ended_at.is_none()
            && now.since_ms(self.last_used_at) < IDLE_MS
            && now.since_ms(self.renewed_at) < LIFETIME_MS
    }

    /// Returns whether the user has proved who they are within the last five minutes.
    pub const fn is_stepped_up(&self, now: Timestamp) -> bool {
        now.since_ms(self.stepped_up_at) < STEP_UP_MS
    }

    /// Returns whether a use at `now` must be stored.
    pub const fn needs_touch(&self, now: Timestamp) -> bool {
        now.since_ms(self.last_used_at) >= TOUCH_MS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(1_777_464_000_000);

    #[test]
    fn a_session_expires_when_idle_and_in_any_case() {
        let session = SessionTimes::beginning(NOW);
        assert!(session.is_live(NOW.plus_ms(IDLE_MS - 1)));
        assert!(!session.is_live(NOW.plus_ms(IDLE_MS)));
        let end = NOW.plus_ms(LIFETIME_MS);
        let used = SessionTimes { last_used_at: end.plus_ms(-1), ..session };
        assert!(used.is_live(end.plus_ms(-1)) && !used.is_live(end));
        let renewed = SessionTimes { renewed_at: end, ..used };
        assert!(renewed.is_live(end));
        assert!(!SessionTimes { ended_at: Some(NOW), ..session }.is_live(NOW));
    }

    #[test]
    fn a_step_up_counts_for_five_minutes() {
        let session = SessionTimes::beginning(NOW);
        assert!(session.is_stepped_up(NOW.plus_ms(STEP_UP_MS - 1)));
        assert!(!session.is_stepped_up(NOW.plus_ms(STEP_UP_MS)));
        assert!(!session.without_step_up().is_stepped_up(NOW) && session.without_step_up().is_live(NOW));
    }

    #[test]
    fn a_token_is_stored_only_as_its_hash_and_never_printed() {
        let token = SessionToken::new([255; 32]);
        assert_eq!(token.expose().len(), 43);
        assert_eq!(format!("{token:?}"), "SessionToken(…)");
        let read: SessionToken = token.expose().parse().unwrap();
        assert_eq!(read.digest(), token.digest());
        assert!(!token.digest().contains(token.expose()));
        for text in ["", "a", &"a".repeat(42), &format!("{}=", token.expose()), &"!".repeat(43)] {
            assert_eq!(text.parse::<SessionToken>().err(), Some(ParseTokenError), "{text}");
        }
    }
}
