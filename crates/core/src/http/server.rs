use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use hyper::body::{Body as _, Incoming};
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Version};
use tokio::sync::Notify;

use super::body::{Body, Pipe, Sending};
use super::call::{Call, Stage};
use super::connection::{Command, Connection, InFlight, Peer, serve};
use super::date::Date;
use super::limits::Limits;
use super::refusal::{close, last, plain, unread, vet};
use super::registry::{Id, Registry};
use super::request_body::RequestBody;
use super::sweep::{Tick, sweep};
use super::tally::Tally;
use crate::net::{Acceptor, Listener, Neighbour, Stream, TlsAcceptor};

/// How long to wait when the system has no descriptor left for a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The answer of a [`Service`], on its way.
pub type ServiceFuture = Pin<Box<dyn Future<Output = Response<Body>>>>;

/// Answers requests of another protocol that shares the server's connections, such as gRPC.
///
/// It gets hyper's own request: polling the [`Incoming`] body gives data and trailers frames, and on HTTP/2 the client's
/// window grows by what has been polled, so that not polling is back-pressure. [`Body::stream`] answers piece by piece, with
/// trailers. The future is dropped when the client resets the stream or goes away.
pub trait Service {
    /// Whether a request is for this service, by its head alone.
    fn takes(&self, request: &Request<Incoming>) -> bool;

    fn call(&self, request: Request<Incoming>, peer: Rc<Peer>) -> ServiceFuture;
}

/// What the one who runs the handlers has to hear of.
pub enum Event {
    /// A request to answer.
    Request(Rc<Call>),
    /// The client of a request that was handed out has gone away.
    Gone(Id),
    /// A request that was handed out is past its deadline.
    Expired(Id),
}

/// An HTTP server. Clones are the same server; it ends with [`Server::stop`].
#[derive(Clone)]
pub struct Server {
    shared: Rc<Shared>,
}

pub(super) struct Shared {
    pub(super) limits: Limits,
    pub(super) clock: Rc<Cell<Tick>>,
    date: Date,
    pub(super) connections: RefCell<Registry<Connection>>,
    pub(super) calls: RefCell<Registry<Call>>,
    ready: RefCell<VecDeque<Rc<Call>>>,
    events: RefCell<VecDeque<Event>>,
    /// Requests that are with their handlers.
    handed: Cell<usize>,
    /// Who waits in [`Server::next`].
    waiter: RefCell<Option<Waker>>,
    service: RefCell<Option<Rc<dyn Service>>>,
    /// That of all requests which have none.
    no_body: Rc<RequestBody>,
    /// Bodies of events that are being sent, by the id of their request.
    event_streams: RefCell<HashMap<Id, Rc<RefCell<Pipe>>>>,
    stopping: Cell<bool>,
    stop: Notify,
    connection_ended: Notify,
}

impl Server {
    pub fn new(limits: Limits) -> Self {
        let shared = Shared {
            limits,
            clock: Rc::default(),
            date: Date::default(),
            connections: RefCell::default(),
            calls: RefCell::default(),
            ready: RefCell::default(),
            events: RefCell::default(),
            handed: Cell::default(),
            waiter: RefCell::default(),
            service: RefCell::default(),
            no_body: Rc::default(),
            event_streams: RefCell::default(),
            stopping: Cell::default(),
            stop: Notify::new(),
            connection_ended: Notify::new(),
        };
        Self {
            shared: Rc::new(shared),
        }
    }

    /// Hands requests of another protocol to `service`.
    pub fn delegate(&self, service: Rc<dyn Service>) {
        *self.shared.service.borrow_mut() = Some(service);
    }

    /// Accepts connections until [`stop`](Self::stop). Runs on a `LocalSet`, whose tasks the connections become.
    ///
    /// With `tls` every connection is secured, which needs TCP.
    pub fn accept(
        &self,
        mut listener: Listener,
        tls: Option<Rc<TlsAcceptor>>,
    ) -> impl Future<Output = io::Result<()>> + use<> {
        let shared = Rc::clone(&self.shared);
        async move {
            for neighbour in listener.neighbours()? {
                tokio::task::spawn_local(help(Rc::clone(&shared), neighbour, tls.clone()));
            }
            accept(&shared, listener.acceptor()?, tls).await
        }
    }

    /// Keeps the clock and enforces the time-outs; does not end.
    pub fn keep_time(&self) -> impl Future<Output = ()> + use<> {
        sweep(Rc::clone(&self.shared))
    }

    /// Ends when [`take`](Self::take) has something.
    pub fn next(&self) -> impl Future<Output = ()> + use<> {
        let shared = Rc::clone(&self.shared);
        poll_fn(move |context| {
            if shared.has_events() {
                return Poll::Ready(());
            }
            *shared.waiter.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
    }

    /// Whether [`take`](Self::take) has something now.
    pub fn has_events(&self) -> bool {
        self.shared.has_events()
    }

    /// The next event; requests come in the order of their arrival, and only while there is room in flight.
    pub fn take(&self) -> Option<Event> {
        self.shared.take()
    }

    /// Accepts no more connections, and lets the open ones end with the answers to what is in flight.
    pub fn stop(&self) {
        let shared = &self.shared;
        if shared.stopping.replace(true) {
            return;
        }
        shared.stop.notify_waiters();
        for connection in shared.connections.borrow().iter() {
            connection.stop();
        }
        shared.end_event_streams();
    }

    /// Ends when no connection is open.
    pub fn drained(&self) -> impl Future<Output = ()> + use<> {
        let shared = Rc::clone(&self.shared);
        async move {
            while shared.connections.borrow().len() > 0 {
                shared.connection_ended.notified().await;
            }
        }
    }

    /// Ends every connection now, whatever it is doing.
    pub fn abort(&self) {
        self.stop();
        for connection in self.shared.connections.borrow().iter() {
            connection.command(Command::Abort);
        }
    }

    /// Who is connected, by the ids of their connections.
    pub fn peers(&self) -> Vec<(Id, Rc<Peer>)> {
        let connections = self.shared.connections.borrow();
        connections
            .iter()
            .map(|open| (open.id, open.peer()))
            .collect()
    }

    pub fn connections(&self) -> usize {
        self.shared.connections.borrow().len()
    }

    /// Requests that have arrived and are not answered, those in the queue included.
    pub fn in_flight(&self) -> usize {
        self.shared.calls.borrow().len()
    }
}

async fn accept(
    shared: &Rc<Shared>,
    acceptor: Acceptor,
    tls: Option<Rc<TlsAcceptor>>,
) -> io::Result<()> {
    while shared.room().await {
        let accepted = tokio::select! {
            biased;
            accepted = acceptor.accept() => accepted,
            () = shared.stop.notified() => break,
        };
        match accepted {
            Ok((stream, address)) => shared.open(stream, address, tls.clone()),
            // The client is gone again, or there are no descriptors: neither is the end of the server.
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
    // What the kernel has accepted already would be reset when the socket closes.
    while let Poll::Ready(Ok((stream, address))) = poll_once(acceptor.accept()).await {
        shared.open(stream, address, tls.clone());
    }
    Ok(())
}

/// Accepts what waits for another worker and is not accepted there.
async fn help(shared: Rc<Shared>, mut neighbour: Neighbour, tls: Option<Rc<TlsAcceptor>>) {
    while shared.room().await {
        let accepted = tokio::select! {
            biased;
            accepted = neighbour.accept() => accepted,
            () = shared.stop.notified() => return,
        };
        match accepted {
            Ok((stream, address)) => shared.open(stream, address, tls.clone()),
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn poll_once<T>(future: impl Future<Output = T>) -> Poll<T> {
    let mut future = std::pin::pin!(future);
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await
}

impl Shared {
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.get()
    }

    /// Ends when there may be one connection more. False: the server is stopping.
    async fn room(&self) -> bool {
        while self.connections.borrow().len() >= self.limits.connections && !self.is_stopping() {
            tokio::select! {
                () = self.connection_ended.notified() => {}
                () = self.stop.notified() => {}
            }
        }
        !self.is_stopping()
    }

    fn open(
        self: &Rc<Self>,
        stream: Stream,
        address: Option<SocketAddr>,
        tls: Option<Rc<TlsAcceptor>>,
    ) {
        let peer = Peer {
            address,
            is_tls: tls.is_some(),
            certificate: None,
            tally: Tally::default(),
        };
        let connection = self
            .connections
            .borrow_mut()
            .insert(|id| Connection::new(id, Rc::clone(self), peer));
        let shared = Rc::clone(self);
        tokio::task::spawn_local(async move {
            let _open = Open {
                shared,
                id: connection.id,
            };
            serve(connection, stream, tls).await;
        });
    }

    fn has_events(&self) -> bool {
        !self.events.borrow().is_empty()
            || self.handed.get() < self.limits.in_flight && !self.ready.borrow().is_empty()
    }

    fn take(&self) -> Option<Event> {
        if let Some(event) = self.events.borrow_mut().pop_front() {
            return Some(event);
        }
        let mut ready = self.ready.borrow_mut();
        while self.handed.get() < self.limits.in_flight {
            let call = ready.pop_front()?;
            // Those that left while they were waiting concern nobody.
            if call.stage.get() == Stage::Queued {
                call.stage.set(Stage::Handed);
                call.was_handed.set(true);
                self.handed.set(self.handed.get() + 1);
                return Some(Event::Request(call));
            }
        }
        None
    }

    fn announce(&self, event: Event) {
        self.events.borrow_mut().push_back(event);
        self.wake();
    }

    fn wake(&self) {
        if let Some(waker) = self.waiter.borrow_mut().take() {
            waker.wake();
        }
    }

    fn is_full(&self) -> bool {
        self.ready.borrow().len() >= self.limits.queue
    }

    /// Past the deadline: its handler is told, once; where it has none yet, the client is.
    pub(super) fn expire(&self, call: &Call) {
        if call.is_late.replace(true) {
            return;
        }
        match call.stage.get() {
            Stage::Handed => self.announce(Event::Expired(call.id)),
            _ => {
                call.respond(plain(StatusCode::SERVICE_UNAVAILABLE));
            }
        }
    }

    pub(super) fn has_service(&self) -> bool {
        self.service.borrow().is_some()
    }

    fn service_for(&self, request: &Request<Incoming>) -> Option<Rc<dyn Service>> {
        let service = self.service.borrow();
        service
            .as_ref()
            .filter(|service| service.takes(request))
            .map(Rc::clone)
    }

    fn stream_began(&self, id: Id, events: Option<Rc<RefCell<Pipe>>>) {
        let Some(events) = events else {
            return;
        };
        if self.is_stopping() {
            events.borrow_mut().end();
            self.announce(Event::Gone(id));
        } else {
            self.event_streams.borrow_mut().insert(id, events);
        }
    }

    /// What is written to it would reach nobody.
    pub(super) fn stream_ended(&self, id: Id, is_whole: bool) {
        self.event_streams.borrow_mut().remove(&id);
        if !is_whole {
            self.announce(Event::Gone(id));
        }
    }

    fn end_event_streams(&self) {
        for (id, events) in self.event_streams.take() {
            events.borrow_mut().end();
            self.announce(Event::Gone(id));
        }
    }

    /// Its handler has no more to do with it.
    fn end(&self, call: &Call) {
        self.calls.borrow_mut().remove(call.id);
        match call.stage.replace(Stage::Gone) {
            Stage::Handed => self.announce(Event::Gone(call.id)),
            Stage::Answered if call.was_handed.get() => {}
            _ => return,
        }
        self.handed.set(self.handed.get() - 1);
        if !self.ready.borrow().is_empty() {
            self.wake();
        }
    }
}

/// A connection, in the registry for as long as its task lives.
struct Open {
    shared: Rc<Shared>,
    id: Id,
}

impl Drop for Open {
    fn drop(&mut self) {
        let connection = self.shared.connections.borrow_mut().remove(self.id);
        drop(connection);
        self.shared.connection_ended.notify_waiters();
    }
}

pub(super) fn handle(connection: Rc<Connection>, request: Request<Incoming>) -> Handling {
    let in_flight = connection.begin(request.body());
    let is_http2 = request.version() == Version::HTTP_2;
    let is_head = is_http2 && request.method() == Method::HEAD;
    let is_connect = is_http2 && request.method() == Method::CONNECT;
    let answer = match connection.shared.service_for(&request) {
        Some(service) => Answer::Future(service.call(request, connection.peer())),
        None => answer(&connection, request),
    };
    Handling {
        answer,
        is_head,
        is_connect,
        is_http2,
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
        if handling.is_head {
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
        Poll::Ready(Ok(response.map(|body| Sending::new(body, in_flight))))
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
            Rc::new(RequestBody::new(incoming, shared.limits.body_bytes, clock))
        }
    };
    if body.is_declared_too_large() {
        return Answer::Future(Box::pin(async move {
            body.discard().await;
            last(StatusCode::PAYLOAD_TOO_LARGE)
        }));
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
            body.discard().await;
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
