//! The reaper's share of the bookkeeping.

use tokio::time::Instant;

use super::{Phase, State};
use crate::pool::borrower::Holder;
use crate::pool::conn::Conn;
use crate::pool::options::enabled;

pub(in crate::pool) struct Reaped<C> {
    /// To be closed.
    pub(in crate::pool) ended: Vec<C>,
    /// To be validated: the keepalive interval has passed.
    pub(in crate::pool) silent: Vec<Conn<C>>,
    pub(in crate::pool) leaks: Vec<Holder>,
}

impl<C, E: Clone> State<C, E> {
    /// Removes idle connections that are broken or expired, takes out those whose keepalive is due, and reports leaks.
    pub(in crate::pool) fn reap(
        &mut self,
        now: Instant,
        is_broken: impl FnMut(&mut C) -> bool,
    ) -> Reaped<C> {
        let mut reaped = Reaped {
            ended: Vec::new(),
            silent: Vec::new(),
            leaks: Vec::new(),
        };
        self.remove_broken(&mut reaped.ended, is_broken);
        self.remove_expired(&mut reaped.ended, now);
        self.take_silent(&mut reaped.silent, now);
        if let Some(threshold) = enabled(self.options.leak_threshold) {
            reaped.leaks = self.leases.leaks(threshold, now);
            self.totals.leaks += reaped.leaks.len() as u64;
        }
        reaped
    }

    fn remove_broken(&mut self, ended: &mut Vec<C>, mut is_broken: impl FnMut(&mut C) -> bool) {
        let broken: Vec<_> = self
            .idle
            .extract_if(.., |conn| is_broken(&mut conn.connection))
            .collect();
        self.totals.broken += broken.len() as u64;
        ended.extend(broken.into_iter().map(|conn| self.retire(conn)));
    }

    /// Idle connections beyond the minimum expire after the idle timeout, all of them at the end of their lifetime.
    fn remove_expired(&mut self, ended: &mut Vec<C>, now: Instant) {
        let idle_timeout = enabled(self.options.idle_timeout);
        let mut surplus = self.idle.len().saturating_sub(self.options.minimum_idle);
        let expired: Vec<_> = self
            .idle
            .extract_if(.., |conn| {
                let idle = now.saturating_duration_since(conn.meta.idle_since);
                let unneeded = surplus > 0 && idle_timeout.is_some_and(|most| idle >= most);
                let ends = unneeded || conn.meta.is_expired(now);
                surplus = surplus.saturating_sub(usize::from(ends));
                ends
            })
            .collect();
        self.totals.expired += expired.len() as u64;
        ended.extend(expired.into_iter().map(|conn| self.retire(conn)));
    }

    /// Takes out connections whose keepalive is due, at most half of the idle ones, so that one is left to lend.
    fn take_silent(&mut self, silent: &mut Vec<Conn<C>>, now: Instant) {
        let Some(interval) = enabled(self.options.keepalive_interval) else {
            return;
        };
        if self.phase == Phase::Closed {
            return;
        }
        let mut most = self.idle.len().div_ceil(2);
        let jitter = self.next_random();
        let due = self.idle.extract_if(.., |conn| {
            let due = interval.mul_f64(0.9 + jitter / 10.0);
            let is_silent = now.saturating_duration_since(conn.meta.last_seen) >= due;
            let taken = is_silent && most > 0;
            most -= usize::from(taken);
            taken
        });
        silent.extend(due);
        self.in_maintenance += silent.len();
        self.validating += silent.len();
    }
}
