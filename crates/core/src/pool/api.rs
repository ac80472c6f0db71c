use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use std::time::Duration;

use super::inner::Inner;
use super::{Error, Stats};

/// How the pool makes, judges and ends its connections.
pub trait Manage: 'static {
    type Connection: 'static;
    type Error: 'static;

    fn connect(&self) -> impl Future<Output = Result<Self::Connection, Self::Error>>;

    /// Asked before a connection is lent and when it comes back. Must be cheap: no round trip.
    fn condition(&self, connection: &mut Self::Connection) -> Condition;

    /// Makes a dirty connection clean again; `None` when that is impossible. Must end by itself: the connection counts
    /// as in use meanwhile.
    fn recover(
        &self,
        connection: Self::Connection,
    ) -> impl Future<Output = Option<Self::Connection>>;

    /// Says good-bye without waiting.
    fn close(&self, connection: Self::Connection);
}

/// What a connection is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// Can be lent as it is.
    Clean,
    /// Its borrower left in the middle of something.
    Dirty,
    /// Of no use to anybody.
    Broken,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolOptions {
    /// Stands in every error message. Default `default`.
    pub name: String,
    /// The most connections, opened when somebody needs them. At least 1, default 10.
    pub size: usize,
    /// How long a borrower waits. Zero: only for a connection that can be opened for it. Default 30 s.
    pub borrow_timeout: Duration,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self {
            name: "default".to_owned(),
            size: 10,
            borrow_timeout: Duration::from_secs(30),
        }
    }
}

/// Lends connections, each to one borrower at a time, first come first served.
///
/// Belongs to one thread and its `LocalSet`. Leases may be dropped anywhere on that thread.
pub struct Pool<M: Manage> {
    inner: Rc<Inner<M>>,
}

impl<M: Manage> Clone for Pool<M> {
    fn clone(&self) -> Self {
        Self {
            inner: Rc::clone(&self.inner),
        }
    }
}

impl<M: Manage> Pool<M> {
    /// Opens nothing yet.
    pub fn new(manager: M, options: PoolOptions) -> Self {
        Self {
            inner: Rc::new(Inner::new(manager, options)),
        }
    }

    /// Lends the connection used last, or the first that comes back or is opened.
    ///
    /// Dropping the future leaves the queue; a connection that was just handed over goes to the next in line.
    ///
    /// # Errors
    /// [`Error::Exhausted`] after the borrow timeout, [`Error::Connect`] when the connection opened for this borrower
    /// could not be made, [`Error::Closed`].
    pub async fn borrow(&self) -> Result<Lease<M>, Error<M::Error>> {
        let connection = Inner::borrow(&self.inner).await?;
        Ok(Lease {
            connection: Some(connection),
            pool: Rc::clone(&self.inner),
        })
    }

    pub fn manager(&self) -> &M {
        self.inner.manager()
    }

    pub fn options(&self) -> &PoolOptions {
        self.inner.options()
    }

    pub fn stats(&self) -> Stats {
        self.inner.stats()
    }

    /// Refuses new borrowers and those in the queue, closes what is idle, and ends when the last lease is back.
    /// Dropping the future does not reopen the pool.
    pub async fn close(&self) {
        Inner::close(&self.inner).await;
    }
}

/// The right to use one connection; dropping it gives the connection back. It cannot be copied, so nothing can come back
/// twice or be used afterwards.
pub struct Lease<M: Manage> {
    /// `None` only inside `drop`.
    connection: Option<M::Connection>,
    pool: Rc<Inner<M>>,
}

impl<M: Manage> Deref for Lease<M> {
    type Target = M::Connection;

    fn deref(&self) -> &Self::Target {
        match &self.connection {
            Some(connection) => connection,
            None => unreachable!("a lease holds its connection until it is dropped"),
        }
    }
}

impl<M: Manage> DerefMut for Lease<M> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match &mut self.connection {
            Some(connection) => connection,
            None => unreachable!("a lease holds its connection until it is dropped"),
        }
    }
}

impl<M: Manage> Drop for Lease<M> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            Inner::take_back(&self.pool, connection);
        }
    }
}
