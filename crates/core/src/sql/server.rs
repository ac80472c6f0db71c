//! The differences between kinds of servers, for the pool, hooks and sessions that they share.

use std::future::Future;
use std::rc::Rc;

use super::deferred_statements::SentCommit;
use super::hooks::{HookState, HookedConnection};
use super::{Error, ResultSet, Statement};
use crate::pool::Condition;

/// One kind of server: opens, cleans and ends the connections to one database.
pub trait Server: Sized + 'static {
    type Config;
    type Connection: ServerConnection;

    fn new(config: Self::Config) -> Self;

    /// `database "app" at localhost:5432 as "app"`.
    fn target(&self) -> &str;

    /// Whether a statement begins or ends a transaction.
    fn is_boundary(sql: &str) -> bool;

    /// # Errors
    /// [`Error::Connect`], at the latest after the connect timeout.
    fn connect(&self) -> impl Future<Output = Result<Self::Connection, Error>>;

    /// Cancels the running statement of a session, over a connection of its own.
    fn cancel(&self, session: SessionKey<Self>) -> impl Future<Output = Result<(), Error>>;

    /// Ends what a session that was closed still runs, over a connection of its own. The server would notice a closed socket only at
    /// its next write.
    fn terminate(
        self: Rc<Self>,
        session: SessionKey<Self>,
    ) -> impl Future<Output = Result<(), Error>> + 'static;

    /// Rolls back, and cleans the session of a connection without outstanding answers.
    fn clean(&self, connection: &mut Self::Connection) -> impl Future<Output = Result<(), Error>>;
}

/// Identifies a session when it is cancelled.
pub type SessionKey<S> = <<S as Server>::Connection as ServerConnection>::Key;

/// A connection to a server: one session.
pub trait ServerConnection {
    type Key: Copy + 'static;

    fn key(&self) -> Self::Key;

    /// The server's id of the session.
    fn session_id(&self) -> i64;

    /// Whether the connection can be lent. Reads a pending shutdown message without a round trip.
    fn condition(&mut self) -> Condition;

    /// Whether an answer is outstanding.
    fn is_busy(&self) -> bool;

    fn is_in_transaction(&self) -> bool;

    /// Whether the session has state beside a transaction: settings, temporary tables, locks.
    fn has_settings(&self) -> bool;

    /// Whether the session has state that must survive between two statements and be hidden from other borrowers.
    fn holds_state(&self) -> bool {
        self.is_in_transaction() || self.has_settings()
    }

    /// Accepts the current session state as the connection's own, so that cleaning keeps it.
    fn keep_session_state(&mut self);

    /// Runs one statement. With `begin`, a transaction begins in the same round trip.
    ///
    /// The outer error is the connection's, the inner one the statement's.
    fn run_statement(
        &mut self,
        statement: &Statement,
        begin: bool,
    ) -> impl Future<Output = Result<Result<ResultSet, Error>, Error>>;

    /// The inner error is the server's, in which case nothing is committed.
    fn commit(&mut self) -> impl Future<Output = Result<Result<(), Error>, Error>>;

    fn roll_back(&mut self) -> impl Future<Output = Result<(), Error>>;

    fn sent_commit(&self) -> SentCommit;

    /// Writes a request without effects, whose answer proves that the connection works.
    fn push_ping(&mut self);

    /// Sends buffered requests and reads and ignores all outstanding answers.
    fn drain(&mut self) -> impl Future<Output = Result<(), Error>>;

    /// Sends the end of the session if the socket accepts it at once.
    fn quit(&mut self);

    fn hook_state(&mut self) -> &mut HookState;
}

impl<C: ServerConnection> HookedConnection for Box<C> {
    fn session(&self) -> i64 {
        self.session_id()
    }

    async fn execute(&mut self, statement: &Statement) -> Result<ResultSet, Error> {
        let outcome = self.run_statement(statement, false).await?;
        if self.is_in_transaction() {
            self.roll_back().await?;
            outcome?;
            return Err(Error::open_transaction());
        }
        outcome
    }

    fn is_ready(&self) -> bool {
        !self.is_busy() && !self.is_in_transaction()
    }

    fn keep_session_state(&mut self) {
        (**self).keep_session_state();
    }

    fn mark(&mut self) -> &mut HookState {
        self.hook_state()
    }
}
