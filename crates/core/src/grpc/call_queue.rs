use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use super::call::Call;

/// Entries of calls that have left which are kept at least: dropping each by itself would cost a walk.
const SLACK: usize = 16;

/// Calls that wait for their turn. Those that end while they wait do not count any more, and at most as many of them are kept
/// as of those that still wait.
#[derive(Default)]
pub(super) struct CallQueue {
    calls: RefCell<VecDeque<Rc<Call>>>,
    left: Cell<usize>,
}

impl CallQueue {
    pub(super) fn push(&self, call: Rc<Call>) {
        self.calls.borrow_mut().push_back(call);
    }

    /// The one that has waited longest.
    pub(super) fn pop(&self) -> Option<Rc<Call>> {
        let mut calls = self.calls.borrow_mut();
        while let Some(call) = calls.pop_front() {
            if call.is_waiting() {
                return Some(call);
            }
            self.left.set(self.left.get() - 1);
        }
        None
    }

    /// One of those in the queue does not wait any more.
    pub(super) fn forget_one(&self) {
        self.left.set(self.left.get() + 1);
        let mut calls = self.calls.borrow_mut();
        if self.left.get() > SLACK && self.left.get() * 2 > calls.len() {
            calls.retain(|call| call.is_waiting());
            self.left.set(0);
        }
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.calls.borrow().len() - self.left.get()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.calls.borrow().len()
    }
}
