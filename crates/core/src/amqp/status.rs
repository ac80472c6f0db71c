use std::collections::VecDeque;
use std::sync::Mutex;
use std::task::{Poll, Waker};

use super::Error;
use super::lock::lock;
use super::signal::{remember, wake_all};

/// How a connection is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    Connected,
    Connecting {
        /// Counts up from 1 since the connection was lost.
        attempt: u32,
        last_error: Option<Error>,
    },
    /// The broker takes no messages for now (memory or disk alarm); consuming continues.
    Blocked {
        reason: String,
    },
    Closed {
        error: Error,
    },
}

/// Something an operator wants to read in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    Blocked {
        reason: String,
    },
    Unblocked,
    Disconnected {
        error: Error,
    },
    /// One attempt to connect again failed; the next follows after a pause.
    ReconnectFailed {
        attempt: u32,
        error: Error,
    },
    Recovered {
        attempts: u32,
    },
    /// A remembered exchange, queue, binding or consumer could not be restored; the others were.
    RestoreFailed {
        error: Error,
    },
    /// The broker closed one channel; it is opened again.
    ChannelClosed {
        error: Error,
    },
    /// The broker ended a consumer, usually because its queue was deleted or moved; it is started again if possible.
    ConsumerCancelled {
        queue: String,
    },
}

/// The last events nobody has read, oldest dropped first.
#[derive(Default)]
pub(super) struct Events {
    state: Mutex<EventState>,
}

#[derive(Default)]
struct EventState {
    queue: VecDeque<Event>,
    waiting: Vec<Waker>,
    closed: bool,
}

const KEPT: usize = 256;

impl Events {
    pub(super) fn push(&self, event: Event) {
        let waiting = {
            let mut state = lock(&self.state);
            if state.queue.len() == KEPT {
                state.queue.pop_front();
            }
            state.queue.push_back(event);
            std::mem::take(&mut state.waiting)
        };
        wake_all(waiting);
    }

    pub(super) fn close(&self) {
        let waiting = {
            let mut state = lock(&self.state);
            state.closed = true;
            std::mem::take(&mut state.waiting)
        };
        wake_all(waiting);
    }

    pub(super) async fn next(&self) -> Option<Event> {
        std::future::poll_fn(|cx| {
            let mut state = lock(&self.state);
            match state.queue.pop_front() {
                Some(event) => Poll::Ready(Some(event)),
                None if state.closed => Poll::Ready(None),
                None => {
                    remember(&mut state.waiting, cx.waker());
                    Poll::Pending
                }
            }
        })
        .await
    }
}
