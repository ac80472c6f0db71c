//! How much of the messages of unary calls one connection may leave with the server before their handlers take them.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use super::share::ConnectionUse;

/// Messages up to this size need no reservation: they are bounded by the number of streams.
pub(super) const FREE: usize = 64 << 10;

/// The bytes that are reserved on one connection, and who waits for some, in order.
#[derive(Debug, Default)]
pub(super) struct UploadBudget {
    reserved: Cell<usize>,
    waiting: RefCell<VecDeque<(u64, Waker)>>,
    tickets: Cell<u64>,
}

/// The part of one message. A message reserves all it needs before it is read on, and once: what has begun can always end,
/// so that no two messages wait for each other.
#[derive(Debug)]
pub(super) struct Reservation {
    connection: Rc<ConnectionUse>,
    /// Of the connection.
    limit: usize,
    held: usize,
    ticket: Option<u64>,
}

impl Reservation {
    pub(super) fn new(connection: Rc<ConnectionUse>, limit: usize) -> Self {
        Self {
            connection,
            limit,
            held: 0,
            ticket: None,
        }
    }

    /// The message waits for others of its connection to be taken.
    pub(super) fn is_waiting(&self) -> bool {
        self.ticket.is_some()
    }

    /// Ready once `bytes` are reserved. A message that is larger than the whole budget has it alone.
    pub(super) fn poll(&mut self, bytes: usize, context: &Context<'_>) -> Poll<()> {
        if bytes <= FREE || self.held > 0 {
            return Poll::Ready(());
        }
        let budget = &self.connection.uploads;
        let reserved = budget.reserved.get();
        let fits = reserved == 0 || reserved.saturating_add(bytes) <= self.limit;
        let mut waiting = budget.waiting.borrow_mut();
        let first = waiting.front().map(|(ticket, _)| *ticket);
        if fits && first == self.ticket {
            waiting.pop_front();
            self.ticket = None;
            self.held = bytes;
            budget.reserved.set(reserved + bytes);
            drop(waiting);
            // There may be room for the next one, too.
            budget.wake_first();
            return Poll::Ready(());
        }
        let waker = context.waker().clone();
        match waiting
            .iter_mut()
            .find(|(ticket, _)| self.ticket == Some(*ticket))
        {
            Some(entry) => entry.1 = waker,
            None => {
                let ticket = budget.tickets.get() + 1;
                budget.tickets.set(ticket);
                self.ticket = Some(ticket);
                waiting.push_back((ticket, waker));
            }
        }
        Poll::Pending
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let budget = &self.connection.uploads;
        if let Some(own) = self.ticket {
            budget
                .waiting
                .borrow_mut()
                .retain(|(ticket, _)| *ticket != own);
        } else if self.held == 0 {
            return;
        }
        budget.reserved.set(budget.reserved.get() - self.held);
        budget.wake_first();
    }
}

impl UploadBudget {
    fn wake_first(&self) {
        let waiting = self.waiting.borrow();
        if let Some((_, waker)) = waiting.front() {
            waker.wake_by_ref();
        }
    }

    #[cfg(test)]
    pub(super) fn reserved(&self) -> usize {
        self.reserved.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 10 * FREE;

    fn poll(reservation: &mut Reservation, bytes: usize) -> bool {
        let context = Context::from_waker(Waker::noop());
        reservation.poll(bytes, &context).is_ready()
    }

    #[test]
    fn what_waits_gets_its_part_in_order_and_whoever_leaves_holds_up_no_one() {
        let connection = Rc::new(ConnectionUse::default());
        let reservation = || Reservation::new(Rc::clone(&connection), LIMIT);
        let mut all: Vec<Reservation> = (0..4).map(|_| reservation()).collect();
        assert!(poll(&mut all[0], 8 * FREE));
        assert!(!poll(&mut all[1], 4 * FREE));
        assert!(!poll(&mut all[2], 3 * FREE));
        assert!(!poll(&mut all[3], 2 * FREE), "it would fit, and came later");
        all.remove(1);
        assert!(!poll(&mut all[2], 2 * FREE));
        all.remove(0);
        assert!(poll(&mut all[0], 3 * FREE));
        assert!(poll(&mut all[1], 2 * FREE));
        all.clear();
        assert_eq!(connection.uploads.reserved(), 0);
    }

    #[test]
    fn small_messages_need_no_part_and_one_that_is_larger_than_all_has_all() {
        let connection = Rc::new(ConnectionUse::default());
        let reservation = || Reservation::new(Rc::clone(&connection), LIMIT);
        let (mut large, mut small, mut other) = (reservation(), reservation(), reservation());
        assert!(poll(&mut large, 50 * FREE));
        assert!(poll(&mut small, FREE));
        assert!(!poll(&mut other, FREE + 1));
        drop(large);
        assert!(poll(&mut other, FREE + 1));
    }
}
