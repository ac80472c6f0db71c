use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::time::Instant;

use super::options::ChannelOptions;
use super::settings::{ServerSettings, SettingsReader};
use super::upload::Upload;
use crate::net::{Deadline, LocalExecutor, Stream, TlsConnector, dial};

/// The connection window as a multiple of the stream window: h2 closes a connection whose unread small frames, counted as 256 bytes
/// each, exceed half of its window. One stream full of messages of five bytes counts as 52 times its own window.
const MESSAGE_WINDOW_FACTOR: u32 = 128;
/// The largest header list of a response. hyper's default, 16 KiB, is less than servers of other languages send with a status and its
/// details.
pub(super) const HEADER_BYTES: u32 = 256 << 10;
/// RFC 9113 §6.9.1
const MAX_WINDOW: u32 = (1 << 31) - 1;
/// Back-off between connection attempts, and its multiplier. doc/connection-backoff.md of grpc/grpc begins with a second, during which
/// every call would fail.
const MIN_BACKOFF: Duration = Duration::from_millis(100);
const MAX_BACKOFF: Duration = Duration::from_secs(10);
const BACKOFF_MULTIPLIER: f64 = 1.6;

/// A server of a channel and the connection to it.
pub(super) struct Endpoint {
    pub(super) host: String,
    pub(super) port: u16,
    /// The name for `:authority`, which the certificate must carry.
    pub(super) name: String,
    state: RefCell<State>,
    failures: Cell<u32>,
}

/// A connection to a server. Clones share it.
#[derive(Clone)]
pub(super) struct Connection {
    pub(super) requests: SendRequest<Upload>,
    pub(super) settings: Rc<ServerSettings>,
}

enum State {
    Idle,
    Connecting,
    Ready(Connection),
    Failed(Failure),
}

/// A running connection attempt. One that ends without an outcome, by a panic, counts as failed; otherwise the server would count as
/// connecting forever.
pub(super) struct Attempt(Rc<Endpoint>);

impl Drop for Attempt {
    fn drop(&mut self) {
        let mut state = self.0.state.borrow_mut();
        if matches!(*state, State::Connecting) {
            let failure = self.0.failure("the attempt was broken off".to_owned());
            *state = State::Failed(failure);
        }
    }
}

/// A failed connection attempt.
#[derive(Clone)]
pub(super) struct Failure {
    pub(super) reason: String,
    pub(super) at: Instant,
    /// When it may be tried again.
    pub(super) until: Instant,
}

/// The state of an endpoint, as a call sees it.
pub(super) enum Look {
    Ready(Connection),
    Startable,
    Connecting,
    Failed(Failure),
}

impl Endpoint {
    pub(super) fn new(host: String, port: u16, name: String) -> Self {
        Self {
            host,
            port,
            name,
            state: RefCell::new(State::Idle),
            failures: Cell::default(),
        }
    }

    /// As `:authority` has it.
    pub(super) fn authority(&self) -> String {
        match self.name.contains(':') {
            true => format!("[{}]:{}", self.name, self.port),
            false => format!("{}:{}", self.name, self.port),
        }
    }

    /// `since`: an endpoint that has failed after that is not tried again, so that a call tries each endpoint once.
    pub(super) fn look(&self, now: Instant, since: Option<Instant>) -> Look {
        let mut state = self.state.borrow_mut();
        match &*state {
            State::Ready(connection) if !connection.requests.is_closed() => {
                Look::Ready(connection.clone())
            }
            State::Ready(_) => {
                *state = State::Idle;
                Look::Startable
            }
            State::Idle => Look::Startable,
            State::Connecting => Look::Connecting,
            State::Failed(failure) => {
                let is_old = since.is_none_or(|since| failure.at < since);
                match is_old && failure.until <= now {
                    true => Look::Startable,
                    false => Look::Failed(failure.clone()),
                }
            }
        }
    }

    /// Begins an attempt: the endpoint counts as connecting until the attempt is used or dropped.
    pub(super) fn begin(self: &Rc<Self>) -> Attempt {
        *self.state.borrow_mut() = State::Connecting;
        Attempt(Rc::clone(self))
    }

    pub(super) async fn connect(
        &self,
        _attempt: Attempt,
        options: &ChannelOptions,
        tls: Option<&TlsConnector>,
    ) {
        let deadline = Deadline::after(options.connect_timeout);
        let made = deadline.limit(self.open(options, tls, deadline)).await;
        let made = made.unwrap_or_else(|silence| Err(silence.to_string()));
        *self.state.borrow_mut() = match made {
            Ok(connection) => {
                self.failures.set(0);
                State::Ready(connection)
            }
            Err(reason) => State::Failed(self.failure(reason)),
        };
    }

    fn failure(&self, reason: String) -> Failure {
        let failures = self.failures.get();
        self.failures.set(failures.saturating_add(1));
        let backoff = MIN_BACKOFF.mul_f64(BACKOFF_MULTIPLIER.powi(failures.min(20) as i32));
        let at = Instant::now();
        Failure {
            reason: format!("cannot connect to {}: {reason}", self.authority()),
            at,
            until: at + backoff.min(MAX_BACKOFF),
        }
    }

    async fn open(
        &self,
        options: &ChannelOptions,
        tls: Option<&TlsConnector>,
        deadline: Deadline,
    ) -> Result<Connection, String> {
        let socket = dial(&self.host, self.port, deadline)
            .await
            .map_err(|error| error.to_string())?;
        let stream = match tls {
            Some(tls) => tls.handshake(&self.name, socket).await?,
            None => Stream::Tcp(socket),
        };
        let mut builder = Builder::new(LocalExecutor);
        builder
            .max_header_list_size(HEADER_BYTES)
            .initial_stream_window_size(options.stream_window)
            .initial_connection_window_size(
                options
                    .stream_window
                    .saturating_mul(MESSAGE_WINDOW_FACTOR)
                    .min(MAX_WINDOW),
            );
        if let Some(interval) = options.ping_interval {
            builder
                .timer(TokioTimer::new())
                .keep_alive_interval(interval)
                .keep_alive_timeout(options.ping_timeout);
        }
        let (stream, settings) = SettingsReader::new(stream);
        let (requests, connection) = builder
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| error.to_string())?;
        tokio::task::spawn_local(async move {
            // Each call gets the error itself.
            let _ = connection.await;
        });
        Ok(Connection { requests, settings })
    }
}
