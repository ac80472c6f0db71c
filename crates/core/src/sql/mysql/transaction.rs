use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Mutex;

use super::batch::Outcome;
use super::cursor_fetch::{Fetched, Handle};
use super::startup::Mysql;
use super::statement_kind::StatementKind;
use crate::pool::{Lease, Pool};
use crate::sql::deferred_statements::{CancelGuard, DeferredStatements, ended};
use crate::sql::{Error, ResultSet, Statement};

/// Timeout of a rollback, after which the connection is discarded.
const ROLLBACK_TIMEOUT: Duration = Duration::from_secs(5);

/// A transaction whose statements are sent in batches.
///
/// [`push`](Self::push) adds a statement without sending it. [`flush`](Self::flush) sends the pending statements in one round
/// trip, with the begin of the transaction before the first. [`commit`](Self::commit) takes one for the rest and one for `COMMIT`: in
/// this protocol a server continues after a failed statement, so the commit must wait until all have succeeded. A single
/// statement is a transaction by itself.
///
/// Several tasks may call the methods; flushes run in order. Dropping an unfinished
/// transaction rolls it back. Dropping the future of a flush or commit cancels the running statement and ends the transaction.
pub struct Transaction {
    pool: Pool<Mysql>,
    deferred: RefCell<DeferredStatements>,
    session: Mutex<Session>,
    /// Numbers of statements whose cursors were dropped.
    dropped: Rc<RefCell<Vec<u32>>>,
}

#[derive(Default)]
struct Session {
    /// From the first flush to the end.
    lease: Option<Lease<Mysql>>,
}

impl Transaction {
    pub(super) fn new(pool: Pool<Mysql>) -> Self {
        Self {
            pool,
            deferred: RefCell::default(),
            session: Mutex::default(),
            dropped: Rc::default(),
        }
    }

    /// Adds a statement and returns its index, counted from 0.
    ///
    /// # Errors
    /// [`Error::Usage`] after the end of the transaction, and for a statement that would begin or end one. Neither changes
    /// the transaction.
    pub fn push(&self, statement: Statement) -> Result<usize, Error> {
        if StatementKind::of(&statement.sql).controls_transaction {
            return Err(Error::boundary(&statement.source));
        }
        self.deferred.borrow_mut().push(statement)
    }

    /// Discards the pending statements; their results are errors.
    pub fn discard(&self) {
        self.deferred.borrow_mut().discard();
    }

    /// Whether the transaction is neither committed nor rolled back.
    pub fn is_open(&self) -> bool {
        !self.deferred.borrow().ended
    }

    /// The index of the statement that failed the transaction; `None` if the commit or the connection failed.
    pub fn failed(&self) -> Option<usize> {
        self.deferred.borrow().failed()
    }

    /// # Errors
    /// [`Error::OutcomeUnknown`] when the commit was sent and not answered.
    pub fn check_outcome(&self) -> Result<(), Error> {
        self.deferred.borrow().check_outcome()
    }

    /// Takes the result of a flushed statement; `None` before the flush and after the first call.
    pub fn take_result(&self, index: usize) -> Option<Result<ResultSet, Error>> {
        self.deferred.borrow_mut().take_result(index)
    }

    /// Sends the pending statements.
    ///
    /// # Errors
    /// That of the first failed statement. The statements after it have no effect and the same error as their
    /// result. From then on every flush fails with it, except one that begins with `ROLLBACK TO`.
    pub async fn flush(&self) -> Result<(), Error> {
        let mut session = self.session.lock().await;
        if self.deferred.borrow_mut().is_idle()? {
            return Ok(());
        }
        self.send(&mut session).await
    }

    /// Sends the rest and commits. Results can still be taken afterwards.
    ///
    /// # Errors
    /// That of the first statement that failed, now or earlier, or of the commit: the transaction is rolled back.
    /// [`Error::OutcomeUnknown`] when the connection was lost after the commit was sent, and as the result of every statement
    /// when the future was dropped then. [`Error::Usage`] when it had ended before.
    pub async fn commit(&self) -> Result<(), Error> {
        let mut session = self.session.lock().await;
        let settled = self.deferred.borrow().is_settled();
        match settled {
            Err(_) => {}
            Ok(true) if session.lease.is_none() => {}
            Ok(_) if session.lease.is_none() && self.is_one_statement() => {
                return self.commit_alone().await;
            }
            Ok(true) => return self.finish(&mut session).await,
            Ok(false) => {
                if let Err(error) = self.send(&mut session).await {
                    self.deferred.borrow_mut().ended = true;
                    self.roll_back(session.lease.take()).await;
                    return Err(error);
                }
                return self.finish(&mut session).await;
            }
        }
        let outcome = self.deferred.borrow_mut().end();
        self.roll_back(session.lease.take()).await;
        outcome
    }

    /// Rolls back and discards the pending statements. Has no effect after the end of the transaction.
    ///
    /// # Errors
    /// None at present: a connection that cannot roll back is closed, which also rolls back.
    pub async fn rollback(&self) -> Result<(), Error> {
        let mut session = self.session.lock().await;
        self.deferred.borrow_mut().abandon();
        let lease = session.lease.take();
        self.roll_back(lease).await;
        Ok(())
    }

    /// Runs a transaction of one statement without `BEGIN` and `COMMIT`, because the server runs it as a transaction anyway.
    fn is_one_statement(&self) -> bool {
        match self.deferred.borrow().pending() {
            [only] => {
                let kind = StatementKind::of(&only.sql);
                kind.is_batchable && !kind.is_savepoint
            }
            _ => false,
        }
    }

    async fn commit_alone(&self) -> Result<(), Error> {
        let mut lease = self.borrow().await?;
        let statements = self.deferred.borrow_mut().depart()?;
        self.deferred.borrow_mut().ended = true;
        lease.set_statement(&statements[0].source);
        let guard = CancelGuard::committing(&self.deferred, lease.sent_commit());
        let outcome = guard.finish(lease.run_one(&statements[0]).await);
        let mut deferred = self.deferred.borrow_mut();
        match outcome {
            Ok(Ok(result)) => deferred.settle(1, vec![result], None),
            Ok(Err(error)) => deferred.settle(1, Vec::new(), Some(error)),
            Err(error) => {
                deferred.fail(&error);
                Err(error)
            }
        }
    }

    /// Sends the pending statements and opens a cursor.
    pub(super) async fn open_cursor(
        &self,
        statement: &Statement,
        chunk: u32,
    ) -> Result<Fetched, Error> {
        let mut session = self.session.lock().await;
        let idle = self.deferred.borrow_mut().is_idle()?;
        if !idle || session.lease.is_none() {
            self.send(&mut session).await?;
        }
        let mut lease = self.held(&mut session)?;
        lease.set_statement(&statement.source);
        let guard = CancelGuard::new(&self.deferred);
        let opened = guard.finish(lease.open_cursor(statement, &self.dropped, chunk).await);
        self.keep(&mut session, lease, opened)
    }

    /// The next rows of a cursor.
    pub(super) async fn fetch(
        &self,
        statement: &Statement,
        handle: Handle,
        chunk: u32,
    ) -> Result<Fetched, Error> {
        let mut session = self.session.lock().await;
        let mut lease = self.held(&mut session)?;
        let guard = CancelGuard::new(&self.deferred);
        let fetched = guard.finish(lease.fetch(statement, handle, chunk).await);
        self.keep(&mut session, lease, fetched)
    }

    fn held(&self, session: &mut Session) -> Result<Lease<Mysql>, Error> {
        let mut lease = session.lease.take().ok_or_else(ended)?;
        lease.evicted.append(&mut self.dropped.borrow_mut());
        Ok(lease)
    }

    /// Records the outcome of a cursor: its failure fails the transaction, as that of any statement does.
    fn keep(
        &self,
        session: &mut Session,
        lease: Lease<Mysql>,
        outcome: Result<Result<Fetched, Error>, Error>,
    ) -> Result<Fetched, Error> {
        let outcome = outcome.inspect_err(|error| self.deferred.borrow_mut().fail(error))?;
        session.lease = Some(lease);
        outcome.inspect_err(|error| self.deferred.borrow_mut().fail(error))
    }

    async fn send(&self, session: &mut Session) -> Result<(), Error> {
        let mut lease = match session.lease.take() {
            Some(mut lease) => {
                lease.evicted.append(&mut self.dropped.borrow_mut());
                lease
            }
            None => {
                let mut lease = self.borrow().await?;
                lease.push_open();
                lease
            }
        };
        let statements = self.deferred.borrow_mut().depart()?;
        if let Some(statement) = statements.last() {
            lease.set_statement(&statement.source);
        }
        let guard = CancelGuard::new(&self.deferred);
        let outcome = guard.finish(lease.run_all(&statements).await);
        match outcome {
            Ok(Outcome { results, failure }) => {
                session.lease = Some(lease);
                self.deferred
                    .borrow_mut()
                    .settle(statements.len(), results, failure)
            }
            Err(error) => {
                self.deferred.borrow_mut().fail(&error);
                Err(error)
            }
        }
    }

    /// Commits the statements that were sent.
    async fn finish(&self, session: &mut Session) -> Result<(), Error> {
        let Ok(mut lease) = self.held(session) else {
            return Ok(());
        };
        self.deferred.borrow_mut().ended = true;
        let guard = CancelGuard::committing(&self.deferred, lease.sent_commit());
        let outcome = guard.finish(lease.commit().await);
        outcome
            .and_then(|committed| committed)
            .inspect_err(|error| {
                self.deferred.borrow_mut().fail(error);
            })
    }

    /// The connection of the transaction. Cancelling the wait for a new one loses no pending statement.
    async fn borrow(&self) -> Result<Lease<Mysql>, Error> {
        let lease = self.pool.borrow().await.map_err(Error::from);
        lease.inspect_err(|error| self.deferred.borrow_mut().fail(error))
    }

    async fn roll_back(&self, lease: Option<Lease<Mysql>>) {
        let Some(mut lease) = lease else {
            return;
        };
        lease.evicted.append(&mut self.dropped.borrow_mut());
        if !lease.is_idle() || lease.is_busy() {
            // If this fails or takes too long, the connection is broken or dirty, and the pool cleans or closes it.
            let _ = tokio::time::timeout(ROLLBACK_TIMEOUT, lease.rollback()).await;
        }
    }
}
