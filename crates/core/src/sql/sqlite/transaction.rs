//! A transaction whose statements are sent in batches.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;

use tokio::sync::Mutex;

use super::client::{CancelOutcome, Client, Pending};
use super::failure;
use super::jobs::{self, Command, Job, Then, Unit, Work};
use super::reply_queue::{Answer, BatchAnswer, Kind, Reply};
use super::writer::skipped;
use crate::sql::{Error, ResultSet, Statement};

/// Statements are buffered until a flush or the end of the transaction.
///
/// A transaction that is only committed is sent as a whole and shares its commit with others. One that is flushed in
/// between holds the writer from then on, for at most `transaction_timeout`, while all other writes wait.
///
/// Concurrent calls wait for their turn.
///
/// After a failed statement only `ROLLBACK TO` a savepoint is accepted. Clones share the transaction; when the last
/// one is dropped unfinished, it is rolled back.
#[derive(Clone)]
pub struct Transaction {
    shared: Rc<Shared>,
}

struct Shared {
    client: Rc<Client>,
    session: u64,
    /// Held by the running call; others wait in order.
    turn: Mutex<()>,
    state: RefCell<State>,
}

struct State {
    phase: Phase,
    /// Statements that are not sent; the first one has the number `results.len()`.
    buffered: Vec<Statement>,
    /// By number; `None` before the answer and once taken.
    results: Vec<Option<Result<ResultSet, Error>>>,
    /// Number of the statement that failed the transaction.
    failed: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing was sent.
    Fresh,
    /// It holds the writer.
    Held,
    /// A part is sent and unanswered. It stays in this state if its future is dropped.
    Busy,
    Committed,
    RolledBack,
    /// The commit was submitted and not answered.
    Unknown,
}

impl Transaction {
    pub(super) fn new(client: Rc<Client>) -> Self {
        let state = State {
            phase: Phase::Fresh,
            buffered: Vec::new(),
            results: Vec::new(),
            failed: None,
        };
        Self {
            shared: Rc::new(Shared {
                client,
                session: jobs::next_id(),
                turn: Mutex::new(()),
                state: RefCell::new(state),
            }),
        }
    }

    /// Adds a statement and returns its number, which [`take_result`](Self::take_result) takes.
    ///
    /// # Errors
    /// [`Error::Usage`] after the end.
    pub fn push(&self, statement: Statement) -> Result<usize, Error> {
        let mut state = self.shared.state.borrow_mut();
        if state.phase.is_ended() {
            return Err(self.shared.refusal(state.phase));
        }
        state.buffered.push(statement);
        Ok(state.results.len() + state.buffered.len() - 1)
    }

    /// Discards the buffered statements; their results are errors.
    pub fn discard(&self) {
        let mut state = self.shared.state.borrow_mut();
        let discarded = std::mem::take(&mut state.buffered).len();
        let message = "the statement was never sent because its nested transaction was rolled back";
        let refused = (0..discarded).map(|_| Some(Err(failure::usage(message))));
        state.results.extend(refused);
    }

    pub fn is_open(&self) -> bool {
        !self.shared.state.borrow().phase.is_ended()
    }

    /// # Errors
    /// [`Error::OutcomeUnknown`] when the commit was submitted and not answered.
    pub fn check_outcome(&self) -> Result<(), Error> {
        match self.shared.state.borrow().phase {
            Phase::Unknown => Err(self.shared.refusal(Phase::Unknown)),
            _ => Ok(()),
        }
    }

    /// Sends the buffered statements and waits for the results. Has no effect without buffered statements.
    ///
    /// # Errors
    /// That of the first failed statement; each statement's own error is its result. [`Error::Usage`] after the end.
    pub fn flush(&self) -> impl Future<Output = Result<(), Error>> + 'static {
        let shared = Rc::clone(&self.shared);
        async move {
            let _turn = shared.turn.lock().await;
            let idle = shared.state.borrow().buffered.is_empty();
            match idle {
                true => shared.check_usable(shared.state.borrow().phase),
                false => shared.send(Then::Continue).await,
            }
        }
    }

    /// The index of the statement that failed the transaction; `None` if the commit failed.
    pub fn failed(&self) -> Option<usize> {
        self.shared.state.borrow().failed
    }

    /// Takes the result of a sent statement; `None` before it is sent and after the first call.
    pub fn take_result(&self, number: usize) -> Option<Result<ResultSet, Error>> {
        let mut state = self.shared.state.borrow_mut();
        state.results.get_mut(number)?.take()
    }

    /// Sends the buffered statements and commits; returns when the commit is durable.
    ///
    /// # Errors
    /// That of the statement that failed the transaction, or of the commit; the transaction is rolled back then.
    /// Dropping the future before the commit begins rolls back. Dropping it later leaves the outcome unknown:
    /// every later call is [`Error::OutcomeUnknown`].
    pub fn commit(&self) -> impl Future<Output = Result<(), Error>> + 'static {
        let shared = Rc::clone(&self.shared);
        async move {
            let _turn = shared.turn.lock().await;
            shared.send(Then::Commit).await
        }
    }

    /// Discards the buffered statements and rolls back.
    ///
    /// # Errors
    /// [`Error::Usage`] after the end.
    pub fn rollback(&self) -> impl Future<Output = Result<(), Error>> + 'static {
        let shared = Rc::clone(&self.shared);
        async move {
            let _turn = shared.turn.lock().await;
            if shared.state.borrow().phase == Phase::Busy {
                shared.roll_back_now();
                return Ok(());
            }
            if shared.state.borrow().phase == Phase::Unknown {
                return Ok(());
            }
            shared.state.borrow_mut().buffered.clear();
            shared.send(Then::Rollback).await
        }
    }
}

impl Shared {
    fn check_usable(&self, phase: Phase) -> Result<(), Error> {
        match phase {
            Phase::Fresh | Phase::Held => Ok(()),
            _ => Err(self.refusal(phase)),
        }
    }

    fn refusal(&self, phase: Phase) -> Error {
        failure::usage(match phase {
            Phase::Unknown => {
                return Error::OutcomeUnknown {
                    target: self.client.engine.target.clone(),
                    message: "the wait for its answer was cancelled".to_owned(),
                };
            }
            Phase::Committed => "the transaction was committed and cannot be used again",
            Phase::RolledBack => "the transaction was rolled back and cannot be used again",
            _ => {
                "another call of the transaction is in progress or was cancelled; it can only be rolled back"
            }
        })
    }

    async fn send(&self, then: Then) -> Result<(), Error> {
        self.client.check_open()?;
        let (before, statements, first) = {
            let mut state = self.state.borrow_mut();
            self.check_usable(state.phase)?;
            let before = std::mem::replace(&mut state.phase, Phase::Busy);
            let statements = std::mem::take(&mut state.buffered);
            let first = state.results.len();
            state.results.resize_with(first + statements.len(), || None);
            (before, statements, first)
        };
        let outline: Vec<Statement> = statements.iter().map(outline).collect();
        let answer = match (before, then) {
            (Phase::Fresh, Then::Rollback) => ended(),
            (Phase::Fresh, Then::Commit) if statements.is_empty() => ended(),
            (Phase::Fresh, Then::Commit) => {
                self.commit(|reply| self.push_unit(statements, reply))
                    .await?
            }
            (_, Then::Commit) => {
                self.commit(|reply| self.push_command(before, statements, then, reply))
                    .await?
            }
            _ => {
                let push = |reply| self.push_command(before, statements, then, reply);
                batch_answer(self.client.submit(Kind::Batch, push).await)?
            }
        };
        self.settle(answer, then, first, &outline)
    }

    /// Submits the batch that ends with the commit. Dropping the future ends the transaction.
    async fn commit(&self, submit: impl FnOnce(Reply)) -> Result<BatchAnswer, Error> {
        let mut commit = Committing {
            shared: self,
            pending: Some(self.client.submit(Kind::Batch, submit)),
        };
        let answered = poll_fn(|context| match &mut commit.pending {
            Some(pending) => Pin::new(pending).poll(context),
            None => unreachable!("it is taken when the future is dropped"),
        });
        let answer = answered.await;
        commit.pending = None;
        batch_answer(answer)
    }

    fn push_unit(&self, statements: Vec<Statement>, reply: Reply) {
        let work = Work::Transaction(statements);
        self.client.engine.push(Job::Unit(Unit::new(work, reply)));
    }

    fn push_command(&self, before: Phase, statements: Vec<Statement>, then: Then, reply: Reply) {
        let command = Command {
            session: self.session,
            statements,
            then,
            reply: Some(reply),
        };
        if before == Phase::Fresh {
            return self.client.engine.push(Job::Begin(command));
        }
        if let Err(command) = self.client.engine.push_command(command) {
            let sql = command
                .statements
                .first()
                .map_or("COMMIT", |statement| &statement.source);
            let error = self.client.engine.transaction_expired(sql);
            if let Some(reply) = command.reply {
                reply.fail(error);
            }
        }
    }

    /// `first` is the number of the first statement that was `sent`.
    fn settle(
        &self,
        answer: BatchAnswer,
        then: Then,
        first: usize,
        sent: &[Statement],
    ) -> Result<(), Error> {
        let mut state = self.state.borrow_mut();
        state.phase = match (answer.open, then) {
            (true, _) => Phase::Held,
            (false, Then::Commit) => after_commit(&answer),
            (false, _) => Phase::RolledBack,
        };
        let failed = answer.results.iter().position(Result::is_err);
        // A commit reports the failure of an earlier batch again.
        if failed.is_some() || answer.outcome.is_ok() {
            state.failed = failed.map(|index| first + index);
        }
        let mut answered = answer.results.into_iter();
        let places = state.results.iter_mut().skip(first);
        for (index, (place, statement)) in places.zip(sent).enumerate() {
            let skipped = || match &answer.outcome {
                Err(error) if index == 0 => Err(error.clone()),
                _ => Err(skipped(statement)),
            };
            *place = Some(answered.next().unwrap_or_else(skipped));
        }
        match then {
            Then::Commit => answer.outcome.map_err(Error::of_commit),
            _ => answer.outcome,
        }
    }

    /// Rolls back without waiting.
    fn roll_back_now(&self) {
        let before = {
            let mut state = self.state.borrow_mut();
            state.buffered.clear();
            std::mem::replace(&mut state.phase, Phase::RolledBack)
        };
        if matches!(before, Phase::Held | Phase::Busy) {
            // Refused because it has not begun or has ended: there is nothing to roll back.
            let _ = self.client.engine.push_command(Command {
                session: self.session,
                statements: Vec::new(),
                then: Then::Rollback,
                reply: None,
            });
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.roll_back_now();
    }
}

impl Phase {
    fn is_ended(self) -> bool {
        matches!(self, Self::Committed | Self::RolledBack | Self::Unknown)
    }
}

/// Ends a transaction whose commit was cancelled.
struct Committing<'a> {
    shared: &'a Shared,
    /// `None` once the commit is answered.
    pending: Option<Pending>,
}

impl Drop for Committing<'_> {
    fn drop(&mut self) {
        let Some(pending) = self.pending.take() else {
            return;
        };
        // A commit that has succeeded is also unknown, because its caller does not get the answer.
        let phase = match pending.cancel() {
            CancelOutcome::Withdrawn => Phase::RolledBack,
            CancelOutcome::Answered(Answer::Batch(answer))
                if after_commit(&answer) == Phase::RolledBack =>
            {
                Phase::RolledBack
            }
            CancelOutcome::Answered(_) | CancelOutcome::Interrupted => Phase::Unknown,
        };
        self.shared.roll_back_now();
        self.shared.state.borrow_mut().phase = phase;
    }
}

fn after_commit(answer: &BatchAnswer) -> Phase {
    match answer.outcome {
        Ok(()) => Phase::Committed,
        Err(Error::ConnectionLost { .. }) => Phase::Unknown,
        Err(_) => Phase::RolledBack,
    }
}

fn batch_answer(answer: Answer) -> Result<BatchAnswer, Error> {
    match answer {
        Answer::Batch(answer) => Ok(answer),
        _ => Err(failure::unexpected()),
    }
}

fn ended() -> BatchAnswer {
    BatchAnswer {
        results: Vec::new(),
        outcome: Ok(()),
        open: false,
    }
}

/// The statement without its parameters, for errors.
fn outline(statement: &Statement) -> Statement {
    Statement {
        sql: statement.sql.clone(),
        source: statement.source.clone(),
        params: Vec::new(),
    }
}
