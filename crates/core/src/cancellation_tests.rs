//! A harness that cancels a future at each of its polls.
//!
//! Every future may be dropped between two polls: a timeout expires, a task is cancelled, a client goes away. A future that takes
//! something before an `.await` and puts it back after it loses that thing. [`drop_at_every_poll`] finds such places: it runs an
//! operation again and again, drops it one poll later each time, and lets the test check its invariants after every run.
//!
//! Tests in `crates/core/tests` include this file with `#[path]`; it depends on Tokio's timer only.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use tokio::time::timeout;

/// An operation that needs more polls is taken for one that never completes.
const MOST_POLLS: usize = 10_000;
/// One run, its setup and its check included. With Tokio's time paused this expires once nothing else can happen.
const RUN_TIMEOUT: Duration = Duration::from_secs(60);

/// How one run of the operation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended<T> {
    Completed(T),
    Dropped(DropPoint),
}

/// When the operation is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DropPoint {
    /// Polls before that; 0 is a future that was never polled.
    pub polls: usize,
    /// False: at once after the last poll. True: after the last poll's waker was woken, so that what the waker announced (a
    /// permit, a connection, a message) has no one else to go to.
    pub is_woken: bool,
}

impl DropPoint {
    fn next(self) -> Self {
        match self.polls > 0 && !self.is_woken {
            true => Self {
                is_woken: true,
                ..self
            },
            false => Self {
                polls: self.polls + 1,
                is_woken: false,
            },
        }
    }
}

/// Drops `operation` before its 1st poll, then after its 1st, its 2nd and so on, until it completes before it would be dropped.
///
/// Each run has a state of its own: `setup` makes it, `operation` uses it, and `check` asserts what has to hold afterwards: nothing
/// is leaked, the next call works, no permit is lost. `check` also sees the run that completed. Returns how many polls that took.
///
/// The operation is polled only when its waker was woken, so a lost wake-up shows as a run that does not end.
///
/// # Panics
/// A run takes more than a minute, or the operation has not completed after 10,000 polls.
pub async fn drop_at_every_poll<S, T>(
    mut setup: impl AsyncFnMut() -> S,
    mut operation: impl AsyncFnMut(&mut S) -> T,
    mut check: impl AsyncFnMut(S, Ended<T>),
) -> usize {
    let mut point = DropPoint {
        polls: 0,
        is_woken: false,
    };
    while point.polls <= MOST_POLLS {
        let run = async {
            let mut state = setup().await;
            let ended = run_until(point, operation(&mut state)).await;
            let is_complete = matches!(ended, Ended::Completed(_));
            check(state, ended).await;
            is_complete
        };
        match timeout(RUN_TIMEOUT, run).await {
            Ok(true) => return point.polls,
            Ok(false) => point = point.next(),
            Err(_) => panic!("the run that is dropped at {point:?} does not end"),
        }
    }
    panic!("the operation has not completed after {MOST_POLLS} polls");
}

/// Polls `operation` until it completes or `point` is reached, then drops it.
async fn run_until<T>(point: DropPoint, operation: impl Future<Output = T>) -> Ended<T> {
    let mut operation = pin!(operation);
    let woken = Arc::new(Woken::default());
    let mut polls = 0;
    poll_fn(|context| {
        if point.polls == 0 {
            return Poll::Ready(Ended::Dropped(point));
        }
        woken.forward_to(context.waker());
        while woken.take() {
            if polls == point.polls {
                return Poll::Ready(Ended::Dropped(point));
            }
            polls += 1;
            if let Poll::Ready(value) = poll_with(&woken, operation.as_mut()) {
                return Poll::Ready(Ended::Completed(value));
            }
            if polls == point.polls && !point.is_woken {
                return Poll::Ready(Ended::Dropped(point));
            }
        }
        Poll::Pending
    })
    .await
}

fn poll_with<T>(woken: &Arc<Woken>, operation: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
    let waker = Waker::from(Arc::clone(woken));
    operation.poll(&mut Context::from_waker(&waker))
}

/// Tells a wake-up of the operation from a poll that its surroundings cause.
struct Woken {
    is_woken: AtomicBool,
    task: Mutex<Waker>,
}

impl Default for Woken {
    fn default() -> Self {
        Self {
            is_woken: AtomicBool::new(true),
            task: Mutex::new(Waker::noop().clone()),
        }
    }
}

impl Woken {
    fn take(&self) -> bool {
        self.is_woken.swap(false, Ordering::AcqRel)
    }

    fn forward_to(&self, task: &Waker) {
        let mut known = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        known.clone_from(task);
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        task.wake_by_ref();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use tokio::sync::Semaphore;
    use tokio::task::yield_now;

    use super::*;

    #[tokio::test]
    async fn every_poll_of_an_operation_is_a_point_at_which_it_is_dropped() {
        let mut seen = Vec::new();
        let polls = drop_at_every_poll(
            async || (),
            async |()| {
                yield_now().await;
                yield_now().await;
                7
            },
            async |(), ended| seen.push(ended),
        )
        .await;
        let dropped = |polls, is_woken| Ended::Dropped(DropPoint { polls, is_woken });
        let expected = [
            dropped(0, false),
            dropped(1, false),
            dropped(1, true),
            dropped(2, false),
            dropped(2, true),
            Ended::Completed(7),
        ];
        assert_eq!(polls, 3);
        assert_eq!(seen, expected);
    }

    #[tokio::test]
    async fn a_permit_that_is_put_back_after_an_await_is_found_to_be_lost() {
        let lost = Cell::new(0);
        drop_at_every_poll(
            async || Rc::new(Cell::new(1)),
            async |permits: &mut Rc<Cell<u32>>| {
                permits.set(permits.get() - 1);
                yield_now().await;
                permits.set(permits.get() + 1);
            },
            async |permits, _| lost.set(lost.get() + 1 - permits.get()),
        )
        .await;
        assert_eq!(lost.get(), 2);
    }

    #[tokio::test]
    async fn a_semaphore_loses_no_permit() {
        drop_at_every_poll(
            async || Semaphore::new(1),
            async |permits: &mut Semaphore| {
                let held = permits.acquire().await;
                yield_now().await;
                drop(held);
            },
            async |permits, _| assert_eq!(permits.available_permits(), 1),
        )
        .await;
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "does not end")]
    async fn a_wake_up_that_is_lost_is_reported() {
        drop_at_every_poll(
            async || (),
            async |()| std::future::pending::<()>().await,
            async |(), _| {},
        )
        .await;
    }
}
