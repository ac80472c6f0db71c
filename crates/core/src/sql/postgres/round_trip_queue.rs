//! The queue of [`shared_round_trips`](super::shared_round_trips): what waits for a connection, and what becomes of it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use tokio::sync::Notify;

use super::batch::Outcome;
use crate::sql::{Error, Statement, Value};

/// The parameters of one request, in bytes: all are in memory until they are sent, and the small ones wait behind the large.
const MOST_BYTES: usize = 1024 * 1024;

/// The transactions that wait for a connection of a pool, in the order in which they came.
#[derive(Default)]
pub(super) struct RoundTripQueue {
    queue: RefCell<VecDeque<Rc<Waiting>>>,
}

/// The statements of a transaction, or one by itself, and what becomes of them.
pub(super) struct Waiting {
    pub(super) statements: Vec<Statement>,
    /// Of their parameters, in bytes.
    size: usize,
    /// Whether they were sent together with others: if so, whether they took effect is unknown until they are answered.
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
pub(super) struct Wanted {
    count: Cell<usize>,
    none: Notify,
}

/// A task's place among those that wait. Dropping it leaves the queue, or gives up the outcome.
pub(super) struct Place<'a> {
    queue: &'a RoundTripQueue,
    waiting: Rc<Waiting>,
}

impl RoundTripQueue {
    pub(super) fn enter<'a>(&'a self, waiting: &Rc<Waiting>) -> Place<'a> {
        self.queue.borrow_mut().push_back(Rc::clone(waiting));
        Place {
            queue: self,
            waiting: Rc::clone(waiting),
        }
    }

    pub(super) fn leave(&self, waiting: &Rc<Waiting>) {
        let mut queue = self.queue.borrow_mut();
        if let Some(at) = queue.iter().position(|other| Rc::ptr_eq(other, waiting)) {
            queue.remove(at);
        }
    }

    /// Takes those at the head that fit on the connection that `first` has, with it at most `limit` statements. As many are left as other connections are
    /// there for: `borrowers` wait for one, and `available` can be lent.
    pub(super) fn take(
        &self,
        first: &Waiting,
        limit: usize,
        borrowers: usize,
        available: usize,
        fits: impl Fn(&[Statement]) -> bool,
    ) -> Vec<Rc<Waiting>> {
        let mut queue = self.queue.borrow_mut();
        // Those at the head have a connection already, and do not know it yet.
        let served = queue.len().saturating_sub(borrowers);
        let left = served + available;
        let (mut count, mut size) = (first.statements.len(), first.size);
        let mut taken = Vec::new();
        while queue.len() > left
            && let Some(next) = queue.get(served)
            && count + next.statements.len() <= limit
            && size + next.size <= MOST_BYTES
            && fits(&next.statements)
        {
            count += next.statements.len();
            size += next.size;
            taken.extend(queue.remove(served));
        }
        taken
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.waiting.waker.take();
        match self.waiting.state.replace(State::Left) {
            State::Queued => self.queue.leave(&self.waiting),
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

    pub(super) fn is_queued(&self, cx: &Context<'_>) -> bool {
        self.waker.replace(Some(cx.waker().clone()));
        matches!(&*self.state.borrow(), State::Queued)
    }

    pub(super) fn is_wanted(&self) -> bool {
        matches!(&*self.state.borrow(), State::Grouped(_))
    }

    pub(super) fn join_group(&self, wanted: &Rc<Wanted>) {
        self.change_to(State::Grouped(Rc::clone(wanted)));
    }

    /// Has no effect after the first time, and after the task has given the outcome up.
    pub(super) fn finish(&self, outcome: Result<Outcome, Error>) {
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

    pub(super) fn poll_outcome(&self, cx: &Context<'_>) -> Poll<Result<Outcome, Error>> {
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
    pub(super) fn new(count: usize) -> Rc<Self> {
        Rc::new(Self {
            count: Cell::new(count),
            none: Notify::new(),
        })
    }

    /// Resolves when no outcome is waited for any more.
    pub(super) async fn none(&self) {
        self.none.notified().await;
    }

    fn one_less(&self) {
        self.count.set(self.count.get() - 1);
        if self.count.get() == 0 {
            self.none.notify_one();
        }
    }
}
