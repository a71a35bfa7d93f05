//! The real binary under load, killed at random instants and started again: nothing that was acknowledged is lost, nothing
//! happens twice, and the database and the chain agree. The oracles are outside the service: what the clients were told,
//! and the chain's own events.
//!
//! `FORETELL_CRASH_KILLS` says how often each run kills (100 where it is unset), `FORETELL_CRASH_SEED` repeats a run.

mod clients;
mod oracle;
mod service;

use std::time::Duration;

use clients::Clients;
use service::Service;

/// A small generator of repeatable numbers: which instants are hit follows from the seed that a failure prints.
pub struct Dice(u64);

impl Dice {
    fn new(salt: u64) -> Self {
        let seed = std::env::var("FORETELL_CRASH_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(|| u64::from(std::process::id()) << 8);
        eprintln!("FORETELL_CRASH_SEED={seed}");
        Self((seed ^ salt) | 1)
    }

    /// A number below `sides`.
    pub fn roll(&mut self, sides: u64) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % sides
    }
}

fn kills() -> u32 {
    std::env::var("FORETELL_CRASH_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(100)
}

async fn survives(service: &mut Service, salt: u64) {
    let mut dice = Dice::new(salt);
    let clients = Clients::start(&service.demonstration().await, 4);
    for _ in 0..kills() {
        service.start().await;
        clients.send_to(service.base_url());
        // Some kills hit the start's recovery, most of them the work.
        service.live_for(Duration::from_millis(dice.roll(250))).await;
        service.kill().await;
    }
    service.start().await;
    clients.send_to(service.base_url());
    let told = clients.finish().await;
    service.settle().await;
    oracle::check(service, &told).await;
    eprintln!("{} kills, {} trades acknowledged", kills(), told.len());
    assert!(told.len() as u32 >= kills() / 2, "the load was too thin to prove anything: {} trades", told.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_lose_nothing_and_double_nothing_on_sqlite() {
    let mut service = Service::on_sqlite();
    survives(&mut service, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_lose_nothing_and_double_nothing_on_postgres() {
    let Some(mut service) = Service::on_postgres().await else { return };
    survives(&mut service, 2).await;
}
