use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use hyper::body::{Body as _, Incoming};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Version};

use super::admission::Permit;
use super::body::Body;
use super::call::Call;
use super::connection::{Connection, InFlight};
use super::error_response::{close, last, plain, unread, vet};
use super::refusals::Cause;
use super::request_body::{BodyError, RequestBody};
use super::service::ServiceFuture;
use super::shared::Shared;
use super::tracked_body::TrackedBody;

pub(super) fn dispatch(connection: Rc<Connection>, mut request: Request<Incoming>) -> Dispatch {
    let in_flight = connection.begin(request.body());
    let is_http2 = request.version() == Version::HTTP_2;
    let is_head = request.method() == Method::HEAD;
    let is_connect = is_http2 && request.method() == Method::CONNECT;
    let vetted = vet(&mut request, connection.shared.limits.header_count);
    let service = connection.shared.service_for(&request);
    let is_timed = is_http2 && service.is_none();
    let answer = match (vetted, service) {
        (Err(status), _) => refuse(&connection, status),
        (Ok(_), Some(service)) => Answer::Future(service.call(request, connection.peer())),
        (Ok(expects_continue), None) => answer(&connection, request, expects_continue),
    };
    Dispatch {
        answer,
        is_head,
        is_connect,
        is_http2,
        is_timed,
        in_flight: Some(in_flight),
        connection,
    }
}

/// The life of a request, as a future of its connection: dropped when the client goes away. hyper and Tokio move it several
/// times before it is polled, so it is small.
pub(super) struct Dispatch {
    answer: Answer,
    is_head: bool,
    is_connect: bool,
    is_http2: bool,
    /// A consumer of gRPC may leave its messages where they are for as long as it likes.
    is_timed: bool,
    /// `None` once it is answered.
    in_flight: Option<InFlight>,
    connection: Rc<Connection>,
}

enum Answer {
    /// Of a handler that has been asked. Most requests come to that at once, and need no future of their own.
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
        let handling = self.get_mut();
        let mut response = ready!(handling.answer.poll(context));
        let connection = &handling.connection;
        frame(&mut response, handling.is_head);
        if handling.is_http2 && handling.is_head {
            without_body(&mut response);
        }
        if matches!(response.body(), Body::Conversation(_)) {
            connection.leave_http(std::mem::replace(response.body_mut(), Body::Empty));
        } else if handling.is_connect && response.status().is_success() {
            // To the client it would mean that its stream is a tunnel now.
            response = plain(StatusCode::NOT_IMPLEMENTED);
        } else if connection.must_close() {
            close(&mut response);
        }
        if handling.is_http2 {
            let shared = &connection.shared;
            shared.date.put(response.headers_mut(), shared.clock.get());
        }
        let in_flight = handling.in_flight.take();
        let is_timed = handling.is_timed;
        Poll::Ready(Ok(response.map(|body| {
            let sending = TrackedBody::new(body, in_flight);
            match is_timed {
                true => sending.timed(),
                false => sending,
            }
        })))
    }
}

/// Where an answer ends is not for a handler to say (RFC 9112 §6): what its fields say and is not so, the client would take for the
/// beginning of the next answer. An answer to HEAD may have the length of a body that nobody has made.
fn frame(response: &mut Response<Body>, is_head: bool) {
    let length = match response.status() {
        StatusCode::RESET_CONTENT => {
            // RFC 9110 §15.3.6
            *response.body_mut() = Body::Empty;
            Some(0)
        }
        _ => response.body().size_hint().exact(),
    };
    let headers = response.headers_mut();
    // Looking up each of them by its name would cost several times as much.
    let says_so =
        |name: &HeaderName| *name == header::CONTENT_LENGTH || *name == header::TRANSFER_ENCODING;
    if !headers.keys().any(says_so) {
        return;
    }
    headers.remove(header::TRANSFER_ENCODING);
    if length.is_some_and(|length| length > 0 || !is_head) {
        // hyper writes the right one.
        headers.remove(header::CONTENT_LENGTH);
    }
}

/// On HTTP/2 hyper would send the body of an answer to HEAD.
fn without_body(response: &mut Response<Body>) {
    let body = std::mem::replace(response.body_mut(), Body::Empty);
    if let Some(length) = body.size_hint().exact() {
        let headers = response.headers_mut();
        headers
            .entry(header::CONTENT_LENGTH)
            .or_insert_with(|| HeaderValue::from(length));
    }
}

/// The answer that no handler sees.
fn refuse(connection: &Connection, status: StatusCode) -> Answer {
    let cause = match status {
        StatusCode::PAYLOAD_TOO_LARGE => Cause::BodyTooLarge,
        StatusCode::SERVICE_UNAVAILABLE => Cause::Overload,
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => Cause::HeaderTooLarge,
        _ => Cause::BadRequest,
    };
    connection.refused(cause, "");
    Answer::ready(last(status))
}

fn answer(connection: &Connection, request: Request<Incoming>, expects_continue: bool) -> Answer {
    let shared = &connection.shared;
    let Ok(permit) = connection.place.admit() else {
        return refuse(connection, StatusCode::SERVICE_UNAVAILABLE);
    };
    let (head, incoming) = request.into_parts();
    let body = body_of(shared, incoming, head.version);
    if body.is_declared_too_large() {
        body.refuse();
        return refuse(connection, StatusCode::PAYLOAD_TOO_LARGE);
    }
    let is_reading = !expects_continue && body.is_small();
    let call = shared
        .calls
        .borrow_mut()
        .insert(|id| Call::new(id, head, body, connection.peer(), shared));
    call.is_reading.set(is_reading);
    let waiting = Waiting {
        shared: Rc::clone(shared),
        call,
        permit,
    };
    if !is_reading {
        waiting.queue();
    }
    Answer::Waiting(waiting)
}

fn body_of(shared: &Shared, incoming: Incoming, version: Version) -> Rc<RequestBody> {
    if incoming.is_end_stream() {
        return Rc::clone(&shared.no_body);
    }
    let clock = Rc::clone(&shared.clock);
    let is_http2 = version == Version::HTTP_2;
    let limit = shared.limits.body_bytes;
    Rc::new(RequestBody::new(incoming, is_http2, limit, clock))
}

/// A request in the registry, from its arrival to its answer: small bodies are read, then it is queued, then its handler answers.
struct Waiting {
    shared: Rc<Shared>,
    call: Rc<Call>,
    /// Dropped with this, unless a handler has it by then.
    permit: Rc<Permit>,
}

impl Waiting {
    fn queue(&self) {
        self.permit.queue(self.call.id);
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Response<Body>> {
        if let Some(response) = self.call.answer.borrow_mut().take() {
            return Poll::Ready(self.begin(response));
        }
        self.call.waker.set(Some(context.waker().clone()));
        if self.call.is_reading.get() {
            let read = ready!(self.call.body.poll_whole(context));
            self.call.is_reading.set(false);
            match read {
                Ok(_) => self.queue(),
                Err(error) => return Poll::Ready(self.refuse_unread(&error)),
            }
        }
        Poll::Pending
    }

    fn begin(&self, mut response: Response<Body>) -> Response<Body> {
        if let Body::Stream(stream) = response.body_mut() {
            let id = self.call.id;
            let events = stream.watched_by(&self.shared, id);
            self.shared.stream_began(id, events);
        }
        response
    }

    fn refuse_unread(&self, error: &BodyError) -> Response<Body> {
        let cause = match error {
            BodyError::TooLarge { .. } => Cause::BodyTooLarge,
            BodyError::TimedOut { .. } | BodyError::TooSlow { .. } => Cause::BodyTimeout,
            BodyError::Incomplete { .. } | BodyError::Taken => Cause::BodyIncomplete,
        };
        let peer = self.call.peer().address;
        self.shared.refusals.add(cause, peer, &error.to_string());
        unread(error)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.shared.end(&self.call);
    }
}
