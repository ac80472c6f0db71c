mod queue;
mod reap;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::backoff::Backoff;
use super::borrower::{Borrower, Holder};
use super::conn::{Checkout, Conn, ConnMeta};
use super::leases::{LeaseId, Leases};
use super::oneshot::Sender;
use super::options::enabled;
use super::{Error, PoolOptions, Stats};

/// The outcome of a borrow that waited.
pub(super) type Acquired<C, E> = Result<Checkout<C>, Error<E>>;

/// Identifies a waiter in the queue. Never reused.
pub(super) type Ticket = u64;

struct Waiter<C, E> {
    ticket: Ticket,
    borrower: Borrower,
    since: Instant,
    acquired: Sender<Acquired<C, E>>,
}

/// The idle connection that was used last.
pub(super) enum IdleOffer<C> {
    Lent(Checkout<C>),
    /// Past its lifetime; the caller closes it.
    Expired(C),
}

/// An idle connection that a waiter may get.
pub(super) enum IdleCheck<C> {
    /// The caller validates it and calls [`State::finish_maintenance`] or [`State::fail_maintenance`].
    Validate(Conn<C>),
    /// Past its lifetime; the caller closes it.
    Expired(C),
}

/// Where a connection goes among the idle ones.
#[derive(Debug, Clone, Copy)]
enum Reuse {
    /// It is lent next, because the server's caches for it are warm.
    Next,
    /// It is lent last: a connection that was opened in advance must not displace one that is in use.
    Last,
}

/// Room for a connection that is being opened.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectSlot {
    number: u64,
    since: Instant,
    generation: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// Borrowers wait, and no connection is opened.
    Paused,
    Closed,
}

/// The bookkeeping of one pool: a state machine without `await` and without a clock. Each call is atomic and is passed the
/// current time, so a model test can explore all orders of events.
///
/// Invariants: `idle + in use + creating <= size`, after a reduction of the size as soon as leases end; in an open pool, no
/// borrower waits while a connection is idle.
pub(super) struct State<C, E> {
    options: PoolOptions,
    /// A stack: the connection that was used last is lent next, so surplus connections stay idle until they are closed.
    idle: Vec<Conn<C>>,
    leases: Leases,
    /// Connections that are being cleaned or validated.
    in_maintenance: usize,
    /// Those that are being validated; most of them will be lent.
    validating: usize,
    /// How many idle connections are validated at a time for each waiter. It doubles with each failed validation and returns
    /// to 1 with a successful one: a pool whose server has gone finds that out in few rounds, and a healthy pool validates no
    /// more connections than it lends.
    validations_per_waiter: usize,
    /// Connections that are being opened: since when, by slot number.
    creating: BTreeMap<u64, Instant>,
    next_slot: u64,
    /// In the order in which they are served.
    waiters: VecDeque<Waiter<C, E>>,
    next_ticket: Ticket,
    phase: Phase,
    generation: u64,
    backoff: Option<Backoff<E>>,
    /// The last fraction of a multiple of the golden ratio. These fractions are evenly spread, and so are lifetimes.
    lifetime_spread: f64,
    random: u64,
    totals: Stats,
}

impl<C, E: Clone> State<C, E> {
    /// `seed` makes the back-off delays of several pools differ.
    pub(super) fn new(mut options: PoolOptions, seed: u64) -> Self {
        options.size = options.size.max(1);
        options.minimum_idle = options.minimum_idle.min(options.size);
        options.connect_limit = options.connect_limit.max(1);
        Self {
            options,
            idle: Vec::new(),
            leases: Leases::default(),
            in_maintenance: 0,
            validating: 0,
            validations_per_waiter: 1,
            creating: BTreeMap::new(),
            next_slot: 0,
            waiters: VecDeque::new(),
            next_ticket: 0,
            phase: Phase::Open,
            generation: 0,
            backoff: None,
            lifetime_spread: 0.0,
            random: seed | 1,
            totals: Stats::default(),
        }
    }

    pub(super) fn options(&self) -> &PoolOptions {
        &self.options
    }

    pub(super) fn stats(&self) -> Stats {
        Stats {
            size: self.options.size,
            idle: self.idle.len(),
            in_use: self.in_use(),
            connecting: self.creating.len(),
            waiting: self.waiters.len(),
            ..self.totals
        }
    }

    pub(super) fn in_use(&self) -> usize {
        self.leases.len() + self.in_maintenance
    }

    fn total(&self) -> usize {
        self.idle.len() + self.in_use() + self.creating.len()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
    }

    /// Whether the pool is closed and has no connection left.
    pub(super) fn is_drained(&self) -> bool {
        self.is_closed() && self.total() == 0
    }

    /// Lends the connection that was used last. Returns `None` when no connection is idle, when it must be validated first, or
    /// when others wait: the caller then calls [`enqueue`](Self::enqueue).
    pub(super) fn lend_idle(&mut self, borrower: &Borrower, now: Instant) -> Option<IdleOffer<C>> {
        if self.phase != Phase::Open || !self.waiters.is_empty() {
            return None;
        }
        let conn = self
            .idle
            .pop_if(|conn| !needs_validation(conn, &self.options, now))?;
        if self.is_stale(&conn.meta) || conn.meta.is_expired(now) {
            return Some(IdleOffer::Expired(self.retire(conn)));
        }
        let lease = self.leases.open(borrower.clone(), now);
        self.totals.borrowed += 1;
        Some(IdleOffer::Lent(Checkout { conn, lease }))
    }

    /// The next idle connection to validate for a waiter that has none under way.
    pub(super) fn next_validation(&mut self, now: Instant) -> Option<IdleCheck<C>> {
        let wanted = self
            .waiters
            .len()
            .saturating_mul(self.validations_per_waiter);
        if self.phase != Phase::Open || self.validating >= wanted {
            return None;
        }
        let conn = self.idle.pop()?;
        if self.is_stale(&conn.meta) || conn.meta.is_expired(now) {
            return Some(IdleCheck::Expired(self.retire(conn)));
        }
        self.in_maintenance += 1;
        self.validating += 1;
        Some(IdleCheck::Validate(conn))
    }

    /// Claims room for one more connection, for a waiter that has none under way or for the minimum of idle connections. The
    /// caller then calls [`connected`](Self::connected) or [`connect_failed`](Self::connect_failed).
    pub(super) fn claim_connect(&mut self, now: Instant) -> Option<ConnectSlot> {
        let limit = match &self.backoff {
            Some(backoff) if now < backoff.retry_at => 0,
            Some(_) => 1,
            None => self.options.connect_limit,
        };
        let fits = self.total() < self.options.size && self.creating.len() < limit;
        if self.phase != Phase::Open || !fits || !self.wants_connection() {
            return None;
        }
        let slot = ConnectSlot {
            number: self.next_slot,
            since: now,
            generation: self.generation,
        };
        self.next_slot += 1;
        self.creating.insert(slot.number, now);
        Some(slot)
    }

    fn wants_connection(&self) -> bool {
        let under_way = self.creating.len() + self.validating;
        let missing = self.options.minimum_idle.saturating_sub(self.idle.len());
        let was_requested = self
            .backoff
            .as_ref()
            .is_some_and(|backoff| backoff.was_requested);
        under_way < self.waiters.len() + missing || was_requested && under_way == 0
    }

    /// When the next attempt to connect is due, if a connection is wanted and the back-off delay has not passed.
    pub(super) fn retry_at(&self, now: Instant) -> Option<Instant> {
        let backoff = self
            .backoff
            .as_ref()
            .filter(|backoff| now < backoff.retry_at)?;
        (self.phase == Phase::Open && self.wants_connection()).then_some(backoff.retry_at)
    }

    /// Adds a connection that was opened. Returns it if the pool has no use for it; the caller closes it.
    pub(super) fn connected(
        &mut self,
        slot: ConnectSlot,
        connection: C,
        now: Instant,
    ) -> Option<C> {
        self.creating.remove(&slot.number);
        self.backoff = None;
        self.totals.created += 1;
        self.totals
            .creation
            .record(now.saturating_duration_since(slot.since));
        let meta = ConnMeta {
            expires_at: self.end_of_lifetime(now),
            last_seen: now,
            idle_since: now,
            generation: slot.generation,
        };
        self.hand_over(Conn { connection, meta }, now, Reuse::Last)
    }

    fn end_of_lifetime(&mut self, now: Instant) -> Option<Instant> {
        const GOLDEN: f64 = 0.618_033_988_749_895;
        let lifetime = enabled(self.options.max_lifetime)?;
        self.lifetime_spread = (self.lifetime_spread + GOLDEN).fract();
        let part = 1.0 - self.options.lifetime_jitter.clamp(0.0, 1.0) * self.lifetime_spread;
        let age = Duration::try_from_secs_f64(lifetime.as_secs_f64() * part).ok()?;
        now.checked_add(age)
    }

    /// Records that a connection could not be opened, without an error when the attempt timed out or was dropped.
    ///
    /// Fails the waiters that no other connection can serve.
    pub(super) fn connect_failed(
        &mut self,
        slot: ConnectSlot,
        error: Option<E>,
        is_down: bool,
        now: Instant,
    ) {
        self.creating.remove(&slot.number);
        self.totals.connect_failures += 1;
        if slot.generation == self.generation || self.backoff.is_some() {
            let jitter = self.next_random();
            let backoff = self.backoff.get_or_insert_with(|| Backoff::start(now));
            backoff.record_failure(error, is_down, now, jitter);
        }
        self.fail_stranded(now);
    }

    /// Takes back a clean connection. Returns it if the pool has no use for it; the caller closes it.
    pub(super) fn check_in(&mut self, checkout: Checkout<C>, now: Instant) -> Option<C> {
        self.end_lease(checkout.lease, now);
        let mut conn = checkout.conn;
        conn.meta.last_seen = now;
        self.hand_over(conn, now, Reuse::Next)
    }

    /// Ends the lease of a broken connection; the caller closes it.
    pub(super) fn discard(&mut self, checkout: Checkout<C>, now: Instant) -> C {
        self.end_lease(checkout.lease, now);
        self.totals.broken += 1;
        self.retire(checkout.conn)
    }

    /// Ends the lease of a connection that was dropped.
    pub(super) fn lease_lost(&mut self, lease: LeaseId, now: Instant) {
        self.end_lease(lease, now);
        self.totals.broken += 1;
        self.totals.closed += 1;
    }

    /// Takes a returned connection out for cleaning. The caller then calls [`finish_maintenance`](Self::finish_maintenance)
    /// or [`fail_maintenance`](Self::fail_maintenance).
    pub(super) fn begin_maintenance(&mut self, checkout: Checkout<C>, now: Instant) -> Conn<C> {
        self.end_lease(checkout.lease, now);
        self.in_maintenance += 1;
        checkout.conn
    }

    /// Takes back a connection that was cleaned or validated. Returns it if the pool has no use for it.
    pub(super) fn finish_maintenance(
        &mut self,
        mut conn: Conn<C>,
        was_validated: bool,
        now: Instant,
    ) -> Option<C> {
        self.end_maintenance(was_validated);
        if was_validated {
            self.validations_per_waiter = 1;
        }
        conn.meta.last_seen = now;
        self.hand_over(conn, now, Reuse::Next)
    }

    /// Records that a connection was closed because it could not be cleaned or did not answer.
    pub(super) fn fail_maintenance(&mut self, was_validated: bool) {
        self.end_maintenance(was_validated);
        if was_validated {
            self.validations_per_waiter = (self.validations_per_waiter * 2).min(self.options.size);
        }
        self.totals.broken += 1;
        self.totals.closed += 1;
    }

    fn end_maintenance(&mut self, was_validated: bool) {
        self.in_maintenance -= 1;
        self.validating -= usize::from(was_validated);
    }

    fn end_lease(&mut self, lease: LeaseId, now: Instant) {
        let used = self.leases.end(lease, now);
        self.totals.usage.record(used);
    }

    fn retire(&mut self, conn: Conn<C>) -> C {
        self.totals.closed += 1;
        conn.connection
    }

    /// Lends a connection to the first waiter, or adds it to the idle ones. Returns it when the caller has to close it.
    fn hand_over(&mut self, mut conn: Conn<C>, now: Instant, reuse: Reuse) -> Option<C> {
        let surplus = self.total() >= self.options.size;
        if self.is_closed() || surplus || self.is_stale(&conn.meta) || self.has_expired(&conn, now)
        {
            return Some(self.retire(conn));
        }
        while self.phase == Phase::Open {
            let Some(waiter) = self.waiters.pop_front() else {
                break;
            };
            let lease = self.leases.open(waiter.borrower, now);
            match waiter.acquired.send(Ok(Checkout { conn, lease })) {
                Ok(()) => {
                    self.totals.borrowed += 1;
                    self.totals
                        .record_wait(now.saturating_duration_since(waiter.since));
                    return None;
                }
                Err(Ok(unclaimed)) => {
                    self.leases.end(unclaimed.lease, now);
                    conn = unclaimed.conn;
                }
                Err(Err(_)) => return None,
            }
        }
        conn.meta.idle_since = now;
        match reuse {
            Reuse::Next => self.idle.push(conn),
            Reuse::Last => self.idle.insert(0, conn),
        }
        None
    }

    fn is_stale(&self, meta: &ConnMeta) -> bool {
        meta.generation != self.generation
    }

    /// Whether a connection is past its lifetime; while borrowers wait, it stays in use for `renewal_timeout` more.
    fn has_expired(&mut self, conn: &Conn<C>, now: Instant) -> bool {
        let Some(expires_at) = conn.meta.expires_at else {
            return false;
        };
        let grace = match self.waiters.is_empty() {
            true => Duration::ZERO,
            false => self.options.renewal_timeout,
        };
        let has_expired = expires_at.checked_add(grace).is_some_and(|end| now >= end);
        self.totals.expired += u64::from(has_expired);
        has_expired
    }

    pub(super) fn holders(&self, now: Instant) -> Vec<Holder> {
        self.leases.holders(now)
    }

    pub(super) fn set_statement(&mut self, lease: LeaseId, statement: &Arc<str>) {
        self.leases.set_statement(lease, statement);
    }

    pub(super) fn disown(&mut self, lease: LeaseId) {
        self.leases.disown(lease);
    }

    pub(super) fn is_held_by(&self, task: u64) -> bool {
        self.leases.is_held_by(task)
    }

    /// The number of connections that can be lent before one is returned.
    pub(super) fn available(&self) -> usize {
        self.idle.len() + self.creating.len() + self.validating
    }

    /// Changes the size. Returns surplus idle connections for the caller to close; surplus lent ones are closed when they are
    /// returned.
    pub(super) fn resize(&mut self, size: usize, minimum_idle: usize) -> Vec<C> {
        self.options.size = size.max(1);
        self.options.minimum_idle = minimum_idle.min(self.options.size);
        let surplus = self
            .total()
            .saturating_sub(self.options.size)
            .min(self.idle.len());
        let gone: Vec<_> = self.idle.drain(..surplus).collect();
        gone.into_iter().map(|conn| self.retire(conn)).collect()
    }

    /// Stops lending and connecting; borrowers wait.
    pub(super) fn pause(&mut self) {
        if self.phase == Phase::Open {
            self.phase = Phase::Paused;
        }
    }

    /// Lends and connects again. The waiters get idle connections through [`next_validation`](Self::next_validation) only: the
    /// server may have been replaced meanwhile.
    pub(super) fn resume(&mut self) {
        if self.phase == Phase::Paused {
            self.phase = Phase::Open;
        }
    }

    /// Replaces every connection. Returns the idle ones for the caller to close; lent ones are closed when they are returned.
    pub(super) fn reset(&mut self) -> Vec<C> {
        self.generation += 1;
        self.backoff = None;
        self.take_idle()
    }

    /// Refuses all borrowers from now on. Returns the idle connections for the caller to close.
    pub(super) fn close(&mut self) -> Vec<C> {
        self.phase = Phase::Closed;
        let pool = &self.options.name;
        for waiter in self.waiters.drain(..) {
            // Fails only when the waiter has just left.
            let _ = waiter
                .acquired
                .send(Err(Error::Closed { pool: pool.clone() }));
        }
        self.take_idle()
    }

    fn take_idle(&mut self) -> Vec<C> {
        let idle = std::mem::take(&mut self.idle);
        idle.into_iter().map(|conn| self.retire(conn)).collect()
    }

    /// A pseudo-random number from 0 to 1 (xorshift64).
    fn next_random(&mut self) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Whether a connection was unused for so long that it must be validated before it is lent.
fn needs_validation<C>(conn: &Conn<C>, options: &PoolOptions, now: Instant) -> bool {
    let silence = now.saturating_duration_since(conn.meta.last_seen);
    enabled(options.validate_after).is_some_and(|most| silence >= most)
}
