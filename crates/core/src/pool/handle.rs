use std::rc::Rc;

use tokio::time::Instant;

use super::acquire::Queued;
use super::borrower::{Borrower, Holder};
use super::inner::Inner;
use super::lease::Lease;
use super::{Error, Manage, PoolOptions, Stats};

/// Lends connections, each to one borrower at a time, first come first served.
///
/// A pool belongs to one thread and its `LocalSet`. Leases may be dropped anywhere on that thread.
pub struct Pool<M: Manage> {
    inner: Rc<Inner<M>>,
    /// The borrower that uses this handle.
    borrower: Borrower,
}

impl<M: Manage> Clone for Pool<M> {
    fn clone(&self) -> Self {
        Self {
            inner: Rc::clone(&self.inner),
            borrower: self.borrower.clone(),
        }
    }
}

impl<M: Manage> Pool<M> {
    /// Creates a pool without opening a connection.
    pub fn new(manager: M, options: PoolOptions) -> Self {
        Self {
            inner: Rc::new(Inner::new(manager, options)),
            borrower: Borrower::default(),
        }
    }

    /// Another handle to the same pool, for a borrower that messages can name.
    pub fn on_behalf_of(&self, borrower: Borrower) -> Self {
        Self {
            inner: Rc::clone(&self.inner),
            borrower,
        }
    }

    /// Begins to open the minimum of idle connections and does not wait for them. Otherwise the first borrow begins.
    pub fn warm_up(&self) {
        self.inner.start();
    }

    /// Lends the connection that was used last, or the first one that is returned or opened.
    ///
    /// Dropping the future leaves the queue; a connection that has just arrived goes to the next waiter.
    ///
    /// # Errors
    /// [`Error::Exhausted`] or [`Error::Slow`] after the borrow timeout, [`Error::Connect`] when the connection that was
    /// opened for this borrower failed, [`Error::Down`], [`Error::SelfBlocked`], [`Error::Closed`].
    pub async fn borrow(&self) -> Result<Lease<M>, Error<M::Error>> {
        let mut checkout = self.inner.borrow(self.borrower.clone()).await?;
        if self.inner.manager.has_borrow_hook() {
            checkout = self.inner.run_borrow_hook(checkout).await?;
        }
        Ok(Lease::new(&self.inner, checkout))
    }

    /// Lends an idle connection without waiting, if there is one and the manager has no borrow hook.
    pub fn try_borrow(&self) -> Option<Lease<M>> {
        if self.inner.manager.has_borrow_hook() || self.inner.socket_check.has_waiters() {
            return None;
        }
        let checkout = self.inner.lend_idle(&self.borrower, Instant::now())?;
        Some(Lease::new(&self.inner, checkout))
    }

    /// Joins the queue without a task. Returns `None` where [`borrow`](Self::borrow) would do more than wait, or would fail
    /// at once.
    pub fn queue(&self) -> Option<Queued<M>> {
        let (pool, now) = (&self.inner, Instant::now());
        let waits = {
            let state = pool.state.borrow();
            !state.is_failing_fast(now)
                && !state.is_self_blocked(self.borrower.task)
                && !state.options().borrow_timeout.is_zero()
        };
        if !waits
            || !pool.spawner.is_running()
            || pool.manager.has_borrow_hook()
            || pool.socket_check.has_waiters()
        {
            return None;
        }
        let acquire = pool.enqueue(self.borrower.clone(), now).ok()?;
        Some(Queued::new(acquire))
    }

    pub fn manager(&self) -> &M {
        &self.inner.manager
    }

    pub fn options(&self) -> PoolOptions {
        self.inner.state.borrow().options().clone()
    }

    pub fn stats(&self) -> Stats {
        self.inner.state.borrow().stats()
    }

    pub fn is_closed(&self) -> bool {
        self.inner.state.borrow().is_closed()
    }

    /// The number of connections that can be lent before one is returned: idle ones, and those that are being opened or validated.
    pub fn available(&self) -> usize {
        self.inner.state.borrow().available()
    }

    /// The number of borrowers that wait for a connection.
    pub(crate) fn waiting(&self) -> usize {
        self.inner.state.borrow().waiting()
    }

    /// Whether a task that holds a connection waits for another one.
    pub(crate) fn holder_waits(&self) -> bool {
        self.inner.state.borrow().holder_waits()
    }

    /// Whether the task of this handle holds a connection. False for code outside of known tasks.
    pub fn borrower_has_lease(&self) -> bool {
        let task = self.borrower.task;
        task.is_some_and(|task| self.inner.state.borrow().is_held_by(task))
    }

    /// The borrowers that hold a connection, the longest first.
    pub fn holders(&self) -> Vec<Holder> {
        self.inner.state.borrow().holders(Instant::now())
    }

    /// Sets the callback for connections that are held for longer than the leak threshold. It is called once for each lease.
    pub fn on_leak(&self, report: impl Fn(Holder) + 'static) {
        self.inner.on_leak.replace(Some(Box::new(report)));
    }

    /// Changes the size and the minimum of idle connections. A surplus connection is closed as soon as it is idle.
    pub fn resize(&self, size: usize, minimum_idle: usize) {
        let surplus = self.inner.state.borrow_mut().resize(size, minimum_idle);
        self.inner.close_connections(surplus);
        self.inner.replenish();
    }

    /// Stops lending and connecting. Borrowers wait, for at most the borrow timeout, until [`resume`](Self::resume).
    pub fn pause(&self) {
        self.inner.state.borrow_mut().pause();
    }

    /// Lends and connects again. A borrower that has waited gets an idle connection after it was validated.
    pub fn resume(&self) {
        self.inner.state.borrow_mut().resume();
        self.inner.replenish();
    }

    /// Replaces every connection: idle ones now, lent ones when they are returned.
    pub fn reset(&self) {
        let idle = self.inner.state.borrow_mut().reset();
        self.inner.close_connections(idle);
        self.inner.replenish();
    }

    /// Refuses all borrowers, also those in the queue, closes idle connections, and ends when the last lease is returned.
    /// Dropping the future does not reopen the pool.
    pub async fn close(&self) {
        self.inner.close().await;
    }
}
