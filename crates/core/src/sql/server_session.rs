//! A session with a server behind a pool.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::time::Duration;

use tokio::sync::Mutex;

use super::deferred_statements::SentCommit;
use super::pooled_database::Server;
use super::{Error, ResultSet, Statement};
use crate::pool::{Lease, Pool};

/// What a rollback may take before the connection is given up.
const ROLLBACK_TIMEOUT: Duration = Duration::from_secs(5);

/// What a session needs of a connection to a server.
pub(super) trait SessionConnection {
    /// Runs one statement, and what begins a transaction in front of it in the same round trip.
    ///
    /// The outer error is the connection's, the inner one the statement's.
    fn run_statement(
        &mut self,
        statement: &Statement,
        begin: bool,
    ) -> impl Future<Output = Result<Result<ResultSet, Error>, Error>>;

    /// The inner error is the server's, in which case nothing is committed.
    fn commit_session(&mut self) -> impl Future<Output = Result<Result<(), Error>, Error>>;

    fn roll_back_session(&mut self) -> impl Future<Output = Result<(), Error>>;

    fn is_in_transaction(&self) -> bool;

    /// Whether the session has something in it that must not be lost between two statements, nor be seen by another borrower.
    fn holds_state(&self) -> bool;

    fn sent_commit(&self) -> SentCommit;
}

/// A session with a server behind a pool.
pub(super) struct ServerSession<S: Server> {
    /// The connection while there is something in it. Locked by the statement that runs.
    held: Mutex<Option<Lease<S>>>,
    /// Between `begin()` and the end of the transaction.
    in_transaction: Cell<bool>,
    /// Why the transaction, or what else was in the session, is gone.
    lost: RefCell<Option<Error>>,
}

impl<S: Server> Default for ServerSession<S> {
    fn default() -> Self {
        Self {
            held: Mutex::new(None),
            in_transaction: Cell::new(false),
            lost: RefCell::new(None),
        }
    }
}

/// Marks the session as lost when the future of a running statement is dropped, because the connection is dropped with it.
struct CancelGuard<'a> {
    lost: &'a RefCell<Option<Error>>,
    /// Whether the session holds a transaction or other state.
    is_stateful: bool,
}

impl CancelGuard<'_> {
    fn disarm(mut self) {
        self.is_stateful = false;
    }
}

impl Drop for CancelGuard<'_> {
    fn drop(&mut self) {
        if self.is_stateful {
            let statement = "the session it belonged to has ended with it, and what was open in it was rolled back";
            self.lost.replace(Some(Error::Cancelled {
                statement: statement.to_owned(),
            }));
        }
    }
}

impl<S: Server<Connection: SessionConnection>> ServerSession<S> {
    pub(super) fn begin(&self) -> Result<(), Error> {
        if let Some(error) = &*self.lost.borrow() {
            return Err(error.clone());
        }
        match self.in_transaction.replace(true) {
            true => Err(usage("the session is in a transaction already")),
            false => Ok(()),
        }
    }

    pub(super) async fn execute(
        &self,
        pool: Pool<S>,
        statement: Statement,
        keep: bool,
    ) -> Result<ResultSet, Error> {
        let mut held = self.held.lock().await;
        if let Some(error) = &*self.lost.borrow() {
            return Err(error.clone());
        }
        let mut lease = match held.take() {
            Some(lease) => lease,
            None => pool.borrow().await?,
        };
        lease.set_statement(&statement.source);
        let wanted = self.in_transaction.get();
        let guard = CancelGuard {
            lost: &self.lost,
            is_stateful: wanted || lease.holds_state(),
        };
        // Where the server refused the statement before it began the transaction, the next one begins it.
        let begin = wanted && !lease.is_in_transaction();
        let outcome = lease.run_statement(&statement, begin).await;
        let is_stateful = guard.is_stateful;
        guard.disarm();
        match outcome {
            Ok(result) => {
                let keeps = keep || self.in_transaction.get() || lease.holds_state();
                *held = keeps.then_some(lease);
                result
            }
            Err(error) => {
                if is_stateful {
                    self.lost.replace(Some(error.clone()));
                }
                Err(error)
            }
        }
    }

    pub(super) async fn commit(&self) -> Result<(), Error> {
        let mut held = self.held.lock().await;
        self.in_transaction.set(false);
        if let Some(error) = self.lost.take() {
            return Err(error);
        }
        let Some(mut lease) = held.take() else {
            return Ok(());
        };
        let mut outcome = Ok(());
        if lease.is_in_transaction() {
            let commit = lease.sent_commit();
            commit.sent.set(false);
            let ended = lease.commit_session().await;
            outcome = ended.map_err(|error| match commit.sent.get() {
                true => error.of_commit(),
                false => error,
            })?;
        }
        *held = lease.holds_state().then_some(lease);
        outcome
    }

    pub(super) async fn roll_back(&self) -> Result<(), Error> {
        let mut held = self.held.lock().await;
        self.in_transaction.set(false);
        self.lost.take();
        let Some(mut lease) = held.take() else {
            return Ok(());
        };
        if lease.is_in_transaction() {
            let undone = tokio::time::timeout(ROLLBACK_TIMEOUT, lease.roll_back_session()).await;
            if !matches!(undone, Ok(Ok(()))) {
                // A connection on which this fails or takes too long is broken or dirty, and the pool sees to it.
                return Ok(());
            }
        }
        *held = lease.holds_state().then_some(lease);
        Ok(())
    }

    /// Rolls back, and gives the connection back, which the pool cleans. A statement that runs keeps its connection.
    pub(super) fn reset(&self) {
        self.in_transaction.set(false);
        self.lost.take();
        if let Ok(mut held) = self.held.try_lock() {
            held.take();
        }
    }
}

pub(super) fn usage(message: &str) -> Error {
    Error::Usage {
        message: message.to_owned(),
    }
}
