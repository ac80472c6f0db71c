use std::cell::{Cell, OnceCell, RefCell};
use std::path::PathBuf;
use std::rc::{Rc, Weak};
use std::sync::{Arc, LazyLock};
use std::task::Waker;
use std::time::Instant;

use bytes::Bytes;
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Response, StatusCode, header};

use super::body::Body;
use super::error_response::{closing_response, text_response};
use super::forwarded::Client;
use super::limits::LONG_LIVED;
use super::multipart::MultipartLimits;
use super::peer::Peer;
use super::refusal::RefusalReason;
use super::request_body::{BodyError, RequestBody};
use super::request_head::{PlainHead, RequestHead};
use super::response_head::{EncodedFields, is_plain};
use super::response_writer::ResponseWriter;
use super::upload::{self, Field, UploadError};
use super::websocket::{self, UpgradeError, WebSocket, WebSocketLimits};
use crate::server::{self, Action, Id, ReachedLimit, Requester};
use crate::{metrics, workers};

/// The server core, as requests use it.
pub(super) type Admission = server::Admission<Call, RefusalReason>;

/// A request that waits for its answer.
pub struct Call {
    pub(super) id: Id,
    head: RequestHead,
    pub(super) body: Rc<RequestBody>,
    peer: Rc<Peer>,
    /// Read from the header when it is first asked for.
    client: OnceCell<Client>,
    /// `None` in a process that serves no metrics.
    began: Option<Instant>,
    timer: RefCell<Option<Arc<metrics::Histogram>>>,
    admission: Rc<Admission>,
    /// The head of the response is known.
    is_answered: Cell<bool>,
    /// The connection wrote the response, as far as the socket took it, from the call that gave it.
    is_written: Cell<bool>,
    is_handled: Cell<bool>,
    pub(super) answer: RefCell<Option<Response<Body>>>,
    /// The connection, waiting for the answer.
    pub(super) waker: Cell<Option<Waker>>,
    /// The connection, if hyper did not serve it when the request began.
    writer: Option<Weak<dyn ResponseWriter>>,
}

impl Call {
    pub(super) fn new(
        id: Id,
        head: RequestHead,
        body: Rc<RequestBody>,
        peer: Rc<Peer>,
        admission: &Rc<Admission>,
        writer: Option<Weak<dyn ResponseWriter>>,
    ) -> Self {
        Self {
            id,
            head,
            body,
            peer,
            client: OnceCell::new(),
            began: workers::loop_watchdog::is_measured().then(Instant::now),
            timer: RefCell::default(),
            admission: Rc::clone(admission),
            is_answered: Cell::default(),
            is_written: Cell::default(),
            is_handled: Cell::default(),
            answer: RefCell::default(),
            waker: Cell::default(),
            writer,
        }
    }

    /// Unique in its server, positive as `i64`.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The method for routing. A WebSocket handshake counts as GET, also over HTTP/2, where it is a CONNECT (RFC 8441 §5).
    pub fn method(&self) -> &Method {
        match &self.head {
            RequestHead::Parsed(head) if !websocket::is_stream(head) => &head.method,
            _ => &GET,
        }
    }

    /// Method, target, version, header fields.
    pub fn head(&self) -> &Parts {
        self.head.parts()
    }

    /// The path of the target, as it was sent.
    pub fn path(&self) -> &str {
        self.head.path()
    }

    /// The query of the target, as it was sent; empty if there is none.
    pub fn query(&self) -> &str {
        self.head.query()
    }

    pub(super) fn plain_head(&self) -> Option<&PlainHead> {
        match &self.head {
            RequestHead::Plain(head) => Some(head),
            RequestHead::Parsed(_) => None,
        }
    }

    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// The client, if a trusted proxy has sent the request; otherwise it is the [`peer`](Self::peer).
    pub fn client(&self) -> Option<&Client> {
        let proxies = self.peer.proxies.as_ref()?;
        let peer = &self.peer;
        let read = || proxies.client(peer.address, peer.is_tls, &self.head().headers);
        Some(self.client.get_or_init(read))
    }

    /// The whole body if it has arrived. May be called any number of times.
    pub fn whole_body(&self) -> Option<Result<Bytes, BodyError>> {
        self.body.whole()
    }

    /// Reads the body to its end.
    pub fn read_body(&self) -> impl Future<Output = Result<Bytes, BodyError>> + use<> {
        Rc::clone(&self.body).read()
    }

    /// The next chunk of the body, empty at its end. Not reading stops the client (flow control).
    pub fn next_chunk(&self) -> impl Future<Output = Result<Bytes, BodyError>> + use<> {
        Rc::clone(&self.body).next()
    }

    /// Reads the body as `multipart/form-data` and stores its files in `directory`.
    pub fn read_form(
        &self,
        limits: MultipartLimits,
        directory: PathBuf,
    ) -> impl Future<Output = Result<Vec<Field>, UploadError>> + use<> {
        let kind = self.head().headers.get(header::CONTENT_TYPE);
        let kind = kind.map(|kind| kind.as_bytes().to_vec());
        upload::read_form(Rc::clone(&self.body), kind, limits, directory)
    }

    /// The trailer fields, once the body has been read.
    pub fn trailers(&self) -> Option<HeaderMap> {
        self.body.trailers()
    }

    /// Records the time from the arrival of the header to the response in `histogram`.
    pub fn time(&self, histogram: &Arc<metrics::Histogram>) {
        *self.timer.borrow_mut() = Some(Arc::clone(histogram));
    }

    /// Responds, once. Returns false, and sends nothing, if the call was answered before or its client has disconnected.
    ///
    /// An event stream beyond [`Limits::long_lived`](super::Limits::long_lived) gets 503, and its handler gets [`Event::Gone`].
    ///
    /// [`Event::Gone`]: crate::server::Event::Gone
    pub fn respond(&self, response: Response<Body>) -> bool {
        if !self.is_open() {
            return false;
        }
        if response.body().is_events() && !self.become_long_lived() {
            return false;
        }
        count(response.status());
        match response.body() {
            // The request is finished when the body has been sent.
            Body::Stream(_) => self.admission.clear_deadline(self.id),
            _ => drop(self.admission.finish(self.id)),
        }
        let unwritten = match self.writer() {
            Some(writer) => writer.write(response),
            None => Some(response),
        };
        match unwritten {
            Some(response) => self.answer_with(response),
            None => {
                self.is_answered.set(true);
                self.is_written.set(true);
                self.record_time();
            }
        }
        true
    }

    /// The same for a response whose body is one string, if it can be written to the connection at once. `None`, and nothing has happened,
    /// if it cannot: then it takes [`respond`](Self::respond).
    pub fn respond_at_once(
        &self,
        status: StatusCode,
        fields: &EncodedFields,
        body: &[u8],
    ) -> Option<bool> {
        let writer = self.writer().filter(|writer| writer.is_ready())?;
        if !is_plain(status) {
            return None;
        }
        if !self.is_open() {
            return Some(false);
        }
        count(status);
        self.admission.finish(self.id);
        self.is_answered.set(true);
        self.is_written.set(true);
        self.record_time();
        writer.write_parts(status, fields, body);
        Some(true)
    }

    fn writer(&self) -> Option<Rc<dyn ResponseWriter>> {
        self.writer.as_ref()?.upgrade()
    }

    fn answer_with(&self, response: Response<Body>) {
        self.is_answered.set(true);
        self.record_time();
        *self.answer.borrow_mut() = Some(response);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Refuses a request that no handler has seen.
    pub(super) fn refuse(&self, reason: RefusalReason, detail: &str, response: Response<Body>) {
        if self.admission.refuse(self.id, reason, detail) {
            self.answer_with(response);
        }
    }

    /// Moves the request to the lane of long-lived requests. If that is full, responds 503 and returns false.
    fn become_long_lived(&self) -> bool {
        let is_admitted = self.admission.change_lane(self.id, LONG_LIVED).is_ok();
        if !is_admitted {
            self.answer_with(text_response(StatusCode::SERVICE_UNAVAILABLE));
            self.admission.cancel(self.id);
        }
        is_admitted
    }

    /// Declares that the handler has ended, which frees its place. Dropping the call does the same.
    pub fn handled(&self) {
        if !self.is_handled.replace(true) {
            self.admission.end_handler(self.id);
        }
    }

    fn record_time(&self) {
        if let (Some(began), Some(timer)) = (self.began, self.timer.take()) {
            timer.record(began.elapsed());
        }
    }

    /// Accepts a WebSocket handshake: the connection, or the stream of HTTP/2, becomes a WebSocket. Returns `None` if the client has
    /// disconnected, or if too many long-lived requests are open; then the response is 503.
    ///
    /// `subprotocol` must be one that the client has offered.
    ///
    /// # Errors
    /// The request is no handshake, or not a valid one (RFC 6455 §4.2.1). It still needs a response.
    pub fn accept_websocket(
        &self,
        subprotocol: Option<&str>,
        limits: WebSocketLimits,
    ) -> Result<Option<WebSocket>, UpgradeError> {
        let (socket, response) = websocket::accept(self.head(), subprotocol, limits)?;
        let may_begin = self.is_open() && self.become_long_lived() && self.respond(response);
        Ok(may_begin.then_some(socket))
    }

    /// Whether the response, or its end, may wait for the connection's task to write it. Otherwise the socket has all of it.
    pub fn is_queued(&self) -> bool {
        !self.is_written.get() || self.writer().is_some_and(|writer| writer.has_unsent())
    }

    /// Whether the client still waits for the response.
    pub fn is_open(&self) -> bool {
        !self.is_answered.get() && self.admission.is_open(self.id)
    }
}

impl Requester for Call {
    fn act(&self, action: Action) {
        // A handler whose deadline has passed gets an event and responds itself. Request bodies enforce their rate themselves.
        let Action::Refuse(refusal) = action else {
            return;
        };
        self.answer_with(match refusal.limit {
            ReachedLimit::Deadline { is_arriving: true } => {
                closing_response(StatusCode::REQUEST_TIMEOUT)
            }
            _ => text_response(StatusCode::SERVICE_UNAVAILABLE),
        });
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.handled();
    }
}

static GET: Method = Method::GET;

/// Responses by status class.
static ANSWERS: LazyLock<[Arc<metrics::Counter>; 5]> = LazyLock::new(|| {
    ["1xx", "2xx", "3xx", "4xx", "5xx"].map(|class| {
        let help = "HTTP responses of handlers, by status class.";
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
