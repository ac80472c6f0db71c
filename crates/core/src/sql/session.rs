//! A session as database libraries expect it: statements take effect one after the other, on what looks like one
//! connection, and settings, temporary tables and locks stay until it ends.
//!
//! It uses a pool. A session holds a connection only while it has state that the next borrower must not see or
//! that its next statement needs: an open transaction, a setting, a temporary table, a lock.

use std::rc::Rc;

use super::database::Database;
use super::pending::Pending;
use super::server_session::{ServerSession, usage};
use super::{Error, ResultSet, Statement, mysql, postgres, sqlite};

/// A session of any kind of database. Statements of several tasks take turns in the order of their calls.
#[derive(Clone)]
pub struct Session(Kind);

#[derive(Clone)]
enum Kind {
    Postgres(Rc<ServerSession<postgres::Connector>>),
    Mysql(Rc<ServerSession<mysql::Connector>>),
    Sqlite(Rc<sqlite::Session>),
}

impl Session {
    pub fn new(database: &Database) -> Self {
        Self(match database {
            Database::Postgres(_) => Kind::Postgres(Rc::default()),
            Database::Mysql(_) => Kind::Mysql(Rc::default()),
            Database::Sqlite(database) => {
                Kind::Sqlite(Rc::new(sqlite::Session::new(database.clone())))
            }
        })
    }

    /// Begins a transaction, which reaches the server with the first statement.
    ///
    /// # Errors
    /// [`Error::Usage`] inside a transaction; the error by which the session was lost.
    pub fn begin(&self) -> Result<(), Error> {
        match &self.0 {
            Kind::Postgres(session) => session.begin(),
            Kind::Mysql(session) => session.begin(),
            Kind::Sqlite(session) => session.begin(),
        }
    }

    /// Runs one statement. An error of the statement leaves the session as the server leaves it.
    ///
    /// `keep`: the next statement needs the same connection although the session has no visible state, such as one that
    /// selects `lastval()`. `database` is the database of the session, on behalf of the caller.
    ///
    /// Dropping the future cancels the statement on the server, and ends a session that has state:
    /// every call fails with [`Error::Cancelled`] until [`roll_back`](Self::roll_back) or [`reset`](Self::reset).
    ///
    /// # Errors
    /// As [`Database::execute`]; the error by which the session was lost.
    pub fn execute(
        &self,
        database: &Database,
        statement: Statement,
        keep: bool,
    ) -> Pending<ResultSet> {
        match (&self.0, database) {
            (Kind::Postgres(session), Database::Postgres(database)) => {
                let (session, pool) = (Rc::clone(session), database.pool.clone());
                Box::pin(async move { session.execute(pool, statement, keep).await })
            }
            (Kind::Mysql(session), Database::Mysql(database)) => {
                let (session, pool) = (Rc::clone(session), database.pool.clone());
                Box::pin(async move { session.execute(pool, statement, keep).await })
            }
            (Kind::Sqlite(session), _) => {
                let session = Rc::clone(session);
                Box::pin(async move { session.execute(statement).await })
            }
            _ => Box::pin(async { Err(usage("the session belongs to another database")) }),
        }
    }

    /// Commits the transaction, if there is one.
    ///
    /// Dropping the future ends the transaction: it is rolled back, or, once the commit was sent, committed or rolled back. A session that
    /// has other state ends with it, as [`execute`](Self::execute) says.
    ///
    /// # Errors
    /// That of the commit: nothing took effect. [`Error::OutcomeUnknown`] when the connection was lost after it was sent.
    pub fn commit(&self) -> Pending<()> {
        match &self.0 {
            Kind::Postgres(session) => {
                let session = Rc::clone(session);
                Box::pin(async move { session.commit().await })
            }
            Kind::Mysql(session) => {
                let session = Rc::clone(session);
                Box::pin(async move { session.commit().await })
            }
            Kind::Sqlite(session) => {
                let session = Rc::clone(session);
                Box::pin(async move { session.commit().await })
            }
        }
    }

    /// Rolls back. A lost session becomes usable again, without the settings, temporary tables and locks that it had.
    pub fn roll_back(&self) -> Pending<()> {
        match &self.0 {
            Kind::Postgres(session) => {
                let session = Rc::clone(session);
                Box::pin(async move { session.roll_back().await })
            }
            Kind::Mysql(session) => {
                let session = Rc::clone(session);
                Box::pin(async move { session.roll_back().await })
            }
            Kind::Sqlite(session) => {
                let session = Rc::clone(session);
                Box::pin(async move { session.roll_back().await })
            }
        }
    }

    /// Resets the session without waiting: the pool rolls back and cleans the connection.
    pub fn reset(&self) {
        match &self.0 {
            Kind::Postgres(session) => session.reset(),
            Kind::Mysql(session) => session.reset(),
            Kind::Sqlite(session) => session.reset(),
        }
    }
}
