//! The service is killed under load and restarted: no acknowledged trade is lost or executed twice,
//! and the database and the chain agree.

use std::time::Duration;

use crate::clients::{Clients, Trader};
use crate::dice::Dice;
use crate::oracle;
use crate::service::Service;

fn kills() -> u32 {
    std::env::var("FORETELL_CRASH_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(30)
}

async fn survives(service: &mut Service, salt: u64) {
    let mut dice = Dice::new(salt);
    let demonstration = service.demonstration().await;
    let clients = Clients::start(Trader::of_demonstration(&demonstration, 4));
    for _ in 0..kills() {
        service.start().await;
        clients.send_to(&[service.base_url()]);
        // Some kills hit the start, most of them the normal operation.
        service.live_for(Duration::from_millis(dice.roll(250))).await;
        service.kill().await;
    }
    service.start().await;
    clients.send_to(&[service.base_url()]);
    let acknowledged = clients.finish_after(kills() as usize / 2).await;
    let store = service.store().await;
    oracle::settled(&store).await;
    oracle::check(&store, &service.chain().await, &acknowledged).await;
    eprintln!("{} kills, {} trades acknowledged", kills(), acknowledged.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_lose_and_repeat_no_trade_on_sqlite() {
    let mut service = Service::on_sqlite().await;
    survives(&mut service, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_lose_and_repeat_no_trade_on_postgres() {
    let Some(mut service) = Service::on_postgres().await else { return };
    survives(&mut service, 2).await;
}
