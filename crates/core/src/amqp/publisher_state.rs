//! The state of a publisher that callers and the I/O thread share: its window, unconfirmed messages, and waiting tasks.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use tokio::sync::Notify;
use tokio::time::Instant;

use super::Error;
use super::codec::method::{self, CloseReason};
use super::codec::{frame, outgoing};
use super::confirms::{Confirmation, MessageId, Returned, Unconfirmed};
use super::lock::lock;
use super::message::Message;
use super::write_buffer::{FLUSH_THRESHOLD, HIGH_WATER, Urgency, WriteBuffer};
use crate::wait;

/// How a publisher treats its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublisherOptions {
    /// Whether the broker confirms each message. Unconfirmed messages are sent again after a reconnect, so each arrives
    /// at least once; one on which the broker closes three connections fails with [`Error::ClosedByBroker`]. Without confirms, what the
    /// operating system had taken when a connection broke may be lost.
    pub confirm: bool,
    /// Most unconfirmed messages at once, at least 1. Unused without confirms.
    pub window: usize,
}

impl Default for PublisherOptions {
    fn default() -> Self {
        Self {
            confirm: true,
            window: 1_000,
        }
    }
}

/// Resolves when the broker has taken responsibility for a message, or has refused it.
///
/// Dropping it does not take the message back; a failure is then told by
/// [`wait_for_confirms`](super::Publisher::wait_for_confirms).
#[must_use = "a refused message is told here"]
pub struct Confirm {
    shared: Option<Arc<PublisherShared>>,
    id: MessageId,
}

impl Confirm {
    pub(super) fn new(shared: Arc<PublisherShared>, id: MessageId) -> Self {
        let shared = Some(shared);
        Self { shared, id }
    }
}

impl Future for Confirm {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(shared) = &self.shared else {
            return Poll::Ready(Ok(()));
        };
        let outcome = shared.lock().unconfirmed.outcome(self.id, cx.waker());
        match outcome {
            None => Poll::Pending,
            Some(result) => {
                self.shared = None;
                Poll::Ready(result)
            }
        }
    }
}

impl Drop for Confirm {
    fn drop(&mut self) {
        if let Some(shared) = &self.shared {
            shared.lock().unconfirmed.unwatch(self.id);
        }
    }
}

/// See [`Publisher::dispatcher`](super::Publisher::dispatcher).
pub struct Dispatcher {
    shared: Arc<PublisherShared>,
}

impl Dispatcher {
    pub(super) fn new(shared: Arc<PublisherShared>) -> Self {
        Self { shared }
    }
}

impl Future for Dispatcher {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let (due, is_closed) = {
            let mut state = self.shared.lock();
            let is_closed = state.closed.is_some();
            state.dispatcher = (!is_closed).then(|| cx.waker().clone());
            (std::mem::take(&mut state.due), is_closed)
        };
        self.shared.wake(due);
        if is_closed {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

impl Drop for Dispatcher {
    fn drop(&mut self) {
        let due = {
            let mut state = self.shared.lock();
            state.dispatcher = None;
            std::mem::take(&mut state.due)
        };
        self.shared.wake(due);
    }
}

/// The part of a publisher that the I/O thread and the callers share.
pub(super) struct PublisherShared {
    pub(super) channel: u16,
    pub(super) confirm: bool,
    window: usize,
    write_buffer: Arc<WriteBuffer>,
    state: Mutex<State>,
    /// Notified when the window has room again.
    room: Notify,
    /// Notified when a flush may be over.
    flushed: Notify,
}

#[derive(Default)]
struct State {
    unconfirmed: Unconfirmed,
    /// Whether the channel is open; otherwise messages wait here.
    online: bool,
    /// When the channel was last opened.
    opened: Option<Instant>,
    /// Its user has dropped it and everything is sent: it must not be opened again.
    retired: bool,
    /// Why the broker closed the channel before the publisher went online.
    refused: Option<Error>,
    /// Encoded messages without confirms that wait for a channel.
    backlog: Vec<u8>,
    /// Whether a task waits for room in the window.
    room_wanted: bool,
    /// The first message behind those a flush waits for; the nearest one if several flushes wait.
    flush_until: Option<MessageId>,
    closed: Option<Error>,
    dispatcher: Option<Waker>,
    /// Completed waits the dispatcher has not passed on yet.
    due: Completions,
}

/// Waits that have completed and must be woken.
#[derive(Default)]
struct Completions {
    wakers: Vec<Waker>,
    room: bool,
    flushed: bool,
}

impl Completions {
    fn is_empty(&self) -> bool {
        self.wakers.is_empty() && !self.room && !self.flushed
    }
}

impl State {
    fn is_full(&self, window: usize) -> bool {
        self.unconfirmed.unsettled() >= window || self.backlog.len() >= HIGH_WATER
    }

    /// Completed waits. The I/O thread wakes them after it has released the lock.
    fn completed(&mut self, window: usize) -> Completions {
        // A quarter of the window at a time: waking for each free place would cost more than the message.
        if self.room_wanted && self.unconfirmed.unsettled() + (window / 4).max(1) <= window {
            self.room_wanted = false;
            self.due.room = true;
        }
        if let Some(id) = self.flush_until
            && self.unconfirmed.is_settled_before(id)
        {
            self.flush_until = None;
            self.due.flushed = true;
        }
        match &self.dispatcher {
            Some(_) if self.due.is_empty() => Completions::default(),
            Some(dispatcher) => Completions {
                wakers: vec![dispatcher.clone()],
                ..Completions::default()
            },
            None => std::mem::take(&mut self.due),
        }
    }
}

/// Whether one more message can be taken.
enum Room {
    Free,
    NoneInWindow,
    NoneInBuffer,
}

impl PublisherShared {
    pub(super) fn new(
        channel: u16,
        options: PublisherOptions,
        write_buffer: Arc<WriteBuffer>,
    ) -> Self {
        Self {
            channel,
            confirm: options.confirm,
            window: options.window.max(1),
            write_buffer,
            state: Mutex::default(),
            room: Notify::new(),
            flushed: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// How many messages the broker has not confirmed.
    pub(super) fn unconfirmed(&self) -> usize {
        self.lock().unconfirmed.unsettled()
    }

    pub(super) fn publish(&self, message: &Message<'_>) -> Result<Option<MessageId>, Error> {
        let mut state = self.lock();
        if let Some(error) = &state.closed {
            return Err(error.clone());
        }
        if state.is_full(self.window) {
            return Err(self.full(&state, state.backlog.len()));
        }
        if state.online {
            self.publish_online(&mut state, message)
        } else {
            self.publish_offline(&mut state, message)
        }
    }

    fn publish_online(
        &self,
        state: &mut State,
        message: &Message<'_>,
    ) -> Result<Option<MessageId>, Error> {
        let mut write_buffer = self.write_buffer.lock();
        if write_buffer.is_full() {
            return Err(self.full(state, write_buffer.bytes.len()));
        }
        let start = write_buffer.bytes.len();
        let frame_max = write_buffer.frame_max;
        self.encode(&mut write_buffer.bytes, message, frame_max)?;
        let id = self.confirm.then(|| {
            state
                .unconfirmed
                .push(&write_buffer.bytes[start..], message.mandatory, true)
        });
        let buffered = write_buffer.bytes.len();
        drop(write_buffer);
        self.write_buffer.announce(self.urgency(state, buffered));
        Ok(id)
    }

    /// As in Nagle's algorithm (RFC 896): a publisher without unconfirmed messages sends at once; otherwise messages are collected until
    /// the broker confirms or the write timer fires. No task waits for a message without confirms.
    fn urgency(&self, state: &State, buffered: usize) -> Urgency {
        let is_alone = self.confirm && state.unconfirmed.unsettled() == 1;
        if is_alone || buffered >= FLUSH_THRESHOLD {
            Urgency::Now
        } else {
            Urgency::Soon
        }
    }

    fn publish_offline(
        &self,
        state: &mut State,
        message: &Message<'_>,
    ) -> Result<Option<MessageId>, Error> {
        let frame_max = self.write_buffer.lock().frame_max;
        if !self.confirm {
            self.encode(&mut state.backlog, message, frame_max)?;
            return Ok(None);
        }
        let mut encoded = Vec::new();
        self.encode(&mut encoded, message, frame_max)?;
        let id = state.unconfirmed.push(&encoded, message.mandatory, true);
        Ok(Some(id))
    }

    /// Appends the message's frames, or nothing if its header does not fit a frame: headers cannot be split.
    fn encode(
        &self,
        out: &mut Vec<u8>,
        message: &Message<'_>,
        frame_max: usize,
    ) -> Result<(), Error> {
        let start = out.len();
        let Message {
            exchange,
            routing_key,
            properties,
            body,
            mandatory,
        } = *message;
        method::put_publish(out, self.channel, exchange, routing_key, mandatory);
        let header_at = out.len();
        frame::put_header(out, self.channel, properties, body.len());
        let header = out.len() - header_at;
        if header > frame_max {
            out.truncate(start);
            return Err(Error::usage(format!(
                "the message's headers take {header} bytes, the broker allows frames of {frame_max}"
            )));
        }
        frame::put_body(out, self.channel, body, frame_max);
        Ok(())
    }

    fn full(&self, state: &State, buffered: usize) -> Error {
        Error::Full {
            unconfirmed: state.unconfirmed.unsettled(),
            window: self.window,
            buffered,
        }
    }

    pub(super) async fn ready(&self) -> Result<(), Error> {
        loop {
            // Made before the look, so that room which appears in between is not missed.
            let (in_window, in_buffer) = (self.room.notified(), self.write_buffer.room.notified());
            match self.room()? {
                Room::Free => return Ok(()),
                Room::NoneInWindow => in_window.await,
                Room::NoneInBuffer => in_buffer.await,
            }
        }
    }

    fn room(&self) -> Result<Room, Error> {
        let mut state = self.lock();
        if let Some(error) = &state.closed {
            return Err(error.clone());
        }
        if state.is_full(self.window) {
            state.room_wanted = true;
            return Ok(Room::NoneInWindow);
        }
        if state.online && self.write_buffer.lock().is_full() {
            return Ok(Room::NoneInBuffer);
        }
        Ok(Room::Free)
    }

    /// Waits until the broker has answered for every message published before the first poll.
    pub(super) async fn confirmed(&self) -> Result<(), Error> {
        let until = self.lock().unconfirmed.next_id();
        wait::until(&self.flushed, || self.outcome_before(until)).await
    }

    fn outcome_before(&self, id: MessageId) -> Option<Result<(), Error>> {
        let mut state = self.lock();
        if state.unconfirmed.is_settled_before(id) {
            let failure = state.unconfirmed.take_unwatched_failure();
            return Some(failure.map_or(Ok(()), Err));
        }
        let nearest = state.flush_until.map_or(id, |known| known.min(id));
        state.flush_until = Some(nearest);
        None
    }

    fn wake(&self, due: Completions) {
        due.wakers.into_iter().for_each(Waker::wake);
        if due.room {
            self.room.notify_waiters();
        }
        if due.flushed {
            self.flushed.notify_waiters();
        }
    }

    pub(super) fn take_failure(&self) -> Result<(), Error> {
        let failure = self.lock().unconfirmed.take_unwatched_failure();
        failure.map_or(Ok(()), Err)
    }

    /// Waits until every message published so far is handed to the connection, and confirmed if this publisher confirms; or until
    /// the publisher is closed.
    pub(super) async fn sent(&self) {
        let _ = self.confirmed().await;
        wait::until(&self.room, || {
            let state = self.lock();
            let is_sent = state.online || state.backlog.is_empty() || state.closed.is_some();
            is_sent.then_some(())
        })
        .await;
    }

    /// Waits until the channel is open, with all messages that waited for it sent.
    ///
    /// # Errors
    /// Why the publisher is closed.
    pub(super) async fn online(&self) -> Result<(), Error> {
        wait::until(&self.room, || {
            let state = self.lock();
            match &state.closed {
                Some(error) => Some(Err(error.clone())),
                None => state.online.then_some(Ok(())),
            }
        })
        .await
    }

    /// Forgets the old channel: a new one is about to be opened.
    ///
    /// Called under the lock of the registry, where the session is known to be current: a later session may have opened its own.
    pub(super) fn renew(&self) {
        let mut state = self.lock();
        state.refused = None;
        state.opened = Some(Instant::now());
    }

    /// When the channel was last opened.
    pub(super) fn opened(&self) -> Instant {
        self.lock().opened.unwrap_or_else(Instant::now)
    }

    /// Its user has dropped it: it is not opened again.
    pub(super) fn retire(&self) {
        self.lock().retired = true;
    }

    /// Whether its channel should be open: neither dropped by its user nor closed by a refusal.
    pub(super) fn is_wanted(&self) -> bool {
        let state = self.lock();
        !state.retired && state.closed.is_none()
    }

    /// Sends what waited or is unconfirmed, then lets callers write to the write_buffer themselves.
    ///
    /// # Errors
    /// Why the broker has closed the channel since it was opened.
    pub(super) fn go_online(&self) -> Result<(), Error> {
        {
            let mut state = self.lock();
            let state = &mut *state;
            if let Some(error) = state.refused.take() {
                return Err(error);
            }
            // The channel may be closed already by the task that ends the publisher.
            if state.retired {
                return Ok(());
            }
            let mut write_buffer = self.write_buffer.lock();
            let frame_max = write_buffer.frame_max;
            if self.confirm {
                state.unconfirmed.resend(&mut write_buffer.bytes, frame_max);
            } else {
                outgoing::put_again(&mut write_buffer.bytes, &state.backlog, frame_max);
                state.backlog = Vec::new();
            }
            state.online = true;
            state.room_wanted = false;
        }
        self.write_buffer.announce(Urgency::Now);
        self.room.notify_waiters();
        Ok(())
    }

    /// The session has ended, perhaps because the broker closed the connection with an error.
    pub(super) fn go_offline(&self, close_error: Option<&CloseReason>) {
        let due = {
            let mut state = self.lock();
            let state = &mut *state;
            let was_online = std::mem::take(&mut state.online);
            if let Some(reason) = close_error.filter(|_| was_online) {
                let woken = &mut state.due.wakers;
                state.unconfirmed.connection_closed(reason, woken);
            }
            state.completed(self.window)
        };
        self.wake(due);
    }

    /// The broker has closed the channel. True if it was in use until now; otherwise the task that opens it learns the reason
    /// from its call or from [`go_online`](Self::go_online).
    pub(super) fn channel_closed(&self, error: &Error) -> bool {
        let mut state = self.lock();
        let was_online = std::mem::take(&mut state.online);
        if !was_online {
            state.refused = Some(error.clone());
        }
        was_online
    }

    /// Takes back unsent messages, ahead of those published since.
    pub(super) fn put_back(&self, encoded: Vec<u8>) {
        if !self.confirm {
            self.lock().backlog.splice(0..0, encoded);
        }
    }

    /// Applies a batch of confirmations; false if the broker confirmed a message that was never sent.
    pub(super) fn settle(&self, confirmations: &[Confirmation]) -> bool {
        let (known, due) = {
            let mut state = self.lock();
            let state = &mut *state;
            // Before it is online, nothing was sent on its channel that could be confirmed.
            let known = state.online
                && confirmations.iter().fold(true, |known, confirmation| {
                    known
                        & state
                            .unconfirmed
                            .settle(*confirmation, &mut state.due.wakers)
                });
            (known, state.completed(self.window))
        };
        self.wake(due);
        known
    }

    pub(super) fn returned(&self, returned: &Returned<'_>) {
        let mut state = self.lock();
        if self.confirm {
            state.unconfirmed.returned(returned);
        } else {
            state.unconfirmed.fail_unwatched(returned.error());
        }
    }

    /// The broker closed the channel: fails the messages that the broker named, or all unconfirmed ones.
    pub(super) fn refuse(&self, error: &Error, text: &str) {
        let due = {
            let mut state = self.lock();
            let state = &mut *state;
            if self.confirm {
                let named = |exchange: &str| text.contains(&format!("exchange '{exchange}'"));
                state.unconfirmed.fail(error, named, &mut state.due.wakers);
            } else {
                state.unconfirmed.fail_unwatched(error.clone());
            }
            state.completed(self.window)
        };
        self.wake(due);
    }

    /// The connection will not come back.
    pub(super) fn close(&self, error: &Error) {
        let mut due = {
            let mut state = self.lock();
            let state = &mut *state;
            state.closed = Some(error.clone());
            state.online = false;
            let due = &mut state.due;
            state.unconfirmed.fail(error, |_| true, &mut due.wakers);
            due.wakers.extend(state.dispatcher.take());
            std::mem::take(due)
        };
        (due.room, due.flushed) = (true, true);
        self.wake(due);
    }
}
