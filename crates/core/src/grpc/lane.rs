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

/// How many calls of each lane may be handled at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LaneLimits {
    pub(super) unary: usize,
    pub(super) streams: usize,
    pub(super) watches: usize,
}

impl LaneLimits {
    /// How many handlers may run at a time.
    pub(super) fn handlers(self) -> usize {
        self.unary
            .saturating_add(self.streams)
            .saturating_add(self.watches)
    }

    /// Leaves no more handlers than there are fibers for them, and one of each lane at least. Where there are too few, a quarter of
    /// them is for watches, and half of them are for watches and streams.
    fn fitted(self, fibers: usize) -> Self {
        if self.handlers() <= fibers {
            return self;
        }
        let watches = self.watches.min((fibers / 4).max(1));
        let lasting = fibers.div_ceil(2);
        let streams = self.streams.min(lasting.saturating_sub(watches).max(1));
        let rest = fibers.saturating_sub(watches + streams);
        Self {
            unary: self.unary.min(rest.max(1)),
            streams,
            watches,
        }
    }

    fn as_array(self) -> [usize; 3] {
        [self.unary, self.streams, self.watches]
    }
}

/// The calls of one lane: how many are being handled, and which wait for that.
pub(super) struct LaneState {
    limit: Cell<usize>,
    handed: Cell<usize>,
    pub(super) ready: CallQueue,
}

impl LaneState {
    fn new(limit: usize) -> Self {
        Self {
            limit: Cell::new(limit),
            handed: Cell::default(),
            ready: CallQueue::default(),
        }
    }

    fn has_next(&self) -> bool {
        self.handed.get() < self.limit.get() && !self.ready.is_empty()
    }

    fn take(&self) -> Option<Rc<Call>> {
        if self.handed.get() >= self.limit.get() {
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
    configured: LaneLimits,
    states: [LaneState; 3],
    turn: Cell<usize>,
}

impl Lanes {
    pub(super) fn new(limits: LaneLimits) -> Self {
        Self {
            configured: limits,
            states: limits.as_array().map(LaneState::new),
            turn: Cell::default(),
        }
    }

    pub(super) fn configured(&self) -> LaneLimits {
        self.configured
    }

    /// There are no more than that many fibers for handlers. What runs goes on.
    pub(super) fn fit(&self, fibers: usize) -> LaneLimits {
        let limits = self.configured.fitted(fibers);
        for (state, limit) in self.states.iter().zip(limits.as_array()) {
            state.limit.set(limit);
        }
        limits
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

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: LaneLimits = LaneLimits {
        unary: 1_000,
        streams: 2_000,
        watches: 1_000,
    };

    #[test]
    fn no_more_handlers_run_than_there_are_fibers_for_and_one_of_each_lane_at_least() {
        assert_eq!(LIMITS.fitted(4_000), LIMITS);
        assert_eq!(LIMITS.fitted(200).as_array(), [100, 50, 50]);
        for fibers in 3..5_000 {
            let fitted = LIMITS.fitted(fibers);
            assert!(fitted.handlers() <= fibers, "{fibers}: {fitted:?}");
            assert!(fitted.as_array().iter().all(|&limit| limit > 0));
        }
        assert_eq!(LIMITS.fitted(1).as_array(), [1, 1, 1]);
    }

    #[test]
    fn lanes_are_fitted_again_when_there_are_more_fibers() {
        let lanes = Lanes::new(LIMITS);
        lanes.fit(10);
        assert_eq!(lanes.of(Lane::Unary).limit.get(), 5);
        lanes.fit(10_000);
        assert_eq!(lanes.of(Lane::Unary).limit.get(), 1_000);
    }
}
