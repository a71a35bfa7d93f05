//! Trades of the sample users that never end, so that prices move while somebody looks at the site.

use std::time::Duration;

use app::entropy::Entropy;
use domain::market::MarketStatus;
use serde_json::{Value, json};
use tokio::time::interval;
use uuid::Uuid;

use super::{DevFile, DevMarket, roll};
use crate::entropy::SystemEntropy;

/// The time between two trades.
const PAUSE: Duration = Duration::from_secs(3);
/// Of ten trades, so many sell.
const SELLS_OF_TEN: usize = 4;
const LEAST_USDC: usize = 5;
const MOST_USDC: usize = 45;

/// Sends trades to the API with the keys of the sample users, one after the other. Runs until it is
/// dropped.
pub async fn simulate(file: DevFile) {
    let dice = SystemEntropy::default();
    let keys: Vec<&str> =
        file.users.iter().filter_map(|user| user.keys.first()).map(|key| key.key.as_str()).collect();
    let is_open = |market: &&DevMarket| market.status == MarketStatus::Open.as_str();
    let markets: Vec<&DevMarket> = file.markets.iter().filter(is_open).collect();
    if keys.is_empty() || markets.is_empty() {
        return;
    }
    let http = match reqwest::Client::builder().no_proxy().build() {
        Ok(http) => http,
        Err(error) => return tracing::warn!(%error, "the simulation has no HTTP client"),
    };
    let mut pauses = interval(PAUSE);
    loop {
        pauses.tick().await;
        let market = markets[roll(&dice, markets.len())];
        let request = http
            .post(format!("{}/v1/trades", file.base_url))
            .header("X-API-Key", keys[roll(&dice, keys.len())])
            .header("Idempotency-Key", Uuid::from_bytes(random_bytes(&dice)).to_string())
            .json(&order(&dice, market));
        // A trader who holds nothing to sell, or has reached a cap, is rejected. Another one is next.
        if let Err(error) = request.send().await {
            tracing::debug!(%error, "a simulated trade was not sent");
        }
    }
}

fn order(dice: &dyn Entropy, market: &DevMarket) -> Value {
    let outcome = roll(dice, market.outcomes.len());
    if roll(dice, 10) < SELLS_OF_TEN {
        return json!({ "marketId": market.id, "outcomeIndex": outcome, "side": "sell", "amount": "25", "amountType": "tokens" });
    }
    let usdc = LEAST_USDC + roll(dice, MOST_USDC - LEAST_USDC);
    json!({ "marketId": market.id, "outcomeIndex": outcome, "side": "buy", "amount": format!("{usdc}.00") })
}

fn random_bytes(dice: &dyn Entropy) -> [u8; 16] {
    let mut bytes = [0; 16];
    dice.fill(&mut bytes);
    bytes
}
