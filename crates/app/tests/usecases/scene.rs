//! The common start of most tests: Ada, her key, and a market.

use app::AppError;
use domain::ErrorCode;
use domain::Usdc;
use domain::key::{LimitOverrides, Tier};
use store::Store;
use testkit::{Request, TestApp, TestKey, TestMarket, TestUser};

pub struct Scene {
    pub app: TestApp,
    pub ada: TestUser,
    pub key: TestKey,
    pub market: TestMarket,
}

impl Scene {
    /// Creates Ada with 10,000 USDC and a key of tier `mm`, and a market with two outcomes.
    pub async fn new() -> Self {
        Self::of(TestApp::new().await).await
    }

    pub async fn on(store: Store) -> Self {
        Self::of(TestApp::with().on(store).start().await).await
    }

    pub async fn of(app: TestApp) -> Self {
        Self::with(app, "10000", Tier::Mm).await
    }

    /// Creates Ada with 100,000 USDC and a key with a daily cap of 1,000 that holds trades of 100
    /// or more.
    pub async fn gated(store: Store) -> Self {
        let app = TestApp::with().on(store).start().await;
        let ada = app.user("ada").funded("100000").await;
        let limits = LimitOverrides {
            high_value: Some(Usdc::from_whole(100)),
            daily: Some(Usdc::from_whole(1_000)),
            ..LimitOverrides::default()
        };
        let key = app.key_with(&ada, Tier::Enterprise, limits).await;
        let market = app.market(&["Yes", "No"]).await;
        Self { app, ada, key, market }
    }

    pub async fn with(app: TestApp, funds: &str, tier: Tier) -> Self {
        let ada = app.user("ada").funded(funds).await;
        let key = app.key(&ada, tier).await;
        let market = app.market(&["Yes", "No"]).await;
        Self { app, ada, key, market }
    }
}

/// Asserts that the request is rejected with this code as not submitted, and leaves no row and no
/// reservation.
pub async fn assert_refused(app: &TestApp, request: Request<'_>, code: ErrorCode) -> AppError {
    let before = app.rows().await;
    let refusal = request.refused().await;
    assert_eq!(refusal.code, code, "{refusal} {:?}", refusal.source);
    assert_eq!(refusal.extensions["submission"], "not_submitted");
    assert_eq!(app.rows().await, before);
    refusal
}
