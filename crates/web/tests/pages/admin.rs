//! The operators' pages: who sees them, and that only a passkey's assertion acts.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use app::config::{Config, WebSettings};
use domain::credential::Role;
use domain::ids::{MarketId, UserId};
use domain::key::Tier;
use domain::market::MarketStatus;
use domain::passkey::Challenge;
use domain::time::MINUTE_MS;
use http_testkit::{Answer, ServeHttp};
use serde_json::{Value, json};
use store::quarantine::Quarantine;
use testkit::TestApp;

use crate::people::{Browser, rejected, sign_in_for};

const PAGES: [&str; 10] = [
    "/admin",
    "/admin/markets",
    "/admin/markets/new",
    "/admin/users",
    "/admin/catalog",
    "/admin/catalog/threads/new",
    "/admin/switches",
    "/admin/webhooks",
    "/admin/quarantine",
    "/admin/audit",
];

/// Returns the newest user.
async fn newest(app: &TestApp) -> UserId {
    let listed = app.ctx.store.read((), |tx, ()| Box::pin(store::users::list(tx, None, 1))).await.unwrap();
    listed[0].0.id
}

/// Signs up and becomes an admin.
async fn admin(app: &TestApp) -> Browser {
    let mut browser = Browser::new(app);
    browser.sign_up("Ada").await;
    app::people::set_role(&app.ctx, newest(app).await, Role::Admin).await.unwrap();
    browser
}

impl Browser {
    /// Prepares an act and returns its id.
    async fn prepare(&mut self, fields: &[(&str, &str)]) -> String {
        let answer = self.submit("/admin/acts", fields).await;
        assert_eq!(answer.status.as_u16(), 303, "{answer}");
        answer.header("location").unwrap().strip_prefix("/admin/acts/").unwrap().to_owned()
    }

    async fn challenge_of(&mut self, act: &str) -> Challenge {
        let answer = self.post("/app/challenges", json!({ "purpose": "admin-act", "act": act })).await;
        assert_eq!(answer.status.as_u16(), 201, "{answer}");
        answer.json()["challenge"].as_str().unwrap().parse().unwrap()
    }

    /// The body that confirms an act.
    async fn confirmation(&mut self, act: &str) -> Value {
        let challenge = self.challenge_of(act).await;
        let passkey = self.assertion(&challenge);
        json!({ "challengeId": challenge.to_string(), "passkey": passkey })
    }

    /// Prepares and confirms an act. Returns the page of its result.
    async fn run(&mut self, fields: &[(&str, &str)]) -> Answer {
        let act = self.prepare(fields).await;
        let body = self.confirmation(&act).await;
        let ran = self.post(&format!("/app/admin-acts/{act}"), body).await;
        assert_eq!(ran.json()["next"], format!("/admin/acts/{act}"), "{ran}");
        self.get(&format!("/admin/acts/{act}")).await
    }
}

async fn status_of(app: &TestApp, id: MarketId) -> MarketStatus {
    app.run_workers().await;
    let found = app.ctx.store.read(id, |tx, id| Box::pin(store::markets::find(tx, *id))).await;
    found.unwrap().unwrap().status
}

#[tokio::test]
async fn the_pages_do_not_exist_for_anyone_but_an_admin() {
    let app = TestApp::new().await;
    let market = app.market_with(&["Yes", "No"], |_| ()).await;
    let mut admin = admin(&app).await;
    let admin_id = newest(&app).await;
    let mut user = Browser::new(&app);
    user.sign_up("Ben").await;
    let mut anonymous = Browser::new(&app);
    let mut off = admin.beside();
    off.cookie.clone_from(&admin.cookie);
    let web = app.ctx.config.web.clone().unwrap();
    let web = WebSettings { is_admin_on: false, ..web };
    let config = Config { web: Some(web), ..app.ctx.config.as_ref().clone() };
    off.client = app.http_with(|state| state.ctx.config = Arc::new(config)).anonymous();

    let freeze = admin.prepare(&[("act", "freeze"), ("market", &market.id.to_string())]).await;
    let mut paths: Vec<String> = PAGES.iter().map(|path| (*path).to_owned()).collect();
    paths.push(format!("/admin/markets/{}", market.id));
    paths.push(format!("/admin/users/{admin_id}"));
    paths.push(format!("/admin/acts/{freeze}"));
    for path in &paths {
        let page = admin.get(path).await;
        assert_eq!(page.status.as_u16(), 200, "{path} {page}");
        assert_eq!(page.header("cache-control"), Some("no-store"), "{path}");
        for other in [&mut user, &mut anonymous, &mut off] {
            let page = other.get(path).await;
            assert_eq!(page.status.as_u16(), 404, "{path}");
            assert!(page.text.contains("<h1>This page does not exist</h1>"), "{path} {page}");
        }
    }
    let confirmation = admin.confirmation(&freeze).await;
    for other in [&mut user, &mut anonymous, &mut off] {
        let fields = [("act", "freeze"), ("market", &market.id.to_string())];
        assert_eq!(other.submit("/admin/acts", &fields).await.status.as_u16(), 404);
        assert_eq!(other.submit("/admin/catalog/plan", &[("text", "")]).await.status.as_u16(), 404);
        let confirmed = other.post(&format!("/app/admin-acts/{freeze}"), confirmation.clone()).await;
        assert_eq!(confirmed.status.as_u16(), 404, "{confirmed}");
    }
    assert_eq!(status_of(&app, market.id).await, MarketStatus::Open);
    assert!(admin.get("/").await.text.contains("href=\"/admin\""));
    for other in [&mut user, &mut anonymous, &mut off] {
        assert!(!other.get("/").await.text.contains("href=\"/admin\""));
    }
}

#[tokio::test]
async fn an_act_runs_only_with_an_assertion_over_its_own_hash() {
    let app = TestApp::new().await;
    let market = app.market_with(&["Yes", "No"], |_| ()).await;
    let other_market = app.market_with(&["Yes", "No"], |_| ()).await;
    let mut browser = admin(&app).await;
    let (id, other_id) = (market.id.to_string(), other_market.id.to_string());
    let act = browser.prepare(&[("act", "freeze"), ("market", &id)]).await;
    let other = browser.prepare(&[("act", "freeze"), ("market", &other_id)]).await;
    let path = format!("/app/admin-acts/{act}");

    // No assertion, and assertions for a sign-in, for a step-up and for another act.
    rejected(&browser.post(&path, json!({ "challengeId": "AAAA" })).await, 400, "VALIDATION_FAILED");
    for purpose in ["sign-in", "step-up"] {
        let challenge = browser.challenge(purpose).await;
        let passkey = browser.assertion(&challenge);
        let body = json!({ "challengeId": challenge.to_string(), "passkey": passkey });
        rejected(&browser.post(&path, body).await, 409, "CHALLENGE_UNUSABLE");
    }
    let of_other = browser.confirmation(&other).await;
    rejected(&browser.post(&path, of_other.clone()).await, 409, "CHALLENGE_UNUSABLE");
    assert_eq!(status_of(&app, market.id).await, MarketStatus::Open);

    // Its own assertion runs it once.
    let body = browser.confirmation(&act).await;
    assert_eq!(browser.post(&path, body.clone()).await.status.as_u16(), 200);
    assert_eq!(status_of(&app, market.id).await, MarketStatus::Frozen);
    rejected(&browser.post(&path, body).await, 409, "CHALLENGE_UNUSABLE");
    assert_eq!(browser.post(&format!("/app/admin-acts/{other}"), of_other).await.status.as_u16(), 200);

    // After five minutes it cannot be confirmed any more.
    let act = browser.prepare(&[("act", "unfreeze"), ("market", &id)]).await;
    let body = browser.confirmation(&act).await;
    app.advance_ms(5 * MINUTE_MS).await;
    rejected(&browser.post(&format!("/app/admin-acts/{act}"), body).await, 409, "CHALLENGE_UNUSABLE");
    assert!(browser.get(&format!("/admin/acts/{act}")).await.text.contains("<b>Expired</b>"));
    assert_eq!(status_of(&app, market.id).await, MarketStatus::Frozen);
}

#[tokio::test]
async fn an_act_that_was_changed_after_it_was_shown_does_not_run() {
    let app = TestApp::new().await;
    let market = app.market_with(&["Yes", "No"], |_| ()).await;
    let other = app.market_with(&["Yes", "No"], |_| ()).await;
    let mut browser = admin(&app).await;
    let act = browser.prepare(&[("act", "freeze"), ("market", &market.id.to_string())]).await;
    let body = browser.confirmation(&act).await;
    let change = (market.id.to_string(), other.id.to_string());
    app.ctx
        .store
        .write(change, |tx, (from, to)| {
            Box::pin(async move {
                let sql = "UPDATE admin_acts SET request = REPLACE(request, $1, $2)";
                tx.exec(sql, &store::params![from, to]).await
            })
        })
        .await
        .unwrap();
    rejected(&browser.post(&format!("/app/admin-acts/{act}"), body).await, 409, "CHALLENGE_UNUSABLE");
    for id in [market.id, other.id] {
        assert_eq!(status_of(&app, id).await, MarketStatus::Open);
    }
}

#[tokio::test]
async fn a_stolen_session_of_an_admin_can_only_read() {
    let app = TestApp::new().await;
    let market = app.market_with(&["Yes", "No"], |_| ()).await;
    let mut victim = admin(&app).await;
    let mut thief = Browser::new(&app);
    thief.sign_up("Mallory").await;
    thief.cookie.clone_from(&victim.cookie);
    assert_eq!(thief.get("/admin").await.status.as_u16(), 200);
    let act = thief.prepare(&[("act", "freeze"), ("market", &market.id.to_string())]).await;
    let body = thief.confirmation(&act).await;
    let path = format!("/app/admin-acts/{act}");
    rejected(&thief.post(&path, body).await, 403, "UNKNOWN_CREDENTIAL");
    // Another admin cannot confirm it either.
    let mut other = admin(&app).await;
    let answer = other.post("/app/challenges", json!({ "purpose": "admin-act", "act": act })).await;
    assert_eq!(answer.status.as_u16(), 404, "{answer}");
    let challenge = victim.challenge_of(&act).await;
    let passkey = other.assertion(&challenge);
    let body = json!({ "challengeId": challenge.to_string(), "passkey": passkey });
    assert_eq!(other.post(&path, body).await.status.as_u16(), 404);
    assert_eq!(status_of(&app, market.id).await, MarketStatus::Open);
}

#[tokio::test]
async fn a_demoted_admin_confirms_nothing() {
    let app = TestApp::new().await;
    let market = app.market_with(&["Yes", "No"], |_| ()).await;
    let mut browser = admin(&app).await;
    let act = browser.prepare(&[("act", "freeze"), ("market", &market.id.to_string())]).await;
    let body = browser.confirmation(&act).await;
    app::people::set_role(&app.ctx, newest(&app).await, Role::User).await.unwrap();
    assert_eq!(browser.post(&format!("/app/admin-acts/{act}"), body).await.status.as_u16(), 404);
    assert_eq!(status_of(&app, market.id).await, MarketStatus::Open);
}

#[tokio::test]
async fn an_admin_creates_freezes_and_resolves_a_market() {
    let app = TestApp::new().await;
    let mut browser = admin(&app).await;
    let end = app.ctx.now().plus_ms(60 * MINUTE_MS).to_string();
    let mut fields = vec![
        ("act", "create-market"),
        ("question", "Will it snow?"),
        ("outcomes", "Yes\r\nNo\r\n"),
        ("odds", "62.5, 37.5"),
        ("liquidity", "1000"),
        ("fee", "1.5"),
        ("end_time", &end),
        ("description", "By the **station**."),
        ("category", "weather"),
        ("tags", "snow, winter"),
    ];
    let act = browser.prepare(&fields).await;
    let page = browser.get(&format!("/admin/acts/{act}")).await;
    // b ln (1 / 0.375)
    for text in ["Create the market “Will it snow?”", "62.50%", "37.50%", "980.82", "Confirm with a passkey"]
    {
        assert!(page.text.contains(text), "{text}\n{page}");
    }
    let body = browser.confirmation(&act).await;
    browser.post(&format!("/app/admin-acts/{act}"), body).await;
    app.run_workers().await;
    let list = browser.get("/admin/markets?q=snow&status=OPEN").await;
    let id = list.text.split("/admin/markets/").find(|part| part.as_bytes()[8] == b'-').unwrap();
    let id: MarketId = id[..36].parse().unwrap();
    let public = browser.get(&format!("/markets/{id}")).await;
    assert!(
        public.text.contains("Will it snow?") && public.text.contains("<strong>station</strong>"),
        "{public}"
    );

    let (text, path) = (id.to_string(), format!("/admin/markets/{id}"));
    let done = browser.run(&[("act", "freeze"), ("market", &text)]).await;
    assert!(done.text.contains("<b>Done</b>") && done.text.contains("is in block"), "{done}");
    assert_eq!(status_of(&app, id).await, MarketStatus::Frozen);
    assert!(browser.get(&path).await.text.contains("Unfreeze"));
    let resolve = [
        ("act", "resolve"),
        ("market", &text),
        ("winner", "1"),
        ("payout", ""),
        ("payout", ""),
        ("source", "DWD"),
    ];
    let act = browser.prepare(&resolve).await;
    let page = browser.get(&format!("/admin/acts/{act}")).await;
    assert!(page.text.contains("No pays") && page.text.contains("1 USDC per token"), "{page}");
    assert_eq!(status_of(&app, id).await, MarketStatus::Frozen, "nothing happens before the confirmation");
    browser.run(&resolve).await;
    assert_eq!(status_of(&app, id).await, MarketStatus::Resolved);
    let page = browser.get(&path).await;
    assert!(page.text.contains("Resolved") && page.text.contains("DWD"), "{page}");

    // The same form with wrong values shows them again, with the reasons.
    fields[3] = ("odds", "60, 50");
    fields[1] = ("question", "Will it hail?");
    let again = browser.submit("/admin/acts", &fields).await;
    assert_eq!(again.status.as_u16(), 400, "{again}");
    assert!(
        again.text.contains("value=\"Will it hail?\"") && again.text.contains("must sum to exactly 1"),
        "{again}"
    );
}

#[tokio::test]
async fn the_audit_log_names_the_admin_and_the_confirmed_act() {
    let app = TestApp::new().await;
    let market = app.market_with(&["Yes", "No"], |_| ()).await;
    let mut browser = admin(&app).await;
    let admin = newest(&app).await;
    let id = market.id.to_string();
    let fields = [("act", "freeze"), ("market", id.as_str())];
    let act = browser.prepare(&fields).await;
    let body = browser.confirmation(&act).await;
    browser.post(&format!("/app/admin-acts/{act}"), body).await;
    let filter = app::audit_log::Filter { actor: Some(format!("user:{admin}")), ..Default::default() };
    let entries = app::audit_log::list(&app.ctx, filter, i64::MAX, 10).await.unwrap();
    let via = format!("admin-act:{act}");
    let of_act: Vec<_> = entries.iter().filter(|entry| entry.os_user == via).collect();
    let actions: Vec<_> = of_act.iter().map(|entry| (entry.action.as_str(), entry.phase.as_str())).collect();
    assert_eq!(
        actions,
        [("market.freeze", "done"), ("market.freeze", "begun"), ("admin.confirm", "done")],
        "{entries:?}"
    );
    assert!(of_act[0].before.as_deref().unwrap().contains("OPEN"), "{:?}", of_act[0]);
    assert!(of_act[2].after.as_deref().unwrap().contains("challenge"), "{:?}", of_act[2]);
    assert_eq!(app::audit_log::verify(&app.ctx).await.unwrap().broken_at, None);
    let page = browser.get(&format!("/admin/audit?action=market&subject=market:{id}")).await;
    assert!(page.text.contains("market.freeze") && page.text.contains(&via), "{page}");
    let none = browser.get("/admin/audit?actor=nobody").await;
    assert!(none.text.contains("No entry matches"), "{none}");
}

#[tokio::test]
async fn an_admin_manages_users_and_their_keys() {
    let app = TestApp::new().await;
    let mut user = Browser::new(&app);
    user.sign_up("Grace Hopper").await;
    let id = newest(&app).await;
    let mut browser = admin(&app).await;
    let found = browser.get("/admin/users?q=hopper").await;
    assert!(found.text.contains("Grace Hopper") && !found.text.contains(">Ada<"), "{found}");
    assert!(browser.get("/admin/users?q=nobody").await.text.contains("No user matches"));
    let text = id.to_string();
    browser.run(&[("act", "tier"), ("user", &text), ("tier", "developer")]).await;
    let keys = app.ctx.store.read(id, |tx, id| Box::pin(store::keys::list(tx, *id))).await.unwrap();
    assert_eq!(keys[0].tier.as_str(), "developer");
    let key = keys[0].id.to_string();
    browser.run(&[("act", "pause-key"), ("key", &key)]).await;
    let page = browser.get(&format!("/admin/users/{text}")).await;
    assert!(page.text.contains("Paused") && page.text.contains("developer"), "{page}");
    browser.run(&[("act", "resume-key"), ("key", &key)]).await;
    assert_eq!(user.get("/portfolio").await.status.as_u16(), 200);
    browser.run(&[("act", "end-sessions"), ("user", &text)]).await;
    assert_eq!(user.get("/portfolio").await.header("location"), Some(sign_in_for("/portfolio").as_str()));
    browser.run(&[("act", "revoke-key"), ("key", &key)]).await;
    let refused = browser.submit("/admin/acts", &[("act", "pause-key"), ("key", &key)]).await;
    assert_eq!(refused.status.as_u16(), 400, "{refused}");
    assert!(refused.text.contains("revoked already"), "{refused}");
    // A second admin, who cannot remove the own role.
    browser.run(&[("act", "role"), ("user", &text), ("role", "admin")]).await;
    user.prove("sign-in").await;
    assert_eq!(user.get("/admin").await.status.as_u16(), 200);
    let refused = user.submit("/admin/acts", &[("act", "role"), ("user", &text), ("role", "user")]).await;
    assert_eq!(refused.status.as_u16(), 400, "{refused}");
    browser.run(&[("act", "role"), ("user", &text), ("role", "user")]).await;
    assert_eq!(user.get("/admin").await.status.as_u16(), 404);
}

#[tokio::test]
async fn an_admin_switches_trading_off_with_a_reason() {
    let app = TestApp::new().await;
    let mut browser = admin(&app).await;
    let halt = [("act", "switch"), ("name", "trading"), ("state", "off"), ("reason", "The oracle is wrong")];
    browser.run(&halt).await;
    assert!(app.ctx.process.switches.is_trading_halted());
    let page = browser.get("/admin").await;
    assert!(
        page.text.contains("trading is switched off") && page.text.contains("The oracle is wrong"),
        "{page}"
    );
    browser.run(&[("act", "switch"), ("name", "trading"), ("state", "on"), ("reason", "Fixed")]).await;
    assert!(!app.ctx.process.switches.is_trading_halted());
    for wrong in [
        [("act", "switch"), ("name", "GET /nothing"), ("state", "off"), ("reason", "x")],
        [("act", "switch"), ("name", "trading"), ("state", "off"), ("reason", " ")],
        [("act", "anything"), ("name", "trading"), ("state", "off"), ("reason", "x")],
    ] {
        assert_eq!(browser.submit("/admin/acts", &wrong).await.status.as_u16(), 400, "{wrong:?}");
    }
}

#[tokio::test]
async fn an_admin_imports_a_catalog_and_edits_a_thread() {
    const CATALOG: &str = "threads:\n  - key: cup\n    title: The cup\n    category: sports\n";
    let app = TestApp::new().await;
    let mut browser = admin(&app).await;
    let wrong = browser.submit("/admin/catalog/plan", &[("text", "threads: [{}]"), ("format", "yaml")]).await;
    assert!(wrong.text.contains("cannot be imported") && wrong.text.contains("/threads/0/title"), "{wrong}");
    // 20 kB that would take a gigabyte if each alias were a copy.
    let bomb = format!("a: &a {}\nb: [{}]\n", "x".repeat(12_000), ["*a"; 2_500].join(","));
    let refused = browser.submit("/admin/catalog/plan", &[("text", &bomb), ("format", "yaml")]).await;
    assert!(refused.text.contains("must not copy more than 8 MiB"), "{refused}");
    let plan = browser.submit("/admin/catalog/plan", &[("text", CATALOG), ("format", "yaml")]).await;
    assert!(plan.text.contains("<b>create</b>") && plan.text.contains("Review the import"), "{plan}");
    let done = browser.run(&[("act", "import"), ("text", CATALOG), ("format", "yaml")]).await;
    assert!(done.text.contains("Items: 1."), "{done}");
    let list = browser.get("/admin/catalog").await;
    let id = list.text.split("/admin/catalog/threads/").nth(2).unwrap()[..36].to_owned();
    let form = browser.get(&format!("/admin/catalog/threads/{id}")).await;
    assert!(form.text.contains("value=\"The cup\""), "{form}");
    browser.run(&[("act", "thread"), ("thread", &id), ("title", "The final"), ("category", "sports")]).await;
    assert!(browser.get(&format!("/threads/{id}")).await.text.contains("<h1 dir=\"auto\">The final</h1>"));
    let same = [("act", "thread"), ("thread", &id), ("title", "The final"), ("category", "sports")];
    let nothing = browser.submit("/admin/acts", &same).await;
    assert!(nothing.text.contains("Nothing would change"), "{nothing}");
}

#[tokio::test]
async fn a_question_that_its_thread_has_is_refused_before_an_act_is_prepared() {
    let app = TestApp::new().await;
    let mut browser = admin(&app).await;
    let catalog = "threads: [{key: cup, title: The cup}]";
    browser.run(&[("act", "import"), ("text", catalog), ("format", "yaml")]).await;
    let list = browser.get("/admin/catalog").await;
    let thread = list.text.split("/admin/catalog/threads/").nth(2).unwrap()[..36].to_owned();
    let end = app.ctx.now().plus_ms(60 * MINUTE_MS).to_string();
    let mut fields = vec![
        ("act", "create-market"),
        ("question", "Who wins?"),
        ("outcomes", "Ada\r\nBen\r\n"),
        ("odds", "50, 50"),
        ("liquidity", "10"),
        ("fee", "1"),
        ("end_time", &end),
        ("thread", &thread),
    ];
    browser.run(&fields).await;
    fields[1] = ("question", "WHO wins?");
    let refused = browser.submit("/admin/acts", &fields).await;
    assert_eq!(refused.status.as_u16(), 400, "{refused}");
    assert!(refused.text.contains("must differ from the question of the market "), "{refused}");
}

#[tokio::test]
async fn the_plan_of_a_yaml_file_names_the_line_of_a_title_that_exists() {
    let app = TestApp::new().await;
    let mut browser = admin(&app).await;
    let catalog = "threads: [{key: cup, title: The cup}]";
    browser.run(&[("act", "import"), ("text", catalog), ("format", "yaml")]).await;
    let text = "threads:\n  - key: other\n    title: THE cup\n";
    let plan = browser.submit("/admin/catalog/plan", &[("text", text), ("format", "yaml")]).await;
    assert!(plan.text.contains("line 3: /threads/0/title: must differ from"), "{plan}");
}

#[tokio::test]
async fn a_service_without_the_roles_keys_shows_the_transactions() {
    let app = TestApp::new().await;
    let market = app.market_with(&["Yes", "No"], |_| ()).await;
    let mut browser = admin(&app).await;
    let web = app.ctx.config.web.clone().unwrap();
    let web = WebSettings { role_keys: Default::default(), ..web };
    let config = Config { web: Some(web), ..app.ctx.config.as_ref().clone() };
    browser.client = app.http_with(|state| state.ctx.config = Arc::new(config)).anonymous();
    let done = browser.run(&[("act", "freeze"), ("market", &market.id.to_string())]).await;
    let hub = app.ctx.chain.contracts().hub.to_string();
    let guardian = app.roles.guardian.address().to_string();
    assert!(done.text.contains("A wallet must send this"), "{done}");
    assert!(done.text.contains(&hub) && done.text.contains(&guardian), "{done}");
    assert_eq!(status_of(&app, market.id).await, MarketStatus::Open);
}

#[tokio::test]
async fn an_admin_vetoes_a_result_and_finalizes_another_after_the_window() {
    const WINDOW_S: u32 = 600;
    let app = TestApp::with().veto_window_s(WINDOW_S).start().await;
    let market = app.market(&["Yes", "No"]).await;
    let mut browser = admin(&app).await;
    let (text, path) = (market.id.to_string(), format!("/admin/markets/{}", market.id));
    let resolve = |winner: &'static str| {
        [("act", "resolve"), ("market", text.as_str()), ("winner", winner), ("payout", ""), ("payout", "")]
    };
    let shown = async |browser: &mut Browser, words: &str| {
        app.run_workers().await;
        let page = browser.get(&path).await;
        assert!(page.text.contains(words), "{words}\n{page}");
    };
    browser.run(&resolve("0")).await;
    shown(&mut browser, "value=\"veto\"").await;
    assert_eq!(status_of(&app, market.id).await, MarketStatus::Frozen);
    let early = browser.submit("/admin/acts", &[("act", "finalize"), ("market", &text)]).await;
    assert_eq!(early.status.as_u16(), 409, "{early}");
    assert!(early.text.contains("can be vetoed until"), "{early}");
    let vetoed = browser.run(&[("act", "veto"), ("market", &text)]).await;
    assert!(vetoed.text.contains("<b>Done</b>"), "{vetoed}");
    shown(&mut browser, "value=\"resolve\"").await;

    browser.run(&resolve("1")).await;
    app.advance_ms(i64::from(WINDOW_S + 1) * 1_000).await;
    browser.prove("step-up").await;
    shown(&mut browser, "value=\"finalize\"").await;
    browser.run(&[("act", "finalize"), ("market", &text)]).await;
    assert_eq!(status_of(&app, market.id).await, MarketStatus::Resolved);
}

#[tokio::test]
async fn an_admin_cancels_a_market_after_seeing_what_it_pays() {
    let app = TestApp::new().await;
    let market = app.market(&["Yes", "No"]).await;
    let mut browser = admin(&app).await;
    let text = market.id.to_string();
    let cancel = [("act", "cancel"), ("market", text.as_str()), ("reason", "The race was called off.")];
    let act = browser.prepare(&cancel).await;
    let page = browser.get(&format!("/admin/acts/{act}")).await;
    assert!(page.text.contains("Every token pays its reference price"), "{page}");
    assert_eq!(status_of(&app, market.id).await, MarketStatus::Open);
    browser.run(&cancel).await;
    assert_eq!(status_of(&app, market.id).await, MarketStatus::Cancelled);
}

#[tokio::test]
async fn an_admin_repairs_a_quarantined_market_and_retries_webhooks() {
    let app = TestApp::new().await;
    let market = app.market(&["Yes", "No"]).await;
    let mut browser = admin(&app).await;
    app.run_workers().await;
    let now = app.ctx.now();
    let quarantine = Quarantine {
        market_id: market.id,
        block_number: 1,
        reason: "overdrawn_position".to_owned(),
        detail: "An account sold more than it has.".to_owned(),
        quarantined_at: now,
        repair_attempts: 0,
        next_repair_at: now.plus_ms(60 * MINUTE_MS),
    };
    let insert = app.ctx.store.write(quarantine, |tx, quarantine| {
        Box::pin(async move { store::quarantine::insert(tx, quarantine).await })
    });
    assert!(insert.await.unwrap());
    let page = browser.get("/admin/quarantine").await;
    assert!(page.text.contains("An account sold more than it has."), "{page}");
    let public = browser.get(&format!("/markets/{}", market.id)).await;
    assert!(public.text.contains("Trading is paused"), "{public}");
    let repaired = browser.run(&[("act", "release"), ("market", &market.id.to_string())]).await;
    assert!(repaired.text.contains("The market was repaired"), "{repaired}");
    assert!(!browser.get("/admin/quarantine").await.text.contains("overdrawn"));

    let user = app.user("ada").await;
    let key = app.key(&user, Tier::Developer).await.caller.key.id.to_string();
    let retried = browser.run(&[("act", "retry-webhooks"), ("key", &key)]).await;
    assert!(retried.text.contains("The queue is due now."), "{retried}");
}

#[tokio::test]
async fn the_plan_of_a_catalog_waits_for_a_turn_of_the_parsers() {
    let app = TestApp::new().await;
    let mut browser = admin(&app).await;
    // More than there are turns.
    let (ends, held): (Vec<_>, Vec<_>) = (0..16).map(|_| mpsc::channel::<()>()).unzip();
    for end in held {
        let ctx = app.ctx.clone();
        drop(tokio::spawn(async move { ctx.process.parsers.run(move || end.recv().is_ok()).await }));
    }
    tokio::task::yield_now().await;
    let fields = [("text", "threads: []\n"), ("format", "yaml")];
    let plan = browser.submit("/admin/catalog/plan", &fields);
    let plan = tokio::time::timeout(Duration::from_millis(500), plan).await;
    assert!(plan.is_err(), "the file was parsed on a thread that serves requests");
    drop(ends);
    assert_eq!(browser.submit("/admin/catalog/plan", &fields).await.status.as_u16(), 200);
}
