mod due;
mod queue;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::borrower::{Borrower, Holder};
use super::delivery::Sender;
use super::held::{Held, Parcel, Vitals};
use super::loans::{LoanId, Loans};
use super::options::enabled;
use super::outage::Outage;
use super::{Error, PoolOptions, Stats};

/// What a waiter gets.
pub(super) type Delivery<C, E> = Result<Parcel<C>, Error<E>>;

/// Names a waiter in the queue; never reused.
pub(super) type Ticket = u64;

struct Waiter<C, E> {
    ticket: Ticket,
    borrower: Borrower,
    since: Instant,
    delivery: Sender<Delivery<C, E>>,
}

/// The connection used last.
pub(super) enum Offer<C> {
    Lent(Parcel<C>),
    Retire(C),
}

/// What is to be done with an idle connection for somebody who waits.
pub(super) enum Step<C> {
    /// Validate it, then [`State::tended`] or [`State::lost`].
    Check(Held<C>),
    Retire(C),
}

/// Where among the idle ones a connection belongs.
#[derive(Debug, Clone, Copy)]
enum Use {
    /// To be lent next.
    Recent,
    /// To be lent last: one that was opened to have it ready must not take the place of one whose caches are warm.
    None,
}

/// Room for a connection that is being opened.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    number: u64,
    since: Instant,
    generation: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// Borrowers wait, nothing is opened.
    Suspended,
    Closed,
}

/// The bookkeeping of one pool. Without `await` and without a clock of its own: each step is indivisible and is told what
/// time it is.
///
/// Every step keeps `idle + in use + creating <= size` (after a reduction of the size, as soon as loans end), and in an open
/// pool nobody waits while something is idle.
pub(super) struct State<C, E> {
    options: PoolOptions,
    /// A stack: the connection used last is lent next, so that surplus ones stay idle.
    idle: Vec<Held<C>>,
    loans: Loans,
    /// Being cleaned or checked.
    tended: usize,
    /// Those of them that are being checked and will most likely be lent.
    checking: usize,
    /// How many idle connections are validated for one waiter: doubled by each that does not answer, 1 again after one that
    /// does. A pool whose peers have all vanished so needs few rounds, and one that is in order never validates more than it
    /// lends.
    checks_per_waiter: usize,
    /// Being opened, by number.
    creating: BTreeMap<u64, Instant>,
    next_room: u64,
    /// First come, first served.
    waiters: VecDeque<Waiter<C, E>>,
    next_ticket: Ticket,
    phase: Phase,
    generation: u64,
    outage: Option<Outage<E>>,
    /// Spreads the ends of lifetimes: fractions of multiples of the golden ratio never crowd.
    spread: f64,
    luck: u64,
    totals: Stats,
}

impl<C, E: Clone> State<C, E> {
    /// `seed` makes pauses after failures differ between pools.
    pub(super) fn new(mut options: PoolOptions, seed: u64) -> Self {
        options.size = options.size.max(1);
        options.minimum_idle = options.minimum_idle.min(options.size);
        options.connect_limit = options.connect_limit.max(1);
        Self {
            options,
            idle: Vec::new(),
            loans: Loans::default(),
            tended: 0,
            checking: 0,
            checks_per_waiter: 1,
            creating: BTreeMap::new(),
            next_room: 0,
            waiters: VecDeque::new(),
            next_ticket: 0,
            phase: Phase::Open,
            generation: 0,
            outage: None,
            spread: 0.0,
            luck: seed | 1,
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
        self.loans.len() + self.tended
    }

    fn total(&self) -> usize {
        self.idle.len() + self.in_use() + self.creating.len()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
    }

    /// True once the pool is closed and nothing of it is left.
    pub(super) fn is_drained(&self) -> bool {
        self.is_closed() && self.total() == 0
    }

    /// Offers the connection used last. Whoever gets `None` has to [`enqueue`](Self::enqueue): there is none, or nobody has
    /// heard from it for longer than `validate_after`.
    pub(super) fn lend_idle(&mut self, borrower: &Borrower, now: Instant) -> Option<Offer<C>> {
        if self.phase != Phase::Open || !self.waiters.is_empty() {
            return None;
        }
        let held = self
            .idle
            .pop_if(|held| !is_silent(held, &self.options, now))?;
        if self.is_stale(&held.vitals) || held.vitals.is_expired(now) {
            return Some(Offer::Retire(self.end(held)));
        }
        let loan = self.loans.open(borrower.clone(), now);
        self.totals.borrowed += 1;
        Some(Offer::Lent(Parcel { held, loan }))
    }

    /// The next idle connection to validate for those who wait: one for each waiter that has none under way.
    pub(super) fn check_idle(&mut self, now: Instant) -> Option<Step<C>> {
        let wanted = self.waiters.len().saturating_mul(self.checks_per_waiter);
        if self.phase != Phase::Open || self.checking >= wanted {
            return None;
        }
        let held = self.idle.pop()?;
        if self.is_stale(&held.vitals) || held.vitals.is_expired(now) {
            return Some(Step::Retire(self.end(held)));
        }
        self.tended += 1;
        self.checking += 1;
        Some(Step::Check(held))
    }

    /// Claims room for one more connection where one is wanted: for a waiter that has none under way, or to have the
    /// minimum ready. Ends in [`connected`](Self::connected) or [`connect_failed`](Self::connect_failed).
    pub(super) fn claim_connect(&mut self, now: Instant) -> Option<Room> {
        let limit = match &self.outage {
            Some(outage) if now < outage.retry_at => 0,
            Some(_) => 1,
            None => self.options.connect_limit,
        };
        let fits = self.total() < self.options.size && self.creating.len() < limit;
        if self.phase != Phase::Open || !fits || !self.wants_connection() {
            return None;
        }
        let room = Room {
            number: self.next_room,
            since: now,
            generation: self.generation,
        };
        self.next_room += 1;
        self.creating.insert(room.number, now);
        Some(room)
    }

    fn wants_connection(&self) -> bool {
        let under_way = self.creating.len() + self.checking;
        let missing = self.options.minimum_idle.saturating_sub(self.idle.len());
        let asked = self.outage.as_ref().is_some_and(|outage| outage.asked);
        under_way < self.waiters.len() + missing || asked && under_way == 0
    }

    /// When the next attempt to connect is due, if one is wanted and waits for its time.
    pub(super) fn retry_at(&self, now: Instant) -> Option<Instant> {
        let outage = self
            .outage
            .as_ref()
            .filter(|outage| now < outage.retry_at)?;
        (self.phase == Phase::Open && self.wants_connection()).then_some(outage.retry_at)
    }

    /// A claimed connection is open. Returns it when it is not wanted any more: the caller closes it.
    pub(super) fn connected(&mut self, room: Room, connection: C, now: Instant) -> Option<C> {
        self.creating.remove(&room.number);
        self.outage = None;
        self.totals.created += 1;
        self.totals
            .creation
            .record(now.saturating_duration_since(room.since));
        let vitals = Vitals {
            expires: self.end_of_life(now),
            seen: now,
            idle_since: now,
            generation: room.generation,
        };
        self.place(Held { connection, vitals }, now, Use::None)
    }

    fn end_of_life(&mut self, now: Instant) -> Option<Instant> {
        const GOLDEN: f64 = 0.618_033_988_749_895;
        let lifetime = enabled(self.options.max_lifetime)?;
        self.spread = (self.spread + GOLDEN).fract();
        let part = 1.0 - self.options.lifetime_jitter.clamp(0.0, 1.0) * self.spread;
        let age = Duration::try_from_secs_f64(lifetime.as_secs_f64() * part).ok()?;
        now.checked_add(age)
    }

    /// A claimed connection could not be opened; without an error its opener vanished.
    ///
    /// Those who have nothing else to hope for learn why.
    pub(super) fn connect_failed(
        &mut self,
        room: Room,
        error: Option<E>,
        down: bool,
        now: Instant,
    ) {
        self.creating.remove(&room.number);
        self.totals.connect_failures += 1;
        if room.generation == self.generation || self.outage.is_some() {
            let luck = self.draw();
            let outage = self.outage.get_or_insert_with(|| Outage::begin(now));
            outage.prolong(error, down, now, luck);
        }
        self.fail_hopeless(now);
    }

    /// A lent connection came back clean. Returns it when it is not wanted any more.
    pub(super) fn give_back(&mut self, parcel: Parcel<C>, now: Instant) -> Option<C> {
        self.end_loan(parcel.loan, now);
        let mut held = parcel.held;
        held.vitals.seen = now;
        self.place(held, now, Use::Recent)
    }

    /// A lent connection is broken; its room is free again.
    pub(super) fn discard(&mut self, parcel: Parcel<C>, now: Instant) -> C {
        self.end_loan(parcel.loan, now);
        self.totals.broken += 1;
        self.end(parcel.held)
    }

    /// A lent connection is gone; its room is free again.
    pub(super) fn vanished(&mut self, loan: LoanId, now: Instant) {
        self.end_loan(loan, now);
        self.totals.broken += 1;
        self.totals.closed += 1;
    }

    /// A lent connection goes into care; ends in [`tended`](Self::tended) or [`lost`](Self::lost).
    pub(super) fn tend(&mut self, parcel: Parcel<C>, now: Instant) -> Held<C> {
        self.end_loan(parcel.loan, now);
        self.tended += 1;
        parcel.held
    }

    /// A connection comes out of care, in order. Returns it when it is not wanted any more.
    pub(super) fn tended(&mut self, mut held: Held<C>, checked: bool, now: Instant) -> Option<C> {
        self.leave_care(checked);
        if checked {
            self.checks_per_waiter = 1;
        }
        held.vitals.seen = now;
        self.place(held, now, Use::Recent)
    }

    /// A connection did not survive its care.
    pub(super) fn lost(&mut self, checked: bool) {
        self.leave_care(checked);
        if checked {
            self.checks_per_waiter = (self.checks_per_waiter * 2).min(self.options.size);
        }
        self.totals.broken += 1;
        self.totals.closed += 1;
    }

    fn leave_care(&mut self, checked: bool) {
        self.tended -= 1;
        self.checking -= usize::from(checked);
    }

    fn end_loan(&mut self, loan: LoanId, now: Instant) {
        let used = self.loans.end(loan, now);
        self.totals.usage.record(used);
    }

    fn end(&mut self, held: Held<C>) -> C {
        self.totals.closed += 1;
        held.connection
    }

    /// To the first waiter, else to the idle ones. Returns it when it has to be closed.
    fn place(&mut self, mut held: Held<C>, now: Instant, used: Use) -> Option<C> {
        let surplus = self.total() >= self.options.size;
        if self.is_closed() || surplus || self.is_stale(&held.vitals) || self.is_spent(&held, now) {
            return Some(self.end(held));
        }
        while self.phase == Phase::Open {
            let Some(waiter) = self.waiters.pop_front() else {
                break;
            };
            let loan = self.loans.open(waiter.borrower, now);
            match waiter.delivery.send(Ok(Parcel { held, loan })) {
                Ok(()) => {
                    self.totals.borrowed += 1;
                    self.totals
                        .note_wait(now.saturating_duration_since(waiter.since));
                    return None;
                }
                Err(Ok(unclaimed)) => {
                    self.loans.end(unclaimed.loan, now);
                    held = unclaimed.held;
                }
                Err(Err(_)) => return None,
            }
        }
        held.vitals.idle_since = now;
        match used {
            Use::Recent => self.idle.push(held),
            Use::None => self.idle.insert(0, held),
        }
        None
    }

    fn is_stale(&self, vitals: &Vitals) -> bool {
        vitals.generation != self.generation
    }

    /// Past its lifetime, and nobody waits or it has been long enough.
    fn is_spent(&mut self, held: &Held<C>, now: Instant) -> bool {
        let Some(expires) = held.vitals.expires else {
            return false;
        };
        let patience = match self.waiters.is_empty() {
            true => Duration::ZERO,
            false => self.options.renewal_timeout,
        };
        let spent = expires.checked_add(patience).is_some_and(|end| now >= end);
        self.totals.expired += u64::from(spent);
        spent
    }

    pub(super) fn holders(&self, now: Instant) -> Vec<Holder> {
        self.loans.holders(now)
    }

    pub(super) fn note(&mut self, loan: LoanId, statement: &Arc<str>) {
        self.loans.note(loan, statement);
    }

    /// Changes the size. Idle connections that do not fit any more are the caller's to close; lent ones go when they come
    /// back.
    pub(super) fn resize(&mut self, size: usize, minimum_idle: usize) -> Vec<C> {
        self.options.size = size.max(1);
        self.options.minimum_idle = minimum_idle.min(self.options.size);
        let surplus = self
            .total()
            .saturating_sub(self.options.size)
            .min(self.idle.len());
        let gone: Vec<_> = self.idle.drain(..surplus).collect();
        gone.into_iter().map(|held| self.end(held)).collect()
    }

    /// Nothing is lent or opened from now on; borrowers wait.
    pub(super) fn suspend(&mut self) {
        if self.phase == Phase::Open {
            self.phase = Phase::Suspended;
        }
    }

    /// Serves who waits from what is idle. Returns what had to be closed.
    pub(super) fn resume(&mut self, now: Instant) -> Vec<C> {
        let mut gone = Vec::new();
        if self.phase != Phase::Suspended {
            return gone;
        }
        self.phase = Phase::Open;
        while !self.waiters.is_empty() {
            let Some(held) = self.idle.pop() else { break };
            gone.extend(self.place(held, now, Use::Recent));
        }
        gone
    }

    /// Replaces every connection: the idle ones are the caller's to close, the others go when they come back.
    pub(super) fn reset(&mut self) -> Vec<C> {
        self.generation += 1;
        self.outage = None;
        self.give_up_idle()
    }

    /// Refuses everybody from now on; the idle connections are the caller's to close.
    pub(super) fn close(&mut self) -> Vec<C> {
        self.phase = Phase::Closed;
        let pool = &self.options.name;
        for waiter in self.waiters.drain(..) {
            // A waiter that is just leaving does not need the news.
            let _ = waiter
                .delivery
                .send(Err(Error::Closed { pool: pool.clone() }));
        }
        self.give_up_idle()
    }

    fn give_up_idle(&mut self) -> Vec<C> {
        let idle = std::mem::take(&mut self.idle);
        idle.into_iter().map(|held| self.end(held)).collect()
    }

    /// The next of a row of numbers from 0 to 1 (xorshift64).
    fn draw(&mut self) -> f64 {
        self.luck ^= self.luck << 13;
        self.luck ^= self.luck >> 7;
        self.luck ^= self.luck << 17;
        (self.luck >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Whether nobody has heard from it for so long that it must answer before it is lent.
fn is_silent<C>(held: &Held<C>, options: &PoolOptions, now: Instant) -> bool {
    let silence = now.saturating_duration_since(held.vitals.seen);
    enabled(options.validate_after).is_some_and(|most| silence >= most)
}
