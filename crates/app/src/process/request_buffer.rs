//! Rejected requests and writes of keys that are not in the database yet.

use std::collections::HashMap;

use domain::Timestamp;
use domain::ids::KeyId;
use domain::time::MINUTE_MS;
use parking_lot::Mutex;
use store::requests::LoggedRequest;

/// The maximum number of requests of a key that are stored for one minute. A client that repeats a
/// rejected request in a loop must not fill the table.
pub const MOST_PER_MINUTE: u32 = 60;
/// The maximum number of requests between two writes.
const MOST: usize = 10_000;

/// Requests that are not in the database yet. Only existing keys have requests, so clients cannot
/// make it grow.
#[derive(Debug, Default)]
pub struct RequestBuffer(Mutex<Buffered>);

#[derive(Debug, Default)]
struct Buffered {
    requests: Vec<LoggedRequest>,
    /// The minute of each key's last request, and the number of its requests within it.
    minutes: HashMap<KeyId, (Timestamp, u32)>,
}

impl RequestBuffer {
    /// Adds a request, unless its key has had too many in the same minute.
    pub fn add(&self, request: LoggedRequest) {
        let minute = minute_of(request.at);
        let mut buffered = self.0.lock();
        let Buffered { requests, minutes } = &mut *buffered;
        let counted = minutes.entry(request.key_id).or_insert((minute, 0));
        if counted.0 != minute {
            *counted = (minute, 0);
        }
        if counted.1 < MOST_PER_MINUTE && requests.len() < MOST {
            counted.1 += 1;
            requests.push(request);
        }
    }

    pub(crate) fn take(&self, now: Timestamp) -> Vec<LoggedRequest> {
        let mut buffered = self.0.lock();
        let minute = minute_of(now);
        buffered.minutes.retain(|_, (counted, _)| *counted >= minute);
        std::mem::take(&mut buffered.requests)
    }

    /// Puts back requests that could not be written. They were counted before.
    pub(crate) fn put_back(&self, mut requests: Vec<LoggedRequest>) {
        let mut buffered = self.0.lock();
        requests.append(&mut buffered.requests);
        requests.truncate(MOST);
        buffered.requests = requests;
    }
}

const fn minute_of(at: Timestamp) -> Timestamp {
    at.plus_ms(-at.ms().rem_euclid(MINUTE_MS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    const NOW: Timestamp = Timestamp::from_ms(1_777_464_000_000);

    fn request(key: u128, at: Timestamp) -> LoggedRequest {
        LoggedRequest {
            id: "req_1".to_owned(),
            key_id: KeyId(Uuid::from_u128(key)),
            at,
            route: "POST /v1/trades".to_owned(),
            status: 429,
            code: None,
            latency_ms: 1,
            trade_id: None,
        }
    }

    #[test]
    fn a_key_has_at_most_60_requests_in_a_minute_also_over_several_writes() {
        let buffer = RequestBuffer::default();
        (0..50).for_each(|_| buffer.add(request(1, NOW)));
        assert_eq!(buffer.take(NOW).len(), 50);
        (0..50).for_each(|_| buffer.add(request(1, NOW)));
        buffer.add(request(2, NOW));
        assert_eq!(buffer.take(NOW).len(), 11);
        let next = NOW.plus_ms(MINUTE_MS);
        buffer.add(request(1, next));
        assert_eq!(buffer.take(next).len(), 1);
    }

    #[test]
    fn restored_requests_come_before_newer_ones() {
        let buffer = RequestBuffer::default();
        buffer.add(request(1, NOW));
        let taken = buffer.take(NOW);
        buffer.add(request(2, NOW));
        buffer.put_back(taken);
        let keys: Vec<_> = buffer.take(NOW).iter().map(|it| it.key_id.0.as_u128()).collect();
        assert_eq!(keys, [1, 2]);
    }
}
