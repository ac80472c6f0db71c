use std::future::{poll_fn, ready};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body as _, Incoming};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Request, Response, StatusCode, Version};
use tokio::time::Instant;

use super::call::{ACCEPT_ENCODING, Answer, Binding, Call, ENCODING, JSON, NewCall, Open};
use super::calls::{Calls, Shared};
use super::encoding::{ACCEPTED, Encoding};
use super::frame::Frame;
use super::inbound::Inbound;
use super::metadata::{
    DETAILS, answered_type, belongs_to_the_protocol, content_type, parse_timeout,
};
use super::refusal::{Refusal, RefusalReason, status_of};
use super::response_body::ResponseBody;
use super::status::{Code, Status};
use super::transcoding::{Found, http_status, report};
use super::web::Protocol;
use crate::http::{Body, Peer, Service, ServiceFuture};
use crate::server::Arrival;

/// Fields of the protocol that a page of another origin may read.
const EXPOSED: &str = "grpc-status,grpc-message,grpc-status-details-bin";
const TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
/// Bytes of a refused call that are discarded, and how long that may take.
const DISCARDED: usize = 64 << 10;
const DISCARD_TIMEOUT: Duration = Duration::from_millis(100);
/// Seconds that a browser may cache a preflight response.
const PREFLIGHT_AGE: HeaderValue = HeaderValue::from_static("86400");

impl Service for Calls {
    fn takes(&self, request: &Request<Incoming>) -> bool {
        self.takes_protocol(Protocol::of(content_type(request.headers())), request)
    }

    fn write_timeout(&self) -> Option<Duration> {
        self.shared.limits.write_timeout
    }

    fn call(&self, request: Request<Incoming>, peer: Rc<Peer>) -> ServiceFuture {
        let fields = Fields::of(request.headers());
        self.call_with(fields, request, peer)
    }
}

/// The same on a server for gRPC alone: other requests get 415.
struct Exclusive(Calls);

impl Service for Exclusive {
    fn takes(&self, _: &Request<Incoming>) -> bool {
        true
    }

    fn write_timeout(&self) -> Option<Duration> {
        self.0.write_timeout()
    }

    fn call(&self, request: Request<Incoming>, peer: Rc<Peer>) -> ServiceFuture {
        let Self(calls) = self;
        let fields = Fields::of(request.headers());
        if calls.takes_protocol(fields.protocol, &request) {
            return calls.call_with(fields, request, peer);
        }
        let message = format!("{} {} is not gRPC", request.method(), request.uri().path());
        let admission = &calls.shared.admission;
        admission.add_refusal(RefusalReason::NotGrpc, peer.address, &message);
        let refusal = calls.refusal(fields.protocol, &request);
        let body = request.into_body();
        Box::pin(async move {
            discard(body).await;
            refusal
        })
    }
}

fn refusal(status: StatusCode, reason: &'static str) -> Response<Body> {
    let text = format!("{status}: {reason}\n");
    let mut response = Response::new(Body::from(Bytes::from(text)));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}

impl Calls {
    /// The service for a server that serves gRPC alone: other requests get 415.
    pub fn exclusive(&self) -> Rc<dyn Service> {
        Rc::new(Exclusive(self.clone()))
    }

    /// The answer to a request that calls no method.
    fn refusal(&self, protocol: Option<Protocol>, request: &Request<Incoming>) -> Response<Body> {
        let routes = &self.shared.routes;
        if routes.is_empty() || !matches!(protocol, Some(Protocol::Json) | None) {
            return refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, "this is a gRPC server");
        }
        let verbs = routes.verbs(request.uri().path());
        if verbs.is_empty() {
            return refusal(StatusCode::NOT_FOUND, "no method has this path");
        }
        let reason = "the methods of this path have other HTTP methods";
        let mut response = refusal(StatusCode::METHOD_NOT_ALLOWED, reason);
        if let Ok(allow) = HeaderValue::try_from(verbs) {
            response.headers_mut().insert(header::ALLOW, allow);
        }
        response
    }

    fn takes_protocol(&self, protocol: Option<Protocol>, request: &Request<Incoming>) -> bool {
        match protocol {
            Some(Protocol::Grpc) => request.version() == Version::HTTP_2,
            Some(Protocol::Web | Protocol::WebText) => true,
            Some(Protocol::Json) | None => {
                let routes = &self.shared.routes;
                let path = request.uri().path();
                routes.find(request.method(), path).is_some() || self.is_preflight(request)
            }
        }
    }

    fn call_with(
        &self,
        mut fields: Fields,
        request: Request<Incoming>,
        peer: Rc<Peer>,
    ) -> ServiceFuture {
        let origin = fields.origin.take();
        let allowed = origin.filter(|origin| self.shared.allows(origin));
        let (head, body) = request.into_parts();
        let answer = answer(&self.shared, head, &fields, body, peer);
        match allowed {
            None => answer,
            Some(origin) => Box::pin(async move {
                let mut response = answer.await;
                share(&mut response, origin);
                response
            }),
        }
    }

    /// Whether the request is a CORS preflight for a method.
    fn is_preflight(&self, request: &Request<Incoming>) -> bool {
        request.method() == Method::OPTIONS
            && request.headers().contains_key(header::ORIGIN)
            && !self.shared.verbs(request.uri().path()).is_empty()
    }
}

impl Shared {
    /// The HTTP methods of a path, comma-separated; empty for an unknown path.
    fn verbs(&self, path: &str) -> String {
        match self.methods.contains_key(path) {
            true => "POST".to_owned(),
            false => self.routes.verbs(path),
        }
    }

    fn allows(&self, origin: &HeaderValue) -> bool {
        let origins = self.limits.web_origins.iter();
        let mut origins = origins.map(String::as_bytes);
        origins.any(|allowed| allowed == b"*" || allowed == origin.as_bytes())
    }
}

/// Whether the fields of an OPTIONS request make it a CORS preflight (Fetch §3.2.2), also for a path that is bound to OPTIONS.
fn asks_for_permission(headers: &HeaderMap) -> bool {
    headers.contains_key(header::ORIGIN)
        && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

fn preflight(asked: &HeaderMap, verbs: String) -> Response<Body> {
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    if let Ok(verbs) = HeaderValue::try_from(verbs) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, verbs);
    }
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, PREFLIGHT_AGE);
    if let Some(names) = asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
    }
    response
}

/// Lets a page of another origin read the response with its metadata.
fn share(response: &mut Response<Body>, origin: HeaderValue) {
    let headers = response.headers_mut();
    let mut exposed = EXPOSED.to_owned();
    // A page reads no field without it but the few that Fetch names (CORS-safelisted response-header names).
    for name in headers.keys().map(HeaderName::as_str) {
        let is_new = name != DETAILS && !name.starts_with("access-control-");
        if is_new && !belongs_to_the_protocol(name) {
            exposed.push(',');
            exposed.push_str(name);
        }
    }
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    if let Ok(exposed) = HeaderValue::try_from(exposed) {
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
    headers.append(header::VARY, HeaderValue::from_static("origin"));
}

/// The fields of a request that decide how it is answered.
struct Fields {
    protocol: Option<Protocol>,
    origin: Option<HeaderValue>,
    encoding: Option<HeaderValue>,
    /// `Err`: it is malformed.
    timeout: Option<Result<Duration, ()>>,
}

impl Fields {
    /// Finds them in one pass: looking up each by its name would cost several times as much.
    fn of(headers: &HeaderMap) -> Self {
        let mut content_type: &[u8] = b"";
        let mut fields = Self {
            protocol: None,
            origin: None,
            encoding: None,
            timeout: None,
        };
        for (name, value) in headers {
            if *name == header::CONTENT_TYPE {
                if content_type.is_empty() {
                    content_type = value.as_bytes();
                }
            } else if *name == header::ORIGIN {
                fields.origin.get_or_insert_with(|| value.clone());
            } else if *name == ENCODING {
                fields.encoding.get_or_insert_with(|| value.clone());
            } else if *name == TIMEOUT {
                let parsed = || parse_timeout(value.as_bytes()).ok_or(());
                fields.timeout.get_or_insert_with(parsed);
            }
        }
        fields.protocol = Protocol::of(content_type);
        fields
    }
}

fn answer(
    shared: &Rc<Shared>,
    head: Parts,
    fields: &Fields,
    body: Incoming,
    peer: Rc<Peer>,
) -> ServiceFuture {
    let protocol = fields.protocol;
    let found = match protocol {
        Some(_) => None,
        None => shared.routes.find(&head.method, head.uri.path()),
    };
    match head.method {
        Method::OPTIONS if found.is_none() || asks_for_permission(&head.headers) => {
            let verbs = shared.verbs(head.uri.path());
            return Box::pin(ready(preflight(&head.headers, verbs)));
        }
        _ if found.is_some() => {}
        Method::POST => {}
        _ => {
            let message = format!("gRPC is called by POST, not by {}", head.method);
            shared
                .admission
                .add_refusal(RefusalReason::HttpMethod, peer.address, &message);
            return Box::pin(async move {
                discard(body).await;
                not_allowed()
            });
        }
    }
    let admitted = match protocol {
        Some(protocol) => admit(shared, head.uri.path(), protocol, fields),
        None => admit_json(shared, &head, found, body.is_end_stream(), fields),
    };
    let opened = match admitted {
        Ok(admitted) => {
            let step = match admitted.client_streams {
                true => Step::Complete,
                false => Step::Read(None),
            };
            let opened = open(shared, admitted, head, body, peer);
            opened.map(|open| Exchange {
                open: Some(open),
                step,
            })
        }
        Err(Refusal { reason, status }) => {
            shared
                .admission
                .add_refusal(reason, peer.address, &status.message);
            Err(Box::new((status, head, body)))
        }
    };
    let (status, head, body) = match opened {
        Ok(exchange) => return Box::pin(exchange),
        Err(refused) => *refused,
    };
    let refusal = match protocol {
        Some(_) => refused(&status, answered_type(&head.headers)),
        None => refused_json(&status),
    };
    Box::pin(async move {
        discard(body).await;
        refusal
    })
}

/// Discards the beginning of a refused request: some clients read a response only after sending everything.
async fn discard(mut body: Incoming) {
    let reading = async {
        let mut bytes = 0;
        while bytes < DISCARDED
            && let Some(Ok(frame)) =
                poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await
        {
            bytes += frame.data_ref().map_or(0, Bytes::len);
        }
    };
    let _ = tokio::time::timeout(DISCARD_TIMEOUT, reading).await;
}

fn not_allowed() -> Response<Body> {
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    let post = HeaderValue::from_static("POST");
    response.headers_mut().insert(header::ALLOW, post);
    response
}

/// The response to a call that is refused before it is admitted.
fn refused(status: &Status, kind: HeaderValue) -> Response<Body> {
    let mut response = Response::new(Body::Empty);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, kind);
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(ACCEPTED));
    status.write(headers);
    response
}

fn refused_json(status: &Status) -> Response<Body> {
    let http = http_status(status.code);
    let report = Bytes::from(report(http, status, "[]"));
    let mut response = Response::new(Body::from(report));
    *response.status_mut() = http;
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    response
}

/// The parsed head of a call.
struct Admitted {
    /// Its index for the code that runs handlers.
    method: usize,
    served: usize,
    client_streams: bool,
    protocol: Protocol,
    binding: Option<Box<Binding>>,
    encoding: Option<Encoding>,
    deadline: Option<Instant>,
}

fn admit(
    shared: &Shared,
    path: &str,
    protocol: Protocol,
    fields: &Fields,
) -> Result<Admitted, Refusal> {
    let Some(method) = shared.methods.get(path).copied() else {
        let message = format!("there is no method {path}");
        return Err(unknown_method(message));
    };
    Ok(Admitted {
        method,
        served: method,
        client_streams: shared.served[method].client_streams,
        protocol,
        binding: None,
        encoding: encoding(fields.encoding.as_ref()).map_err(Refusal::malformed)?,
        deadline: deadline(shared, method, fields.timeout).map_err(Refusal::malformed)?,
    })
}

fn admit_json(
    shared: &Shared,
    head: &Parts,
    found: Option<Found>,
    is_empty: bool,
    fields: &Fields,
) -> Result<Admitted, Refusal> {
    let Some(found) = found else {
        let message = format!("there is no method at {}", head.uri.path());
        return Err(unknown_method(message));
    };
    let served = &shared.served[found.method];
    let wrong = |what: &str| {
        let message = format!("{} {what}", served.path);
        Refusal::malformed(Status::new(Code::INVALID_ARGUMENT, message))
    };
    if may_be_cross_site(head, &found) {
        let what = "takes requests with the content type application/json, without a body too, or with the field x-requested-with";
        let reason = RefusalReason::CrossSite;
        return Err(Refusal {
            reason,
            ..wrong(what)
        });
    }
    if !is_empty && head.method != Method::GET && !is_json(content_type(&head.headers)) {
        return Err(wrong("takes a body of the content type application/json"));
    }
    if head.headers.contains_key(header::CONTENT_ENCODING) {
        return Err(wrong("takes a body that is not compressed"));
    }
    if served.client_streams {
        let message = format!("{} takes a stream: call it by gRPC", served.path);
        return Err(unknown_method(message));
    }
    Ok(Admitted {
        method: shared.served.len() + found.rule,
        served: found.method,
        client_streams: false,
        protocol: Protocol::Json,
        deadline: deadline(shared, found.method, fields.timeout).map_err(Refusal::malformed)?,
        encoding: None,
        binding: Some(Box::new(Binding {
            path: Rc::clone(&served.path),
            variables: found.variables,
            server_streams: found.server_streams,
        })),
    })
}

fn unknown_method(message: String) -> Refusal {
    let status = Status::new(Code::UNIMPLEMENTED, message);
    let reason = RefusalReason::UnknownMethod;
    Refusal { reason, status }
}

/// Whether a browser could have sent the request for a page of another origin without a preflight, with the cookies of the user.
///
/// A browser sends no preflight before GET, HEAD and POST with nothing but safelisted fields (Fetch §4.10, §2.2.2), of which the content
/// type may be that of a form, `text/plain` or absent. It sends one before every other method, another content type, and a field such
/// as `x-requested-with`; [`preflight`] allows only pages of [`Limits::web_origins`](super::Limits::web_origins). A path that is
/// bound to GET changes nothing (RFC 9110 §9.2.1); one bound to every method may.
fn may_be_cross_site(head: &Parts, found: &Found) -> bool {
    let changes_something = match head.method {
        Method::POST => true,
        Method::GET | Method::HEAD => found.takes_any_verb,
        _ => false,
    };
    changes_something
        && !is_json(content_type(&head.headers))
        && !head.headers.contains_key("x-requested-with")
}

fn is_json(content_type: &[u8]) -> bool {
    let essence = content_type.split(|byte| *byte == b';').next();
    let essence = essence
        .unwrap_or_default()
        .trim_ascii()
        .to_ascii_lowercase();
    essence == b"application/json" || essence.ends_with(b"+json")
}

/// The client's deadline, or the server's limit if that is earlier.
fn deadline(
    shared: &Shared,
    method: usize,
    asked: Option<Result<Duration, ()>>,
) -> Result<Option<Instant>, Status> {
    let asked = match asked {
        None => None,
        Some(Ok(timeout)) => Some(timeout),
        Some(Err(())) => return Err(Status::internal("the grpc-timeout is malformed")),
    };
    let allowed = shared.served[method].timeout;
    let timeout = asked.into_iter().chain(allowed).min();
    // A deadline beyond the range of the clock is none.
    Ok(timeout.and_then(|timeout| Instant::now().checked_add(timeout)))
}

/// The status of a refused call, and its request.
type Refused = (Status, Parts, Incoming);

/// # Errors
/// There is no room for the call: its status, and the request.
fn open(
    shared: &Rc<Shared>,
    admitted: Admitted,
    head: Parts,
    body: Incoming,
    peer: Rc<Peer>,
) -> Result<Open, Box<Refused>> {
    let connection = match shared.connection(&peer) {
        Ok(connection) => connection,
        Err(refusal) => return Err(Box::new((status_of(refusal), head, body))),
    };
    let served = &shared.served[admitted.served];
    let arrival = Arrival {
        lane: served.lane as usize,
        concurrency: served.concurrency.clone(),
        deadline: admitted.deadline,
        ..Arrival::default()
    };
    let make = |id, (head, body): (Parts, Incoming)| {
        let protocol = admitted.protocol;
        let is_text = protocol == Protocol::WebText;
        let limit = served.message_bytes;
        let inbound = match protocol {
            Protocol::Json => Inbound::whole(body, limit, stream_error),
            _ => Inbound::new(body, admitted.encoding, is_text, limit, stream_error),
        };
        let new_call = NewCall {
            lane: served.lane,
            timer: shared.timer(admitted.served),
            request_timeout: shared.limits.request_timeout,
            metadata_bytes: shared.limits.metadata_bytes,
            message_bytes: limit,
            call_stats: Rc::clone(&shared.call_stats),
            admission: Rc::clone(&shared.admission),
            method: admitted.method,
            head,
            binding: admitted.binding,
            protocol,
            peer,
            deadline: admitted.deadline,
            inbound,
        };
        Call::new(id, new_call)
    };
    match connection.admit(arrival, (head, body), make) {
        Ok(guard) => Ok(Open(guard)),
        Err((refusal, (head, body))) => Err(Box::new((status_of(refusal), head, body))),
    }
}

fn stream_error(error: &hyper::Error) -> Status {
    let message = format!("the client broke the stream off: {error}");
    Status::new(Code::CANCELLED, message)
}

fn encoding(name: Option<&HeaderValue>) -> Result<Option<Encoding>, Status> {
    let Some(name) = name else {
        return Ok(None);
    };
    let name = String::from_utf8_lossy(name.as_bytes());
    match Encoding::of_name(&name) {
        None if name != "identity" => {
            let message = format!("the grpc-encoding \"{name}\" is not known here");
            Err(Status::new(Code::UNIMPLEMENTED, message))
        }
        encoding => Ok(encoding),
    }
}

/// The future from the head of a call to the head of its response. Dropped when the client disconnects.
struct Exchange {
    /// `None` once the response has begun.
    open: Option<Open>,
    step: Step,
}

enum Step {
    /// The message is being read.
    Read(Option<Frame>),
    /// The request is complete for the server core.
    Complete,
    Wait,
}

impl Exchange {
    fn advance(&mut self, context: &mut Context<'_>) {
        let Some(open) = &self.open else {
            return;
        };
        let call = open.call();
        let admission = open.admission();
        if let Step::Read(first) = &mut self.step {
            // It may have been refused meanwhile.
            if !call.is_open() {
                self.step = Step::Wait;
                return;
            }
            let reserve = |bytes| admission.reserve(call.id, bytes);
            let read = call
                .inbound
                .borrow_mut()
                .poll_only_frame(context, first, reserve);
            let Poll::Ready(read) = read else {
                return call.watch_upload();
            };
            self.step = Step::Wait;
            match read {
                Ok(message) => {
                    *call.message.borrow_mut() = Some(message);
                    self.step = Step::Complete;
                }
                Err(status) => match RefusalReason::of_reading(&status) {
                    Some(reason) => call.refuse(reason, &status),
                    None => drop(call.finish(&status, HeaderMap::new())),
                },
            }
        }
        if matches!(self.step, Step::Complete) {
            self.step = Step::Wait;
            admission.complete(call.id);
        }
    }

    fn answer(&mut self) -> Option<Response<Body>> {
        let call = self.open.as_ref()?.call();
        if !call.is_ready() {
            return None;
        }
        let answer = call.answer.borrow_mut().take()?;
        let open = self.open.take()?;
        let (status, head, body) = match answer {
            Answer::Stream(head) => (
                StatusCode::OK,
                head,
                Body::Other(Box::pin(ResponseBody(open))),
            ),
            Answer::Only(head) => (StatusCode::OK, head, Body::Empty),
            Answer::Failure(failure) => {
                let (status, head, body) = *failure;
                (status, head, Body::from(body))
            }
        };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = head;
        Some(response)
    }
}

impl Future for Exchange {
    type Output = Response<Body>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Response<Body>> {
        let exchange = self.get_mut();
        if !matches!(exchange.step, Step::Wait) {
            exchange.advance(context);
        }
        match exchange.answer() {
            Some(response) => Poll::Ready(response),
            None => {
                if let Some(open) = &exchange.open {
                    open.call().waker.set(Some(context.waker().clone()));
                }
                Poll::Pending
            }
        }
    }
}
