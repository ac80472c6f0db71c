use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tokio::time::Instant;

use super::slab::Id;

/// Ended timers that are kept at most beside as many live ones: most requests end long before their deadline, and removing each by
/// itself would cost more than the request.
const ENDED: usize = 64;

/// The purpose of a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    Deadline,
    /// The progress of an upload is checked.
    Upload,
}

/// The timers of requests.
#[derive(Debug, Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(Instant, Id, Timer)>>,
    live: usize,
}

impl Timers {
    pub(super) fn start(&mut self, at: Instant, id: Id, timer: Timer) {
        self.heap.push(Reverse((at, id, timer)));
        self.live += 1;
    }

    /// One of the timers has ended. `is_live` says which have not.
    pub(super) fn end(&mut self, is_live: impl Fn(Instant, Id, Timer) -> bool) {
        self.live -= 1;
        if self.heap.len() > 2 * self.live + ENDED {
            self.heap
                .retain(|Reverse((at, id, timer))| is_live(*at, *id, *timer));
        }
    }

    /// The time of the first timer.
    pub(super) fn first(
        &mut self,
        is_live: impl Fn(Instant, Id, Timer) -> bool,
    ) -> Option<Instant> {
        while let Some(Reverse((at, id, timer))) = self.heap.peek() {
            if is_live(*at, *id, *timer) {
                return Some(*at);
            }
            self.heap.pop();
        }
        None
    }

    /// Removes the first timer if it is due.
    pub(super) fn due(
        &mut self,
        now: Instant,
        is_live: impl Fn(Instant, Id, Timer) -> bool,
    ) -> Option<(Id, Timer)> {
        let at = self.first(is_live)?;
        if at > now {
            return None;
        }
        let Reverse((_, id, timer)) = self.heap.pop()?;
        self.live -= 1;
        Some((id, timer))
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.live
    }

    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.heap.len()
    }
}
