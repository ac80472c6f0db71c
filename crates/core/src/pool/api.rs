use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use std::sync::Arc;

use tokio::time::Instant;

use super::borrower::{Borrower, Holder};
use super::held::Parcel;
use super::inner::Inner;
use super::{Error, Manage, PoolOptions, Queued, Stats};

/// Lends connections, each to one borrower at a time, first come first served.
///
/// Belongs to one thread and its `LocalSet`. Leases may be dropped anywhere on that thread.
pub struct Pool<M: Manage> {
    inner: Rc<Inner<M>>,
    /// Whoever borrows through this handle.
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
    /// Opens nothing yet.
    pub fn new(manager: M, options: PoolOptions) -> Self {
        Self {
            inner: Rc::new(Inner::new(manager, options)),
            borrower: Borrower::default(),
        }
    }

    /// A handle to the same pool for a borrower with a name.
    pub fn on_behalf_of(&self, borrower: Borrower) -> Self {
        Self {
            inner: Rc::clone(&self.inner),
            borrower,
        }
    }

    /// Begins to open the minimum of idle connections, without waiting for them. Otherwise the first borrower does.
    pub fn warm_up(&self) {
        self.inner.attend();
    }

    /// Lends the connection used last, or the first that comes back or is opened.
    ///
    /// Dropping the future leaves the queue; a connection that was just handed over goes to the next in line.
    ///
    /// # Errors
    /// [`Error::Exhausted`] or [`Error::Slow`] after the borrow timeout, [`Error::Connect`] when the attempt to connect that
    /// it waited for failed, [`Error::Down`], [`Error::SelfBlocked`], [`Error::Closed`].
    pub async fn borrow(&self) -> Result<Lease<M>, Error<M::Error>> {
        let mut parcel = self.inner.borrow(self.borrower.clone()).await?;
        if self.inner.manager.sees_lending() {
            parcel = self.inner.show(parcel).await?;
        }
        Ok(Lease::new(&self.inner, parcel))
    }

    /// Lends an idle connection without waiting, if there is one. Not where the manager wants to see it first.
    pub fn try_borrow(&self) -> Option<Lease<M>> {
        if self.inner.manager.sees_lending() || self.inner.has_lookers() {
            return None;
        }
        let parcel = self.inner.lend_idle(&self.borrower, Instant::now())?;
        Some(Lease::new(&self.inner, parcel))
    }

    /// Waits in the queue without a task. `None` where there is more to it than waiting, which [`borrow`](Self::borrow) does
    /// or explains.
    pub fn queue(&self) -> Option<Queued<M>> {
        let (pool, now) = (&self.inner, Instant::now());
        let waits = {
            let state = pool.state.borrow();
            !state.is_failing_fast(now)
                && !state.is_self_blocked(self.borrower.task)
                && !state.options().borrow_timeout.is_zero()
        };
        if !waits || !pool.nursery.is_open() || pool.manager.sees_lending() || pool.has_lookers() {
            return None;
        }
        let place = pool.queue_up(self.borrower.clone(), now).ok()?;
        Some(Queued::new(place))
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

    /// Who holds a connection now, the oldest first.
    pub fn holders(&self) -> Vec<Holder> {
        self.inner.state.borrow().holders(Instant::now())
    }

    /// Called for each connection held for longer than the leak threshold, once.
    pub fn on_leak(&self, report: impl Fn(Holder) + 'static) {
        self.inner.on_leak.replace(Some(Box::new(report)));
    }

    /// Changes the most and the least connections. What is too much is closed when it is idle.
    pub fn resize(&self, size: usize, minimum_idle: usize) {
        let surplus = self.inner.state.borrow_mut().resize(size, minimum_idle);
        self.inner.retire(surplus);
        self.inner.grow();
    }

    /// From now on nothing is lent or opened; borrowers wait, for at most their timeout, until [`resume`](Self::resume).
    pub fn suspend(&self) {
        self.inner.state.borrow_mut().suspend();
    }

    pub fn resume(&self) {
        let surplus = self.inner.state.borrow_mut().resume(Instant::now());
        self.inner.retire(surplus);
        self.inner.grow();
    }

    /// Replaces every connection: the idle ones now, the others when they come back.
    pub fn reset(&self) {
        let idle = self.inner.state.borrow_mut().reset();
        self.inner.retire(idle);
        self.inner.grow();
    }

    /// Refuses new borrowers and those in the queue, closes what is idle, and ends when the last lease is back.
    /// Dropping the future does not reopen the pool.
    pub async fn close(&self) {
        self.inner.close().await;
    }
}

/// The right to use one connection; dropping it gives the connection back. It cannot be copied, so nothing can come back
/// twice or be used afterwards.
pub struct Lease<M: Manage> {
    /// `None` only inside `drop`.
    parcel: Option<Parcel<M::Connection>>,
    pool: Rc<Inner<M>>,
}

impl<M: Manage> Lease<M> {
    pub(super) fn new(pool: &Rc<Inner<M>>, parcel: Parcel<M::Connection>) -> Self {
        Self {
            parcel: Some(parcel),
            pool: Rc::clone(pool),
        }
    }

    /// Tells the pool what is about to run, for its reports.
    pub fn note(&self, statement: &Arc<str>) {
        if let Some(parcel) = &self.parcel {
            self.pool.state.borrow_mut().note(parcel.loan, statement);
        }
    }

    /// Closes the connection instead of giving it back.
    pub fn discard(mut self) {
        if let Some(parcel) = self.parcel.take() {
            self.pool.discard(parcel);
        }
    }
}

impl<M: Manage> Deref for Lease<M> {
    type Target = M::Connection;

    fn deref(&self) -> &Self::Target {
        match &self.parcel {
            Some(parcel) => &parcel.held.connection,
            None => unreachable!("a lease holds its connection until it is dropped"),
        }
    }
}

impl<M: Manage> DerefMut for Lease<M> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match &mut self.parcel {
            Some(parcel) => &mut parcel.held.connection,
            None => unreachable!("a lease holds its connection until it is dropped"),
        }
    }
}

impl<M: Manage> Drop for Lease<M> {
    fn drop(&mut self) {
        if let Some(parcel) = self.parcel.take() {
            self.pool.take_back(parcel);
        }
    }
}
