use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use super::call::{Admission, Call};
use super::lane::Lane;
use super::metrics::{CallTimer, MethodMetrics};
use super::refusal::RefusalReason;
use super::transcoding::{Routes, Rule, TemplateError};
use crate::http::{CallStats, Peer};
use crate::server::{
    self, Capacity, ConcurrencyLimits, ConnectionGuard, LaneLimits, RefusalReport,
};
use crate::workers::loop_watchdog;

/// A method of a service.
#[derive(Debug, Clone)]
pub struct Method {
    /// `/package.Service/Method`
    pub path: String,
    /// The client streams: the handler starts before messages have arrived.
    pub client_streams: bool,
    /// The lane whose budget its calls use.
    pub lane: Lane,
    /// Limit of the bytes of a message; `None` is [`Limits::message_bytes`].
    pub message_bytes: Option<usize>,
    /// The longest deadline of a call, regardless of the client's timeout.
    pub timeout: Option<Duration>,
    /// Indexes of the [`Limits::concurrency`] that its calls are subject to, the narrower ones first.
    pub concurrency: Vec<usize>,
}

/// A method as the server uses it.
pub(super) struct Served {
    pub(super) path: Rc<str>,
    pub(super) client_streams: bool,
    pub(super) lane: Lane,
    pub(super) message_bytes: usize,
    pub(super) timeout: Option<Duration>,
    pub(super) concurrency: Option<Rc<[usize]>>,
    /// Made when the first call of it is measured.
    metrics: RefCell<Option<Rc<MethodMetrics>>>,
}

/// Limits of a server.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of one message, before and after decompression; more end the call with RESOURCE_EXHAUSTED.
    pub message_bytes: usize,
    /// Bytes of a header list with metadata that a handler sends, as RFC 9113 §6.5.2 counts them; more end the call with INTERNAL. A
    /// client that accepts less may close the connection, with all its calls.
    pub metadata_bytes: usize,
    /// Unary calls that are being handled at a time; more of them wait in `queue`.
    pub in_flight: usize,
    /// Calls that stream and are being handled at a time; more of them wait in `queue`.
    pub streams: usize,
    /// Calls that wait for their turn, those whose request still arrives among them; more end with UNAVAILABLE.
    pub queue: usize,
    /// Calls that stream, waiting or not, on one connection; more end with RESOURCE_EXHAUSTED.
    pub streams_per_connection: usize,
    /// Calls of [`Lane::Watch`]; more end with RESOURCE_EXHAUSTED.
    pub watches: usize,
    /// The same on one connection.
    pub watches_per_connection: usize,
    /// The part of `in_flight`, `streams`, `watches` and `queue` that one client address may take, above 0 and up to 1. More calls
    /// than that wait; beyond that of `queue` and `watches` they end with RESOURCE_EXHAUSTED. Clients of a Unix socket have no
    /// address and no such limit.
    pub client_share: f64,
    /// How long an HTTP/2 client may read no byte of its responses before its connection is closed. `None` is unlimited.
    pub write_timeout: Option<Duration>,
    /// Bytes of unary requests that one connection may have waiting for their handlers. Requests of at most 64 KiB do not count:
    /// they are bounded by the number of streams. A request that does not fit stays with the client.
    pub buffered_bytes: usize,
    /// How long a unary request may take to arrive; it may take longer at 1 KiB per second or more.
    pub request_timeout: Duration,
    /// Origins whose pages may use grpc-web; `*` is all.
    pub web_origins: Vec<String>,
    /// Concurrency limits of services and methods.
    pub concurrency: Vec<ConcurrencyLimits>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes: 4 << 20,
            metadata_bytes: 8 << 10,
            in_flight: 1_000,
            streams: 2_000,
            queue: 10_000,
            streams_per_connection: 200,
            watches: 1_000,
            watches_per_connection: 10,
            client_share: 0.5,
            write_timeout: Some(Duration::from_secs(30)),
            buffered_bytes: 16 << 20,
            request_timeout: Duration::from_secs(30),
            web_origins: Vec::new(),
            concurrency: Vec::new(),
        }
    }
}

impl Limits {
    /// Lanes in the order of [`Lane`].
    fn capacity(&self) -> Capacity {
        let lane = |name, running, per_connection, queues| LaneLimits {
            name,
            running,
            per_connection,
            queues,
        };
        Capacity {
            noun: "calls",
            // The HTTP server limits connections.
            connections: usize::MAX,
            queue: self.queue,
            lanes: vec![
                lane("unary calls", self.in_flight, usize::MAX, true),
                lane("streams", self.streams, self.streams_per_connection, true),
                lane(
                    "health watches",
                    self.watches,
                    self.watches_per_connection,
                    false,
                ),
            ],
            concurrency: self.concurrency.clone(),
            client_share: self.client_share,
            buffered_bytes: self.buffered_bytes,
        }
    }
}

/// An event for the code that runs the handlers.
pub type Event = server::Event<Rc<Call>>;

/// A gRPC server's calls. Clones share them; pass one to [`Server::delegate`](crate::http::Server::delegate).
#[derive(Clone)]
pub struct Calls {
    pub(super) shared: Rc<Shared>,
}

pub(super) struct Shared {
    /// By their paths, indexes of `served`.
    pub(super) methods: HashMap<Rc<str>, usize>,
    pub(super) served: Vec<Served>,
    pub(super) routes: Routes,
    pub(super) limits: Limits,
    pub(super) call_stats: Rc<CallStats>,
    pub(super) admission: Rc<Admission>,
}

impl Calls {
    /// `rules` bind methods to HTTP with JSON.
    ///
    /// # Errors
    /// A rule is malformed.
    pub fn new(
        methods: Vec<Method>,
        rules: Vec<Rule>,
        limits: Limits,
    ) -> Result<Self, TemplateError> {
        let of_method = |mut indexes: Vec<usize>| {
            indexes.retain(|index| *index < limits.concurrency.len());
            (!indexes.is_empty()).then(|| indexes.into())
        };
        let served = methods.into_iter().map(|method| Served {
            path: method.path.into(),
            client_streams: method.client_streams,
            lane: method.lane,
            message_bytes: method.message_bytes.unwrap_or(limits.message_bytes),
            timeout: method.timeout,
            concurrency: of_method(method.concurrency),
            metrics: RefCell::default(),
        });
        let served: Vec<Served> = served.collect();
        let paths = served.iter().map(|method| Rc::clone(&method.path));
        let shared = Shared {
            methods: paths.zip(0..).collect(),
            served,
            routes: Routes::new(rules)?,
            admission: Admission::new(limits.capacity()),
            limits,
            call_stats: Rc::default(),
        };
        Ok(Self {
            shared: Rc::new(shared),
        })
    }

    /// Enforces the deadlines; does not end.
    pub fn keep_time(&self) -> impl Future<Output = ()> + use<> {
        let admission = Rc::clone(&self.shared.admission);
        async move { admission.keep_time().await }
    }

    /// Completes when [`take`](Self::take) has an event.
    pub fn next(&self) -> impl Future<Output = ()> + use<> {
        let admission = Rc::clone(&self.shared.admission);
        async move { admission.ready().await }
    }

    /// Calls `listener` when [`take`](Self::take) has an event, without waking a task: once, and again after each [`rearm`](Self::rearm).
    /// There is one listener.
    pub fn listen(&self, listener: impl Fn() + 'static) {
        self.shared.admission.listen(listener);
    }

    /// The listener is called once more: now, if [`take`](Self::take) has an event.
    pub fn rearm(&self) {
        self.shared.admission.rearm();
    }

    /// Completes with refusals to log: the first of a reason at once, then those of ten seconds together. Dropping the future loses none.
    /// One future at a time.
    pub fn refusals(&self) -> impl Future<Output = Vec<RefusalReport<RefusalReason>>> + use<> {
        let admission = Rc::clone(&self.shared.admission);
        async move { admission.reports().await }
    }

    /// The next event. Calls of one client and lane come in the order of their arrival, clients and lanes take turns, and calls come
    /// only while there is room in flight.
    pub fn take(&self) -> Option<Event> {
        self.shared.admission.take()
    }

    /// How many handlers the limits allow at a time.
    pub fn handlers(&self) -> usize {
        self.shared.admission.handlers()
    }

    /// Lets no more handlers run than there are fibers: each [`Lane`] gets a part. May be called again when the number changes.
    pub fn fit(&self, fibers: usize) {
        self.shared.admission.fit(fibers);
    }

    pub fn call_stats(&self) -> &CallStats {
        &self.shared.call_stats
    }

    /// Calls that have arrived and not ended, with those in the queue.
    pub fn in_flight(&self) -> usize {
        self.shared.admission.attached()
    }
}

impl Shared {
    /// The connection's record in the server core, which the peer keeps.
    pub(super) fn connection(
        &self,
        peer: &Peer,
    ) -> Result<Rc<ConnectionGuard<Call, RefusalReason>>, server::Refusal> {
        peer.service_state
            .get_or_try_insert_with(|| self.admission.connect(peer.address))
    }

    pub(super) fn timer(&self, method: usize) -> Option<CallTimer> {
        if !loop_watchdog::is_measured() {
            return None;
        }
        let method = &self.served[method];
        let mut metrics = method.metrics.borrow_mut();
        let metrics = metrics.get_or_insert_with(|| Rc::new(MethodMetrics::new(&method.path)));
        Some(CallTimer::start(metrics))
    }
}
