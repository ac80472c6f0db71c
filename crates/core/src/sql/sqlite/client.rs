//! The async side of a `Database`: it sends jobs with an id, receives answers in batches and wakes the futures that wait for them.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::task::AbortHandle;

use super::config::Location;
use super::engine::Engine;
use super::failure;
use super::jobs::{self, Job, Read, Unit, Work};
use super::reply_queue::{Answer, Kind, Reply, ReplyQueue};
use super::statement_kind::StatementKind;
use crate::sql::{Error, ResultSet, Statement};

/// One `Database`: its use of the engine, and the answers that it waits for.
pub(super) struct Client {
    pub engine: Arc<Engine>,
    replies: Arc<ReplyQueue>,
    slots: RefCell<HashMap<u64, Slot>>,
    dispatcher: Cell<Option<AbortHandle>>,
    left: Cell<bool>,
    /// The number of commits by others at the last resolved `wait_for_change`.
    pub seen: Cell<u64>,
}

enum Slot {
    Waiting(Option<Waker>),
    Answered(Answer),
}

impl Client {
    /// Must be called inside a `LocalSet`, on which the dispatcher of the answers runs.
    pub(super) fn new(engine: Arc<Engine>) -> Rc<Self> {
        let client = Rc::new(Self {
            engine,
            replies: Arc::new(ReplyQueue::default()),
            slots: RefCell::default(),
            dispatcher: Cell::new(None),
            left: Cell::new(false),
            seen: Cell::new(0),
        });
        let dispatcher = tokio::task::spawn_local(dispatch(
            Arc::clone(&client.replies),
            Rc::downgrade(&client),
        ));
        client.dispatcher.set(Some(dispatcher.abort_handle()));
        client
    }

    /// # Errors
    /// [`Error::Usage`] after `close`.
    pub(super) fn check_open(&self) -> Result<(), Error> {
        match self.left.get() {
            true => Err(self.engine.closed()),
            false => Ok(()),
        }
    }

    /// Reserves an id, passes its [`Reply`] to `submit`, and waits for the answer.
    pub(super) fn submit(self: &Rc<Self>, kind: Kind, submit: impl FnOnce(Reply)) -> Pending {
        let id = jobs::next_id();
        self.slots.borrow_mut().insert(id, Slot::Waiting(None));
        submit(Reply::new(Arc::clone(&self.replies), id, kind));
        Pending {
            client: Rc::clone(self),
            id,
            done: false,
        }
    }

    /// Runs one statement in a transaction of its own; on a reader if it only reads.
    pub(super) async fn execute(self: &Rc<Self>, statement: Statement) -> Result<ResultSet, Error> {
        self.check_open()?;
        let engine = &self.engine;
        let reads = engine.config.location != Location::Memory
            && StatementKind::of(&statement.sql).may_read();
        let pending = self.submit(Kind::Rows, |reply| match reads {
            true => engine.read(Read { statement, reply }),
            false => engine.push(Job::Unit(Unit::new(Work::One(statement), reply))),
        });
        match pending.await {
            Answer::Rows(result) => result,
            _ => Err(failure::unexpected()),
        }
    }

    /// Leaves the engine, once.
    pub(super) fn leave(&self, reply: Option<Reply>) {
        if !self.left.replace(true) {
            self.engine.leave(reply);
        }
    }

    fn deliver(&self, answers: Vec<(u64, Answer)>) {
        let mut wakers = Vec::with_capacity(answers.len());
        {
            let mut slots = self.slots.borrow_mut();
            for (id, answer) in answers {
                // No slot: its future was dropped.
                if let Some(slot) = slots.get_mut(&id)
                    && let Slot::Waiting(Some(waker)) =
                        std::mem::replace(slot, Slot::Answered(answer))
                {
                    wakers.push(waker);
                }
            }
        }
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(dispatcher) = self.dispatcher.take() {
            dispatcher.abort();
        }
        self.leave(None);
    }
}

async fn dispatch(replies: Arc<ReplyQueue>, client: Weak<Client>) {
    loop {
        let answers = poll_fn(|context| replies.poll_receive(context)).await;
        match client.upgrade() {
            Some(client) => client.deliver(answers),
            None => return,
        }
    }
}

/// The future of a job's answer. Dropping it withdraws a job that has not begun and interrupts one that runs.
pub(super) struct Pending {
    client: Rc<Client>,
    id: u64,
    done: bool,
}

impl Future for Pending {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answer> {
        let answer = {
            let mut slots = self.client.slots.borrow_mut();
            match slots.get_mut(&self.id) {
                Some(Slot::Waiting(waker)) => {
                    *waker = Some(context.waker().clone());
                    return Poll::Pending;
                }
                _ => slots.remove(&self.id),
            }
        };
        match answer {
            Some(Slot::Answered(answer)) => {
                self.done = true;
                Poll::Ready(answer)
            }
            // Polled again after completion.
            _ => Poll::Pending,
        }
    }
}

/// The effect on a job of cancelling the wait for it.
pub(super) enum CancelOutcome {
    /// The job never begins.
    Withdrawn,
    /// The job was running and is interrupted. Whether it took effect is unknown.
    Interrupted,
    Answered(Answer),
}

impl Pending {
    /// Ends the wait and returns what happened to the job.
    pub(super) fn cancel(mut self) -> CancelOutcome {
        self.done = true;
        self.withdraw()
    }

    fn withdraw(&self) -> CancelOutcome {
        match self.client.slots.borrow_mut().remove(&self.id) {
            Some(Slot::Answered(answer)) => return CancelOutcome::Answered(answer),
            Some(Slot::Waiting(_)) | None => {}
        }
        match self.client.engine.cancel(self.id) {
            true => CancelOutcome::Withdrawn,
            false => CancelOutcome::Interrupted,
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.done {
            self.withdraw();
        }
    }
}
