//! Another user's resources behave as if they did not exist. Every route is requested with keys of
//! every scope, and with ids of the caller, of another user, of no user, and malformed ones.
//!
//! The test fails if a route is missing in the matrix, or if a line has no route.

use std::collections::BTreeSet;

use api::v1::router::routes;
use app::keys::{IssueKey, revoke};
use domain::ErrorCode;
use domain::key::{LimitOverrides, Scope, Scopes, Tier};
use domain::{Usdc, ids::ThreadId};
use http_kit::Route;
use http_testkit::{Answer, Client, Keyed};
use serde_json::json;
use testkit::{TestMarket, TestUser, key_of};

use crate::scene::{Scene, text};

/// The kind of resource that a request's id refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Thing {
    /// The request contains no id.
    Nothing,
    /// A shared resource that every caller can see.
    Market,
    /// A shared resource of which none exists here.
    Thread,
    /// A resource of a user.
    Trade,
    Held,
    Trace,
    Redemption,
    Event,
    ClientRequest,
    /// A market. The request returns the user's own trades or positions in it.
    Traded,
    /// A settled market. The request returns the user's own claim in it.
    Settled,
}

use Thing::*;

/// A route, a request to it with `{id}` in place of the id, its body, and the id's kind.
type Line = (&'static str, &'static str, &'static str, Thing);

const MATRIX: &[Line] = &[
    ("GET /v1/health", "/v1/health", "", Nothing),
    ("GET /v1/ready", "/v1/ready", "", Nothing),
    ("GET /v1/openapi.json", "/v1/openapi.json", "", Nothing),
    ("GET /v1/docs", "/v1/docs", "", Nothing),
    ("GET /v1/docs/{*asset}", "/v1/docs/start.js", "", Nothing),
    ("GET /docs/api-errors", "/docs/api-errors", "", Nothing),
    ("GET /docs/api-errors.md", "/docs/api-errors.md", "", Nothing),
    ("GET /docs/api-errors/{code}", "/docs/api-errors/API_KEY_MISSING", "", Nothing),
    ("GET /v1/markets", "/v1/markets", "", Nothing),
    ("GET /v1/markets", "/v1/markets?threadId={id}", "", Thread),
    ("GET /v1/markets", "/v1/markets?organizationId={id}", "", Thread),
    ("GET /v1/markets", "/v1/markets?partnerId={id}", "", Thread),
    ("GET /v1/markets/{id}", "/v1/markets/{id}", "", Market),
    (
        "GET /v1/markets/{id}/quote",
        "/v1/markets/{id}/quote?outcomeIndex=0&action=buy&amount=25000000",
        "",
        Market,
    ),
    ("GET /v1/markets/{id}/predictions", "/v1/markets/{id}/predictions", "", Market),
    ("GET /v1/markets/{id}/history", "/v1/markets/{id}/history", "", Market),
    (
        "POST /v1/trades",
        "/v1/trades",
        r#"{"marketId":"{id}","outcomeIndex":0,"amount":"1","side":"buy","dryRun":true}"#,
        Market,
    ),
    (
        "POST /v1/trades/batch",
        "/v1/trades/batch",
        r#"{"trades":[{"marketId":"{id}","outcomeIndex":0,"amount":"1","side":"buy","dryRun":true}]}"#,
        Market,
    ),
    ("GET /v1/trades", "/v1/trades", "", Nothing),
    ("GET /v1/trades", "/v1/trades?marketId={id}", "", Traded),
    ("GET /v1/trades", "/v1/trades?clientRequestId={id}", "", ClientRequest),
    ("GET /v1/trades/{id}", "/v1/trades/{id}", "", Trade),
    ("POST /v1/trades/{id}/confirm", "/v1/trades/{id}/confirm", r#"{"token":"{token}"}"#, Held),
    ("GET /v1/traces/{correlationId}", "/v1/traces/{id}", "", Trace),
    ("GET /v1/events", "/v1/events?types=*", "", Nothing),
    ("POST /v1/redemptions", "/v1/redemptions", r#"{"marketId":"{id}","outcomeIndex":0}"#, Settled),
    ("GET /v1/redemptions", "/v1/redemptions", "", Nothing),
    ("GET /v1/redemptions", "/v1/redemptions?marketId={id}", "", Settled),
    ("GET /v1/redemptions/{id}", "/v1/redemptions/{id}", "", Redemption),
    ("GET /v1/webhooks/events", "/v1/webhooks/events", "", Nothing),
    ("GET /v1/webhooks/events/{id}", "/v1/webhooks/events/{id}", "", Event),
    // The keys have no webhook URL, so nothing is queued that would affect later lines.
    ("POST /v1/webhooks/events/{id}/redeliver", "/v1/webhooks/events/{id}/redeliver", "", Event),
    ("POST /v1/webhooks/test", "/v1/webhooks/test", "", Nothing),
    ("GET /v1/webhooks/endpoint", "/v1/webhooks/endpoint", "", Nothing),
    // The body is rejected after the guard, so nothing changes for later lines.
    (
        "POST /v1/auth/api-keys/me/webhook-secret/rotate",
        "/v1/auth/api-keys/me/webhook-secret/rotate",
        r#"{"x":1}"#,
        Nothing,
    ),
    ("GET /v1/portfolio", "/v1/portfolio", "", Nothing),
    ("GET /v1/portfolio/positions", "/v1/portfolio/positions", "", Nothing),
    ("GET /v1/portfolio/positions", "/v1/portfolio/positions?marketId={id}", "", Traded),
    // The body is rejected after the guard, so the key is not paused for later lines.
    ("POST /v1/account/pause", "/v1/account/pause", r#"{"x":1}"#, Nothing),
    ("GET /v1/account/usage", "/v1/account/usage", "", Nothing),
    ("GET /v1/account/readiness", "/v1/account/readiness", "", Nothing),
    ("GET /v1/key", "/v1/key", "", Nothing),
    ("GET /v1/sandbox/clock", "/v1/sandbox/clock", "", Nothing),
    // The body is rejected after the guard, so the clock does not move for later lines.
    ("POST /v1/sandbox/clock", "/v1/sandbox/clock", r#"{"x":1}"#, Nothing),
];

#[test]
fn every_route_has_a_row_and_every_row_a_route() {
    let lines: BTreeSet<String> = MATRIX.iter().map(|line| line.0.to_owned()).collect();
    let routes: BTreeSet<String> = routes().map(Route::name).collect();
    assert_eq!(lines, routes);
    for (route, request, body, thing) in MATRIX {
        let names_one = request.contains("{id}") || body.contains("{id}");
        assert_eq!(names_one, *thing != Nothing, "{route} {request}");
        let path_takes_one = route.ends_with("Id}") || route.contains("{id}");
        assert!(!path_takes_one || *thing != Nothing, "{route} takes an id");
    }
}

fn route_of(line: &Line) -> &'static Route {
    routes().find(|route| route.name() == line.0).unwrap()
}

/// The ids of each kind: the caller's own, another user's, an unknown one, and a malformed one.
#[derive(Debug, Clone)]
struct Ids {
    own: Option<String>,
    anothers: Option<String>,
    unknown: String,
    malformed: String,
}

impl Ids {
    fn new(own: &str, anothers: &str, unknown: &str) -> Self {
        let text = |id: &str| (!id.is_empty()).then(|| id.to_owned());
        let malformed = "no-id-at-all".to_owned();
        Self { own: text(own), anothers: text(anothers), unknown: unknown.to_owned(), malformed }
    }
}

/// Ada and Bob own the same kinds of resources. Bob is the caller.
struct World {
    scene: Scene,
    bob: TestUser,
    hers: Things,
    his: Things,
    nobodys_settled: TestMarket,
}

/// The resources of one user.
struct Things {
    client: Client<Keyed>,
    trade: String,
    trace: String,
    held: String,
    token: String,
    redemption: String,
    event: String,
    client_request: String,
    traded: TestMarket,
    settled: TestMarket,
}

impl World {
    async fn new() -> Self {
        let scene = Scene::gated().await;
        let bob = scene.app.user("bob").funded("10000").await;
        let limits = LimitOverrides { high_value: Some(Usdc::from_whole(100)), ..LimitOverrides::default() };
        let key = scene.app.key_with(&bob, Tier::Enterprise, limits).await;
        let hers = things(&scene, scene.client.clone(), "adas-own").await;
        let his = things(&scene, scene.http.with(&key), "bobs-own").await;
        let nobodys_settled = scene.app.market(&["Yes", "No"]).await;
        scene.app.resolve(nobodys_settled, 0).await;
        scene.app.run_workers().await;
        Self { scene, bob, hers, his, nobodys_settled }
    }

    fn ids(&self, thing: Thing) -> Ids {
        const UNKNOWN: &str = "018f0000-0000-7000-8000-000000000001";
        let (hers, his) = (&self.hers, &self.his);
        match thing {
            Nothing => Ids::new("", "", ""),
            Market => Ids::new(&self.scene.market.id.to_string(), "", UNKNOWN),
            Thread => Ids::new("", "", &ThreadId(self.scene.app.ctx.uuid()).to_string()),
            Trade => Ids::new(&his.trade, &hers.trade, UNKNOWN),
            Held => Ids::new(&his.held, &hers.held, UNKNOWN),
            Trace => Ids::new(&his.trace, &hers.trace, &"1".repeat(32)),
            Redemption => Ids::new(&his.redemption, &hers.redemption, UNKNOWN),
            Event => Ids::new(&his.event, &hers.event, UNKNOWN),
            ClientRequest => {
                let ids = Ids::new(&his.client_request, &hers.client_request, "nobodys-own");
                Ids { malformed: "no%20id".to_owned(), ..ids }
            }
            Traded => Ids::new(&his.traded.id.to_string(), &hers.traded.id.to_string(), UNKNOWN),
            Settled => Ids::new(
                &his.settled.id.to_string(),
                &hers.settled.id.to_string(),
                &self.nobodys_settled.id.to_string(),
            ),
        }
    }

    /// Returns texts that no response to Bob may contain. The note of her trade contains her
    /// `clientRequestId`.
    fn hers_alone(&self) -> Vec<String> {
        let (scene, hers) = (&self.scene, &self.hers);
        let account = scene.ada.account.to_string().to_lowercase();
        let (key, user) = (scene.key.caller.key.id.to_string(), scene.ada.id.to_string());
        let own = [&hers.trade, &hers.held, &hers.token, &hers.redemption, &hers.event, &hers.client_request];
        own.into_iter().cloned().chain([account, key, user]).collect()
    }
}

/// Creates a user's resources: a completed trade and a held one in one market, and a claim in
/// another.
async fn things(scene: &Scene, client: Client<Keyed>, client_request: &str) -> Things {
    let app = &scene.app;
    let (traded, settled) = (app.market(&["Yes", "No"]).await, app.market(&["Yes", "No"]).await);
    let call = client.buy(traded, 0, "25").with("clientRequestId", client_request);
    let trade =
        call.with("metadata", json!({ "note": format!("the note of {client_request}") })).await.created();
    client.buy(settled, 0, "25").await.created();
    app.run_workers().await;
    app.resolve(settled, 0).await;
    app.run_workers().await;
    let claim = client.redeem(settled, 0).await.expect(201);
    let held = client.buy(traded, 0, "100").await.expect(202)["trade"].take();
    let events = client.get("/v1/webhooks/events").await.ok();
    Things {
        event: text(&events["data"][0]["id"]).to_owned(),
        trade: text(&trade["id"]).to_owned(),
        trace: text(&trade["correlationId"]).to_owned(),
        held: text(&held["id"]).to_owned(),
        token: text(&held["confirmation"]["token"]).to_owned(),
        redemption: text(&claim["redemption"]["id"]).to_owned(),
        client_request: client_request.to_owned(),
        client,
        traded,
        settled,
    }
}

/// Sends a line of the matrix with this id, and with the token that confirms Ada's held trade.
async fn ask(world: &World, client: &Client<Keyed>, line: &Line, id: &str) -> Answer {
    let (_, request, body, _) = line;
    let call = client.call(route_of(line).method.as_str(), &request.replace("{id}", id));
    let body = body.replace("{id}", id).replace("{token}", &world.hers.token);
    if body.is_empty() { call.await } else { call.raw_json(body).await }
}

/// Returns a response without the parts that differ in every response or repeat the request.
fn without_variable_parts(answer: &Answer, id: &str) -> String {
    let request_id = answer.header("x-request-id").unwrap();
    let own = |name: &str| name == "content-length" || name == "etag" || name.contains("ratelimit");
    let headers = answer.headers.iter().filter(|(name, _)| !own(name.as_str()));
    let mut headers: Vec<_> = headers.map(|(name, value)| format!("{name}: {value:?}")).collect();
    headers.sort_unstable();
    let text = format!("{}\n{}\n{}", answer.status, headers.join("\n"), answer.text);
    let text = text.replace(request_id, "<request>");
    if id.is_empty() { text } else { text.replace(id, "<id>") }
}

/// Checks a line with a key that has its scope.
async fn assert_owned(world: &World, client: &Client<Keyed>, line: &Line) {
    let (ids, hers) = (world.ids(line.3), world.hers_alone());
    let asked = async |id: &str| {
        let answer = ask(world, client, line, id).await;
        assert_ne!(answer.header("x-service-error-code"), Some("INSUFFICIENT_SCOPE"), "{line:?}\n{answer}");
        assert!(!answer.status.is_server_error(), "{line:?}\n{answer}");
        let text = without_variable_parts(&answer, id);
        let shown: Vec<_> = hers.iter().filter(|secret| text.contains(*secret)).collect();
        assert!(shown.is_empty(), "{line:?} shows {shown:?} of hers:\n{answer}");
        text
    };
    let unknown = asked(&ids.unknown).await;
    if let Some(id) = &ids.anothers {
        assert_eq!(asked(id).await, unknown, "{line:?}: another's resource differs from a missing one");
    }
    if let Some(id) = &ids.own {
        assert_ne!(asked(id).await, unknown, "{line:?}: the caller's own is not found");
    }
    // A malformed id in a filter is an error, but in a path it is not found like any other.
    let in_path = line.1.split('?').next().is_some_and(|path| path.contains("{id}"));
    let malformed = asked(&ids.malformed).await;
    if in_path {
        assert_eq!(malformed, unknown, "{line:?}: a malformed id differs from an unknown one");
    }
}

/// Checks a line with a key that lacks its scope: the error must be the same for every id.
async fn assert_lacking(world: &World, client: &Client<Keyed>, line: &Line) {
    let ids = world.ids(line.3);
    let mut seen = Vec::new();
    for id in [ids.own, ids.anothers, Some(ids.unknown), Some(ids.malformed)].into_iter().flatten() {
        let answer = ask(world, client, line, &id).await;
        let problem = answer.refused(ErrorCode::InsufficientScope);
        let scope = route_of(line).scope.unwrap();
        assert_eq!(problem["extensions"]["requiredScope"], scope.as_str(), "{line:?}");
        seen.push(without_variable_parts(&answer, &id));
    }
    assert!(seen.iter().all(|answer| *answer == seen[0]), "{line:?}: {seen:#?}");
}

/// Returns a set for each single scope, the set of all scopes, and the sets that lack one scope.
fn scope_sets() -> Vec<Scopes> {
    let without = |one: Scope| -> Scopes {
        let others: Vec<_> = Scope::ALL.iter().copied().filter(|other| *other != one).collect();
        Scopes::of(&others)
    };
    let single = Scope::ALL.iter().map(|one| Scopes::of(&[*one]));
    single.chain([Scopes::all()]).chain(Scope::ALL.iter().map(|one| without(*one))).collect()
}

#[tokio::test]
async fn another_users_resource_equals_a_missing_one_on_every_route() {
    let world = World::new().await;
    let app = &world.scene.app;
    for scopes in scope_sets() {
        let wanted = IssueKey { scopes: Some(scopes), ..key_of(&world.bob, Tier::Mm) };
        let key = app.issue(wanted).await.unwrap();
        let client = world.scene.http.with(&key);
        let before = app.rows().await;
        for line in MATRIX.iter().filter(|line| route_of(line).asks_for_key()) {
            match route_of(line).scope {
                Some(scope) if !scopes.contains(scope) => assert_lacking(&world, &client, line).await,
                _ => assert_owned(&world, &client, line).await,
            }
        }
        assert_eq!(app.rows().await, before, "{scopes}: asking has changed something");
        // A user can have at most five active keys.
        revoke(&app.ctx, key.caller.key.id).await.unwrap();
    }
    // Ada can still confirm her held trade.
    let token = json!({ "token": world.hers.token });
    crate::scene::confirm(&world.hers.client, &world.hers.held, token).await.ok();
}

#[tokio::test]
async fn a_route_without_a_key_returns_the_same_to_every_caller() {
    let world = World::new().await;
    for line in MATRIX.iter().filter(|line| !route_of(line).asks_for_key()) {
        let with = without_variable_parts(&ask(&world, &world.his.client, line, "").await, "");
        let other = without_variable_parts(&ask(&world, &world.hers.client, line, "").await, "");
        assert_eq!(with, other, "{line:?}");
        assert!(world.hers_alone().iter().all(|secret| !with.contains(secret)), "{line:?}");
    }
}
