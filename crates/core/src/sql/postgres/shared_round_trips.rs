//! Statements that wait for a connection of the pool share one: the first that gets it sends others with its own.
//!
//! Each remains a transaction of its own, because each has its own `Sync` (PostgreSQL documentation, "Pipelining").

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use tokio::sync::Notify;

use super::connection::Connection;
use super::startup::Postgres;
use crate::panics;
use crate::pool::{Lease, Pool};
use crate::sql::hooks::HookedConnection;
use crate::sql::{Error, ResultSet, Statement};

/// The statements that wait for a connection of a pool, in the order in which they came.
#[derive(Default)]
pub(super) struct SharedRoundTrips {
    queue: RefCell<VecDeque<Rc<Waiting>>>,
}

/// A statement and what becomes of it.
struct Waiting {
    statement: Statement,
    state: RefCell<State>,
    waker: RefCell<Option<Waker>>,
}

enum State {
    Queued,
    /// It was sent together with others.
    Sent(Rc<Wanted>),
    Done(Result<ResultSet, Error>),
    /// Its task has the result, or does not wait for it any more.
    Left,
}

/// How many results of statements that were sent together are still waited for.
struct Wanted {
    count: Cell<usize>,
    none: Notify,
}

/// A task's place among those that wait. Dropping it leaves the queue, or gives up the result.
struct Place<'a> {
    trips: &'a SharedRoundTrips,
    waiting: Rc<Waiting>,
}

impl SharedRoundTrips {
    /// Runs a statement by itself, together with at most `limit` in all that wait for a connection, too.
    ///
    /// Dropping the future cancels the statement if no result is waited for any more of those that it was sent with; otherwise it runs
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
        let place = self.enter(statement);
        let waiting = &place.waiting;
        let lease = {
            let mut borrowing = pin!(pool.borrow());
            // The end of this block gives up the place in the pool's queue, also when another task has sent the statement.
            poll_fn(|cx| match waiting.is_queued(cx) {
                true => borrowing.as_mut().poll(cx).map(Some),
                false => Poll::Ready(None),
            })
            .await
        };
        if let Some(lease) = lease {
            let mut lease = lease?;
            lease.set_statement(&waiting.statement.source);
            let group = self.take(pool, &lease, waiting, limit);
            if group.len() == 1 {
                return lease.execute(&waiting.statement).await;
            }
            let wanted = Rc::new(Wanted {
                count: Cell::new(group.len()),
                none: Notify::new(),
            });
            group.iter().for_each(|member| member.send(&wanted));
            // The first of the group may go on before the others have their results.
            lease.disown();
            tokio::task::spawn_local(run(lease, group, wanted));
        }
        poll_fn(|cx| waiting.poll_result(cx)).await
    }

    fn enter(&self, statement: Statement) -> Place<'_> {
        let waiting = Rc::new(Waiting {
            statement,
            state: RefCell::new(State::Queued),
            waker: RefCell::default(),
        });
        self.queue.borrow_mut().push_back(Rc::clone(&waiting));
        Place {
            trips: self,
            waiting,
        }
    }

    fn leave(&self, waiting: &Rc<Waiting>) {
        let mut queue = self.queue.borrow_mut();
        if let Some(at) = queue.iter().position(|other| Rc::ptr_eq(other, waiting)) {
            queue.remove(at);
        }
    }

    /// Takes a statement and those at the head of the queue that the connection can run with it. As many are left as there are other connections
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
        let fits = |waiting: &Rc<Waiting>| connection.is_ready_for(&waiting.statement);
        if fits(first) {
            let others = pool.available();
            let mut queue = self.queue.borrow_mut();
            while group.len() < limit && queue.len() > others && queue.front().is_some_and(fits) {
                group.extend(queue.pop_front());
            }
        }
        group
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.waiting.waker.take();
        match self.waiting.state.replace(State::Left) {
            State::Queued => self.trips.leave(&self.waiting),
            State::Sent(wanted) => wanted.one_less(),
            State::Done(_) | State::Left => {}
        }
    }
}

impl Waiting {
    fn is_queued(&self, cx: &Context<'_>) -> bool {
        self.waker.replace(Some(cx.waker().clone()));
        matches!(&*self.state.borrow(), State::Queued)
    }

    fn is_wanted(&self) -> bool {
        matches!(&*self.state.borrow(), State::Sent(_))
    }

    fn send(&self, wanted: &Rc<Wanted>) {
        self.change_to(State::Sent(Rc::clone(wanted)));
    }

    /// Has no effect after the first time, and after the task has given the result up.
    fn finish(&self, result: Result<ResultSet, Error>) {
        let wanted = match &*self.state.borrow() {
            State::Sent(wanted) => Rc::clone(wanted),
            _ => return,
        };
        self.change_to(State::Done(result));
        wanted.one_less();
    }

    fn change_to(&self, state: State) {
        self.state.replace(state);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    fn poll_result(&self, cx: &Context<'_>) -> Poll<Result<ResultSet, Error>> {
        if !matches!(&*self.state.borrow(), State::Done(_)) {
            self.waker.replace(Some(cx.waker().clone()));
            return Poll::Pending;
        }
        match self.state.replace(State::Left) {
            State::Done(result) => Poll::Ready(result),
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
    let statements: Vec<_> = group.iter().map(|member| &member.statement).collect();
    let done = |at: usize, result| group[at].finish(result);
    lease.run_each(&statements, done).await
}
