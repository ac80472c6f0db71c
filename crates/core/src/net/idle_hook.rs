//! Callbacks for the moment in which the event loop of this thread is about to wait for the system.
//!
//! A connection holds back output that is not urgent until then, so that it can share a system call with output that follows.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A callback for the next time the event loop is idle.
pub(crate) trait OnIdle {
    /// Wakes a task if it is still needed. Must not call [`register`].
    fn on_idle(&self);
}

thread_local! {
    /// How many runs had callbacks; `None` on a thread whose event loop never calls [`run`].
    static RUNS: Cell<Option<u64>> = const { Cell::new(None) };
    static REGISTERED: RefCell<Vec<Rc<dyn OnIdle>>> = const { RefCell::new(Vec::new()) };
}

/// Declares that the event loop of this thread calls [`run`] before it waits, and regularly while it is never idle.
pub(crate) fn enable() {
    RUNS.set(Some(RUNS.get().unwrap_or(0)));
}

/// Runs the registered callbacks, each once.
pub(crate) fn run() {
    REGISTERED.with_borrow_mut(|registered| {
        if !registered.is_empty() {
            RUNS.set(RUNS.get().map(|count| count + 1));
        }
        registered.drain(..).for_each(|callback| callback.on_idle());
    });
}

/// The number of the next run; `None` on a thread without an event loop that calls [`run`].
pub(crate) fn next_run() -> Option<u64> {
    RUNS.get()
}

/// Calls `callback` in the next run.
pub(crate) fn register(callback: Rc<dyn OnIdle>) {
    REGISTERED.with_borrow_mut(|registered| registered.push(callback));
}
