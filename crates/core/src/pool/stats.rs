use std::time::Duration;

use super::Histogram;

/// What the pool holds and has done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// The most connections there may be.
    pub size: usize,
    pub idle: usize,
    /// Lent, or being cleaned or checked.
    pub in_use: usize,
    /// Being opened.
    pub connecting: usize,
    /// Borrowers in the queue.
    pub waiting: usize,
    pub created: u64,
    /// Connections that ended, broken ones included.
    pub closed: u64,
    pub broken: u64,
    /// Closed because of their age, or because nobody needed them.
    pub expired: u64,
    pub connect_failures: u64,
    pub borrowed: u64,
    /// Borrows that had to wait.
    pub waited: u64,
    pub timeouts: u64,
    /// Borrowers that were refused at once while the server was down.
    pub refused: u64,
    /// Connections that were held for longer than the leak threshold.
    pub leaks: u64,
    /// From the beginning of a borrow that waited to its success.
    pub wait: Histogram,
    /// From lending to return.
    pub usage: Histogram,
    /// Of connections that were opened.
    pub creation: Histogram,
}

impl Stats {
    pub(super) fn note_wait(&mut self, duration: Duration) {
        self.wait.record(duration);
    }
}
