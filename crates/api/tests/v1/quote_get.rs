//! `GET /v1/markets/{id}/quote`.

use domain::ErrorCode;
use domain::time::DAY_MS;
use serde_json::Value;
use testkit::{Fault, TestMarket};

use crate::scene::{Scene, atomic, text};

#[tokio::test]
async fn a_quote_of_a_buy_shows_the_pool_before_and_after() {
    let Scene { client, market, .. } = Scene::new().await;
    let answer = client.quote(market, 0, "buy", "25000000").await;
    let body = answer.ok();
    assert_eq!(body["quote"], body["data"]);
    insta::assert_snapshot!(answer);
}

#[tokio::test]
async fn a_quote_of_a_sale_counts_in_tokens() {
    let scene = Scene::new().await;
    scene.settled(scene.client.buy(scene.market, 0, "100")).await;
    let answer = scene.client.quote(scene.market, 0, "sell", "50000000000000000000").await;
    answer.ok();
    insta::assert_snapshot!(answer);
}

/// Asserts that a trade moved the amounts that were quoted before it.
fn assert_moved_as_quoted(trade: &Value, quote: &Value, usdc: &str) {
    assert_eq!(trade["tokensOut"], quote["tokensOut"]);
    assert_eq!(trade["usdcAmount"], quote[usdc]);
    assert_eq!(trade["fee"], quote["fee"]);
    assert_eq!(trade["effectivePrice"], quote["effectivePrice"]);
}

#[tokio::test]
async fn a_buy_moves_the_quoted_amounts_to_the_wei() {
    let scene = Scene::new().await;
    for (outcome, usdc, amount) in
        [(0, "25", "25000000"), (1, "0.0001", "100"), (1, "3333.333333", "3333333333")]
    {
        let quote = scene.client.quote(scene.market, outcome, "buy", amount).await.ok()["quote"].take();
        let trade = scene.settled(scene.client.buy(scene.market, outcome, usdc)).await;
        assert_moved_as_quoted(&trade, &quote, "usdcIn");
        assert_eq!(quote["usdcIn"], amount);
        let after = scene.client.get(&format!("/v1/markets/{}", scene.market.id)).await.ok();
        let outcome = &after["market"]["outcomes"][usize::from(outcome)];
        assert_eq!(outcome["probability"], quote["priceAfter"]);
    }
}

#[tokio::test]
async fn a_sale_moves_the_quoted_amounts_to_the_wei() {
    let scene = Scene::new().await;
    scene.settled(scene.client.buy(scene.market, 0, "500")).await;
    for (tokens, wad) in [
        ("30", "30000000000000000000"),
        ("0.000003", "3000000000000"),
        ("777.123456", "777123456000000000000"),
    ] {
        let quote = scene.client.quote(scene.market, 0, "sell", wad).await.ok()["quote"].take();
        let trade = scene.settled(scene.client.sell(scene.market, 0, tokens).in_tokens()).await;
        assert_moved_as_quoted(&trade, &quote, "usdcOut");
        assert_eq!(quote["tokensOut"], wad);
    }
}

#[tokio::test]
async fn a_sale_for_usdc_takes_the_tokens_of_its_dry_run_to_the_wei() {
    let scene = Scene::new().await;
    scene.settled(scene.client.buy(scene.market, 0, "500")).await;
    let dry = scene.client.sell(scene.market, 0, "123.456789").with("dryRun", true).await.ok();
    let trade = scene.settled(scene.client.sell(scene.market, 0, "123.456789")).await;
    for member in ["tokensOut", "usdcAmount", "fee", "effectivePrice"] {
        assert_eq!(trade[member], dry["dryRun"]["quote"][member], "{member}");
    }
    assert_eq!(trade["usdcAmount"], "123456789");
    // Selling the tokens that the quote computed for an amount pays at least this amount, because
    // the inverse is rounded against the trader.
    assert!(atomic(&trade["tokensOut"]) > 123_456_789_000_000_000_000);
}

#[tokio::test]
async fn a_quote_requires_three_valid_parameters() {
    let Scene { client, market, .. } = Scene::new().await;
    for (query, pointers) in [
        ("", vec!["/outcomeIndex", "/action", "/amount"]),
        ("?outcomeIndex=x&action=hold&amount=1.5", vec!["/outcomeIndex", "/action", "/amount"]),
        ("?outcomeIndex=0&action=buy&amount=0", vec!["/amount"]),
        ("?outcomeIndex=0&action=buy&amount=-1", vec!["/amount"]),
        ("?outcomeIndex=0&action=BUY&amount=1", vec!["/action"]),
        ("?outcomeIndex=0&action=buy&amount=1&side=buy", vec!["/side"]),
        ("?outcomeIndex=0&action=buy&amount=1&amount=2", vec!["/amount"]),
        ("?outcomeIndex=0&action=buy&amount=1&block=latest", vec!["/block"]),
        ("?outcomeIndex=0&action=buy&amount=1&block=-1", vec!["/block"]),
        ("?outcomeIndex=0&action=buy&amount=1&block=%2B1", vec!["/block"]),
        ("?outcomeIndex=0&action=buy&amount=1&block=18446744073709551616", vec!["/block"]),
    ] {
        let answer = client.get(&format!("/v1/markets/{}/quote{query}", market.id)).await;
        assert_eq!(answer.pointers(), pointers, "{query}");
    }
}

#[tokio::test]
async fn impossible_amounts_and_outcomes_are_rejected_with_their_own_codes() {
    let Scene { client, market, .. } = Scene::new().await;
    for (query, code) in [
        ("outcomeIndex=0&action=buy&amount=10000000000001", ErrorCode::AmountTooLarge),
        (
            "outcomeIndex=0&action=sell&amount=340282366920938463463374607431768211456",
            ErrorCode::AmountTooLarge,
        ),
        ("outcomeIndex=2&action=buy&amount=1", ErrorCode::OutcomeIndexInvalid),
        ("outcomeIndex=256&action=buy&amount=1", ErrorCode::OutcomeIndexInvalid),
        ("outcomeIndex=-1&action=buy&amount=1", ErrorCode::OutcomeIndexInvalid),
        ("outcomeIndex=0&action=buy&amount=1", ErrorCode::AmountTooSmall),
        ("outcomeIndex=0&action=buy&amount=20000000000", ErrorCode::LiquidityInsufficient),
        ("outcomeIndex=0&action=sell&amount=999999999999999999999999", ErrorCode::InsufficientBalance),
    ] {
        client.get(&format!("/v1/markets/{}/quote?{query}", market.id)).await.refused(code);
    }
}

#[tokio::test]
async fn only_an_open_market_is_quoted() {
    let Scene { app, client, market, .. } = Scene::new().await;
    let ended = app.market_with(&["A", "B"], |new| new.end_time = app.ctx.now().plus_ms(DAY_MS)).await;
    app.freeze(market).await;
    app.run_workers().await;
    let problem = client.quote(market, 0, "buy", "1").await.refused(ErrorCode::MarketNotTradeable);
    assert_eq!(problem["extensions"]["marketStatus"], "FROZEN");
    app.clock.advance(DAY_MS);
    let problem = client.quote(ended, 0, "buy", "1").await.refused(ErrorCode::MarketNotTradeable);
    assert_eq!(problem["extensions"]["marketStatus"], "FROZEN");
    app.resolve(market, 0).await;
    app.run_workers().await;
    let problem = client.quote(market, 0, "sell", "1").await.refused(ErrorCode::MarketNotTradeable);
    assert_eq!(problem["extensions"]["marketStatus"], "RESOLVED");
}

#[tokio::test]
async fn a_quote_reflects_a_trade_before_the_sync_reads_it() {
    let Scene { app, client, market, .. } = Scene::new().await;
    let before = client.quote(market, 0, "buy", "1000000").await.ok();
    app.stranger_buys(market, 0, "50").await;
    let after = client.quote(market, 0, "buy", "1000000").await.ok();
    assert!(atomic(&after["quote"]["tokensOut"]) < atomic(&before["quote"]["tokensOut"]));
    assert_ne!(text(&after["quote"]["pool"]["cost"]), text(&before["quote"]["pool"]["cost"]));
}

/// Returns a quote without its time-dependent members.
async fn quoted(scene: &Scene, market: TestMarket, action: &str, amount: &str, block: &str) -> Value {
    let path =
        format!("/v1/markets/{}/quote?outcomeIndex=0&action={action}&amount={amount}{block}", market.id);
    let mut quote = scene.client.get(&path).await.ok()["quote"].take();
    quote["expiresAt"].take();
    quote
}

#[tokio::test]
async fn a_quote_at_a_past_block_equals_the_quote_given_then() {
    let scene = Scene::new().await;
    let market = scene.app.market(&["A", "B", "C"]).await;
    let mut given = Vec::new();
    for (n, usdc) in (0u8..).zip(["20", "35.5", "4", "123.456789"]) {
        scene.settled(scene.client.buy(market, n % 3, usdc)).await;
        for (action, amount) in [("buy", "25000000"), ("sell", "3000000000000000000")] {
            let quote = quoted(&scene, market, action, amount, "").await;
            given.push((action, amount, quote));
        }
        scene.app.advance_ms(60_000).await;
    }
    scene.app.resolve(market, 1).await;
    scene.app.run_workers().await;
    scene.client.quote(market, 0, "buy", "25000000").await.refused(ErrorCode::MarketNotTradeable);
    for (action, amount, quote) in given {
        let block = format!("&block={}", quote["asOf"]["block"]);
        assert_eq!(quoted(&scene, market, action, amount, &block).await, quote);
    }
}

#[tokio::test]
async fn a_quote_at_a_block_shows_its_number_and_time() {
    let Scene { app, client, market, .. } = Scene::new().await;
    app.advance_ms(60_000).await;
    let block = app.ctx.chain.head().await.unwrap();
    app.stranger_buys(market, 1, "40").await;
    app.advance_ms(3_600_000).await;
    let path = format!("/v1/markets/{}/quote?outcomeIndex=0&action=buy&amount=25000000", market.id);
    let answer = client.get(&format!("{path}&block={}", block.number)).await;
    let body = answer.ok();
    assert_eq!(body["quote"]["asOf"]["block"], block.number);
    assert_eq!(body["quote"]["pool"]["probabilities"], serde_json::json!([0.5, 0.5]));
    insta::assert_snapshot!(answer);
}

#[tokio::test]
async fn a_block_that_is_missing_or_before_the_market_is_rejected_by_name() {
    let Scene { app, client, market, .. } = Scene::new().await;
    let head = app.ctx.chain.head().await.unwrap().number;
    let path = format!("/v1/markets/{}/quote?outcomeIndex=0&action=buy&amount=25000000", market.id);
    // The contracts were deployed in the first blocks, and the market was created in the last one.
    for block in [0, 1, head - 1, head + 1, u64::MAX] {
        let answer = client.get(&format!("{path}&block={block}")).await;
        assert_eq!(answer.pointers(), ["/block"], "{block}");
    }
    client.get(&format!("{path}&block={head}")).await.ok();
    let elsewhere = path.replace(&market.id.to_string(), "1");
    client.get(&format!("{elsewhere}&block={head}")).await.refused(ErrorCode::MarketNotFound);
}

#[tokio::test]
async fn a_market_is_not_quoted_at_a_block_in_which_it_was_frozen() {
    let Scene { app, client, market, .. } = Scene::new().await;
    app.freeze(market).await;
    let frozen = app.ctx.chain.head().await.unwrap().number;
    app.unfreeze(market).await;
    app.run_workers().await;
    let path = format!("/v1/markets/{}/quote?outcomeIndex=0&action=buy&amount=25000000", market.id);
    client.get(&format!("{path}&block={frozen}")).await.refused(ErrorCode::MarketNotTradeable);
    client.get(&format!("{path}&block={}", frozen + 1)).await.ok();
    client.get(&format!("{path}&block={}", frozen - 1)).await.ok();
}

#[tokio::test]
async fn an_unreachable_chain_is_an_unavailable_dependency() {
    let Scene { app, client, market, .. } = Scene::new().await;
    app.faults.always("eth_call", Fault::LostRequest);
    let answer = client.quote(market, 0, "buy", "1").await;
    answer.refused(ErrorCode::DependencyUnavailable);
    assert_eq!((answer.header("retry-after"), answer.header("cache-control")), (Some("1"), Some("no-store")));
}

/// A market in which the first outcome is nearly certain.
async fn scene_near_certainty() -> Scene {
    let scene = Scene::new().await;
    scene.app.stranger_buys(scene.market, 0, "9500").await;
    scene.app.run_workers().await;
    scene
}

#[tokio::test]
async fn a_quote_of_a_buy_that_cannot_gain_has_a_warning() {
    let Scene { client, market, .. } = scene_near_certainty().await;
    for (outcome, warnings) in [(0, 1), (1, 0)] {
        let quote = client.quote(market, outcome, "buy", "10000000").await.ok()["quote"].take();
        assert_eq!(quote["warnings"].as_array().unwrap().len(), warnings, "{quote}");
        assert!(warnings == 0 || quote["warnings"][0]["code"] == "cannot_gain", "{quote}");
    }
}

#[tokio::test]
async fn a_dry_run_of_a_buy_that_cannot_gain_has_a_warning() {
    let Scene { client, market, .. } = scene_near_certainty().await;
    let dry_run = client.buy(market, 0, "10").with("dryRun", true).await.ok()["dryRun"].take();
    assert_eq!(dry_run["warnings"][0]["code"], "cannot_gain", "{dry_run}");
}
