use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::Notify;

use super::Error;
use super::acks::{AckWindow, Collect};
use super::channel::Arrived;
use super::codec::{FieldTable, method};
use super::handle::{Handle, joined};
use super::link::Link;
use super::lock::lock;
use super::message::{Delivery, DeliveryTag};
use super::signal::Signal;
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

/// Receives the messages of one queue over a channel of its own.
///
/// After a reconnect it is started again with the same prefetch. What was delivered before and not acknowledged comes
/// again; tags of the old deliveries settle nothing. Dropping it never blocks and gives unsettled deliveries back.
pub struct Consumer {
    shared: Arc<ConsumerShared>,
    handle: Arc<Handle>,
}

impl Consumer {
    pub(super) fn new(shared: Arc<ConsumerShared>, handle: Arc<Handle>) -> Self {
        Self { shared, handle }
    }

    /// The name the broker knows this consumer by.
    pub fn consumer_tag(&self) -> &str {
        &self.shared.consumer_tag
    }

    /// Up to `max` deliveries, at least one; empty once the consumer was cancelled and all were taken.
    ///
    /// Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`Error::ConsumerCancelled`] if the queue is gone, [`Error::Closed`] after the connection was closed.
    pub async fn next_batch(&self, max: usize) -> Result<Vec<Delivery>, Error> {
        wait::until(&self.shared.changed, || self.shared.take_batch(max)).await
    }

    /// What is here already, up to `max` deliveries, without waiting; possibly none.
    pub fn try_next_batch(&self, max: usize) -> Result<Vec<Delivery>, Error> {
        self.shared
            .take_batch(max)
            .unwrap_or_else(|| Ok(Vec::new()))
    }

    /// Marks a delivery as done; the broker hears of it within a few milliseconds, together with others.
    ///
    /// False if the tag is stale (from before a reconnect, so the message comes again) or was settled before.
    pub fn ack(&self, tag: DeliveryTag) -> bool {
        self.shared.settle(tag, AckWindow::ack)
    }

    /// Gives a delivery back, to the queue or to its dead-letter exchange. False as for [`ack`](Self::ack).
    pub fn nack(&self, tag: DeliveryTag, requeue: bool) -> bool {
        self.shared
            .settle(tag, |window, tag| window.reject(tag, requeue))
    }

    /// [`nack`](Self::nack) without requeueing: the message is dead-lettered or dropped by the broker.
    pub fn reject(&self, tag: DeliveryTag) -> bool {
        self.nack(tag, false)
    }

    /// Deliveries that are here and not taken yet.
    pub fn queued(&self) -> usize {
        self.shared.lock().deliveries.len()
    }

    /// Stops new deliveries. Those already here stay, and may still be acknowledged.
    ///
    /// Dropping the future once it was polled leaves the rest to the background: the consumer ends all the same.
    pub async fn cancel(&self) -> Result<(), Error> {
        self.shared.cancel();
        // A connection that is down has no consumer, and one that comes back does not start it again.
        let link = self.handle.current_link();
        let shared = Arc::clone(&self.shared);
        let task = self.handle.runtime.spawn(async move {
            let result = match link {
                Some(link) => shared.cancel_on(&link).await,
                None => Ok(()),
            };
            shared.end();
            match result {
                Err(error) if error.ends_link() => Ok(()),
                other => other,
            }
        });
        joined(task).await
    }

    /// Waits until the broker has processed every ack and nack so far.
    ///
    /// # Errors
    /// [`Error::ConnectionLost`] if it may not have: those deliveries come again.
    pub async fn flush(&self) -> Result<(), Error> {
        match self.handle.current_link() {
            Some(link) => self.shared.round_trip(&link).await,
            None => Err(self.handle.disconnected()),
        }
    }

    /// Sends the acks and closes the channel; deliveries that are not settled return to the queue.
    ///
    /// Dropping the future closes the channel in the background.
    ///
    /// # Errors
    /// [`Error::ConnectionLost`] if the last acks may not have arrived: those deliveries come again.
    pub async fn close(self) -> Result<(), Error> {
        self.shared.cancel();
        match self.handle.current_link() {
            Some(link) => link.close_channel(self.shared.channel).await,
            None => Err(self.handle.disconnected()),
        }
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.handle.retire_consumer(&self.shared);
    }
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
    most_unfinished: usize,
    /// Whether the I/O thread should look at the acks.
    dirty: AtomicBool,
    /// The broker has cancelled it, and a task is about to consume again.
    resuming: AtomicBool,
    signal: Arc<Signal>,
    state: Mutex<State>,
    /// Notified when deliveries have arrived or no more come.
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
        signal: Arc<Signal>,
    ) -> Self {
        let consumer_tag = options
            .consumer_tag
            .clone()
            .unwrap_or_else(|| format!("weft-{}-{channel}", std::process::id()));
        Self {
            channel,
            threshold: threshold(options.prefetch),
            straggler_limit: straggler_limit(options.prefetch),
            most_unfinished: most_unfinished(options.prefetch),
            options,
            consumer_tag,
            dirty: AtomicBool::new(false),
            resuming: AtomicBool::new(false),
            signal,
            state: Mutex::new(State {
                queue,
                generation: 0,
                deliveries: VecDeque::new(),
                window: AckWindow::default(),
                ticking: false,
                ticks: 0,
                online: false,
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

    pub(super) fn rename_queue(&self, from: &str, to: &str) {
        let mut state = self.lock();
        if state.queue == from {
            to.clone_into(&mut state.queue);
        }
    }

    /// What is here, or how the consumer has ended; `None` where the caller has to wait.
    fn take_batch(&self, max: usize) -> Option<Result<Vec<Delivery>, Error>> {
        let mut state = self.lock();
        if !state.deliveries.is_empty() {
            let count = state.deliveries.len().min(max.max(1));
            return Some(Ok(state.deliveries.drain(..count).collect()));
        }
        let ended = state.ended.as_ref()?;
        Some(ended.clone().map(|()| Vec::new()))
    }

    fn settle(&self, tag: DeliveryTag, settle: impl FnOnce(&mut AckWindow, u64) -> bool) -> bool {
        let mut state = self.lock();
        if tag.generation() != state.generation || !settle(&mut state.window, tag.tag()) {
            return false;
        }
        // The first settlement starts the timer, a full batch cuts it short; those between wake nobody.
        let first = !std::mem::replace(&mut state.ticking, true);
        let unsent = state.window.unsent();
        let full = unsent == self.threshold || unsent == self.straggler_limit;
        drop(state);
        if first || full {
            self.dirty.store(true, Ordering::Release);
            self.signal.raise();
        }
        true
    }

    /// Hands over what one read brought, with one wake; false if the broker's tags do not count up or it ignores the
    /// prefetch.
    pub(super) fn deliver(&self, arrived: &mut Vec<Arrived>) -> bool {
        let mut in_order = true;
        {
            let mut state = self.lock();
            let state = &mut *state;
            for Arrived {
                tag,
                redelivered,
                raw,
                layout,
            } in arrived.drain(..)
            {
                in_order &= state.window.delivered(tag);
                in_order &= state.window.unfinished() <= self.most_unfinished;
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

    /// Opens the channel and starts consuming, on a new link or again on the same one.
    pub(super) async fn start(self: &Arc<Self>, link: &Link) -> Result<(), Error> {
        let queue = self.renew();
        let object = || format!("consume queue \"{queue}\"");
        let channel = self.channel;
        link.open_consumer(self, object).await?;
        let qos = method::qos(channel, self.options.prefetch);
        link.call(channel, qos, method::QOS_OK, object).await?;
        self.consume(link).await
    }

    /// Starts consuming on the open channel.
    pub(super) async fn consume(&self, link: &Link) -> Result<(), Error> {
        let queue = self.queue();
        let ConsumeOptions {
            exclusive,
            arguments,
            ..
        } = &self.options;
        let tag = &self.consumer_tag;
        let frame = method::consume(self.channel, &queue, tag, *exclusive, arguments);
        let object = || format!("consume queue \"{queue}\"");
        link.call(self.channel, frame, method::CONSUME_OK, object)
            .await?;
        self.lock().online = true;
        // Cancelled while it was being started: the broker may have had the cancel before the consume, or none.
        if self.is_wanted() {
            Ok(())
        } else {
            self.cancel_on(link).await
        }
    }

    /// Forgets the old channel: its deliveries come again, its tags settle nothing.
    fn renew(&self) -> String {
        let mut state = self.lock();
        state.generation = (state.generation + 1) % DeliveryTag::GENERATIONS;
        state.deliveries.clear();
        state.window = AckWindow::default();
        state.ticking = false;
        state.online = false;
        state.queue.clone()
    }

    /// The channel is gone. True if the consumer was running and should be started again.
    pub(super) fn go_offline(&self) -> bool {
        self.renew();
        let wanted = self.is_wanted();
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
        let state = self.lock();
        !state.cancelled && state.ended.is_none()
    }

    /// False while a task is about to consume again: a broker that cancels often gets one attempt at a time.
    pub(super) fn begin_resuming(&self) -> bool {
        !self.resuming.swap(true, Ordering::AcqRel)
    }

    pub(super) fn end_resuming(&self) {
        self.resuming.store(false, Ordering::Release);
    }

    fn cancel(&self) {
        self.lock().cancelled = true;
    }

    /// The user has dropped it.
    pub(super) fn retire(&self) {
        self.cancel();
        self.end();
    }

    async fn cancel_on(&self, link: &Link) -> Result<(), Error> {
        let frame = method::cancel(self.channel, &self.consumer_tag);
        let object = || format!("cancel consumer \"{}\"", self.consumer_tag);
        link.call(self.channel, frame, method::CANCEL_OK, object)
            .await
            .map(drop)
    }

    /// An answered call on the channel: the broker works off its methods in order, acks included.
    async fn round_trip(&self, link: &Link) -> Result<(), Error> {
        let frame = method::qos(self.channel, self.options.prefetch);
        let object = || format!("flush consumer \"{}\"", self.consumer_tag);
        link.call(self.channel, frame, method::QOS_OK, object)
            .await
            .map(drop)
    }

    /// No more deliveries come, as the user wanted.
    fn end(&self) {
        self.end_with(Ok(()));
    }

    /// No more deliveries come; who asks for them is told why.
    pub(super) fn fail(&self, error: Error) {
        self.end_with(Err(error));
    }

    fn end_with(&self, result: Result<(), Error>) {
        self.lock().ended.get_or_insert(result);
        self.changed.notify_waiters();
    }
}

/// A quarter of the prefetch: large enough to save frames, small enough to keep the broker sending.
/// Ticks between two sweeps for stragglers: handlers finish out of order all the time, and the delivery in front mostly
/// finishes soon after, so that one ack covers all.
const TICKS_PER_SWEEP: u8 = 8;

impl State {
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
fn most_unfinished(prefetch: u16) -> usize {
    match prefetch {
        0 => usize::MAX,
        prefetch => usize::from(prefetch) * 2 + (64 << 10),
    }
}

fn threshold(prefetch: u16) -> usize {
    match prefetch {
        0 => 64,
        prefetch => usize::from(prefetch / 4).clamp(1, 64),
    }
}
