//! The state of a consumer that callers and the I/O thread share: its deliveries, its acks, and its end.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use tokio::sync::Notify;

use super::Error;
use super::acks::{AckWindow, Collect};
use super::codec::FieldTable;
use super::io_waker::IoWaker;
use super::lock::lock;
use super::message::{Delivery, DeliveryTag, Layout};
use crate::wait;

/// How a consumer asks for messages.
#[derive(Debug, Clone, PartialEq)]
pub struct ConsumeOptions {
    /// Most deliveries that are not acknowledged at once; 0 means no limit.
    pub prefetch: u16,
    /// Names the consumer to the broker; chosen here if absent.
    pub consumer_tag: Option<String>,
    /// Refuse to share the queue.
    pub exclusive: bool,
    pub arguments: FieldTable<'static>,
}

impl Default for ConsumeOptions {
    fn default() -> Self {
        Self {
            prefetch: 100,
            consumer_tag: None,
            exclusive: false,
            arguments: FieldTable::new(),
        }
    }
}

/// A complete delivery that its consumer has not taken over yet.
pub(super) struct ReceivedDelivery {
    pub(super) tag: u64,
    pub(super) redelivered: bool,
    pub(super) raw: Bytes,
    pub(super) layout: Layout,
}

/// The half of a consumer that the I/O thread and the caller share.
pub(super) struct ConsumerShared {
    pub(super) channel: u16,
    pub(super) options: ConsumeOptions,
    pub(super) consumer_tag: String,
    /// Settled deliveries that are worth a frame at once.
    threshold: usize,
    /// Finished deliveries behind an unfinished one that are acked singly rather than keep their slots.
    straggler_limit: usize,
    /// Deliveries the broker may have sent and not heard of again; more of them break the prefetch.
    max_unfinished: usize,
    /// Whether the I/O thread should look at the acks.
    dirty: AtomicBool,
    io_waker: Arc<IoWaker>,
    state: Mutex<State>,
    /// Notified when deliveries have arrived or no more will come.
    changed: Notify,
}

struct State {
    queue: String,
    /// Counts the channels this consumer has had; 0 before the first.
    generation: u32,
    deliveries: VecDeque<Delivery>,
    window: AckWindow,
    /// Whether the I/O thread runs a timer for acks, or was asked to.
    ticking: bool,
    /// Ticks since the last sweep.
    ticks: u8,
    /// Whether the consumer runs on its channel.
    online: bool,
    /// The broker has cancelled it on this channel, and a task is about to consume again.
    resuming: bool,
    /// Set by the user: it must not be started again.
    cancelled: bool,
    /// No more deliveries come; `Ok` if the user wanted it so.
    ended: Option<Result<(), Error>>,
}

impl ConsumerShared {
    pub(super) fn new(
        channel: u16,
        queue: String,
        options: ConsumeOptions,
        io_waker: Arc<IoWaker>,
    ) -> Self {
        let consumer_tag = options
            .consumer_tag
            .clone()
            .unwrap_or_else(|| format!("weft-{}-{channel}", std::process::id()));
        Self {
            channel,
            threshold: threshold(options.prefetch),
            straggler_limit: straggler_limit(options.prefetch),
            max_unfinished: max_unfinished(options.prefetch),
            options,
            consumer_tag,
            dirty: AtomicBool::new(false),
            io_waker,
            state: Mutex::new(State {
                queue,
                generation: 0,
                deliveries: VecDeque::new(),
                window: AckWindow::default(),
                ticking: false,
                ticks: 0,
                online: false,
                resuming: false,
                cancelled: false,
                ended: None,
            }),
            changed: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub(super) fn queue(&self) -> String {
        self.lock().queue.clone()
    }

    /// Deliveries that the caller has not taken.
    pub(super) fn queued(&self) -> usize {
        self.lock().deliveries.len()
    }

    pub(super) fn rename_queue(&self, from: &str, to: &str) {
        let mut state = self.lock();
        if state.queue == from {
            to.clone_into(&mut state.queue);
        }
    }

    pub(super) async fn next_batch(&self, max: usize) -> Result<Vec<Delivery>, Error> {
        wait::until(&self.changed, || self.take_batch(max)).await
    }

    /// The deliveries that have arrived, or the end of the consumer; `None` if the caller has to wait.
    pub(super) fn take_batch(&self, max: usize) -> Option<Result<Vec<Delivery>, Error>> {
        let mut state = self.lock();
        if !state.deliveries.is_empty() {
            let count = state.deliveries.len().min(max.max(1));
            return Some(Ok(state.deliveries.drain(..count).collect()));
        }
        let ended = state.ended.as_ref()?;
        Some(ended.clone().map(|()| Vec::new()))
    }

    pub(super) fn settle(
        &self,
        tag: DeliveryTag,
        settle: impl FnOnce(&mut AckWindow, u64) -> bool,
    ) -> bool {
        let mut state = self.lock();
        if tag.generation() != state.generation || !settle(&mut state.window, tag.tag()) {
            return false;
        }
        // The first settlement starts the timer, a full batch cuts it short; settlements in between wake no thread.
        let first = !std::mem::replace(&mut state.ticking, true);
        let unsent = state.window.unsent();
        let full = unsent == self.threshold || unsent == self.straggler_limit;
        drop(state);
        if first || full {
            self.dirty.store(true, Ordering::Release);
            self.io_waker.wake();
        }
        true
    }

    /// Hands over what one read brought, with one wake; false if the broker's tags do not count up or it ignores the
    /// prefetch.
    pub(super) fn deliver(&self, received: &mut Vec<ReceivedDelivery>) -> bool {
        let mut in_order = true;
        {
            let mut state = self.lock();
            let state = &mut *state;
            for ReceivedDelivery {
                tag,
                redelivered,
                raw,
                layout,
            } in received.drain(..)
            {
                in_order &= state.window.delivered(tag);
                in_order &= state.window.unfinished() <= self.max_unfinished;
                let tag = DeliveryTag::new(state.generation, tag);
                state
                    .deliveries
                    .push_back(Delivery::new(tag, redelivered, raw, layout));
            }
        }
        self.changed.notify_waiters();
        in_order
    }

    /// Appends due acks; true if a timer is needed for the rest.
    pub(super) fn collect_due(&self, out: &mut Vec<u8>, tick: bool) -> bool {
        if !tick && !self.dirty.swap(false, Ordering::AcqRel) {
            return false;
        }
        let mut state = self.lock();
        let how = if tick && state.is_sweep() {
            Collect::Sweep
        } else {
            Collect::Prefix {
                stragglers: self.straggler_limit,
            }
        };
        if tick || state.window.unsent() >= self.threshold {
            state.window.collect(out, self.channel, how);
        }
        state.ticking = state.window.unsent() > 0;
        state.ticking
    }

    /// Appends every ack there is.
    pub(super) fn collect_all(&self, out: &mut Vec<u8>) {
        let mut state = self.lock();
        state.window.collect(out, self.channel, Collect::Everything);
    }

    /// The broker delivers to it from now on.
    pub(super) fn go_online(&self) {
        self.lock().online = true;
    }

    /// Forgets the old channel: a new one is about to be opened. Returns the queue to consume.
    ///
    /// Called under the lock of the registry, where the session is known to be current: a later session may run the consumer.
    pub(super) fn renew(&self) -> String {
        let mut state = self.lock();
        state.forget_channel();
        state.queue.clone()
    }

    /// The channel is gone. True if the consumer was running and should be started again.
    pub(super) fn go_offline(&self) -> bool {
        let wanted = {
            let mut state = self.lock();
            state.forget_channel();
            state.is_wanted()
        };
        if !wanted {
            self.end();
        }
        wanted
    }

    pub(super) fn is_online(&self) -> bool {
        self.lock().online
    }

    /// Whether it should run: neither cancelled by its user nor ended by a refusal.
    pub(super) fn is_wanted(&self) -> bool {
        self.lock().is_wanted()
    }

    /// Whether it runs although its user has cancelled it.
    pub(super) fn must_be_cancelled(&self) -> bool {
        let state = self.lock();
        state.online && !state.is_wanted()
    }

    /// The broker has cancelled it. Returns the generation of its channel, for [`end_resuming`](Self::end_resuming); `None`
    /// while a task is about to consume again: a broker that cancels often gets one attempt at a time.
    pub(super) fn begin_resuming(&self) -> Option<u32> {
        let mut state = self.lock();
        let is_resuming = std::mem::replace(&mut state.resuming, true);
        (!is_resuming).then_some(state.generation)
    }

    /// True if it must consume again. False also if it has another channel by now: the task that opened it consumes there.
    pub(super) fn end_resuming(&self, generation: u32) -> bool {
        let mut state = self.lock();
        if state.generation != generation {
            return false;
        }
        state.resuming = false;
        state.is_wanted()
    }

    pub(super) fn cancel(&self) {
        self.lock().cancelled = true;
    }

    /// The user has dropped it.
    pub(super) fn retire(&self) {
        self.cancel();
        self.end();
    }

    /// No more deliveries come, as the user wanted.
    pub(super) fn end(&self) {
        self.end_with(Ok(()));
    }

    /// Ends the consumer with an error, which the next call for deliveries returns.
    pub(super) fn fail(&self, error: Error) {
        self.end_with(Err(error));
    }

    fn end_with(&self, result: Result<(), Error>) {
        self.lock().ended.get_or_insert(result);
        self.changed.notify_waiters();
    }
}

/// Ticks between two sweeps for stragglers: handlers finish out of order all the time, and the delivery in front mostly
/// finishes soon after, so that one ack covers all.
const TICKS_PER_SWEEP: u8 = 8;

impl State {
    /// The deliveries of the old channel come again, its tags settle nothing.
    fn forget_channel(&mut self) {
        self.generation = (self.generation + 1) % DeliveryTag::GENERATIONS;
        self.deliveries.clear();
        self.window = AckWindow::default();
        self.ticking = false;
        self.online = false;
        self.resuming = false;
    }

    fn is_wanted(&self) -> bool {
        !self.cancelled && self.ended.is_none()
    }

    fn is_sweep(&mut self) -> bool {
        self.ticks = (self.ticks + 1) % TICKS_PER_SWEEP;
        self.ticks == 0
    }
}

fn straggler_limit(prefetch: u16) -> usize {
    match prefetch {
        0 => 1024,
        prefetch => usize::from(prefetch / 2).max(1),
    }
}

/// Generous: a stream of RabbitMQ may send what is left of a chunk although the prefetch is used up.
fn max_unfinished(prefetch: u16) -> usize {
    match prefetch {
        0 => usize::MAX,
        prefetch => usize::from(prefetch) * 2 + (64 << 10),
    }
}

/// A quarter of the prefetch: large enough to save frames, small enough to keep the broker sending.
fn threshold(prefetch: u16) -> usize {
    match prefetch {
        0 => 64,
        prefetch => usize::from(prefetch / 4).clamp(1, 64),
    }
}
