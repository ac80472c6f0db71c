use std::collections::VecDeque;

use tokio::sync::oneshot;

/// What the pool holds and has done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// The most connections there may be.
    pub size: usize,
    pub idle: usize,
    /// Lent, or being cleaned after a borrower let go of them half-way.
    pub in_use: usize,
    /// Being opened.
    pub connecting: usize,
    /// Borrowers in the queue.
    pub waiting: usize,
    pub created: u64,
    /// Connections that ended, broken ones included.
    pub closed: u64,
    pub broken: u64,
    pub connect_failures: u64,
    pub borrowed: u64,
    /// Borrows that had to wait.
    pub waited: u64,
    pub timeouts: u64,
}

pub(super) type Delivery<C, E> = Result<C, Refusal<E>>;

#[derive(Debug)]
pub(super) enum Refusal<E> {
    Closed,
    Connect(E),
}

/// Names a waiter in the queue; never reused.
pub(super) type Ticket = u64;

struct Waiter<C, E> {
    ticket: Ticket,
    delivery: oneshot::Sender<Delivery<C, E>>,
}

/// The bookkeeping of one pool. Every step keeps `idle + in_use + connecting <= size`, and nobody waits while something
/// is idle.
pub(super) struct State<C, E> {
    size: usize,
    /// A stack: the connection used last is lent next, so that surplus ones stay idle.
    idle: Vec<C>,
    in_use: usize,
    connecting: usize,
    /// First come, first served.
    waiters: VecDeque<Waiter<C, E>>,
    next_ticket: Ticket,
    closed: bool,
    totals: Stats,
}

impl<C, E> State<C, E> {
    pub(super) fn new(size: usize) -> Self {
        Self {
            size,
            idle: Vec::new(),
            in_use: 0,
            connecting: 0,
            waiters: VecDeque::new(),
            next_ticket: 0,
            closed: false,
            totals: Stats::default(),
        }
    }

    pub(super) fn stats(&self) -> Stats {
        Stats {
            size: self.size,
            idle: self.idle.len(),
            in_use: self.in_use,
            connecting: self.connecting,
            waiting: self.waiters.len(),
            ..self.totals
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// True once the pool is closed and nothing of it is left.
    pub(super) fn is_drained(&self) -> bool {
        self.closed && self.idle.is_empty() && self.in_use == 0 && self.connecting == 0
    }

    /// Lends the connection used last. Whoever gets `None` has to [`enqueue`](Self::enqueue).
    pub(super) fn lend_idle(&mut self) -> Option<C> {
        let connection = self.idle.pop()?;
        self.in_use += 1;
        Some(connection)
    }

    pub(super) fn enqueue(&mut self) -> (Ticket, oneshot::Receiver<Delivery<C, E>>) {
        let (delivery, receiver) = oneshot::channel();
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.waiters.push_back(Waiter { ticket, delivery });
        self.totals.waited += 1;
        (ticket, receiver)
    }

    /// Takes a waiter out of the queue, if it is still there.
    pub(super) fn forget(&mut self, ticket: Ticket) {
        self.waiters.retain(|waiter| waiter.ticket != ticket);
    }

    /// Claims room for one more connection when a waiter has none under way. The claim ends in
    /// [`connected`](Self::connected) or [`connect_failed`](Self::connect_failed).
    pub(super) fn claim_connect(&mut self) -> bool {
        let total = self.idle.len() + self.in_use + self.connecting;
        let wanted = !self.closed && self.connecting < self.waiters.len() && total < self.size;
        self.connecting += usize::from(wanted);
        wanted
    }

    /// Whether every waiter, the last one included, has a connection under way.
    pub(super) fn opens_for_everybody(&self) -> bool {
        self.connecting >= self.waiters.len()
    }

    /// A claimed connection is open. Returns it when the pool has closed meanwhile: the caller closes it.
    pub(super) fn connected(&mut self, connection: C) -> Option<C> {
        self.connecting -= 1;
        self.totals.created += 1;
        self.place(connection)
    }

    /// A claimed connection could not be opened: the first waiter learns why.
    pub(super) fn connect_failed(&mut self, error: E) {
        self.connecting -= 1;
        self.totals.connect_failures += 1;
        let mut refusal = Err(Refusal::Connect(error));
        while let Some(waiter) = self.waiters.pop_front() {
            match waiter.delivery.send(refusal) {
                Ok(()) => return,
                Err(unheard) => refusal = unheard,
            }
        }
    }

    /// The opener of a claimed connection vanished without an outcome.
    pub(super) fn connect_abandoned(&mut self) {
        self.connecting -= 1;
    }

    /// A lent connection came back clean. Returns it when the pool has closed meanwhile.
    pub(super) fn give_back(&mut self, connection: C) -> Option<C> {
        self.in_use -= 1;
        self.place(connection)
    }

    /// A lent connection is gone; its room is free again.
    pub(super) fn discard(&mut self) {
        self.in_use -= 1;
        self.totals.closed += 1;
        self.totals.broken += 1;
    }

    pub(super) fn count_borrowed(&mut self) {
        self.totals.borrowed += 1;
    }

    pub(super) fn count_timeout(&mut self) {
        self.totals.timeouts += 1;
    }

    /// Refuses everybody from now on; the idle connections are the caller's to close.
    pub(super) fn close(&mut self) -> Vec<C> {
        self.closed = true;
        for waiter in self.waiters.drain(..) {
            // A waiter that is just leaving does not need the news.
            let _ = waiter.delivery.send(Err(Refusal::Closed));
        }
        let idle = std::mem::take(&mut self.idle);
        self.totals.closed += idle.len() as u64;
        idle
    }

    /// To the first waiter, else to the idle ones.
    fn place(&mut self, connection: C) -> Option<C> {
        if self.closed {
            self.totals.closed += 1;
            return Some(connection);
        }
        let mut parcel = Ok(connection);
        while let Some(waiter) = self.waiters.pop_front() {
            match waiter.delivery.send(parcel) {
                Ok(()) => {
                    self.in_use += 1;
                    return None;
                }
                Err(unclaimed) => parcel = unclaimed,
            }
        }
        if let Ok(connection) = parcel {
            self.idle.push(connection);
        }
        None
    }
}
