//! What has to happen when nobody borrows: ends of lifetimes, keep-alives, refills, leak reports.

use std::rc::Rc;
use std::time::Duration;

use tokio::time::Instant;

use super::care::Kind;
use super::inner::Inner;
use super::options::enabled;
use super::published::Published;
use super::{Condition, Manage, PoolOptions};

/// A dead idle connection is noticed within this time, so that the minimum is there again soon.
const SLOWEST_PULSE: Duration = Duration::from_millis(500);
const FASTEST_PULSE: Duration = Duration::from_millis(5);

impl<M: Manage> Inner<M> {
    /// Starts the upkeep, which ends with the pool.
    pub(super) fn keep_up(self: &Rc<Self>) {
        let pool = Rc::downgrade(self);
        let (pulse, mut published) = {
            let state = self.state.borrow();
            let options = state.options();
            (pulse(options), Published::of(&options.name))
        };
        self.nursery.spawn(async move {
            loop {
                match pool.upgrade() {
                    Some(pool) if !pool.state.borrow().is_closed() => {
                        pool.do_what_is_due();
                        published.write(&pool.state.borrow().stats());
                    }
                    Some(pool) => return published.write(&pool.state.borrow().stats()),
                    None => return,
                }
                tokio::time::sleep(pulse).await;
            }
        });
    }

    fn do_what_is_due(self: &Rc<Self>) {
        let due = self.state.borrow_mut().due(Instant::now(), |connection| {
            self.manager.condition(connection) != Condition::Clean
        });
        self.retire(due.retire);
        for held in due.check {
            self.care_for(held, Kind::Check);
        }
        for leak in due.leaks {
            if let Some(report) = &*self.on_leak.borrow() {
                report(leak);
            }
        }
        self.grow();
    }
}

/// Often enough for the shortest of the times that are set.
fn pulse(options: &PoolOptions) -> Duration {
    let times = [
        options.idle_timeout,
        options.max_lifetime,
        options.keepalive_interval,
        options.leak_threshold,
    ];
    let shortest = times.into_iter().filter_map(enabled).min();
    let pulse = shortest.map_or(SLOWEST_PULSE, |time| time / 8);
    pulse.clamp(FASTEST_PULSE, SLOWEST_PULSE)
}
