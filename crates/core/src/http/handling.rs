use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use hyper::body::{Body as _, Incoming};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Version};

use super::body::Body;
use super::call::Call;
use super::connection::{Connection, InFlight};
use super::refusal::{close, last, plain, unread, vet};
use super::request_body::RequestBody;
use super::sending::Sending;
use super::service::ServiceFuture;
use super::shared::Shared;

pub(super) fn handle(connection: Rc<Connection>, request: Request<Incoming>) -> Handling {
    let in_flight = connection.begin(request.body());
    let is_http2 = request.version() == Version::HTTP_2;
    let is_head = request.method() == Method::HEAD;
    let is_connect = is_http2 && request.method() == Method::CONNECT;
    let service = connection.shared.service_for(&request);
    let is_timed = is_http2 && service.is_none();
    let answer = match service {
        Some(service) => Answer::Future(service.call(request, connection.peer())),
        None => answer(&connection, request),
    };
    Handling {
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
pub(super) struct Handling {
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

impl Future for Handling {
    type Output = Result<Response<Sending>, Infallible>;

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
            let sending = Sending::new(body, in_flight);
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

fn answer(connection: &Connection, request: Request<Incoming>) -> Answer {
    let shared = &connection.shared;
    let (head, incoming) = request.into_parts();
    let expects_continue = match vet(&head) {
        Ok(expects_continue) => expects_continue,
        Err(status) => return Answer::ready(last(status)),
    };
    if shared.is_full() {
        return Answer::ready(plain(StatusCode::SERVICE_UNAVAILABLE));
    }
    let body = match incoming.is_end_stream() {
        true => Rc::clone(&shared.no_body),
        false => {
            let clock = Rc::clone(&shared.clock);
            let is_http2 = head.version == Version::HTTP_2;
            let limit = shared.limits.body_bytes;
            Rc::new(RequestBody::new(incoming, is_http2, limit, clock))
        }
    };
    if body.is_declared_too_large() {
        body.refuse();
        return Answer::ready(last(StatusCode::PAYLOAD_TOO_LARGE));
    }
    let is_read_first = !expects_continue && body.is_small();
    let call = shared.calls.borrow_mut().insert(|id| {
        let body = Rc::clone(&body);
        Call::new(id, head, body, connection.peer(), shared.clock.get())
    });
    let mut waiting = Waiting {
        shared: Rc::clone(shared),
        call,
    };
    if !is_read_first {
        waiting.queue();
        return Answer::Waiting(waiting);
    }
    Answer::Future(Box::pin(async move {
        if let Err(error) = Rc::clone(&body).read().await {
            return unread(&error);
        }
        waiting.queue();
        poll_fn(|context| waiting.poll(context)).await
    }))
}

/// A request in the registry, from its arrival to its answer.
struct Waiting {
    shared: Rc<Shared>,
    call: Rc<Call>,
}

impl Waiting {
    fn queue(&self) {
        if self.call.is_open() {
            self.shared
                .ready
                .borrow_mut()
                .push_back(Rc::clone(&self.call));
            self.shared.wake();
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Response<Body>> {
        let Some(mut response) = self.call.answer.borrow_mut().take() else {
            self.call.waker.set(Some(context.waker().clone()));
            return Poll::Pending;
        };
        if let Body::Stream(stream) = response.body_mut() {
            let id = self.call.id;
            let events = stream.watched_by(&self.shared, id);
            self.shared.stream_began(id, events);
        }
        Poll::Ready(response)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.shared.end(&self.call);
    }
}
