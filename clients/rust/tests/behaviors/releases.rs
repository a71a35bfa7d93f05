//! Every operation against each released document: with new members, words and codes, and without
//! optional members.

use foretell_client::types::{
    HistoryQuery, MarketQuery, PredictionQuery, RedemptionQuery, TradeQuery, WebhookQuery,
};
use foretell_client::{Error, FeedOptions, Foretell, NewQuote, NewTrade, Pages, Response, Usdc, Wad};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::support::{Suite, table, text};

const ID: &str = "0198f3a0-5d4e-7b06-9aa4-5eb35423f988";

/// The record of an answer, as it was sent.
type Sent = Result<Value, Error>;

fn json<T>(answer: Result<Response<T>, Error>) -> Sent {
    answer.map(|record| record.json().clone())
}

async fn first<T: DeserializeOwned>(mut pages: Pages<T>) -> Sent {
    let page = pages.next_page().await?.expect("a list has a first page");
    assert_eq!(page.items.len(), page.json.len());
    Ok(page.json[0].clone())
}

async fn first_event(client: &Foretell) -> Sent {
    let item = client.events.stream(FeedOptions::default()).try_next().await?;
    Ok(serde_json::to_value(item.expect("a feed has no end").event).unwrap())
}

/// Makes each call of an operation.
async fn call(client: &Foretell, operation: &str) -> Vec<Sent> {
    let order = NewTrade::buy(ID, 0, "1.00");
    let history = HistoryQuery::default();
    let (buy, sell) =
        (NewQuote::buy(0, &Usdc::parse("1").unwrap()), NewQuote::sell(0, &Wad::parse("1").unwrap()));
    vec![match operation {
        "confirmTrade" => json(client.trades.confirm(ID, "token").await),
        "createRedemption" => json(client.redemptions.create(ID, 0).await),
        "createTrade" => {
            let created = json(client.trades.create(&order).await);
            return vec![created, json(client.trades.dry_run(&order).await)];
        }
        "getAccountReadiness" => json(client.account.readiness().await),
        "getKey" => json(client.keys.get().await),
        "getMarket" => json(client.markets.get(ID).await),
        "getMarketHistory" => json(client.markets.history(ID, &history).await),
        "getPortfolio" => json(client.account.portfolio().await),
        "getQuote" => {
            let bought = json(client.markets.quote(ID, &buy).await);
            return vec![bought, json(client.markets.quote(ID, &sell).await)];
        }
        "getRedemption" => json(client.redemptions.get(ID).await),
        "getTrace" => json(client.trades.trace(ID).await),
        "getTrade" => json(client.trades.get(ID).await),
        "getUsage" => json(client.keys.usage().await),
        "getWebhookEndpoint" => json(client.webhooks.endpoint().await),
        "getWebhookEvent" => json(client.webhooks.get(ID).await),
        "listEvents" => first_event(client).await,
        "listMarkets" => first(client.markets.list(&MarketQuery::default())).await,
        "listPositions" => json(client.account.positions(None).await).map(|list| list[0].clone()),
        "listPredictions" => first(client.markets.predictions(ID, &PredictionQuery::default())).await,
        "listRedemptions" => first(client.redemptions.list(&RedemptionQuery::default())).await,
        "listTrades" => first(client.trades.list(&TradeQuery::default())).await,
        "listWebhookEvents" => first(client.webhooks.list(&WebhookQuery::default())).await,
        "pauseKey" => json(client.keys.pause().await),
        "redeliverWebhookEvent" => json(client.webhooks.redeliver(ID).await),
        "rotateWebhookSecret" => json(client.webhooks.rotate_secret().await),
        "sendTestWebhook" => json(client.webhooks.send_test().await),
        other => panic!("no call for {other}"),
    }]
}

pub async fn check(suite: &Suite) {
    let served = suite.ask_releases("/").await;
    let table = table();
    for (release, known) in served["releases"].as_object().unwrap() {
        let listed = table["releases"]["operations"].as_array().unwrap().iter();
        let operations: Vec<&str> =
            listed.filter(|name| known.as_array().unwrap().contains(name)).map(text).collect();
        for form in served["forms"].as_array().unwrap().iter().map(text) {
            let client = suite.client_of_release(release, form);
            for operation in &operations {
                for answer in call(&client, operation).await {
                    let place = format!("{operation} of {release}, {form}");
                    match answer {
                        Ok(sent) => {
                            assert_ne!(form, "problems", "{place}");
                            assert_eq!(sent.get("later").is_some(), form == "new-members", "{place}");
                        }
                        Err(error) => {
                            assert_eq!((form, &*error.code), ("problems", "new_word"), "{place}: {error}");
                        }
                    }
                }
            }
            let asked = suite.ask_releases(&format!("/{release}/{form}/asked")).await;
            let asked = asked.as_array().unwrap();
            assert!(operations.iter().all(|name| asked.iter().any(|one| one == name)), "{asked:?}");
        }
    }
}
