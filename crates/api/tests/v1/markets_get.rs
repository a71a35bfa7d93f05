//! `GET /v1/markets`.

use app::catalog;
use domain::ErrorCode;
use domain::ids::{OrganizationId, PartnerId, ThreadId};
use http_testkit::ServeHttp;
use serde_json::Value;
use store::catalog::{Organization, Partner, Thread};
use store::{StoreError, params};
use testkit::{Fault, TestApp, TestMarket, market_of};

use crate::scene::{Scene, ids, rows, text};

/// Returns the questions of a list's rows.
fn questions(body: &Value) -> Vec<String> {
    rows(body).iter().map(|row| text(&row["question"]).to_owned()).collect()
}

async fn asked(app: &TestApp, question: &str) -> TestMarket {
    app.market_with(&["Yes", "No"], |new| new.question = question.to_owned()).await
}

#[tokio::test]
async fn a_list_shows_the_newest_market_first() {
    let Scene { app, client, .. } = Scene::new().await;
    app.advance_ms(60_000).await;
    app.market_with(&["Red", "Green", "Blue"], |new| {
        new.question = "Which \"colour\" wins?".to_owned();
        new.description = Some("The *colour* of the winner.".to_owned());
        new.category = Some("sports".to_owned());
        new.tags = vec!["colour".to_owned(), "derby".to_owned()];
        new.fee_bps = 0;
    })
    .await;
    let answer = client.get("/v1/markets").await;
    answer.ok();
    insta::assert_snapshot!(answer);
}

#[tokio::test]
async fn a_market_that_is_not_on_chain_yet_is_not_listed() {
    let Scene { app, client, market, .. } = Scene::new().await;
    app.faults.every_send(Fault::LostRequest);
    app::markets::create(&app.ctx, &app.roles.resolver, market_of(&app, &["A", "B"])).await.unwrap_err();
    assert_eq!(ids(&client.get("/v1/markets").await.ok()), [market.id.to_string()]);
}

#[tokio::test]
async fn status_accepts_the_values_of_both_apis() {
    let Scene { app, client, market: open, .. } = Scene::new().await;
    let (frozen, resolved, cancelled) =
        (app.market(&["A", "B"]).await, app.market(&["A", "B"]).await, app.market(&["A", "B"]).await);
    app.freeze(frozen).await;
    app.resolve(resolved, 1).await;
    app.cancel(cancelled).await;
    app.run_workers().await;
    for (words, expected) in [
        ("OPEN", vec![open]),
        ("active", vec![open]),
        ("FROZEN", vec![frozen]),
        ("paused", vec![frozen]),
        ("RESOLVED", vec![resolved]),
        ("resolved", vec![resolved]),
        ("CANCELLED", vec![cancelled]),
        ("cancelled", vec![cancelled]),
        ("refunded", vec![cancelled]),
        ("all", vec![open, resolved]),
        ("OPEN,paused", vec![open, frozen]),
        ("OPEN,FROZEN,RESOLVED,CANCELLED", vec![open, frozen, resolved, cancelled]),
    ] {
        let body = client.get(&format!("/v1/markets?status={words}")).await.ok();
        let mut found = ids(&body);
        let mut expected: Vec<_> = expected.iter().map(|market| market.id.to_string()).collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{words}");
    }
}

#[tokio::test]
async fn an_unknown_status_is_rejected() {
    let client = Scene::new().await.client;
    for words in ["open", "Open", "OPEN,", ",OPEN", "OPEN;FROZEN", "pending", "all,none"] {
        let answer = client.get(&format!("/v1/markets?status={words}")).await;
        assert_eq!(answer.pointers(), ["/status"], "{words}");
    }
}

#[tokio::test]
async fn q_searches_the_question_literally_and_ignores_case() {
    let Scene { app, client, .. } = Scene::new().await;
    for question in ["Will BTC reach 100% by May?", "Will 100 birds_come?", "Où sera l'Été ?", "Was!?"] {
        asked(&app, question).await;
    }
    for (q, expected) in [
        ("btc", vec!["Will BTC reach 100% by May?"]),
        ("REACH%20100", vec!["Will BTC reach 100% by May?"]),
        ("REACH+100", vec!["Will BTC reach 100% by May?"]),
        ("100%25", vec!["Will BTC reach 100% by May?"]),
        ("s_c", vec!["Will 100 birds_come?"]),
        ("l_b", vec![]),
        ("100", vec!["Will 100 birds_come?", "Will BTC reach 100% by May?"]),
        ("!", vec!["Was!?"]),
        ("%C3%89t%C3%A9", vec!["Où sera l'Été ?"]),
        ("%C3%A9T%C3%89", vec!["Où sera l'Été ?"]),
        ("'", vec!["Où sera l'Été ?"]),
        ("nothing", vec![]),
    ] {
        let mut found = questions(&client.get(&format!("/v1/markets?q={q}")).await.ok());
        found.sort_unstable();
        assert_eq!(found, expected, "{q}");
    }
}

#[tokio::test]
async fn a_list_is_filtered_by_thread_and_category() {
    let Scene { app, client, .. } = Scene::new().await;
    let thread = Thread {
        id: ThreadId(app.ctx.uuid()),
        organization_id: None,
        partner_id: None,
        title: "Derby".to_owned(),
        description: None,
        image: None,
        background_image: None,
        category: Some("sports".to_owned()),
        tags: Vec::new(),
        start_time: None,
        end_time: None,
    };
    let thread = catalog::add_thread(&app.ctx, thread).await.unwrap().id;
    let change = |new: &mut app::markets::NewMarket| {
        new.thread_id = Some(thread);
        new.category = Some("sports".to_owned());
    };
    let market = app.market_with(&["A", "B"], change).await;
    let found = client.get(&format!("/v1/markets?threadId={thread}")).await.ok();
    assert_eq!(ids(&found), [market.id.to_string()]);
    assert_eq!(found["data"][0]["threadId"], thread.to_string());
    let found = client.get("/v1/markets?category=sports").await.ok();
    assert_eq!(ids(&found), [market.id.to_string()]);
    for other in [
        format!("threadId={}", ThreadId(app.ctx.uuid())),
        format!("organizationId={}", OrganizationId(app.ctx.uuid())),
        format!("partnerId={}", PartnerId(app.ctx.uuid())),
        format!("threadId={thread}&category=weather"),
        "category=Sports".to_owned(),
    ] {
        assert!(ids(&client.get(&format!("/v1/markets?{other}")).await.ok()).is_empty(), "{other}");
    }
}

#[tokio::test]
async fn unknown_repeated_empty_and_malformed_parameters_are_all_reported() {
    let client = Scene::new().await.client;
    for (query, pointers) in [
        ("offset=1", vec!["/offset"]),
        ("Status=OPEN", vec!["/Status"]),
        ("status=OPEN&status=FROZEN", vec!["/status"]),
        ("limit=1&limit=1", vec!["/limit"]),
        ("q=", vec!["/q"]),
        ("q", vec!["/q"]),
        ("q=%ff", vec!["/q"]),
        ("q=%00", vec!["/q"]),
        ("q=%2", vec!["/q"]),
        ("threadId=1", vec!["/threadId"]),
        ("a%2Fb=1", vec!["/a~1b"]),
        ("offset=1&status=x&threadId=1&limit=0", vec!["/offset", "/status", "/threadId", "/limit"]),
    ] {
        assert_eq!(client.get(&format!("/v1/markets?{query}")).await.pointers(), pointers, "{query}");
    }
    client.get("/v1/markets?&&limit=5&").await.ok();
}

#[tokio::test]
async fn a_database_error_reveals_no_internals() {
    let Scene { app, client, .. } = Scene::new().await;
    app.ctx.store.close().await;
    let answer = client.get("/v1/markets").await;
    answer.refused(ErrorCode::DependencyUnavailable);
    assert_eq!(answer.header("retry-after"), Some("1"));
    let text = answer.text.to_lowercase();
    assert!(!text.contains("sqlite") && !text.contains("closed") && !text.contains("pool"), "{answer}");
}

#[tokio::test]
async fn a_list_is_filtered_by_organization_and_partner() {
    let Scene { app, client, market: plain, .. } = Scene::new().await;
    let organization = Organization {
        id: OrganizationId(app.ctx.uuid()),
        name: "League".to_owned(),
        slug: "league".to_owned(),
        description: None,
        logo: None,
        website: None,
    };
    let organization = catalog::add_organization(&app.ctx, organization).await.unwrap().id;
    let partner = Partner {
        id: PartnerId(app.ctx.uuid()),
        organization_id: organization,
        name: "Club".to_owned(),
        slug: "club".to_owned(),
        description: None,
        logo: None,
        website: None,
        active: true,
    };
    let partner = catalog::add_partner(&app.ctx, partner).await.unwrap().id;
    let of_organization =
        app.market_with(&["A", "B"], |new| new.organization_id = Some(organization)).await.id.to_string();
    let change = |new: &mut app::markets::NewMarket| {
        (new.organization_id, new.partner_id) = (Some(organization), Some(partner));
    };
    let of_both = app.market_with(&["A", "B"], change).await.id.to_string();
    let found = async |query: String| {
        let mut found = ids(&client.get(&format!("/v1/markets?{query}")).await.ok());
        found.sort_unstable();
        found
    };
    let mut expected = [of_organization, of_both.clone()];
    expected.sort_unstable();
    assert_eq!(found(format!("organizationId={organization}")).await, expected);
    assert_eq!(found(format!("partnerId={partner}")).await, [of_both.as_str()]);
    assert_eq!(found(format!("organizationId={organization}&partnerId={partner}")).await, [of_both]);
    assert!(found(String::new()).await.contains(&plain.id.to_string()));
}

/// Freezes a market only in the database, like another process would. This process gets no signal.
async fn frozen_elsewhere(app: &TestApp, market: TestMarket) {
    const SQL: &str = "UPDATE markets SET status = 'FROZEN', as_of_block = as_of_block + 1 WHERE id = $1";
    let written: Result<u64, StoreError> = app
        .ctx
        .store
        .write(market.id, |tx, id| Box::pin(async move { tx.exec(SQL, &params![*id]).await }))
        .await;
    assert_eq!(written, Ok(1));
}

#[tokio::test]
async fn a_list_shows_status_changes_of_its_markets_at_once() {
    let scene = Scene::new().await;
    let Scene { app, client, key, .. } = &scene;
    let mut markets = Vec::new();
    for _ in 0..8 {
        markets.push(app.market(&["A", "B"]).await);
    }
    let mut shown = Vec::new();
    // The clock does not advance, so cached data never expires by age.
    for step in 0..6 {
        match step {
            0 | 5 => {}
            1 => drop(scene.settled(client.buy(markets[0], 1, "12.5")).await),
            2 => {
                app.freeze(markets[1]).await;
                app.run_workers().await;
            }
            3 => {
                for market in &markets[2..7] {
                    app.freeze(*market).await;
                }
                app.run_workers().await;
            }
            _ => frozen_elsewhere(app, markets[7]).await,
        }
        // Another limit in each request, so that the response itself is not cached but its records
        // are.
        let list = client.get(&format!("/v1/markets?limit={}", 20 + step)).await.ok()["data"].take();
        let anew = app.http().with(key).get("/v1/markets?limit=50").await.ok()["data"].take();
        assert_eq!(list, anew, "{step}");
        assert_eq!(shown.contains(&list), step == 5, "{step}");
        shown.push(list);
    }
    let frozen = shown[5].as_array().unwrap().iter().filter(|market| market["status"] == "FROZEN");
    assert_eq!(frozen.count(), 7);
}
