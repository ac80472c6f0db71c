//! Which budget a call is taken from.

use std::cell::Cell;
use std::rc::Rc;

use super::call::Call;
use super::call_queue::CallQueue;

/// What kind of calls a method has. Each kind has a budget of its own, so that calls a client can hold open for as long as it
/// likes do not take the place of those that end by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lane {
    /// One message each way: ends when its handler does.
    Unary,
    /// A stream of messages, either way.
    Stream,
    /// Waits for changes without an end, as `grpc.health.v1.Health/Watch` does.
    Watch,
}

/// The calls of one lane: how many are being handled, and which wait for that.
pub(super) struct LaneState {
    limit: usize,
    handed: Cell<usize>,
    pub(super) ready: CallQueue,
}

impl LaneState {
    fn new(limit: usize) -> Self {
        Self {
            limit,
            handed: Cell::default(),
            ready: CallQueue::default(),
        }
    }

    fn has_next(&self) -> bool {
        self.handed.get() < self.limit && !self.ready.is_empty()
    }

    fn take(&self) -> Option<Rc<Call>> {
        if self.handed.get() >= self.limit {
            return None;
        }
        let call = self.ready.pop()?;
        self.handed.set(self.handed.get() + 1);
        Some(call)
    }

    /// A call that was taken has ended.
    pub(super) fn put_back(&self) {
        self.handed.set(self.handed.get() - 1);
    }

    #[cfg(test)]
    pub(super) fn handed(&self) -> usize {
        self.handed.get()
    }
}

/// All lanes. Calls of one leave in the order of their arrival; the lanes take turns.
pub(super) struct Lanes {
    states: [LaneState; 3],
    turn: Cell<usize>,
}

impl Lanes {
    pub(super) fn new(unary: usize, streams: usize) -> Self {
        Self {
            // Watches are limited before they get here.
            states: [unary, streams, usize::MAX].map(LaneState::new),
            turn: Cell::default(),
        }
    }

    pub(super) fn of(&self, lane: Lane) -> &LaneState {
        &self.states[lane as usize]
    }

    pub(super) fn has_next(&self) -> bool {
        self.states.iter().any(LaneState::has_next)
    }

    pub(super) fn take(&self) -> Option<Rc<Call>> {
        let first = self.turn.get();
        let count = self.states.len();
        let turns = (first..first + count).map(|turn| turn % count);
        for turn in turns {
            if let Some(call) = self.states[turn].take() {
                self.turn.set((turn + 1) % count);
                return Some(call);
            }
        }
        None
    }
}
