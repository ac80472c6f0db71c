use std::net::SocketAddr;
use std::time::Duration;

use tokio::time::Instant;

use super::refusal::Reason;

/// Refusals of one cause are reported no more often than this.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);
/// Characters of a detail that are reported: it may hold what the client has sent.
const DETAIL_LENGTH: usize = 200;

/// Why a server refuses requests or connections.
pub(crate) trait Cause: Copy + 'static {
    /// All causes, in the order of [`index`](Self::index).
    const ALL: &'static [Self];

    fn index(self) -> usize;

    /// The cause of a refusal by the server core.
    fn of(reason: Reason) -> Self;

    /// Adds one to the metric of the cause.
    fn count(self);
}

/// Refusals of one cause since the last report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusalReport<C> {
    pub cause: C,
    pub count: u64,
    /// The client of the last one; `None` on a Unix socket.
    pub peer: Option<SocketAddr>,
    /// Details of the last one; may be empty.
    pub detail: String,
}

/// Counts refusals and decides when the log gets them: the first of a cause at once, then those of ten seconds together.
#[derive(Debug)]
pub(super) struct Refusals<C> {
    by_cause: Vec<Entry<C>>,
    is_changed: bool,
}

#[derive(Debug)]
struct Entry<C> {
    unreported: Option<RefusalReport<C>>,
    reported: Option<Instant>,
}

impl<C: Cause> Default for Refusals<C> {
    fn default() -> Self {
        Self {
            by_cause: C::ALL.iter().map(|_| Entry::new()).collect(),
            is_changed: false,
        }
    }
}

impl<C: Cause> Refusals<C> {
    pub(super) fn add(&mut self, cause: C, peer: Option<SocketAddr>, detail: &str) {
        cause.count();
        let entry = &mut self.by_cause[cause.index()];
        let before = entry.unreported.take().map_or(0, |report| report.count);
        entry.unreported = Some(RefusalReport {
            cause,
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
        let entries = self.by_cause.iter_mut();
        entries.filter_map(|entry| entry.report(now)).collect()
    }

    /// When there is more to report.
    pub(super) fn due(&self) -> Option<Instant> {
        self.by_cause.iter().filter_map(Entry::due).min()
    }

    #[cfg(test)]
    pub(super) fn unreported(&self, cause: C) -> u64 {
        let report = self.by_cause[cause.index()].unreported.as_ref();
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
