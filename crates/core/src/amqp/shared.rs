use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::{Notify, watch};

use super::Error;
use super::config::Config;
use super::error::MAX_CLOSES;
use super::handshake::Server;
use super::io_waker::IoWaker;
use super::lock::lock;
use super::registry::Registry;
use super::session::Session;
use super::status::{Events, Status};
use super::write_buffer::WriteBuffer;
use crate::panics;

/// The phase of a connection.
#[derive(Clone)]
pub(super) enum Phase {
    Connecting,
    Up(Session),
    Closed(Error),
}

/// The state that the I/O thread and all handles of one connection share.
pub(super) struct Shared {
    pub(super) config: Config,
    pub(super) io_waker: Arc<IoWaker>,
    pub(super) write_buffer: Arc<WriteBuffer>,
    pub(super) phase: watch::Sender<Phase>,
    pub(super) events: Events,
    status: Mutex<Status>,
    server: Mutex<Server>,
    registry: Mutex<Registry>,
    /// Attempts the last reconnect took.
    pub(super) attempts: AtomicU32,
    closing: AtomicBool,
    close_requested: Notify,
}

impl Shared {
    pub(super) fn new(config: Config) -> Self {
        let io_waker = Arc::new(IoWaker::default());
        Self {
            config,
            write_buffer: Arc::new(WriteBuffer::new(Arc::clone(&io_waker))),
            io_waker,
            phase: watch::Sender::new(Phase::Connecting),
            events: Events::default(),
            status: Mutex::new(Status::Connecting {
                attempt: 1,
                last_error: None,
            }),
            server: Mutex::default(),
            registry: Mutex::default(),
            attempts: AtomicU32::new(0),
            closing: AtomicBool::new(false),
            close_requested: Notify::new(),
        }
    }

    pub(super) fn registry(&self) -> MutexGuard<'_, Registry> {
        lock(&self.registry)
    }

    pub(super) fn status(&self) -> Status {
        lock(&self.status).clone()
    }

    pub(super) fn set_status(&self, status: Status) {
        *lock(&self.status) = status;
    }

    /// The connection is back; the broker may have blocked it meanwhile.
    pub(super) fn restored(&self) {
        let mut status = lock(&self.status);
        if !matches!(*status, Status::Blocked { .. }) {
            *status = Status::Connected;
        }
    }

    pub(super) fn server(&self) -> Server {
        lock(&self.server).clone()
    }

    pub(super) fn set_server(&self, server: &Server) {
        server.clone_into(&mut lock(&self.server));
    }

    pub(super) fn closed_error(&self) -> Error {
        Error::Closed {
            target: self.config.target(),
        }
    }

    /// Moves on to another phase. A closed connection stays closed and keeps its first error.
    pub(super) fn advance(&self, to: Phase) {
        self.phase.send_if_modified(|phase| {
            let is_open = !matches!(phase, Phase::Closed(_));
            if is_open {
                *phase = to;
            }
            is_open
        });
    }

    /// Why the connection is closed.
    pub(super) fn end_error(&self) -> Error {
        match &*self.phase.borrow() {
            Phase::Closed(error) => error.clone(),
            _ => self.closed_error(),
        }
    }

    pub(super) fn request_close(&self) {
        self.closing.store(true, Ordering::Release);
        self.close_requested.notify_one();
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    pub(super) async fn close_requested(&self) {
        while !self.is_closing() {
            self.close_requested.notified().await;
        }
    }

    /// Waits for a session of a later generation.
    async fn session_after(&self, generation: u64) -> Result<Session, Error> {
        let mut phase = self.phase.subscribe();
        let usable = |phase: &Phase| match phase {
            Phase::Connecting => false,
            Phase::Up(session) => session.generation() > generation,
            Phase::Closed(_) => true,
        };
        match phase.wait_for(usable).await.as_deref() {
            Ok(Phase::Up(session)) => Ok(session.clone()),
            Ok(Phase::Closed(error)) => Err(error.clone()),
            _ => Err(self.end_error()),
        }
    }

    /// Calls `attempt` with the current session, and again with each next one while it fails because its session is lost. An attempt on
    /// which the broker closes the connection with an error is repeated a few times only: it may be the cause.
    pub(super) async fn on_session<T, F, Fut>(&self, attempt: F) -> Result<T, Error>
    where
        F: Fn(Session) -> Fut,
        Fut: Future<Output = Result<T, Error>>,
    {
        let mut generation = 0;
        let mut closes = 0;
        loop {
            let session = self.session_after(generation).await?;
            generation = session.generation();
            match attempt(session).await {
                Err(Error::ConnectionLost { .. }) => {}
                Err(Error::ClosedByBroker { .. }) if closes + 1 < MAX_CLOSES => closes += 1,
                other => return other,
            }
        }
    }

    /// Reserves a free channel number, once there is a session.
    pub(super) async fn take_channel(&self) -> Result<u16, Error> {
        let session = self.session_after(0).await?;
        self.registry().take_channel(session.limits().channel_max)
    }

    /// Runs `register` on the registry if `session` is still the newest. Otherwise fails: the caller must use the next session.
    pub(super) fn commit<T>(
        &self,
        session: &Session,
        register: impl FnOnce(&mut Registry) -> T,
    ) -> Result<T, Error> {
        let mut registry = self.registry();
        if registry.generation == session.generation() {
            return Ok(register(&mut registry));
        }
        Err(Error::ConnectionLost {
            target: self.config.target(),
            message: "it ended while a channel was opened".into(),
        })
    }

    /// Closes the connection for good and fails everything that waits for it. Only the first error counts.
    pub(super) fn end(&self, error: &Error) {
        if matches!(&*self.phase.borrow(), Phase::Closed(_)) {
            return;
        }
        let (publishers, consumers) = {
            let registry = self.registry();
            (registry.publishers.clone(), registry.consumers.clone())
        };
        publishers
            .iter()
            .for_each(|publisher| publisher.close(error));
        // Publishers refuse messages before the status says so; a consumer that wakes finds the status.
        self.set_status(Status::Closed {
            error: error.clone(),
        });
        self.advance(Phase::Closed(error.clone()));
        consumers
            .iter()
            .for_each(|consumer| consumer.fail(error.clone()));
        self.events.close();
    }

    /// Runs a part of the connection. Its panic closes the connection: every waiting call fails with an error that names it.
    pub(super) async fn supervised(&self, part: impl Future<Output = ()>) {
        if let Err(message) = panics::caught(part).await {
            let target = self.config.target();
            self.end(&Error::Crashed { target, message });
            self.request_close();
        }
    }

    /// Runs a part of the connection in the background.
    pub(super) fn spawn(self: &Arc<Self>, part: impl Future<Output = ()> + Send + 'static) {
        let shared = Arc::clone(self);
        tokio::spawn(async move { shared.supervised(part).await });
    }
}
