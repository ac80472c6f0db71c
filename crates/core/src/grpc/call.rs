use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{HeaderMap, StatusCode};
use tokio::time::Instant;

use super::encoding::Encoding;
use super::frame::Frame;
use super::inbound::Inbound;
use super::lane::Lane;
use super::metadata::{DETAILS, PUSHBACK, answered_type, header_list_bytes};
use super::metrics::CallTimer;
use super::outbound::{Closed, Outbound};
use super::refusal::{RefusalReason, status_of};
use super::status::{Code, MESSAGE, STATUS, Status};
use super::transcoding::{http_status, report};
use super::web::Protocol;
use crate::http::{CallStats, Peer};
use crate::protobuf::message_memory;
use crate::server::{self, Action, Id, RequestGuard, Requester};
use crate::workers;

pub(super) const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
pub(super) const ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");
pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");
const JSON_LINES: HeaderValue = HeaderValue::from_static("application/x-ndjson");
/// Bytes per second that keep an upload alive beyond `request_timeout`.
const SLOWEST_REQUEST: f64 = 1024.0;

/// The server core, as calls use it.
pub(super) type Admission = server::Admission<Call, RefusalReason>;

/// A call that waits for its answer: messages, then a status.
pub struct Call {
    pub(super) id: Id,
    method: usize,
    lane: Lane,
    /// Bytes of the request that had arrived when its progress was last checked.
    uploaded: Cell<u64>,
    /// How long a unary request may take to arrive.
    request_timeout: Duration,
    /// Limit of the bytes of a header list with metadata of the handler.
    metadata_bytes: usize,
    /// Limit of the bytes of a message of the client.
    message_bytes: usize,
    head: Parts,
    /// The HTTP rule of a call with JSON.
    binding: Option<Box<Binding>>,
    pub(super) protocol: Protocol,
    peer: Rc<Peer>,
    pub(super) deadline: Option<Instant>,
    pub(super) inbound: RefCell<Inbound>,
    /// The message of a client that does not stream.
    pub(super) message: RefCell<Option<Frame>>,
    has_reader: Cell<bool>,
    /// It is counted as refused.
    is_refused: Cell<bool>,
    pub(super) outbound: Outbound,
    /// The encoding of its messages, as announced in the response head.
    encoding: Cell<Option<Encoding>>,
    is_compressing: Cell<bool>,
    has_begun: Cell<bool>,
    has_ended: Cell<bool>,
    is_handled: Cell<bool>,
    timer: Cell<Option<CallTimer>>,
    /// Counts the calls of its server.
    call_stats: Rc<CallStats>,
    admission: Rc<Admission>,
    pub(super) answer: RefCell<Option<Answer>>,
    /// The connection, waiting for the answer.
    pub(super) waker: Cell<Option<Waker>>,
}

/// The head of an answer.
pub(super) enum Answer {
    Stream(HeaderMap),
    /// A response without a body (Trailers-Only).
    Only(HeaderMap),
    /// A failure of a call with JSON.
    Failure(Box<(StatusCode, HeaderMap, Bytes)>),
}

/// Which method a request with JSON calls, and the variables of its path.
#[derive(Debug)]
pub(super) struct Binding {
    /// `/package.Service/Method`
    pub(super) path: Rc<str>,
    pub(super) variables: Vec<(String, String)>,
    pub(super) server_streams: bool,
}

/// The parameters of a new call.
pub(super) struct NewCall {
    pub(super) method: usize,
    pub(super) lane: Lane,
    pub(super) head: Parts,
    pub(super) binding: Option<Box<Binding>>,
    pub(super) protocol: Protocol,
    pub(super) peer: Rc<Peer>,
    pub(super) deadline: Option<Instant>,
    pub(super) inbound: Inbound,
    pub(super) timer: Option<CallTimer>,
    pub(super) request_timeout: Duration,
    pub(super) metadata_bytes: usize,
    pub(super) message_bytes: usize,
    pub(super) call_stats: Rc<CallStats>,
    pub(super) admission: Rc<Admission>,
}

impl Call {
    pub(super) fn new(id: Id, new_call: NewCall) -> Self {
        let now = SystemTime::now();
        new_call.call_stats.start(now);
        new_call.peer.call_stats.start(now);
        Self {
            id,
            method: new_call.method,
            lane: new_call.lane,
            uploaded: Cell::default(),
            request_timeout: new_call.request_timeout,
            metadata_bytes: new_call.metadata_bytes,
            message_bytes: new_call.message_bytes,
            head: new_call.head,
            binding: new_call.binding,
            protocol: new_call.protocol,
            peer: new_call.peer,
            deadline: new_call.deadline,
            inbound: RefCell::new(new_call.inbound),
            message: RefCell::default(),
            has_reader: Cell::default(),
            is_refused: Cell::default(),
            outbound: Outbound::default(),
            encoding: Cell::default(),
            is_compressing: Cell::default(),
            has_begun: Cell::default(),
            has_ended: Cell::default(),
            is_handled: Cell::default(),
            timer: Cell::new(new_call.timer),
            call_stats: new_call.call_stats,
            admission: new_call.admission,
            answer: RefCell::default(),
            waker: Cell::default(),
        }
    }

    /// Unique among the calls of its service, positive as `i64`.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Index of its method. For calls with JSON the index of the rule, counted on from the number of methods.
    pub fn method(&self) -> usize {
        self.method
    }

    /// The lane whose budget it uses.
    pub fn lane(&self) -> Lane {
        self.lane
    }

    /// `/package.Service/Method`
    pub fn path(&self) -> &str {
        match &self.binding {
            Some(binding) => &binding.path,
            None => self.head.uri.path(),
        }
    }

    /// Names and values of the path variables of a call with JSON.
    pub fn variables(&self) -> &[(String, String)] {
        let variables = self.binding.as_ref().map(|binding| &binding.variables);
        variables.map_or(&[], Vec::as_slice)
    }

    /// The query of a call with JSON.
    pub fn query(&self) -> &str {
        self.head.uri.query().unwrap_or_default()
    }

    /// The host that the client called.
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

    /// The deadline of the call.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// The limit of the memory of a decoded message.
    pub fn message_memory(&self) -> usize {
        message_memory(self.message_bytes)
    }

    /// Takes the message of a client that does not stream, once; empty after that. Decompresses it and frees its part of the
    /// connection's byte budget.
    ///
    /// # Errors
    /// The message cannot be decompressed, or is too large.
    pub fn take_message(&self) -> Result<Bytes, Status> {
        let Some(frame) = self.message.borrow_mut().take() else {
            return Ok(Bytes::new());
        };
        self.admission.release_bytes(self.id);
        let message = self.inbound.borrow_mut().open(frame);
        message.inspect_err(|status| self.count_refusal(status))
    }

    /// Whether the last message that was taken was compressed.
    pub fn was_compressed(&self) -> bool {
        self.inbound.borrow().was_compressed()
    }

    /// The next message if it has arrived; `None` is the end. Not reading stops the client (flow control).
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

    /// Counts a message that cannot be read, once, although each later read fails too.
    fn count_refusal(&self, status: &Status) {
        if let Some(reason) = RefusalReason::of_reading(status)
            && !self.is_refused.replace(true)
        {
            self.admission
                .add_refusal(reason, self.peer.address, &status.message);
        }
    }

    /// Switches compression of further messages. Returns whether they will be compressed: the client must accept a supported encoding,
    /// and the response head, which announces it, must not have been sent before the first such request.
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

    /// Sends the response head, once. Returns false if that was done before, the client has disconnected, or the metadata is larger than
    /// the limit, which ends the call.
    pub fn begin(&self, metadata: HeaderMap) -> bool {
        self.is_open() && self.send_head(metadata)
    }

    fn send_head(&self, metadata: HeaderMap) -> bool {
        if self.has_begun.get() {
            return false;
        }
        let has_metadata = !metadata.is_empty();
        let mut head = self.head_of(metadata);
        if let Some(encoding) = self.encoding.get() {
            head.insert(ENCODING, HeaderValue::from_static(encoding.name()));
        }
        if has_metadata && let Some(excess) = self.excess("the initial metadata", &head) {
            self.count_excess(&excess);
            self.finish(&Status::internal(excess), HeaderMap::new());
            return false;
        }
        self.has_begun.set(true);
        self.answer(Answer::Stream(head));
        true
    }

    pub fn has_begun(&self) -> bool {
        self.has_begun.get()
    }

    /// Buffers the message in any case. Returns false if the caller should await [`room`](Self::room) before the next one.
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

    /// Completes when the buffer has room, or the call has ended.
    pub fn room(self: &Rc<Self>) -> impl Future<Output = Result<(), Closed>> + use<> {
        let call = Rc::clone(self);
        async move { poll_fn(|context| call.outbound.poll_room(context)).await }
    }

    /// Ends the call, once. Returns false if it had ended before.
    pub fn finish(&self, status: &Status, trailers: HeaderMap) -> bool {
        self.finish_with_details(status, trailers, "[]")
    }

    /// The same with status details, a JSON list, for a call with JSON. Other calls have them in the trailers.
    pub fn finish_with_details(&self, status: &Status, trailers: HeaderMap, details: &str) -> bool {
        let is_open = self.admission.finish(self.id);
        if is_open {
            self.end_with(status, trailers, details);
        }
        is_open
    }

    /// Refuses a call that no handler has seen.
    pub(super) fn refuse(&self, reason: RefusalReason, status: &Status) {
        if self.admission.refuse(self.id, reason, &status.message) {
            self.end_with(status, HeaderMap::new(), "[]");
        }
    }

    fn end_with(&self, status: &Status, mut trailers: HeaderMap, details: &str) {
        let has_metadata = !trailers.is_empty();
        if self.protocol == Protocol::Json {
            trailers.remove(DETAILS);
            trailers.remove(PUSHBACK);
        } else {
            // Without, the map would make room for six fields.
            trailers.reserve(1);
            status.write(&mut trailers);
        }
        // A status alone is small.
        if has_metadata && status.code == Code::OK {
            if let Some(excess) = self.excess("the trailing metadata", &trailers) {
                self.count_excess(&excess);
                return self.end_with(&Status::internal(excess), HeaderMap::new(), "[]");
            }
        } else if has_metadata {
            self.shorten(status, &mut trailers);
        }
        if self.protocol == Protocol::Json {
            return self.finish_json(status, trailers, details);
        }
        self.has_ended.set(true);
        self.count(status.code);
        if self.has_begun.get() {
            self.outbound.end(trailers);
        } else {
            self.has_begun.set(true);
            self.answer(Answer::Only(self.head_of(trailers)));
        }
    }

    /// Few HTTP clients read trailers: the fields go into the head if that has not been sent.
    fn finish_json(&self, status: &Status, mut fields: HeaderMap, details: &str) {
        if status.code == Code::OK {
            // A response without a message has no head yet.
            self.send_head(HeaderMap::new());
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
                let failure = Box::new((http, fields, report.into()));
                self.answer(Answer::Failure(failure));
            }
        }
        self.has_ended.set(true);
        self.count(status.code);
        self.outbound.end(HeaderMap::new());
        self.wake();
    }

    /// Drops from the trailers of a failed call what makes them larger than the limit: its details, and where these do not suffice, all
    /// metadata. Its code and message stay, because the client decides by them whether to repeat the call.
    fn shorten(&self, status: &Status, trailers: &mut HeaderMap) {
        let what = format!("the status {} with its metadata", status.code.name());
        let Some(excess) = self.excess(&what, trailers) else {
            return;
        };
        let had_details = trailers.remove(DETAILS).is_some();
        let mut dropped = "the details are";
        if !had_details || header_list_bytes(trailers) > self.metadata_bytes {
            let kept = [STATUS, MESSAGE, HeaderName::from_static(PUSHBACK)];
            let kept = kept.map(|name| trailers.remove(&name).map(|value| (name, value)));
            trailers.clear();
            trailers.extend(kept.into_iter().flatten());
            dropped = "its metadata is";
        }
        self.count_excess(&format!("{excess}: {dropped} dropped"));
    }

    /// How much larger than the limit a header list is; `None` for one within it.
    fn excess(&self, what: &str, fields: &HeaderMap) -> Option<String> {
        let (bytes, limit) = (header_list_bytes(fields), self.metadata_bytes);
        let path = self.path();
        (bytes > limit).then(|| format!("{what} of {path} has {bytes} bytes, the limit is {limit}"))
    }

    fn count_excess(&self, detail: &str) {
        let peer = self.peer.address;
        self.admission
            .add_refusal(RefusalReason::MetadataTooLarge, peer, detail);
    }

    /// Declares that the handler has ended, which frees its place. Dropping the call does the same.
    pub fn handled(&self) {
        if !self.is_handled.replace(true) {
            self.admission.end_handler(self.id);
        }
    }

    /// Checks the progress of the upload after `request_timeout`.
    pub(super) fn watch_upload(&self) {
        if let Some(at) = Instant::now().checked_add(self.request_timeout) {
            self.admission.start_upload_timer(self.id, at);
        }
    }

    fn check_upload(&self) {
        // The upload waits for the byte budget of its connection, not for its client.
        if self.admission.is_waiting_for_bytes(self.id) {
            return self.watch_upload();
        }
        let arrived = self.inbound.borrow().arrived();
        let new = arrived.saturating_sub(self.uploaded.replace(arrived));
        let limit = self.request_timeout;
        if new as f64 >= SLOWEST_REQUEST * limit.as_secs_f64() {
            return self.watch_upload();
        }
        let message =
            format!("{new} bytes of the request arrived in {limit:?}, 1 KiB a second is the least");
        let status = Status::new(Code::DEADLINE_EXCEEDED, message);
        self.refuse(RefusalReason::RequestTooSlow, &status);
    }

    /// The response has been sent, or the client has disconnected.
    fn leave(&self) {
        if self.is_open() {
            self.count(Code::CANCELLED);
        }
        self.outbound.close();
        if !self.admission.is_running(self.id) {
            // A handler may still take the message.
            self.message.take();
        }
        self.inbound.borrow_mut().close();
    }

    /// The head is known and has not been sent.
    fn is_unsent(&self) -> bool {
        self.answer.borrow().is_some() && !self.outbound.is_waiting()
    }

    /// Whether the head may be sent. The head of a call with JSON that does not stream has the final status.
    pub(super) fn is_ready(&self) -> bool {
        match &self.binding {
            Some(binding) if !binding.server_streams => {
                self.has_ended.get() || self.outbound.is_waiting()
            }
            _ => true,
        }
    }

    /// Counts the end of the call.
    pub(super) fn count(&self, code: Code) {
        workers::work_done(1);
        self.call_stats.end(code == Code::OK);
        self.peer.call_stats.end(code == Code::OK);
        if let Some(timer) = self.timer.take() {
            timer.stop(code);
        }
    }

    /// Whether the client still waits for messages or the status.
    pub fn is_open(&self) -> bool {
        self.admission.is_open(self.id)
    }

    fn head_of(&self, mut fields: HeaderMap) -> HeaderMap {
        let kind = match &self.binding {
            Some(binding) if binding.server_streams => JSON_LINES,
            Some(_) => JSON,
            None => answered_type(&self.head.headers),
        };
        fields.reserve(1);
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

impl Requester for Call {
    fn act(&self, action: Action) {
        match action {
            Action::Refuse(refusal) => {
                self.end_with(&status_of(refusal), HeaderMap::new(), "[]");
            }
            Action::Expire => {
                let status = Status::new(Code::DEADLINE_EXCEEDED, "the deadline has passed");
                self.finish(&status, HeaderMap::new());
            }
            Action::CheckUpload => self.check_upload(),
            Action::Resume => self.wake(),
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.handled();
    }
}

/// Keeps a call attached to its connection.
pub(super) struct Open(pub(super) RequestGuard<Call, RefusalReason>);

impl Open {
    pub(super) fn call(&self) -> &Rc<Call> {
        self.0.request()
    }

    pub(super) fn admission(&self) -> &Rc<Admission> {
        self.0.admission()
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.call().leave();
    }
}

/// The only reader: two would get messages in no defined order, and only one of them would be woken.
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
