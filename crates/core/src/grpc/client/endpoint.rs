use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use hyper::client::conn::http2::{Builder, SendRequest};
use tokio::time::Instant;

use super::io::Io;
use super::options::ChannelOptions;
use super::upload::Upload;
use crate::net::{Local, Stream, TlsConnector, TokioTimer, dial};

/// What a server may send on all streams before it is read, as a multiple of what it may on one: h2 closes a connection with more
/// unread small frames than half of this pays for, at 256 bytes each. One stream full of messages of five bytes takes 52 times its
/// own window of that.
const MESSAGES_WORTH: u32 = 128;
/// Of the metadata of one answer, its status and details among it. hyper's 16 KiB are less than servers of other languages send when
/// they describe a failure.
const HEADER_BYTES: u32 = 256 << 10;
/// RFC 9113 §6.9.1
const LARGEST_WINDOW: u32 = (1 << 31) - 1;
/// Between two attempts to connect, and what each failure multiplies it by. doc/connection-backoff.md of grpc/grpc begins with
/// a second, in which every call would fail.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
const GROWTH: f64 = 1.6;

/// A server of a channel and the connection to it.
pub(super) struct Endpoint {
    pub(super) host: String,
    pub(super) port: u16,
    /// What it is called in calls, and what its certificate must name.
    pub(super) name: String,
    state: RefCell<State>,
    failures: Cell<u32>,
}

enum State {
    Idle,
    Connecting,
    Ready(SendRequest<Upload>),
    Failed(Failure),
}

/// An attempt to connect that is under way. One that ends without an outcome, by a panic, counts as failed: a server that is
/// connecting for ever would never be tried again.
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

/// Why and when it could not be connected to.
#[derive(Clone)]
pub(super) struct Failure {
    pub(super) reason: String,
    pub(super) at: Instant,
    /// When it may be tried again.
    pub(super) until: Instant,
}

/// What an endpoint is good for now.
pub(super) enum Look {
    Ready(SendRequest<Upload>),
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

    /// `since`: one that has failed after that is not tried again, so that a call tries each of several once.
    pub(super) fn look(&self, now: Instant, since: Option<Instant>) -> Look {
        let mut state = self.state.borrow_mut();
        match &*state {
            State::Ready(connection) if !connection.is_closed() => Look::Ready(connection.clone()),
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

    /// From here on it counts as connecting, until the attempt has been used or dropped.
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
        let limit = options.connect_timeout;
        let made = tokio::time::timeout(limit, self.open(options, tls)).await;
        let made = made.unwrap_or_else(|_| Err(format!("no answer in {limit:?}")));
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
        let pause = FIRST_PAUSE.mul_f64(GROWTH.powi(failures.min(20) as i32));
        let at = Instant::now();
        Failure {
            reason: format!("cannot connect to {}: {reason}", self.authority()),
            at,
            until: at + pause.min(LONGEST_PAUSE),
        }
    }

    async fn open(
        &self,
        options: &ChannelOptions,
        tls: Option<&TlsConnector>,
    ) -> Result<SendRequest<Upload>, String> {
        let socket = dial(&self.host, self.port)
            .await
            .map_err(|error| error.to_string())?;
        let stream = match tls {
            Some(tls) => tls.handshake(&self.name, socket).await?,
            None => Stream::Tcp(socket),
        };
        let mut builder = Builder::new(Local);
        builder
            .max_header_list_size(HEADER_BYTES)
            .initial_stream_window_size(options.stream_window)
            .initial_connection_window_size(
                options
                    .stream_window
                    .saturating_mul(MESSAGES_WORTH)
                    .min(LARGEST_WINDOW),
            );
        if let Some(interval) = options.ping_interval {
            builder
                .timer(TokioTimer)
                .keep_alive_interval(interval)
                .keep_alive_timeout(options.ping_timeout);
        }
        let (open, connection) = builder
            .handshake(Io(stream))
            .await
            .map_err(|error| error.to_string())?;
        tokio::task::spawn_local(async move {
            // Each call hears of it by itself.
            let _ = connection.await;
        });
        Ok(open)
    }
}
