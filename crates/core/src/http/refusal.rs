//! Reasons of refusals and failures before a handler sees a request.

use std::sync::{Arc, LazyLock};

use crate::metrics::Counter;
use crate::server::{self, ReachedLimit};

/// Why a connection or a request was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalReason {
    /// The system gave no connection, or no descriptor for it.
    Accept,
    /// The client address has its share of all connections.
    ClientConnections,
    Tls,
    /// The client violates HTTP.
    Protocol,
    /// 400, 417: a well-formed request that a server must refuse.
    BadRequest,
    /// 408: the header did not arrive in time.
    HeaderTimeout,
    /// 431
    HeaderTooLarge,
    /// 413
    BodyTooLarge,
    /// 408: the body did not arrive in time.
    BodyTimeout,
    /// The client went away before the body was complete.
    BodyIncomplete,
    /// 503: too many requests wait.
    Overload,
    /// 503: too many event streams and WebSockets are open.
    LongLived,
    /// 503: the deadline passed before a handler was free.
    Deadline,
    /// Too many HTTP/2 frames that ask for nothing.
    Flood,
}

impl RefusalReason {
    /// As it is called in metrics and logs.
    pub fn name(self) -> &'static str {
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

impl server::RefusalReason for RefusalReason {
    const ALL: &'static [Self] = &[
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

    fn index(self) -> usize {
        self as usize
    }

    fn name(self) -> &'static str {
        Self::name(self)
    }

    fn of(limit: ReachedLimit) -> Self {
        match limit {
            ReachedLimit::Connections => Self::ClientConnections,
            ReachedLimit::Queue(_) | ReachedLimit::Concurrency => Self::Overload,
            ReachedLimit::Lane(_) => Self::LongLived,
            ReachedLimit::Deadline { is_arriving: true } => Self::BodyTimeout,
            ReachedLimit::Deadline { is_arriving: false } => Self::Deadline,
        }
    }

    fn count(self) {
        COUNTERS[server::RefusalReason::index(self)].add(1);
    }

    fn expose() {
        LazyLock::force(&COUNTERS);
    }
}

static COUNTERS: LazyLock<Vec<Arc<Counter>>> = LazyLock::new(|| {
    let help = "HTTP connections and requests refused before a handler, by reason.";
    server::refusal_counters::<RefusalReason>("weft_http_refused_total", help)
});
