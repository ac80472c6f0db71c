//! One face for all drivers.
//!
//! Every future returned here owns what it needs: it may be dropped at any time, which cancels the statement.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use super::{Dialect, Error, ResultSet, Statement, postgres, sqlite};

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
    Postgres(postgres::Database),
    Sqlite(sqlite::Database),
}

#[derive(Clone)]
pub enum Transaction {
    Postgres(postgres::Transaction),
    Sqlite(sqlite::Transaction),
}

/// Rows of a large result, a chunk at a time. Dropping it ends the query.
#[derive(Clone)]
pub enum RowStream {
    Postgres(postgres::RowStream),
    Sqlite(sqlite::RowStream),
}

impl Database {
    /// Chooses the driver by the DSN's scheme. A server is not contacted yet; an SQLite file is opened by the future.
    ///
    /// # Errors
    /// [`Error::Dsn`] for an unknown scheme or a DSN its driver cannot read.
    pub fn open(dsn: &str, pool: PoolOptions) -> Result<Pending<Self>, Error> {
        match scheme(dsn) {
            "postgres" | "postgresql" => {
                let config = postgres::Config::parse(dsn)?;
                Ok(Box::pin(async move {
                    Ok(Self::Postgres(postgres::Database::open(config, pool)))
                }))
            }
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
            Self::Postgres(_) => "postgres",
            Self::Sqlite(_) => "sqlite",
        }
    }

    pub fn dialect(&self) -> Dialect {
        match self {
            Self::Postgres(_) => Dialect::Postgres,
            Self::Sqlite(_) => Dialect::Sqlite,
        }
    }

    pub fn execute(&self, statement: Statement) -> Pending<ResultSet> {
        match self {
            Self::Postgres(database) => Box::pin(database.execute(statement)),
            Self::Sqlite(database) => Box::pin(database.execute(statement)),
        }
    }

    pub fn transaction(&self) -> Transaction {
        match self {
            Self::Postgres(database) => Transaction::Postgres(database.transaction()),
            Self::Sqlite(database) => Transaction::Sqlite(database.transaction()),
        }
    }

    pub fn stream(&self, statement: Statement, chunk: usize) -> RowStream {
        match self {
            Self::Postgres(database) => RowStream::Postgres(database.stream(statement, chunk)),
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
            Self::Postgres(_) => Err(Error::Usage {
                message: "PostgreSQL does not tell of other sessions' commits; use LISTEN/NOTIFY".to_owned(),
            }),
        }
    }

    /// The pool's numbers by name.
    pub fn stats(&self) -> Vec<(&'static str, u64)> {
        match self {
            Self::Postgres(database) => {
                let stats = database.stats();
                vec![
                    ("size", stats.size as u64),
                    ("idle", stats.idle as u64),
                    ("in_use", stats.in_use as u64),
                    ("waiting", stats.waiting as u64),
                ]
            }
            Self::Sqlite(_) => Vec::new(),
        }
    }

    pub fn close(&self) -> Pending<()> {
        match self {
            Self::Postgres(database) => Box::pin(database.close()),
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
            Self::Postgres(transaction) => transaction.push(statement),
            Self::Sqlite(transaction) => transaction.push(statement),
        }
    }

    /// The result of a statement that was answered, once.
    pub fn take_result(&self, index: usize) -> Option<Result<ResultSet, Error>> {
        match self {
            Self::Postgres(transaction) => transaction.take_result(index),
            Self::Sqlite(transaction) => transaction.take_result(index),
        }
    }

    /// Sends what is noted and waits for the answers; the first error fails the transaction.
    pub fn flush(&self) -> Pending<()> {
        match self {
            Self::Postgres(transaction) => Box::pin(transaction.flush()),
            Self::Sqlite(transaction) => Box::pin(transaction.flush()),
        }
    }

    /// Sends what is noted together with the commit.
    pub fn commit(&self) -> Pending<()> {
        match self {
            Self::Postgres(transaction) => Box::pin(transaction.commit()),
            Self::Sqlite(transaction) => Box::pin(transaction.commit()),
        }
    }

    /// Undoes everything; noted statements are not sent.
    pub fn rollback(&self) -> Pending<()> {
        match self {
            Self::Postgres(transaction) => Box::pin(transaction.rollback()),
            Self::Sqlite(transaction) => Box::pin(transaction.rollback()),
        }
    }

    pub fn is_open(&self) -> bool {
        match self {
            Self::Postgres(transaction) => transaction.is_open(),
            Self::Sqlite(transaction) => transaction.is_open(),
        }
    }
}

impl RowStream {
    /// The next rows, at most a chunk; `None` at the end.
    pub fn next(&self) -> Pending<Option<ResultSet>> {
        match self {
            Self::Postgres(rows) => Box::pin(rows.next()),
            Self::Sqlite(rows) => Box::pin(rows.next()),
        }
    }
}

fn scheme(dsn: &str) -> &str {
    dsn.split_once(':').map_or(dsn, |(scheme, _)| scheme)
}
