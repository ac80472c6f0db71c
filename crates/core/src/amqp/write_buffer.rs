use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::Notify;

use super::codec::outgoing;
use super::io_waker::IoWaker;
use super::lock::lock;

/// Publishing waits while the buffer holds this many bytes; a single message may exceed it.
pub(super) const HIGH_WATER: usize = 1 << 20;

/// A buffer of this many bytes is written at once: waiting for more saves nothing.
pub(super) const FLUSH_THRESHOLD: usize = 32 << 10;

/// How soon appended messages must be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Urgency {
    Now,
    /// Within a millisecond or two, together with what comes until then. Each write wakes several processes of the
    /// broker; under load a shared one costs both sides a fraction.
    Soon,
}

/// Whole messages on their way to the I/O thread, encoded by the threads that publish.
pub(super) struct WriteBuffer {
    pending: Mutex<Pending>,
    io_waker: Arc<IoWaker>,
    /// Notified whenever the buffer was emptied.
    pub(super) room: Notify,
    /// The buffer must be written immediately.
    urgent: AtomicBool,
    /// The I/O thread has been told that the buffer is not empty.
    announced: AtomicBool,
}

#[derive(Default)]
pub(super) struct Pending {
    pub(super) bytes: Vec<u8>,
    /// Agreed with the broker; bodies are split to fit.
    pub(super) frame_max: usize,
}

impl Pending {
    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() >= HIGH_WATER
    }
}

impl WriteBuffer {
    pub(super) fn new(io_waker: Arc<IoWaker>) -> Self {
        Self {
            pending: Mutex::default(),
            io_waker,
            room: Notify::new(),
            urgent: AtomicBool::new(false),
            announced: AtomicBool::new(false),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Pending> {
        lock(&self.pending)
    }

    /// Tells the I/O thread that something was appended.
    pub(super) fn announce(&self, urgency: Urgency) {
        let is_news = match urgency {
            Urgency::Now => !self.urgent.swap(true, Ordering::AcqRel),
            Urgency::Soon => !self.announced.swap(true, Ordering::AcqRel),
        };
        if is_news {
            self.io_waker.wake();
        }
    }

    /// Makes the next write take the buffer.
    pub(super) fn mark_urgent(&self) {
        self.urgent.store(true, Ordering::Release);
    }

    /// When to write the buffer; `None` when nothing was announced since the last [`swap`](Self::swap).
    pub(super) fn urgency(&self) -> Option<Urgency> {
        if self.urgent.load(Ordering::Acquire) {
            Some(Urgency::Now)
        } else {
            self.announced
                .load(Ordering::Acquire)
                .then_some(Urgency::Soon)
        }
    }

    /// Exchanges the filled buffer for an empty one and wakes the tasks that wait for room.
    pub(super) fn swap(&self, empty: &mut Vec<u8>) {
        // Before looking: what is appended after this look is announced again.
        self.urgent.swap(false, Ordering::AcqRel);
        self.announced.swap(false, Ordering::AcqRel);
        let mut pending = self.lock();
        if pending.bytes.is_empty() {
            return;
        }
        std::mem::swap(&mut pending.bytes, empty);
        pending.bytes.shrink_to(HIGH_WATER * 2);
        drop(pending);
        self.room.notify_waiters();
    }

    /// Takes out the messages of one channel, in their order.
    pub(super) fn extract(&self, channel: u16) -> Vec<u8> {
        let mut extracted = Vec::new();
        let mut pending = self.lock();
        let bytes = std::mem::take(&mut pending.bytes);
        for message in outgoing::messages(&bytes) {
            let to = if message.channel == channel {
                &mut extracted
            } else {
                &mut pending.bytes
            };
            to.extend_from_slice(&bytes[message.range]);
        }
        drop(pending);
        self.room.notify_waiters();
        extracted
    }

    /// Appends everything to `out`, for a connection that takes no more.
    pub(super) fn drain_to(&self, out: &mut Vec<u8>) {
        out.append(&mut self.lock().bytes);
        self.room.notify_waiters();
    }
}
