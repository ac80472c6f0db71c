use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks past poisoning: no state here is left half-written by a panic, since none is caused while a lock is held.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
