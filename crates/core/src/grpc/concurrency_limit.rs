use std::cell::Cell;
use std::rc::Rc;

use super::call::Call;
use super::call_queue::CallQueue;
use super::status::{Code, Status};

/// How many calls of a service, or of a method, are taken at a time.
#[derive(Debug, Clone)]
pub struct MethodConcurrency {
    /// Of the service or method.
    pub name: String,
    /// Calls in progress; more of them wait.
    pub in_flight: usize,
    /// Calls that wait; more of them end with RESOURCE_EXHAUSTED.
    pub queue: usize,
}

pub(super) struct ConcurrencyLimit {
    limits: MethodConcurrency,
    inside: Cell<usize>,
    pub(super) waiting: CallQueue,
}

impl ConcurrencyLimit {
    pub(super) fn new(limits: MethodConcurrency) -> Self {
        Self {
            limits,
            inside: Cell::default(),
            waiting: CallQueue::default(),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.inside.get() >= self.limits.in_flight
    }

    #[cfg(test)]
    pub(super) fn inside(&self) -> usize {
        self.inside.get()
    }

    pub(super) fn enter(&self) {
        self.inside.set(self.inside.get() + 1);
    }

    pub(super) fn leave(&self) {
        self.inside.set(self.inside.get() - 1);
    }

    /// What has to be said to a call for which there is no room to wait either.
    pub(super) fn wait(&self, call: &Rc<Call>) -> Result<(), Status> {
        let (waiting, limits) = (&self.waiting, &self.limits);
        if waiting.len() >= limits.queue {
            let message = format!(
                "{} has {} calls in progress and {} waiting, which is all it takes",
                limits.name,
                self.inside.get(),
                waiting.len(),
            );
            return Err(Status::new(Code::RESOURCE_EXHAUSTED, message));
        }
        waiting.push(Rc::clone(call));
        Ok(())
    }

    /// The one that has waited longest, where there is room for it.
    pub(super) fn admit(&self) -> Option<Rc<Call>> {
        match self.is_full() {
            true => None,
            false => self.waiting.pop(),
        }
    }
}
