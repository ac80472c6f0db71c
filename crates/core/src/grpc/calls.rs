use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use hyper::HeaderMap;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::call::{Call, Place, Reading, Stage};
use super::concurrency_limit::{ConcurrencyLimit, MethodConcurrency};
use super::deadlines::Deadlines;
use super::lane::{Lane, LaneLimits, Lanes};
use super::metrics::{CallTimer, MethodMetrics};
use super::refusal::{Cause, Refusal, RefusalReport, Refusals};
use super::service::Exclusive;
use super::share::{Share, ShareLimits, Shares};
use super::status::{Code, Status};
use super::transcoding::{Routes, Rule, TemplateError};
use crate::http::{CallStats, Id, Peer, Registry, Service};
use crate::workers::pulse;

/// Bytes a second that keep a request alive beyond its time.
const SLOWEST_REQUEST: f64 = 1024.0;

/// A method of a service.
#[derive(Debug, Clone)]
pub struct Method {
    /// `/package.Service/Method`
    pub path: String,
    /// It takes any number of messages: its handler starts before they have arrived.
    pub client_streams: bool,
    /// Which budget its calls are taken from.
    pub lane: Lane,
    /// Bytes of a message, where that is another limit than that of all.
    pub message_bytes: Option<usize>,
    /// How long a call may take, whatever its client says.
    pub timeout: Option<Duration>,
    /// Indexes of [`Limits::concurrency`] it has to pass.
    pub concurrency: Vec<usize>,
}

/// What is known of a method.
pub(super) struct Served {
    pub(super) path: Rc<str>,
    pub(super) client_streams: bool,
    pub(super) lane: Lane,
    pub(super) message_bytes: usize,
    pub(super) timeout: Option<Duration>,
    pub(super) concurrency: Vec<Rc<ConcurrencyLimit>>,
    /// Made when the first call of it is measured.
    metrics: RefCell<Option<Rc<MethodMetrics>>>,
}

/// What is taken from clients.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of one message, before and after decompression; more end the call with RESOURCE_EXHAUSTED.
    pub message_bytes: usize,
    /// Unary calls that are being handled at a time; more of them wait in `queue`.
    pub in_flight: usize,
    /// Calls that stream and are being handled at a time; more of them wait in `queue`.
    pub streams: usize,
    /// Calls that wait for their turn, those whose request still arrives among them; more end with UNAVAILABLE.
    pub queue: usize,
    /// Calls that stream, waiting or not; more end with RESOURCE_EXHAUSTED.
    pub streams_per_connection: usize,
    /// The same by the client's address.
    pub streams_per_peer: usize,
    /// Calls of [`Lane::Watch`]; more end with RESOURCE_EXHAUSTED.
    pub watches: ShareLimits,
    /// Bytes of unary requests that one connection may have waiting for their handlers. Requests of at most 64 KiB do not count:
    /// they are bounded by the number of streams. What does not fit is left with the client.
    pub buffered_bytes: usize,
    /// A unary request has so long to arrive, and longer where a KiB a second of it does.
    pub request_timeout: Duration,
    /// Origins whose pages may call by grpc-web; `*` is every one.
    pub web_origins: Vec<String>,
    /// Of services and methods.
    pub concurrency: Vec<MethodConcurrency>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes: 4 << 20,
            in_flight: 1_000,
            streams: 2_000,
            queue: 10_000,
            streams_per_connection: 200,
            streams_per_peer: 1_000,
            watches: ShareLimits {
                server: 1_000,
                connection: 10,
                peer: 100,
            },
            buffered_bytes: 16 << 20,
            request_timeout: Duration::from_secs(30),
            web_origins: Vec::new(),
            concurrency: Vec::new(),
        }
    }
}

/// What the one who runs the handlers has to hear of.
pub enum Event {
    /// A call to answer.
    Call(Rc<Call>),
    /// The client of a call that was handed out has cancelled it or gone away.
    Gone(Id),
    /// A call that was handed out is past its deadline; the client knows.
    Expired(Id),
}

/// The calls of some services. Clones are the same; give one to [`Server::delegate`](crate::http::Server::delegate).
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
    pub(super) calls: RefCell<Registry<Call>>,
    pub(super) deadlines: Deadlines,
    pub(super) call_stats: Rc<CallStats>,
    pub(super) lanes: Lanes,
    pub(super) streams: Rc<Shares>,
    pub(super) watches: Rc<Shares>,
    /// Calls that wait for a handler, or for the rest of their request.
    pub(super) queued: Cell<usize>,
    pub(super) refusals: Refusals,
    events: RefCell<VecDeque<Event>>,
    /// Who is to hear that there is something, once.
    listener: Cell<Option<Box<dyn FnOnce()>>>,
}

impl Calls {
    /// `rules` say which methods can be called by HTTP with JSON, and how.
    ///
    /// # Errors
    /// A rule is malformed.
    pub fn new(
        methods: Vec<Method>,
        rules: Vec<Rule>,
        limits: Limits,
    ) -> Result<Self, TemplateError> {
        let concurrency = limits.concurrency.iter().cloned();
        let concurrency: Vec<Rc<ConcurrencyLimit>> = concurrency
            .map(|limits| Rc::new(ConcurrencyLimit::new(limits)))
            .collect();
        let served = methods.into_iter().map(|method| Served {
            path: method.path.into(),
            client_streams: method.client_streams,
            lane: method.lane,
            message_bytes: method.message_bytes.unwrap_or(limits.message_bytes),
            timeout: method.timeout,
            concurrency: method
                .concurrency
                .into_iter()
                .filter_map(|index| concurrency.get(index).cloned())
                .collect(),
            metrics: RefCell::default(),
        });
        let served: Vec<Served> = served.collect();
        let paths = served.iter().map(|method| Rc::clone(&method.path));
        let lanes = Lanes::new(LaneLimits {
            unary: limits.in_flight,
            streams: limits.streams,
            watches: limits.watches.server,
        });
        let streams = ShareLimits {
            server: usize::MAX,
            connection: limits.streams_per_connection,
            peer: limits.streams_per_peer,
        };
        let watches = limits.watches;
        let shared = Shared {
            methods: paths.zip(0..).collect(),
            served,
            routes: Routes::new(rules)?,
            limits,
            calls: RefCell::default(),
            deadlines: Deadlines::default(),
            call_stats: Rc::default(),
            lanes,
            streams: Shares::new(Lane::Stream, streams),
            watches: Shares::new(Lane::Watch, watches),
            queued: Cell::default(),
            refusals: Refusals::default(),
            events: RefCell::default(),
            listener: Cell::default(),
        };
        Ok(Self {
            shared: Rc::new(shared),
        })
    }

    /// The same calls, as the service of a server that has no other requests to answer: what is no call is answered 415.
    pub fn exclusive(&self) -> Rc<dyn Service> {
        Rc::new(Exclusive(self.clone()))
    }

    /// Enforces the deadlines; does not end.
    pub fn keep_time(&self) -> impl Future<Output = ()> + use<> {
        let shared = Rc::clone(&self.shared);
        async move {
            loop {
                for id in shared.deadlines.due().await {
                    shared.expire(id);
                }
            }
        }
    }

    /// Ends when [`take`](Self::take) has something.
    pub fn next(&self) -> impl Future<Output = ()> + use<> {
        let calls = self.clone();
        async move {
            while !calls.has_events() {
                let told = Rc::new(Notify::new());
                let tell = Rc::clone(&told);
                calls.listen(move || tell.notify_one());
                told.notified().await;
            }
        }
    }

    /// Calls `told` when [`take`](Self::take) has something that it has not now, without the detour of a task that is woken.
    /// Only the last one is told, and once.
    pub fn listen(&self, told: impl FnOnce() + 'static) {
        self.shared.listener.set(Some(Box::new(told)));
    }

    /// Whether [`take`](Self::take) has something now.
    pub fn has_events(&self) -> bool {
        self.shared.has_events()
    }

    /// Ends when there are refusals to log: the first of a cause at once, then those of ten seconds together. Dropped before, it
    /// loses none. One future at a time.
    pub fn refusals(&self) -> impl Future<Output = Vec<RefusalReport>> + use<> {
        let shared = Rc::clone(&self.shared);
        async move { shared.refusals.next().await }
    }

    /// The next event; calls of a lane come in the order of their arrival, and only while there is room in flight.
    pub fn take(&self) -> Option<Event> {
        self.shared.take()
    }

    /// How many handlers the limits allow at a time.
    pub fn handlers(&self) -> usize {
        self.shared.lanes.configured().handlers()
    }

    /// There are no more than that many fibers for handlers: fewer calls of each [`Lane`] are handled at a time than the limits say.
    /// May be called again when that changes.
    pub fn fit(&self, fibers: usize) {
        let limits = self.shared.lanes.fit(fibers);
        self.shared.watches.fit(limits.watches);
        self.shared.tell();
    }

    pub fn call_stats(&self) -> &CallStats {
        &self.shared.call_stats
    }

    /// Calls that have arrived and not ended, those in the queue included.
    pub fn in_flight(&self) -> usize {
        self.shared.calls.borrow().len()
    }
}

impl Shared {
    fn has_events(&self) -> bool {
        !self.events.borrow().is_empty() || self.lanes.has_next()
    }

    fn take(&self) -> Option<Event> {
        if let Some(event) = self.events.borrow_mut().pop_front() {
            return Some(event);
        }
        let call = self.lanes.take()?;
        call.is_running.set(true);
        call.stage.set(Stage::Handed);
        call.place.set(Place::Nowhere);
        self.unqueue(&call);
        Some(Event::Call(call))
    }

    /// What a call of that method takes of what its client may have open.
    pub(super) fn share(&self, method: usize, peer: &Peer) -> Result<Option<Share>, Refusal> {
        match self.served[method].lane {
            Lane::Unary => Ok(None),
            Lane::Stream => self.streams.take(peer).map(Some),
            Lane::Watch => self.watches.take(peer).map(Some),
        }
    }

    /// From here on the call counts as waiting, until it is handed out, waits at a limit or ends.
    pub(super) fn enqueue(&self, call: &Call) -> Result<(), Refusal> {
        if call.lane == Lane::Watch || call.is_queued.get() {
            return Ok(());
        }
        if self.queued.get() >= self.limits.queue {
            let message = "the server has too many calls waiting";
            return Err(Refusal {
                cause: Cause::QueueFull,
                status: Status::new(Code::UNAVAILABLE, message),
            });
        }
        call.is_queued.set(true);
        self.queued.set(self.queued.get() + 1);
        Ok(())
    }

    fn unqueue(&self, call: &Call) {
        if call.is_queued.replace(false) {
            self.queued.set(self.queued.get() - 1);
        }
    }

    /// Ends a call that no handler has seen.
    pub(super) fn refuse(&self, call: &Call, refusal: &Refusal) {
        let Refusal { cause, status } = refusal;
        if call.finish(status, HeaderMap::new()) {
            self.refusals.add(*cause, status, call.peer().address);
        }
    }

    /// The request is here: the call waits for its handler.
    pub(super) fn queue(&self, call: &Rc<Call>) {
        let concurrency = &self.served[call.served].concurrency;
        if let Some(index) = concurrency.iter().position(|limit| limit.is_full()) {
            self.unqueue(call);
            match concurrency[index].wait(call) {
                Ok(()) => call.place.set(Place::ConcurrencyLimit(index)),
                Err(status) => {
                    let cause = Cause::MethodQueueFull;
                    self.refuse(call, &Refusal { cause, status });
                }
            }
            return;
        }
        concurrency.iter().for_each(|limit| limit.enter());
        call.is_inside.set(true);
        if let Err(refusal) = self.enqueue(call) {
            return self.refuse(call, &refusal);
        }
        call.place.set(Place::Ready);
        self.lanes.of(call.lane).ready.push(Rc::clone(call));
        self.tell();
    }

    /// It waits no more, for it has ended.
    fn leave_queue(&self, call: &Call) {
        self.unqueue(call);
        match call.place.replace(Place::Nowhere) {
            Place::Nowhere => {}
            Place::Ready => self.lanes.of(call.lane).ready.forget_one(),
            Place::ConcurrencyLimit(index) => self.served[call.served].concurrency[index]
                .waiting
                .forget_one(),
        }
    }

    /// Its handler has ended: another may run in its place. Until then a client that cancels its calls has them counted, for a
    /// handler may go on for as long as it likes.
    pub(super) fn release(&self, call: &Call) {
        if call.stage.get() == Stage::Gone {
            call.share.take();
        }
        self.lanes.of(call.lane).put_back();
        self.leave(call);
        self.tell();
    }

    /// Those that wait for a call like this one to end.
    fn leave(&self, call: &Call) {
        if !call.is_inside.replace(false) {
            return;
        }
        let concurrency = &self.served[call.served].concurrency;
        concurrency.iter().for_each(|limit| limit.leave());
        for limit in concurrency {
            while let Some(next) = limit.admit() {
                next.place.set(Place::Nowhere);
                self.queue(&next);
            }
        }
    }

    pub(super) fn timer(&self, method: usize) -> Option<CallTimer> {
        if !pulse::is_measured() {
            return None;
        }
        let method = &self.served[method];
        let mut metrics = method.metrics.borrow_mut();
        let metrics = metrics.get_or_insert_with(|| Rc::new(MethodMetrics::new(&method.path)));
        Some(CallTimer::start(metrics))
    }

    fn announce(&self, event: Event) {
        self.events.borrow_mut().push_back(event);
        self.tell();
    }

    fn tell(&self) {
        if self.has_events()
            && let Some(told) = self.listener.take()
        {
            told();
        }
    }

    fn expire(&self, id: Id) {
        let call = self.calls.borrow().get(id).map(Rc::clone);
        let Some(call) = call else {
            return;
        };
        let now = Instant::now();
        if call.deadline.is_none_or(|deadline| deadline > now) {
            return self.look_at_request(&call, now);
        }
        let status = Status::new(Code::DEADLINE_EXCEEDED, "the deadline has passed");
        if call.stage.get() != Stage::Handed {
            let cause = Cause::ExpiredInQueue;
            self.refuse(&call, &Refusal { cause, status });
            self.leave_queue(&call);
        } else if call.finish(&status, HeaderMap::new()) {
            self.announce(Event::Expired(id));
        }
    }

    /// The request has not arrived as a whole: looks at it again after a while.
    pub(super) fn watch_request(&self, call: &Call, arrived: u64) {
        let due = Instant::now().checked_add(self.limits.request_timeout);
        let due = due.filter(|due| call.deadline.is_none_or(|deadline| deadline > *due));
        if let Some(due) = due
            && call.reading.get().is_none()
        {
            call.reading.set(Some(Reading { due, arrived }));
            self.deadlines.insert(due, call.id);
        }
    }

    /// The request has arrived, or will not.
    pub(super) fn unwatch_request(&self, call: &Call) {
        if let Some(reading) = call.reading.take() {
            self.deadlines.remove(reading.due, call.id);
        }
    }

    pub(super) fn look_at_request(&self, call: &Call, now: Instant) {
        let Some(reading) = call.reading.get().filter(|reading| reading.due <= now) else {
            return;
        };
        call.reading.set(None);
        let progress = call.inbound.borrow().progress();
        let Some(arrived) = progress else {
            // It waits for others, not for its client.
            return self.watch_request(call, reading.arrived);
        };
        let limit = self.limits.request_timeout;
        let new = arrived.saturating_sub(reading.arrived);
        if new as f64 >= SLOWEST_REQUEST * limit.as_secs_f64() {
            return self.watch_request(call, arrived);
        }
        let message =
            format!("{new} bytes of the request arrived in {limit:?}, 1 KiB a second is the least");
        let refusal = Refusal {
            cause: Cause::RequestTooSlow,
            status: Status::new(Code::DEADLINE_EXCEEDED, message),
        };
        self.refuse(call, &refusal);
        self.leave_queue(call);
    }

    /// Its answer has been sent, or nobody is there to get it.
    pub(super) fn end(&self, call: &Call) {
        self.calls.borrow_mut().remove(call.id);
        if let Some(deadline) = call.deadline {
            self.deadlines.remove(deadline, call.id);
        }
        self.unwatch_request(call);
        let is_abandoned = call.is_open();
        if is_abandoned {
            call.count(Code::CANCELLED);
        }
        call.outbound.close();
        let was_handed = call.stage.replace(Stage::Gone) == Stage::Handed;
        self.leave_queue(call);
        if was_handed && is_abandoned {
            self.announce(Event::Gone(call.id));
        }
        if !was_handed {
            // Its handler may still take the message of a call that was handed out.
            call.message.take();
        }
        call.inbound.borrow_mut().close();
        if !call.is_running.get() {
            call.share.take();
            self.leave(call);
        }
    }
}

/// A call in the registry, for as long as its connection has to do with it.
pub(super) struct Open {
    pub(super) shared: Rc<Shared>,
    pub(super) call: Rc<Call>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.shared.end(&self.call);
    }
}
