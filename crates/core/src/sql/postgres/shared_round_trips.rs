//! Statements that wait for a connection of the pool share one: the first that gets it sends others with its own.
//!
//! Each remains a transaction of its own, because each has its own `Sync` (PostgreSQL documentation, "Pipelining"). So do the statements of a transaction
//! that is sent as a whole.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use tokio::sync::Notify;

use super::batch::{Batch, Outcome, is_plain};
use super::connection::Connection;
use super::startup::Postgres;
use crate::panics;
use crate::pool::{Lease, Pool};
use crate::sql::hooks::HookedConnection;
use crate::sql::{Error, ResultSet, Statement, Value};

/// The parameters of one request, in bytes: all are in memory until they are sent, and the small ones wait behind the large.
const MOST_BYTES: usize = 1024 * 1024;

/// The transactions that wait for a connection of a pool, in the order in which they came.
#[derive(Default)]
pub(super) struct SharedRoundTrips {
    queue: RefCell<VecDeque<Rc<Waiting>>>,
}

/// The statements of a transaction, or one by itself, and what becomes of them.
pub(super) struct Waiting {
    pub(super) statements: Vec<Statement>,
    /// Of their parameters, in bytes.
    size: usize,
    /// They were sent together with others: whether they took effect is unknown until they are answered.
    pub(super) is_sent: Rc<Cell<bool>>,
    state: RefCell<State>,
    waker: RefCell<Option<Waker>>,
}

enum State {
    Queued,
    /// It is sent together with others.
    Grouped(Rc<Wanted>),
    Done(Result<Outcome, Error>),
    /// Its task has the outcome, or does not wait for it any more.
    Left,
}

/// How many outcomes of what was sent together are still waited for.
struct Wanted {
    count: Cell<usize>,
    none: Notify,
}

/// A task's place among those that wait. Dropping it leaves the queue, or gives up the outcome.
struct Place<'a> {
    trips: &'a SharedRoundTrips,
    waiting: Rc<Waiting>,
}

/// What a wait for a connection ends with.
pub(super) enum Turn {
    /// A connection to send the statements on: there are no others that could be sent with them.
    Alone(Lease<Postgres>),
    /// Their outcome.
    Shared(Outcome),
}

/// How many statements may share a round trip. None where they must not, because hooks prepare a connection for one borrower, or because another statement may
/// wait for what this task holds, such as a lock of its transaction: it must not be sent after that one.
pub(super) fn limit(pool: &Pool<Postgres>) -> Option<usize> {
    let manager = pool.manager();
    let hooks = &manager.hook_calls.hooks;
    let limit = manager.server.max_pipeline();
    (limit > 1 && !hooks.borrowed && !hooks.returned && !pool.borrower_has_lease()).then_some(limit)
}

impl SharedRoundTrips {
    /// Runs a statement by itself, together with at most `limit` in all that wait for a connection, too.
    ///
    /// Dropping the future cancels the statement if no outcome is waited for any more of those that it was sent with; otherwise it runs
    /// to its end, and its result is discarded.
    ///
    /// # Errors
    /// As [`PooledDatabase::execute`](crate::sql::pooled_database::PooledDatabase::execute).
    pub(super) async fn execute(
        &self,
        pool: &Pool<Postgres>,
        limit: usize,
        statement: Statement,
    ) -> Result<ResultSet, Error> {
        let waiting = Waiting::new(vec![statement]);
        match self.join(pool, limit, &waiting).await? {
            Turn::Alone(mut lease) => lease.execute(&waiting.statements[0]).await,
            Turn::Shared(outcome) => outcome.into_single(),
        }
    }

    /// Runs the statements, of which there is at least one, as one transaction, in the same way; or borrows a connection for them.
    ///
    /// # Errors
    /// Those of the pool and of the connection. One of a statement is in the [`Outcome`].
    pub(super) async fn join(
        &self,
        pool: &Pool<Postgres>,
        limit: usize,
        waiting: &Rc<Waiting>,
    ) -> Result<Turn, Error> {
        let place = self.enter(waiting);
        let lease = {
            let mut borrowing = pin!(pool.borrow());
            // The end of this block gives up the place in the pool's queue, also when another task has sent the statements.
            poll_fn(|cx| match waiting.is_queued(cx) {
                true => borrowing.as_mut().poll(cx).map(Some),
                false => Poll::Ready(None),
            })
            .await
        };
        if let Some(lease) = lease {
            let lease = lease?;
            if let Some(statement) = waiting.statements.last() {
                lease.set_statement(&statement.source);
            }
            let group = self.take(pool, &lease, waiting, limit);
            if group.len() == 1 {
                return Ok(Turn::Alone(lease));
            }
            let wanted = Rc::new(Wanted {
                count: Cell::new(group.len()),
                none: Notify::new(),
            });
            group.iter().for_each(|member| member.join(&wanted));
            // The first of the group may go on before the others have their outcomes.
            lease.disown();
            tokio::task::spawn_local(run(lease, group, wanted));
        }
        let outcome = poll_fn(|cx| waiting.poll_outcome(cx)).await;
        drop(place);
        outcome.map(Turn::Shared)
    }

    fn enter<'a>(&'a self, waiting: &Rc<Waiting>) -> Place<'a> {
        self.queue.borrow_mut().push_back(Rc::clone(waiting));
        Place {
            trips: self,
            waiting: Rc::clone(waiting),
        }
    }

    fn leave(&self, waiting: &Rc<Waiting>) {
        let mut queue = self.queue.borrow_mut();
        if let Some(at) = queue.iter().position(|other| Rc::ptr_eq(other, waiting)) {
            queue.remove(at);
        }
    }

    /// Takes a transaction and those at the head of the queue that the connection can run with it. Those are left that other connections
    /// are there for.
    fn take(
        &self,
        pool: &Pool<Postgres>,
        connection: &Connection,
        first: &Rc<Waiting>,
        limit: usize,
    ) -> Vec<Rc<Waiting>> {
        self.leave(first);
        let mut group = vec![Rc::clone(first)];
        // A task that holds a connection may have what the others wait for, such as a lock: it is served before them.
        if !connection.is_ready_for(&first.statements) || pool.holder_waits() {
            return group;
        }
        let mut queue = self.queue.borrow_mut();
        // Those at the head have a connection already, and do not know it yet.
        let served = queue.len().saturating_sub(pool.waiting());
        let left = served + pool.available();
        let (mut count, mut size) = (first.statements.len(), first.size);
        while queue.len() > left
            && let Some(next) = queue.get(served)
            && count + next.statements.len() <= limit
            && size + next.size <= MOST_BYTES
            && connection.is_ready_for(&next.statements)
        {
            count += next.statements.len();
            size += next.size;
            group.extend(queue.remove(served));
        }
        group
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.waiting.waker.take();
        match self.waiting.state.replace(State::Left) {
            State::Queued => self.trips.leave(&self.waiting),
            State::Grouped(wanted) => wanted.one_less(),
            State::Done(_) | State::Left => {}
        }
    }
}

impl Waiting {
    pub(super) fn new(statements: Vec<Statement>) -> Rc<Self> {
        let params = statements.iter().flat_map(|statement| &statement.params);
        Rc::new(Self {
            size: params.map(Value::size).sum(),
            statements,
            is_sent: Rc::default(),
            state: RefCell::new(State::Queued),
            waker: RefCell::default(),
        })
    }

    fn is_queued(&self, cx: &Context<'_>) -> bool {
        self.waker.replace(Some(cx.waker().clone()));
        matches!(&*self.state.borrow(), State::Queued)
    }

    fn is_wanted(&self) -> bool {
        matches!(&*self.state.borrow(), State::Grouped(_))
    }

    fn join(&self, wanted: &Rc<Wanted>) {
        self.change_to(State::Grouped(Rc::clone(wanted)));
    }

    /// Has no effect after the first time, and after the task has given the outcome up.
    fn finish(&self, outcome: Result<Outcome, Error>) {
        let wanted = match &*self.state.borrow() {
            State::Grouped(wanted) => Rc::clone(wanted),
            _ => return,
        };
        self.change_to(State::Done(outcome));
        wanted.one_less();
    }

    fn change_to(&self, state: State) {
        self.state.replace(state);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    fn poll_outcome(&self, cx: &Context<'_>) -> Poll<Result<Outcome, Error>> {
        if !matches!(&*self.state.borrow(), State::Done(_)) {
            self.waker.replace(Some(cx.waker().clone()));
            return Poll::Pending;
        }
        match self.state.replace(State::Left) {
            State::Done(outcome) => Poll::Ready(outcome),
            _ => Poll::Pending,
        }
    }
}

impl Wanted {
    fn one_less(&self) {
        self.count.set(self.count.get() - 1);
        if self.count.get() == 0 {
            self.none.notify_one();
        }
    }
}

/// Belongs to no task of those that wait: each of them may be cancelled.
async fn run(mut lease: Lease<Postgres>, mut group: Vec<Rc<Waiting>>, wanted: Rc<Wanted>) {
    // Tasks may have been cancelled since.
    group.retain(|member| member.is_wanted());
    let outcome = tokio::select! {
        biased;
        outcome = panics::caught(run_each(&mut lease, &group)) => outcome,
        // The pool cancels what the connection still runs.
        () = wanted.none.notified() => return,
    };
    let outcome = outcome.unwrap_or_else(|panic| Err(lease.give_up(&panic)));
    if let Err(error) = outcome {
        group
            .iter()
            .for_each(|member| member.finish(Err(error.clone())));
    }
}

/// Runs the statements of each member as a transaction of its own, all in one round trip. Each gets its outcome as soon as that is there.
///
/// # Errors
/// [`Error::ConnectionLost`]: members without an outcome have failed with it, and may have taken effect if they were sent.
async fn run_each(lease: &mut Lease<Postgres>, group: &[Rc<Waiting>]) -> Result<(), Error> {
    let batches: Vec<_> = group
        .iter()
        .map(|member| Batch::of(&member.statements))
        .collect();
    let commit = Connection::commit_text();
    let mut sent = Vec::with_capacity(group.len());
    let mut again = Vec::new();
    lease.close_evicted();
    for (at, batch) in batches.iter().enumerate() {
        let mut steps = lease.steps(batch, &commit);
        let start = lease.link.out.len();
        match lease.write_all(&mut steps) {
            None => {
                lease.push_sync();
                group[at].is_sent.set(true);
                sent.push((at, steps));
            }
            // A parameter does not fit.
            Some(_) => {
                lease.link.out.truncate(start);
                again.push((at, None));
            }
        }
    }
    for (at, steps) in sent {
        let (member, batch) = (&group[at], &batches[at]);
        let mut outcome = Outcome::default();
        lease.read_results(&steps, batch, &mut outcome).await?;
        let failure = outcome.failure.take();
        let failure = failure.map(|failure| failure.in_words_of(batch.statements));
        let outdated = failure.as_ref().and_then(|failure| failure.outdated);
        outcome.failure = failure;
        match outdated {
            Some(outdated) => {
                member.is_sent.set(false);
                again.push((at, Some((outcome, outdated))));
            }
            None => member.finish(Ok(outcome)),
        }
    }
    // What needs to be prepared anew had no effect.
    for (at, failed) in again {
        let (member, batch) = (&group[at], batches[at]);
        if !member.is_wanted() {
            continue;
        }
        member.is_sent.set(true);
        let outcome = match failed {
            Some((outcome, outdated)) => lease.run_anew(batch, outcome, outdated).await,
            None => lease.run(batch).await,
        };
        match outcome {
            Err(error) if lease.is_broken() => return Err(error),
            outcome => member.finish(outcome),
        }
    }
    lease.cache.trim();
    Ok(())
}

impl Connection {
    /// Whether the statements are prepared here, have no effect on the session, and can be sent together with others.
    fn is_ready_for(&self, statements: &[Statement]) -> bool {
        statements.iter().all(|statement| {
            let prepared = self.cache.get(&statement.sql);
            prepared.is_some_and(|prepared| {
                prepared.session_state.is_none() && is_plain(&statement.sql)
            })
        })
    }
}
