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

/// A pool's numbers as metrics, written by its upkeep: borrowing pays nothing for them. Pools of one name share them.
pub(super) struct Published {
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

/// A number that only grows.
struct Total {
    counter: Arc<Counter>,
    of: fn(&Stats) -> u64,
    told: u64,
}

impl Published {
    pub(super) fn of(pool: &str) -> Self {
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
            totals: TOTALS.map(|(name, help, of)| Total {
                counter: metrics::counter(name, help, &own),
                of,
                told: 0,
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

    pub(super) fn write(&mut self, stats: &Stats) {
        self.size.set(stats.size as f64);
        self.idle.set(stats.idle as f64);
        self.in_use.set(stats.in_use as f64);
        self.connecting.set(stats.connecting as f64);
        self.waiting.set(stats.waiting as f64);
        for total in &mut self.totals {
            let now = (total.of)(stats);
            total.counter.add(now - total.told);
            total.told = now;
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
    fn what_a_pool_has_done_is_seen_by_its_name() {
        let mut published = Published::of("published-test");
        let mut stats = Stats {
            size: 3,
            in_use: 2,
            timeouts: 5,
            created: 4,
            ..Stats::default()
        };
        stats.note_wait(Duration::from_millis(1));
        published.write(&stats);
        published.write(&stats);
        let text = metrics::render();
        for line in [
            "weft_pool_size{pool=\"published-test\"} 3",
            "weft_pool_connections{pool=\"published-test\",state=\"in_use\"} 2",
            "weft_pool_timeouts_total{pool=\"published-test\"} 5",
            "weft_pool_created_total{pool=\"published-test\"} 4",
            "weft_pool_use_duration_seconds_count{pool=\"published-test\"} 0",
            "weft_pool_wait_duration_seconds_count{pool=\"published-test\"} 1",
            "weft_pool_wait_duration_seconds_sum{pool=\"published-test\"} 0.001",
        ] {
            assert!(text.contains(line), "{line} is missing in {text}");
        }
    }
}
