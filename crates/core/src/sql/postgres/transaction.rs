use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;

use super::batch::{Batch, End, Failure, Outcome, is_boundary, is_plain, is_rollback_to};
use super::connection::TransactionStatus;
use super::database::Postgres;
use crate::pool::{Lease, Pool};
use crate::sql::{Error, ResultSet, Statement};

/// What a rollback may take before the connection is given up.
const UNDO_DEADLINE: Duration = Duration::from_secs(5);

/// How a transaction begins. The default leaves everything to the server.
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

/// A transaction whose statements travel together.
///
/// [`push`](Self::push) only notes a statement; [`flush`](Self::flush) sends what is noted in one round trip, `BEGIN` in
/// front of the first. [`commit`](Self::commit) sends the rest and `COMMIT` along with it. A transaction that goes out as
/// a whole and consists of plain `INSERT`, `UPDATE`, `DELETE`, `SELECT`, `WITH`, `MERGE` or `VALUES` statements needs
/// neither: the server treats the statements of one request as one transaction.
///
/// All methods take `&self` and may be called by several tasks: flushes queue up, in order. Dropping an unfinished
/// transaction rolls it back; dropping the future of a flush or commit cancels what is running and ends the transaction.
pub struct Transaction {
    pool: Pool<Postgres>,
    begin: Arc<str>,
    /// Whether the wording of `BEGIN` matters.
    has_options: bool,
    book: RefCell<Book>,
    session: Mutex<Session>,
}

/// What has been asked for and what has come back.
#[derive(Default)]
struct Book {
    pending: Vec<Statement>,
    /// Index of the first pending statement.
    flushed: usize,
    results: Vec<Option<Result<ResultSet, Error>>>,
    failure: Option<Error>,
    ended: bool,
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
            book: RefCell::default(),
            session: Mutex::default(),
        }
    }

    /// Notes a statement and returns its index, counted from 0.
    ///
    /// # Errors
    /// [`Error::Usage`] after the end of the transaction, and for a statement that would begin or end one. The transaction
    /// is as it was before.
    pub fn push(&self, statement: Statement) -> Result<usize, Error> {
        if is_boundary(&statement.sql) {
            return Err(Error::boundary(&statement.source));
        }
        let mut book = self.book.borrow_mut();
        if book.ended {
            return Err(ended());
        }
        book.pending.push(statement);
        Ok(book.flushed + book.pending.len() - 1)
    }

    /// Forgets what is noted; the results of those statements are errors.
    pub fn discard(&self) {
        self.book.borrow_mut().refuse_pending(&discarded());
    }

    /// How many statements wait for the next flush.
    pub fn pending(&self) -> usize {
        self.book.borrow().pending.len()
    }

    /// Whether it was neither committed nor rolled back yet.
    pub fn is_open(&self) -> bool {
        !self.book.borrow().ended
    }

    /// Sends what is noted, in one round trip.
    ///
    /// # Errors
    /// That of the first statement that failed; the statements after it were not executed and have the same error as
    /// their result. From then on every flush fails with it, except one that begins with `ROLLBACK TO`.
    pub async fn flush(&self) -> Result<(), Error> {
        let mut session = self.session.lock().await;
        if self.book.borrow_mut().is_idle()? {
            return Ok(());
        }
        let is_first = session.lease.is_none();
        let lease = self.lease(&mut session).await?;
        let statements = self.book.borrow_mut().depart()?;
        let batch = match is_first {
            true => self.beginning(&statements, End::Open),
            false => Batch::of(&statements),
        };
        let (lease, outcome) = self.run(lease, batch).await?;
        let left_open = lease.status() != TransactionStatus::Idle;
        let other = (!left_open && outcome.failure.is_none()).then(ended_by_statement);
        // A batch that was refused before it began leaves a connection without a transaction.
        session.lease = left_open.then_some(lease);
        self.book
            .borrow_mut()
            .settle(statements.len(), outcome, other)
    }

    /// The result of a flushed statement, once; `None` while it is not flushed, or when it has been taken.
    pub fn take_result(&self, index: usize) -> Option<Result<ResultSet, Error>> {
        self.book.borrow_mut().results.get_mut(index)?.take()
    }

    /// Sends the rest and commits. Results can still be taken afterwards.
    ///
    /// # Errors
    /// That of the first statement that failed, now or earlier, or of the commit itself (deferred constraints,
    /// serialization): the transaction is rolled back. After [`Error::ConnectionLost`] it may have been committed.
    /// [`Error::Usage`] when it had ended before.
    pub async fn commit(&self) -> Result<(), Error> {
        let mut session = self.session.lock().await;
        let settled = self.book.borrow().is_settled();
        match settled {
            Ok(true) if session.lease.is_none() => {}
            Ok(_) => return self.finish(&mut session).await,
            Err(_) => {}
        }
        let outcome = self.book.borrow_mut().end();
        self.undo(session.lease.take()).await;
        outcome
    }

    /// Sends what is left together with `COMMIT`.
    async fn finish(&self, session: &mut Session) -> Result<(), Error> {
        let is_first = session.lease.is_none();
        let lease = self.lease(session).await?;
        let statements = self.book.borrow_mut().depart()?;
        self.book.borrow_mut().ended = true;
        let batch = match is_first {
            true => self.whole(&statements),
            false => Batch {
                end: End::Commit,
                ..Batch::of(&statements)
            },
        };
        let (lease, outcome) = self.run(lease, batch).await?;
        if outcome.failure.is_some() {
            self.undo(Some(lease)).await;
        }
        self.book
            .borrow_mut()
            .settle(statements.len(), outcome, None)
    }

    /// Undoes everything; what is noted is forgotten. Does nothing when the transaction has ended. A flush that another
    /// task waits for ends first; the rollback itself takes 5 seconds at most.
    ///
    /// # Errors
    /// None so far: a connection that cannot roll back in time is closed, which rolls back as well.
    pub async fn rollback(&self) -> Result<(), Error> {
        let mut session = self.session.lock().await;
        {
            let mut book = self.book.borrow_mut();
            book.ended = true;
            book.pending.clear();
        }
        let lease = session.lease.take();
        self.undo(lease).await;
        Ok(())
    }

    /// The connection of the transaction. Nothing noted is lost when the wait for a new one is given up.
    async fn lease(&self, session: &mut Session) -> Result<Lease<Postgres>, Error> {
        if let Some(lease) = session.lease.take() {
            return Ok(lease);
        }
        let lease = self.pool.borrow().await.map_err(Error::from);
        lease.inspect_err(|error| self.book.borrow_mut().fail(error))
    }

    async fn run(
        &self,
        mut lease: Lease<Postgres>,
        batch: Batch<'_>,
    ) -> Result<(Lease<Postgres>, Outcome), Error> {
        if let Some(statement) = batch.statements.last() {
            lease.note(&statement.source);
        }
        let abandoned = Abandoned(&self.book);
        let outcome = lease.run(batch).await;
        std::mem::forget(abandoned);
        match outcome {
            Ok(outcome) => Ok((lease, outcome)),
            Err(error) => {
                self.book.borrow_mut().fail(&error);
                Err(error)
            }
        }
    }

    async fn undo(&self, lease: Option<Lease<Postgres>>) {
        if let Some(mut lease) = lease
            && lease.status() != TransactionStatus::Idle
        {
            // A connection on which this fails or takes too long is broken or dirty, and the pool sees to it.
            let _ = tokio::time::timeout(UNDO_DEADLINE, lease.rollback()).await;
        }
    }

    fn beginning<'a>(&'a self, statements: &'a [Statement], end: End) -> Batch<'a> {
        Batch {
            begin: Some(&self.begin),
            statements,
            end,
        }
    }

    /// The batch of a transaction of which nothing has been sent yet.
    fn whole<'a>(&'a self, statements: &'a [Statement]) -> Batch<'a> {
        let is_implicit = !self.has_options && statements.iter().all(|s| is_plain(&s.sql));
        if is_implicit {
            Batch::of(statements)
        } else {
            self.beginning(statements, End::Commit)
        }
    }
}

/// Marks the transaction as ended when the future of a running batch is dropped; the lease, dropped with it, is cleaned by
/// the pool.
struct Abandoned<'a>(&'a RefCell<Book>);

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        let mut book = self.0.borrow_mut();
        let statement = "the transaction it belonged to was cancelled and rolled back".to_owned();
        book.fail(&Error::Cancelled { statement });
        book.ended = true;
    }
}

impl Book {
    /// Whether there is nothing to send.
    fn is_settled(&self) -> Result<bool, Error> {
        match &self.failure {
            Some(failure) if self.ended || !self.returns_to_savepoint() => Err(failure.clone()),
            _ if self.ended => Err(ended()),
            _ => Ok(self.pending.is_empty()),
        }
    }

    /// The same; pending statements that cannot be sent any more get their error as result.
    fn is_idle(&mut self) -> Result<bool, Error> {
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

    /// Takes the pending statements, unless the transaction cannot go on with them.
    fn depart(&mut self) -> Result<Vec<Statement>, Error> {
        if let Err(error) = self.is_settled() {
            self.refuse_pending(&error);
            return Err(error);
        }
        self.failure = None;
        let statements = std::mem::take(&mut self.pending);
        self.flushed += statements.len();
        Ok(statements)
    }

    /// Ends a transaction that has nothing to commit or cannot be.
    fn end(&mut self) -> Result<(), Error> {
        let outcome = self.depart().map(drop);
        self.ended = true;
        outcome
    }

    /// Notes what came back for the last `sent` statements.
    fn settle(&mut self, sent: usize, outcome: Outcome, other: Option<Error>) -> Result<(), Error> {
        let failure = outcome.failure.map(|Failure { error, .. }| error).or(other);
        let done = outcome.results.len();
        self.results
            .extend(outcome.results.into_iter().map(|result| Some(Ok(result))));
        match failure {
            None => Ok(()),
            Some(error) => {
                self.results
                    .extend((done..sent).map(|_| Some(Err(error.clone()))));
                self.failure = Some(error.clone());
                Err(error)
            }
        }
    }

    /// Nothing of the statements under way, and nothing pending, will have a result.
    fn fail(&mut self, error: &Error) {
        self.failure = Some(error.clone());
        self.results.resize(self.flushed, Some(Err(error.clone())));
        self.refuse_pending(error);
    }

    fn refuse_pending(&mut self, error: &Error) {
        self.flushed += self.pending.len();
        self.pending.clear();
        self.results.resize(self.flushed, Some(Err(error.clone())));
    }
}

impl TransactionOptions {
    fn begin(self) -> Arc<str> {
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

fn ended() -> Error {
    Error::Usage {
        message: "the transaction has ended; begin a new one".to_owned(),
    }
}

fn discarded() -> Error {
    Error::Usage {
        message: "the statement was never sent: the nested transaction it belonged to was undone"
            .to_owned(),
    }
}

fn ended_by_statement() -> Error {
    Error::Usage {
        message: "a statement ended the transaction; use commit() or rollback()".to_owned(),
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
