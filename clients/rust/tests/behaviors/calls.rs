//! Every call of the table.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use foretell_client::types::{MarketQuery, Trade, TradeStatus};
use foretell_client::{Error, Foretell, NewTrade, Response, ResponseInfo, WaitOptions};
use serde_json::{Value, json};

use crate::checks::{Made, check_expectations};
use crate::support::{Suite, new_name, printed, text};

/// The JSON of a result, and the circumstances of its response.
pub type Returned = (Value, ResponseInfo);

fn returned<T>(response: &Response<T>) -> Returned {
    (response.json().clone(), response.info().clone())
}

fn buy(suite: &Suite, members: &Value) -> NewTrade {
    let mut trade = NewTrade::buy(&suite.market, 0, text(&members["amount"]));
    for (name, value) in members.as_object().unwrap() {
        trade = match name.as_str() {
            "amount" => trade,
            "idempotencyKey" => trade.idempotency_key(text(value)),
            "clientRequestId" => trade.client_request_id(text(value)),
            other => panic!("no member {other}"),
        };
    }
    trade
}

async fn confirm_held(client: &Foretell, trade: &NewTrade) -> Result<Response<Trade>, Error> {
    let held = client.trades.create(trade).await?;
    assert_eq!(held.status, TradeStatus::PendingConfirmation);
    let confirmation = held.confirmation.as_ref().unwrap();
    assert!(!format!("{held:?}").contains(confirmation.token.expose()), "a token was printed");
    client.trades.confirm(&held.id, confirmation.token.expose()).await
}

/// The statuses that a wait reported.
pub type Reported = Arc<Mutex<Vec<String>>>;

fn waiting(reported: &Reported) -> WaitOptions {
    let reported = reported.clone();
    WaitOptions {
        poll: Duration::from_millis(100),
        on_status: Some(Box::new(move |change| {
            reported.lock().unwrap().push(change.status.as_str().to_owned());
        })),
        ..WaitOptions::default()
    }
}

async fn make(
    suite: &Suite,
    client: &Foretell,
    call: &Value,
    reported: &Reported,
) -> Result<Returned, Error> {
    let with = &call["with"];
    Ok(match text(&call["do"]) {
        "createTrade" => returned(&client.trades.create(&buy(suite, with)).await?),
        "createAndWait" => {
            returned(&client.trades.create_and_wait_with(&buy(suite, with), waiting(reported)).await?)
        }
        "createThenWait" => {
            let created = client.trades.create(&buy(suite, with)).await?;
            returned(&client.trades.wait_for(&created.id, waiting(reported)).await?)
        }
        "dryRun" => returned(&client.trades.dry_run(&buy(suite, with)).await?),
        "confirmHeld" => returned(&confirm_held(client, &buy(suite, with)).await?),
        "confirm" => returned(&client.trades.confirm(text(&with["trade"]), text(&with["token"])).await?),
        "getMarket" => returned(&client.markets.get(&suite.market).await?),
        "getKey" => returned(&client.keys.get().await?),
        "listMarkets" => {
            let limit = with["limit"].as_u64().map(|limit| u32::try_from(limit).unwrap());
            let mut pages = client.markets.list(&MarketQuery { limit, ..MarketQuery::default() });
            let (mut items, mut info) = (Vec::new(), None);
            while let Some(page) = pages.next_page().await? {
                assert!(
                    page.items
                        .iter()
                        .map(|market| &market.id)
                        .eq(page.json.iter().map(|json| text(&json["id"])))
                );
                items.extend(page.json);
                info = Some(page.info);
            }
            (Value::Array(items), info.unwrap())
        }
        "redeem" => {
            let outcome = u32::try_from(with["outcomeIndex"].as_u64().unwrap()).unwrap();
            returned(&client.redemptions.create(&suite.market, outcome).await?)
        }
        "redeliver" => returned(&client.webhooks.redeliver(text(&with["event"])).await?),
        "rotateSecret" => returned(&client.webhooks.rotate_secret().await?),
        other => panic!("no call {other}"),
    })
}

async fn make_all(
    suite: &Suite,
    client: &Foretell,
    call: &Value,
    reported: &Reported,
) -> (Vec<Returned>, Option<Error>) {
    let mut results = Vec::new();
    for _ in 0..call["times"].as_u64().unwrap_or(1) {
        match make(suite, client, call, reported).await {
            Ok(result) => results.push(result),
            Err(error) => return (results, Some(error)),
        }
    }
    (results, None)
}

pub async fn check(suite: &Suite, entry: Value) {
    let entry = suite.fill(&entry, &new_name());
    suite.set_rules(&json!([])).await;
    if let Some(before) = entry.get("before") {
        let (client, _) = suite.client(&json!({}));
        make(suite, &client, before, &Reported::default()).await.unwrap();
    }
    suite.set_rules(&entry["rules"]).await;
    let (client, clock) = suite.client(&entry);
    suite.log.take();
    let began = tokio::time::Instant::now();
    let reported = Reported::default();
    let (results, error) = make_all(suite, &client, &entry["call"], &reported).await;
    let elapsed = began.elapsed();
    let mut texts = vec![format!("{client:?}"), format!("{results:?}")];
    texts.extend(error.iter().flat_map(printed));
    suite.assert_no_secret(&texts);
    let requests = suite.requests().await;
    let made = Made {
        suite,
        client: &client,
        entry: &entry,
        results,
        error,
        reported,
        requests,
        pauses_ms: clock.pauses_ms(),
        elapsed,
    };
    check_expectations(&made).await;
}
