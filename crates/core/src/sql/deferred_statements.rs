//! Deferred statements of a transaction and their results, for drivers whose connections live on the reactor.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use super::postgres::is_rollback_to;
use super::{Error, ResultSet, Statement};

/// The statements and results of one transaction.
#[derive(Default)]
pub(super) struct DeferredStatements {
    pending: Vec<Statement>,
    /// One for each statement that was sent. Results at the front are removed once taken, so that a batch of any
    /// length needs little memory.
    results: VecDeque<Slot>,
    /// Index of the first result.
    taken: usize,
    /// Index of the first statement of the batch sent last.
    batch: usize,
    failure: Option<Error>,
    /// Index of the statement that failed; `None` if the commit or the connection failed.
    failed: Option<usize>,
    /// The failure that the batch sent last began to undo with `ROLLBACK TO`, and the index of its statement.
    undone: Option<(Error, Option<usize>)>,
    pub(super) ended: bool,
}

/// The result of one statement.
enum Slot {
    /// The statement is sent and its result not yet received.
    Underway,
    Done(Result<ResultSet, Error>),
    Taken,
}

/// Ends the transaction when the future of a running batch is dropped. The pool cleans the connection of the lease that is
/// dropped with it.
pub(super) struct CancelGuard<'a> {
    deferred: &'a RefCell<DeferredStatements>,
    commit: Option<SentCommit>,
}

/// Whether a commit was sent that is not yet answered, and its target for messages.
#[derive(Clone)]
pub struct SentCommit {
    pub(super) target: Rc<str>,
    pub(super) sent: Rc<Cell<bool>>,
    /// It was sent together with the transactions of others, and is not cancelled alone.
    pub(super) is_shared: bool,
}

impl SentCommit {
    /// The error after the wait for the answer was cancelled.
    pub(super) fn cancelled(&self) -> Error {
        let message = match self.is_shared {
            true => {
                "the wait for its answer was cancelled, and it may still run after those that it was sent with"
            }
            false => "the wait for its answer was cancelled",
        };
        Error::OutcomeUnknown {
            target: self.target.to_string(),
            message: message.to_owned(),
        }
    }
}

impl<'a> CancelGuard<'a> {
    pub(super) fn new(deferred: &'a RefCell<DeferredStatements>) -> Self {
        Self {
            deferred,
            commit: None,
        }
    }

    /// For a batch that ends with the commit.
    pub(super) fn committing(
        deferred: &'a RefCell<DeferredStatements>,
        commit: SentCommit,
    ) -> Self {
        commit.sent.set(false);
        Self {
            deferred,
            commit: Some(commit),
        }
    }

    /// Ends the guard with the outcome of the batch. A connection lost during a commit leaves its outcome unknown.
    pub(super) fn finish<T>(self, outcome: Result<T, Error>) -> Result<T, Error> {
        let commit = std::mem::ManuallyDrop::new(self).commit.take();
        let is_sent = commit.is_some_and(|commit| commit.sent.get());
        outcome.map_err(|error| match is_sent {
            true => error.of_commit(),
            false => error,
        })
    }

    fn failure(&self) -> Error {
        match &self.commit {
            Some(commit) if commit.sent.get() => commit.cancelled(),
            _ => Error::Cancelled {
                statement: "the transaction it belonged to was cancelled and rolled back"
                    .to_owned(),
            },
        }
    }
}

impl Drop for CancelGuard<'_> {
    fn drop(&mut self) {
        let failure = self.failure();
        let mut deferred = self.deferred.borrow_mut();
        deferred.fail(&failure);
        deferred.ended = true;
    }
}

impl DeferredStatements {
    /// Adds a statement and returns its index, counted from 0.
    pub(super) fn push(&mut self, statement: Statement) -> Result<usize, Error> {
        if self.ended {
            return Err(ended());
        }
        self.pending.push(statement);
        Ok(self.flushed() + self.pending.len() - 1)
    }

    /// The statements of the next flush.
    pub(super) fn pending(&self) -> &[Statement] {
        &self.pending
    }

    /// Discards the pending statements; their results are errors.
    pub(super) fn discard(&mut self) {
        self.refuse_pending(&discarded());
    }

    /// Ends the transaction without its pending statements.
    pub(super) fn abandon(&mut self) {
        self.ended = true;
        self.pending.clear();
    }

    /// The index of the statement that failed the transaction, unless the commit or the connection failed.
    pub(super) fn failed(&self) -> Option<usize> {
        self.failed
    }

    pub(super) fn take_result(&mut self, index: usize) -> Option<Result<ResultSet, Error>> {
        let slot = self.results.get_mut(index.checked_sub(self.taken)?)?;
        if !matches!(slot, Slot::Done(_)) {
            return None;
        }
        let result = match std::mem::replace(slot, Slot::Taken) {
            Slot::Done(result) => Some(result),
            Slot::Underway | Slot::Taken => None,
        };
        while let Some(Slot::Taken) = self.results.front() {
            self.results.pop_front();
            self.taken += 1;
        }
        result
    }

    /// Index of the first pending statement.
    fn flushed(&self) -> usize {
        self.taken + self.results.len()
    }

    /// # Errors
    /// [`Error::OutcomeUnknown`] when the commit was sent and not answered.
    pub(super) fn check_outcome(&self) -> Result<(), Error> {
        match &self.failure {
            Some(failure @ Error::OutcomeUnknown { .. }) => Err(failure.clone()),
            _ => Ok(()),
        }
    }

    /// Whether no statement is pending.
    pub(super) fn is_settled(&self) -> Result<bool, Error> {
        match &self.failure {
            Some(failure) if self.ended || !self.returns_to_savepoint() => Err(failure.clone()),
            _ if self.ended => Err(ended()),
            _ => Ok(self.pending.is_empty()),
        }
    }

    /// The same; pending statements that can no longer be sent get the error as their result.
    pub(super) fn is_idle(&mut self) -> Result<bool, Error> {
        let settled = self.is_settled();
        if let Err(error) = &settled {
            self.refuse_pending(error);
        }
        settled
    }

    fn returns_to_savepoint(&self) -> bool {
        let first = self.pending.first();
        first.is_some_and(|statement| is_rollback_to(&statement.sql))
    }

    /// Takes the pending statements, unless the transaction has failed or ended.
    pub(super) fn depart(&mut self) -> Result<Vec<Statement>, Error> {
        if let Err(error) = self.is_settled() {
            self.refuse_pending(&error);
            return Err(error);
        }
        let failed = self.failed.take();
        self.undone = self.failure.take().map(|failure| (failure, failed));
        let statements = std::mem::take(&mut self.pending);
        self.batch = self.flushed();
        let answers_to_come = statements.iter().map(|_| Slot::Underway);
        self.results.extend(answers_to_come);
        Ok(statements)
    }

    /// Ends a transaction that has nothing to commit or cannot be committed.
    pub(super) fn end(&mut self) -> Result<(), Error> {
        let outcome = self.depart().map(drop);
        self.ended = true;
        outcome
    }

    /// Stores the results of the `sent` statements of the last batch.
    pub(super) fn settle(
        &mut self,
        sent: usize,
        results: Vec<ResultSet>,
        failure: Option<Error>,
    ) -> Result<(), Error> {
        let (first, done) = (self.batch, results.len());
        for (at, result) in results.into_iter().enumerate() {
            self.note_result(first + at, Ok(result));
        }
        let undone = self.undone.take();
        let Some(error) = failure else {
            return Ok(());
        };
        // A failure that makes the server roll back the whole transaction, such as a deadlock, removes the savepoints: it stays the failure.
        let (error, failed) = match undone {
            Some(undone) if done == 0 && error.is_missing_savepoint() => undone,
            _ => (error, (done < sent).then_some(first + done)),
        };
        for at in done..sent {
            self.note_result(first + at, Err(error.clone()));
        }
        (self.failure, self.failed) = (Some(error.clone()), failed);
        Err(error)
    }

    fn note_result(&mut self, index: usize, result: Result<ResultSet, Error>) {
        let slot = index
            .checked_sub(self.taken)
            .and_then(|at| self.results.get_mut(at));
        if let Some(slot @ Slot::Underway) = slot {
            *slot = Slot::Done(result);
        }
    }

    /// Gives the error to all statements that were sent and not answered, and to all pending ones.
    pub(super) fn fail(&mut self, error: &Error) {
        (self.failure, self.failed) = (Some(error.clone()), None);
        self.refuse_flushed(error);
        self.refuse_pending(error);
    }

    /// Gives the error to the pending statements; unanswered ones keep their places.
    fn refuse_pending(&mut self, error: &Error) {
        let refused = self
            .pending
            .drain(..)
            .map(|_| Slot::Done(Err(error.clone())));
        self.results.extend(refused);
    }

    /// Gives the error to the statements that were sent and not answered.
    fn refuse_flushed(&mut self, error: &Error) {
        for slot in &mut self.results {
            if matches!(slot, Slot::Underway) {
                *slot = Slot::Done(Err(error.clone()));
            }
        }
    }
}

pub(super) fn ended() -> Error {
    Error::Usage {
        message: "the transaction has ended; begin a new one".to_owned(),
    }
}

fn discarded() -> Error {
    Error::Usage {
        message: "the statement was never sent because its nested transaction was rolled back"
            .to_owned(),
    }
}

pub(super) fn ended_by_statement() -> Error {
    Error::Usage {
        message: "a statement ended the transaction; use commit() or rollback()".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::ServerError;

    fn statement(sql: &str) -> Statement {
        Statement::new(sql, Vec::new())
    }

    fn push(deferred: &mut DeferredStatements, sql: &str) -> usize {
        deferred.push(statement(sql)).unwrap()
    }

    fn affected(number: u64) -> ResultSet {
        ResultSet {
            affected: number,
            ..ResultSet::default()
        }
    }

    fn taken(deferred: &mut DeferredStatements, index: usize) -> Result<u64, String> {
        match deferred.take_result(index) {
            Some(Ok(result)) => Ok(result.affected),
            Some(Err(error)) => Err(error.to_string()),
            None => Err("none".to_owned()),
        }
    }

    #[test]
    fn discarding_while_a_batch_runs_keeps_the_results_of_the_batch() {
        let mut deferred = DeferredStatements::default();
        let sent = [push(&mut deferred, "a"), push(&mut deferred, "b")];
        assert_eq!(deferred.depart().unwrap().len(), 2);
        let discarded = push(&mut deferred, "c");
        deferred.discard();
        let later = push(&mut deferred, "d");
        deferred
            .settle(2, vec![affected(10), affected(11)], None)
            .unwrap();

        assert_eq!(taken(&mut deferred, sent[0]), Ok(10));
        assert_eq!(taken(&mut deferred, sent[1]), Ok(11));
        assert!(
            taken(&mut deferred, discarded)
                .unwrap_err()
                .contains("never sent")
        );
        assert_eq!(deferred.depart().unwrap().len(), 1);
        deferred.settle(1, vec![affected(13)], None).unwrap();
        assert_eq!(taken(&mut deferred, later), Ok(13));
    }

    #[test]
    fn a_statement_that_fails_after_a_discard_is_named_by_its_own_index() {
        let mut deferred = DeferredStatements::default();
        let sent = [push(&mut deferred, "a"), push(&mut deferred, "b")];
        deferred.depart().unwrap();
        push(&mut deferred, "c");
        deferred.discard();
        let failure = Error::Usage {
            message: "b is wrong".to_owned(),
        };
        deferred
            .settle(2, vec![affected(1)], Some(failure))
            .unwrap_err();

        assert_eq!(deferred.failed(), Some(sent[1]));
        assert_eq!(taken(&mut deferred, sent[0]), Ok(1));
        assert!(
            taken(&mut deferred, sent[1])
                .unwrap_err()
                .contains("b is wrong")
        );
    }

    fn server_error(code: i32, message: &str) -> Error {
        Error::Server(Box::new(ServerError {
            sqlstate: "42000".to_owned(),
            message: message.to_owned(),
            detail: None,
            hint: None,
            constraint: None,
            code: Some(code),
            is_repeatable: false,
            statement: String::new(),
        }))
    }

    #[test]
    fn a_failure_that_has_removed_the_savepoints_stays_until_the_end() {
        let mut deferred = DeferredStatements::default();
        let failed = push(&mut deferred, "a");
        deferred.depart().unwrap();
        let deadlock = server_error(1213, "Deadlock found");
        deferred.settle(1, vec![], Some(deadlock)).unwrap_err();
        for _ in 0..2 {
            let undo = push(&mut deferred, "ROLLBACK TO SAVEPOINT b");
            deferred.depart().unwrap();
            let missing = server_error(1305, "SAVEPOINT b does not exist");
            let error = deferred.settle(1, vec![], Some(missing)).unwrap_err();

            assert!(error.to_string().contains("Deadlock"), "{error}");
            assert_eq!(deferred.failed(), Some(failed));
            assert!(taken(&mut deferred, undo).unwrap_err().contains("Deadlock"));
        }
        push(&mut deferred, "c");
        assert!(deferred.is_idle().is_err());
    }

    #[test]
    fn a_savepoint_that_never_was_is_the_failure_itself() {
        let mut deferred = DeferredStatements::default();
        push(&mut deferred, "ROLLBACK TO SAVEPOINT b");
        deferred.depart().unwrap();
        let missing = server_error(1305, "SAVEPOINT b does not exist");
        let error = deferred.settle(1, vec![], Some(missing)).unwrap_err();
        assert!(error.to_string().contains("does not exist"), "{error}");
    }

    #[test]
    fn a_statement_that_was_sent_and_never_answered_has_the_error_as_its_result() {
        let mut deferred = DeferredStatements::default();
        let sent = push(&mut deferred, "a");
        deferred.depart().unwrap();
        push(&mut deferred, "b");
        deferred.discard();
        assert!(deferred.take_result(sent).is_none());
        deferred.fail(&ended());
        assert!(
            taken(&mut deferred, sent)
                .unwrap_err()
                .contains("has ended")
        );
    }
}
