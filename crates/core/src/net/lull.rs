//! The moment in which the loop of this thread has nothing left to do and is about to wait for the system.
//!
//! What a peer is in no hurry for can be written then, unless something was written before that it could travel with.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Who has something to do in the next lull.
pub(crate) trait Patient {
    /// Wakes a task, where it is still needed. Must not [`wait`].
    fn lull(&self);
}

thread_local! {
    /// How many somebody has waited for; `None` on a thread whose loop does not tell.
    static COUNT: Cell<Option<u64>> = const { Cell::new(None) };
    static WAITING: RefCell<Vec<Rc<dyn Patient>>> = const { RefCell::new(Vec::new()) };
}

/// From now on [`come`] is called before the loop of this thread waits, and now and then where it never does.
pub(crate) fn expect() {
    COUNT.set(Some(COUNT.get().unwrap_or(0)));
}

/// Tells who waits for it.
pub(crate) fn come() {
    WAITING.with_borrow_mut(|waiting| {
        if !waiting.is_empty() {
            COUNT.set(COUNT.get().map(|count| count + 1));
        }
        waiting.drain(..).for_each(|patient| patient.lull());
    });
}

/// The number of the next one.
pub(crate) fn next() -> Option<u64> {
    COUNT.get()
}

pub(crate) fn wait(patient: Rc<dyn Patient>) {
    WAITING.with_borrow_mut(|waiting| waiting.push(patient));
}
