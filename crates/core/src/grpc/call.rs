use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use tokio::time::Instant;

use super::encoding::Encoding;
use super::inbound::Inbound;
use super::meter::Stopwatch;
use super::outbound::{Closed, Outbound};
use super::status::{Code, Status};
use super::web::Protocol;
use crate::http::{Id, Peer};
use crate::workers;

pub(super) const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
pub(super) const ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// A call that waits for its answer: messages, then a status.
pub struct Call {
    pub(super) id: Id,
    method: usize,
    head: Parts,
    pub(super) protocol: Protocol,
    peer: Rc<Peer>,
    pub(super) deadline: Option<Instant>,
    pub(super) inbound: RefCell<Inbound>,
    /// The one message of a client that does not stream.
    pub(super) message: RefCell<Option<Bytes>>,
    is_reading: Cell<bool>,
    pub(super) outbound: Outbound,
    /// How its messages may be compressed, as its head says or will say.
    encoding: Cell<Option<Encoding>>,
    is_compressing: Cell<bool>,
    pub(super) stage: Cell<Stage>,
    has_begun: Cell<bool>,
    has_ended: Cell<bool>,
    stopwatch: Cell<Option<Stopwatch>>,
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

/// The head of an answer.
pub(super) enum Answer {
    Stream(HeaderMap),
    /// Status and trailers are all there is.
    Only(HeaderMap),
}

/// What a call begins with.
pub(super) struct Opening {
    pub(super) method: usize,
    pub(super) head: Parts,
    pub(super) protocol: Protocol,
    pub(super) peer: Rc<Peer>,
    pub(super) deadline: Option<Instant>,
    pub(super) inbound: Inbound,
    pub(super) stopwatch: Option<Stopwatch>,
}

impl Call {
    pub(super) fn new(id: Id, opening: Opening) -> Self {
        Self {
            id,
            method: opening.method,
            head: opening.head,
            protocol: opening.protocol,
            peer: opening.peer,
            deadline: opening.deadline,
            inbound: RefCell::new(opening.inbound),
            message: RefCell::default(),
            is_reading: Cell::default(),
            outbound: Outbound::default(),
            encoding: Cell::default(),
            is_compressing: Cell::default(),
            stage: Cell::new(Stage::Queued),
            has_begun: Cell::default(),
            has_ended: Cell::default(),
            stopwatch: Cell::new(opening.stopwatch),
            answer: RefCell::default(),
            waker: Cell::default(),
        }
    }

    /// Unique among the calls of its service, positive as `i64`.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Index of its method in the list the service was made with.
    pub fn method(&self) -> usize {
        self.method
    }

    /// `/package.Service/Method`
    pub fn path(&self) -> &str {
        self.head.uri.path()
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

    /// The message of a client that does not stream, once.
    pub fn take_message(&self) -> Option<Bytes> {
        self.message.borrow_mut().take()
    }

    /// Whether the last message that was taken had been compressed.
    pub fn was_compressed(&self) -> bool {
        self.inbound.borrow().was_compressed()
    }

    /// The next message where it has arrived already; the end is `None`. The client may send no more than what is read.
    pub fn try_read(&self) -> Poll<Result<Option<Bytes>, Status>> {
        if self.is_reading.get() {
            return Poll::Ready(Err(read_by_another()));
        }
        let mut context = Context::from_waker(Waker::noop());
        self.inbound.borrow_mut().poll_message(&mut context)
    }

    pub fn read(self: &Rc<Self>) -> impl Future<Output = Result<Option<Bytes>, Status>> + use<> {
        let reading = Reading::new(Rc::clone(self));
        async move {
            let reading = reading.ok_or_else(read_by_another)?;
            poll_fn(|context| reading.0.inbound.borrow_mut().poll_message(context)).await
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
    pub fn finish(&self, status: &Status, mut trailers: HeaderMap) -> bool {
        if !self.is_open() {
            return false;
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

    /// It has ended, so or without a status.
    pub(super) fn count(&self, code: Code) {
        workers::work_done(1);
        if let Some(stopwatch) = self.stopwatch.take() {
            stopwatch.stop(code);
        }
    }

    /// Somebody still waits for messages or the status.
    pub fn is_open(&self) -> bool {
        !self.has_ended.get() && self.stage.get() != Stage::Gone
    }

    fn head_of(&self, mut fields: HeaderMap) -> HeaderMap {
        let kind = self.head.headers.get(header::CONTENT_TYPE);
        let kind = kind
            .cloned()
            .unwrap_or(HeaderValue::from_static("application/grpc"));
        fields.insert(header::CONTENT_TYPE, kind);
        fields
    }

    fn answer(&self, answer: Answer) {
        *self.answer.borrow_mut() = Some(answer);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// Two readers would get the messages in no order, and only one of them would be woken.
struct Reading(Rc<Call>);

impl Reading {
    fn new(call: Rc<Call>) -> Option<Self> {
        (!call.is_reading.replace(true)).then(|| Self(call))
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.is_reading.set(false);
    }
}

fn read_by_another() -> Status {
    Status::internal("the messages of the call are being read by another task")
}
