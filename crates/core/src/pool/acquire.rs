//! Borrowing: an idle connection at once, or a place in the queue.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Instant;

use super::borrower::Borrower;
use super::conn::Checkout;
use super::inner::Inner;
use super::lease::Lease;
use super::leases::LeaseId;
use super::oneshot::{Pending, Receiver};
use super::state::{Acquired, Ticket};
use super::{Error, Manage};

/// After this time without a borrow, the next one waits until the event loop has polled the sockets.
const SOCKETS_UNCHECKED_AFTER: Duration = Duration::from_millis(50);

impl<M: Manage> Inner<M> {
    pub(super) async fn borrow(
        self: &Rc<Self>,
        borrower: Borrower,
    ) -> Result<Checkout<M::Connection>, Error<M::Error>> {
        self.start();
        let mut now = Instant::now();
        let pause = now.saturating_duration_since(self.last_borrow.replace(now));
        if pause > SOCKETS_UNCHECKED_AFTER || self.socket_check.has_waiters() {
            self.socket_check.wait().await;
            now = Instant::now();
        }
        match self.lend_idle(&borrower, now) {
            Some(checkout) => Ok(checkout),
            None => self.wait(borrower, now).await,
        }
    }

    async fn wait(
        self: &Rc<Self>,
        borrower: Borrower,
        now: Instant,
    ) -> Result<Checkout<M::Connection>, Error<M::Error>> {
        let task = borrower.task;
        let acquire = self.enqueue(borrower, now)?;
        if self.state.borrow().is_self_blocked(task) {
            // A task that is being cancelled at this moment has not returned its connection yet.
            tokio::task::yield_now().await;
            // A connection handed over meanwhile also counts as held.
            if !acquire.has_arrived() && self.state.borrow().is_self_blocked(task) {
                return Err(self.self_blocked());
            }
        }
        if !acquire.has_arrived() && self.must_not_wait() {
            return Err(self.state.borrow_mut().timeout_error(now));
        }
        acquire.await
    }

    /// Puts a borrower at the end of the queue and opens a connection where there is room for one.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::Down`].
    pub(super) fn enqueue(
        self: &Rc<Self>,
        borrower: Borrower,
        now: Instant,
    ) -> Result<Acquire<M>, Error<M::Error>> {
        if self.state.borrow().is_closed() {
            let pool = self.state.borrow().options().name.clone();
            return Err(Error::Closed { pool });
        }
        let refusal = self.state.borrow_mut().refuse(now);
        if let Some(refusal) = refusal {
            self.replenish();
            return Err(refusal);
        }
        let (ticket, acquired) = self.state.borrow_mut().enqueue(borrower, now);
        let acquire = Acquire {
            pool: Rc::clone(self),
            ticket,
            acquired,
        };
        self.start_expiry_timer();
        self.replenish();
        Ok(acquire)
    }

    /// With a borrow timeout of zero, a borrower waits only for a connection that is being opened for it.
    fn must_not_wait(&self) -> bool {
        let state = self.state.borrow();
        state.options().borrow_timeout.is_zero() && !state.serves_every_waiter()
    }

    /// Fails waiters when the borrow timeout has passed.
    fn start_expiry_timer(self: &Rc<Self>) {
        if self.state.borrow().options().borrow_timeout.is_zero() {
            return;
        }
        let Some(running) = self.expiry_timer.start() else {
            return;
        };
        let pool = Rc::downgrade(self);
        self.spawner.spawn(async move {
            let _running = running;
            while let Some(pool) = pool.upgrade() {
                let next = pool.state.borrow_mut().expire_waiters(Instant::now());
                drop(pool);
                let Some(next) = next else { return };
                tokio::time::sleep_until(next).await;
            }
        });
    }

    fn self_blocked(&self) -> Error<M::Error> {
        let state = self.state.borrow();
        Error::SelfBlocked {
            pool: state.options().name.clone(),
            size: state.options().size,
            holders: state.holders(Instant::now()),
        }
    }

    /// Runs the manager's borrow hook on a lent connection.
    pub(super) async fn run_borrow_hook(
        self: &Rc<Self>,
        checkout: Checkout<M::Connection>,
    ) -> Result<Checkout<M::Connection>, Error<M::Error>> {
        let within = self.state.borrow().options().borrow_timeout;
        let guard = BorrowHookGuard {
            pool: self,
            lease: checkout.lease,
        };
        let (connection, rejoin) = checkout.conn.split();
        let connection = self.manager.on_borrow(connection, within).await;
        let conn = rejoin(connection.map_err(Error::Connect)?);
        let lease = guard.lease;
        std::mem::forget(guard);
        Ok(Checkout { conn, lease })
    }
}

/// Frees the room of a connection when its borrow hook fails or is cancelled.
struct BorrowHookGuard<'a, M: Manage> {
    pool: &'a Rc<Inner<M>>,
    lease: LeaseId,
}

impl<M: Manage> Drop for BorrowHookGuard<'_, M> {
    fn drop(&mut self) {
        let now = Instant::now();
        self.pool.state.borrow_mut().lease_lost(self.lease, now);
        self.pool.close_connections(None);
        self.pool.replenish();
    }
}

/// A place in the queue. Dropping it leaves the queue; a connection that has just arrived goes to the next waiter.
pub(super) struct Acquire<M: Manage> {
    pool: Rc<Inner<M>>,
    ticket: Ticket,
    acquired: Receiver<Acquired<M::Connection, M::Error>>,
}

impl<M: Manage> Acquire<M> {
    fn has_arrived(&self) -> bool {
        self.acquired.has_arrived()
    }
}

impl<M: Manage> Future for Acquire<M> {
    type Output = Result<Checkout<M::Connection>, Error<M::Error>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.acquired.poll(context)
    }
}

impl<M: Manage> Drop for Acquire<M> {
    fn drop(&mut self) {
        if self.acquired.is_awaited() {
            self.pool.state.borrow_mut().remove_waiter(self.ticket);
        } else if let Some(Ok(checkout)) = self.acquired.take() {
            self.pool.check_in(checkout);
        }
    }
}

/// A place in the queue without a task that polls it. Dropping it leaves the queue.
pub struct Queued<M: Manage>(Acquire<M>);

/// The outcome of a [`Queued`], before it has arrived.
pub struct OnAcquired<M: Manage> {
    pool: Rc<Inner<M>>,
    pending: Pending<Acquired<M::Connection, M::Error>>,
}

impl<M: Manage> Queued<M> {
    pub(super) fn new(acquire: Acquire<M>) -> Self {
        Self(acquire)
    }

    pub fn on_acquired(&self) -> OnAcquired<M> {
        OnAcquired {
            pool: Rc::clone(&self.0.pool),
            pending: self.0.acquired.pending(),
        }
    }
}

impl<M: Manage> OnAcquired<M> {
    /// Calls back once, perhaps at once, and never after the place in the queue was left. The callback must neither use the
    /// pool nor drop the lease.
    pub fn then(self, callback: impl FnOnce(Result<Lease<M>, Error<M::Error>>) + 'static) {
        let pool = self.pool;
        self.pending
            .then(move |acquired| callback(acquired.map(|checkout| Lease::new(&pool, checkout))));
    }
}
