use std::cell::{Cell, RefCell};
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::borrower::{Borrower, Holder};
use super::care::{Care, Claim, Kind};
use super::held::{Held, Parcel};
use super::loans::LoanId;
use super::nursery::{Alarm, Nursery};
use super::options::enabled;
use super::place::Place;
use super::state::{Offer, Room, State, Step};
use super::{Condition, Error, Manage, PoolOptions};

pub(super) struct Inner<M: Manage> {
    pub(super) manager: M,
    pub(super) state: RefCell<State<M::Connection, M::Error>>,
    pub(super) nursery: Nursery,
    drained: Notify,
    /// When somebody borrowed last.
    borrowed: Cell<Instant>,
    looks: Looks,
    /// Waits to try to connect again.
    retry: Alarm,
    /// Waits for the first in the queue to have waited for long enough.
    patience: Alarm,
    pub(super) on_leak: RefCell<Option<LeakReport>>,
}

type LeakReport = Box<dyn Fn(Holder)>;

/// After so long without a borrower the state of the sockets is asked for anew.
const LULL: Duration = Duration::from_millis(50);

impl<M: Manage> Inner<M> {
    pub(super) fn new(manager: M, options: PoolOptions) -> Self {
        Self {
            state: RefCell::new(State::new(options, RandomState::new().hash_one(0))),
            manager,
            nursery: Nursery::new(),
            drained: Notify::new(),
            borrowed: Cell::new(Instant::now()),
            looks: Looks::default(),
            retry: Alarm::default(),
            patience: Alarm::default(),
            on_leak: RefCell::default(),
        }
    }

    pub(super) async fn borrow(
        self: &Rc<Self>,
        borrower: Borrower,
    ) -> Result<Parcel<M::Connection>, Error<M::Error>> {
        self.attend();
        let mut now = Instant::now();
        let is_first = now.saturating_duration_since(self.borrowed.replace(now)) > LULL;
        if is_first || self.looks.are_under_way() {
            self.looks.await_one().await;
            now = Instant::now();
        }
        match self.lend_idle(&borrower, now) {
            Some(parcel) => Ok(parcel),
            None => self.wait(borrower, now).await,
        }
    }

    /// Whether a borrower that does not wait would overtake others, which wait for the loop.
    pub(super) fn has_lookers(&self) -> bool {
        self.looks.are_under_way()
    }

    /// Lends what is idle and needs no look at first.
    pub(super) fn lend_idle(
        self: &Rc<Self>,
        borrower: &Borrower,
        now: Instant,
    ) -> Option<Parcel<M::Connection>> {
        loop {
            let offer = self.state.borrow_mut().lend_idle(borrower, now)?;
            match offer {
                Offer::Lent(mut parcel) => {
                    if self.manager.condition(parcel.connection()) == Condition::Clean {
                        return Some(parcel);
                    }
                    self.discard(parcel);
                }
                Offer::Retire(connection) => self.retire(Some(connection)),
            }
        }
    }

    /// Lets the manager see what is lent.
    pub(super) async fn show(
        self: &Rc<Self>,
        parcel: Parcel<M::Connection>,
    ) -> Result<Parcel<M::Connection>, Error<M::Error>> {
        let within = self.state.borrow().options().borrow_timeout;
        let showing = Showing {
            pool: self,
            loan: parcel.loan,
        };
        let (connection, held_again) = parcel.held.split();
        let connection = self.manager.lend(connection, within).await;
        let held = held_again(connection.map_err(Error::Connect)?);
        let loan = showing.loan;
        std::mem::forget(showing);
        Ok(Parcel { held, loan })
    }

    pub(super) fn take_back(self: &Rc<Self>, mut parcel: Parcel<M::Connection>) {
        match self.manager.condition(parcel.connection()) {
            Condition::Clean if !self.manager.sees_returns() => {
                let surplus = self.state.borrow_mut().give_back(parcel, Instant::now());
                if surplus.is_some() {
                    self.retire(surplus);
                    self.grow();
                }
            }
            Condition::Broken => self.discard(parcel),
            Condition::Clean | Condition::Dirty => {
                let held = self.state.borrow_mut().tend(parcel, Instant::now());
                self.care_for(held, Kind::Recovery);
            }
        }
    }

    /// Drops a lent connection, whatever its condition.
    pub(super) fn discard(self: &Rc<Self>, parcel: Parcel<M::Connection>) {
        let connection = self.state.borrow_mut().discard(parcel, Instant::now());
        self.retire(Some(connection));
        self.grow();
    }

    pub(super) async fn close(self: &Rc<Self>) {
        let idle = self.state.borrow_mut().close();
        self.retire(idle);
        while !self.state.borrow().is_drained() {
            self.drained.notified().await;
        }
        // Whoever else waits for the end of the pool.
        self.drained.notify_one();
    }

    async fn wait(
        self: &Rc<Self>,
        borrower: Borrower,
        now: Instant,
    ) -> Result<Parcel<M::Connection>, Error<M::Error>> {
        let task = borrower.task;
        let place = self.queue_up(borrower, now)?;
        if self.state.borrow().is_self_blocked(task) {
            // What is being cancelled at this moment has not let go yet.
            tokio::task::yield_now().await;
            if self.state.borrow().is_self_blocked(task) {
                return Err(self.self_blocked());
            }
        }
        if !place.has_arrived() && self.waits_for_nobody() {
            return Err(self.state.borrow_mut().timed_out(now));
        }
        place.await
    }

    /// A place at the end of the queue, and a connection on the way where there is room for it.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::Down`].
    pub(super) fn queue_up(
        self: &Rc<Self>,
        borrower: Borrower,
        now: Instant,
    ) -> Result<Place<M>, Error<M::Error>> {
        if self.state.borrow().is_closed() {
            let pool = self.name();
            return Err(Error::Closed { pool });
        }
        let refusal = self.state.borrow_mut().refuse(now);
        if let Some(refusal) = refusal {
            self.grow();
            return Err(refusal);
        }
        let (ticket, delivery) = self.state.borrow_mut().enqueue(borrower, now);
        let place = Place::new(self, ticket, delivery);
        self.mind_patience();
        self.grow();
        Ok(place)
    }

    /// With a timeout of zero only a connection that is opened for the borrower is worth his wait.
    pub(super) fn waits_for_nobody(&self) -> bool {
        let state = self.state.borrow();
        state.options().borrow_timeout.is_zero() && !state.opens_for_everybody()
    }

    /// Ends the wait of those who have waited for long enough.
    fn mind_patience(self: &Rc<Self>) {
        if self.state.borrow().options().borrow_timeout.is_zero() {
            return;
        }
        let Some(alarm) = self.patience.set() else {
            return;
        };
        let pool = Rc::downgrade(self);
        self.nursery.spawn(async move {
            let _alarm = alarm;
            while let Some(pool) = pool.upgrade() {
                let next = pool.state.borrow_mut().expire(Instant::now());
                drop(pool);
                let Some(next) = next else { return };
                tokio::time::sleep_until(next).await;
            }
        });
    }

    /// Validates idle connections and opens new ones where somebody waits for them, as far as there is room.
    pub(super) fn grow(self: &Rc<Self>) {
        let now = Instant::now();
        loop {
            let step = self.state.borrow_mut().check_idle(now);
            match step {
                Some(Step::Check(held)) => self.care_for(held, Kind::Check),
                Some(Step::Retire(connection)) => self.retire(Some(connection)),
                None => break,
            }
        }
        loop {
            let claim = self.state.borrow_mut().claim_connect(now);
            let Some(room) = claim else { break };
            self.nursery.spawn(Claim::new(self, room).run());
        }
        let mut state = self.state.borrow_mut();
        state.fail_hopeless(now);
        let retry_at = state.retry_at(now);
        drop(state);
        if let Some(at) = retry_at
            && let Some(alarm) = self.retry.set()
        {
            let pool = Rc::downgrade(self);
            self.nursery.spawn(async move {
                tokio::time::sleep_until(at).await;
                drop(alarm);
                if let Some(pool) = pool.upgrade() {
                    pool.grow();
                }
            });
        }
    }

    pub(super) fn connected(
        self: &Rc<Self>,
        room: Room,
        outcome: Result<M::Connection, Option<M::Error>>,
    ) {
        let now = Instant::now();
        let surplus = match outcome {
            Ok(connection) => self.state.borrow_mut().connected(room, connection, now),
            Err(error) => {
                let down = error
                    .as_ref()
                    .is_some_and(|error| self.manager.is_down(error));
                self.state
                    .borrow_mut()
                    .connect_failed(room, error, down, now);
                None
            }
        };
        self.retire(surplus);
        self.grow();
    }

    pub(super) fn care_for(self: &Rc<Self>, held: Held<M::Connection>, kind: Kind) {
        self.nursery.spawn(Care::new(self, kind).run(held));
    }

    /// A connection comes out of care; one that still is not in order never does.
    pub(super) fn cared_for(self: &Rc<Self>, healthy: Option<Held<M::Connection>>, kind: Kind) {
        let checked = kind == Kind::Check;
        let surplus = match healthy {
            Some(held) => self
                .state
                .borrow_mut()
                .tended(held, checked, Instant::now()),
            None => {
                self.state.borrow_mut().lost(checked);
                None
            }
        };
        self.retire(surplus);
        self.grow();
    }

    pub(super) fn retire(&self, connections: impl IntoIterator<Item = M::Connection>) {
        for connection in connections {
            self.manager.close(connection);
        }
        if self.state.borrow().is_drained() {
            self.drained.notify_one();
        }
    }

    fn name(&self) -> String {
        self.state.borrow().options().name.clone()
    }

    fn self_blocked(&self) -> Error<M::Error> {
        let state = self.state.borrow();
        Error::SelfBlocked {
            pool: state.options().name.clone(),
            size: state.options().size,
            holders: state.holders(Instant::now()),
        }
    }

    /// The upkeep and everything spawned run from now on. Inside a `LocalSet` task only.
    pub(super) fn attend(self: &Rc<Self>) {
        if self.nursery.open() {
            self.keep_up();
        }
    }

    pub(super) fn limit(&self, kind: Kind) -> Duration {
        let state = self.state.borrow();
        match kind {
            Kind::Check => state.options().validation_timeout,
            Kind::Recovery => state.options().return_timeout,
        }
    }

    pub(super) fn create_timeout(&self) -> Duration {
        let timeout = self.state.borrow().options().create_timeout;
        enabled(timeout).unwrap_or(Duration::MAX)
    }
}

/// Borrowers that wait until the loop has looked at the sockets, in the order in which they came.
///
/// A process that blocks between statements does not pump its loop: that a server has hung up meanwhile is known only after
/// the loop has looked, which it does before it resumes a task that yields.
#[derive(Default)]
struct Looks {
    waiting: Cell<usize>,
    is_looking: Cell<bool>,
    looked: Notify,
}

impl Looks {
    fn are_under_way(&self) -> bool {
        self.waiting.get() > 0
    }

    async fn await_one(&self) {
        let _waits = Waits::new(&self.waiting);
        if self.is_looking.replace(true) {
            self.looked.notified().await;
        } else {
            let _look = Look(self);
            tokio::task::yield_now().await;
        }
    }
}

/// Counts one borrower for as long as it lives.
struct Waits<'a>(&'a Cell<usize>);

impl<'a> Waits<'a> {
    fn new(waiting: &'a Cell<usize>) -> Self {
        waiting.set(waiting.get() + 1);
        Self(waiting)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// The first borrower's turn of the loop. Its end, or its cancellation, lets the others go on.
struct Look<'a>(&'a Looks);

impl Drop for Look<'_> {
    fn drop(&mut self) {
        self.0.is_looking.set(false);
        self.0.looked.notify_waiters();
    }
}

/// A connection that the manager sees before its borrower; its room is free again should either of them fail.
struct Showing<'a, M: Manage> {
    pool: &'a Rc<Inner<M>>,
    loan: LoanId,
}

impl<M: Manage> Drop for Showing<'_, M> {
    fn drop(&mut self) {
        let now = Instant::now();
        self.pool.state.borrow_mut().vanished(self.loan, now);
        self.pool.retire(None);
        self.pool.grow();
    }
}
