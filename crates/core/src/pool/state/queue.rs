//! Those who wait, and what ends their wait other than a connection.

use std::time::Duration;

use tokio::time::Instant;

use super::{Delivery, Phase, State, Ticket, Waiter};
use crate::pool::Error;
use crate::pool::borrower::Borrower;
use crate::pool::delivery::{Receiver, channel};
use crate::pool::options::enabled;

impl<C, E: Clone> State<C, E> {
    /// A place at the end of the queue.
    pub(in crate::pool) fn enqueue(
        &mut self,
        borrower: Borrower,
        now: Instant,
    ) -> (Ticket, Receiver<Delivery<C, E>>) {
        let (delivery, receiver) = channel();
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.waiters.push_back(Waiter {
            ticket,
            borrower,
            since: now,
            delivery,
        });
        self.totals.waited += 1;
        (ticket, receiver)
    }

    /// Takes a waiter out of the queue, if it is still there.
    pub(in crate::pool) fn forget(&mut self, ticket: Ticket) {
        // Those who give up after a time are the first.
        match self.waiters.front() {
            Some(first) if first.ticket == ticket => drop(self.waiters.pop_front()),
            _ => self.waiters.retain(|waiter| waiter.ticket != ticket),
        }
    }

    /// Fails those who have waited for long enough, the first in the queue. Returns when the next will have.
    pub(in crate::pool) fn expire(&mut self, now: Instant) -> Option<Instant> {
        let patience = enabled(self.options.borrow_timeout)?;
        loop {
            let end = self.waiters.front()?.since.checked_add(patience)?;
            if now < end {
                return Some(end);
            }
            let error = self.timed_out(now);
            if let Some(waiter) = self.waiters.pop_front() {
                // A waiter that is just leaving does not need the news.
                let _ = waiter.delivery.send(Err(error));
            }
        }
    }

    /// What somebody is told who has waited for long enough, and counts him.
    pub(in crate::pool) fn timed_out(&mut self, now: Instant) -> Error<E> {
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
                error: self.outage.as_ref().and_then(|outage| outage.error.clone()),
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

    /// Since when the oldest connection is being opened, and how many attempts have failed before, if that is what
    /// borrowers wait for.
    fn slowest_creation(&self, now: Instant) -> Option<(Duration, u32)> {
        let attempts = self.outage.as_ref().map_or(0, |outage| outage.attempts);
        let has_room = self.in_use() < self.options.size;
        let between_attempts = self.outage.as_ref().filter(|_| has_room);
        let creating = self.creating.first_key_value().map(|(_, since)| *since);
        let since = creating.or(between_attempts.map(|outage| outage.since))?;
        Some((now.saturating_duration_since(since), attempts))
    }

    /// Whether every waiter, the last one included, has a connection under way.
    pub(in crate::pool) fn opens_for_everybody(&self) -> bool {
        self.creating.len() + self.checking >= self.waiters.len()
    }

    /// Fails waiters that no connection can reach: none under way, and none that could come back.
    pub(in crate::pool) fn fail_hopeless(&mut self, now: Instant) {
        if !self.is_failing_fast(now) {
            return;
        }
        let Some(error) = self.outage.as_ref().and_then(|outage| outage.error.clone()) else {
            return;
        };
        for waiter in self.waiters.drain(..) {
            // A waiter that is just leaving does not need the news.
            let _ = waiter.delivery.send(Err(Error::Connect(error.clone())));
        }
    }

    /// Whether a borrower would wait for a server that is known to be down.
    pub(in crate::pool) fn is_failing_fast(&self, now: Instant) -> bool {
        let Some(outage) = &self.outage else {
            return false;
        };
        let hopeless = self.idle.is_empty() && (outage.down || self.in_use() == 0);
        self.phase == Phase::Open
            && self.options.fail_fast
            && hopeless
            && self.creating.is_empty()
            && now < outage.retry_at
    }

    /// Refuses a borrower while the server is known to be down.
    pub(in crate::pool) fn refuse(&mut self, now: Instant) -> Option<Error<E>> {
        if !self.is_failing_fast(now) {
            return None;
        }
        let outage = self.outage.as_mut()?;
        let error = outage.error.clone()?;
        outage.asked = true;
        self.totals.refused += 1;
        Some(Error::Down {
            pool: self.options.name.clone(),
            error,
            since: now.saturating_duration_since(outage.since),
            attempts: outage.attempts,
            retry_in: outage.retry_at - now,
        })
    }

    /// Whether a task that waits would wait for itself: everything is held by tasks that are in the queue, or by it.
    pub(in crate::pool) fn is_self_blocked(&self, task: Option<u64>) -> bool {
        let Some(task) = task else { return false };
        let full = self.phase == Phase::Open
            && self.idle.is_empty()
            && self.tended == 0
            && self.creating.is_empty()
            && self.loans.len() >= self.options.size;
        full && self.loans.is_held_by(task)
            && self.loans.all_wait(|holder| {
                let waits = |waiter: &Waiter<C, E>| waiter.borrower.task == Some(holder);
                holder == task || self.waiters.iter().any(waits)
            })
    }
}
