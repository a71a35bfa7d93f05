//! The rate limiters, in memory and in Redis: they follow the pure rules step by step, are exact
//! under concurrency, and reject requests when they are unavailable.

use std::sync::Arc;
use std::time::{Duration, Instant};

use app::AppError;
use app::limits::{ADDRESS_LIMIT, CredentialMark, FailureKind, KeyMark, LimitKind, Limits};
use domain::ids::UserId;
use domain::rate::{Lockout, RateDecision, SlidingWindow, TokenBucket};
use domain::time::DAY_MS;
use domain::{ErrorCode, Timestamp};
use futures::future::join_all;
use testkit::{START, TestRedis};
use uuid::Uuid;

const ADA: UserId = UserId(Uuid::from_u128(1));
const KEY: KeyMark = KeyMark(1);
const API_KEY: FailureKind = FailureKind::ApiKey;
const BOB: UserId = UserId(Uuid::from_u128(2));

/// Runs the test with each storage of the limits. `$limits` are those of one process.
macro_rules! on_both {
    ($($name:ident;)*) => {$(
        mod $name {
            #[tokio::test]
            async fn in_memory() {
                super::steps::$name(&app::limits::Limits::memory()).await;
            }

            #[tokio::test]
            async fn on_redis() {
                let Some(redis) = testkit::TestRedis::start().await else { return };
                super::steps::$name(&redis.limits()).await;
            }
        }
    )*};
}

on_both! {
    reads_follow_the_window_step_by_step;
    writes_and_redeliveries_follow_the_bucket_step_by_step;
    failed_authentications_follow_the_lockout_step_by_step;
    failures_of_one_kind_never_count_against_another;
    users_and_kinds_have_separate_limiters;
    an_address_is_locked_out_with_its_network;
    a_key_is_familiar_to_its_last_network_for_a_day;
}

/// A reproducible random generator.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }

    /// Returns mostly no time or little, sometimes a long pause, sometimes a step back.
    fn pause_ms(&mut self) -> i64 {
        match self.below(30) {
            0 => self.below(100_000).cast_signed(),
            1..=9 => self.below(3_000).cast_signed(),
            10..=16 => self.below(3).cast_signed(),
            17 => -self.below(20_000).cast_signed(),
            _ => 0,
        }
    }
}

mod steps {
    use super::*;

    pub async fn reads_follow_the_window_step_by_step(limits: &Limits) {
        for (number, numbers) in [[60, 60], [7, 7], [5, 40]].into_iter().enumerate() {
            let user = UserId(Uuid::from_u128(100 + number as u128));
            let (mut dice, mut window, mut now) = (Dice(0x5eed_0001), SlidingWindow::default(), START);
            for step in 0..1_500 {
                let limit = numbers[usize::from(dice.below(9) == 0)];
                let expected = window.take(limit, now);
                let found = limits.take(LimitKind::Read, user, limit, now).await.unwrap();
                assert_eq!(found, expected, "user {number} step {step}");
                now = now.plus_ms(dice.pause_ms());
            }
        }
    }

    pub async fn writes_and_redeliveries_follow_the_bucket_step_by_step(limits: &Limits) {
        // The largest possible limit of a key is exact too.
        for (number, numbers) in [[60, 60], [7, 7], [5, 40], [u32::MAX, 1]].into_iter().enumerate() {
            let user = UserId(Uuid::from_u128(200 + number as u128));
            let mut buckets = [TokenBucket::default(), TokenBucket::default()];
            let (mut dice, mut now) = (Dice(0x5eed_0002), START);
            for step in 0..1_500 {
                let limit = numbers[usize::from(dice.below(9) == 0)];
                let which = usize::from(dice.below(4) == 0);
                let kind = [LimitKind::Write, LimitKind::Redelivery][which];
                let expected = buckets[which].take(limit, now);
                let found = limits.take(kind, user, limit, now).await.unwrap();
                assert_eq!(found, expected, "user {number} step {step}");
                now = now.plus_ms(dice.pause_ms());
            }
        }
    }

    pub async fn failed_authentications_follow_the_lockout_step_by_step(limits: &Limits) {
        let (mut dice, mut lockout, mut now) = (Dice(0x5eed_0003), Lockout::default(), START);
        let ip = "192.0.2.1".parse().unwrap();
        let mut longest_ms = 0;
        for step in 0..1_500 {
            assert_eq!(limits.shut_out(API_KEY, ip, now).await.unwrap(), lockout.until(now), "step {step}");
            let expected = lockout.fail(now);
            assert_eq!(limits.fail(API_KEY, ip, now).await.unwrap(), expected, "step {step}");
            longest_ms = expected.map_or(longest_ms, |until| longest_ms.max(until.since_ms(now)));
            // Mostly within the range of a lockout. Sometimes near its end, or past the day after
            // which it is forgotten.
            now = now.plus_ms(match dice.below(100) {
                0 => dice.below(30 * 3_600_000).cast_signed(),
                1..=4 => expected.map_or(0, |until| until.since_ms(now)) - dice.below(2).cast_signed(),
                _ => dice.pause_ms().min(10_000),
            });
        }
        assert!(longest_ms > 30 * 60_000, "the walk hardly doubled: {longest_ms}");
    }

    pub async fn failures_of_one_kind_never_count_against_another(limits: &Limits) {
        let ip = "192.0.2.7".parse().unwrap();
        let (one, other) = (CredentialMark::of(&[1]), CredentialMark::of(&[2]));
        for kind in FailureKind::ALL {
            assert_eq!(limits.shut_out(kind, ip, START).await.unwrap(), None, "{kind:?}");
            for _ in 1..20 {
                assert_eq!(limits.fail(kind, ip, START).await.unwrap(), None, "{kind:?}");
            }
            let until = Some(START.plus_ms(900_000));
            assert_eq!(limits.fail(kind, ip, START).await.unwrap(), until, "{kind:?}");
            assert_eq!(limits.shut_out(kind, ip, START).await.unwrap(), until, "{kind:?}");
        }
        for _ in 1..20 {
            assert_eq!(limits.fail_credential(one, START).await.unwrap(), None);
        }
        assert_eq!(limits.fail_credential(one, START).await.unwrap(), Some(START.plus_ms(900_000)));
        assert_eq!(limits.fail_credential(other, START).await.unwrap(), None);
    }

    pub async fn users_and_kinds_have_separate_limiters(limits: &Limits) {
        for user in [ADA, BOB] {
            for kind in LimitKind::ALL {
                assert!(limits.take(kind, user, 1, START).await.unwrap().allowed, "{user:?} {kind:?}");
                assert!(!limits.take(kind, user, 1, START).await.unwrap().allowed, "{user:?} {kind:?}");
            }
        }
    }

    pub async fn a_key_is_familiar_to_its_last_network_for_a_day(limits: &Limits) {
        let (here, there) = ("2001:db8:1:2::1".parse().unwrap(), "2001:db8:1:3::1".parse().unwrap());
        limits.note_success(here, KEY, START).await;
        limits.note_success(here, KEY, START.plus_ms(1_000)).await;
        let neighbour = "2001:db8:1:2::2".parse().unwrap();
        for (ip, key, ms, familiar) in [
            (here, KEY, 0, true),
            (neighbour, KEY, DAY_MS + 999, true),
            (here, KEY, DAY_MS + 1_000, false),
            (here, KeyMark(2), 0, false),
            (there, KEY, 0, false),
        ] {
            let found = limits.is_familiar(ip, key, START.plus_ms(ms)).await.unwrap();
            assert_eq!(found, familiar, "{ip} {key:?} {ms}");
        }
    }

    pub async fn an_address_is_locked_out_with_its_network(limits: &Limits) {
        for host in 0..20 {
            limits.fail(API_KEY, format!("2001:db8:1:2::{host}").parse().unwrap(), START).await.unwrap();
            limits.fail(API_KEY, format!("192.0.2.{host}").parse().unwrap(), START).await.unwrap();
        }
        let until = START.plus_ms(900_000);
        for (ip, shut_out) in
            [("2001:db8:1:2:ffff::1", Some(until)), ("2001:db8:1:3::1", None), ("192.0.2.1", None)]
        {
            assert_eq!(limits.shut_out(API_KEY, ip.parse().unwrap(), START).await.unwrap(), shut_out, "{ip}");
        }
    }
}

/// Makes 200 concurrent requests to all `processes`. Returns how many were allowed.
async fn at_once(processes: &[Arc<Limits>], kind: LimitKind, limit: u32) -> usize {
    let asks = (0..200).map(|number| {
        let limits = Arc::clone(&processes[number % processes.len()]);
        tokio::spawn(async move { limits.take(kind, ADA, limit, START).await.unwrap() })
    });
    let decisions: Vec<RateDecision> = join_all(asks).await.into_iter().map(Result::unwrap).collect();
    let mut left: Vec<_> = decisions.iter().filter(|it| it.allowed).map(|it| it.remaining).collect();
    left.sort_unstable();
    // Each of them got a different remaining count.
    assert_eq!(left, (0..limit).collect::<Vec<_>>());
    left.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn parallel_requests_get_exactly_the_limit() {
    let process = [Arc::new(Limits::memory())];
    for kind in LimitKind::ALL {
        assert_eq!(at_once(&process, kind, 137).await, 137);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn parallel_requests_over_two_processes_get_exactly_the_limit() {
    let Some(redis) = TestRedis::start().await else { return };
    let processes = [Arc::new(redis.limits()), Arc::new(redis.limits())];
    for kind in LimitKind::ALL {
        assert_eq!(at_once(&processes, kind, 137).await, 137);
    }
}

#[tokio::test]
async fn a_lockout_applies_in_every_process() {
    let Some(redis) = TestRedis::start().await else { return };
    let (one, other) = (redis.limits(), redis.limits());
    let ip = "192.0.2.1".parse().unwrap();
    for _ in 0..20 {
        one.fail(API_KEY, ip, START).await.unwrap();
    }
    assert_eq!(other.shut_out(API_KEY, ip, START).await.unwrap(), Some(START.plus_ms(900_000)));
}

#[tokio::test]
async fn a_key_used_in_one_process_is_familiar_to_the_other() {
    let Some(redis) = TestRedis::start().await else { return };
    let (one, other) = (redis.limits(), redis.limits());
    let ip = "192.0.2.1".parse().unwrap();
    one.note_success(ip, KEY, START).await;
    assert!(other.is_familiar(ip, KEY, START.plus_ms(DAY_MS - 1)).await.unwrap());
    assert!(!other.is_familiar(ip, KEY, START.plus_ms(DAY_MS)).await.unwrap());
}

#[tokio::test]
async fn a_process_with_a_slow_clock_gains_no_requests() {
    let Some(redis) = TestRedis::start().await else { return };
    let (right, behind) = (redis.limits(), redis.limits());
    for kind in LimitKind::ALL {
        assert!(right.take(kind, ADA, 1, START).await.unwrap().allowed);
        let refused = behind.take(kind, ADA, 1, START.plus_ms(-3_600_000)).await.unwrap();
        assert_eq!((refused.allowed, refused.retry_after_ms), (false, 60_000), "{kind:?}");
    }
}

/// Asserts that every request is rejected correctly, and within little more than a quarter of a
/// second.
async fn assert_unavailable(limits: &Limits) {
    let ip = "192.0.2.1".parse().unwrap();
    let began = Instant::now();
    let errors = [
        limits.take(LimitKind::Read, ADA, 60, START).await.map(drop),
        limits.take(LimitKind::Write, ADA, 60, START).await.map(drop),
        limits.shut_out(API_KEY, ip, START).await.map(drop),
        limits.fail(API_KEY, ip, START).await.map(drop),
        limits.ping().await,
    ]
    .map(|asked| AppError::from(asked.unwrap_err()));
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    for error in errors {
        assert_eq!((error.code, error.retry_after_s), (ErrorCode::RateLimitUnavailable, Some(1)));
    }
}

/// Repeats a request until Redis responds, which may need a few attempts.
async fn recovered(limits: &Limits, now: Timestamp) -> RateDecision {
    for _ in 0..100 {
        if let Ok(decision) = limits.take(LimitKind::Read, ADA, 60, now).await {
            return decision;
        }
        tokio::task::yield_now().await;
    }
    panic!("no answer after a hundred tries");
}

#[tokio::test]
async fn a_redis_outage_admits_no_request_and_recovers_automatically() {
    let Some(redis) = TestRedis::start().await else { return };
    let limits = redis.limits();
    assert_eq!(limits.take(LimitKind::Read, ADA, 60, START).await.unwrap().remaining, 59);
    for _ in 0..2 {
        redis.cut();
        assert_unavailable(&limits).await;
        redis.heal();
        recovered(&limits, START).await;
        limits.ping().await.unwrap();
    }
    // Requests that were counted before still count.
    assert!(recovered(&limits, START).await.remaining < 57);
}

#[tokio::test]
async fn a_hanging_redis_does_not_delay_requests() {
    let Some(redis) = TestRedis::start().await else { return };
    let limits = redis.limits();
    limits.ping().await.unwrap();
    redis.silence();
    assert_unavailable(&limits).await;
    redis.heal();
    recovered(&limits, START).await;
}

#[tokio::test]
async fn a_service_may_start_before_its_redis() {
    let Some(redis) = TestRedis::start().await else { return };
    let limits = redis.limits();
    redis.cut();
    assert_unavailable(&limits).await;
    redis.heal();
    assert_eq!(recovered(&limits, START).await.remaining, 59);
}

#[test]
fn an_invalid_url_is_rejected_without_echoing_it() {
    for url in ["", "http://:hunter2@localhost", "redis://:hunter2@[", "hunter2"] {
        let error = Limits::redis(url, "p").unwrap_err().to_string();
        assert!(error.contains("Redis URL") && !error.contains("hunter2"), "{error}");
    }
}

#[test]
fn an_address_has_300_requests_a_minute_in_every_process() {
    let limits = Limits::memory();
    let ip = "2001:db8::1".parse().unwrap();
    for left in (0..ADDRESS_LIMIT).rev() {
        let decision = limits.take_address(ip, START);
        assert_eq!((decision.allowed, decision.remaining), (true, left));
    }
    assert_eq!(limits.peek_address(ip, START).remaining, 0);
    let refused = limits.take_address("2001:db8::2".parse().unwrap(), START.plus_ms(1_000));
    assert_eq!((refused.allowed, refused.retry_after_ms), (false, 59_000));
    assert!(limits.take_address("2001:db8:0:1::1".parse().unwrap(), START).allowed);
    assert!(limits.take_address(ip, START.plus_ms(60_000)).allowed);
}
