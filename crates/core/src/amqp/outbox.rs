use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;

use super::codec::outgoing;
use super::lock::lock;
use super::signal::{Signal, wake_all};

/// Publishing waits above this many bytes; one message may pass it.
pub(super) const HIGH_WATER: usize = 1 << 20;

/// Whole messages on their way to the I/O thread, encoded by the threads that publish.
pub(super) struct Outbox {
    pending: Mutex<Pending>,
    signal: Arc<Signal>,
}

#[derive(Default)]
pub(super) struct Pending {
    pub(super) bytes: Vec<u8>,
    /// Agreed with the broker; bodies are split to fit.
    pub(super) frame_max: usize,
    pub(super) waiting: Vec<Waker>,
}

impl Pending {
    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() >= HIGH_WATER
    }
}

impl Outbox {
    pub(super) fn new(signal: Arc<Signal>) -> Self {
        Self {
            pending: Mutex::default(),
            signal,
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Pending> {
        lock(&self.pending)
    }

    /// Tells the I/O thread that something was appended.
    pub(super) fn announce(&self) {
        self.signal.raise();
    }

    /// Exchanges the filled buffer for an empty one and lets those who wait for room continue.
    pub(super) fn swap(&self, empty: &mut Vec<u8>) {
        let waiting = {
            let mut pending = self.lock();
            if pending.bytes.is_empty() {
                return;
            }
            std::mem::swap(&mut pending.bytes, empty);
            pending.bytes.shrink_to(HIGH_WATER * 2);
            std::mem::take(&mut pending.waiting)
        };
        wake_all(waiting);
    }

    /// Takes out the messages of one channel, in their order.
    pub(super) fn extract(&self, channel: u16) -> Vec<u8> {
        let mut extracted = Vec::new();
        let waiting = {
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
            std::mem::take(&mut pending.waiting)
        };
        wake_all(waiting);
        extracted
    }

    /// Appends everything to `out`, for a connection that takes no more.
    pub(super) fn drain_to(&self, out: &mut Vec<u8>) {
        let waiting = {
            let mut pending = self.lock();
            out.append(&mut pending.bytes);
            std::mem::take(&mut pending.waiting)
        };
        wake_all(waiting);
    }
}
