use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use super::call::Call;
use super::status::{Code, Status};

/// How many calls of a service, or of a method, are taken at a time.
#[derive(Debug, Clone)]
pub struct GateLimits {
    /// Of the service or method.
    pub name: String,
    /// Calls in progress; more of them wait.
    pub in_flight: usize,
    /// Calls that wait; more of them end with RESOURCE_EXHAUSTED.
    pub queue: usize,
}

pub(super) struct Gate {
    limits: GateLimits,
    inside: Cell<usize>,
    waiting: RefCell<VecDeque<Rc<Call>>>,
}

impl Gate {
    pub(super) fn new(limits: GateLimits) -> Self {
        Self {
            limits,
            inside: Cell::default(),
            waiting: RefCell::default(),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.inside.get() >= self.limits.in_flight
    }

    pub(super) fn enter(&self) {
        self.inside.set(self.inside.get() + 1);
    }

    pub(super) fn leave(&self) {
        self.inside.set(self.inside.get() - 1);
    }

    /// What has to be said to a call for which there is no room to wait either.
    pub(super) fn wait(&self, call: &Rc<Call>) -> Result<(), Status> {
        let mut waiting = self.waiting.borrow_mut();
        let limits = &self.limits;
        if waiting.len() >= limits.queue {
            // Some have left since they began to wait.
            waiting.retain(|call| call.is_waiting());
        }
        if waiting.len() >= limits.queue {
            let message = format!(
                "{} has {} calls in progress and {} waiting, which is all it takes",
                limits.name,
                self.inside.get(),
                waiting.len(),
            );
            return Err(Status::new(Code::RESOURCE_EXHAUSTED, message));
        }
        waiting.push_back(Rc::clone(call));
        Ok(())
    }

    /// The one that has waited longest, where there is room for it.
    pub(super) fn admit(&self) -> Option<Rc<Call>> {
        let mut waiting = self.waiting.borrow_mut();
        while !self.is_full() {
            let call = waiting.pop_front()?;
            if call.is_waiting() {
                return Some(call);
            }
        }
        None
    }
}
