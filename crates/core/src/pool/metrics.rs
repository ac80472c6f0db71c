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

/// A pool's statistics as metrics. The reaper updates them, so they cost borrowers nothing. Pools of the same name share
/// them.
pub(super) struct PoolMetrics {
    size: Arc<Gauge>,
    idle: Arc<Gauge>,
    in_use: Arc<Gauge>,
    connecting: Arc<Gauge>,
    waiting: Arc<Gauge>,
    totals: [Total; 9],
    wait: Arc<metrics::Histogram>,
    usage: Arc<metrics::Histogram>,
    creation: Arc<metrics::Histogram>,
}

/// A counter and how much of the total it has.
struct Total {
    counter: Arc<Counter>,
    total: fn(&Stats) -> u64,
    reported: u64,
}

impl PoolMetrics {
    pub(super) fn register(pool: &str) -> Self {
        let connections = |state| {
            let help = "Connections of a pool by state.";
            let labels = [("pool", pool), ("state", state)];
            metrics::gauge("weft_pool_connections", help, &labels)
        };
        let own = [("pool", pool)];
        let histogram = |name, help| metrics::histogram(name, help, &own, &BOUNDS);
        Self {
            size: metrics::gauge("weft_pool_size", "Maximum number of connections.", &own),
            idle: connections("idle"),
            in_use: connections("in_use"),
            connecting: connections("connecting"),
            waiting: metrics::gauge(
                "weft_pool_waiting",
                "Borrowers that wait for a connection.",
                &own,
            ),
            totals: TOTALS.map(|(name, help, total)| Total {
                counter: metrics::counter(name, help, &own),
                total,
                reported: 0,
            }),
            wait: histogram(
                "weft_pool_wait_duration_seconds",
                "Waiting time of borrowers that had to wait.",
            ),
            usage: histogram(
                "weft_pool_use_duration_seconds",
                "Time from borrowing to return.",
            ),
            creation: histogram(
                "weft_pool_create_duration_seconds",
                "Time to open a connection.",
            ),
        }
    }

    pub(super) fn update(&mut self, stats: &Stats) {
        self.size.set(stats.size as f64);
        self.idle.set(stats.idle as f64);
        self.in_use.set(stats.in_use as f64);
        self.connecting.set(stats.connecting as f64);
        self.waiting.set(stats.waiting as f64);
        for total in &mut self.totals {
            let now = (total.total)(stats);
            total.counter.add(now - total.reported);
            total.reported = now;
        }
        for (metric, histogram) in [
            (&self.wait, &stats.wait),
            (&self.usage, &stats.usage),
            (&self.creation, &stats.creation),
        ] {
            metric.set(histogram.counts(), histogram.sum());
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
}
