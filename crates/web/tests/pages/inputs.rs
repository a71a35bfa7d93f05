//! What every route of every surface does with bodies that are too large and with texts that cannot
//! be stored. A new route is walked without a line here.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use axum::response::Response;
use domain::key::Tier;
use futures::stream;
use http_kit::{MAX_BODY_BYTES, McpSettings, Route};
use http_testkit::{Client, Keyed, RequestBuilder, ServeHttp, all_routes};
use store::Store;
use testkit::TestApp;

use crate::people::Browser;

/// A person who is signed in and has a key with every scope.
struct Everyone {
    client: Client<Keyed>,
    cookie: String,
    requests: AtomicUsize,
}

impl Everyone {
    async fn on(app: &TestApp) -> Self {
        let ada = app.user("ada").funded("100").await;
        let key = app.key(&ada, Tier::Enterprise).await;
        let mut browser = Browser::new(app);
        browser.sign_up("Bob").await;
        let settings = McpSettings { can_trade: true, hosts: Vec::new() };
        let client = app.http_with(|state| state.mcp = Some(settings)).with(&key);
        Self { client, cookie: browser.cookie.unwrap(), requests: AtomicUsize::default() }
    }

    /// Builds a request that passes the checks before the body. Each has an address of its own, so
    /// that no limit per address is reached.
    fn request(&self, route: &Route, path: &str) -> RequestBuilder {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let request = self.client.call(route.method.as_str(), path).header("sec-fetch-site", "same-origin");
        let request = request.from_peer(&format!("10.{}.{}.1", number / 256, number % 256));
        // These would end the session of the others.
        let ends_sessions = matches!(route.path, "/sign-out" | "/settings/sessions/end");
        if ends_sessions { request } else { request.header("cookie", &self.cookie) }
    }
}

/// Returns the path with `value` in place of each parameter.
fn filled(template: &str, value: &str) -> String {
    let part = |part: &str| if part.starts_with('{') { value.to_owned() } else { part.to_owned() };
    template.split('/').map(part).collect::<Vec<_>>().join("/")
}

/// Returns a body of a megabyte, and the number of its bytes that were read.
fn endless() -> (Body, Arc<AtomicUsize>) {
    const PIECE: usize = 16 * 1_024;
    let read = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&read);
    let pieces = (0..64).map(move |_| {
        counted.fetch_add(PIECE, Ordering::SeqCst);
        Ok::<_, Infallible>(vec![b' '; PIECE])
    });
    (Body::from_stream(stream::iter(pieces)), read)
}

#[tokio::test]
async fn no_route_reads_more_than_64_kib() {
    let app = TestApp::new().await;
    let everyone = Everyone::on(&app).await;
    let (mut walked, mut faults) = (0, Vec::new());
    for route in all_routes() {
        let path = filled(route.path, "00000000-0000-0000-0000-000000000000");
        let json = |request: RequestBuilder| request.header("content-type", "application/json");
        if route.is_write() {
            let body = vec![b' '; MAX_BODY_BYTES + 1];
            let request = json(everyone.request(route, &path)).body(body);
            let answer = request.header("content-length", (MAX_BODY_BYTES + 1).to_string()).send().await;
            if answer.status.as_u16() != 413 {
                faults.push(format!("{} answers {} to an announced length", route.name(), answer.status));
            }
        }
        // A body without a length is read as far as the limit, or not at all.
        let (body, read) = endless();
        let answer = json(everyone.request(route, &path)).body(body).respond().await;
        let read = read.load(Ordering::SeqCst);
        if read > MAX_BODY_BYTES + 16 * 1_024 || (read > 0 && answer.status().as_u16() != 413) {
            faults.push(format!("{} reads {read} bytes and answers {}", route.name(), answer.status()));
        }
        walked += 1;
    }
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(walked > 150, "{walked} routes");
}

/// Returns the names of all fields of forms, as the handlers read them.
fn names_of_fields(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            names_of_fields(&path, names);
            continue;
        }
        let source = std::fs::read_to_string(&path).unwrap();
        for read in [".get(\"", ".all(\"", "(fields, \"", "(form, \""] {
            let found = source.split(read).skip(1).filter_map(|rest| rest.split('"').next());
            names.extend(found.map(str::to_owned));
        }
    }
}

/// Asserts that a request was answered, and neither failed nor was turned away by a limit.
fn assert_answered(route: &Route, what: &str, answer: &Response) {
    let status = answer.status().as_u16();
    // The only 503 is that of a service without workers, which this one is.
    let is_answered = status < 500 && status != 429 || (status == 503 && route.path == "/v1/ready");
    assert!(is_answered, "{} with {what}: {status}", route.name());
}

store::on_each_engine! {
    async fn a_nul_is_never_an_internal_error(store: Store) {
        let app = TestApp::with().on(store).start().await;
        let everyone = Everyone::on(&app).await;
        let mut names = BTreeSet::new();
        names_of_fields(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/site"), &mut names);
        assert!(names.len() > 40, "{names:?}");
        let form = names.iter().map(|name| format!("{name}=a%00b")).collect::<Vec<_>>().join("&");
        for route in all_routes() {
            // The limits per user begin anew.
            app.clock.advance(60_000);
            for nul in ["%00", "a%00b", "%C0%80", "%ED%A0%80"] {
                if route.path.contains('{') {
                    let answer = everyone.request(route, &filled(route.path, nul)).respond().await;
                    assert_answered(route, nul, &answer);
                    assert!(!answer.status().is_success(), "{} with {nul}", route.name());
                }
                let path = filled(route.path, "00000000-0000-0000-0000-000000000000");
                let query = ["q", "cursor", "limit", "clientRequestId", "market", "status", "user", "since"];
                let query = query.map(|name| format!("{name}={nul}")).join("&");
                let answer = everyone.request(route, &format!("{path}?{query}")).respond().await;
                assert_answered(route, &query, &answer);
            }
            if !route.is_write() {
                continue;
            }
            let path = filled(route.path, "a");
            let request = everyone.request(route, &path).body(form.clone());
            let answer = request.header("content-type", "application/x-www-form-urlencoded").respond().await;
            assert_answered(route, "a form", &answer);
            for name in ["idempotencyKey", "challengeId", "name", "act"] {
                let body = format!(r#"{{"{name}": "a\u0000b"}}"#);
                let answer = everyone.request(route, &path).raw_json(body).respond().await;
                assert_answered(route, name, &answer);
            }
            let ticket = r#"{"marketId": "a\u0000", "outcomeIndex": 0, "side": "buy", "amountType": "usdc",
                "amount": "1", "idempotencyKey": "a\u0000", "clientRequestId": "a\u0000"}"#;
            let answer = everyone.request(route, &path).raw_json(ticket).respond().await;
            assert_answered(route, "a ticket", &answer);
        }
    }
}

#[tokio::test]
async fn a_nul_in_the_json_of_a_script_is_refused_with_its_place() {
    let app = TestApp::new().await;
    let mut browser = Browser::new(&app);
    browser.sign_up("Bob").await;
    let body = serde_json::json!({ "marketId": "a", "outcomeIndex": 0, "side": "buy", "amountType": "usdc",
        "amount": "1", "idempotencyKey": "a\u{0}" });
    let refused = browser.post("/app/trades", body).await;
    assert_eq!(refused.status.as_u16(), 400, "{refused}");
    assert!(refused.text.contains("/idempotencyKey"), "{refused}");
}

#[tokio::test]
async fn a_path_with_a_nul_names_nothing() {
    let app = TestApp::new().await;
    let mut browser = Browser::new(&app);
    browser.sign_up("Bob").await;
    for id in ["%00", "a%00b"] {
        let answer = browser.get(&format!("/app/trades/by-idempotency-key/{id}")).await;
        assert_eq!(answer.status.as_u16(), 404, "{id}: {answer}");
    }
}
