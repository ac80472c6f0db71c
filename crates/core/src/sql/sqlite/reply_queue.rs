//! Carries answers of SQLite's threads to the reactor's thread in batches.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::sql::{Error, ResultSet};

/// The outcome of a job.
#[derive(Debug)]
pub(super) enum Answer {
    Rows(Result<ResultSet, Error>),
    Batch(BatchAnswer),
    /// The number of commits by other connections when the job was answered.
    Changes(Result<u64, Error>),
}

/// Outcome of several statements of one transaction.
#[derive(Debug)]
pub(super) struct BatchAnswer {
    /// One for each statement.
    pub results: Vec<Result<ResultSet, Error>>,
    /// The first failure of the batch, or that of its commit.
    pub outcome: Result<(), Error>,
    /// Whether the transaction is still open.
    pub open: bool,
}

impl BatchAnswer {
    /// No statement ran, and no transaction is open.
    pub(super) fn refused(error: Error) -> Self {
        Self {
            results: Vec::new(),
            outcome: Err(error),
            open: false,
        }
    }
}

/// Answers for one `Database`. A batch costs at most one wake, and none while the receiver has unread answers.
#[derive(Debug, Default)]
pub(super) struct ReplyQueue {
    state: Mutex<State>,
    /// Commits of this `Database`, counted by the writer.
    pub commits: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    answers: Vec<(u64, Answer)>,
    receiver: Option<Waker>,
}

impl ReplyQueue {
    pub(super) fn poll_receive(&self, context: &mut Context<'_>) -> Poll<Vec<(u64, Answer)>> {
        let mut state = self.lock();
        if !state.answers.is_empty() {
            return Poll::Ready(std::mem::take(&mut state.answers));
        }
        if !state
            .receiver
            .as_ref()
            .is_some_and(|waker| waker.will_wake(context.waker()))
        {
            state.receiver = Some(context.waker().clone());
        }
        Poll::Pending
    }

    fn deliver(&self, answers: impl IntoIterator<Item = (u64, Answer)>) {
        let receiver = {
            let mut state = self.lock();
            state.answers.extend(answers);
            state.receiver.take()
        };
        if let Some(receiver) = receiver {
            receiver.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers one job. Dropped without an answer, it reports that the thread ended.
#[derive(Debug)]
pub(super) struct Reply {
    pub id: u64,
    queue: Option<Arc<ReplyQueue>>,
    kind: Kind,
}

/// The kind of [`Answer`] that a job's future expects.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Rows,
    Batch,
    Changes,
}

impl Reply {
    pub(super) fn new(queue: Arc<ReplyQueue>, id: u64, kind: Kind) -> Self {
        Self {
            id,
            queue: Some(queue),
            kind,
        }
    }

    pub(super) fn replies(&self) -> Option<&Arc<ReplyQueue>> {
        self.queue.as_ref()
    }

    pub(super) fn answer(mut self, answer: Answer) {
        if let Some(queue) = self.queue.take() {
            queue.deliver([(self.id, answer)]);
        }
    }

    pub(super) fn fail(self, error: Error) {
        let answer = self.kind.failure(error);
        self.answer(answer);
    }

    /// Answers many at once, with one wake for each run of jobs of the same `Database`.
    pub(super) fn answer_all(answers: impl IntoIterator<Item = (Self, Answer)>) {
        let mut run: Vec<(u64, Answer)> = Vec::new();
        let mut to: Option<Arc<ReplyQueue>> = None;
        for (mut reply, answer) in answers {
            let queue = reply.queue.take();
            let same = matches!((&queue, &to), (Some(new), Some(old)) if Arc::ptr_eq(new, old));
            if !same && let Some(previous) = std::mem::replace(&mut to, queue) {
                previous.deliver(run.drain(..));
            }
            run.push((reply.id, answer));
        }
        if let Some(queue) = to {
            queue.deliver(run);
        }
    }
}

impl Kind {
    fn failure(self, error: Error) -> Answer {
        match self {
            Self::Rows => Answer::Rows(Err(error)),
            Self::Batch => Answer::Batch(BatchAnswer::refused(error)),
            Self::Changes => Answer::Changes(Err(error)),
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if let Some(queue) = self.queue.take() {
            let error = Error::ConnectionLost {
                target: "SQLite".into(),
                message: "its thread ended before it answered; whether the statement took effect is unknown".into(),
                sqlstate: None,
            };
            queue.deliver([(self.id, self.kind.failure(error))]);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn received(queue: &ReplyQueue, wakes: &Arc<Wakes>) -> Vec<u64> {
        let waker = Waker::from(Arc::clone(wakes));
        match queue.poll_receive(&mut Context::from_waker(&waker)) {
            Poll::Ready(answers) => answers.into_iter().map(|(id, _)| id).collect(),
            Poll::Pending => Vec::new(),
        }
    }

    #[test]
    fn answers_wake_their_receiver_once_until_it_has_caught_up() {
        let (queue, wakes) = (Arc::new(ReplyQueue::default()), Arc::new(Wakes::default()));
        let reply = |id| Reply::new(Arc::clone(&queue), id, Kind::Changes);
        assert!(received(&queue, &wakes).is_empty());
        Reply::answer_all((1..=100).map(|id| (reply(id), Answer::Changes(Ok(0)))));
        reply(101).answer(Answer::Changes(Ok(0)));
        assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
        assert!(received(&queue, &wakes).into_iter().eq(1..=101));
    }

    #[test]
    fn answers_of_one_group_reach_the_queue_they_belong_to() {
        let queues = [
            Arc::new(ReplyQueue::default()),
            Arc::new(ReplyQueue::default()),
        ];
        let reply = |id: u64| Reply::new(Arc::clone(&queues[id as usize % 2]), id, Kind::Changes);
        Reply::answer_all([0, 2, 1, 4, 3].map(|id| (reply(id), Answer::Changes(Ok(0)))));
        let wakes = Arc::new(Wakes::default());
        assert_eq!(received(&queues[0], &wakes), [0, 2, 4]);
        assert_eq!(received(&queues[1], &wakes), [1, 3]);
    }

    #[test]
    fn a_reply_that_is_dropped_says_that_the_outcome_is_unknown() {
        let queue = Arc::new(ReplyQueue::default());
        drop(Reply::new(Arc::clone(&queue), 7, Kind::Rows));
        let waker = Waker::noop();
        let Poll::Ready(answers) = queue.poll_receive(&mut Context::from_waker(waker)) else {
            panic!("nothing was delivered");
        };
        assert!(matches!(
            answers[..],
            [(7, Answer::Rows(Err(Error::ConnectionLost { .. })))]
        ));
    }
}
