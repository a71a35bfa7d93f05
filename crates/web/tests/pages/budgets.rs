//! Every budget of the table is enforced where its resource is used. That each share is counted
//! right is tested in `usecases/budgets`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use app::limits::budget::Budget;
use app::owner_acts::{self, ActOrigin, OwnerActRequest, PreparedAct};
use app::traces::{Span, SpanSink};
use domain::key::Tier;
use http_testkit::ServeHttp;
use testkit::{CLIENT_IP, TestApp, wallet_signature};

/// A market that need not exist.
const MARKET: &str = "018f0000-0000-7000-8000-000000000000";
/// Names a trace that is sampled by its id.
const SAMPLED: &str = "00-ffffffffffffffffffffffffffffffff-00f067aa0ba902b7-01";

struct Nowhere;

impl SpanSink for Nowhere {
    fn record(&self, _: Vec<Span>) {}
}

/// Uses the resource of a budget once. Returns whether its refusals are counted here: those of
/// connections need a listener (tests of `http_kit::connections`), failed sign-ins begin a lockout
/// (`v1/rate_limits`), entries of a log are never refused (`usecases/user_log`), gas to leave is
/// used only once that of other acts is used up (`usecases/act_gas`), and lookups come from no address
/// (tests of `sender`: `lookups`).
async fn use_once(app: &TestApp, budget: Budget) -> bool {
    let http = app.http();
    let visitor = http.anonymous();
    let get = async |path: &str| drop(visitor.get(path).respond().await);
    let ada = app.user("ada").funded("10").await;
    let user = http.with(&app.disabled_key(&ada, Tier::Free).await);
    match budget {
        Budget::Connections
        | Budget::FailedSignIns
        | Budget::LogEntries
        | Budget::LeavingGas
        | Budget::Lookups
        | Budget::PaidLookups => return false,
        Budget::Bodies | Budget::BodyBytes => {
            drop(user.call("POST", "/v1/account/pause").raw_json("{}").respond().await);
        }
        Budget::Requests => get("/v1/nothing").await,
        Budget::Routes => get("/api/threads").await,
        Budget::FreeRequests => drop(user.get("/v1/markets").respond().await),
        Budget::Streams => get("/app/live?topics=u").await,
        Budget::Topics => get(&format!("/app/live?topics=m:{MARKET}")).await,
        Budget::MarketStreams => get(&format!("/api/markets/{MARKET}/stream")).await,
        Budget::Feed => {
            drop(user.get("/v1/events").header("accept", "text/event-stream").respond().await);
        }
        Budget::PaidFeed => {
            let paid = http.with(&app.disabled_key(&ada, Tier::Mm).await);
            drop(paid.get("/v1/events").header("accept", "text/event-stream").respond().await);
        }
        Budget::SignUps => drop(app.try_sign_up(&mut app.soft_key()).await),
        Budget::Searches => get("/api/markets?q=rain").await,
        Budget::Drawings | Budget::Cards => {
            let cards = format!("/cards/markets/{}", app.market_with(&["Yes", "No"], |_| ()).await.id);
            let moved = visitor.get(&format!("{cards}/1.png")).respond().await;
            let current = moved.headers()["location"].to_str().unwrap().to_owned();
            get(&format!("{cards}/{current}")).await;
        }
        Budget::ActGas | Budget::PaidActGas => {
            let tier = if budget == Budget::ActGas { Tier::Free } else { Tier::Mm };
            app::people::set_tier(&app.ctx, ada.id, tier).await.unwrap();
            let PreparedAct { act, .. } =
                app.prepare_act(&ada, &OwnerActRequest::Enable { keys: Vec::new() }).await;
            let signature = wallet_signature(&ada.owner, &act);
            let origin = ActOrigin::User(CLIENT_IP);
            drop(owner_acts::sign(&app.ctx, ada.id, act.id, &signature, origin).await);
        }
        Budget::WebhookTests => drop(user.call("POST", "/v1/webhooks/test").respond().await),
        Budget::Trades | Budget::MetadataBytes => {
            let (key, market) = (app.key(&ada, Tier::Free).await, app.market(&["Yes", "No"]).await);
            let metadata = Some([("desk".to_owned(), "7".to_owned())].into());
            drop(key.buy(&market, 0, "1").with(|draft| draft.metadata = metadata).send().await);
        }
        Budget::TraceSamples => {
            app.ctx.trace_to(Arc::new(Nowhere));
            drop(user.get("/v1/markets").header("traceparent", SAMPLED).respond().await);
        }
    }
    true
}

fn refusals(app: &TestApp, budget: Budget) -> u64 {
    let line = format!("foretell_budget_refusals_total{{budget=\"{budget}\",scope=\"network\"}} ");
    let text = app::scrape::metrics_text(&app.ctx);
    text.lines().find_map(|text| text.strip_prefix(&line)).unwrap().parse().unwrap()
}

#[tokio::test]
async fn every_budget_is_enforced_where_its_resource_is_used() {
    let mut free = Vec::new();
    for budget in Budget::ALL {
        let nothing = format!("{budget}.network=0");
        let app = TestApp::with().budgets([nothing.as_str()]).start().await;
        if use_once(&app, *budget).await && refusals(&app, *budget) == 0 {
            free.push(budget.as_str());
        }
    }
    assert_eq!(free, [""; 0]);
}

/// The number of recorded spans whose parent is a span of the caller.
#[derive(Default)]
struct Joined(AtomicUsize);

impl SpanSink for Joined {
    fn record(&self, spans: Vec<Span>) {
        let joined = spans.iter().filter(|span| span.is_parent_remote).count();
        self.0.fetch_add(joined, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn a_user_without_samples_left_does_not_name_the_trace_of_a_request() {
    let app = TestApp::with().budgets(["trace-samples.network=1"]).start().await;
    let sink = Arc::new(Joined::default());
    app.ctx.trace_to(Arc::<Joined>::clone(&sink));
    let ada = app.user("ada").await;
    let user = app.http().with(&app.disabled_key(&ada, Tier::Free).await);
    for _ in 0..2 {
        user.get("/v1/markets").header("traceparent", SAMPLED).await.ok();
    }
    assert_eq!(sink.0.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn event_streams_of_free_users_take_no_place_of_a_paid_tier() {
    let app = TestApp::with().budgets(["feed.total=0"]).start().await;
    let ada = app.user("ada").await;
    let open = async |tier: Tier| {
        let user = app.http().with(&app.disabled_key(&ada, tier).await);
        user.get("/v1/events").header("accept", "text/event-stream").respond().await.status().as_u16()
    };
    assert_eq!((open(Tier::Free).await, open(Tier::Mm).await), (429, 200));
}
