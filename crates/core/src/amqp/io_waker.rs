use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use super::lock::lock;

/// Wakes the I/O task, at most once until it has looked.
///
/// Both sides use read-modify-write operations, so the side that finds the flag set also sees what was written before it.
#[derive(Debug, Default)]
pub(super) struct IoWaker {
    woken: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl IoWaker {
    pub(super) fn wake(&self) {
        if !self.woken.swap(true, Ordering::AcqRel)
            && let Some(waker) = &*lock(&self.waker)
        {
            waker.wake_by_ref();
        }
    }

    /// Called by the I/O task before it looks for work.
    pub(super) fn register(&self, waker: &Waker) {
        let mut current = lock(&self.waker);
        if !current.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *current = Some(waker.clone());
        }
        drop(current);
        self.woken.swap(false, Ordering::AcqRel);
    }
}
