use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use hyper::body::{Body as _, Incoming};
use hyper::ext::ReasonPhrase;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Version};

use super::body::Body;
use super::call::Call;
use super::connection::{AnswerKind, Connection, InFlight};
use super::context::Context as Server;
use super::error_response::{
    add_close, body_error_response, closing_response, text_response, unify_host, validate,
};
use super::refusal::RefusalReason;
use super::request_body::{BodyError, RequestBody};
use super::request_head::RequestHead;
use super::service::ServiceFuture;
use super::tracked_body::TrackedBody;
use super::websocket::drive_stream;
use crate::server::RequestGuard;

pub(super) fn dispatch(connection: Rc<Connection>, mut request: Request<Incoming>) -> Dispatch {
    let in_flight = connection.begin(request.body());
    if let Some(guard) = connection.resumed() {
        return Dispatch::of(guard, in_flight, connection);
    }
    let is_http2 = request.version() == Version::HTTP_2;
    let is_head = request.method() == Method::HEAD;
    let is_connect = is_http2 && request.method() == Method::CONNECT;
    let validated = validate(&request, connection.server.limits.header_count);
    let service = connection.server.service_for(&request);
    let kind = match service {
        None => AnswerKind::Http,
        Some(_) => AnswerKind::Service,
    };
    let answer = match (validated, service) {
        (Err(status), _) => refuse(&connection, status),
        (Ok(_), Some(service)) => Answer::Future(service.call(request, connection.peer())),
        (Ok(expects_continue), None) => match unify_host(&mut request) {
            Ok(()) => answer(&connection, request, expects_continue),
            Err(status) => refuse(&connection, status),
        },
    };
    Dispatch {
        answer,
        is_head,
        is_connect,
        is_http2,
        timed: is_http2.then_some(kind),
        in_flight: Some(in_flight),
        connection,
    }
}

/// The future of a response, dropped when the client disconnects. hyper and Tokio move it several times before it is polled, so it
/// is small.
pub(super) struct Dispatch {
    answer: Answer,
    is_head: bool,
    is_connect: bool,
    is_http2: bool,
    /// The write timeout that applies to the response.
    timed: Option<AnswerKind>,
    /// `None` once it is answered.
    in_flight: Option<InFlight>,
    connection: Rc<Connection>,
}

impl Dispatch {
    /// The response of a request that was handed out before hyper has read it.
    fn of(
        guard: RequestGuard<Call, RefusalReason>,
        in_flight: InFlight,
        connection: Rc<Connection>,
    ) -> Self {
        Self {
            answer: Answer::Waiting(Waiting {
                server: Rc::clone(&connection.server),
                guard: Some(guard),
                is_reading: false,
            }),
            is_head: false,
            is_connect: false,
            is_http2: false,
            timed: None,
            in_flight: Some(in_flight),
            connection,
        }
    }
}

enum Answer {
    /// A handler responds. Most requests reach that state at once and need no boxed future.
    Waiting(Waiting),
    Future(ServiceFuture),
    Given,
}

impl Answer {
    fn ready(response: Response<Body>) -> Self {
        Self::Future(Box::pin(std::future::ready(response)))
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Response<Body>> {
        let response = match self {
            Self::Waiting(waiting) => ready!(waiting.poll(context)),
            Self::Future(future) => ready!(future.as_mut().poll(context)),
            Self::Given => return Poll::Pending,
        };
        *self = Self::Given;
        Poll::Ready(response)
    }
}

impl Future for Dispatch {
    type Output = Result<Response<TrackedBody>, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let mut response = ready!(this.answer.poll(context));
        let connection = &this.connection;
        frame(&mut response, this.is_head);
        if this.is_http2 && this.is_head {
            without_body(&mut response);
        }
        if let Body::WebSocket(_) = response.body() {
            begin_websocket(
                connection,
                std::mem::replace(response.body_mut(), Body::Empty),
            );
        } else if this.is_connect && response.status().is_success() {
            // A successful response to CONNECT would turn the stream into a tunnel.
            response = text_response(StatusCode::NOT_IMPLEMENTED);
        } else if connection.must_close() {
            add_close(&mut response);
        }
        if this.is_http2 {
            let server = &connection.server;
            server.date.put(response.headers_mut(), server.clock.get());
        } else if response.status().canonical_reason().is_none() {
            // hyper would write `<none>`. The phrase may be empty (RFC 9112 §4).
            let phrase = ReasonPhrase::from_static(b"");
            response.extensions_mut().insert(phrase);
        }
        let in_flight = this.in_flight.take();
        let timed = this.timed;
        Poll::Ready(Ok(
            response.map(|body| TrackedBody::new(body, in_flight, timed))
        ))
    }
}

/// Removes framing fields that a handler has set (RFC 9112 §6): with a wrong length the client would take the rest of the body for the
/// next response. A response to HEAD may have the length of a body that was not made.
fn frame(response: &mut Response<Body>, is_head: bool) {
    let status = response.status();
    if status == StatusCode::RESET_CONTENT || has_no_length(status) {
        // RFC 9110 §6.4.1 and §15.3.6. hyper would send it on HTTP/2.
        *response.body_mut() = Body::Empty;
    }
    let length = response.body().size_hint().exact();
    let headers = response.headers_mut();
    if status == StatusCode::NO_CONTENT {
        headers.remove(header::CONTENT_LENGTH);
    }
    // One pass: looking up each field by its name would cost several times as much.
    let says_so =
        |name: &HeaderName| *name == header::CONTENT_LENGTH || *name == header::TRANSFER_ENCODING;
    if !headers.keys().any(says_so) {
        return;
    }
    headers.remove(header::TRANSFER_ENCODING);
    // That of a 304 is the length of the representation that the client has (§15.4.5).
    if status != StatusCode::NOT_MODIFIED && length.is_some_and(|length| length > 0 || !is_head) {
        // hyper writes the correct one.
        headers.remove(header::CONTENT_LENGTH);
    }
}

/// Whether a response with that status has no length of its own (§8.6).
fn has_no_length(status: StatusCode) -> bool {
    matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

/// Removes the body of a response to HEAD, which hyper would send on HTTP/2.
fn without_body(response: &mut Response<Body>) {
    let body = std::mem::replace(response.body_mut(), Body::Empty);
    if let Some(length) = body.size_hint().exact()
        && !has_no_length(response.status())
    {
        let headers = response.headers_mut();
        headers
            .entry(header::CONTENT_LENGTH)
            .or_insert_with(|| HeaderValue::from(length));
    }
}

/// Refuses a request before a handler sees it.
fn refuse(connection: &Connection, status: StatusCode) -> Answer {
    let reason = match status {
        StatusCode::PAYLOAD_TOO_LARGE => RefusalReason::BodyTooLarge,
        StatusCode::SERVICE_UNAVAILABLE => RefusalReason::Overload,
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => RefusalReason::HeaderTooLarge,
        _ => RefusalReason::BadRequest,
    };
    connection.refused(reason, "");
    Answer::ready(closing_response(status))
}

fn answer(connection: &Connection, request: Request<Incoming>, expects_continue: bool) -> Answer {
    let server = &connection.server;
    let (head, incoming) = request.into_parts();
    let body = body_of(server, incoming, head.version);
    if body.is_declared_too_large() {
        body.refuse();
        return refuse(connection, StatusCode::PAYLOAD_TOO_LARGE);
    }
    let is_reading = !expects_continue && body.is_small();
    let make = |id, ()| {
        let peer = connection.peer();
        let head = RequestHead::Parsed(Box::new(head));
        Call::new(id, head, body, peer, &server.admission, None)
    };
    let guard = connection.guard();
    let admitted = guard
        .as_ref()
        .and_then(|guard| guard.admit(server.arrival(), (), make).ok());
    let Some(guard) = admitted else {
        return Answer::ready(closing_response(StatusCode::SERVICE_UNAVAILABLE));
    };
    if !is_reading {
        server.admission.complete(guard.request().id);
    }
    Answer::Waiting(Waiting {
        server: Rc::clone(server),
        guard: Some(guard),
        is_reading,
    })
}

fn body_of(server: &Server, incoming: Incoming, version: Version) -> Rc<RequestBody> {
    if incoming.is_end_stream() {
        return Rc::clone(&server.no_body);
    }
    let clock = Rc::clone(&server.clock);
    let is_http2 = version == Version::HTTP_2;
    let limit = server.limits.body_bytes;
    Rc::new(RequestBody::new(incoming, is_http2, limit, clock))
}

/// A request from its arrival to the head of its answer: a small body is read, then the request is queued, then its handler answers.
struct Waiting {
    server: Rc<Server>,
    /// `None` once the head is there. The body of a streamed answer keeps the guard until it has been sent.
    guard: Option<RequestGuard<Call, RefusalReason>>,
    is_reading: bool,
}

impl Waiting {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Response<Body>> {
        let Some(guard) = &self.guard else {
            return Poll::Pending;
        };
        let call = guard.request();
        if let Some(response) = call.answer.take() {
            return Poll::Ready(self.begin(response));
        }
        call.waker.set(Some(context.waker().clone()));
        if !self.is_reading {
            return Poll::Pending;
        }
        let read = ready!(call.body.poll_whole(context));
        self.is_reading = false;
        match read {
            Ok(_) => {
                guard.admission().complete(call.id);
                Poll::Pending
            }
            Err(error) => {
                refuse_body(call, &error);
                match call.answer.take() {
                    Some(response) => Poll::Ready(self.begin(response)),
                    None => Poll::Pending,
                }
            }
        }
    }

    fn begin(&mut self, mut response: Response<Body>) -> Response<Body> {
        let guard = self.guard.take();
        if let Some(guard) = guard
            && let Body::Stream(stream) = response.body_mut()
        {
            let id = guard.request().id;
            self.server.begin_stream(id, stream);
            let server = Rc::clone(&self.server);
            stream.on_end(move |is_written| {
                server.end_stream(id, is_written);
                drop(guard);
            });
        }
        response
    }
}

fn refuse_body(call: &Call, error: &BodyError) {
    let reason = match error {
        BodyError::TooLarge { .. } => RefusalReason::BodyTooLarge,
        BodyError::TimedOut { .. } | BodyError::TooSlow { .. } => RefusalReason::BodyTimeout,
        BodyError::Incomplete { .. } | BodyError::Taken => RefusalReason::BodyIncomplete,
    };
    call.refuse(reason, &error.to_string(), body_error_response(error));
}

/// A WebSocket follows the answer, on its connection or on its stream.
fn begin_websocket(connection: &Rc<Connection>, body: Body) {
    if let Body::WebSocket(upgrade) = body
        && let Some(upgrade) = connection.begin_websocket(upgrade)
    {
        tokio::task::spawn_local(drive_stream(Rc::clone(connection), upgrade));
    }
}
