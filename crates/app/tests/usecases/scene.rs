//! What most stories begin with: Ada, her key, and a market.

use app::AppError;
use domain::ErrorCode;
use domain::key::Tier;
use store::Store;
use testkit::{Request, TestApp, TestKey, TestMarket, TestUser};

pub struct Scene {
    pub app: TestApp,
    pub ada: TestUser,
    pub key: TestKey,
    pub market: TestMarket,
}

impl Scene {
    /// Ada has 10,000 USDC and a key of the tier `mm`; the market has two outcomes.
    pub async fn new() -> Self {
        Self::of(TestApp::new().await).await
    }

    pub async fn on(store: Store) -> Self {
        Self::of(TestApp::with().on(store).start().await).await
    }

    pub async fn of(app: TestApp) -> Self {
        Self::with(app, "10000", Tier::Mm).await
    }

    pub async fn with(app: TestApp, funds: &str, tier: Tier) -> Self {
        let ada = app.user("ada").funded(funds).await;
        let key = app.key(&ada, tier).await;
        let market = app.market(&["Yes", "No"]).await;
        Self { app, ada, key, market }
    }
}

/// The request is refused with this code, says that nothing was sent, and leaves no row and no reservation behind.
pub async fn assert_refused(app: &TestApp, request: Request<'_>, code: ErrorCode) -> AppError {
    let before = app.rows().await;
    let refusal = request.refused().await;
    assert_eq!(refusal.code, code, "{refusal} {:?}", refusal.source);
    assert_eq!(refusal.extensions["submission"], "not_submitted");
    assert_eq!(app.rows().await, before);
    refusal
}
