//! The queue of waiters, and what ends a wait other than a connection.

use std::time::Duration;

use tokio::time::Instant;

use super::{Acquired, Phase, State, Ticket, Waiter};
use crate::pool::Error;
use crate::pool::borrower::Borrower;
use crate::pool::oneshot::{Receiver, channel};
use crate::pool::options::enabled;

impl<C, E: Clone> State<C, E> {
    /// Adds a borrower to the end of the queue.
    pub(in crate::pool) fn enqueue(
        &mut self,
        borrower: Borrower,
        now: Instant,
    ) -> (Ticket, Receiver<Acquired<C, E>>) {
        let (acquired, receiver) = channel();
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.waiters.push_back(Waiter {
            ticket,
            borrower,
            since: now,
            acquired,
        });
        self.totals.waited += 1;
        (ticket, receiver)
    }

    /// Removes a waiter from the queue, if it is still there.
    pub(in crate::pool) fn remove_waiter(&mut self, ticket: Ticket) {
        // A waiter that times out is the first.
        match self.waiters.front() {
            Some(first) if first.ticket == ticket => drop(self.waiters.pop_front()),
            _ => self.waiters.retain(|waiter| waiter.ticket != ticket),
        }
    }

    /// Fails the waiters whose borrow timeout has passed. Returns when the next one's passes.
    pub(in crate::pool) fn expire_waiters(&mut self, now: Instant) -> Option<Instant> {
        let timeout = enabled(self.options.borrow_timeout)?;
        loop {
            let end = self.waiters.front()?.since.checked_add(timeout)?;
            if now < end {
                return Some(end);
            }
            let error = self.timeout_error(now);
            if let Some(waiter) = self.waiters.pop_front() {
                // Fails only when the waiter has just left.
                let _ = waiter.acquired.send(Err(error));
            }
        }
    }

    /// The error of a borrower whose timeout has passed; counts it.
    pub(in crate::pool) fn timeout_error(&mut self, now: Instant) -> Error<E> {
        self.totals.timeouts += 1;
        let (pool, waited) = (self.options.name.clone(), self.options.borrow_timeout);
        let (size, in_use) = (self.options.size, self.in_use());
        let (creating, waiting) = (self.creating.len(), self.waiters.len());
        match self.slowest_creation(now) {
            Some((age, failed)) => Error::Slow {
                pool,
                waited,
                size,
                in_use,
                creating,
                age,
                failed,
                error: self
                    .backoff
                    .as_ref()
                    .and_then(|backoff| backoff.error.clone()),
                waiting,
            },
            None => Error::Exhausted {
                pool,
                waited,
                size,
                in_use,
                waiting,
                holders: self.holders(now),
            },
        }
    }

    /// How long the oldest connection has been opening and how many attempts failed before it, if borrowers wait for a new
    /// connection.
    fn slowest_creation(&self, now: Instant) -> Option<(Duration, u32)> {
        let attempts = self.backoff.as_ref().map_or(0, |backoff| backoff.attempts);
        let has_room = self.in_use() < self.options.size;
        let between_attempts = self.backoff.as_ref().filter(|_| has_room);
        let creating = self.creating.first_key_value().map(|(_, since)| *since);
        let since = creating.or(between_attempts.map(|backoff| backoff.since))?;
        Some((now.saturating_duration_since(since), attempts))
    }

    /// Whether a connection is being opened or validated for every waiter.
    pub(in crate::pool) fn serves_every_waiter(&self) -> bool {
        self.creating.len() + self.validating >= self.waiters.len()
    }

    /// Fails the waiters if no connection is being opened for them and none can be returned.
    pub(in crate::pool) fn fail_stranded(&mut self, now: Instant) {
        if !self.is_failing_fast(now) {
            return;
        }
        let Some(error) = self
            .backoff
            .as_ref()
            .and_then(|backoff| backoff.error.clone())
        else {
            return;
        };
        for waiter in self.waiters.drain(..) {
            // Fails only when the waiter has just left.
            let _ = waiter.acquired.send(Err(Error::Connect(error.clone())));
        }
    }

    /// With a borrow timeout of zero, fails waiters, the oldest first, until a connection is being opened or validated for each of the others.
    pub(in crate::pool) fn fail_unserved(&mut self, now: Instant) {
        if !self.options.borrow_timeout.is_zero() {
            return;
        }
        while !self.serves_every_waiter() {
            let failure = self
                .backoff
                .as_ref()
                .and_then(|backoff| backoff.error.clone());
            let error = failure.map_or_else(|| self.timeout_error(now), Error::Connect);
            let Some(waiter) = self.waiters.pop_front() else {
                return;
            };
            // Fails only when the waiter has just left.
            let _ = waiter.acquired.send(Err(error));
        }
    }

    /// Whether a borrower is refused because the server is known to be down.
    pub(in crate::pool) fn is_failing_fast(&self, now: Instant) -> bool {
        let Some(backoff) = &self.backoff else {
            return false;
        };
        let is_stranded = self.idle.is_empty() && (backoff.is_down || self.in_use() == 0);
        self.phase == Phase::Open
            && self.options.fail_fast
            && is_stranded
            && self.creating.is_empty()
            && now < backoff.retry_at
    }

    /// Refuses a borrower while the server is known to be down.
    pub(in crate::pool) fn refuse(&mut self, now: Instant) -> Option<Error<E>> {
        if !self.is_failing_fast(now) {
            return None;
        }
        let backoff = self.backoff.as_mut()?;
        let error = backoff.error.clone()?;
        backoff.was_requested = true;
        self.totals.refused += 1;
        Some(Error::Down {
            pool: self.options.name.clone(),
            error,
            since: now.saturating_duration_since(backoff.since),
            attempts: backoff.attempts,
            retry_in: backoff.retry_at - now,
        })
    }

    /// Whether a task would wait for itself: all connections are held by this task and by tasks that are in the queue.
    pub(in crate::pool) fn is_self_blocked(&self, task: Option<u64>) -> bool {
        let Some(task) = task else { return false };
        let full = self.phase == Phase::Open
            && self.idle.is_empty()
            && self.in_maintenance == 0
            && self.creating.is_empty()
            && self.leases.len() >= self.options.size;
        full && self.leases.is_held_by(task)
            && self.leases.all_wait(|holder| {
                let waits = |waiter: &Waiter<C, E>| waiter.borrower.task == Some(holder);
                holder == task || self.waiters.iter().any(waits)
            })
    }

    pub(in crate::pool) fn waiting(&self) -> usize {
        self.waiters.len()
    }

    /// Whether a task that holds a connection waits for another one.
    pub(in crate::pool) fn holder_waits(&self) -> bool {
        let mut waiting = self
            .waiters
            .iter()
            .filter_map(|waiter| waiter.borrower.task);
        waiting.any(|task| self.leases.is_held_by(task))
    }
}
