//! A client that hangs up during a request leaves a complete trade or nothing, and no broken
//! connection in the pool.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::clients::{AcknowledgedTrades, Trader};
use crate::dice::Dice;
use crate::oracle;
use crate::service::Service;

const REQUESTS: usize = 600;
const AT_ONCE: usize = 12;
/// Every tenth request is a batch of trades.
const BATCH_EVERY: usize = 10;
const OF_BATCH: usize = 3;

async fn cut(address: &str, request: &[u8], after: Duration) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request).await.unwrap();
    // A response that arrives in this time is not read.
    let mut byte = [0; 1];
    drop(tokio::time::timeout(after, stream.peek(&mut byte)).await);
    stream.set_zero_linger().unwrap();
}

fn request(trader: &Trader, number: usize) -> Vec<u8> {
    let market = &trader.markets[number % trader.markets.len()];
    let trade: Value = json!({ "marketId": market, "outcomeIndex": 0, "side": "buy", "amount": "0.25" });
    let (path, header, body) = if number.is_multiple_of(BATCH_EVERY) {
        let keyed = |part: usize| {
            let mut trade = trade.clone();
            trade["idempotencyKey"] = format!("cut-{number}-{part}").into();
            trade
        };
        let trades: Vec<Value> = (0..OF_BATCH).map(keyed).collect();
        ("/v1/trades/batch", String::new(), json!({ "trades": trades }).to_string())
    } else {
        ("/v1/trades", format!("Idempotency-Key: cut-{number}\r\n"), trade.to_string())
    };
    let key = &trader.key;
    format!(
        "POST {path} HTTP/1.1\r\nHost: foretell\r\nX-API-Key: {key}\r\n{header}\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

async fn leaves_wholes_or_nothing(service: &mut Service, salt: u64) {
    let mut dice = Dice::new(salt);
    let traders = Trader::of_demonstration(&service.demonstration().await, 8);
    service.start().await;
    let address = service.base_url().trim_start_matches("http://").to_owned();
    for numbers in (0..REQUESTS).collect::<Vec<_>>().chunks(AT_ONCE) {
        let cuts = numbers.iter().map(|number| {
            let request = request(&traders[number % traders.len()], *number);
            let (address, after) = (address.clone(), Duration::from_micros(dice.roll(50_000)));
            async move { cut(&address, &request, after).await }
        });
        futures::future::join_all(cuts.collect::<Vec<_>>()).await;
    }
    let store = service.store().await;
    oracle::settled(&store).await;
    oracle::check(&store, &service.chain().await, &AcknowledgedTrades::new()).await;
    let made = oracle::number(&store, "SELECT COUNT(*) FROM idempotency").await;
    eprintln!("{REQUESTS} requests cut, {made} trades made");
    assert!(made > 0, "every request was cut before it arrived: nothing was proved");
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_disconnect_leave_a_whole_trade_or_nothing_on_sqlite() {
    leaves_wholes_or_nothing(&mut Service::on_sqlite().await, 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_disconnect_leave_a_whole_trade_or_nothing_on_postgres() {
    let Some(mut service) = Service::on_postgres().await else { return };
    leaves_wholes_or_nothing(&mut service, 4).await;
    let dirty = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database()
        AND state LIKE 'idle in transaction%'";
    assert_eq!(
        oracle::number(&service.store().await, dirty).await,
        0,
        "a pooled connection is inside a transaction"
    );
}
