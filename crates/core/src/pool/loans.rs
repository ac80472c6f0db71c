use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::borrower::{Borrower, Holder};

/// Names one loan while it lasts.
pub(super) type LoanId = usize;

/// What is lent, to whom, since when.
#[derive(Default)]
pub(super) struct Loans {
    slots: Vec<Option<Loan>>,
    free: Vec<LoanId>,
}

struct Loan {
    borrower: Borrower,
    since: Instant,
    statement: Option<Arc<str>>,
    reported: bool,
}

impl Loans {
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn open(&mut self, borrower: Borrower, now: Instant) -> LoanId {
        let loan = Some(Loan {
            borrower,
            since: now,
            statement: None,
            reported: false,
        });
        match self.free.pop() {
            Some(id) => {
                self.slots[id] = loan;
                id
            }
            None => {
                self.slots.push(loan);
                self.slots.len() - 1
            }
        }
    }

    /// Ends a loan and returns how long it lasted.
    pub(super) fn end(&mut self, id: LoanId, now: Instant) -> Duration {
        match self.slots.get_mut(id).and_then(Option::take) {
            Some(loan) => {
                self.free.push(id);
                now.saturating_duration_since(loan.since)
            }
            None => Duration::ZERO,
        }
    }

    pub(super) fn note(&mut self, id: LoanId, statement: &Arc<str>) {
        if let Some(Some(loan)) = self.slots.get_mut(id) {
            loan.statement = Some(Arc::clone(statement));
        }
    }

    pub(super) fn is_held_by(&self, task: u64) -> bool {
        self.iter().any(|loan| loan.borrower.task == Some(task))
    }

    /// Whether every holder is a known task for which `waits` is true.
    pub(super) fn all_wait(&self, waits: impl Fn(u64) -> bool) -> bool {
        self.iter()
            .all(|loan| loan.borrower.task.is_some_and(&waits))
    }

    /// The oldest first.
    pub(super) fn holders(&self, now: Instant) -> Vec<Holder> {
        let mut holders: Vec<_> = self.iter().map(|loan| loan.holder(now)).collect();
        holders.sort_by_key(|holder| std::cmp::Reverse(holder.held));
        holders
    }

    /// Those that have just become older than `threshold`, each once.
    pub(super) fn leaks(&mut self, threshold: Duration, now: Instant) -> Vec<Holder> {
        let overdue = |loan: &&mut Loan| {
            !loan.reported && now.saturating_duration_since(loan.since) >= threshold
        };
        let mut leaks = Vec::new();
        for loan in self.slots.iter_mut().flatten().filter(overdue) {
            loan.reported = true;
            leaks.push(loan.holder(now));
        }
        leaks
    }

    fn iter(&self) -> impl Iterator<Item = &Loan> {
        self.slots.iter().flatten()
    }
}

impl Loan {
    fn holder(&self, now: Instant) -> Holder {
        Holder {
            borrower: self.borrower.clone(),
            held: now.saturating_duration_since(self.since),
            statement: self.statement.clone(),
        }
    }
}
