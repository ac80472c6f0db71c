use std::rc::Rc;
use std::time::Duration;

use super::batch::{Batch, is_boundary};
use super::cancel;
use super::config::Config;
use super::connection::{Connection, TransactionStatus};
use super::listener::Listener;
use super::residue::Residue;
use super::rows::RowStream;
use super::startup::Connector;
use super::transaction::{Transaction, TransactionOptions};
use crate::pool::{Borrower, Condition, Manage, Pool, PoolOptions, Stats};
use crate::sql::copy::CopyData;
use crate::sql::hooks::{Call, Calls, Guest, Hooks, Mark, Visits};
use crate::sql::{Error, ResultSet, Statement};

/// One PostgreSQL database behind a pool of connections.
pub struct Database {
    pool: Pool<Postgres>,
}

impl Database {
    /// Connects to nothing yet: a server that is down is noticed by the first statement.
    pub fn open(config: Config, options: PoolOptions) -> Rc<Self> {
        Self::with_hooks(config, options, Hooks::default())
    }

    /// The same, with hooks the program is called for through [`calls`](Self::calls).
    pub fn with_hooks(config: Config, options: PoolOptions, hooks: Hooks) -> Rc<Self> {
        let manager = Postgres {
            connector: Connector::new(config),
            visits: Visits::new(hooks),
        };
        let calls = Rc::clone(&manager.visits.calls);
        let pool = Pool::new(manager, options);
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
        if is_boundary(&statement.sql) {
            return Err(Error::boundary(&statement.source));
        }
        let mut lease = self.pool.borrow().await?;
        lease.note(&statement.source);
        lease.execute(&statement).await
    }

    /// Begins a transaction that costs nothing until its first flush.
    pub fn transaction(&self, options: TransactionOptions) -> Transaction {
        Transaction::new(self.pool.clone(), options)
    }

    /// Runs a `COPY` whose data comes from or goes to the client.
    pub(in crate::sql) async fn copy(
        &self,
        statement: Statement,
        data: CopyData,
    ) -> Result<u64, Error> {
        let mut lease = self.pool.borrow().await?;
        lease.note(&statement.source);
        lease.copy(&statement, data).await?
    }

    /// Subscribes to channels, with a connection of its own.
    ///
    /// # Errors
    /// As [`Listener::open`].
    pub async fn listen(&self, channels: Vec<String>, check: Duration) -> Result<Listener, Error> {
        Listener::open(self.pool.clone(), channels, check).await
    }

    /// Runs one statement and returns its rows in chunks of at most `chunk` (at least 1).
    pub fn stream(&self, statement: Statement, chunk: usize) -> RowStream {
        RowStream::new(self.pool.clone(), statement, chunk)
    }

    /// The same database for a borrower with a name.
    pub fn on_behalf_of(&self, borrower: Borrower) -> Self {
        Self {
            pool: self.pool.on_behalf_of(borrower),
        }
    }

    /// Its connections.
    pub fn pool(&self) -> &Pool<Postgres> {
        &self.pool
    }

    /// What the program is to do for its hooks.
    pub fn calls(&self) -> Rc<Calls> {
        Rc::clone(&self.visits().calls)
    }

    pub(in crate::sql) fn visits(&self) -> &Rc<Visits<Box<Connection>>> {
        &self.pool.manager().visits
    }

    pub fn stats(&self) -> Stats {
        self.pool.stats()
    }

    /// `database "app" at localhost:5432 as "app"`.
    pub fn target(&self) -> &str {
        self.pool.manager().connector.target()
    }

    /// Refuses new work, closes what is idle and ends when the last connection is back.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}

/// What the pool needs to know about PostgreSQL.
pub struct Postgres {
    pub(super) connector: Connector,
    visits: Rc<Visits<Box<Connection>>>,
}

impl Postgres {
    async fn clean(&self, connection: Box<Connection>) -> Option<Box<Connection>> {
        let connection = cancel::recover(connection, &self.connector).await?;
        self.visits.cleaned(connection).await
    }
}

impl Manage for Postgres {
    /// Boxed, since it moves at every borrow.
    type Connection = Box<Connection>;
    type Error = Error;

    async fn connect(&self) -> Result<Box<Connection>, Error> {
        let connection = self.connector.connect().await.map(Box::new)?;
        self.visits.created(connection).await
    }

    fn sees_lending(&self) -> bool {
        self.visits.hooks.borrowed
    }

    async fn lend(
        &self,
        connection: Box<Connection>,
        within: Duration,
    ) -> Result<Box<Connection>, Error> {
        self.visits.borrowed(connection, within).await
    }

    fn sees_returns(&self) -> bool {
        self.visits.hooks.returned
    }

    fn condition(&self, connection: &mut Box<Connection>) -> Condition {
        connection.condition()
    }

    async fn recover(&self, connection: Box<Connection>) -> Option<Box<Connection>> {
        let mut connection = self.clean(connection).await?;
        if self.visits.hooks.returned {
            connection = self.visits.returned(connection).await?;
            if connection.condition() == Condition::Dirty {
                connection = self.clean(connection).await?;
            }
        }
        Some(connection)
    }

    async fn validate(&self, mut connection: Box<Connection>) -> Option<Box<Connection>> {
        connection.push_sync();
        connection.drain().await.is_ok().then_some(connection)
    }

    fn is_down(&self, error: &Error) -> bool {
        error.is_down()
    }

    fn close(&self, mut connection: Box<Connection>) {
        if !connection.is_broken() && !connection.is_busy() {
            connection.push_terminate();
            connection.link.send_now();
        }
    }
}

impl Guest for Box<Connection> {
    fn session(&self) -> i64 {
        self.cancel_key.process_id.into()
    }

    async fn execute(&mut self, statement: &Statement) -> Result<ResultSet, Error> {
        let batch = Batch::of(std::slice::from_ref(statement));
        let mut outcome = self.run(batch).await?;
        if let Some(failure) = outcome.failure {
            return Err(failure.error);
        }
        if self.status() != TransactionStatus::Idle {
            self.rollback().await?;
            return Err(Error::open_transaction());
        }
        Ok(outcome.results.pop().unwrap_or_default())
    }

    fn is_in_order(&self) -> bool {
        !self.is_busy() && self.status() == TransactionStatus::Idle
    }

    fn keep_residue(&mut self) {
        self.residue = Residue::default();
    }

    fn mark(&mut self) -> &mut Mark {
        &mut self.mark
    }
}
