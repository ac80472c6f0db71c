use std::sync::{Arc, LazyLock};

use super::{Histogram, Stats};
use crate::metrics::{self, Counter, Gauge};

static BOUNDS: LazyLock<Vec<f64>> = LazyLock::new(|| Histogram::bounds().to_vec());

/// A pool's numbers as metrics, written by its upkeep: borrowing pays nothing for them. Pools of one name share them.
pub(super) struct Published {
    size: Arc<Gauge>,
    idle: Arc<Gauge>,
    in_use: Arc<Gauge>,
    connecting: Arc<Gauge>,
    waiting: Arc<Gauge>,
    timeouts: Arc<Counter>,
    wait: Arc<metrics::Histogram>,
    told_timeouts: u64,
}

impl Published {
    pub(super) fn of(pool: &str) -> Self {
        let connections = |state| {
            let help = "Connections of a pool by state.";
            let labels = [("pool", pool), ("state", state)];
            metrics::gauge("weft_pool_connections", help, &labels)
        };
        let own = [("pool", pool)];
        Self {
            size: metrics::gauge("weft_pool_size", "The most connections there may be.", &own),
            idle: connections("idle"),
            in_use: connections("in_use"),
            connecting: connections("connecting"),
            waiting: metrics::gauge("weft_pool_waiting", "Borrowers in the queue.", &own),
            timeouts: metrics::counter(
                "weft_pool_timeouts_total",
                "Borrowers that have waited for too long.",
                &own,
            ),
            wait: metrics::histogram(
                "weft_pool_wait_seconds",
                "Time that borrowers which had to wait have waited.",
                &own,
                &BOUNDS,
            ),
            told_timeouts: 0,
        }
    }

    pub(super) fn write(&mut self, stats: &Stats) {
        self.size.set(stats.size as f64);
        self.idle.set(stats.idle as f64);
        self.in_use.set(stats.in_use as f64);
        self.connecting.set(stats.connecting as f64);
        self.waiting.set(stats.waiting as f64);
        self.timeouts.add(stats.timeouts - self.told_timeouts);
        self.told_timeouts = stats.timeouts;
        self.wait.set(stats.wait.counts(), stats.wait.sum());
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
            "weft_pool_wait_seconds_count{pool=\"published-test\"} 1",
            "weft_pool_wait_seconds_sum{pool=\"published-test\"} 0.001",
        ] {
            assert!(text.contains(line), "{line} is missing in {text}");
        }
    }
}
