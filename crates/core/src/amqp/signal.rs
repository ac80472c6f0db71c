use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use super::lock::lock;

/// Wakes the I/O task, at most once until it has looked.
///
/// Both sides use read-modify-write operations, so whoever finds the flag raised also finds what was written before it.
#[derive(Debug, Default)]
pub(super) struct Signal {
    raised: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Signal {
    pub(super) fn raise(&self) {
        if !self.raised.swap(true, Ordering::AcqRel)
            && let Some(waker) = &*lock(&self.waker)
        {
            waker.wake_by_ref();
        }
    }

    /// Called by the I/O task before it looks for work.
    pub(super) fn rearm(&self, waker: &Waker) {
        let mut current = lock(&self.waker);
        if !current.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *current = Some(waker.clone());
        }
        drop(current);
        self.raised.swap(false, Ordering::AcqRel);
    }
}
