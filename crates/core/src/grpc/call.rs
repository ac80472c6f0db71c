use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::SystemTime;

use bytes::Bytes;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{HeaderMap, StatusCode};
use tokio::time::Instant;

use super::calls::Shared;
use super::encoding::Encoding;
use super::frame::Frame;
use super::inbound::Inbound;
use super::lane::Lane;
use super::metadata::{DETAILS, PUSHBACK, answered_type};
use super::metrics::CallTimer;
use super::outbound::{Closed, Outbound};
use super::refusal::Cause;
use super::share::Share;
use super::status::{Code, Status};
use super::transcoding::{http_status, report};
use super::web::Protocol;
use crate::http::{CallStats, Id, Peer};
use crate::workers;

pub(super) const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
pub(super) const ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");
pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");
const JSON_LINES: HeaderValue = HeaderValue::from_static("application/x-ndjson");

/// A call that waits for its answer: messages, then a status.
pub struct Call {
    pub(super) id: Id,
    method: usize,
    /// Index of its method, however it was called.
    pub(super) served: usize,
    pub(super) lane: Lane,
    /// It counts as in progress at the concurrency of its method.
    pub(super) is_inside: Cell<bool>,
    /// A handler has it: it counts as in progress in its lane, whether or not its client is still there.
    pub(super) is_running: Cell<bool>,
    /// It counts towards the calls that wait for a handler.
    pub(super) is_queued: Cell<bool>,
    pub(super) place: Cell<Place>,
    /// When the rest of its request is looked for.
    pub(super) reading: Cell<Option<Reading>>,
    /// Held until the call and its handler have ended.
    pub(super) share: Cell<Option<Share>>,
    head: Parts,
    /// What a call by HTTP with JSON means.
    binding: Option<Box<Binding>>,
    pub(super) protocol: Protocol,
    peer: Rc<Peer>,
    pub(super) deadline: Option<Instant>,
    pub(super) inbound: RefCell<Inbound>,
    /// The one message of a client that does not stream.
    pub(super) message: RefCell<Option<Frame>>,
    has_reader: Cell<bool>,
    /// It is among the refused ones.
    is_refused: Cell<bool>,
    pub(super) outbound: Outbound,
    /// How its messages may be compressed, as its head says or will say.
    encoding: Cell<Option<Encoding>>,
    is_compressing: Cell<bool>,
    pub(super) stage: Cell<Stage>,
    has_begun: Cell<bool>,
    has_ended: Cell<bool>,
    timer: Cell<Option<CallTimer>>,
    /// Of all calls of its server.
    call_stats: Rc<CallStats>,
    shared: Weak<Shared>,
    pub(super) answer: RefCell<Option<Answer>>,
    /// The connection, waiting for the answer.
    pub(super) waker: Cell<Option<Waker>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// In the ready queue, or its message is still being read.
    Queued,
    Handed,
    /// Nobody is there to answer any more.
    Gone,
}

/// Where it waits for its handler.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Nowhere,
    /// In the queue of its lane.
    Ready,
    /// In the queue of a limit of its method, by the limit's index there.
    ConcurrencyLimit(usize),
}

/// How the request of a unary call arrives.
#[derive(Clone, Copy)]
pub(super) struct Reading {
    /// When that is looked at.
    pub(super) due: Instant,
    /// Bytes that had arrived when that was last looked at.
    pub(super) arrived: u64,
}

/// The head of an answer.
pub(super) enum Answer {
    Stream(HeaderMap),
    /// Status and trailers are all there is.
    Only(HeaderMap),
    /// A failure by HTTP.
    Failure(StatusCode, HeaderMap, Bytes),
}

/// Which method a request by HTTP has called, and with what in its path.
#[derive(Debug)]
pub(super) struct Binding {
    /// `/package.Service/Method`
    pub(super) path: Rc<str>,
    pub(super) variables: Vec<(String, String)>,
    pub(super) server_streams: bool,
}

/// What a call begins with.
pub(super) struct Opening {
    pub(super) method: usize,
    pub(super) served: usize,
    pub(super) lane: Lane,
    pub(super) share: Option<Share>,
    pub(super) head: Parts,
    pub(super) binding: Option<Box<Binding>>,
    pub(super) protocol: Protocol,
    pub(super) peer: Rc<Peer>,
    pub(super) deadline: Option<Instant>,
    pub(super) inbound: Inbound,
    pub(super) timer: Option<CallTimer>,
    pub(super) shared: Weak<Shared>,
}

impl Call {
    pub(super) fn new(id: Id, opening: Opening) -> Self {
        let now = SystemTime::now();
        let call_stats = opening
            .shared
            .upgrade()
            .map(|shared| Rc::clone(&shared.call_stats));
        let call_stats = call_stats.unwrap_or_default();
        call_stats.start(now);
        opening.peer.call_stats.start(now);
        Self {
            id,
            method: opening.method,
            served: opening.served,
            lane: opening.lane,
            is_inside: Cell::default(),
            is_running: Cell::default(),
            is_queued: Cell::default(),
            place: Cell::new(Place::Nowhere),
            reading: Cell::default(),
            share: Cell::new(opening.share),
            head: opening.head,
            binding: opening.binding,
            protocol: opening.protocol,
            peer: opening.peer,
            deadline: opening.deadline,
            inbound: RefCell::new(opening.inbound),
            message: RefCell::default(),
            has_reader: Cell::default(),
            is_refused: Cell::default(),
            outbound: Outbound::default(),
            encoding: Cell::default(),
            is_compressing: Cell::default(),
            stage: Cell::new(Stage::Queued),
            has_begun: Cell::default(),
            has_ended: Cell::default(),
            timer: Cell::new(opening.timer),
            call_stats,
            shared: opening.shared,
            answer: RefCell::default(),
            waker: Cell::default(),
        }
    }

    /// Unique among the calls of its service, positive as `i64`.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Index of its method in the list the service was made with; for calls by HTTP with JSON that of the rule, behind all methods.
    pub fn method(&self) -> usize {
        self.method
    }

    /// `/package.Service/Method`
    pub fn path(&self) -> &str {
        match &self.binding {
            Some(binding) => &binding.path,
            None => self.head.uri.path(),
        }
    }

    /// Fields of the request and their values, from the path of a call by HTTP with JSON.
    pub fn variables(&self) -> &[(String, String)] {
        let variables = self.binding.as_ref().map(|binding| &binding.variables);
        variables.map_or(&[], Vec::as_slice)
    }

    /// What follows the path of a call by HTTP with JSON.
    pub fn query(&self) -> &str {
        self.head.uri.query().unwrap_or_default()
    }

    /// The host the client meant to call.
    pub fn authority(&self) -> &str {
        let host = || self.head.headers.get(header::HOST)?.to_str().ok();
        match self.head.uri.authority() {
            Some(authority) => authority.as_str(),
            None => host().unwrap_or_default(),
        }
    }

    pub fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// When the client will not wait any longer.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// The message of a client that does not stream, once; empty after that. It is decompressed here, and what it took of the
    /// connection's budget is free again.
    ///
    /// # Errors
    /// It cannot be decompressed, or is too large then.
    pub fn take_message(&self) -> Result<Bytes, Status> {
        let Some(frame) = self.message.borrow_mut().take() else {
            return Ok(Bytes::new());
        };
        let message = {
            let mut inbound = self.inbound.borrow_mut();
            inbound.release();
            inbound.open(frame)
        };
        message.inspect_err(|status| self.count_refusal(status))
    }

    /// Whether the last message that was taken had been compressed.
    pub fn was_compressed(&self) -> bool {
        self.inbound.borrow().was_compressed()
    }

    /// The next message where it has arrived already; the end is `None`. The client may send no more than what is read.
    pub fn try_read(&self) -> Poll<Result<Option<Bytes>, Status>> {
        if self.has_reader.get() {
            return Poll::Ready(Err(read_by_another()));
        }
        let mut context = Context::from_waker(Waker::noop());
        self.poll_message(&mut context)
    }

    pub fn read(self: &Rc<Self>) -> impl Future<Output = Result<Option<Bytes>, Status>> + use<> {
        let reader = Reader::new(Rc::clone(self));
        async move {
            let reader = reader.ok_or_else(read_by_another)?;
            poll_fn(|context| reader.0.poll_message(context)).await
        }
    }

    fn poll_message(&self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Status>> {
        let message = self.inbound.borrow_mut().poll_message(context);
        if let Poll::Ready(Err(status)) = &message {
            self.count_refusal(status);
        }
        message
    }

    /// What its client has sent cannot be read. Counted once: its reader hears of it as often as it asks.
    fn count_refusal(&self, status: &Status) {
        if let Some(cause) = Cause::of_reading(status)
            && let Some(shared) = self.shared.upgrade()
            && !self.is_refused.replace(true)
        {
            shared.refusals.add(cause, status, self.peer.address);
        }
    }

    /// From now on messages are compressed, or not. Returns whether they will be: the client must take one of our encodings,
    /// and the head of the answer must say so, which it does where this was asked for before it was sent.
    pub fn compress(&self, wanted: bool) -> bool {
        if wanted && self.encoding.get().is_none() && !self.has_begun.get() {
            self.encoding.set(self.accepted());
        }
        let is_compressing = wanted && self.encoding.get().is_some();
        self.is_compressing.set(is_compressing);
        is_compressing
    }

    fn accepted(&self) -> Option<Encoding> {
        if self.protocol == Protocol::Json {
            return None;
        }
        let accepted = self.head.headers.get(ACCEPT_ENCODING)?.to_str().ok()?;
        accepted
            .split(',')
            .find_map(|name| Encoding::of_name(name.trim()))
    }

    /// Sends the head of the answer, once. False when that was done before or nobody is there.
    pub fn begin(&self, metadata: HeaderMap) -> bool {
        if !self.is_open() || self.has_begun.replace(true) {
            return false;
        }
        let mut head = self.head_of(metadata);
        if let Some(encoding) = self.encoding.get() {
            head.insert(ENCODING, HeaderValue::from_static(encoding.name()));
        }
        self.answer(Answer::Stream(head));
        true
    }

    pub fn has_begun(&self) -> bool {
        self.has_begun.get()
    }

    /// Takes the message in any case. False: wait for [`room`](Self::room) before the next one.
    ///
    /// # Errors
    /// [`Closed`]: the call has ended.
    pub fn write(&self, message: &[u8]) -> Result<bool, Closed> {
        if !self.is_open() {
            return Err(Closed);
        }
        self.begin(HeaderMap::new());
        if self.protocol == Protocol::Json {
            let written = self.outbound.write_raw(message);
            self.wake();
            return written;
        }
        let compressed = match (self.is_compressing.get(), self.encoding.get()) {
            (true, Some(encoding)) => encoding.compress(message).ok(),
            _ => None,
        };
        match compressed {
            Some(compressed) => self.outbound.write(true, &compressed),
            None => self.outbound.write(false, message),
        }
    }

    /// Ends when less waits than may, or the call has ended.
    pub fn room(self: &Rc<Self>) -> impl Future<Output = Result<(), Closed>> + use<> {
        let call = Rc::clone(self);
        async move { poll_fn(|context| call.outbound.poll_room(context)).await }
    }

    /// Ends the call, once. False when it had ended before.
    pub fn finish(&self, status: &Status, trailers: HeaderMap) -> bool {
        self.finish_with_details(status, trailers, "[]")
    }

    /// The same, with details of the status for a call by HTTP with JSON: a list in JSON. Others have theirs in the trailers.
    pub fn finish_with_details(
        &self,
        status: &Status,
        mut trailers: HeaderMap,
        details: &str,
    ) -> bool {
        if !self.is_open() {
            return false;
        }
        if self.protocol == Protocol::Json {
            self.finish_json(status, trailers, details);
            return true;
        }
        self.has_ended.set(true);
        self.count(status.code);
        status.write(&mut trailers);
        if self.has_begun.get() {
            self.outbound.end(trailers);
        } else {
            self.has_begun.set(true);
            self.answer(Answer::Only(self.head_of(trailers)));
        }
        true
    }

    /// HTTP has no trailers that everybody reads: they go into the head where that has not been sent.
    fn finish_json(&self, status: &Status, mut fields: HeaderMap, details: &str) {
        fields.remove(DETAILS);
        fields.remove(PUSHBACK);
        if status.code == Code::OK {
            // An answer without a message has not begun.
            self.begin(HeaderMap::new());
            if let Some(Answer::Stream(head)) = &mut *self.answer.borrow_mut() {
                head.extend(fields);
            }
        } else {
            let http = http_status(status.code);
            let mut report = report(http, status, details);
            report.push('\n');
            if self.has_begun.replace(true) && !self.is_unsent() {
                let _ = self.outbound.write_raw(report.as_bytes());
            } else {
                if let Some(Answer::Stream(head)) = self.answer.take() {
                    fields.extend(head);
                }
                fields.insert(header::CONTENT_TYPE, JSON);
                self.answer(Answer::Failure(http, fields, report.into()));
            }
        }
        self.has_ended.set(true);
        self.count(status.code);
        self.outbound.end(HeaderMap::new());
        self.wake();
    }

    /// Its handler has ended, and its place is free. Dropping the call does the same.
    pub fn handled(&self) {
        if self.is_running.replace(false)
            && let Some(shared) = self.shared.upgrade()
        {
            shared.release(self);
        }
    }

    /// It has a head, and nobody has seen that yet.
    fn is_unsent(&self) -> bool {
        self.answer.borrow().is_some() && !self.outbound.is_waiting()
    }

    /// Its head need not wait for anything: a call by HTTP that answers once has its status there.
    pub(super) fn is_ready(&self) -> bool {
        match &self.binding {
            Some(binding) if !binding.server_streams => {
                self.has_ended.get() || self.outbound.is_waiting()
            }
            _ => true,
        }
    }

    /// It has ended, so or without a status.
    pub(super) fn count(&self, code: Code) {
        workers::work_done(1);
        self.call_stats.end(code == Code::OK);
        self.peer.call_stats.end(code == Code::OK);
        if let Some(timer) = self.timer.take() {
            timer.stop(code);
        }
    }

    /// Nobody handles it yet, and somebody waits for that.
    pub(super) fn is_waiting(&self) -> bool {
        self.stage.get() == Stage::Queued && self.is_open()
    }

    /// Somebody still waits for messages or the status.
    pub fn is_open(&self) -> bool {
        !self.has_ended.get() && self.stage.get() != Stage::Gone
    }

    fn head_of(&self, mut fields: HeaderMap) -> HeaderMap {
        let kind = match &self.binding {
            Some(binding) if binding.server_streams => JSON_LINES,
            Some(_) => JSON,
            None => answered_type(&self.head.headers),
        };
        fields.insert(header::CONTENT_TYPE, kind);
        fields
    }

    fn answer(&self, answer: Answer) {
        *self.answer.borrow_mut() = Some(answer);
        self.wake();
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.handled();
    }
}

/// Two readers would get the messages in no order, and only one of them would be woken.
struct Reader(Rc<Call>);

impl Reader {
    fn new(call: Rc<Call>) -> Option<Self> {
        (!call.has_reader.replace(true)).then(|| Self(call))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.has_reader.set(false);
    }
}

fn read_by_another() -> Status {
    Status::internal("the messages of the call are being read by another task")
}
