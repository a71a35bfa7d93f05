//! The rate limiters and the lockout, and the response headers that report their state.

use std::time::Duration;

use app::keys::{IssueKey, revoke};
use domain::ErrorCode;
use domain::key::{IpAllowlist, LimitOverrides, Scope, Scopes, Tier};
use domain::time::{DAY_MS, MINUTE_MS};
use http_testkit::{Answer, Client, Http, Keyed, RequestBuilder, ServeHttp};
use testkit::{TestApp, TestKey, TestRedis, TestUser, key_of};

const UNKNOWN: &str = "service_test_00000000000000000000000000000000";

fn with_limit(requests_per_minute: u32) -> LimitOverrides {
    LimitOverrides { requests_per_minute: Some(requests_per_minute), ..LimitOverrides::default() }
}

/// Issues a key of the tier `mm` with this number of requests per minute.
async fn limited(app: &TestApp, user: &TestUser, requests_per_minute: u32) -> TestKey {
    let wanted = IssueKey { overrides: with_limit(requests_per_minute), ..key_of(user, Tier::Mm) };
    app.issue(wanted).await.unwrap()
}

/// Returns the limit, the remaining requests, and the seconds until the reset.
fn standing(answer: &Answer) -> (u64, u64, u64) {
    let number = |name: &str| answer.header(name).unwrap().parse::<u64>().unwrap();
    let reset_s = number("x-ratelimit-reset") - testkit::START.s();
    (number("x-ratelimit-limit"), number("x-ratelimit-remaining"), reset_s)
}

fn limiter(answer: &Answer) -> String {
    answer.refused(ErrorCode::RateLimitExceeded)["extensions"]["limiter"].as_str().unwrap().to_owned()
}

fn retry_after(answer: &Answer) -> &str {
    answer.header("retry-after").unwrap()
}

/// Sends a trade whose body is rejected after all limiters.
fn post(client: &Client<Keyed>) -> RequestBuilder {
    client.trade(serde_json::json!({}))
}

#[tokio::test]
async fn every_answer_shows_the_status_of_its_limiter() {
    let app = TestApp::new().await;
    let http = app.http();
    let ada = app.user("ada").await;
    let client = http.with(&limited(&app, &ada, 2).await);
    app.clock.advance(250);
    let mut lines = Vec::new();
    let mut tell = |what: &str, answer: Answer| {
        let names = ["ratelimit", "ratelimit-policy", "x-ratelimit-limit", "x-ratelimit-remaining"];
        let names = names.into_iter().chain(["x-ratelimit-reset", "retry-after"]);
        let headers =
            names.filter_map(|name| answer.header(name).map(|value| format!("  {name}: {value}\n")));
        lines.push(format!("{what}: {}\n{}", answer.status, headers.collect::<String>()));
    };
    tell("a read", client.get("/v1/markets").await);
    tell("another", client.get("/v1/markets/none").await);
    tell("one too many", client.get("/v1/markets").await);
    tell("a refused write", post(&client).await);
    tell("health", http.anonymous().get("/v1/health").await);
    tell("no key", http.anonymous().get("/v1/markets").await);
    tell("an unknown key", http.with_text(UNKNOWN).get("/v1/markets").await);
    tell("an unknown path, with a key", client.get("/v1/nothing").await);
    tell("an unknown method, with a key", client.call("DELETE", "/v1/trades").await);
    app.ctx.store.close().await;
    // Let the cached key row expire, so that it must be read again.
    app.clock.advance(500);
    tell("ready without a database", http.anonymous().get("/v1/ready").await);
    tell("a read without a database", client.get("/v1/markets").await);
    insta::assert_snapshot!(lines.join("\n"));
}

#[tokio::test]
async fn a_limiter_rejection_names_the_limiter_and_the_retry_time() {
    let app = TestApp::new().await;
    let client = app.http().with(&limited(&app, &app.user("ada").await, 1).await);
    post(&client).await.refused(ErrorCode::ValidationFailed);
    insta::assert_snapshot!(post(&client).await);
}

#[tokio::test]
async fn each_tier_has_its_limit_and_the_larger_tiers_allow_overrides() {
    let app = TestApp::new().await;
    let http = app.http();
    for (tier, overridden, limit) in [
        (Tier::Free, None, 60),
        (Tier::Developer, None, 300),
        (Tier::Enterprise, None, 1_200),
        (Tier::Mm, None, 6_000),
        (Tier::Enterprise, Some(17), 17),
        (Tier::Mm, Some(123_456), 123_456),
    ] {
        let user = app.user("ada").await;
        let overrides = overridden.map(with_limit).unwrap_or_default();
        let client = http.with(&app.issue(IssueKey { overrides, ..key_of(&user, tier) }).await.unwrap());
        for answer in [client.get("/v1/markets").await, post(&client).await] {
            let (found, remaining, _) = standing(&answer);
            assert_eq!((found, remaining), (limit, limit - 1), "{tier}\n{answer}");
        }
    }
}

#[tokio::test]
async fn reads_use_a_sliding_window_and_writes_a_separate_bucket() {
    let app = TestApp::new().await;
    let client = app.http().with(&limited(&app, &app.user("ada").await, 3).await);
    for _ in 0..3 {
        client.get("/v1/markets").await.ok();
        post(&client).await.refused(ErrorCode::ValidationFailed);
    }
    let (read, write) = (client.get("/v1/portfolio").await, post(&client).await);
    assert_eq!((limiter(&read).as_str(), retry_after(&read)), ("read", "60"));
    assert_eq!((limiter(&write).as_str(), retry_after(&write)), ("write", "20"));

    app.clock.advance(19_999);
    assert_eq!(retry_after(&post(&client).await), "1");
    app.clock.advance(1);
    post(&client).await.refused(ErrorCode::ValidationFailed);
    assert_eq!(limiter(&post(&client).await), "write");
    assert_eq!(retry_after(&client.get("/v1/markets").await), "40");
    app.clock.advance(40_000);
    assert_eq!(standing(&client.get("/v1/markets").await), (3, 2, 120));
}

#[tokio::test]
async fn all_keys_of_a_user_share_one_limiter() {
    let app = TestApp::new().await;
    let http = app.http();
    let (ada, bob) = (app.user("ada").await, app.user("bob").await);
    let keys = [limited(&app, &ada, 2).await, limited(&app, &ada, 2).await];
    let [one, other] = keys.map(|key| http.with(&key));
    one.get("/v1/markets").await.ok();
    other.get("/v1/markets").await.ok();
    for client in [&one, &other] {
        assert_eq!(limiter(&client.get("/v1/markets").await), "read");
    }
    http.with(&limited(&app, &bob, 2).await).get("/v1/markets").await.ok();
}

#[tokio::test]
async fn the_limit_is_checked_before_the_scope_and_rejected_keys_do_not_use_it() {
    let app = TestApp::new().await;
    let http = app.http();
    let ada = app.user("ada").await;
    let overrides = with_limit(3);
    let issue = async |change: &dyn Fn(&mut IssueKey)| {
        let mut wanted = IssueKey { overrides, ..key_of(&ada, Tier::Mm) };
        change(&mut wanted);
        app.issue(wanted).await.unwrap()
    };
    let narrow = issue(&|key| key.scopes = Some(Scopes::of(&[Scope::TradesRead]))).await;
    let bound = issue(&|key| key.ip_allowlist = "198.51.100.7".parse().unwrap()).await;
    let revoked = issue(&|_| ()).await;
    revoke(&app.ctx, revoked.caller.key.id).await.unwrap();
    for key in [&bound, &revoked] {
        let answer = http.with(key).get("/v1/markets").await;
        assert_eq!(standing(&answer).0, 300, "\n{answer}");
    }
    let client = http.with(&narrow);
    for left in [2, 1, 0] {
        let answer = client.get("/v1/markets").await;
        answer.refused(ErrorCode::InsufficientScope);
        assert_eq!(standing(&answer), (3, left, 60));
    }
    assert_eq!(limiter(&client.get("/v1/markets").await), "read");
}

#[tokio::test]
async fn without_an_accepted_key_an_address_has_300_requests_a_minute() {
    let app = TestApp::new().await;
    let http = app.http();
    let anonymous = http.anonymous();
    for number in 0..300 {
        let path = ["/v1/health", "/v1/ready", "/v1/nothing", "/v1/markets"][number % 4];
        let answer = anonymous.get(path).await;
        assert_eq!(standing(&answer), (300, 299 - number as u64, 60), "{path}");
    }
    for call in [
        anonymous.get("/v1/health"),
        anonymous.get("/v1/ready"),
        anonymous.get("/v1/nothing"),
        anonymous.get("/v1/markets"),
        anonymous.call("POST", "/v1/trades"),
        http.with_text("x").get("/v1/markets"),
    ] {
        assert_eq!(limiter(&call.await), "address");
    }
    let there = anonymous.get("/v1/health").from_peer("203.0.113.8").await;
    assert_eq!(standing(&there), (300, 299, 60));

    // A valid key from that address is still served.
    let client = http.with(&limited(&app, &app.user("ada").await, 1_000).await);
    for _ in 0..400 {
        client.get("/v1/markets").await.ok();
    }
    app.clock.advance(MINUTE_MS);
    anonymous.get("/v1/health").await.ok();
}

/// Sends an unknown key this number of times.
async fn fail(http: &Http, times: usize) {
    let guess = http.with_text(UNKNOWN);
    for _ in 0..times {
        guess.get("/v1/markets").await.refused(ErrorCode::ApiKeyInvalid);
    }
}

#[tokio::test]
async fn twenty_failures_within_5_minutes_lock_an_address_out_for_15_minutes() {
    let app = TestApp::new().await;
    let http = app.http();
    let ada = app.user("ada").await;
    let client = http.with(&limited(&app, &ada, 1_000).await);
    fail(&http, 19).await;
    // A request with a valid key does not reset the failures.
    http.with(&limited(&app, &ada, 1_000).await).get("/v1/markets").await.ok();
    fail(&http, 1).await;

    // A key that was not used from this address before is locked out too.
    app.clock.advance(1);
    for call in [client.get("/v1/markets"), http.with_text(UNKNOWN).get("/v1/markets"), post(&client)] {
        let answer = call.await;
        assert_eq!((limiter(&answer).as_str(), retry_after(&answer)), ("lockout", "900"));
        assert_eq!(standing(&answer), (300, 0, 901));
    }
    insta::assert_snapshot!(client.get("/v1/markets").await);
    // The lockout is checked after the key's syntax, and does not affect routes without a key.
    http.anonymous().get("/v1/markets").await.refused(ErrorCode::ApiKeyMissing);
    http.with_text("x").get("/v1/markets").await.refused(ErrorCode::ApiKeyMalformed);
    http.anonymous().get("/v1/health").await.ok();
    client.get("/v1/markets").from_peer("203.0.113.8").await.ok();

    app.clock.advance(15 * MINUTE_MS - 2);
    assert_eq!(retry_after(&client.get("/v1/markets").await), "1");
    app.clock.advance(1);
    client.get("/v1/markets").await.ok();

    // The next lockout is twice as long.
    fail(&http, 20).await;
    assert_eq!(retry_after(&http.with_text(UNKNOWN).get("/v1/markets").await), "1800");
}

#[tokio::test]
async fn a_key_used_from_a_locked_out_address_within_a_day_works() {
    let app = TestApp::new().await;
    let http = app.http();
    let key = limited(&app, &app.user("ada").await, 1_000).await;
    let client = http.with(&key);
    client.get("/v1/markets").await.ok();
    app.clock.advance(DAY_MS - 1);
    fail(&http, 20).await;
    client.get("/v1/markets").await.ok();
    assert_eq!(limiter(&http.with_text(UNKNOWN).get("/v1/markets").await), "lockout");

    // From another address, the key is unknown like any other.
    let there = "198.51.100.9";
    for _ in 0..20 {
        http.with_text(UNKNOWN).get("/v1/markets").from_peer(there).await;
    }
    assert_eq!(limiter(&client.get("/v1/markets").from_peer(there).await), "lockout");

    // A locked-out address cannot learn that a key was revoked.
    revoke(&app.ctx, key.caller.key.id).await.unwrap();
    assert_eq!(limiter(&client.get("/v1/markets").await), "lockout");
}

#[tokio::test]
async fn uses_that_are_a_day_old_or_wrongly_signed_do_not_bypass_a_lockout() {
    let app = TestApp::new().await;
    let http = app.http();
    let ada = app.user("ada").await;
    let (old, forged) = (limited(&app, &ada, 1_000).await, limited(&app, &ada, 1_000).await);
    http.with(&old).get("/v1/markets").await.ok();
    app.clock.advance(DAY_MS);
    fail(&http, 19).await;
    let call = http.with(&forged).get("/v1/markets").header("x-service-signature", "x");
    call.await.refused(ErrorCode::RequestSignatureInvalid);
    for key in [&old, &forged] {
        assert_eq!(limiter(&http.with(key).get("/v1/markets").await), "lockout");
    }
}

#[tokio::test]
async fn guesses_from_a_locked_out_address_are_not_looked_up() {
    let app = TestApp::new().await;
    let http = app.http();
    fail(&http, 20).await;
    let before = app.ctx.process.key_cache.look_ups();
    for number in 0..100 {
        let guess = http.with_text(&format!("service_test_{number:032}"));
        assert_eq!(limiter(&guess.get("/v1/markets").await), "lockout");
    }
    assert_eq!(app.ctx.process.key_cache.look_ups(), before);
}

#[tokio::test]
async fn failures_that_are_further_apart_cause_no_lockout() {
    let app = TestApp::new().await;
    let http = app.http();
    fail(&http, 19).await;
    app.clock.advance(5 * MINUTE_MS);
    fail(&http, 19).await;
}

#[tokio::test]
async fn every_failed_authentication_counts_and_a_missing_key_does_not() {
    let app = TestApp::new().await;
    let http = app.http();
    let ada = app.user("ada").await;
    let expires_at = Some(app.ctx.now().plus_ms(1));
    let expired = app.issue(IssueKey { expires_at, ..key_of(&ada, Tier::Mm) }).await.unwrap();
    let revoked = app.issue(key_of(&ada, Tier::Mm)).await.unwrap();
    let far = "198.51.100.7".parse().unwrap();
    let far = app.issue(IssueKey { ip_allowlist: far, ..key_of(&ada, Tier::Mm) }).await.unwrap();
    revoke(&app.ctx, revoked.caller.key.id).await.unwrap();
    app.clock.advance(1);
    for _ in 0..30 {
        http.anonymous().get("/v1/markets").await.refused(ErrorCode::ApiKeyMissing);
    }
    for _ in 0..4 {
        let twice = http.with_text(UNKNOWN).get("/v1/markets").header("x-api-key", UNKNOWN);
        twice.await.refused(ErrorCode::ApiKeyMalformed);
        fail(&http, 1).await;
        http.with(&expired).get("/v1/markets").await.refused(ErrorCode::ApiKeyExpired);
        post(&http.with(&revoked)).await.refused(ErrorCode::ApiKeyRevoked);
        http.with(&far).get("/v1/markets").await.refused(ErrorCode::IpNotAllowed);
    }
    assert_eq!(limiter(&http.with_text(UNKNOWN).get("/v1/markets").await), "lockout");
}

#[tokio::test]
async fn a_key_works_from_a_locked_out_address_on_its_allowlist() {
    let app = TestApp::new().await;
    let http = app.http();
    let ada = app.user("ada").await;
    let key_for = async |list: &str| {
        let ip_allowlist = IpAllowlist::from_stored(list).unwrap();
        http.with(&app.issue(IssueKey { ip_allowlist, ..key_of(&ada, Tier::Mm) }).await.unwrap())
    };
    let (named, other) = (key_for("203.0.113.0/24").await, key_for("198.51.100.7").await);
    fail(&http, 20).await;
    named.get("/v1/markets").await.ok();
    assert_eq!(limiter(&other.get("/v1/markets").await), "lockout");
    assert_eq!(limiter(&key_for("").await.get("/v1/markets").await), "lockout");
}

#[tokio::test]
async fn an_unreachable_limiter_rejects_requests_and_makes_the_service_unready() {
    let Some(redis) = TestRedis::start().await else { return };
    let app = TestApp::with().limits(redis.limits()).start().await;
    let http = app.http();
    let client = http.with(&limited(&app, &app.user("ada").await, 5).await);
    client.get("/v1/markets").await.ok();
    post(&client).await.refused(ErrorCode::ValidationFailed);
    assert_eq!(http.anonymous().get("/v1/ready").await.ok()["checks"]["rateLimiter"]["status"], "ok");

    redis.cut();
    let answer = client.get("/v1/markets").await;
    answer.refused(ErrorCode::RateLimitUnavailable);
    insta::assert_snapshot!(answer);
    post(&client).await.refused(ErrorCode::RateLimitUnavailable);
    let guessed = http.with_text(UNKNOWN).get("/v1/markets").await;
    guessed.refused(ErrorCode::RateLimitUnavailable);
    assert_eq!(standing(&guessed), (300, 0, 1));
    http.anonymous().get("/v1/health").await.ok();
    let ready = http.anonymous().get("/v1/ready").await.expect(503);
    assert_eq!(ready["checks"]["rateLimiter"]["status"], "failing");

    redis.heal();
    let mut polls = tokio::time::interval(Duration::from_millis(10));
    for _ in 0..500 {
        polls.tick().await;
        if http.anonymous().get("/v1/ready").await.status == 200 {
            break;
        }
    }
    client.get("/v1/markets").await.ok();
    fail(&http, 1).await;
}

#[tokio::test]
async fn users_of_the_tier_free_share_the_limit_of_their_network() {
    let app = TestApp::with().budgets(["free-requests.address=2", "free-requests.network=3"]).start().await;
    let http = app.http();
    let mut keys = Vec::new();
    for name in ["ada", "bob", "eve"] {
        let user = app.user(name).await;
        keys.push(app.key(&user, Tier::Free).await);
    }
    let read = async |key: usize, ip: &str| http.with(&keys[key]).get("/v1/markets").from_peer(ip).await;
    read(0, "192.0.2.1").await.ok();
    read(1, "192.0.2.1").await.ok();
    assert_eq!(limiter(&read(2, "192.0.2.1").await), "network");
    read(2, "192.0.2.2").await.ok();
    assert_eq!(limiter(&read(0, "192.0.2.3").await), "network");
    read(0, "198.51.100.1").await.ok();
    // A paying user does not depend on the neighbors.
    let paying = app.key(&app.user("max").await, Tier::Mm).await;
    http.with(&paying).get("/v1/markets").from_peer("192.0.2.1").await.ok();
}

#[tokio::test]
async fn a_network_fails_to_authenticate_only_a_multiple_of_what_an_address_may() {
    let budgets = ["failed-sign-ins.network=25", "failed-sign-ins.site=30"];
    let app = TestApp::with().budgets(budgets).start().await;
    let http = app.http();
    let guess = async |ip: &str| http.with_text(UNKNOWN).get("/v1/markets").from_peer(ip).await;
    // Five failures of each address: none of them is locked out by itself.
    for ip in ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "192.0.2.5"] {
        for _ in 0..5 {
            guess(ip).await.refused(ErrorCode::ApiKeyInvalid);
        }
    }
    assert_eq!(limiter(&guess("192.0.2.99").await), "lockout");
    guess("192.0.3.1").await.refused(ErrorCode::ApiKeyInvalid);
    for subnet in 0..30 {
        guess(&format!("2001:db8:1:{subnet}00::1")).await.refused(ErrorCode::ApiKeyInvalid);
    }
    assert_eq!(limiter(&guess("2001:db8:1:9900::1").await), "lockout");
    guess("2001:db8:2::1").await.refused(ErrorCode::ApiKeyInvalid);
}
