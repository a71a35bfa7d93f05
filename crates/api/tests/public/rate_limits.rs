//! Rate limits per address, and the response headers that report them.

use http_testkit::public_scene::{assert_headers_of_every_answer, ok, refused};
use http_testkit::{Answer, ServeHttp};
use testkit::{START, TestApp, TestRedis};

/// Returns the limit, the remaining requests, and the milliseconds from the start of the test to
/// the reset.
fn standing(answer: &Answer) -> (u64, u64, i64) {
    let number = |name: &str| answer.header(name).unwrap().parse::<i64>().unwrap();
    let reset_ms = number("x-ratelimit-reset") - START.ms();
    let count = |name: &str| u64::try_from(number(name)).unwrap();
    (count("x-ratelimit-limit"), count("x-ratelimit-remaining"), reset_ms)
}

#[tokio::test]
async fn threads_allow_50_requests_a_minute_and_other_routes_100() {
    let app = TestApp::new().await;
    let client = app.http().anonymous();
    app.clock.advance(250);
    let began_ms = app.ctx.now().since_ms(START);
    for (path, limit) in [("/api/threads", 50), ("/api/markets", 100), ("/api/leaderboard", 100)] {
        for made in 1..=limit {
            let answer = client.get(path).await;
            ok(&answer);
            assert_eq!(standing(&answer), (limit, limit - made, began_ms + 60_000), "{path}");
        }
        let answer = client.get(path).await;
        assert_eq!(refused(&answer, 429, "RATE_LIMIT_EXCEEDED")["retryAfter"], 60);
        assert_eq!(standing(&answer), (limit, 0, began_ms + 60_000));
    }
    insta::assert_snapshot!(client.get("/api/threads").await);
    app.clock.advance(59_999);
    refused(&client.get("/api/threads").await, 429, "RATE_LIMIT_EXCEEDED");
    app.clock.advance(1);
    ok(&client.get("/api/threads").await);
}

#[tokio::test]
async fn a_limit_covers_one_address_and_one_route_template() {
    let app = TestApp::new().await;
    let client = app.http().anonymous();
    for id in 0..100 {
        refused(&client.get(&format!("/api/threads/{id}")).await, 404, "THREAD_NOT_FOUND");
    }
    refused(&client.get("/api/threads/1").await, 429, "RATE_LIMIT_EXCEEDED");
    // Another route template and another address have their own limits.
    refused(&client.get("/api/threads/1/markets").await, 404, "THREAD_NOT_FOUND");
    refused(&client.get("/api/threads/1").from_peer("203.0.113.8").await, 404, "THREAD_NOT_FOUND");
    // All addresses of an IPv6 /64 share one limit.
    for host in 0..100 {
        let peer = format!("2001:db8:1:2::{host:x}");
        refused(&client.get("/api/partners/1").from_peer(&peer).await, 404, "PARTNER_NOT_FOUND");
    }
    refused(
        &client.get("/api/partners/1").from_peer("2001:db8:1:2:ffff::").await,
        429,
        "RATE_LIMIT_EXCEEDED",
    );
    refused(&client.get("/api/partners/1").from_peer("2001:db8:1:3::").await, 404, "PARTNER_NOT_FOUND");
}

#[tokio::test]
async fn unchanged_answers_and_rejected_requests_count() {
    let app = TestApp::new().await;
    let client = app.http().anonymous();
    let first = client.get("/api/threads").await;
    let unchanged = client.get("/api/threads").header("if-none-match", first.header("etag").unwrap()).await;
    assert_eq!((unchanged.status.as_u16(), standing(&unchanged).1), (304, 48));
    let wrong = client.get("/api/threads?limit=0").await;
    assert_eq!((wrong.status.as_u16(), standing(&wrong).1), (400, 47));
}

#[tokio::test]
async fn requests_outside_data_routes_use_the_shared_limit_of_the_address() {
    let app = TestApp::new().await;
    let client = app.http().anonymous();
    for made in 1..=75 {
        for (n, (method, path)) in [
            ("GET", "/api/nothing"),
            ("POST", "/api/threads"),
            ("OPTIONS", "/api/threads"),
            ("GET", "/api/docs"),
        ]
        .into_iter()
        .enumerate()
        {
            let answer = client.call(method, path).await;
            assert_headers_of_every_answer(&answer);
            assert_eq!(
                (standing(&answer).0, standing(&answer).1),
                (300, 300 - (4 * (made - 1) + n as u64 + 1))
            );
        }
    }
    for path in ["/api/nothing", "/api/docs", "/api/openapi.json"] {
        refused(&client.get(path).await, 429, "RATE_LIMIT_EXCEEDED");
    }
    ok(&client.get("/api/threads").await);
}

#[tokio::test]
async fn two_processes_count_together_in_redis_and_reject_all_requests_without_it() {
    let Some(redis) = TestRedis::start().await else { return };
    let app = TestApp::with().limits(redis.limits()).start().await;
    let client = app.http().anonymous();
    assert_eq!(standing(&client.get("/api/threads").await).1, 49);
    let other = app.ctx_of_another_process().with_limits(redis.limits());
    let other = app.http_with(|state| state.ctx = other).anonymous();
    assert_eq!(standing(&other.get("/api/threads").await).1, 48);
    for _ in 0..48 {
        ok(&client.get("/api/threads").await);
    }
    refused(&other.get("/api/threads").await, 429, "RATE_LIMIT_EXCEEDED");
    redis.cut();
    assert_eq!(refused(&client.get("/api/markets").await, 503, "DEPENDENCY_UNAVAILABLE")["retryAfter"], 1);
}

#[tokio::test]
async fn networks_make_a_multiple_of_the_limit_of_a_route() {
    let client = TestApp::new().await.http().anonymous();
    let get = async |ip: &str| client.get("/api/threads").from_peer(ip).await;
    // 16 subnets of one /56 use the 8 limits that it has.
    for subnet in 0..16 {
        for _ in 0..25 {
            ok(&get(&format!("2001:db8:1:{subnet:x}::1")).await);
        }
    }
    let answer = get("2001:db8:1:ff::1").await;
    let message = refused(&answer, 429, "RATE_LIMIT_EXCEEDED")["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("At most 400 requests to one route of one network"), "{message}");
    ok(&get("2001:db8:1:100::1").await);
}

#[tokio::test]
async fn searches_have_a_limit_of_their_own_on_every_list() {
    let app = TestApp::with().budgets(["searches.address=2", "searches.network=3"]).start().await;
    let client = app.http().anonymous();
    let get = async |path: &str, ip: &str| client.get(path).from_peer(ip).await;
    ok(&get("/api/markets?q=league", "192.0.2.1").await);
    ok(&get("/api/markets?limit=1&q=cup", "192.0.2.1").await);
    for (ip, whose) in [("192.0.2.1", "one address"), ("192.0.2.3", "one network")] {
        let _ = get("/api/markets?q=final", "192.0.2.2").await;
        let answer = get("/api/markets?%71=league", ip).await;
        let message = refused(&answer, 429, "RATE_LIMIT_EXCEEDED")["message"].as_str().unwrap().to_owned();
        assert!(message.contains(&format!("searches of {whose}")), "{message}");
    }
    ok(&get("/api/markets", "192.0.2.1").await);
    ok(&get("/api/markets?q=league", "198.51.100.1").await);
}
