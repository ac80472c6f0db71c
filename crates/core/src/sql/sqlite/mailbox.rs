//! The way back: answers of SQLite's threads cross to the thread of the futures in batches.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::sql::{Error, ResultSet};

/// What a job ended with.
#[derive(Debug)]
pub(super) enum Answer {
    Rows(Result<ResultSet, Error>),
    Batch(BatchAnswer),
    /// How many commits of others there had been when the job was answered.
    Changes(Result<u64, Error>),
}

/// Outcome of several statements of one transaction.
#[derive(Debug)]
pub(super) struct BatchAnswer {
    /// One for each statement.
    pub results: Vec<Result<ResultSet, Error>>,
    /// Of the batch: its first failure, or that of the commit that came with it.
    pub outcome: Result<(), Error>,
    /// Whether the transaction is still there.
    pub open: bool,
}

impl BatchAnswer {
    /// Nothing was run, and there is no transaction.
    pub(super) fn refused(error: Error) -> Self {
        Self {
            results: Vec::new(),
            outcome: Err(error),
            open: false,
        }
    }
}

/// One per `Database`. A batch of answers costs one wake, and none while the receiver has not caught up.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    mail: Mutex<Mail>,
    /// Commits of this `Database`, counted by the writer.
    pub commits: AtomicU64,
}

#[derive(Debug, Default)]
struct Mail {
    answers: Vec<(u64, Answer)>,
    receiver: Option<Waker>,
}

impl Mailbox {
    pub(super) fn poll_receive(&self, context: &mut Context<'_>) -> Poll<Vec<(u64, Answer)>> {
        let mut mail = self.lock();
        if !mail.answers.is_empty() {
            return Poll::Ready(std::mem::take(&mut mail.answers));
        }
        if !mail
            .receiver
            .as_ref()
            .is_some_and(|waker| waker.will_wake(context.waker()))
        {
            mail.receiver = Some(context.waker().clone());
        }
        Poll::Pending
    }

    fn deliver(&self, answers: impl IntoIterator<Item = (u64, Answer)>) {
        let receiver = {
            let mut mail = self.lock();
            mail.answers.extend(answers);
            mail.receiver.take()
        };
        if let Some(receiver) = receiver {
            receiver.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Mail> {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to answer one job. Dropped unused, it answers that the thread died.
#[derive(Debug)]
pub(super) struct Reply {
    pub id: u64,
    mailbox: Option<Arc<Mailbox>>,
    kind: Kind,
}

/// Which [`Answer`] the future behind a job expects.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Rows,
    Batch,
    Changes,
}

impl Reply {
    pub(super) fn new(mailbox: Arc<Mailbox>, id: u64, kind: Kind) -> Self {
        Self {
            id,
            mailbox: Some(mailbox),
            kind,
        }
    }

    pub(super) fn mailbox(&self) -> Option<&Arc<Mailbox>> {
        self.mailbox.as_ref()
    }

    pub(super) fn answer(mut self, answer: Answer) {
        if let Some(mailbox) = self.mailbox.take() {
            mailbox.deliver([(self.id, answer)]);
        }
    }

    pub(super) fn fail(self, error: Error) {
        let answer = self.kind.failure(error);
        self.answer(answer);
    }

    /// Answers many at once, with one wake for each run of jobs of the same `Database`.
    pub(super) fn answer_all(answers: impl IntoIterator<Item = (Self, Answer)>) {
        let mut run: Vec<(u64, Answer)> = Vec::new();
        let mut to: Option<Arc<Mailbox>> = None;
        for (mut reply, answer) in answers {
            let mailbox = reply.mailbox.take();
            let same = matches!((&mailbox, &to), (Some(new), Some(old)) if Arc::ptr_eq(new, old));
            if !same && let Some(previous) = std::mem::replace(&mut to, mailbox) {
                previous.deliver(run.drain(..));
            }
            run.push((reply.id, answer));
        }
        if let Some(mailbox) = to {
            mailbox.deliver(run);
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
        if let Some(mailbox) = self.mailbox.take() {
            let error = Error::ConnectionLost {
                target: "SQLite".into(),
                message: "its thread ended before it answered; whether the statement took effect is unknown".into(),
            };
            mailbox.deliver([(self.id, self.kind.failure(error))]);
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

    fn received(mailbox: &Mailbox, wakes: &Arc<Wakes>) -> Vec<u64> {
        let waker = Waker::from(Arc::clone(wakes));
        match mailbox.poll_receive(&mut Context::from_waker(&waker)) {
            Poll::Ready(answers) => answers.into_iter().map(|(id, _)| id).collect(),
            Poll::Pending => Vec::new(),
        }
    }

    #[test]
    fn answers_wake_their_receiver_once_until_it_has_caught_up() {
        let (mailbox, wakes) = (Arc::new(Mailbox::default()), Arc::new(Wakes::default()));
        let reply = |id| Reply::new(Arc::clone(&mailbox), id, Kind::Changes);
        assert!(received(&mailbox, &wakes).is_empty());
        Reply::answer_all((1..=100).map(|id| (reply(id), Answer::Changes(Ok(0)))));
        reply(101).answer(Answer::Changes(Ok(0)));
        assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
        assert!(received(&mailbox, &wakes).into_iter().eq(1..=101));
    }

    #[test]
    fn answers_of_one_group_reach_the_mailbox_they_belong_to() {
        let mailboxes = [Arc::new(Mailbox::default()), Arc::new(Mailbox::default())];
        let reply =
            |id: u64| Reply::new(Arc::clone(&mailboxes[id as usize % 2]), id, Kind::Changes);
        Reply::answer_all([0, 2, 1, 4, 3].map(|id| (reply(id), Answer::Changes(Ok(0)))));
        let wakes = Arc::new(Wakes::default());
        assert_eq!(received(&mailboxes[0], &wakes), [0, 2, 4]);
        assert_eq!(received(&mailboxes[1], &wakes), [1, 3]);
    }

    #[test]
    fn a_reply_that_is_dropped_says_that_the_outcome_is_unknown() {
        let mailbox = Arc::new(Mailbox::default());
        drop(Reply::new(Arc::clone(&mailbox), 7, Kind::Rows));
        let waker = Waker::noop();
        let Poll::Ready(answers) = mailbox.poll_receive(&mut Context::from_waker(waker)) else {
            panic!("nothing was delivered");
        };
        assert!(matches!(
            answers[..],
            [(7, Answer::Rows(Err(Error::ConnectionLost { .. })))]
        ));
    }
}
