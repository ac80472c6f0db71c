//! Periodic work: ends of lifetimes, keepalives, leak reports, the minimum of idle connections, metrics.

use std::rc::Rc;
use std::time::Duration;

use tokio::time::Instant;

use super::inner::Inner;
use super::metrics::PoolMetrics;
use super::options::enabled;
use super::{Condition, Manage, PoolOptions};

/// A broken idle connection is noticed within this time, so that the pool soon has its minimum again.
const LONGEST_INTERVAL: Duration = Duration::from_millis(500);
const SHORTEST_INTERVAL: Duration = Duration::from_millis(5);

impl<M: Manage> Inner<M> {
    /// Starts the reaper, which ends with the pool.
    pub(super) fn start_reaper(self: &Rc<Self>) {
        let pool = Rc::downgrade(self);
        let (interval, mut metrics) = {
            let state = self.state.borrow();
            let options = state.options();
            (interval(options), PoolMetrics::register(&options.name))
        };
        self.spawner.spawn(async move {
            loop {
                match pool.upgrade() {
                    Some(pool) if !pool.state.borrow().is_closed() => {
                        pool.reap();
                        metrics.update(&pool.state.borrow().stats());
                    }
                    Some(pool) => return metrics.update(&pool.state.borrow().stats()),
                    None => return,
                }
                tokio::time::sleep(interval).await;
            }
        });
    }

    fn reap(self: &Rc<Self>) {
        let reaped = self.state.borrow_mut().reap(Instant::now(), |connection| {
            self.manager.condition(connection) != Condition::Clean
        });
        self.close_connections(reaped.ended);
        for conn in reaped.silent {
            self.validate(conn);
        }
        for leak in reaped.leaks {
            if let Some(report) = &*self.on_leak.borrow() {
                report(leak);
            }
        }
        self.replenish();
    }
}

/// Several times within the shortest of the configured times.
fn interval(options: &PoolOptions) -> Duration {
    let times = [
        options.idle_timeout,
        options.max_lifetime,
        options.keepalive_interval,
        options.leak_threshold,
    ];
    let shortest = times.into_iter().filter_map(enabled).min();
    let interval = shortest.map_or(LONGEST_INTERVAL, |time| time / 8);
    interval.clamp(SHORTEST_INTERVAL, LONGEST_INTERVAL)
}
