//! Latencies in fixed buckets that grow with the value, so that histograms of hours and of processes add up.
//!
//! Sixteen equal steps to each doubling: whatever bucket a value falls into, the bucket's middle is within a thirty-second
//! of it. Below 32 ms every millisecond has a bucket of its own.

/// The doublings: from 0, from 16 ms, from 32 ms, and so on.
pub const OCTAVES: usize = 13;
/// The equal steps of a doubling.
pub const STEPS: usize = 16;

/// The largest latency that is told from a longer one, in milliseconds: far above any request's deadline.
const MAX_MS: u64 = (1 << (OCTAVES + 3)) - 1;

/// How many requests took how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Histogram {
    counts: [[u64; STEPS]; OCTAVES],
}

impl Histogram {
    /// Counts a request that took this long.
    pub const fn record(&mut self, latency_ms: u64) {
        let (octave, step) = bucket(latency_ms);
        self.counts[octave][step] += 1;
    }

    /// Adds what `other` has counted.
    pub fn merge(&mut self, other: &Self) {
        for (octave, counts) in other.octaves() {
            self.add(octave, counts);
        }
    }

    /// Adds counts to the steps of a doubling. One past the last is not there, and nothing is added.
    pub fn add(&mut self, octave: usize, counts: &[u64; STEPS]) {
        let steps = self.counts.get_mut(octave).into_iter().flatten();
        steps.zip(counts).for_each(|(sum, count)| *sum = sum.saturating_add(*count));
    }

    /// The doublings that hold anything.
    pub fn octaves(&self) -> impl Iterator<Item = (usize, &[u64; STEPS])> {
        self.counts.iter().enumerate().filter(|(_, counts)| counts.iter().any(|count| *count > 0))
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().flatten().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The time within which `percent` of a hundred requests were answered, in milliseconds: the middle of the bucket in
    /// which the nearest rank lies. `None` where nothing was counted.
    pub fn percentile_ms(&self, percent: u8) -> Option<u64> {
        let count = u128::from(self.count());
        let rank = (count * u128::from(percent.min(100))).div_ceil(100).max(1);
        let mut seen = 0;
        let buckets = self.counts.iter().enumerate().flat_map(|(octave, counts)| {
            counts.iter().enumerate().map(move |(step, count)| (middle_ms(octave, step), *count))
        });
        for (middle_ms, count) in buckets {
            seen += u128::from(count);
            if seen >= rank {
                return Some(middle_ms);
            }
        }
        None
    }
}

const fn bucket(latency_ms: u64) -> (usize, usize) {
    let ms = if latency_ms > MAX_MS { MAX_MS } else { latency_ms };
    if ms < STEPS as u64 {
        return (0, ms as usize);
    }
    let octave = ms.ilog2() as usize - 3;
    (octave, (ms >> (octave - 1)) as usize - STEPS)
}

const fn middle_ms(octave: usize, step: usize) -> u64 {
    if octave == 0 {
        return step as u64;
    }
    let width = 1 << (octave - 1);
    (STEPS + step) as u64 * width + width / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(latencies: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        latencies.iter().for_each(|ms| histogram.record(*ms));
        histogram
    }

    #[test]
    fn nothing_counted_has_no_percentile() {
        assert_eq!(Histogram::default().percentile_ms(50), None);
    }

    #[test]
    fn the_nearest_rank_is_told_and_small_values_exactly() {
        let hundred: Vec<u64> = (0..100).map(|n| n / 4).collect();
        let histogram = of(&hundred);
        assert_eq!([1, 50, 95, 99, 100].map(|p| histogram.percentile_ms(p)), [0, 12, 23, 24, 24].map(Some));
        assert_eq!(of(&[7]).percentile_ms(1), Some(7));
        assert_eq!(of(&[0, 31]).percentile_ms(50), Some(0));
        assert_eq!(of(&[0, 31]).percentile_ms(51), Some(31));
    }

    #[test]
    fn every_bucket_begins_where_the_one_before_ends() {
        let mut last = (0, 0);
        for ms in 1..=MAX_MS {
            let next = bucket(ms);
            let follows = [(last.0, last.1 + 1), (last.0 + 1, 0)].contains(&next) && next.1 < STEPS;
            assert!(next == last || follows, "{ms}: {last:?} {next:?}");
            last = next;
        }
        assert_eq!(last, (OCTAVES - 1, STEPS - 1));
        assert_eq!(bucket(u64::MAX), last);
    }

    #[test]
    fn a_doubling_that_is_not_there_adds_nothing() {
        let mut histogram = Histogram::default();
        histogram.add(OCTAVES, &[1; STEPS]);
        assert_eq!(histogram.count(), 0);
    }

    proptest! {
        #[test]
        fn a_percentile_is_within_a_thirty_second_of_the_exact_one(
            mut latencies in proptest::collection::vec(0..=MAX_MS, 1..300), small in 0u64..12, percent in 1u8..=100,
        ) {
            latencies.iter_mut().for_each(|ms| *ms >>= small);
            let told = of(&latencies).percentile_ms(percent).unwrap();
            latencies.sort_unstable();
            let rank = (latencies.len() * usize::from(percent)).div_ceil(100);
            let exact = latencies[rank - 1];
            prop_assert!(told.abs_diff(exact) * 32 <= exact, "{told} for {exact}");
        }

        #[test]
        fn histograms_of_parts_add_up_to_the_whole(latencies in proptest::collection::vec(0..=MAX_MS, 0..100), at in 0usize..100) {
            let (one, other) = latencies.split_at(at.min(latencies.len()));
            let mut merged = of(one);
            merged.merge(&of(other));
            prop_assert_eq!(merged, of(&latencies));
            prop_assert_eq!(merged.count(), latencies.len() as u64);
        }
    }
}
