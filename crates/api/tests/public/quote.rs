//! `GET /api/markets/{id}/quote`.

use http_testkit::ServeHttp;
use http_testkit::public_scene::{Scene, ok};

#[tokio::test]
async fn quotes_of_both_sides_are_in_usdc() {
    let scene = Scene::new().await;
    let path = format!("/api/markets/{}/quote?outcomeIndex=0", scene.rain.id);
    let buy = scene.get(&format!("{path}&action=buy&amount=25.50")).await;
    assert_eq!(ok(&buy)["quote"]["amount"], "25.50", "as it was sent");
    insta::assert_snapshot!(buy);
    let sell = scene.get(&format!("{path}&action=sell&amount=10")).await;
    assert_eq!(ok(&sell)["quote"]["amount"], "10");
    insta::assert_snapshot!(sell);
}

#[tokio::test]
async fn a_cache_cannot_show_a_quote_after_it_has_expired() {
    let scene = Scene::new().await;
    let path = format!("/api/markets/{}/quote?outcomeIndex=0&action=buy&amount=25", scene.rain.id);
    let answer = scene.get(&path).await;
    let quote: domain::Timestamp = ok(&answer)["quote"]["expiresAt"].as_str().unwrap().parse().unwrap();
    assert_eq!(quote.since_ms(scene.app.ctx.now()), 10_000);
    assert_eq!(answer.header("cache-control"), Some("public, max-age=5"));
}

#[tokio::test]
async fn a_quote_equals_that_of_the_trading_api() {
    let scene = Scene::new().await;
    let ada = scene.app.user("bob").await;
    let client = scene.app.http().with(&scene.app.key(&ada, domain::key::Tier::Mm).await);
    let theirs = client.quote(scene.rain, 1, "buy", "25000000").await.ok()["quote"].take();
    let path = format!("/api/markets/{}/quote?outcomeIndex=1&action=buy&amount=25", scene.rain.id);
    let ours = scene.ok(&path).await["quote"].take();
    assert_eq!(ours["effectivePrice"], theirs["effectivePrice"]);
    assert_eq!(ours["priceAfter"], theirs["priceAfter"]);
    let wad: u128 = theirs["tokensOut"].as_str().unwrap().parse().unwrap();
    let (whole, part) = (wad / 10u128.pow(18), wad % 10u128.pow(18));
    assert_eq!(ours["tokens"], format!("{whole}.{part:018}").trim_end_matches('0'));
}

#[tokio::test]
async fn an_amount_is_a_decimal_above_zero_and_at_most_ten_million() {
    let scene = Scene::new().await;
    let path = format!("/api/markets/{}/quote?outcomeIndex=0&action=buy", scene.rain.id);
    for amount in ["0", "-1", "+1", "1e3", "0.0000001", "10000000.000001", "01", ".5", "1.", "ten", ""] {
        scene.refused(&format!("{path}&amount={amount}"), 400, "INVALID_REQUEST").await;
    }
    scene.ok(&format!("{path}&amount=0.01")).await;
}

#[tokio::test]
async fn only_outcomes_of_open_markets_are_quoted() {
    let scene = Scene::new().await;
    let path = format!("/api/markets/{}/quote", scene.rain.id);
    scene.refused(&format!("{path}?outcomeIndex=2&action=buy&amount=1"), 400, "INVALID_REQUEST").await;
    scene
        .refused(&format!("{path}?outcomeIndex=0&action=sell&amount=9999999"), 409, "LIQUIDITY_INSUFFICIENT")
        .await;
    scene.app.freeze(scene.rain).await;
    scene.app.run_workers().await;
    scene.refused(&format!("{path}?outcomeIndex=0&action=buy&amount=1"), 409, "MARKET_NOT_TRADEABLE").await;
}

#[tokio::test]
async fn a_quote_of_a_buy_that_cannot_gain_has_a_warning() {
    let scene = Scene::new().await;
    scene.app.stranger_buys(scene.rain, 0, "9500").await;
    scene.app.run_workers().await;
    let path = format!("/api/markets/{}/quote?outcomeIndex=0&action=buy&amount=10", scene.rain.id);
    let quote = scene.ok(&path).await["quote"].take();
    assert_eq!(quote["warnings"][0]["code"], "cannot_gain", "{quote}");
}
