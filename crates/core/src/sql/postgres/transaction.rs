use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Mutex, mpsc};

use super::batch::{Batch, End, Outcome, is_boundary, is_plain};
use super::connection::TransactionStatus;
use super::round_trip_queue::Waiting;
use super::shared_round_trips::{self, Turn};
use super::startup::Postgres;
use crate::pool::{Lease, Pool};
use crate::sql::copy::CopyData;
use crate::sql::deferred_statements::{
    CancelGuard, DeferredStatements, SentCommit, ended_by_statement,
};
use crate::sql::{Error, ResultSet, Statement};

/// Timeout of a rollback, after which the connection is discarded.
const ROLLBACK_TIMEOUT: Duration = Duration::from_secs(5);

/// Time for a `COPY` that is left early to end, after which the connection is discarded.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);

/// The options of `BEGIN`. The default leaves all to the server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TransactionOptions {
    pub isolation: Option<Isolation>,
    pub read_only: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// A transaction whose statements are sent in batches.
///
/// [`push`](Self::push) adds a statement without sending it. [`flush`](Self::flush) sends the pending statements in one round trip, with `BEGIN`
/// before the first. [`commit`](Self::commit) sends the rest together with `COMMIT`. A transaction that is sent as
/// a whole and consists of plain `INSERT`, `UPDATE`, `DELETE`, `SELECT`, `WITH`, `MERGE` or `VALUES` statements needs
/// neither, because the server runs the statements of one request as one transaction.
///
/// Several tasks may call the methods; flushes run in order. Dropping an unfinished
/// transaction rolls it back. Dropping the future of a flush or commit ends the transaction and cancels the running statement, unless it shares a
/// round trip with others that are still waited for; if the commit was sent, its outcome is unknown.
pub struct Transaction {
    pool: Pool<Postgres>,
    begin: Arc<str>,
    /// Whether `BEGIN` has options.
    has_options: bool,
    deferred: RefCell<DeferredStatements>,
    session: Mutex<Session>,
}

#[derive(Default)]
struct Session {
    /// From the first flush to the end.
    lease: Option<Lease<Postgres>>,
}

impl Transaction {
    pub(super) fn new(pool: Pool<Postgres>, options: TransactionOptions) -> Self {
        Self {
            pool,
            begin: options.begin(),
            has_options: options != TransactionOptions::default(),
            deferred: RefCell::default(),
            session: Mutex::default(),
        }
    }

    /// Adds a statement and returns its index, counted from 0.
    ///
    /// # Errors
    /// [`Error::Usage`] after the end of the transaction, and for a statement that would begin or end one. Neither changes
    /// the transaction.
    pub fn push(&self, statement: Statement) -> Result<usize, Error> {
        if is_boundary(&statement.sql) {
            return Err(Error::boundary(&statement.source));
        }
        self.deferred.borrow_mut().push(statement)
    }

    /// Discards the pending statements; their results are errors.
    pub fn discard(&self) {
        self.deferred.borrow_mut().discard();
    }

    /// The number of pending statements.
    pub fn pending(&self) -> usize {
        self.deferred.borrow().pending().len()
    }

    /// Whether the transaction is neither committed nor rolled back.
    pub fn is_open(&self) -> bool {
        !self.deferred.borrow().ended
    }

    /// # Errors
    /// [`Error::OutcomeUnknown`] when the commit was sent and not answered.
    pub fn check_outcome(&self) -> Result<(), Error> {
        self.deferred.borrow().check_outcome()
    }

    /// Sends the pending statements in one round trip.
    ///
    /// # Errors
    /// That of the first failed statement. The statements after it were not executed and have the same error as
    /// their result. From then on every flush fails with it, except one that begins with `ROLLBACK TO`.
    pub async fn flush(&self) -> Result<(), Error> {
        let mut session = self.session.lock().await;
        if self.deferred.borrow_mut().is_idle()? {
            return Ok(());
        }
        self.send(&mut session).await
    }

    async fn send(&self, session: &mut Session) -> Result<(), Error> {
        let is_first = session.lease.is_none();
        let lease = self.lease(session).await?;
        let statements = self.deferred.borrow_mut().depart()?;
        let batch = match is_first {
            true => self.beginning(&statements, End::Open),
            false => Batch::of(&statements),
        };
        let (lease, outcome) = self.run(lease, batch).await?;
        let left_open = lease.status() != TransactionStatus::Idle;
        let other = (!left_open && outcome.failure.is_none()).then(ended_by_statement);
        // If the server refused the batch before it began, the connection has no transaction.
        session.lease = left_open.then_some(lease);
        let failure = outcome.failure.map(|failure| failure.error).or(other);
        self.deferred
            .borrow_mut()
            .settle(statements.len(), outcome.results, failure)
    }

    /// The index of the statement that failed the transaction; `None` if the commit or the connection failed.
    pub fn failed(&self) -> Option<usize> {
        self.deferred.borrow().failed()
    }

    /// Takes the result of a flushed statement; `None` before the flush and after the first call.
    pub fn take_result(&self, index: usize) -> Option<Result<ResultSet, Error>> {
        self.deferred.borrow_mut().take_result(index)
    }

    /// Sends the rest and commits. Results can still be taken afterwards.
    ///
    /// # Errors
    /// That of the first statement that failed, now or earlier, or of the commit itself (deferred constraints,
    /// serialization): the transaction is rolled back. [`Error::OutcomeUnknown`] when the connection was lost after the
    /// commit was sent, and as the result of every statement when the future was dropped then. [`Error::Usage`] when it had
    /// ended before.
    pub async fn commit(&self) -> Result<(), Error> {
        let mut session = self.session.lock().await;
        let settled = self.deferred.borrow().is_settled();
        match settled {
            Ok(true) if session.lease.is_none() => {}
            Ok(_) => return self.finish(&mut session).await,
            Err(_) => {}
        }
        let outcome = self.deferred.borrow_mut().end();
        self.roll_back(session.lease.take()).await;
        outcome
    }

    /// Sends the pending statements together with `COMMIT`.
    async fn finish(&self, session: &mut Session) -> Result<(), Error> {
        let is_first = session.lease.is_none();
        let statements = self.deferred.borrow_mut().depart()?;
        self.deferred.borrow_mut().ended = true;
        if is_first
            && self.is_implicit(&statements)
            && let Some(limit) = shared_round_trips::limit(&self.pool)
        {
            return self.finish_together(statements, limit).await;
        }
        let guard = CancelGuard::new(&self.deferred);
        let lease = guard.finish(self.lease(session).await)?;
        let batch = match is_first {
            true => self.whole(&statements),
            false => Batch {
                end: End::Commit,
                ..Batch::of(&statements)
            },
        };
        let (lease, outcome) = self.run(lease, batch).await?;
        if outcome.failure.is_some() {
            self.roll_back(Some(lease)).await;
        }
        self.settle(statements.len(), outcome)
    }

    /// Sends all statements, together with others that wait for a connection.
    async fn finish_together(&self, statements: Vec<Statement>, limit: usize) -> Result<(), Error> {
        let waiting = Waiting::new(statements);
        let commit = SentCommit {
            target: Rc::clone(self.pool.manager().server.target()),
            sent: Rc::clone(&waiting.is_sent),
            is_shared: true,
        };
        let guard = CancelGuard::committing(&self.deferred, commit);
        let turn = guard.finish(shared_round_trips::take_turn(&self.pool, limit, &waiting).await);
        let outcome = match turn.inspect_err(|error| self.deferred.borrow_mut().fail(error))? {
            Turn::Alone(lease) => self.run(lease, Batch::of(&waiting.statements)).await?.1,
            Turn::Shared(outcome) => outcome,
        };
        self.settle(waiting.statements.len(), outcome)
    }

    fn settle(&self, sent: usize, outcome: Outcome) -> Result<(), Error> {
        let failure = outcome.failure.map(|failure| failure.error);
        self.deferred
            .borrow_mut()
            .settle(sent, outcome.results, failure)
    }

    /// Sends the pending statements, then runs a `COPY` whose data comes from or goes to the client. When the receiver of the data is dropped
    /// early, the transaction goes on. Dropping the future ends it.
    pub(in crate::sql) async fn copy(
        &self,
        statement: Statement,
        data: CopyData,
    ) -> Result<u64, Error> {
        let mut session = self.session.lock().await;
        self.deferred.borrow_mut().is_idle()?;
        self.send(&mut session).await?;
        let Some(mut lease) = session.lease.take() else {
            return Err(ended_by_statement());
        };
        lease.set_statement(&statement.source);
        let guard = CancelGuard::new(&self.deferred);
        let outcome = guard.finish(match data {
            CopyData::In(_) => lease.copy(&statement, data).await,
            CopyData::Out(chunks) => self.copy_out(&mut lease, &statement, chunks).await,
        });
        let copied = outcome.inspect_err(|error| self.deferred.borrow_mut().fail(error))?;
        session.lease = Some(lease);
        copied.inspect_err(|error| self.deferred.borrow_mut().fail(error))
    }

    /// The `COPY` runs in a savepoint, because the server answers the cancellation of one that is left early with an error.
    async fn copy_out(
        &self,
        lease: &mut Lease<Postgres>,
        statement: &Statement,
        chunks: mpsc::Sender<Bytes>,
    ) -> Result<Result<u64, Error>, Error> {
        if let Err(error) = control(lease, &["SAVEPOINT weft_copy"]).await? {
            return Ok(Err(error));
        }
        let outcome = lease.copy(statement, CopyData::Out(chunks.clone())).await?;
        let is_left = outcome.is_err() && chunks.is_closed();
        if is_left {
            let settled = self.pool.manager().settle(lease);
            let Ok(settled) = tokio::time::timeout(LEAVE_TIMEOUT, settled).await else {
                return Err(lease.give_up("a COPY that was left early did not end"));
            };
            settled?;
        }
        let ended = match lease.status() {
            TransactionStatus::Failed if !is_left => return Ok(outcome),
            TransactionStatus::Failed => {
                control(
                    lease,
                    &[
                        "ROLLBACK TO SAVEPOINT weft_copy",
                        "RELEASE SAVEPOINT weft_copy",
                    ],
                )
                .await?
            }
            _ => control(lease, &["RELEASE SAVEPOINT weft_copy"]).await?,
        };
        Ok(match is_left {
            true => ended.map(|()| 0),
            false => outcome.and_then(|rows| ended.map(|()| rows)),
        })
    }

    /// Rolls back and discards the pending statements. Has no effect after the end of the transaction. A flush that another
    /// task waits for ends first; the rollback itself takes 5 seconds at most.
    ///
    /// # Errors
    /// None at present: a connection that cannot roll back in time is closed, which also rolls back.
    pub async fn rollback(&self) -> Result<(), Error> {
        let mut session = self.session.lock().await;
        self.deferred.borrow_mut().abandon();
        let lease = session.lease.take();
        self.roll_back(lease).await;
        Ok(())
    }

    /// The connection of the transaction. Cancelling the wait for a new one loses no pending statement.
    async fn lease(&self, session: &mut Session) -> Result<Lease<Postgres>, Error> {
        if let Some(lease) = session.lease.take() {
            return Ok(lease);
        }
        let lease = self.pool.borrow().await.map_err(Error::from);
        lease.inspect_err(|error| self.deferred.borrow_mut().fail(error))
    }

    async fn run(
        &self,
        mut lease: Lease<Postgres>,
        batch: Batch<'_>,
    ) -> Result<(Lease<Postgres>, Outcome), Error> {
        if let Some(statement) = batch.statements.last() {
            lease.set_statement(&statement.source);
        }
        let guard = match self.deferred.borrow().ended {
            true => CancelGuard::committing(&self.deferred, lease.sent_commit()),
            false => CancelGuard::new(&self.deferred),
        };
        let outcome = guard.finish(lease.run(batch).await);
        match outcome {
            Ok(outcome) => Ok((lease, outcome)),
            Err(error) => {
                self.deferred.borrow_mut().fail(&error);
                Err(error)
            }
        }
    }

    async fn roll_back(&self, lease: Option<Lease<Postgres>>) {
        if let Some(mut lease) = lease
            && lease.status() != TransactionStatus::Idle
        {
            // If this fails or takes too long, the connection is broken or dirty, and the pool cleans or closes it.
            let _ = tokio::time::timeout(ROLLBACK_TIMEOUT, lease.rollback()).await;
        }
    }

    fn beginning<'a>(&'a self, statements: &'a [Statement], end: End) -> Batch<'a> {
        Batch {
            begin: Some(&self.begin),
            statements,
            end,
        }
    }

    /// The batch of a transaction that has sent nothing.
    fn whole<'a>(&'a self, statements: &'a [Statement]) -> Batch<'a> {
        match self.is_implicit(statements) {
            true => Batch::of(statements),
            false => self.beginning(statements, End::Commit),
        }
    }

    /// Whether the statements are the whole transaction without `BEGIN` and `COMMIT`.
    fn is_implicit(&self, statements: &[Statement]) -> bool {
        !self.has_options && statements.iter().all(|s| is_plain(&s.sql))
    }
}

/// Runs statements without results. The outer error is the connection's, the inner one a statement's.
async fn control(lease: &mut Lease<Postgres>, texts: &[&str]) -> Result<Result<(), Error>, Error> {
    let statements: Vec<_> = texts
        .iter()
        .map(|sql| Statement::new(*sql, Vec::new()))
        .collect();
    let outcome = lease.run(Batch::of(&statements)).await?;
    Ok(outcome.failure.map_or(Ok(()), |failure| Err(failure.error)))
}

impl TransactionOptions {
    pub(super) fn begin(self) -> Arc<str> {
        thread_local! {
            static PLAIN: Arc<str> = Arc::from("BEGIN");
        }
        if self == Self::default() {
            return PLAIN.with(Arc::clone);
        }
        let isolation = match self.isolation {
            None => "",
            Some(Isolation::ReadCommitted) => " ISOLATION LEVEL READ COMMITTED",
            Some(Isolation::RepeatableRead) => " ISOLATION LEVEL REPEATABLE READ",
            Some(Isolation::Serializable) => " ISOLATION LEVEL SERIALIZABLE",
        };
        let access = if self.read_only { " READ ONLY" } else { "" };
        format!("BEGIN{isolation}{access}").into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_worded_into_begin() {
        assert_eq!(&*TransactionOptions::default().begin(), "BEGIN");
        let options = TransactionOptions {
            isolation: Some(Isolation::Serializable),
            read_only: true,
        };
        assert_eq!(
            &*options.begin(),
            "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY"
        );
    }
}
