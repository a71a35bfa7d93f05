//! Deterministic event ids, derived from the subject of the event.

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::EventKind;
use crate::Timestamp;
use crate::ids::{EventId, MarketId, RedemptionId, TradeId, UserId};
use crate::trade::Status;

impl EventId {
    /// Returns the id of the event of a trade that reached `status` at `at`. A trade reaches each
    /// status at most once.
    pub fn of_trade(id: TradeId, status: Status, at: Timestamp) -> Self {
        Self::of(EventKind::of_status(status), &[id.0.as_bytes(), status.as_str().as_bytes()], at)
    }

    /// Returns the id of the event of a claim that the movement `payment` paid. A refund may have
    /// several payments.
    pub fn of_redemption(id: RedemptionId, payment: &str, at: Timestamp) -> Self {
        Self::of(EventKind::RedemptionCompleted, &[id.0.as_bytes(), payment.as_bytes()], at)
    }

    /// Returns the id of the event that tells `user` about a market settled at `at`: its result, or
    /// the payment of one outcome.
    pub fn of_market(
        kind: EventKind,
        market: MarketId,
        outcome: Option<u8>,
        user: UserId,
        at: Timestamp,
    ) -> Self {
        let outcome = outcome.map(|index| [index]);
        let outcome = outcome.as_ref().map_or(&[][..], |index| index);
        Self::of(kind, &[market.0.as_bytes(), user.0.as_bytes(), outcome], at)
    }

    /// Builds a UUID of version 8 from the time and a digest. The time comes first, so that ids
    /// sort approximately by time.
    fn of(kind: EventKind, subject: &[&[u8]], at: Timestamp) -> Self {
        let mut digest = Sha256::new_with_prefix(kind.as_str().as_bytes());
        subject.iter().for_each(|part| digest.update(part));
        let mut bytes = [0; 16];
        // 48 bits of milliseconds, as in a UUID of version 7.
        let [_, _, time @ ..] = at.ms().to_be_bytes();
        let (head, tail) = bytes.split_at_mut(time.len());
        head.copy_from_slice(&time);
        tail.copy_from_slice(&digest.finalize()[..10]);
        Self(uuid::Builder::from_custom_bytes(bytes).into_uuid())
    }

    /// Returns the id of a test event. Tests are repeatable, so the id is random.
    pub const fn of_test(fresh: Uuid) -> Self {
        Self(fresh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_always_has_the_same_unique_id() {
        let (one, other) = (TradeId(Uuid::from_u128(1)), TradeId(Uuid::from_u128(2)));
        let at = Timestamp::from_ms(1_777_464_000_123);
        let id = EventId::of_trade(one, Status::Pending, at);
        assert_eq!(id, EventId::of_trade(one, Status::Pending, at));
        assert_ne!(id, EventId::of_trade(other, Status::Pending, at));
        assert_ne!(id, EventId::of_trade(one, Status::Executing, at));
        assert!(id.to_string().starts_with("019dd91c-3e7b-8"), "{id}");
    }

    #[test]
    fn event_ids_sort_by_time() {
        let claim = RedemptionId(Uuid::from_u128(9));
        let of = |ms| EventId::of_redemption(claim, "000000000007-000001", Timestamp::from_ms(ms));
        assert!(of(1_777_464_000_123) < of(1_777_464_000_124));
    }
}
