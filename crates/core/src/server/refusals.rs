use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::refusal::ReachedLimit;
use crate::metrics::{self, Counter};

/// Refusals of one reason are reported no more often than this.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);
/// Characters of a detail that are reported: it may hold what the client has sent.
const DETAIL_LENGTH: usize = 200;

/// Why a server refuses requests or connections.
pub(crate) trait RefusalReason: Copy + 'static {
    /// All reasons, in the order of [`index`](Self::index).
    const ALL: &'static [Self];

    fn index(self) -> usize;

    /// As it is called in metrics and logs.
    fn name(self) -> &'static str;

    /// The reason of a refusal by the server core.
    fn of(limit: ReachedLimit) -> Self;

    /// Adds one to the metric of the reason.
    fn count(self);

    /// Adds the metric of each reason, with 0, where there is none yet: a rate needs a value before the first refusal.
    fn expose();
}

/// The counters of a metric with one series for each reason, in the order of their indices.
pub(crate) fn refusal_counters<R: RefusalReason>(metric: &str, help: &str) -> Vec<Arc<Counter>> {
    let counter = |reason: &R| metrics::counter(metric, help, &[("reason", reason.name())]);
    R::ALL.iter().map(counter).collect()
}

/// Refusals of one reason since the last report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusalReport<C> {
    pub reason: C,
    pub count: u64,
    /// The client of the last one; `None` on a Unix socket.
    pub peer: Option<SocketAddr>,
    /// Details of the last one; may be empty.
    pub detail: String,
}

/// Counts refusals and decides when the log gets them: the first of a reason at once, then those of ten seconds together.
#[derive(Debug)]
pub(super) struct Refusals<C> {
    by_reason: Vec<Entry<C>>,
    is_changed: bool,
}

#[derive(Debug)]
struct Entry<C> {
    unreported: Option<RefusalReport<C>>,
    reported: Option<Instant>,
}

impl<C: RefusalReason> Default for Refusals<C> {
    fn default() -> Self {
        C::expose();
        Self {
            by_reason: C::ALL.iter().map(|_| Entry::new()).collect(),
            is_changed: false,
        }
    }
}

impl<C: RefusalReason> Refusals<C> {
    pub(super) fn add(&mut self, reason: C, peer: Option<SocketAddr>, detail: &str) {
        reason.count();
        let entry = &mut self.by_reason[reason.index()];
        let before = entry.unreported.take().map_or(0, |report| report.count);
        entry.unreported = Some(RefusalReport {
            reason,
            count: before + 1,
            peer,
            detail: detail.chars().take(DETAIL_LENGTH).collect(),
        });
        self.is_changed = true;
    }

    /// Whether something was added since the last call of [`take_changed`](Self::take_changed).
    pub(super) fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// Whether something was added since the last call.
    pub(super) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.is_changed)
    }

    /// Takes the reports that are due.
    pub(super) fn take_reports(&mut self, now: Instant) -> Vec<RefusalReport<C>> {
        let entries = self.by_reason.iter_mut();
        entries.filter_map(|entry| entry.report(now)).collect()
    }

    /// When there is more to report.
    pub(super) fn due(&self) -> Option<Instant> {
        self.by_reason.iter().filter_map(Entry::due).min()
    }

    #[cfg(test)]
    pub(super) fn unreported(&self, reason: C) -> u64 {
        let report = self.by_reason[reason.index()].unreported.as_ref();
        report.map_or(0, |report| report.count)
    }
}

impl<C> Entry<C> {
    fn new() -> Self {
        Self {
            unreported: None,
            reported: None,
        }
    }

    fn due(&self) -> Option<Instant> {
        let reported = self.reported.filter(|_| self.unreported.is_some())?;
        Some(reported + REPORT_INTERVAL)
    }

    fn report(&mut self, now: Instant) -> Option<RefusalReport<C>> {
        if self.reported.is_some_and(|at| at + REPORT_INTERVAL > now) {
            return None;
        }
        let report = self.unreported.take()?;
        self.reported = Some(now);
        Some(report)
    }
}
