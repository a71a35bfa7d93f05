//! The budgets of trades of users of the tier `free`.

use domain::key::Tier;
use domain::time::DAY_MS;
use domain::{ErrorCode, Wad};
use store::Store;
use testkit::{Request, TestApp};

use crate::scene::{Scene, assert_refused};

/// Adds 40 bytes of metadata.
fn with_metadata(request: Request<'_>) -> Request<'_> {
    request.with(|draft| draft.metadata = Some([("desk".to_owned(), "é".repeat(18))].into()))
}

store::on_each_engine! {
    async fn a_free_user_makes_a_limited_number_of_trades_a_day_and_more_sales(store: Store) {
        let app = TestApp::with().on(store).budgets(["trades.user=2"]).start().await;
        let Scene { app, ada, key, market } = Scene::with(app, "1000", Tier::Free).await;
        let first = key.buy(&market, 0, "5").idempotent("first").await;
        // Neither what is rejected nor a dry run is a trade.
        assert_refused(&app, key.buy(&market, 0, "501"), ErrorCode::SpendingLimitExceeded).await;
        key.buy(&market, 0, "5").dry_run().await.unwrap();
        key.buy(&market, 0, "5").await;
        app.run_workers().await;
        assert_refused(&app, key.buy(&market, 0, "5"), ErrorCode::RateLimitExceeded).await;
        key.sell(&market, 0, "1").await;
        app.run_workers().await;
        // A repeated request finds its trade.
        assert_eq!(key.buy(&market, 0, "5").idempotent("first").replayed().await.id, first.id);
        key.sell_all(&market, 0).await;
        app.run_workers().await;
        assert_eq!(app.tokens(&ada, market, 0).await, Wad::ZERO);
        let paid = app.key(&ada, Tier::Mm).await;
        paid.buy(&market, 0, "5").await;
        app.run_workers().await;
        app.advance_ms(2 * DAY_MS).await;
        key.buy(&market, 0, "5").await;
    }

    async fn sales_have_a_limit_too(store: Store) {
        let app = TestApp::with().on(store).budgets(["trades.user=2"]).start().await;
        let Scene { app, key, market, .. } = Scene::with(app, "1000", Tier::Free).await;
        key.buy(&market, 0, "5").await;
        app.run_workers().await;
        // All at once for the same tokens: only one can be executed, and the gas of each is paid.
        let first = key.sell_all(&market, 0).idempotent("first").await;
        for _ in 0..2 {
            key.sell_all(&market, 0).await;
        }
        assert_refused(&app, key.sell_all(&market, 0), ErrorCode::RateLimitExceeded).await;
        assert_eq!(key.sell_all(&market, 0).idempotent("first").replayed().await.id, first.id);
    }

    async fn a_trade_that_is_not_inserted_takes_nothing(store: Store) {
        let app = TestApp::with().on(store).budgets(["trades.user=2"]).start().await;
        let Scene { app, key, market, .. } = Scene::with(app, "8", Tier::Free).await;
        key.buy(&market, 0, "5").await;
        for _ in 0..3 {
            assert_refused(&app, key.buy(&market, 0, "5"), ErrorCode::InsufficientBalance).await;
        }
        key.buy(&market, 0, "2").await;
    }

    async fn a_free_user_stores_a_limited_number_of_bytes_of_metadata_a_day(store: Store) {
        let app = TestApp::with().on(store).budgets(["metadata-bytes.user=79"]).start().await;
        let Scene { app, key, market, .. } = Scene::with(app, "1000", Tier::Free).await;
        with_metadata(key.buy(&market, 0, "5")).await;
        let refused = with_metadata(key.buy(&market, 0, "5"));
        assert_refused(&app, refused, ErrorCode::RateLimitExceeded).await;
        key.buy(&market, 0, "5").await;
    }
}
