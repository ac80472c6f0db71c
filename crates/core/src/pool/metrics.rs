use std::sync::{Arc, LazyLock};

use super::{Histogram, Stats};
use crate::metrics::{self, Counter, Gauge};

static BOUNDS: LazyLock<Vec<f64>> = LazyLock::new(|| Histogram::bounds().to_vec());

type NamedTotal = (&'static str, &'static str, fn(&Stats) -> u64);

const TOTALS: [NamedTotal; 9] = [
    (
        "weft_pool_borrowed_total",
        "Borrowed connections.",
        |stats| stats.borrowed,
    ),
    ("weft_pool_created_total", "Opened connections.", |stats| {
        stats.created
    }),
    ("weft_pool_closed_total", "Closed connections.", |stats| {
        stats.closed
    }),
    (
        "weft_pool_broken_total",
        "Connections closed because they were broken.",
        |stats| stats.broken,
    ),
    (
        "weft_pool_expired_total",
        "Connections closed because they were too old or idle.",
        |stats| stats.expired,
    ),
    (
        "weft_pool_timeouts_total",
        "Borrowers whose wait timed out.",
        |stats| stats.timeouts,
    ),
    (
        "weft_pool_connect_failures_total",
        "Failed attempts to open a connection.",
        |stats| stats.connect_failures,
    ),
    (
        "weft_pool_refused_total",
        "Borrowers rejected at once while the server was down.",
        |stats| stats.refused,
    ),
    (
        "weft_pool_leaks_total",
        "Connections held for longer than the leak threshold.",
        |stats| stats.leaks,
    ),
];

/// A pool's statistics as metrics. The reaper updates them, so they cost borrowers nothing.
///
/// Pools of the same name share their instruments: each adds how its own numbers have changed. The connections of a pool that is gone
/// no longer count.
pub(super) struct PoolMetrics {
    gauges: [Level; 5],
    totals: [Total; 9],
    durations: [Durations; 3],
}

/// A gauge and this pool's part of it.
struct Level {
    gauge: Arc<Gauge>,
    level: fn(&Stats) -> usize,
    reported: f64,
}

/// A counter and how much of the total it has.
struct Total {
    counter: Arc<Counter>,
    total: fn(&Stats) -> u64,
    reported: u64,
}

/// A histogram and what it has of this pool.
struct Durations {
    metric: Arc<metrics::Histogram>,
    durations: fn(&Stats) -> &Histogram,
    reported: Histogram,
}

impl PoolMetrics {
    pub(super) fn register(pool: &str) -> Self {
        let own = [("pool", pool)];
        let level = |gauge, level| Level {
            gauge,
            level,
            reported: 0.0,
        };
        let connections = |state, count| {
            let help = "Connections of a pool by state.";
            let labels = [("pool", pool), ("state", state)];
            level(
                metrics::gauge("weft_pool_connections", help, &labels),
                count,
            )
        };
        let size = metrics::gauge("weft_pool_size", "Maximum number of connections.", &own);
        let help = "Borrowers that wait for a connection.";
        let waiting = metrics::gauge("weft_pool_waiting", help, &own);
        let histogram = |name, help, durations| Durations {
            metric: metrics::histogram(name, help, &own, &BOUNDS),
            durations,
            reported: Histogram::default(),
        };
        Self {
            gauges: [
                level(size, |stats| stats.size),
                level(waiting, |stats| stats.waiting),
                connections("idle", |stats| stats.idle),
                connections("in_use", |stats| stats.in_use),
                connections("connecting", |stats| stats.connecting),
            ],
            totals: TOTALS.map(|(name, help, total)| Total {
                counter: metrics::counter(name, help, &own),
                total,
                reported: 0,
            }),
            durations: [
                histogram(
                    "weft_pool_wait_duration_seconds",
                    "Waiting time of borrowers that had to wait.",
                    |stats| &stats.wait,
                ),
                histogram(
                    "weft_pool_use_duration_seconds",
                    "Time from borrowing to return.",
                    |stats| &stats.usage,
                ),
                histogram(
                    "weft_pool_create_duration_seconds",
                    "Time to open a connection.",
                    |stats| &stats.creation,
                ),
            ],
        }
    }

    pub(super) fn update(&mut self, stats: &Stats) {
        for level in &mut self.gauges {
            level.report((level.level)(stats) as f64);
        }
        for total in &mut self.totals {
            let now = (total.total)(stats);
            total.counter.add(now - total.reported);
            total.reported = now;
        }
        for durations in &mut self.durations {
            let now = (durations.durations)(stats);
            let counts = now.counts().iter().zip(durations.reported.counts());
            let sum = now.sum().saturating_sub(durations.reported.sum());
            durations
                .metric
                .add(counts.map(|(now, reported)| now - reported), sum);
            durations.reported = *now;
        }
    }
}

impl Level {
    fn report(&mut self, now: f64) {
        self.gauge.add(now - self.reported);
        self.reported = now;
    }
}

impl Drop for PoolMetrics {
    fn drop(&mut self) {
        for level in &mut self.gauges {
            level.report(0.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn metrics_have_the_name_of_their_pool() {
        let mut pool = PoolMetrics::register("metrics-test");
        let mut stats = Stats {
            size: 3,
            in_use: 2,
            timeouts: 5,
            created: 4,
            ..Stats::default()
        };
        stats.record_wait(Duration::from_millis(1));
        pool.update(&stats);
        pool.update(&stats);
        let text = metrics::render();
        for line in [
            "weft_pool_size{pool=\"metrics-test\"} 3",
            "weft_pool_connections{pool=\"metrics-test\",state=\"in_use\"} 2",
            "weft_pool_timeouts_total{pool=\"metrics-test\"} 5",
            "weft_pool_created_total{pool=\"metrics-test\"} 4",
            "weft_pool_use_duration_seconds_count{pool=\"metrics-test\"} 0",
            "weft_pool_wait_duration_seconds_count{pool=\"metrics-test\"} 1",
            "weft_pool_wait_duration_seconds_sum{pool=\"metrics-test\"} 0.001",
        ] {
            assert!(text.contains(line), "{line} is missing in {text}");
        }
    }

    #[test]
    fn pools_of_one_name_add_up_and_a_pool_that_is_gone_has_no_connections() {
        let lines = || -> Vec<String> {
            let text = metrics::render();
            let lines = text.lines().filter(|line| line.contains("metrics-shared"));
            lines.map(ToOwned::to_owned).collect()
        };
        let stats = |size, idle| {
            let mut stats = Stats {
                size,
                idle,
                ..Stats::default()
            };
            stats.record_wait(Duration::from_millis(1));
            stats
        };
        let mut one = PoolMetrics::register("metrics-shared");
        let mut other = PoolMetrics::register("metrics-shared");
        for _ in 0..2 {
            one.update(&stats(5, 3));
            other.update(&stats(2, 1));
        }
        let both = lines();
        for line in [
            "weft_pool_size{pool=\"metrics-shared\"} 7",
            "weft_pool_connections{pool=\"metrics-shared\",state=\"idle\"} 4",
            "weft_pool_wait_duration_seconds_count{pool=\"metrics-shared\"} 2",
            "weft_pool_wait_duration_seconds_sum{pool=\"metrics-shared\"} 0.002",
        ] {
            assert!(both.iter().any(|found| found == line), "{line}: {both:?}");
        }
        drop(one);
        let left = lines();
        for line in [
            "weft_pool_size{pool=\"metrics-shared\"} 2",
            "weft_pool_connections{pool=\"metrics-shared\",state=\"idle\"} 1",
            "weft_pool_wait_duration_seconds_count{pool=\"metrics-shared\"} 2",
        ] {
            assert!(left.iter().any(|found| found == line), "{line}: {left:?}");
        }
    }
}
