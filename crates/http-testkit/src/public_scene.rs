//! The setup of most tests: a catalog with markets, some of them with trades, and a client without
//! a key.

use app::catalog;
use domain::Timestamp;
use domain::ids::{OrganizationId, PartnerId, ThreadId};
use serde_json::Value;
use store::Store;
use store::catalog::{Chapter, Organization, Partner, Thread};
use testkit::{TestApp, TestMarket};

use crate::{Anonymous, Answer, Client, ServeHttp};

pub struct Scene {
    pub app: TestApp,
    pub client: Client<Anonymous>,
    pub organization: OrganizationId,
    pub partner: PartnerId,
    pub thread: ThreadId,
    /// In the thread, its first chapter and the organization; two accounts have traded.
    pub rain: TestMarket,
    /// In the thread; three outcomes; one trade.
    pub cup: TestMarket,
    /// Without a thread, an organization or trades.
    pub alone: TestMarket,
}

impl Scene {
    pub async fn new() -> Self {
        Self::of(TestApp::new().await).await
    }

    /// Creates the scene on this database, which has all migrations.
    pub async fn on(store: Store) -> Self {
        Self::of(TestApp::with().on(store).start().await).await
    }

    async fn of(app: TestApp) -> Self {
        let organization = organization(&app, "League").await;
        let partner = partner(&app, organization, "Club", true).await;
        let thread = thread(&app, |thread| {
            thread.title = "The weather this week".to_owned();
            thread.description = Some("All about *rain*.".to_owned());
            thread.image = Some("https://images.test/cover.png".to_owned());
            thread.category = Some("weather".to_owned());
            thread.tags = vec!["rain".to_owned(), "sun".to_owned()];
            thread.organization_id = Some(organization);
            thread.partner_id = Some(partner);
            thread.start_time = Some(testkit::START.plus_ms(-60_000));
            thread.end_time = Some(testkit::START.plus_ms(86_400_000));
        })
        .await;
        let first = chapter(&app, thread, "monday", 0).await;
        chapter(&app, thread, "tuesday", 1).await;
        let within = |new: &mut app::markets::NewMarket| {
            (new.thread_id, new.organization_id, new.partner_id) =
                (Some(thread), Some(organization), Some(partner));
            new.category = Some("weather".to_owned());
        };
        let rain = app
            .market_with(&["Yes", "No"], |new| {
                within(new);
                new.question = "Will it rain?".to_owned();
                new.tags = vec!["rain".to_owned()];
                new.chapter_id = Some(first);
                new.source_url = Some("https://posts.test/1".to_owned());
            })
            .await;
        app.advance_ms(1_000).await;
        let cup = app
            .market_with(&["Red", "Green", "Blue"], |new| {
                within(new);
                new.question = "Who wins the cup?".to_owned();
                new.description = Some("Of *all*.".to_owned());
                new.featured_position = Some(2);
            })
            .await;
        app.advance_ms(1_000).await;
        let alone = app.market_with(&["Yes", "No"], |new| new.question = "And after that?".to_owned()).await;
        let client = app.http().anonymous();
        let scene = Self { app, client, organization, partner, thread, rain, cup, alone };
        scene.traded().await;
        scene
    }

    /// Returns a route's path with the id of the scene's resource.
    pub fn path(&self, route: &str) -> String {
        let id = match route.split('/').nth(2) {
            Some("threads") => self.thread.to_string(),
            Some("organizations") => self.organization.to_string(),
            Some("partners") => self.partner.to_string(),
            _ => self.rain.id.to_string(),
        };
        route.replace("{id}", &id)
    }

    /// Lets Ada and a stranger buy.
    async fn traded(&self) {
        let ada = self.app.user("ada").funded("1000").await;
        let key = self.app.key(&ada, domain::key::Tier::Mm).await;
        self.app.http().with(&key).buy(self.rain, 0, "100").await.created();
        self.app.run_workers().await;
        self.app.stranger_buys(self.rain, 1, "50").await;
        self.app.stranger_buys(self.cup, 2, "20").await;
        self.app.run_workers().await;
        self.app.advance_ms(1_000).await;
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.client.get(path).await
    }

    /// Returns the body of a 200 response.
    pub async fn ok(&self, path: &str) -> Value {
        ok(&self.get(path).await)
    }

    /// Returns the body of an error response with this status and code.
    pub async fn refused(&self, path: &str, status: u16, code: &str) -> Value {
        refused(&self.get(path).await, status, code)
    }
}

/// Asserts the common properties of 200 responses, and returns the body.
pub fn ok(answer: &Answer) -> Value {
    assert_eq!(answer.status.as_u16(), 200, "\n{answer}");
    assert_headers_of_every_answer(answer);
    assert_eq!(answer.header("content-type"), Some("application/json"), "\n{answer}");
    // A quote expires, so caches must not serve it stale.
    let shared = if answer.path.ends_with("/quote") { "" } else { ", s-maxage=5, stale-while-revalidate=10" };
    let cache_control = format!("public, max-age=5{shared}");
    assert_eq!(answer.header("cache-control"), Some(cache_control.as_str()), "\n{answer}");
    let body = answer.json();
    assert_eq!(body["_meta"]["authenticated"], false, "\n{answer}");
    assert!(body["_meta"]["requestedAt"].is_string(), "\n{answer}");
    body
}

/// Asserts the common properties of error responses, and returns the body.
pub fn refused(answer: &Answer, status: u16, code: &str) -> Value {
    let body = answer.json();
    assert_eq!((answer.status.as_u16(), body["code"].as_str()), (status, Some(code)), "\n{answer}");
    assert_headers_of_every_answer(answer);
    assert_eq!(answer.header("content-type"), Some("application/json"), "\n{answer}");
    assert_eq!(answer.header("cache-control"), Some("no-store"), "\n{answer}");
    assert_eq!(answer.header("etag"), None, "\n{answer}");
    for member in ["error", "message"] {
        assert!(body[member].as_str().is_some_and(|text| !text.is_empty()), "\n{answer}");
    }
    let seconds = answer.header("retry-after").map(|seconds| seconds.parse::<u64>().unwrap());
    assert_eq!(body.get("retryAfter").and_then(Value::as_u64), seconds, "\n{answer}");
    assert!(body.as_object().unwrap().len() == 3 + usize::from(seconds.is_some()), "\n{answer}");
    body
}

pub fn assert_headers_of_every_answer(answer: &Answer) {
    assert!(answer.header("x-request-id").is_some_and(|id| id.starts_with("req_")), "\n{answer}");
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"), "\n{answer}");
    let exposed = answer.header("access-control-expose-headers").unwrap_or_default();
    for name in ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"] {
        assert!(answer.header(name).is_some_and(|value| value.parse::<u64>().is_ok()), "\n{answer}");
        assert!(exposed.to_lowercase().contains(name), "\n{answer}");
    }
    for name in ["ratelimit", "ratelimit-policy", "cache-control"] {
        assert!(answer.header(name).is_some(), "{name}\n{answer}");
    }
}

pub fn ids(body: &Value, list: &str) -> Vec<String> {
    let rows = body[list].as_array().unwrap_or_else(|| panic!("no {list} in {body}"));
    rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

pub async fn organization(app: &TestApp, name: &str) -> OrganizationId {
    let organization = Organization {
        id: OrganizationId(app.ctx.uuid()),
        name: name.to_owned(),
        slug: name.to_lowercase(),
        description: Some("Of clubs.".to_owned()),
        logo: None,
        website: Some("https://league.test".to_owned()),
    };
    catalog::add_organization(&app.ctx, organization).await.unwrap().id
}

pub async fn partner(app: &TestApp, organization_id: OrganizationId, name: &str, active: bool) -> PartnerId {
    let partner = Partner {
        id: PartnerId(app.ctx.uuid()),
        organization_id,
        name: name.to_owned(),
        slug: name.to_lowercase(),
        description: None,
        logo: Some("https://images.test/logo.png".to_owned()),
        website: None,
        active,
    };
    catalog::add_partner(&app.ctx, partner).await.unwrap().id
}

pub async fn thread(app: &TestApp, change: impl FnOnce(&mut Thread)) -> ThreadId {
    let mut thread = Thread {
        id: ThreadId(app.ctx.uuid()),
        organization_id: None,
        partner_id: None,
        title: "A thread".to_owned(),
        description: None,
        image: None,
        background_image: None,
        category: None,
        tags: Vec::new(),
        start_time: None::<Timestamp>,
        end_time: None,
    };
    change(&mut thread);
    catalog::add_thread(&app.ctx, thread).await.unwrap().id
}

async fn chapter(app: &TestApp, thread_id: ThreadId, id: &str, position: u32) -> String {
    let chapter = Chapter { id: id.to_owned(), thread_id, title: format!("On {id}"), position };
    let added = app
        .ctx
        .store
        .write(chapter, |tx, chapter| Box::pin(store::catalog::insert_chapter(tx, chapter)))
        .await;
    added.unwrap();
    id.to_owned()
}
