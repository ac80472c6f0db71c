use std::time::Duration;

/// A pool's state now and its totals since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Configured maximum of connections.
    pub size: usize,
    pub idle: usize,
    /// Lent, or being cleaned or validated.
    pub in_use: usize,
    /// Connections that are being opened.
    pub connecting: usize,
    /// Borrows that wait.
    pub waiting: usize,
    pub created: u64,
    /// Connections that were closed, broken ones included.
    pub closed: u64,
    pub broken: u64,
    /// Connections that were closed after their lifetime or idle timeout.
    pub expired: u64,
    pub connect_failures: u64,
    pub borrowed: u64,
    /// Borrows that had to wait.
    pub waited: u64,
    pub timeouts: u64,
    /// Borrows that were refused at once while the server was down.
    pub refused: u64,
    /// Connections that were held for longer than the leak threshold.
    pub leaks: u64,
    /// Waiting times of borrows that waited and succeeded.
    pub wait: Histogram,
    /// From borrow to return.
    pub usage: Histogram,
    /// Times to open a connection.
    pub creation: Histogram,
}

impl Stats {
    pub(super) fn record_wait(&mut self, duration: Duration) {
        self.wait.record(duration);
    }
}

/// Counts durations in buckets. Each upper bound is four times the one before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: [u64; BOUNDS.len() + 1],
    sum: Duration,
}

/// Upper bounds in microseconds. The last bucket has none.
const BOUNDS: [u64; 13] = [
    1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216,
];

impl Histogram {
    pub(super) fn record(&mut self, duration: Duration) {
        let begun = u64::from(duration.subsec_nanos().div_ceil(1_000));
        let micros = (duration.as_secs().saturating_mul(1_000_000)).saturating_add(begun);
        let bits = 64 - micros.saturating_sub(1).leading_zeros();
        let bucket = (bits.div_ceil(2) as usize).min(BOUNDS.len());
        self.counts[bucket] += 1;
        self.sum += duration;
    }

    /// Upper bounds in seconds, each inclusive. The last count has none.
    pub fn bounds() -> [f64; BOUNDS.len()] {
        BOUNDS.map(|micros| micros as f64 / 1e6)
    }

    /// One count for each bound and one for longer durations, not cumulative.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    pub fn sum(&self) -> Duration {
        self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_counted_below_the_first_bound_it_does_not_exceed() {
        for (micros, bucket) in [
            (0, 0),
            (1, 0),
            (2, 1),
            (4, 1),
            (5, 2),
            (16, 2),
            (17, 3),
            (1_048_576, 10),
            (99_000_000, 13),
        ] {
            let mut histogram = Histogram::default();
            histogram.record(Duration::from_micros(micros));
            assert_eq!(histogram.counts()[bucket], 1, "{micros} µs: {histogram:?}");
        }
    }
}
