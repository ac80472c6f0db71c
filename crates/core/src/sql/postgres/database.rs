use std::rc::Rc;
use std::time::Duration;

use super::batch::{Batch, is_boundary};
use super::cancel;
use super::config::Config;
use super::connection::{Connection, TransactionStatus};
use super::listener::Listener;
use super::rows::RowStream;
use super::startup::Connector;
use super::transaction::{Transaction, TransactionOptions};
use crate::pool::{Borrower, Condition, Manage, Pool, PoolOptions, Stats};
use crate::sql::copy::CopyData;
use crate::sql::{Error, ResultSet, Statement};

/// One PostgreSQL database behind a pool of connections.
pub struct Database {
    pool: Pool<Postgres>,
}

impl Database {
    /// Connects to nothing yet: a server that is down is noticed by the first statement.
    pub fn open(config: Config, options: PoolOptions) -> Rc<Self> {
        let manager = Postgres {
            connector: Connector::new(config),
        };
        Rc::new(Self {
            pool: Pool::new(manager, options),
        })
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
        let mut outcome = lease
            .run(Batch::of(std::slice::from_ref(&statement)))
            .await?;
        if let Some(failure) = outcome.failure {
            return Err(failure.error);
        }
        if lease.status() != TransactionStatus::Idle {
            lease.rollback().await?;
            return Err(Error::Usage {
                message: "the statement left a transaction open, which was rolled back; use a transaction object"
                    .to_owned(),
            });
        }
        Ok(outcome.results.pop().unwrap_or_default())
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
}

impl Manage for Postgres {
    /// Boxed, since it moves at every borrow.
    type Connection = Box<Connection>;
    type Error = Error;

    async fn connect(&self) -> Result<Box<Connection>, Error> {
        self.connector.connect().await.map(Box::new)
    }

    fn condition(&self, connection: &mut Box<Connection>) -> Condition {
        connection.condition()
    }

    async fn recover(&self, connection: Box<Connection>) -> Option<Box<Connection>> {
        cancel::recover(connection, &self.connector).await
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
