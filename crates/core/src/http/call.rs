use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::{Rc, Weak};
use std::sync::{Arc, LazyLock};
use std::task::Waker;
use std::time::Instant;

use bytes::Bytes;
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Response, StatusCode, header};

use super::admission::Permit;
use super::body::Body;
use super::connection::Peer;
use super::error_response::plain;
use super::multipart::MultipartLimits;
use super::refusals::Cause;
use super::registry::Id;
use super::request_body::{BodyError, RequestBody};
use super::shared::{Event, Shared};
use super::timeouts::Tick;
use super::upload::{self, Field, UploadError};
use super::websocket::{self, UpgradeError, WebSocket, WebSocketLimits};
use crate::{metrics, workers};

/// A request that waits for its answer.
pub struct Call {
    pub(super) id: Id,
    head: Parts,
    pub(super) body: Rc<RequestBody>,
    peer: Rc<Peer>,
    pub(super) arrived: Tick,
    /// Only where somebody may ask for metrics.
    began: Option<Instant>,
    timer: RefCell<Option<Arc<metrics::Histogram>>>,
    pub(super) stage: Cell<Stage>,
    /// Its body is being read before it is queued.
    pub(super) is_reading: Cell<bool>,
    /// Its place, while its handler runs.
    pub(super) permit: RefCell<Option<Rc<Permit>>>,
    shared: Weak<Shared>,
    /// It has been announced as late.
    pub(super) is_late: Cell<bool>,
    pub(super) answer: RefCell<Option<Response<Body>>>,
    /// The connection, waiting for the answer.
    pub(super) waker: Cell<Option<Waker>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// In the queue, or its body is still being read.
    Queued,
    /// With its handler.
    Handed,
    Answered,
    /// Nobody is there to answer any more.
    Gone,
}

impl Call {
    pub(super) fn new(
        id: Id,
        head: Parts,
        body: Rc<RequestBody>,
        peer: Rc<Peer>,
        shared: &Rc<Shared>,
    ) -> Self {
        Self {
            id,
            head,
            body,
            peer,
            arrived: shared.clock.get(),
            shared: Rc::downgrade(shared),
            began: workers::pulse::is_measured().then(Instant::now),
            timer: RefCell::default(),
            stage: Cell::new(Stage::Queued),
            is_reading: Cell::new(false),
            permit: RefCell::default(),
            is_late: Cell::new(false),
            answer: RefCell::default(),
            waker: Cell::default(),
        }
    }

    /// Unique in its server, positive as `i64`.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The method a handler is chosen by: a conversation begins with GET, whatever it is called over HTTP/2 (RFC 8441 §5).
    pub fn method(&self) -> &Method {
        match websocket::is_stream(&self.head) {
            true => &GET,
            false => &self.head.method,
        }
    }

    /// Method, target, version, header fields.
    pub fn head(&self) -> &Parts {
        &self.head
    }

    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// The whole body, when it is here already. It can be asked for any number of times.
    pub fn whole_body(&self) -> Option<Result<Bytes, BodyError>> {
        self.body.whole()
    }

    /// Reads the body to its end.
    pub fn read_body(&self) -> impl Future<Output = Result<Bytes, BodyError>> + use<> {
        Rc::clone(&self.body).read()
    }

    /// The next piece of the body, empty at its end. The client may send no more than what is read.
    pub fn next_piece(&self) -> impl Future<Output = Result<Bytes, BodyError>> + use<> {
        Rc::clone(&self.body).next()
    }

    /// Reads the body as a form of `multipart/form-data`, whose files go to the folder.
    pub fn read_form(
        &self,
        limits: MultipartLimits,
        folder: PathBuf,
    ) -> impl Future<Output = Result<Vec<Field>, UploadError>> + use<> {
        let kind = self.head.headers.get(header::CONTENT_TYPE);
        let kind = kind.map(|kind| kind.as_bytes().to_vec());
        upload::read_form(Rc::clone(&self.body), kind, limits, folder)
    }

    /// Fields that followed the body, once it has been read.
    pub fn trailers(&self) -> Option<HeaderMap> {
        self.body.trailers()
    }

    /// Records in `histogram` the time from the arrival of its header to its answer.
    pub fn time(&self, histogram: &Arc<metrics::Histogram>) {
        *self.timer.borrow_mut() = Some(Arc::clone(histogram));
    }

    /// Answers, once. False when it was answered before or the client has gone away: then nothing is sent.
    ///
    /// An event stream beyond [`Limits::long_lived`](super::Limits::long_lived) is answered 503, and its handler is told that its
    /// client has gone.
    pub fn respond(&self, response: Response<Body>) -> bool {
        if !self.is_open() {
            return false;
        }
        if response.body().is_events() && !self.may_last() {
            return false;
        }
        count(response.status());
        self.answer_with(response);
        true
    }

    /// For a call that [is open](Self::is_open).
    pub(super) fn answer_with(&self, response: Response<Body>) {
        self.stage.set(Stage::Answered);
        self.record_time();
        *self.answer.borrow_mut() = Some(response);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Counts it among the requests that last. False: there are too many of them, and it is answered 503.
    fn may_last(&self) -> bool {
        if self
            .permit
            .borrow()
            .as_ref()
            .is_none_or(|permit| permit.last().is_ok())
        {
            return true;
        }
        if let Some(shared) = self.shared.upgrade() {
            shared.refusals.add(Cause::LongLived, self.peer.address, "");
            shared.announce(Event::Gone(self.id));
        }
        self.answer_with(plain(StatusCode::SERVICE_UNAVAILABLE));
        false
    }

    /// Its handler has ended, and its place is free.
    pub fn handled(&self) {
        self.permit.take();
    }

    fn record_time(&self) {
        if let (Some(began), Some(timer)) = (self.began, self.timer.take()) {
            timer.record(began.elapsed());
        }
    }

    /// Answers by turning the connection, or the stream of HTTP/2, into a conversation. None when nobody waits for an answer any more, or there
    /// are too many requests that last: then it has been answered 503.
    ///
    /// `subprotocol` is one of those the client has offered.
    ///
    /// # Errors
    /// The request asks for none, or not as RFC 6455 §4.2.1 has it: it still waits for its answer.
    pub fn converse(
        &self,
        subprotocol: Option<&str>,
        limits: WebSocketLimits,
    ) -> Result<Option<WebSocket>, UpgradeError> {
        let (socket, response) = websocket::accept(&self.head, subprotocol, limits)?;
        let may_begin = self.is_open() && self.may_last() && self.respond(response);
        Ok(may_begin.then_some(socket))
    }

    /// Somebody still waits for the answer.
    pub fn is_open(&self) -> bool {
        matches!(self.stage.get(), Stage::Queued | Stage::Handed)
    }
}

static GET: Method = Method::GET;

/// Answers by the first digit of their status.
static ANSWERS: LazyLock<[Arc<metrics::Counter>; 5]> = LazyLock::new(|| {
    ["1xx", "2xx", "3xx", "4xx", "5xx"].map(|class| {
        let help = "HTTP requests answered by a handler, by class of status.";
        metrics::counter("weft_http_requests_total", help, &[("status", class)])
    })
});

fn count(status: StatusCode) {
    workers::work_done(1);
    let class = usize::from(status.as_u16() / 100);
    if let Some(counter) = ANSWERS.get(class.wrapping_sub(1)) {
        counter.add(1);
    }
}
