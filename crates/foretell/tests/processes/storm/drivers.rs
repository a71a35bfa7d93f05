//! The fault injectors of a storm: four drivers in parallel, each with its own random sequence from
//! the seed.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use testkit::RpcFault;

use super::pass;
use super::stage::{CONFIRMATIONS, Stage};
use crate::dice::Dice;

/// Longer than a lease.
const LONG_FREEZE: Duration = Duration::from_secs(18);

/// Number of injected faults, by kind.
#[derive(Default)]
pub struct Faults {
    nodes: AtomicU32,
    kills: AtomicU32,
    freezes: AtomicU32,
    crashes: AtomicU32,
    reorganizations: AtomicU32,
    stranger: AtomicU32,
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |counter: &AtomicU32| counter.load(Ordering::Relaxed);
        write!(
            f,
            "{} faults of nodes, {} kills, {} freezes, {} crashes of servers, {} reorganizations, {} times the stranger",
            count(&self.nodes),
            count(&self.kills),
            count(&self.freezes),
            count(&self.crashes),
            count(&self.reorganizations),
            count(&self.stranger),
        )
    }
}

struct Driver<'a> {
    stage: &'a Stage,
    end: Instant,
    faults: &'a Faults,
    dice: Dice,
}

/// Injects faults for this time.
pub async fn rage(stage: &Stage, length: Duration) -> Faults {
    let faults = Faults::default();
    let end = Instant::now() + length;
    let driver = |salt| Driver { stage, end, faults: &faults, dice: Dice::new(salt) };
    tokio::join!(
        driver(11).break_nodes(),
        driver(12).break_processes(),
        driver(13).crash_servers(),
        driver(14).reorganize(),
        driver(15).let_the_stranger_play(),
        revive(stage, end),
    );
    faults
}

/// Repairs everything, and waits until every process is ready.
pub async fn heal(stage: &Stage) {
    for node in stage.nodes.iter() {
        node.heal();
    }
    for member in stage.members.iter() {
        member.thaw().await;
    }
    for member in stage.members.iter() {
        member.ready().await;
    }
}

/// Restarts every process that has ended.
async fn revive(stage: &Stage, end: Instant) {
    while Instant::now() < end {
        for member in stage.members.iter() {
            member.revive();
        }
        pass(Duration::from_millis(200)).await;
    }
}

impl Driver<'_> {
    /// Waits for a random time between the two. Returns false once the storm is over.
    async fn pause(&mut self, from_ms: u64, to_ms: u64) -> bool {
        let time = Duration::from_millis(from_ms + self.dice.roll(to_ms - from_ms));
        let left = self.end.saturating_duration_since(Instant::now());
        pass(time.min(left)).await;
        Instant::now() < self.end
    }

    fn count(counter: &AtomicU32) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    async fn break_nodes(mut self) {
        while self.pause(100, 1_500).await {
            let number = self.dice.roll(self.stage.nodes.len() as u64) as usize;
            let all = self.dice.roll(4) == 0;
            for (index, node) in self.stage.nodes.iter().enumerate() {
                if all || index == number {
                    let fault = RpcFault::ALL[self.dice.roll(RpcFault::ALL.len() as u64) as usize];
                    node.set(fault).await;
                }
            }
            Self::count(&self.faults.nodes);
            self.pause(100, 3_000).await;
            for node in self.stage.nodes.iter() {
                node.heal();
            }
        }
    }

    async fn break_processes(mut self) {
        let mut long_freezes = 0;
        while self.pause(1_000, 6_000).await {
            let number = self.dice.roll(self.stage.members.len() as u64) as usize;
            let member = &self.stage.members[number];
            let outage = self.stage.outages.begin(Some(number));
            if self.dice.roll(2) == 0 {
                member.kill().await;
                Self::count(&self.faults.kills);
                member.listens().await;
            } else {
                member.freeze().await;
                Self::count(&self.faults.freezes);
                // At most one freeze per half minute is longer than a lease.
                let is_long = long_freezes < 1 + self.end_in_half_minutes() && self.dice.roll(3) == 0;
                if is_long {
                    long_freezes += 1;
                    pass(LONG_FREEZE).await;
                } else {
                    self.pause(100, 3_000).await;
                }
                member.thaw().await;
            }
            self.stage.outages.end(outage);
        }
    }

    fn end_in_half_minutes(&self) -> u64 {
        self.end.saturating_duration_since(Instant::now()).as_secs() / 30
    }

    async fn crash_servers(mut self) {
        while !self.stage.servers.is_empty() && self.pause(4_000, 12_000).await {
            let number = self.dice.roll(self.stage.servers.len() as u64) as usize;
            // Without its rate limiters the service cannot respond, as without its database.
            let outage = self.stage.outages.begin(None);
            self.stage.servers[number].crash().await;
            self.stage.outages.end(outage);
            Self::count(&self.faults.crashes);
        }
    }

    async fn reorganize(mut self) {
        while self.pause(2_000, 8_000).await {
            let depth = 1 + self.dice.roll(CONFIRMATIONS - 1);
            self.stage.anvil.reorganize(depth).await;
            Self::count(&self.faults.reorganizations);
        }
    }

    async fn let_the_stranger_play(mut self) {
        while self.pause(200, 1_000).await {
            self.stage.stranger.play(&self.stage.anvil, &mut self.dice).await;
            Self::count(&self.faults.stranger);
        }
    }
}
