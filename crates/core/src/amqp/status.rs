use std::collections::VecDeque;
use std::sync::Mutex;

use tokio::sync::Notify;

use super::Error;
use super::lock::lock;
use crate::wait;

/// The state of a connection.
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

/// An event for the operator's log.
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

/// The last unread events; the oldest are dropped first.
#[derive(Default)]
pub(super) struct Events {
    state: Mutex<EventState>,
    changed: Notify,
}

#[derive(Default)]
struct EventState {
    queue: VecDeque<Event>,
    closed: bool,
}

const MAX_UNREAD_EVENTS: usize = 256;

impl Events {
    pub(super) fn push(&self, event: Event) {
        let mut state = lock(&self.state);
        if state.queue.len() == MAX_UNREAD_EVENTS {
            state.queue.pop_front();
        }
        state.queue.push_back(event);
        drop(state);
        self.changed.notify_waiters();
    }

    pub(super) fn close(&self) {
        lock(&self.state).closed = true;
        self.changed.notify_waiters();
    }

    pub(super) async fn next(&self) -> Option<Event> {
        wait::until(&self.changed, || self.take()).await
    }

    /// `Some(None)` when there are none and will be none.
    fn take(&self) -> Option<Option<Event>> {
        let mut state = lock(&self.state);
        match state.queue.pop_front() {
            None if state.closed => Some(None),
            None => None,
            event => Some(event),
        }
    }
}
