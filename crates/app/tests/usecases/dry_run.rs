//! Dry runs: every check and the quote, without any effect.

use domain::key::Tier;
use domain::trade::State;
use domain::{ErrorCode, Usdc};
use testkit::TestApp;

use crate::scene::{Scene, assert_refused};

#[tokio::test]
async fn a_dry_run_creates_nothing_and_predicts_the_trade() {
    let Scene { app, key, market, .. } = Scene::new().await;
    let before = app.rows().await;
    let dry = key.buy(&market, 0, "12.345678").idempotent("k").named("n").dry_run().await.unwrap();
    assert_eq!(app.rows().await, before);
    let trade = key.buy(&market, 0, "12.345678").idempotent("k").named("n").await;
    app.run_workers().await;
    let State::Completed(settlement) = app.trade(trade.id).await.state else { panic!("not completed") };
    assert_eq!(settlement.tokens.0, dry.quote.tokens_wad);
    assert_eq!(
        (settlement.usdc.atomic(), settlement.fee.atomic()),
        (dry.quote.usdc_atomic, dry.quote.fee_atomic)
    );
}

#[tokio::test]
async fn a_dry_run_fails_like_the_trade() {
    let app = TestApp::new().await;
    let Scene { app, ada, key, market } = Scene::with(app, "700", Tier::Free).await;
    let refused = async |usdc: &str| key.buy(&market, 0, usdc).dry_run().await.unwrap_err().code;
    assert_eq!(refused("500.000001").await, ErrorCode::SpendingLimitExceeded);
    key.buy(&market, 0, "400").await;
    assert_eq!(refused("300.000001").await, ErrorCode::InsufficientBalance);
    key.buy(&market, 0, "300").dry_run().await.unwrap();
    app.mint(ada.account, Usdc::from_whole(1_000)).await;
    key.buy(&market, 0, "500").await;
    assert_eq!(refused("100.000001").await, ErrorCode::SpendingLimitExceeded);
    key.buy(&market, 0, "100").dry_run().await.unwrap();
    assert_refused(&app, key.buy(&market, 0, "100.000001"), ErrorCode::SpendingLimitExceeded).await;
}
