//! Calls that are refused, nearly always before a handler sees them: why, how many, and from whom.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::status::{Code, Status};
use crate::metrics::{self, Counter};

/// Refusals of one cause are reported no more often than that.
const REPORT_EVERY: Duration = Duration::from_secs(10);

/// Characters of a reported message: it may hold what the client has sent.
const LONGEST_MESSAGE: usize = 200;

/// Why a call was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// No method has that path.
    UnknownMethod,
    /// The head of the call is malformed or asks for what is not supported.
    MalformedHead,
    /// A browser may have sent it for a page of another origin.
    CrossSite,
    /// Its messages are malformed, or not exactly one.
    MalformedMessage,
    MessageTooLarge,
    /// The request arrived too slowly.
    RequestTooSlow,
    /// More calls wait than the server lets wait.
    QueueFull,
    /// The same of a service or method.
    MethodQueueFull,
    /// Its deadline passed before a handler was free.
    ExpiredInQueue,
    StreamLimit,
    WatchLimit,
    /// 405: it is not called by a method of HTTP that gRPC knows.
    HttpMethod,
    /// 415: a request that is not gRPC, to a server of nothing else.
    NotGrpc,
}

impl Cause {
    /// As the metrics have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::UnknownMethod => "unknown_method",
            Self::MalformedHead => "malformed_head",
            Self::CrossSite => "cross_site",
            Self::MalformedMessage => "malformed_message",
            Self::MessageTooLarge => "message_too_large",
            Self::RequestTooSlow => "request_too_slow",
            Self::QueueFull => "queue_full",
            Self::MethodQueueFull => "method_queue_full",
            Self::ExpiredInQueue => "expired_in_queue",
            Self::StreamLimit => "stream_limit",
            Self::WatchLimit => "watch_limit",
            Self::HttpMethod => "http_method",
            Self::NotGrpc => "not_grpc",
        }
    }

    /// Of a message that could not be read.
    pub(super) fn of_reading(status: &Status) -> Option<Self> {
        match status.code {
            // The client left.
            Code::CANCELLED => None,
            Code::RESOURCE_EXHAUSTED => Some(Self::MessageTooLarge),
            _ => Some(Self::MalformedMessage),
        }
    }
}

/// A call is refused with that status.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) cause: Cause,
    pub(super) status: Status,
}

impl Refusal {
    pub(super) fn malformed(status: Status) -> Self {
        let cause = Cause::MalformedHead;
        Self { cause, status }
    }
}

/// Refusals of one cause since the last report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusalReport {
    pub cause: Cause,
    pub count: u64,
    /// Whom the last one was from; `None` on a Unix socket.
    pub peer: Option<SocketAddr>,
    /// What the last one was told.
    pub message: String,
}

/// Counts refusals and decides when the log hears of them.
#[derive(Default)]
pub(super) struct Refusals {
    by_cause: RefCell<BTreeMap<Cause, Entry>>,
    added: Notify,
}

struct Entry {
    counter: Arc<Counter>,
    reported: Option<Instant>,
    unreported: Option<RefusalReport>,
}

impl Refusals {
    pub(super) fn add(&self, cause: Cause, status: &Status, peer: Option<SocketAddr>) {
        let mut by_cause = self.by_cause.borrow_mut();
        let entry = by_cause.entry(cause).or_insert_with(|| Entry::new(cause));
        entry.counter.add(1);
        let count = entry.unreported.take().map_or(0, |report| report.count);
        entry.unreported = Some(RefusalReport {
            cause,
            count: count + 1,
            peer,
            message: status.message.chars().take(LONGEST_MESSAGE).collect(),
        });
        self.added.notify_one();
    }

    /// Ends when there is something to report. Dropped before, nothing is lost.
    pub(super) async fn next(&self) -> Vec<RefusalReport> {
        loop {
            let (reports, due) = self.reports();
            if !reports.is_empty() {
                return reports;
            }
            match due {
                Some(due) => tokio::select! {
                    () = sleep_until(due) => {}
                    () = self.added.notified() => {}
                },
                None => self.added.notified().await,
            }
        }
    }

    /// What may be reported now, and when there is more.
    fn reports(&self) -> (Vec<RefusalReport>, Option<Instant>) {
        let now = Instant::now();
        let mut by_cause = self.by_cause.borrow_mut();
        let reports = by_cause.values_mut().filter_map(|entry| entry.report(now));
        let reports = reports.collect();
        let due = by_cause.values().filter_map(Entry::due).min();
        (reports, due)
    }
}

impl Entry {
    fn new(cause: Cause) -> Self {
        let help = "gRPC calls that were refused for what they sent or for want of room, by cause.";
        Self {
            counter: metrics::counter("weft_grpc_refused_total", help, &[("cause", cause.name())]),
            reported: None,
            unreported: None,
        }
    }

    fn due(&self) -> Option<Instant> {
        let reported = self.reported.filter(|_| self.unreported.is_some())?;
        Some(reported + REPORT_EVERY)
    }

    fn report(&mut self, now: Instant) -> Option<RefusalReport> {
        if self.reported.is_some_and(|at| at + REPORT_EVERY > now) {
            return None;
        }
        let report = self.unreported.take()?;
        self.reported = Some(now);
        Some(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(refusals: &Refusals, cause: Cause, message: &'static str) {
        let peer = Some("192.0.2.1:1".parse().unwrap());
        refusals.add(cause, &Status::new(Code::UNAVAILABLE, message), peer);
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_refusal_of_a_cause_is_reported_at_once_and_the_others_together() {
        let refusals = Refusals::default();
        add(&refusals, Cause::QueueFull, "a");
        let first = refusals.next().await;
        assert_eq!((first[0].count, first[0].message.as_str()), (1, "a"));
        for _ in 0..1_000 {
            add(&refusals, Cause::QueueFull, "b");
        }
        add(&refusals, Cause::WatchLimit, "c");
        let second = refusals.next().await;
        assert_eq!((second.len(), second[0].cause), (1, Cause::WatchLimit));
        let begun = Instant::now();
        let third = refusals.next().await;
        assert_eq!((third[0].count, third[0].message.as_str()), (1_000, "b"));
        assert!(begun.elapsed() >= Duration::from_secs(9));
    }
}
