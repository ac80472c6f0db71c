//! What is due among idle and lent connections.

use tokio::time::Instant;

use super::{Phase, State};
use crate::pool::borrower::Holder;
use crate::pool::held::Held;
use crate::pool::options::enabled;

pub(in crate::pool) struct Due<C> {
    pub(in crate::pool) retire: Vec<C>,
    pub(in crate::pool) check: Vec<Held<C>>,
    pub(in crate::pool) leaks: Vec<Holder>,
}

impl<C, E: Clone> State<C, E> {
    /// What is due: idle connections past their time, those to be asked whether they still work, loans that last too long.
    pub(in crate::pool) fn due(
        &mut self,
        now: Instant,
        dead: impl FnMut(&mut C) -> bool,
    ) -> Due<C> {
        let mut due = Due {
            retire: Vec::new(),
            check: Vec::new(),
            leaks: Vec::new(),
        };
        self.retire_dead(&mut due.retire, dead);
        self.retire_spent(&mut due.retire, now);
        self.take_silent(&mut due.check, now);
        if let Some(threshold) = enabled(self.options.leak_threshold) {
            due.leaks = self.loans.leaks(threshold, now);
            self.totals.leaks += due.leaks.len() as u64;
        }
        due
    }

    fn retire_dead(&mut self, retired: &mut Vec<C>, mut dead: impl FnMut(&mut C) -> bool) {
        let gone: Vec<_> = self
            .idle
            .extract_if(.., |held| dead(&mut held.connection))
            .collect();
        self.totals.broken += gone.len() as u64;
        retired.extend(gone.into_iter().map(|held| self.end(held)));
    }

    fn retire_spent(&mut self, retired: &mut Vec<C>, now: Instant) {
        let idle_timeout = enabled(self.options.idle_timeout);
        let mut surplus = self.idle.len().saturating_sub(self.options.minimum_idle);
        let spent: Vec<_> = self
            .idle
            .extract_if(.., |held| {
                let idle = now.saturating_duration_since(held.vitals.idle_since);
                let unneeded = surplus > 0 && idle_timeout.is_some_and(|most| idle >= most);
                let ends = unneeded || held.vitals.is_expired(now);
                surplus = surplus.saturating_sub(usize::from(ends));
                ends
            })
            .collect();
        self.totals.expired += spent.len() as u64;
        retired.extend(spent.into_iter().map(|held| self.end(held)));
    }

    /// Of those nobody has heard from for the keep-alive interval at most half, so that there is always one to lend.
    fn take_silent(&mut self, silent: &mut Vec<Held<C>>, now: Instant) {
        let Some(interval) = enabled(self.options.keepalive_interval) else {
            return;
        };
        if self.phase == Phase::Closed {
            return;
        }
        let mut most = self.idle.len().div_ceil(2);
        let luck = self.draw();
        let asked = self.idle.extract_if(.., |held| {
            let due = interval.mul_f64(0.9 + luck / 10.0);
            let silent = now.saturating_duration_since(held.vitals.seen) >= due;
            let taken = silent && most > 0;
            most -= usize::from(taken);
            taken
        });
        silent.extend(asked);
        self.tended += silent.len();
        self.checking += silent.len();
    }
}
