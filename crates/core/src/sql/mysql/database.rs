use std::rc::Rc;

use super::cancel;
use super::config::Config;
use super::connection::Connection;
use super::rows::RowStream;
use super::session::Nature;
use super::startup::Connector;
use super::transaction::Transaction;
use crate::pool::{Borrower, Condition, Manage, Pool, PoolOptions, Stats};
use crate::sql::{Error, ResultSet, Statement};

/// One MySQL or MariaDB database behind a pool of connections.
pub struct Database {
    pool: Pool<Mysql>,
}

impl Database {
    /// Connects to nothing yet: a server that is down is noticed by the first statement.
    pub fn open(config: Config, options: PoolOptions) -> Rc<Self> {
        let manager = Mysql {
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
        if Nature::of(&statement.sql).controls {
            return Err(Error::boundary(&statement.source));
        }
        let mut lease = self.pool.borrow().await?;
        lease.note(&statement.source);
        let outcome = lease.run_one(&statement).await?;
        if !lease.is_idle() {
            lease.rollback().await?;
            outcome?;
            return Err(Error::Usage {
                message: "the statement left a transaction open, which was rolled back; use a transaction object"
                    .to_owned(),
            });
        }
        outcome
    }

    /// Begins a transaction that costs nothing until its first flush.
    pub fn transaction(&self) -> Transaction {
        Transaction::new(self.pool.clone())
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
    pub fn pool(&self) -> &Pool<Mysql> {
        &self.pool
    }

    pub fn stats(&self) -> Stats {
        self.pool.stats()
    }

    /// `database "app" at localhost:3306 as "app"`.
    pub fn target(&self) -> &str {
        self.pool.manager().connector.target()
    }

    /// Refuses new work, closes what is idle and ends when the last connection is back.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}

/// What the pool needs to know about MySQL.
pub struct Mysql {
    connector: Connector,
}

impl Manage for Mysql {
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
        connection.push_control("DO 0");
        connection.drain().await.is_ok().then_some(connection)
    }

    fn is_down(&self, error: &Error) -> bool {
        error.is_down()
    }

    fn close(&self, mut connection: Box<Connection>) {
        connection.quit();
    }
}
