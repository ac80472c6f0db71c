use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::borrower::{Borrower, Holder};

/// Identifies a lease while it lasts.
pub(super) type LeaseId = usize;

/// The active leases: their borrowers, since when, and what they run.
#[derive(Default)]
pub(super) struct Leases {
    slots: Vec<Option<ActiveLease>>,
    free: Vec<LeaseId>,
}

struct ActiveLease {
    borrower: Borrower,
    since: Instant,
    statement: Option<Arc<str>>,
    /// Whether it was reported as a leak.
    was_reported: bool,
}

impl Leases {
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn open(&mut self, borrower: Borrower, now: Instant) -> LeaseId {
        let lease = Some(ActiveLease {
            borrower,
            since: now,
            statement: None,
            was_reported: false,
        });
        match self.free.pop() {
            Some(id) => {
                self.slots[id] = lease;
                id
            }
            None => {
                self.slots.push(lease);
                self.slots.len() - 1
            }
        }
    }

    /// Ends a lease and returns how long it lasted.
    pub(super) fn end(&mut self, id: LeaseId, now: Instant) -> Duration {
        match self.slots.get_mut(id).and_then(Option::take) {
            Some(lease) => {
                self.free.push(id);
                now.saturating_duration_since(lease.since)
            }
            None => Duration::ZERO,
        }
    }

    pub(super) fn set_statement(&mut self, id: LeaseId, statement: &Arc<str>) {
        if let Some(Some(lease)) = self.slots.get_mut(id) {
            lease.statement = Some(Arc::clone(statement));
        }
    }

    /// From now on no task counts as its borrower.
    pub(super) fn disown(&mut self, id: LeaseId) {
        if let Some(Some(lease)) = self.slots.get_mut(id) {
            lease.borrower.task = None;
        }
    }

    pub(super) fn is_held_by(&self, task: u64) -> bool {
        self.iter().any(|lease| lease.borrower.task == Some(task))
    }

    /// Whether every holder is a known task for which `waits` returns true.
    pub(super) fn all_wait(&self, waits: impl Fn(u64) -> bool) -> bool {
        self.iter()
            .all(|lease| lease.borrower.task.is_some_and(&waits))
    }

    /// The longest first.
    pub(super) fn holders(&self, now: Instant) -> Vec<Holder> {
        let mut holders: Vec<_> = self.iter().map(|lease| lease.holder(now)).collect();
        holders.sort_by_key(|holder| std::cmp::Reverse(holder.held));
        holders
    }

    /// Leases that have become older than `threshold`, each once.
    pub(super) fn leaks(&mut self, threshold: Duration, now: Instant) -> Vec<Holder> {
        let overdue = |lease: &&mut ActiveLease| {
            !lease.was_reported && now.saturating_duration_since(lease.since) >= threshold
        };
        let mut leaks = Vec::new();
        for lease in self.slots.iter_mut().flatten().filter(overdue) {
            lease.was_reported = true;
            leaks.push(lease.holder(now));
        }
        leaks
    }

    fn iter(&self) -> impl Iterator<Item = &ActiveLease> {
        self.slots.iter().flatten()
    }
}

impl ActiveLease {
    fn holder(&self, now: Instant) -> Holder {
        Holder {
            borrower: self.borrower.clone(),
            held: now.saturating_duration_since(self.since),
            statement: self.statement.clone(),
        }
    }
}
