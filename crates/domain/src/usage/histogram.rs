//! Latency histograms with fixed, exponentially growing buckets, so that histograms of several
//! hours and processes can be added.
//!
//! Each doubling has 16 equal steps, so the middle of a bucket is within 1/32 of every value in it.
//! Below 32 ms each millisecond has its own bucket.

/// The number of doublings. They start at 0, 16 ms, 32 ms and so on.
pub const OCTAVES: usize = 13;
/// The number of equal steps per doubling.
pub const STEPS: usize = 16;

/// The largest latency with its own bucket, in milliseconds. Longer ones count in the last bucket.
/// It is far above the deadline of any request.
const MAX_MS: u64 = (1 << (OCTAVES + 3)) - 1;

/// Counts of requests by latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Histogram {
    counts: [[u64; STEPS]; OCTAVES],
}

impl Histogram {
    /// Counts a request.
    pub const fn record(&mut self, latency_ms: u64) {
        let (octave, step) = bucket(latency_ms);
        self.counts[octave][step] += 1;
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (octave, counts) in other.octaves() {
            self.add(octave, counts);
        }
    }

    /// Adds counts to the steps of a doubling. Ignores a doubling that does not exist.
    pub fn add(&mut self, octave: usize, counts: &[u64; STEPS]) {
        let steps = self.counts.get_mut(octave).into_iter().flatten();
        steps.zip(counts).for_each(|(sum, count)| *sum = sum.saturating_add(*count));
    }

    /// Iterates over the doublings that have counts.
    pub fn octaves(&self) -> impl Iterator<Item = (usize, &[u64; STEPS])> {
        self.counts.iter().enumerate().filter(|(_, counts)| counts.iter().any(|count| *count > 0))
    }

    /// Returns the total count.
    pub fn count(&self) -> u64 {
        self.counts.iter().flatten().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Returns the latency that `percent` of the requests did not exceed, in milliseconds. This is
    /// the middle of the bucket that contains the nearest rank. `None` if the histogram is empty.
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
    // The first doubling (0 to 15 ms) is octave 0, so that of 16 ms is octave 1.
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
    fn an_empty_histogram_has_no_percentile() {
        assert_eq!(Histogram::default().percentile_ms(50), None);
    }

    #[test]
    fn percentiles_use_the_nearest_rank_and_small_values_are_exact() {
        let hundred: Vec<u64> = (0..100).map(|n| n / 4).collect();
        let histogram = of(&hundred);
        assert_eq!([1, 50, 95, 99, 100].map(|p| histogram.percentile_ms(p)), [0, 12, 23, 24, 24].map(Some));
        assert_eq!(of(&[7]).percentile_ms(1), Some(7));
        assert_eq!(of(&[0, 31]).percentile_ms(50), Some(0));
        assert_eq!(of(&[0, 31]).percentile_ms(51), Some(31));
    }

    #[test]
    fn buckets_are_contiguous() {
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
    fn an_unknown_octave_adds_nothing() {
        let mut histogram = Histogram::default();
        histogram.add(OCTAVES, &[1; STEPS]);
        assert_eq!(histogram.count(), 0);
    }

    proptest! {
        #[test]
        fn a_percentile_is_within_one_32nd_of_the_exact_one(
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
