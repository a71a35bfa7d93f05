//! Random but repeatable faults.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use super::{RpcFault, Shared, pause};

/// The next fault of a proxy and its duration.
#[derive(Debug, Clone)]
pub struct Schedule {
    state: u64,
    faults: Vec<RpcFault>,
    is_healthy: bool,
}

impl Schedule {
    /// Creates the schedule of a seed: a fault for 50 to 800 ms, then 50 to 500 ms without one.
    pub fn new(seed: u64, faults: &[RpcFault]) -> Self {
        // The generator would stay at a state of zero.
        let state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        Self { state, faults: faults.to_vec(), is_healthy: true }
    }

    fn roll(&mut self, sides: u64) -> u64 {
        // xorshift64*
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        (self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % sides
    }
}

impl Iterator for Schedule {
    type Item = (Option<RpcFault>, Duration);

    fn next(&mut self) -> Option<Self::Item> {
        self.is_healthy = !self.is_healthy;
        let longest = if self.is_healthy { 450 } else { 750 };
        let time = Duration::from_millis(50 + self.roll(longest));
        let sides = u64::try_from(self.faults.len()).unwrap().max(1);
        let at = usize::try_from(self.roll(sides)).unwrap();
        let fault = self.faults.get(at).copied().filter(|_| !self.is_healthy);
        Some((fault, time))
    }
}

/// A storm, active until dropped.
#[derive(Debug)]
pub struct Storm {
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl Storm {
    pub(super) fn start(shared: Arc<Shared>, schedule: Schedule) -> Self {
        let of_task = Arc::clone(&shared);
        shared.plan.lock().storms = true;
        let task = tokio::spawn(async move {
            for (fault, time) in schedule {
                if !of_task.set_in_storm(fault).await {
                    return;
                }
                pause(time).await;
            }
        });
        Self { shared, task }
    }
}

impl Drop for Storm {
    fn drop(&mut self) {
        self.task.abort();
        self.shared.heal();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_storm() {
        let of = |seed| Schedule::new(seed, RpcFault::ALL).take(100).collect::<Vec<_>>();
        assert_eq!(of(7), of(7));
        assert_ne!(of(7), of(8));
    }

    #[test]
    fn faults_and_quiet_periods_alternate() {
        let faults = Schedule::new(1, RpcFault::ALL).take(100).map(|(fault, _)| fault.is_some());
        assert!(faults.enumerate().all(|(turn, is_fault)| is_fault == (turn % 2 == 0)));
    }
}
