//! A database behind a pool, for every kind of server.

use std::rc::Rc;

use super::hooks::{HookCalls, HookedConnection, Hooks, PoolEvent, PoolEvents};
use super::server::Server;
use super::server_manager::ServerManager;
use super::{Error, ResultSet, Statement};
use crate::pool::{Borrower, Pool, PoolOptions, Stats};

/// A database behind a pool of connections.
pub struct PooledDatabase<S: Server> {
    pub(super) pool: Pool<ServerManager<S>>,
}

impl<S: Server> PooledDatabase<S> {
    /// Opens no connection; the first statement reports a server that is down.
    pub fn open(config: S::Config, options: PoolOptions) -> Rc<Self> {
        Self::with_hooks(config, options, Hooks::default())
    }

    /// The same with hooks, whose calls are in [`events`](Self::events).
    pub fn with_hooks(config: S::Config, options: PoolOptions, hooks: Hooks) -> Rc<Self> {
        let hook_calls = HookCalls::new(hooks);
        let events = Rc::clone(&hook_calls.events);
        let pool = Pool::new(ServerManager::new(config, hook_calls), options);
        pool.on_leak(move |holder| events.push(PoolEvent::Leak(holder)));
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
        lease.set_statement(&statement.source);
        lease.execute(&statement).await
    }

    /// The same database for a named borrower.
    pub fn on_behalf_of(&self, borrower: Borrower) -> Self {
        Self {
            pool: self.pool.on_behalf_of(borrower),
        }
    }

    /// The pool of its connections.
    pub fn pool(&self) -> &Pool<ServerManager<S>> {
        &self.pool
    }

    /// Hook calls and leaks.
    pub fn events(&self) -> Rc<PoolEvents> {
        Rc::clone(&self.hook_calls().events)
    }

    pub(super) fn hook_calls(&self) -> &Rc<HookCalls<Box<S::Connection>>> {
        &self.pool.manager().hook_calls
    }

    pub fn stats(&self) -> Stats {
        self.pool.stats()
    }

    /// `database "app" at localhost:5432 as "app"`.
    pub fn target(&self) -> &str {
        self.pool.manager().server.target()
    }

    /// Refuses new statements, closes idle connections and ends when the last connection is returned.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}
