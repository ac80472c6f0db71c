//! Calls that are refused, nearly always before a handler sees them.

use std::sync::{Arc, LazyLock};

use super::lane::Lane;
use super::status::{Code, Status};
use crate::metrics::Counter;
use crate::server::{self, ReachedLimit, Scope};

/// Why a call was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RefusalReason {
    /// No method has that path.
    UnknownMethod,
    /// The head of the call is malformed or asks for what is not supported.
    MalformedHead,
    /// A browser may have sent it for a page of another origin (CSRF).
    CrossSite,
    /// Its messages are malformed, or not exactly one.
    MalformedMessage,
    MessageTooLarge,
    /// Its handler has sent more metadata than the limit.
    MetadataTooLarge,
    /// The request arrived too slowly.
    RequestTooSlow,
    /// Too many calls of the server or of the client wait.
    QueueFull,
    /// Too many calls of a service or method wait.
    MethodQueueFull,
    /// Its deadline passed before a handler was free.
    ExpiredInQueue,
    StreamLimit,
    WatchLimit,
    /// 405: the HTTP method is not POST.
    HttpMethod,
    /// 415: the request is not gRPC, on a server for gRPC alone.
    NotGrpc,
}

impl RefusalReason {
    /// As it is called in metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::UnknownMethod => "unknown_method",
            Self::MalformedHead => "malformed_head",
            Self::CrossSite => "cross_site",
            Self::MalformedMessage => "malformed_message",
            Self::MessageTooLarge => "message_too_large",
            Self::MetadataTooLarge => "metadata_too_large",
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

    /// The reason of a message that could not be read; `None` where the client left.
    pub(super) fn of_reading(status: &Status) -> Option<Self> {
        match status.code {
            Code::CANCELLED => None,
            Code::RESOURCE_EXHAUSTED => Some(Self::MessageTooLarge),
            _ => Some(Self::MalformedMessage),
        }
    }
}

impl server::RefusalReason for RefusalReason {
    const ALL: &'static [Self] = &[
        Self::UnknownMethod,
        Self::MalformedHead,
        Self::CrossSite,
        Self::MalformedMessage,
        Self::MessageTooLarge,
        Self::MetadataTooLarge,
        Self::RequestTooSlow,
        Self::QueueFull,
        Self::MethodQueueFull,
        Self::ExpiredInQueue,
        Self::StreamLimit,
        Self::WatchLimit,
        Self::HttpMethod,
        Self::NotGrpc,
    ];

    fn index(self) -> usize {
        self as usize
    }

    fn name(self) -> &'static str {
        Self::name(self)
    }

    fn of(limit: ReachedLimit) -> Self {
        match limit {
            ReachedLimit::Connections | ReachedLimit::Queue(_) => Self::QueueFull,
            ReachedLimit::Lane(lane) if lane == Lane::Watch as usize => Self::WatchLimit,
            ReachedLimit::Lane(_) => Self::StreamLimit,
            ReachedLimit::Concurrency => Self::MethodQueueFull,
            ReachedLimit::Deadline { .. } => Self::ExpiredInQueue,
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
    let help = "gRPC calls refused before a handler, by reason.";
    server::refusal_counters::<RefusalReason>("weft_grpc_refused_total", help)
});

/// The status of a call that the server core refuses.
///
/// A client that has used up its share gets RESOURCE_EXHAUSTED, gRPC's status for quotas. UNAVAILABLE means that it may retry.
pub(super) fn status_of(refusal: server::Refusal) -> Status {
    let code = match refusal.limit {
        ReachedLimit::Connections | ReachedLimit::Queue(Scope::Server) => Code::UNAVAILABLE,
        ReachedLimit::Queue(_) | ReachedLimit::Lane(_) | ReachedLimit::Concurrency => {
            Code::RESOURCE_EXHAUSTED
        }
        ReachedLimit::Deadline { .. } => Code::DEADLINE_EXCEEDED,
    };
    Status::new(code, refusal.message)
}

/// A refusal before there is a call.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) reason: RefusalReason,
    pub(super) status: Status,
}

impl Refusal {
    pub(super) fn malformed(status: Status) -> Self {
        let reason = RefusalReason::MalformedHead;
        Self { reason, status }
    }
}
