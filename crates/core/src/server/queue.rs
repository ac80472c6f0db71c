use std::collections::VecDeque;

use super::slab::Id;

/// Abandoned entries that a queue keeps at most beside as many live ones: removing each by itself would cost a walk.
const ABANDONED: usize = 32;

/// Requests in the order of their arrival. Those that leave the queue from its middle are counted out at once and removed later.
#[derive(Debug, Default)]
pub(super) struct Queue {
    ids: VecDeque<Id>,
    live: usize,
}

impl Queue {
    pub(super) fn push(&mut self, id: Id) {
        self.ids.push_back(id);
        self.live += 1;
    }

    /// The entry that has waited longest. `is_live` says which entries still wait.
    pub(super) fn pop(&mut self, is_live: impl Fn(Id) -> bool) -> Option<Id> {
        while let Some(id) = self.ids.pop_front() {
            if is_live(id) {
                self.live -= 1;
                return Some(id);
            }
        }
        None
    }

    /// One of the entries no longer waits.
    pub(super) fn abandon(&mut self, is_live: impl Fn(Id) -> bool) {
        self.live -= 1;
        if self.ids.len() > 2 * self.live + ABANDONED {
            self.ids.retain(|id| is_live(*id));
        }
    }

    /// All entries in their order, including those that no longer wait.
    pub(super) fn iter(&self) -> impl Iterator<Item = Id> {
        self.ids.iter().copied()
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.live
    }

    pub(super) fn is_empty(&self) -> bool {
        self.live == 0
    }

    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.ids.len()
    }
}
