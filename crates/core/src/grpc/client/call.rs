use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::{HeaderMap, Method, Response, StatusCode};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::channel::Channel;
use super::endpoint::Connection;
use super::failure::{is_unprocessed, no_status, status_of};
use super::settings::HeaderListLimit;
use super::upload::{Upload, Uploader};
use crate::grpc::call::{ACCEPT_ENCODING, ENCODING};
use crate::grpc::encoding::{ACCEPTED, Encoding};
use crate::grpc::inbound::Inbound;
use crate::grpc::metadata::{content_type, request_header_list_bytes, timeout_value};
use crate::grpc::outbound::{Closed, Outbound};
use crate::grpc::status::{Code, Status};
use crate::grpc::web::Protocol;
use crate::protobuf::message_memory;

/// A new call.
#[derive(Debug, Clone)]
pub struct Request {
    /// `/package.Service/Method`
    pub path: String,
    pub metadata: HeaderMap,
    /// From now to the end of the call; sent to the server as `grpc-timeout`.
    pub timeout: Option<Duration>,
    /// Earlier attempts of the same call, for `grpc-previous-rpc-attempts`.
    pub attempts: u32,
    /// Wait for a server that can be connected to, instead of failing (wait-for-ready).
    pub waits: bool,
}

/// Bytes of a header list that every server of gRPC accepts, 8 KiB being the least of their defaults (grpc-java): a request within them
/// leaves without the settings of the server, which come a round trip after the connection is open.
const SMALL_HEADER_LIST: usize = 8 << 10;

/// Transparent retries of a call that a closing connection has not sent.
const DEPARTURES: u32 = 3;

/// A call to a server. Dropping it before its end cancels the call.
pub struct ClientCall {
    inner: Rc<Inner>,
}

struct Inner {
    outbound: Outbound,
    state: RefCell<State>,
    /// The task that waits for the response head or for a message.
    reader: RefCell<Option<Waker>>,
    head: RefCell<HeaderMap>,
    trailers: RefCell<HeaderMap>,
    over: Notify,
    deadline: Option<Instant>,
    encoding: Option<Encoding>,
    /// Limit of the bytes of a message of the server.
    message_bytes: usize,
    /// The response has begun.
    has_begun: Cell<bool>,
    is_unprocessed: Cell<bool>,
    /// The connection still sends messages.
    is_uploading: Cell<bool>,
}

enum State {
    Waiting,
    Open(Box<Inbound>),
    Ended(Status),
}

impl ClientCall {
    /// Returns the call and its driver, which must run as a task of the `LocalSet`. A failure is the outcome of the call.
    pub fn new(channel: &Channel, request: Request) -> (Self, impl Future<Output = ()> + use<>) {
        let inner = Rc::new(Inner {
            deadline: request.timeout.map(|timeout| Instant::now() + timeout),
            outbound: Outbound::default(),
            state: RefCell::new(State::Waiting),
            reader: RefCell::default(),
            head: RefCell::default(),
            trailers: RefCell::default(),
            over: Notify::new(),
            encoding: channel.options().encoding,
            message_bytes: channel.options().message_bytes,
            has_begun: Cell::default(),
            is_unprocessed: Cell::default(),
            is_uploading: Cell::default(),
        });
        let call = Rc::clone(&inner);
        let channel = channel.clone();
        let task = async move { call.run(channel, request).await };
        (Self { inner }, task)
    }

    /// Buffers the message in any case. Returns false if the caller should await [`room`](Self::room) before the next one.
    ///
    /// # Errors
    /// [`Closed`]: the call has ended.
    pub fn write(&self, message: &[u8]) -> Result<bool, Closed> {
        let encoding = self.inner.encoding;
        match encoding.and_then(|encoding| encoding.compress(message).ok()) {
            Some(compressed) => self.inner.outbound.write(true, &compressed),
            None => self.inner.outbound.write(false, message),
        }
    }

    /// Completes when the buffer has room, or the call has ended.
    pub fn room(&self) -> impl Future<Output = Result<(), Closed>> + use<> {
        let inner = Rc::clone(&self.inner);
        async move { poll_fn(|context| inner.outbound.poll_room(context)).await }
    }

    /// No more messages will be written.
    pub fn end(&self) {
        self.inner.outbound.end(HeaderMap::new());
    }

    /// The next message; `None` once the call has ended with OK.
    ///
    /// # Errors
    /// The status it ended with.
    pub fn read(&self) -> impl Future<Output = Result<Option<Bytes>, Status>> + use<> {
        let inner = Rc::clone(&self.inner);
        async move { poll_fn(|context| inner.poll_message(context)).await }
    }

    /// The message of a method whose server does not stream.
    ///
    /// # Errors
    /// The status the call ended with.
    pub fn read_only(&self) -> impl Future<Output = Result<Bytes, Status>> + use<> {
        let inner = Rc::clone(&self.inner);
        async move {
            let first = poll_fn(|context| inner.poll_message(context)).await?;
            let Some(message) = first else {
                return Err(cardinality("no message"));
            };
            match poll_fn(|context| inner.poll_message(context)).await? {
                None => Ok(message),
                Some(_) => Err(cardinality("more than one message")),
            }
        }
    }

    /// The limit of the memory of a decoded message.
    pub fn message_memory(&self) -> usize {
        message_memory(self.inner.message_bytes)
    }

    /// Initial metadata and fields of the protocol, once the first message or the end was read.
    pub fn head(&self) -> HeaderMap {
        self.inner.head.borrow().clone()
    }

    /// Trailing metadata and fields of the protocol, once the end was read.
    pub fn trailers(&self) -> HeaderMap {
        self.inner.trailers.borrow().clone()
    }

    /// The server has sent more than a status: the call must not be retried.
    pub fn has_begun(&self) -> bool {
        self.inner.has_begun.get()
    }

    /// The call failed before the server began to process it, and may be retried.
    pub fn is_unprocessed(&self) -> bool {
        self.inner.is_unprocessed.get()
    }

    pub fn cancel(&self) {
        self.inner
            .finish(Status::new(Code::CANCELLED, "the call was cancelled"));
    }
}

impl Drop for ClientCall {
    fn drop(&mut self) {
        self.cancel();
    }
}

/// # Errors
/// The server would refuse the header list of the request, most servers together with the connection and all its calls.
async fn check_metadata(
    request: &hyper::Request<Upload>,
    connection: &Connection,
) -> Result<(), Status> {
    let bytes = request_header_list_bytes(request);
    let settings = &connection.settings;
    if bytes > SMALL_HEADER_LIST {
        settings.arrived().await;
    }
    match settings.header_list() {
        HeaderListLimit::Bytes(limit) if bytes > limit as usize => {
            let uri = request.uri();
            let (path, server) = (uri.path(), uri.authority().map_or("", |name| name.as_str()));
            let message = format!(
                "the metadata of {path} has {bytes} bytes with the fields of the protocol, the server {server} accepts {limit} \
                 (SETTINGS_MAX_HEADER_LIST_SIZE): send large data in messages, or raise the limit of the server"
            );
            Err(Status::new(Code::RESOURCE_EXHAUSTED, message))
        }
        _ => Ok(()),
    }
}

fn cardinality(what: &str) -> Status {
    let message = format!("the method answers with exactly one message, the server sent {what}");
    Status::new(Code::UNIMPLEMENTED, message)
}

impl Inner {
    async fn run(self: Rc<Self>, channel: Channel, request: Request) {
        let timeout = request.timeout;
        let late = async {
            match timeout {
                // Tokio's timer rounds up to a millisecond, in which a server may answer.
                Some(timeout) if timeout.is_zero() => {}
                Some(timeout) => tokio::time::sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        let status = tokio::select! {
            biased;
            () = self.over.notified() => return,
            () = late => Status::new(Code::DEADLINE_EXCEEDED, "the deadline has passed"),
            status = self.exchange(&channel, request) => status,
        };
        self.finish(status);
    }

    /// Completes if the call fails before its response begins. After that the reader drives the call.
    async fn exchange(self: &Rc<Self>, channel: &Channel, request: Request) -> Status {
        match self.answer(channel, request).await {
            Err(status) => status,
            Ok(response) => {
                self.open(response);
                std::future::pending().await
            }
        }
    }

    async fn answer(
        self: &Rc<Self>,
        channel: &Channel,
        request: Request,
    ) -> Result<Response<Incoming>, Status> {
        for _ in 0..DEPARTURES {
            let (authority, mut connection) = channel.connection(request.waits).await?;
            let uri = format!("{}://{authority}{}", channel.scheme(), request.path);
            self.is_uploading.set(true);
            let mut message = hyper::Request::new(Upload(Rc::clone(self) as Rc<dyn Uploader>));
            *message.method_mut() = Method::POST;
            *message.uri_mut() = uri.parse().map_err(|error| {
                Status::internal(format!("\"{uri}\" is not an address: {error}"))
            })?;
            *message.headers_mut() = self.headers(&request);
            check_metadata(&message, &connection).await?;
            match connection.requests.try_send_request(message).await {
                Ok(response) => return Ok(response),
                Err(mut error) => {
                    // The request was not sent: another connection may send it.
                    if error.take_message().is_none() {
                        return Err(self.lost(error.error()));
                    }
                }
            }
        }
        self.is_unprocessed.set(true);
        let message = "every connection was closed before the call could leave";
        Err(Status::new(Code::UNAVAILABLE, message))
    }

    fn headers(&self, request: &Request) -> HeaderMap {
        let mut headers = request.metadata.clone();
        let grpc = HeaderValue::from_static("application/grpc");
        headers.insert(header::CONTENT_TYPE, grpc);
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(ACCEPTED));
        let agent = concat!("grpc-php-weft/", env!("CARGO_PKG_VERSION"));
        headers.insert(header::USER_AGENT, HeaderValue::from_static(agent));
        if let Some(deadline) = self.deadline {
            let left = deadline.saturating_duration_since(Instant::now());
            headers.insert("grpc-timeout", timeout_value(left));
        }
        if let Some(encoding) = self.encoding {
            headers.insert(ENCODING, HeaderValue::from_static(encoding.name()));
        }
        if request.attempts > 0 {
            let attempts = HeaderValue::from(request.attempts);
            headers.insert("grpc-previous-rpc-attempts", attempts);
        }
        headers
    }

    fn lost(&self, error: &hyper::Error) -> Status {
        self.is_unprocessed.set(is_unprocessed(error));
        status_of(error)
    }

    fn open(&self, response: Response<Incoming>) {
        let (head, body) = response.into_parts();
        *self.head.borrow_mut() = head.headers;
        let headers = self.head.borrow();
        let compression = headers.get(ENCODING).map(HeaderValue::as_bytes);
        let compression = compression.map(|name| String::from_utf8_lossy(name).into_owned());
        let encoding = compression.as_deref().and_then(Encoding::of_name);
        if let Some(status) = Status::read(&headers) {
            *self.trailers.borrow_mut() = headers.clone();
            drop(headers);
            return self.finish(status);
        }
        let is_grpc = Protocol::of(content_type(&headers)) == Some(Protocol::Grpc);
        let kind = headers.get(header::CONTENT_TYPE).cloned();
        drop(headers);
        if head.status != StatusCode::OK {
            return self.finish(of_http(head.status));
        }
        if !is_grpc {
            return self.finish(no_grpc(kind.as_ref()));
        }
        if let (None, Some(name)) = (encoding, compression)
            && name != "identity"
        {
            let message = format!(
                "the server answers with the grpc-encoding \"{name}\", which is not known here"
            );
            return self.finish(Status::internal(message));
        }
        self.has_begun.set(true);
        let inbound = Inbound::new(body, encoding, false, self.message_bytes, status_of);
        let mut state = self.state.borrow_mut();
        if matches!(*state, State::Waiting) {
            *state = State::Open(Box::new(inbound));
        }
        drop(state);
        self.close_where_nobody_takes();
        self.wake();
    }

    fn poll_message(&self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Status>> {
        *self.reader.borrow_mut() = Some(context.waker().clone());
        let mut state = self.state.borrow_mut();
        let status = match &mut *state {
            State::Waiting => return Poll::Pending,
            State::Ended(status) => status.clone(),
            State::Open(inbound) => match std::task::ready!(inbound.poll_message(context)) {
                Ok(Some(message)) => return Poll::Ready(Ok(Some(message))),
                Err(status) => status,
                Ok(None) => {
                    let trailers = inbound.take_trailers();
                    let status = Status::read(&trailers);
                    *self.trailers.borrow_mut() = trailers;
                    status.unwrap_or_else(no_status)
                }
            },
        };
        drop(state);
        self.finish(status.clone());
        Poll::Ready(match status.code {
            Code::OK => Ok(None),
            _ => Err(status),
        })
    }

    fn finish(&self, status: Status) {
        let status = self.at_the_deadline(status);
        let mut state = self.state.borrow_mut();
        if matches!(*state, State::Ended(_)) {
            return;
        }
        // Dropped after the borrow, because the drop may wake a task that borrows the state.
        let before = std::mem::replace(&mut *state, State::Ended(status));
        drop(state);
        drop(before);
        self.outbound.close();
        self.over.notify_one();
        self.wake();
    }

    /// A server may answer without reading everything: a writer must not wait for it.
    fn close_where_nobody_takes(&self) {
        if !self.is_uploading.get() && matches!(*self.state.borrow(), State::Open(_)) {
            self.outbound.close();
        }
    }

    /// Both sides end a call at its deadline. If the server does so first, that looks like a cancellation or a broken stream.
    fn at_the_deadline(&self, status: Status) -> Status {
        let is_over = self
            .deadline
            .is_some_and(|deadline| Instant::now() >= deadline);
        match status.code {
            Code::CANCELLED | Code::INTERNAL | Code::UNAVAILABLE | Code::UNKNOWN if is_over => {
                Status::new(Code::DEADLINE_EXCEEDED, "the deadline has passed")
            }
            _ => status,
        }
    }

    fn wake(&self) {
        if let Some(waker) = self.reader.borrow_mut().take() {
            waker.wake();
        }
    }
}

/// The status for a response that is not gRPC, by doc/http-grpc-status-mapping.md of grpc/grpc.
fn of_http(status: StatusCode) -> Status {
    let code = match status.as_u16() {
        400 => Code::INTERNAL,
        401 => Code::UNAUTHENTICATED,
        403 => Code::PERMISSION_DENIED,
        404 => Code::UNIMPLEMENTED,
        429 | 502 | 503 | 504 => Code::UNAVAILABLE,
        _ => Code::UNKNOWN,
    };
    Status::new(code, format!("the server answered with HTTP {status}"))
}

/// doc/PROTOCOL-HTTP2.md of grpc/grpc leaves the status open; other gRPC clients use this one.
fn no_grpc(kind: Option<&HeaderValue>) -> Status {
    let kind = kind.map_or(Cow::Borrowed("none"), |kind| {
        String::from_utf8_lossy(kind.as_bytes())
    });
    let message =
        format!("the server answered with the content type {kind}, which is not one of gRPC");
    Status::new(Code::UNKNOWN, message)
}

impl Uploader for Inner {
    fn outbound(&self) -> &Outbound {
        &self.outbound
    }

    fn upload_ended(&self) {
        self.is_uploading.set(false);
        self.close_where_nobody_takes();
    }
}
