//! One face for all drivers.
//!
//! Every future returned here owns what it needs: it may be dropped at any time, which cancels the statement.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use super::{Dialect, Error, ResultSet, Statement, sqlite};

/// Boxed, since the drivers' futures differ; one allocation beside a round trip to a database.
pub type Pending<T> = Pin<Box<dyn Future<Output = Result<T, Error>>>>;

/// How many connections a database may hold and how long a borrower waits for one.
#[derive(Debug, Clone)]
pub struct PoolOptions {
    /// At least 1. SQLite ignores it.
    pub size: usize,
    pub borrow_timeout: Duration,
    /// What messages call the pool; `None`: the database's own name.
    pub name: Option<String>,
}

/// A database of any supported kind. Cheap to clone; lives on the reactor's thread.
#[derive(Clone)]
pub enum Database {
    Sqlite(sqlite::Database),
}

#[derive(Clone)]
pub enum Transaction {
    Sqlite(sqlite::Transaction),
}

/// Rows of a large result, a chunk at a time. Dropping it ends the query.
#[derive(Clone)]
pub enum RowStream {
    Sqlite(sqlite::RowStream),
}

impl Database {
    /// Chooses the driver by the DSN's scheme. A server is not contacted yet; an SQLite file is opened by the future.
    ///
    /// # Errors
    /// [`Error::Dsn`] for an unknown scheme or a DSN its driver cannot read.
    pub fn open(dsn: &str, pool: PoolOptions) -> Result<Pending<Self>, Error> {
        match scheme(dsn) {
            "sqlite" => {
                let config = sqlite::Config::parse(dsn)?;
                Ok(Box::pin(async move {
                    Ok(Self::Sqlite(sqlite::Database::open(config).await?))
                }))
            }
            other => Err(Error::Dsn {
                dsn: format!("{other}:…"),
                reason: "the scheme must be postgres or sqlite, as in postgres://user@host/database or sqlite:file.db"
                    .to_owned(),
            }),
        }
    }

    pub fn driver(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "sqlite",
        }
    }

    pub fn dialect(&self) -> Dialect {
        match self {
            Self::Sqlite(_) => Dialect::Sqlite,
        }
    }

    pub fn execute(&self, statement: Statement) -> Pending<ResultSet> {
        match self {
            Self::Sqlite(database) => Box::pin(database.execute(statement)),
        }
    }

    pub fn transaction(&self) -> Transaction {
        match self {
            Self::Sqlite(database) => Transaction::Sqlite(database.transaction()),
        }
    }

    pub fn stream(&self, statement: Statement, chunk: usize) -> RowStream {
        match self {
            Self::Sqlite(database) => RowStream::Sqlite(database.stream(statement, chunk)),
        }
    }

    /// Resolves when another connection or process has committed to the file.
    ///
    /// # Errors
    /// [`Error::Usage`] for a driver that cannot tell.
    pub fn wait_for_change(&self) -> Result<Pending<()>, Error> {
        match self {
            Self::Sqlite(database) => Ok(Box::pin(database.wait_for_change())),
        }
    }

    /// The pool's numbers by name.
    pub fn stats(&self) -> Vec<(&'static str, u64)> {
        match self {
            Self::Sqlite(_) => Vec::new(),
        }
    }

    pub fn close(&self) -> Pending<()> {
        match self {
            Self::Sqlite(database) => Box::pin(database.close()),
        }
    }
}

impl Transaction {
    /// Notes a statement without sending it and returns its index.
    ///
    /// # Errors
    /// [`Error::Usage`] after the end.
    pub fn push(&self, statement: Statement) -> Result<usize, Error> {
        match self {
            Self::Sqlite(transaction) => transaction.push(statement),
        }
    }

    /// The result of a statement that was answered, once.
    pub fn take_result(&self, index: usize) -> Option<Result<ResultSet, Error>> {
        match self {
            Self::Sqlite(transaction) => transaction.take_result(index),
        }
    }

    /// Sends what is noted and waits for the answers; the first error fails the transaction.
    pub fn flush(&self) -> Pending<()> {
        match self {
            Self::Sqlite(transaction) => Box::pin(transaction.flush()),
        }
    }

    /// Sends what is noted together with the commit.
    pub fn commit(&self) -> Pending<()> {
        match self {
            Self::Sqlite(transaction) => Box::pin(transaction.commit()),
        }
    }

    /// Undoes everything; noted statements are not sent.
    pub fn rollback(&self) -> Pending<()> {
        match self {
            Self::Sqlite(transaction) => Box::pin(transaction.rollback()),
        }
    }

    pub fn is_open(&self) -> bool {
        match self {
            Self::Sqlite(transaction) => transaction.is_open(),
        }
    }
}

impl RowStream {
    /// The next rows, at most a chunk; `None` at the end.
    pub fn next(&self) -> Pending<Option<ResultSet>> {
        match self {
            Self::Sqlite(rows) => Box::pin(rows.next()),
        }
    }
}

fn scheme(dsn: &str) -> &str {
    dsn.split_once(':').map_or(dsn, |(scheme, _)| scheme)
}
