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

use super::batch::Outcome;
use super::connection::Connection;
use super::startup::Postgres;
use crate::panics;
use crate::pool::{Lease, Pool};
use crate::sql::hooks::HookedConnection;
use crate::sql::{Error, ResultSet, Statement};

/// The transactions that wait for a connection of a pool, in the order in which they came.
#[derive(Default)]
pub(super) struct SharedRoundTrips {
    queue: RefCell<VecDeque<Rc<Waiting>>>,
}

/// The statements of a transaction, or one by itself, and what becomes of them.
pub(super) struct Waiting {
    pub(super) statements: Vec<Statement>,
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
    /// Those of the pool, and [`Error::ConnectionLost`].
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

    /// Takes a transaction and those at the head of the queue that the connection can run with it. As many are left as there are other connections
    /// for.
    fn take(
        &self,
        pool: &Pool<Postgres>,
        connection: &Connection,
        first: &Rc<Waiting>,
        limit: usize,
    ) -> Vec<Rc<Waiting>> {
        self.leave(first);
        let mut group = vec![Rc::clone(first)];
        if !connection.is_ready_for(&first.statements) {
            return group;
        }
        let others = pool.available();
        let mut queue = self.queue.borrow_mut();
        let mut count = first.statements.len();
        while queue.len() > others
            && let Some(next) = queue.front()
            && count + next.statements.len() <= limit
            && connection.is_ready_for(&next.statements)
        {
            count += next.statements.len();
            group.extend(queue.pop_front());
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
        Rc::new(Self {
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

async fn run_each(lease: &mut Lease<Postgres>, group: &[Rc<Waiting>]) -> Result<(), Error> {
    let transactions: Vec<_> = group.iter().map(|member| &member.statements[..]).collect();
    group.iter().for_each(|member| member.is_sent.set(true));
    let done = |at: usize, outcome| group[at].finish(Ok(outcome));
    lease.run_each(&transactions, done).await
}
