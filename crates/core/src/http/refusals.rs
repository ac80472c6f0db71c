//! What a server refuses, or fails to accept, before a handler sees it: counted by cause, and reported a few times a minute.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};

use tokio::sync::Notify;

use super::timeouts::Tick;
use crate::metrics;

/// Between two reports of one cause: ten seconds.
const REPORT_INTERVAL: Tick = 40;
const CAUSES: usize = 14;

/// Why a connection or a request was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// The system had no connection for us, or no descriptor for it.
    Accept,
    /// The client address has its share of all connections.
    ClientConnections,
    Tls,
    /// What the client sent is not HTTP, or breaks its rules.
    Protocol,
    /// A request that HTTP allows and that a server must not answer: 400, 417.
    BadRequest,
    /// 408 to half a head.
    HeaderTimeout,
    /// 431
    HeaderTooLarge,
    /// 413
    BodyTooLarge,
    /// 408 to half a body.
    BodyTimeout,
    /// A client sent half a body and went away.
    BodyIncomplete,
    /// 503: too many requests wait.
    Overload,
    /// 503: too many requests last.
    LongLived,
    /// 503: past its deadline before its turn.
    Deadline,
    /// Frames of HTTP/2 that ask for nothing.
    Flood,
}

impl Cause {
    const ALL: [Self; CAUSES] = [
        Self::Accept,
        Self::ClientConnections,
        Self::Tls,
        Self::Protocol,
        Self::BadRequest,
        Self::HeaderTimeout,
        Self::HeaderTooLarge,
        Self::BodyTooLarge,
        Self::BodyTimeout,
        Self::BodyIncomplete,
        Self::Overload,
        Self::LongLived,
        Self::Deadline,
        Self::Flood,
    ];

    /// As it is called in metrics and logs.
    fn name(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::ClientConnections => "client_connections",
            Self::Tls => "tls",
            Self::Protocol => "protocol",
            Self::BadRequest => "bad_request",
            Self::HeaderTimeout => "header_timeout",
            Self::HeaderTooLarge => "header_too_large",
            Self::BodyTooLarge => "body_too_large",
            Self::BodyTimeout => "body_timeout",
            Self::BodyIncomplete => "body_incomplete",
            Self::Overload => "overload",
            Self::LongLived => "long_lived",
            Self::Deadline => "deadline",
            Self::Flood => "flood",
        }
    }
}

static COUNTERS: LazyLock<[Arc<metrics::Counter>; CAUSES]> = LazyLock::new(|| {
    Cause::ALL.map(|cause| {
        let help =
            "Connections and requests that were refused or failed before a handler, by cause.";
        metrics::counter("weft_http_refused_total", help, &[("cause", cause.name())])
    })
});

/// Refusals of one cause since they were last reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    pub cause: &'static str,
    pub count: u64,
    /// Of the last one.
    pub peer: Option<SocketAddr>,
    /// What is known of the last one beside its cause; may be empty.
    pub detail: String,
}

#[derive(Debug, Default)]
pub(super) struct Refusals {
    now: Cell<Tick>,
    pending: RefCell<[Option<Notice>; CAUSES]>,
    /// When each cause may be reported again.
    next: Cell<[Tick; CAUSES]>,
    told: Notify,
}

impl Refusals {
    pub(super) fn add(&self, cause: Cause, peer: Option<SocketAddr>, detail: &str) {
        let index = cause as usize;
        COUNTERS[index].add(1);
        let mut pending = self.pending.borrow_mut();
        let count = pending[index].as_ref().map_or(0, |notice| notice.count) + 1;
        pending[index] = Some(Notice {
            cause: cause.name(),
            count,
            peer,
            detail: detail.to_owned(),
        });
        if self.next.get()[index] <= self.now.get() {
            self.told.notify_one();
        }
    }

    /// The clock has moved on.
    pub(super) fn tell(&self, now: Tick) {
        self.now.set(now);
        let next = self.next.get();
        let pending = self.pending.borrow();
        if (0..CAUSES).any(|index| pending[index].is_some() && next[index] <= now) {
            self.told.notify_one();
        }
    }

    /// Waits until there is something to report. Cancelling it loses nothing.
    pub(super) async fn due(&self, clock: &Cell<Tick>) -> Vec<Notice> {
        loop {
            let due = self.take(clock.get());
            if !due.is_empty() {
                return due;
            }
            self.told.notified().await;
        }
    }

    fn take(&self, now: Tick) -> Vec<Notice> {
        let mut next = self.next.get();
        let mut pending = self.pending.borrow_mut();
        let mut due = Vec::new();
        for index in 0..CAUSES {
            if next[index] <= now
                && let Some(notice) = pending[index].take()
            {
                next[index] = now + REPORT_INTERVAL;
                due.push(notice);
            }
        }
        self.next.set(next);
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_reported_at_once_and_then_every_ten_seconds_with_its_count() {
        let refusals = Refusals::default();
        refusals.add(Cause::Tls, None, "first");
        assert_eq!(refusals.take(0)[0].count, 1);
        for _ in 0..1_000 {
            refusals.add(Cause::Tls, None, "more");
        }
        refusals.add(Cause::Overload, None, "");
        let due = refusals.take(1);
        assert_eq!(due.len(), 1);
        assert_eq!(due[0].cause, "overload");
        assert_eq!(refusals.take(REPORT_INTERVAL - 1), []);
        let due = refusals.take(REPORT_INTERVAL);
        assert_eq!((due[0].cause, due[0].count), ("tls", 1_000));
    }

    #[tokio::test(start_paused = true)]
    async fn a_report_that_is_cancelled_is_not_lost() {
        use crate::cancellation_tests::drop_at_every_poll;
        let clock = Cell::new(0);
        let polls = drop_at_every_poll(
            async || {
                let refusals = std::rc::Rc::new(Refusals::default());
                let later = std::rc::Rc::clone(&refusals);
                let local = tokio::task::LocalSet::new();
                local.spawn_local(async move {
                    tokio::task::yield_now().await;
                    later.add(Cause::Tls, None, "");
                });
                (refusals, local)
            },
            async |(refusals, local)| local.run_until(refusals.due(&clock)).await.len(),
            async |(refusals, local), ended| {
                local.await;
                let left = refusals.take(0).len();
                let got = match ended {
                    crate::cancellation_tests::Ended::Completed(count) => count,
                    crate::cancellation_tests::Ended::Dropped(_) => 0,
                };
                assert_eq!(got + left, 1);
            },
        )
        .await;
        assert!(polls > 1);
    }
}
