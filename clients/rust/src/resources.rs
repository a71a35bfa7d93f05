//! The resources that need no special treatment.

use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::feed::{EventFeed, FeedOptions};
use crate::pages::Pages;
use crate::path::segment;
use crate::response::Response;
use crate::transport::{Call, Transport};
use crate::types::{
    AccountReadiness, HistoryQuery, Key, Market, MarketHistory, MarketQuery, NewQuote, Pause, Portfolio,
    Position, Prediction, PredictionQuery, Query, QueuedEvent, Quote, Redemption, RedemptionQuery, Usage,
    WebhookDelivery, WebhookEndpoint, WebhookQuery, WebhookSecret,
};

macro_rules! resource {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name {
            transport: Arc<Transport>,
        }

        impl $name {
            pub(crate) const fn new(transport: Arc<Transport>) -> Self {
                Self { transport }
            }
        }
    };
}

async fn read<T: DeserializeOwned>(
    transport: &Transport,
    path: impl Into<String>,
    member: &'static str,
) -> Result<Response<T>, Error> {
    Ok(transport.send(&Call::get(path, member)).await?)
}

async fn query<T: DeserializeOwned>(
    transport: &Transport,
    path: impl Into<String>,
    member: &'static str,
    query: &impl Query,
) -> Result<Response<T>, Error> {
    Ok(transport.send(&Call { query: query.pairs(), ..Call::get(path, member) }).await?)
}

/// Sends a write that stores something new each time: it is not repeated after a lost answer.
async fn write_once<T: DeserializeOwned>(
    transport: &Transport,
    path: impl Into<String>,
    member: &'static str,
) -> Result<Response<T>, Error> {
    let call = Call { is_repeatable: false, ..Call::post(path, member, "{}".to_owned()) };
    Ok(transport.send(&call).await?)
}

resource! {
    /// Finds markets, and reads their trades and prices.
    Markets
}

/// Every method fails if there is no such market, or if the service does not answer.
impl Markets {
    /// Lists markets, newest first.
    #[must_use]
    pub fn list(&self, query: &MarketQuery) -> Pages<Market> {
        Pages::new(self.transport.clone(), "/v1/markets", query)
    }

    /// Reads a market.
    pub async fn get(&self, id: &str) -> Result<Response<Market>, Error> {
        read(&self.transport, format!("/v1/markets/{}", segment(id)), "market").await
    }

    /// Lists the trades of a market on chain, newest first.
    #[must_use]
    pub fn predictions(&self, id: &str, query: &PredictionQuery) -> Pages<Prediction> {
        Pages::new(self.transport.clone(), format!("/v1/markets/{}/predictions", segment(id)), query)
    }

    /// Reads candles of each outcome.
    pub async fn history(&self, id: &str, part: &HistoryQuery) -> Result<Response<MarketHistory>, Error> {
        query(&self.transport, format!("/v1/markets/{}/history", segment(id)), "history", part).await
    }

    /// Computes what a trade would move.
    pub async fn quote(&self, id: &str, trade: &NewQuote) -> Result<Response<Quote>, Error> {
        query(&self.transport, format!("/v1/markets/{}/quote", segment(id)), "quote", trade).await
    }
}

resource! {
    /// Reads the balance and the positions of the account.
    Account
}

/// Every method fails if the key lacks the scope, or if the service does not answer.
impl Account {
    /// Reads the balance and the totals.
    pub async fn portfolio(&self) -> Result<Response<Portfolio>, Error> {
        read(&self.transport, "/v1/portfolio", "portfolio").await
    }

    /// Reads the positions, in one market or in all.
    pub async fn positions(&self, market_id: Option<&str>) -> Result<Response<Vec<Position>>, Error> {
        let query = market_id.map(|id| ("marketId", id.to_owned())).into_iter().collect();
        Ok(self.transport.send(&Call { query, ..Call::get("/v1/portfolio/positions", "data") }).await?)
    }

    /// Reports if the key can trade, and the steps that are missing.
    pub async fn readiness(&self) -> Result<Response<AccountReadiness>, Error> {
        read(&self.transport, "/v1/account/readiness", "readiness").await
    }
}

resource! {
    /// Claims the payouts of ended markets.
    Redemptions
}

/// Every method fails if the claim is refused or missing, or if the service does not answer.
impl Redemptions {
    /// Claims a position. A position has one claim: another call returns it.
    pub async fn create(&self, market_id: &str, outcome_index: u32) -> Result<Response<Redemption>, Error> {
        let claim = serde_json::json!({ "marketId": market_id, "outcomeIndex": outcome_index });
        Ok(self.transport.send(&Call::post("/v1/redemptions", "redemption", claim.to_string())).await?)
    }

    /// Reads a claim.
    pub async fn get(&self, id: &str) -> Result<Response<Redemption>, Error> {
        read(&self.transport, format!("/v1/redemptions/{}", segment(id)), "redemption").await
    }

    /// Lists claims, newest first.
    #[must_use]
    pub fn list(&self, query: &RedemptionQuery) -> Pages<Redemption> {
        Pages::new(self.transport.clone(), "/v1/redemptions", query)
    }
}

resource! {
    /// Reads and pauses the calling key.
    Keys
}

/// Every method fails if the key lacks the scope, or if the service does not answer.
impl Keys {
    /// Reads the key with its scopes, limits and spending.
    pub async fn get(&self) -> Result<Response<Key>, Error> {
        read(&self.transport, "/v1/key", "key").await
    }

    /// Reads the usage of the key.
    pub async fn usage(&self) -> Result<Response<Usage>, Error> {
        read(&self.transport, "/v1/account/usage", "usage").await
    }

    /// Stops trading with this key. The API cannot resume it.
    pub async fn pause(&self) -> Result<Response<Pause>, Error> {
        Ok(self.transport.send(&Call::post("/v1/account/pause", "pause", "{}".to_owned())).await?)
    }
}

resource! {
    /// Follows the feed of events.
    Events
}

impl Events {
    /// Streams events, in order and without gaps. Interruptions are resumed.
    #[must_use]
    pub fn stream(&self, options: FeedOptions) -> EventFeed {
        EventFeed::new(self.transport.clone(), options)
    }
}

resource! {
    /// Manages the webhook of the key. [`crate::webhooks::verify`] verifies deliveries.
    Webhooks
}

/// Every method fails if the key lacks the scope, or if the service does not answer.
impl Webhooks {
    /// Lists deliveries, newest first.
    #[must_use]
    pub fn list(&self, query: &WebhookQuery) -> Pages<WebhookDelivery> {
        Pages::new(self.transport.clone(), "/v1/webhooks/events", query)
    }

    /// Reads a delivery. [`Response::json`] has its attempts and its body.
    pub async fn get(&self, id: &str) -> Result<Response<WebhookDelivery>, Error> {
        read(&self.transport, format!("/v1/webhooks/events/{}", segment(id)), "event").await
    }

    /// Reads the state of the receiver.
    pub async fn endpoint(&self) -> Result<Response<WebhookEndpoint>, Error> {
        read(&self.transport, "/v1/webhooks/endpoint", "endpoint").await
    }

    /// Sends an event again. Each call queues one more delivery.
    pub async fn redeliver(&self, id: &str) -> Result<Response<QueuedEvent>, Error> {
        write_once(&self.transport, format!("/v1/webhooks/events/{}/redeliver", segment(id)), "event").await
    }

    /// Sends a test event. Each call queues one more delivery.
    pub async fn send_test(&self) -> Result<Response<QueuedEvent>, Error> {
        write_once(&self.transport, "/v1/webhooks/test", "event").await
    }

    /// Replaces the secret, and returns the new one once.
    pub async fn rotate_secret(&self) -> Result<Response<WebhookSecret>, Error> {
        write_once(&self.transport, "/v1/auth/api-keys/me/webhook-secret/rotate", "webhookSecret").await
    }
}
