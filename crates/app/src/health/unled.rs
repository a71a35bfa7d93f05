//! Parts of the service that no process runs. The leases in the database show it to every process,
//! whichever roles it has.

use std::collections::BTreeMap;

use domain::Timestamp;
use store::lanes::lease_name;

use super::{Degradation, Reason};
use crate::ledger::UPKEEP_LEASE;

/// The number of consecutive looks at which a part has no process before it is reported: with 5 s
/// between two of them, longer than a hand-over takes.
const LOOKS: u32 = 3;

/// The parts without a process at the last look, each with the number of looks since it had one.
#[derive(Debug, Default)]
pub(super) struct UnledParts(BTreeMap<String, u32>);

impl UnledParts {
    /// Compares the leases with the parts that must have a process: the lanes, and the upkeep once it
    /// has run. The sync is reported by the age of its last block.
    pub(super) fn look(
        &mut self,
        leases: &[(String, Timestamp)],
        lanes: &[u16],
        now: Timestamp,
    ) -> Option<Degradation> {
        let until = |name: &str| leases.iter().find(|(of, _)| of == name).map(|(_, until)| *until);
        let lane_leases = lanes.iter().map(|lane| (format!("lane {lane}"), until(&lease_name(*lane))));
        let upkeep = until(UPKEEP_LEASE).map(|until| ("upkeep".to_owned(), Some(until)));
        let unled = lane_leases.chain(upkeep).filter(|(_, until)| until.is_none_or(|until| until <= now));
        let looks = |part: &String| self.0.get(part).copied().unwrap_or(0).saturating_add(1);
        self.0 = unled.map(|(part, _)| (part.clone(), looks(&part))).collect();
        let missing: Vec<&str> =
            self.0.iter().filter(|(_, looks)| **looks >= LOOKS).map(|(part, _)| part.as_str()).collect();
        let missing_lanes = missing.iter().filter(|part| part.starts_with("lane ")).count();
        let detail = format!("No process runs these parts: {}.", missing.join(", "));
        (!missing.is_empty()).then(|| {
            Degradation::new(Reason::PartWithoutProcess, detail)
                .stops_trading(!lanes.is_empty() && missing_lanes == lanes.len())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(1_777_464_000_000);

    fn held(names: &[&str]) -> Vec<(String, Timestamp)> {
        names.iter().map(|name| ((*name).to_owned(), NOW.plus_ms(1))).collect()
    }

    fn after(looks: u32, leases: &[(String, Timestamp)]) -> Option<(String, bool)> {
        let mut unled = UnledParts::default();
        let found = (0..looks).map(|_| unled.look(leases, &[0, 1], NOW)).last().flatten();
        found.map(|found| (found.detail, found.stops_trading))
    }

    #[test]
    fn a_lane_without_a_process_is_reported_at_the_third_look() {
        let one = held(&["executor:0"]);
        assert_eq!(after(2, &one), None);
        let detail = "No process runs these parts: lane 1.".to_owned();
        assert_eq!(after(3, &one), Some((detail, false)));
        assert_eq!(after(3, &held(&["executor:0", "executor:1"])), None);
        let mut unled = UnledParts::default();
        let looks =
            [&one, &one, &held(&["executor:0", "executor:1"]), &one].map(|it| unled.look(it, &[0, 1], NOW));
        assert_eq!(looks, [const { None }; 4], "the looks must be consecutive");
    }

    #[test]
    fn trading_stops_if_no_lane_has_a_process() {
        let ended = vec![("executor:0".to_owned(), NOW), ("executor:1".to_owned(), Timestamp::from_ms(0))];
        let detail = "No process runs these parts: lane 0, lane 1.".to_owned();
        assert_eq!(after(3, &ended), Some((detail, true)));
    }

    #[test]
    fn an_upkeep_that_ended_is_reported() {
        let mut leases = held(&["executor:0", "executor:1"]);
        leases.push((UPKEEP_LEASE.to_owned(), NOW));
        assert_eq!(after(3, &leases), Some(("No process runs these parts: upkeep.".to_owned(), false)));
    }
}
