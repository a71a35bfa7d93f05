//! Rotation of webhook secrets: the minimum interval, and the secrets that sign afterwards.

use super::secret::WebhookSecret;
use crate::Timestamp;
use crate::time::{DAY_MS, MINUTE_MS};

/// The time for which the previous secret still signs in addition to the new one.
pub const OVERLAP_MS: i64 = 7 * DAY_MS;
/// The minimum time between two rotations.
pub const COOLDOWN_MS: i64 = MINUTE_MS;

/// The last rotation was too recent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cooldown {
    /// Seconds until the next rotation is allowed, rounded up.
    pub retry_after_s: i64,
}

/// Checks that the secret may be rotated now. `last_rotated_at` is `None` if it was never rotated;
/// issuing it does not count.
///
/// # Errors
///
/// The remaining wait.
pub fn may_rotate(last_rotated_at: Option<Timestamp>, now: Timestamp) -> Result<(), Cooldown> {
    let left_ms = last_rotated_at.map_or(0, |at| at.plus_ms(COOLDOWN_MS).since_ms(now));
    if left_ms <= 0 {
        return Ok(());
    }
    // If the clock went back, wait at most the whole cooldown.
    let left_ms = left_ms.min(COOLDOWN_MS);
    Err(Cooldown { retry_after_s: (left_ms + 999) / 1_000 })
}

/// Returns the time at which the previous secret stops signing.
pub const fn previous_expires_at(rotated_at: Timestamp) -> Timestamp {
    rotated_at.plus_ms(OVERLAP_MS)
}

/// The reason for a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The event happened.
    Event,
    /// The user requested the event again.
    Redelivery,
}

/// Returns the secrets that sign a delivery, newest first. `previous` is the secret before the last
/// rotation with its expiry.
///
/// A redelivery is signed only with the current secret, because a user who requests it already has
/// that secret.
pub fn signing_secrets<'a>(
    current: &'a WebhookSecret,
    previous: Option<(&'a WebhookSecret, Timestamp)>,
    cause: Cause,
    now: Timestamp,
) -> Vec<&'a WebhookSecret> {
    let previous = previous.filter(|(_, expires_at)| cause == Cause::Event && now < *expires_at);
    std::iter::once(current).chain(previous.map(|(secret, _)| secret)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROTATED: Timestamp = Timestamp::from_ms(1_777_464_000_000);

    fn signers(cause: Cause, after_ms: i64) -> Vec<u8> {
        let (new, old) = (WebhookSecret::from_bytes([2; 32]), WebhookSecret::from_bytes([1; 32]));
        let previous = Some((&old, previous_expires_at(ROTATED)));
        let signers = signing_secrets(&new, previous, cause, ROTATED.plus_ms(after_ms));
        signers.iter().map(|secret| secret.bytes()[0]).collect()
    }

    #[test]
    fn both_secrets_sign_for_seven_days_the_new_one_first() {
        assert_eq!(signers(Cause::Event, 0), [2, 1]);
        assert_eq!(signers(Cause::Event, 604_799_999), [2, 1]);
        assert_eq!(signers(Cause::Event, 604_800_000), [2]);
    }

    #[test]
    fn a_redelivery_is_signed_only_with_the_current_secret() {
        assert_eq!(signers(Cause::Redelivery, 0), [2]);
        assert_eq!(signers(Cause::Redelivery, 604_800_000), [2]);
    }

    #[test]
    fn only_the_current_secret_signs_before_any_rotation() {
        let only = WebhookSecret::from_bytes([3; 32]);
        assert_eq!(signing_secrets(&only, None, Cause::Event, ROTATED).len(), 1);
    }

    #[test]
    fn a_rotation_waits_until_sixty_seconds_after_the_last_one() {
        let asked = |after_ms| may_rotate(Some(ROTATED), ROTATED.plus_ms(after_ms));
        let wait = |retry_after_s| Err(Cooldown { retry_after_s });
        assert_eq!(asked(0), wait(60));
        assert_eq!(asked(1), wait(60));
        assert_eq!(asked(1_000), wait(59));
        assert_eq!(asked(59_999), wait(1));
        assert_eq!(asked(60_000), Ok(()));
        assert_eq!(asked(-3_600_000), wait(60));
        assert_eq!(may_rotate(None, ROTATED), Ok(()));
    }
}
