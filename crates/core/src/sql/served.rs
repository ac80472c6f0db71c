//! A database of a server behind a pool, whichever kind of server it is.

use std::rc::Rc;

use super::hooks::{Call, Calls, Guest, Hooks, Visits};
use super::{Error, ResultSet, Statement};
use crate::pool::{Borrower, Manage, Pool, PoolOptions, Stats};

/// A kind of server: how its connections are managed, and what else differs.
pub trait Server: Manage<Connection: Guest, Error = Error> {
    type Config;

    fn new(config: Self::Config, visits: Rc<Visits<Self::Connection>>) -> Self;

    fn visits(&self) -> &Rc<Visits<Self::Connection>>;

    /// `database "app" at localhost:5432 as "app"`.
    fn target(&self) -> &str;

    /// Whether a statement begins or ends a transaction.
    fn is_boundary(sql: &str) -> bool;
}

/// One database behind a pool of connections.
pub struct Served<S: Server> {
    pub(super) pool: Pool<S>,
}

impl<S: Server> Served<S> {
    /// Connects to nothing yet: a server that is down is noticed by the first statement.
    pub fn open(config: S::Config, options: PoolOptions) -> Rc<Self> {
        Self::with_hooks(config, options, Hooks::default())
    }

    /// The same, with hooks the program is called for through [`calls`](Self::calls).
    pub fn with_hooks(config: S::Config, options: PoolOptions, hooks: Hooks) -> Rc<Self> {
        let visits = Visits::new(hooks);
        let calls = Rc::clone(&visits.calls);
        let pool = Pool::new(S::new(config, visits), options);
        pool.on_leak(move |holder| calls.push(Call::Leak(holder)));
        Rc::new(Self { pool })
    }

    /// Runs one statement by itself and returns its rows.
    ///
    /// Dropping the future cancels the statement on the server; the connection returns to the pool by itself.
    ///
    /// # Errors
    /// [`Error::Server`], [`Error::Parameter`], [`Error::ConnectionLost`], [`Error::Connect`], [`Error::PoolExhausted`],
    /// [`Error::PoolClosed`]; [`Error::Usage`] when the statement begins or ends a transaction.
    pub async fn execute(&self, statement: Statement) -> Result<ResultSet, Error> {
        if S::is_boundary(&statement.sql) {
            return Err(Error::boundary(&statement.source));
        }
        let mut lease = self.pool.borrow().await?;
        lease.note(&statement.source);
        lease.execute(&statement).await
    }

    /// The same database for a borrower with a name.
    pub fn on_behalf_of(&self, borrower: Borrower) -> Self {
        Self {
            pool: self.pool.on_behalf_of(borrower),
        }
    }

    /// Its connections.
    pub fn pool(&self) -> &Pool<S> {
        &self.pool
    }

    /// What the program is to do for its hooks.
    pub fn calls(&self) -> Rc<Calls> {
        Rc::clone(&self.visits().calls)
    }

    pub(super) fn visits(&self) -> &Rc<Visits<S::Connection>> {
        self.pool.manager().visits()
    }

    pub fn stats(&self) -> Stats {
        self.pool.stats()
    }

    /// `database "app" at localhost:5432 as "app"`.
    pub fn target(&self) -> &str {
        self.pool.manager().target()
    }

    /// Refuses new work, closes what is idle and ends when the last connection is back.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}
