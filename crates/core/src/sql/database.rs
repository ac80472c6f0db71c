//! One interface for all drivers.
//!
//! Every future returned here owns its data. Dropping it cancels the statement, unless that shares a round trip with others.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use super::copy::{self, CopyData, CopyIn, CopyOut};
use super::pending::Pending;
use super::{
    Column, Dialect, Error, Hooks, PoolEvents, ResultSet, Statement, Value, mysql, postgres, sqlite,
};
use crate::pool::{Borrower, Holder, Manage, Pool, PoolOptions, Stats};

/// A database of any supported kind. Cheap to clone; lives on the reactor's thread.
#[derive(Clone)]
pub enum Database {
    Postgres(Rc<postgres::Database>),
    Mysql(Rc<mysql::Database>),
    Sqlite(sqlite::Database),
}

#[derive(Clone)]
pub enum Transaction {
    Postgres(Rc<postgres::Transaction>),
    Mysql(Rc<mysql::Transaction>),
    Sqlite(sqlite::Transaction),
}

/// Changes to the pool of a running database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolChange {
    Resize {
        size: usize,
        minimum_idle: usize,
    },
    /// Lends and opens no connections; borrowers wait.
    Pause,
    Resume,
    /// Replaces every connection.
    Reset,
}

/// Rows of a large result, a chunk at a time. Dropping it ends the query.
#[derive(Clone)]
pub enum RowStream {
    /// Absent while the next chunk is being read.
    Postgres(Rc<RefCell<Option<postgres::RowStream>>>),
    Mysql(Rc<RefCell<Option<mysql::RowStream>>>),
    MysqlCursor(Rc<RefCell<Option<mysql::Cursor>>>),
    Sqlite(sqlite::RowStream),
}

impl Database {
    /// Chooses the driver by the DSN's scheme. It contacts no server; the future opens an SQLite file.
    ///
    /// The default name of a pool is that of its database. SQLite has one writer per file, so it ignores pool and hooks.
    ///
    /// # Errors
    /// [`Error::Dsn`] for an unknown scheme or a DSN its driver cannot read.
    pub fn open(dsn: &str, mut pool: PoolOptions, hooks: Hooks) -> Result<Pending<Self>, Error> {
        match scheme(dsn) {
            "postgres" | "postgresql" | "pgsql" => {
                let config = postgres::Config::parse(dsn)?;
                if pool.name.is_empty() {
                    config.connect.database_or_user().clone_into(&mut pool.name);
                }
                Ok(Box::pin(async move {
                    let database = postgres::Database::with_hooks(config, pool, hooks);
                    database.pool().warm_up();
                    Ok(Self::Postgres(database))
                }))
            }
            "mysql" | "mariadb" => {
                let config = mysql::Config::parse(dsn)?;
                if pool.name.is_empty() {
                    config.connect.database_or_user().clone_into(&mut pool.name);
                }
                Ok(Box::pin(async move {
                    let database = mysql::Database::with_hooks(config, pool, hooks);
                    database.pool().warm_up();
                    Ok(Self::Mysql(database))
                }))
            }
            "sqlite" => {
                let config = sqlite::Config::parse(dsn)?;
                Ok(Box::pin(async move {
                    Ok(Self::Sqlite(sqlite::Database::open(config).await?))
                }))
            }
            other => Err(Error::Dsn {
                dsn: if dsn.is_empty() {
                    String::new()
                } else {
                    format!("{other}:…")
                },
                reason: "the scheme must be postgres, mysql or sqlite, as in postgres://user@host/database, mysql://user@host/database or sqlite:file.db"
                    .to_owned(),
            }),
        }
    }

    pub fn driver(&self) -> &'static str {
        match self {
            Self::Postgres(_) => "postgres",
            Self::Mysql(_) => "mysql",
            Self::Sqlite(_) => "sqlite",
        }
    }

    pub fn dialect(&self) -> Dialect {
        match self {
            Self::Postgres(_) => Dialect::Postgres,
            Self::Mysql(_) => Dialect::Mysql,
            Self::Sqlite(_) => Dialect::Sqlite,
        }
    }

    pub fn execute(&self, statement: Statement) -> Pending<ResultSet> {
        match self {
            Self::Postgres(database) => {
                let database = Rc::clone(database);
                Box::pin(async move { database.execute_single(statement).await })
            }
            Self::Mysql(database) => {
                let database = Rc::clone(database);
                Box::pin(async move { database.execute(statement).await })
            }
            Self::Sqlite(database) => Box::pin(database.execute(statement)),
        }
    }

    pub fn transaction(&self) -> Transaction {
        match self {
            Self::Postgres(database) => {
                let transaction = database.transaction(postgres::TransactionOptions::default());
                Transaction::Postgres(Rc::new(transaction))
            }
            Self::Mysql(database) => Transaction::Mysql(Rc::new(database.transaction())),
            Self::Sqlite(database) => Transaction::Sqlite(database.transaction()),
        }
    }

    pub fn stream(&self, statement: Statement, chunk: usize) -> RowStream {
        match self {
            Self::Postgres(database) => {
                let rows = database.stream(statement, chunk);
                RowStream::Postgres(Rc::new(RefCell::new(Some(rows))))
            }
            Self::Mysql(database) => {
                let rows = database.stream(statement, chunk);
                RowStream::Mysql(Rc::new(RefCell::new(Some(rows))))
            }
            Self::Sqlite(database) => RowStream::Sqlite(database.stream(statement, chunk)),
        }
    }

    /// Writes data into a table by `COPY … FROM STDIN`.
    pub fn copy_in(&self, statement: Statement) -> CopyIn {
        CopyIn::new(|data| self.copy(statement, data))
    }

    /// Returns data by `COPY … TO STDOUT`.
    pub fn copy_out(&self, statement: Statement) -> CopyOut {
        CopyOut::new(|data| self.copy(statement, data), false)
    }

    fn copy(&self, statement: Statement, data: CopyData) -> Pending<u64> {
        match self {
            Self::Postgres(database) => {
                let database = Rc::clone(database);
                Box::pin(async move { database.copy(statement, data).await })
            }
            other => copy::unsupported(other.driver(), &statement),
        }
    }

    /// Subscribes to channels.
    ///
    /// # Errors
    /// [`Error::Usage`] for a driver that has no channels.
    pub fn listen(
        &self,
        channels: Vec<String>,
        check: Duration,
    ) -> Result<Pending<postgres::Listener>, Error> {
        match self {
            Self::Postgres(database) => {
                let database = Rc::clone(database);
                Ok(Box::pin(
                    async move { database.listen(channels, check).await },
                ))
            }
            other => Err(Error::Usage {
                message: format!(
                    "{} has no LISTEN and NOTIFY, PostgreSQL has",
                    other.driver()
                ),
            }),
        }
    }

    /// Resolves when another connection or process has committed to the file.
    ///
    /// # Errors
    /// [`Error::Usage`] for drivers without such notifications.
    pub fn wait_for_change(&self) -> Result<Pending<()>, Error> {
        match self {
            Self::Sqlite(database) => Ok(Box::pin(database.wait_for_change())),
            Self::Postgres(_) => Err(Error::Usage {
                message:
                    "PostgreSQL does not report commits of other sessions; use listen() and notify()"
                        .to_owned(),
            }),
            Self::Mysql(_) => Err(Error::Usage {
                message: "MySQL does not report commits of other sessions".to_owned(),
            }),
        }
    }

    /// The same database for a named borrower of connections.
    pub fn on_behalf_of(&self, borrower: Borrower) -> Self {
        match self {
            Self::Postgres(database) => Self::Postgres(Rc::new(database.on_behalf_of(borrower))),
            Self::Mysql(database) => Self::Mysql(Rc::new(database.on_behalf_of(borrower))),
            Self::Sqlite(database) => Self::Sqlite(database.clone()),
        }
    }

    /// The statistics of the pool; `None` for SQLite, which has none.
    pub fn stats(&self) -> Option<Stats> {
        match self {
            Self::Postgres(database) => Some(database.stats()),
            Self::Mysql(database) => Some(database.stats()),
            Self::Sqlite(_) => None,
        }
    }

    /// The current holders of connections, the oldest first.
    pub fn holders(&self) -> Vec<Holder> {
        match self {
            Self::Postgres(database) => database.pool().holders(),
            Self::Mysql(database) => database.pool().holders(),
            Self::Sqlite(_) => Vec::new(),
        }
    }

    /// Hook calls and leaks, for the program. `None` for SQLite.
    pub fn events(&self) -> Option<Rc<PoolEvents>> {
        let events = match self {
            Self::Postgres(database) => database.events(),
            Self::Mysql(database) => database.events(),
            Self::Sqlite(_) => return None,
        };
        Some(events)
    }

    /// Runs a statement of a hook on the hook's connection.
    pub fn execute_in_hook(&self, call: u64, statement: Statement) -> Pending<ResultSet> {
        match self {
            Self::Postgres(database) => {
                Box::pin(Rc::clone(database.hook_calls()).execute(call, statement))
            }
            Self::Mysql(database) => {
                Box::pin(Rc::clone(database.hook_calls()).execute(call, statement))
            }
            Self::Sqlite(database) => Box::pin(database.execute(statement)),
        }
    }

    /// Reports that a hook has returned or thrown.
    pub fn end_hook(&self, call: u64, outcome: Result<(), Error>) {
        match self {
            Self::Postgres(database) => database.hook_calls().finish(call, outcome),
            Self::Mysql(database) => database.hook_calls().finish(call, outcome),
            Self::Sqlite(_) => {}
        }
    }

    /// Changes the running pool. Has no effect for SQLite.
    pub fn change_pool(&self, change: PoolChange) {
        match self {
            Self::Postgres(database) => change.apply(database.pool()),
            Self::Mysql(database) => change.apply(database.pool()),
            Self::Sqlite(_) => {}
        }
    }

    pub fn close(&self) -> Pending<()> {
        match self {
            Self::Postgres(database) => {
                let database = Rc::clone(database);
                Box::pin(async move {
                    database.close().await;
                    Ok(())
                })
            }
            Self::Mysql(database) => {
                let database = Rc::clone(database);
                Box::pin(async move {
                    database.close().await;
                    Ok(())
                })
            }
            Self::Sqlite(database) => Box::pin(database.close()),
        }
    }
}

impl PoolChange {
    fn apply<M: Manage>(self, pool: &Pool<M>) {
        match self {
            Self::Resize { size, minimum_idle } => pool.resize(size, minimum_idle),
            Self::Pause => pool.pause(),
            Self::Resume => pool.resume(),
            Self::Reset => pool.reset(),
        }
    }
}

impl Transaction {
    /// Adds a statement without sending it and returns its index.
    ///
    /// # Errors
    /// [`Error::Usage`] after the end.
    pub fn push(&self, statement: Statement) -> Result<usize, Error> {
        match self {
            Self::Postgres(transaction) => transaction.push(statement),
            Self::Mysql(transaction) => transaction.push(statement),
            Self::Sqlite(transaction) => transaction.push(statement),
        }
    }

    /// Takes the result of a completed statement.
    pub fn take_result(&self, index: usize) -> Option<Result<ResultSet, Error>> {
        match self {
            Self::Postgres(transaction) => transaction.take_result(index),
            Self::Mysql(transaction) => transaction.take_result(index),
            Self::Sqlite(transaction) => transaction.take_result(index),
        }
    }

    /// The index of the statement that failed the transaction; `None` if the commit or the connection failed.
    pub fn failed(&self) -> Option<usize> {
        match self {
            Self::Postgres(transaction) => transaction.failed(),
            Self::Mysql(transaction) => transaction.failed(),
            Self::Sqlite(transaction) => transaction.failed(),
        }
    }

    /// Opens a cursor that returns at most `chunk` rows at a time; other statements may run between two chunks.
    ///
    /// # Errors
    /// [`Error::Usage`] for PostgreSQL, whose cursors are declared by statements, and SQLite, which has none.
    pub fn stream(&self, statement: Statement, chunk: usize) -> Result<RowStream, Error> {
        match self {
            Self::Mysql(transaction) => {
                let cursor = mysql::Cursor::new(Rc::clone(transaction), statement, chunk);
                Ok(RowStream::MysqlCursor(Rc::new(RefCell::new(Some(cursor)))))
            }
            _ => Err(Error::Usage {
                message: "only MySQL has cursors without a DECLARE statement".to_owned(),
            }),
        }
    }

    /// Sends the pending statements, then writes data into a table by `COPY … FROM STDIN`.
    pub fn copy_in(&self, statement: Statement) -> CopyIn {
        CopyIn::new(|data| self.copy(statement, data))
    }

    /// Sends the pending statements, then returns data by `COPY … TO STDOUT`. The transaction can be used again after the last chunk, or when
    /// the data is dropped earlier.
    pub fn copy_out(&self, statement: Statement) -> CopyOut {
        CopyOut::new(|data| self.copy(statement, data), true)
    }

    fn copy(&self, statement: Statement, data: CopyData) -> Pending<u64> {
        match self {
            Self::Postgres(transaction) => {
                let transaction = Rc::clone(transaction);
                Box::pin(async move { transaction.copy(statement, data).await })
            }
            Self::Mysql(_) => copy::unsupported("mysql", &statement),
            Self::Sqlite(_) => copy::unsupported("sqlite", &statement),
        }
    }

    /// Sends the pending statements and waits for their results; the first error fails the transaction.
    pub fn flush(&self) -> Pending<()> {
        match self {
            Self::Postgres(transaction) => {
                let transaction = Rc::clone(transaction);
                Box::pin(async move { transaction.flush().await })
            }
            Self::Mysql(transaction) => {
                let transaction = Rc::clone(transaction);
                Box::pin(async move { transaction.flush().await })
            }
            Self::Sqlite(transaction) => Box::pin(transaction.flush()),
        }
    }

    /// Sends the pending statements together with the commit.
    pub fn commit(&self) -> Pending<()> {
        match self {
            Self::Postgres(transaction) => {
                let transaction = Rc::clone(transaction);
                Box::pin(async move { transaction.commit().await })
            }
            Self::Mysql(transaction) => {
                let transaction = Rc::clone(transaction);
                Box::pin(async move { transaction.commit().await })
            }
            Self::Sqlite(transaction) => Box::pin(transaction.commit()),
        }
    }

    /// Rolls back; pending statements are not sent.
    pub fn rollback(&self) -> Pending<()> {
        match self {
            Self::Postgres(transaction) => {
                let transaction = Rc::clone(transaction);
                Box::pin(async move { transaction.rollback().await })
            }
            Self::Mysql(transaction) => {
                let transaction = Rc::clone(transaction);
                Box::pin(async move { transaction.rollback().await })
            }
            Self::Sqlite(transaction) => Box::pin(transaction.rollback()),
        }
    }

    /// Discards the pending statements; their results are errors.
    pub fn discard(&self) {
        match self {
            Self::Postgres(transaction) => transaction.discard(),
            Self::Mysql(transaction) => transaction.discard(),
            Self::Sqlite(transaction) => transaction.discard(),
        }
    }

    /// # Errors
    /// [`Error::OutcomeUnknown`] when the wait for the answer to its commit was cancelled.
    pub fn check_outcome(&self) -> Result<(), Error> {
        match self {
            Self::Postgres(transaction) => transaction.check_outcome(),
            Self::Mysql(transaction) => transaction.check_outcome(),
            Self::Sqlite(transaction) => transaction.check_outcome(),
        }
    }

    pub fn is_open(&self) -> bool {
        match self {
            Self::Postgres(transaction) => transaction.is_open(),
            Self::Mysql(transaction) => transaction.is_open(),
            Self::Sqlite(transaction) => transaction.is_open(),
        }
    }
}

impl RowStream {
    /// The next chunk of rows; `None` at the end.
    pub fn next(&self) -> Pending<Option<ResultSet>> {
        match self {
            Self::Postgres(rows) => next(rows, async |rows| (rows.next().await, rows.columns())),
            Self::Mysql(rows) => next(rows, async |rows| (rows.next().await, rows.columns())),
            Self::MysqlCursor(rows) => next(rows, async |rows| (rows.next().await, rows.columns())),
            Self::Sqlite(rows) => Box::pin(rows.next()),
        }
    }
}

type Chunk = (Result<Option<Vec<Vec<Value>>>, Error>, Arc<[Column]>);

/// The rows are absent while the next chunk is being read: dropping the future ends them.
fn next<R: 'static>(
    rows: &Rc<RefCell<Option<R>>>,
    fetch: impl AsyncFnOnce(&mut R) -> Chunk + 'static,
) -> Pending<Option<ResultSet>> {
    let cell = Rc::clone(rows);
    Box::pin(async move {
        let mut rows = cell.borrow_mut().take().ok_or_else(|| Error::Usage {
            message: "another task already waits for the next rows of this stream".to_owned(),
        })?;
        let (chunk, columns) = fetch(&mut rows).await;
        cell.replace(Some(rows));
        Ok(chunk?.map(|rows| ResultSet {
            columns,
            affected: rows.len() as u64,
            rows,
            last_insert_id: None,
            further: Vec::new(),
        }))
    })
}

fn scheme(dsn: &str) -> &str {
    dsn.split_once(':').map_or(dsn, |(scheme, _)| scheme)
}
