//! A session with a server behind a pool.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Mutex;

use super::deferred_statements::SentCommit;
use super::server::{Server, ServerConnection};
use super::server_manager::ServerManager;
use super::{Error, ResultSet, Statement};
use crate::pool::{Lease, Pool};

/// Timeout of a rollback, after which the connection is discarded.
const ROLLBACK_TIMEOUT: Duration = Duration::from_secs(5);

/// A session with a server behind a pool.
pub(super) struct ServerSession<S: Server> {
    /// Replaced as a whole by a reset. A statement that runs meanwhile keeps the old state, also where its future is dropped later: what it
    /// leaves behind ends with it.
    state: RefCell<Rc<State<S>>>,
}

/// What a session keeps between two statements.
struct State<S: Server> {
    /// The connection while the session has state. Locked by the running statement.
    held: Mutex<Option<Lease<ServerManager<S>>>>,
    /// Between `begin()` and the end of the transaction.
    in_transaction: Cell<bool>,
    /// The reason why the transaction or other state of the session is lost.
    lost: RefCell<Option<Error>>,
}

impl<S: Server> Default for State<S> {
    fn default() -> Self {
        Self {
            held: Mutex::new(None),
            in_transaction: Cell::new(false),
            lost: RefCell::new(None),
        }
    }
}

impl<S: Server> Default for ServerSession<S> {
    fn default() -> Self {
        Self {
            state: RefCell::default(),
        }
    }
}

/// Marks the session as lost when it is dropped, because the connection is dropped with it: the future of a call was dropped, or the call
/// cannot use the connection any more.
struct LossGuard<'a> {
    lost: &'a RefCell<Option<Error>>,
    /// Whether something is lost with the connection: a transaction that goes on, or other state.
    is_stateful: bool,
    commit: Option<SentCommit>,
}

impl<'a> LossGuard<'a> {
    fn new(lost: &'a RefCell<Option<Error>>, is_stateful: bool) -> Self {
        Self {
            lost,
            is_stateful,
            commit: None,
        }
    }

    /// For a commit. Its own outcome is the caller's; only other state can be lost to later calls.
    fn committing(lost: &'a RefCell<Option<Error>>, is_stateful: bool, commit: SentCommit) -> Self {
        commit.sent.set(false);
        Self {
            lost,
            is_stateful,
            commit: Some(commit),
        }
    }

    /// The connection goes on.
    fn disarm(mut self) {
        self.is_stateful = false;
    }

    /// The connection has failed.
    fn fail(mut self, error: Error) -> Error {
        let is_sent = self.commit.as_ref().is_some_and(|commit| commit.sent.get());
        let error = match is_sent {
            true => error.of_commit(),
            false => error,
        };
        if std::mem::take(&mut self.is_stateful) {
            self.lost.replace(Some(error.clone()));
        }
        error
    }
}

impl Drop for LossGuard<'_> {
    fn drop(&mut self) {
        if self.is_stateful {
            let error = match &self.commit {
                Some(commit) if commit.sent.get() => commit.cancelled(),
                _ => Error::Cancelled {
                    statement:
                        "its session has ended with it, and an open transaction was rolled back"
                            .to_owned(),
                },
            };
            self.lost.replace(Some(error));
        }
    }
}

impl<S: Server> ServerSession<S> {
    fn state(&self) -> Rc<State<S>> {
        Rc::clone(&self.state.borrow())
    }

    pub(super) fn begin(&self) -> Result<(), Error> {
        let state = self.state();
        if let Some(error) = &*state.lost.borrow() {
            return Err(error.clone());
        }
        match state.in_transaction.replace(true) {
            true => Err(usage("the session is already in a transaction")),
            false => Ok(()),
        }
    }

    pub(super) async fn execute(
        &self,
        pool: Pool<ServerManager<S>>,
        statement: Statement,
        keep: bool,
    ) -> Result<ResultSet, Error> {
        let state = self.state();
        let mut held = state.held.lock().await;
        if let Some(error) = &*state.lost.borrow() {
            return Err(error.clone());
        }
        let mut lease = match held.take() {
            Some(lease) => lease,
            None => pool.borrow().await?,
        };
        lease.set_statement(&statement.source);
        let wanted = state.in_transaction.get();
        let guard = LossGuard::new(&state.lost, wanted || lease.holds_state());
        // If the server refused a statement before the transaction began, the next statement begins it.
        let begin = wanted && !lease.is_in_transaction();
        let outcome = lease.run_statement(&statement, begin).await;
        let result = match outcome {
            Ok(result) => result,
            Err(error) => return Err(guard.fail(error)),
        };
        guard.disarm();
        let keeps = keep || state.in_transaction.get() || lease.holds_state();
        *held = keeps.then_some(lease);
        result
    }

    pub(super) async fn commit(&self) -> Result<(), Error> {
        let state = self.state();
        let mut held = state.held.lock().await;
        state.in_transaction.set(false);
        if let Some(error) = state.lost.take() {
            return Err(error);
        }
        let Some(mut lease) = held.take() else {
            return Ok(());
        };
        let mut outcome = Ok(());
        if lease.is_in_transaction() {
            let has_settings = lease.has_settings();
            let guard = LossGuard::committing(&state.lost, has_settings, lease.sent_commit());
            outcome = match lease.commit().await {
                Ok(outcome) => outcome,
                Err(error) => return Err(guard.fail(error)),
            };
            guard.disarm();
        }
        *held = lease.holds_state().then_some(lease);
        outcome
    }

    pub(super) async fn roll_back(&self) -> Result<(), Error> {
        let state = self.state();
        let mut held = state.held.lock().await;
        state.in_transaction.set(false);
        state.lost.take();
        let Some(mut lease) = held.take() else {
            return Ok(());
        };
        if lease.is_in_transaction() {
            let guard = LossGuard::new(&state.lost, lease.has_settings());
            let undone = tokio::time::timeout(ROLLBACK_TIMEOUT, lease.roll_back()).await;
            if !matches!(undone, Ok(Ok(()))) {
                // If this fails or takes too long, the connection is broken or dirty, and the pool cleans or closes it.
                return Ok(());
            }
            guard.disarm();
        }
        *held = lease.holds_state().then_some(lease);
        Ok(())
    }

    /// Rolls back and returns the connection to the pool, which cleans it. A running statement keeps its connection until it has ended.
    pub(super) fn reset(&self) {
        self.state.take();
    }
}

pub(super) fn usage(message: &str) -> Error {
    Error::Usage {
        message: message.to_owned(),
    }
}
