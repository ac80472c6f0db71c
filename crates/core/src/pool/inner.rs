//! The pool's shared half: the bookkeeping of [`State`] joined to the manager that opens and closes connections.
//!
//! Borrowing is in `acquire`, opening, cleaning and validating in `maintenance`, the periodic work in `reaper`.

use std::cell::{Cell, RefCell};
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::borrower::{Borrower, Holder};
use super::conn::Checkout;
use super::socket_check::SocketCheck;
use super::spawner::{Spawner, Timer};
use super::state::{IdleOffer, State};
use super::{Condition, Manage, PoolOptions};

pub(super) struct Inner<M: Manage> {
    pub(super) manager: M,
    pub(super) state: RefCell<State<M::Connection, M::Error>>,
    pub(super) spawner: Spawner,
    drained: Notify,
    pub(super) last_borrow: Cell<Instant>,
    pub(super) socket_check: SocketCheck,
    /// Runs out when the next attempt to connect is due.
    pub(super) retry_timer: Timer,
    /// Runs out when the first waiter in the queue has waited for the borrow timeout.
    pub(super) expiry_timer: Timer,
    pub(super) on_leak: RefCell<Option<LeakReport>>,
}

type LeakReport = Box<dyn Fn(Holder)>;

impl<M: Manage> Inner<M> {
    pub(super) fn new(manager: M, options: PoolOptions) -> Self {
        Self {
            state: RefCell::new(State::new(options, RandomState::new().hash_one(0))),
            manager,
            spawner: Spawner::new(),
            drained: Notify::new(),
            last_borrow: Cell::new(Instant::now()),
            socket_check: SocketCheck::default(),
            retry_timer: Timer::default(),
            expiry_timer: Timer::default(),
            on_leak: RefCell::default(),
        }
    }

    /// Lets spawned tasks and the reaper run from now on. Must be called inside a `LocalSet` task.
    pub(super) fn start(self: &Rc<Self>) {
        if self.spawner.start() {
            self.start_reaper();
        }
    }

    /// Lends an idle connection that needs no validation, and closes the broken ones it meets.
    pub(super) fn lend_idle(
        self: &Rc<Self>,
        borrower: &Borrower,
        now: Instant,
    ) -> Option<Checkout<M::Connection>> {
        loop {
            let offer = self.state.borrow_mut().lend_idle(borrower, now)?;
            match offer {
                IdleOffer::Lent(mut checkout) => {
                    if self.manager.condition(checkout.connection()) == Condition::Clean {
                        return Some(checkout);
                    }
                    self.discard(checkout);
                }
                IdleOffer::Expired(connection) => self.close_connections(Some(connection)),
            }
        }
    }

    pub(super) fn check_in(self: &Rc<Self>, mut checkout: Checkout<M::Connection>) {
        match self.manager.condition(checkout.connection()) {
            Condition::Clean if !self.manager.has_return_hook() => {
                let surplus = self.state.borrow_mut().check_in(checkout, Instant::now());
                if surplus.is_some() {
                    self.close_connections(surplus);
                    self.replenish();
                }
            }
            Condition::Broken => self.discard(checkout),
            Condition::Clean | Condition::Dirty => {
                let now = Instant::now();
                let conn = self.state.borrow_mut().begin_maintenance(checkout, now);
                self.recover(conn);
            }
        }
    }

    /// Closes a lent connection regardless of its condition.
    pub(super) fn discard(self: &Rc<Self>, checkout: Checkout<M::Connection>) {
        let connection = self.state.borrow_mut().discard(checkout, Instant::now());
        self.close_connections(Some(connection));
        self.replenish();
    }

    pub(super) async fn close(self: &Rc<Self>) {
        let idle = self.state.borrow_mut().close();
        self.close_connections(idle);
        while !self.state.borrow().is_drained() {
            self.drained.notified().await;
        }
        // Other callers of `close` wait for the same end.
        self.drained.notify_one();
    }

    pub(super) fn close_connections(&self, connections: impl IntoIterator<Item = M::Connection>) {
        for connection in connections {
            self.manager.close(connection);
        }
        if self.state.borrow().is_drained() {
            self.drained.notify_one();
        }
    }
}
