use std::future::{poll_fn, ready};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body as _, Incoming};
use hyper::header::{self, HeaderValue};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Request, Response, StatusCode, Version};
use tokio::time::Instant;

use super::call::{ACCEPT_ENCODING, Answer, Call, ENCODING, Opening};
use super::calls::{Calls, Open, Shared};
use super::encoding::{ACCEPTED, Encoding};
use super::inbound::Inbound;
use super::metadata::{content_type, timeout};
use super::reply::Reply;
use super::status::{Code, Status};
use super::web::Protocol;
use crate::http::{Body, Peer, Service, ServiceFuture};

/// What a page may read of an answer to grpc-web.
const EXPOSED: HeaderValue =
    HeaderValue::from_static("grpc-status,grpc-message,grpc-status-details-bin");
/// Bytes of a refused call that are read, and how long they may take to arrive.
const DISCARDED: usize = 64 << 10;
const PATIENCE: Duration = Duration::from_millis(100);
/// Seconds a browser may remember that it may call.
const PREFLIGHT_AGE: HeaderValue = HeaderValue::from_static("86400");

impl Service for Calls {
    fn takes(&self, request: &Request<Incoming>) -> bool {
        match Protocol::of(content_type(request.headers())) {
            Some(Protocol::Grpc) => request.version() == Version::HTTP_2,
            Some(Protocol::Web | Protocol::WebText) => true,
            None => self.is_preflight(request),
        }
    }

    fn call(&self, request: Request<Incoming>, peer: Rc<Peer>) -> ServiceFuture {
        let (head, body) = request.into_parts();
        let origin = head.headers.get(header::ORIGIN);
        let allowed = origin.filter(|origin| self.shared.allows(origin)).cloned();
        let answer = answer(&self.shared, head, body, peer);
        match allowed {
            None => answer,
            Some(origin) => Box::pin(async move {
                let mut response = answer.await;
                share(&mut response, origin);
                response
            }),
        }
    }
}

impl Calls {
    /// A browser asks whether a page may call.
    fn is_preflight(&self, request: &Request<Incoming>) -> bool {
        request.method() == Method::OPTIONS
            && request.headers().contains_key(header::ORIGIN)
            && self.shared.methods.contains_key(request.uri().path())
    }
}

impl Shared {
    fn allows(&self, origin: &HeaderValue) -> bool {
        let origins = self.limits.web_origins.iter();
        let mut origins = origins.map(String::as_bytes);
        origins.any(|allowed| allowed == b"*" || allowed == origin.as_bytes())
    }
}

fn preflight(asked: &HeaderMap) -> Response<Body> {
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static("POST"),
    );
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, PREFLIGHT_AGE);
    if let Some(names) = asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
    }
    response
}

fn share(response: &mut Response<Body>, origin: HeaderValue) {
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    headers.append(header::VARY, HeaderValue::from_static("origin"));
}

fn answer(shared: &Rc<Shared>, head: Parts, body: Incoming, peer: Rc<Peer>) -> ServiceFuture {
    match head.method {
        Method::POST => {}
        Method::OPTIONS => return Box::pin(ready(preflight(&head.headers))),
        _ => return Box::pin(ready(not_allowed())),
    }
    let admitted = match admit(shared, &head) {
        Ok(admitted) => admitted,
        Err(status) => {
            let kind = head.headers.get(header::CONTENT_TYPE).cloned();
            return Box::pin(async move {
                discard(body).await;
                refused(&status, kind)
            });
        }
    };
    let step = match admitted.client_streams {
        true => Step::Queue,
        false => Step::Read(None),
    };
    let open = open(shared, admitted, head, body, peer);
    Box::pin(Exchange {
        open: Some(open),
        step,
    })
}

/// Reads a little of what nobody wants: some clients take an answer only when they have sent all they had.
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
    let _ = tokio::time::timeout(PATIENCE, reading).await;
}

fn not_allowed() -> Response<Body> {
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    let post = HeaderValue::from_static("POST");
    response.headers_mut().insert(header::ALLOW, post);
    response
}

/// A status before there is a call.
fn refused(status: &Status, kind: Option<HeaderValue>) -> Response<Body> {
    let mut response = Response::new(Body::Empty);
    let headers = response.headers_mut();
    if let Some(kind) = kind {
        headers.insert(header::CONTENT_TYPE, kind);
    }
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(ACCEPTED));
    status.write(headers);
    response
}

/// What the head of a call says.
struct Admitted {
    method: usize,
    client_streams: bool,
    encoding: Option<Encoding>,
    deadline: Option<Instant>,
}

fn admit(shared: &Shared, head: &Parts) -> Result<Admitted, Status> {
    let path = head.uri.path();
    let Some((method, client_streams)) = shared.methods.get(path).copied() else {
        let message = format!("there is no method {path}");
        return Err(Status::new(Code::UNIMPLEMENTED, message));
    };
    let deadline = match timeout(&head.headers) {
        None => None,
        Some(Ok(timeout)) => Some(Instant::now() + timeout),
        Some(Err(())) => return Err(Status::internal("the grpc-timeout is malformed")),
    };
    Ok(Admitted {
        method,
        client_streams,
        encoding: encoding(&head.headers)?,
        deadline,
    })
}

fn open(
    shared: &Rc<Shared>,
    admitted: Admitted,
    head: Parts,
    body: Incoming,
    peer: Rc<Peer>,
) -> Open {
    let protocol = Protocol::of(content_type(&head.headers)).unwrap_or(Protocol::Grpc);
    let is_text = protocol == Protocol::WebText;
    let limit = shared.limits.message_bytes;
    let opening = Opening {
        stopwatch: shared.stopwatch(admitted.method, head.uri.path()),
        method: admitted.method,
        head,
        protocol,
        peer,
        deadline: admitted.deadline,
        inbound: Inbound::new(body, admitted.encoding, is_text, limit, broken_off),
    };
    let call = shared
        .calls
        .borrow_mut()
        .insert(|id| Call::new(id, opening));
    if let Some(deadline) = call.deadline {
        shared.deadlines.insert(deadline, call.id);
    }
    let shared = Rc::clone(shared);
    Open { shared, call }
}

fn broken_off(error: &hyper::Error) -> Status {
    let message = format!("the client broke the stream off: {error}");
    Status::new(Code::CANCELLED, message)
}

fn encoding(headers: &HeaderMap) -> Result<Option<Encoding>, Status> {
    let Some(name) = headers.get(ENCODING).map(HeaderValue::as_bytes) else {
        return Ok(None);
    };
    let name = String::from_utf8_lossy(name);
    match Encoding::of_name(&name) {
        None if name != "identity" => {
            let message = format!("the grpc-encoding \"{name}\" is not known here");
            Err(Status::new(Code::UNIMPLEMENTED, message))
        }
        encoding => Ok(encoding),
    }
}

/// From the head of a call to the head of its answer. Dropped when the client goes away.
struct Exchange {
    /// `None` once the answer has begun.
    open: Option<Open>,
    step: Step,
}

enum Step {
    /// The only message has to arrive first.
    Read(Option<Bytes>),
    Queue,
    Wait,
}

impl Exchange {
    fn advance(&mut self, context: &mut Context<'_>) {
        let Some(open) = &self.open else {
            return;
        };
        let call = &open.call;
        if let Step::Read(first) = &mut self.step {
            let read = call.inbound.borrow_mut().poll_only_message(context, first);
            match read {
                Poll::Pending => return,
                Poll::Ready(Ok(message)) => {
                    *call.message.borrow_mut() = Some(message);
                    self.step = Step::Queue;
                }
                Poll::Ready(Err(status)) => {
                    call.finish(&status, HeaderMap::new());
                    self.step = Step::Wait;
                }
            }
        }
        if matches!(self.step, Step::Queue) {
            open.shared.queue(call);
            self.step = Step::Wait;
        }
    }

    fn answer(&mut self) -> Option<Response<Body>> {
        let answer = self.open.as_ref()?.call.answer.borrow_mut().take()?;
        let open = self.open.take()?;
        let (head, body) = match answer {
            Answer::Stream(head) => (head, Body::Other(Box::pin(Reply(open)))),
            Answer::Only(head) => (head, Body::Empty),
        };
        let mut response = Response::new(body);
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
                    open.call.waker.set(Some(context.waker().clone()));
                }
                Poll::Pending
            }
        }
    }
}
