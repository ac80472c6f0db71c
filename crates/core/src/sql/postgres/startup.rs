//! Opens connections: address, socket, TLS, start-up message, authentication.

use std::cell::OnceCell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use bytes::BytesMut;
use postgres_protocol::message::frontend;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::cancel_key::CancelKey;
use super::config::Config;
use super::connection::EXPECTED_SERVER;
use super::connection::{Connection, Types};
use super::login::{Answers, Login};
use super::round_trip_queue::RoundTripQueue;
use crate::net::{self, Deadline, PeerProtocol, Stream, TlsConnector};
use crate::sql::dsn::{Endpoint, SslMode};
use crate::sql::server_manager::ServerManager;
use crate::sql::{ConnectFailure, Error};

/// Bytes that are read after a cancel request. A server sends none, or an error that refuses the connection.
const CANCEL_ANSWER_BYTES: u64 = 16 * 1024;
/// Bytes in which a server of another protocol is recognized.
const PEEKED_BYTES: usize = 256;

impl Connection {
    /// Opens a connection outside of any pool.
    ///
    /// # Errors
    /// [`Error::Connect`], at the latest after the connect timeout.
    pub async fn open(config: Config) -> Result<Self, Error> {
        Connector::new(config).connect().await
    }
}

/// Manages pooled connections to one database.
pub type Postgres = ServerManager<Connector>;

/// Opens connections to one database.
pub struct Connector {
    config: Config,
    target: Rc<str>,
    /// Built once: reading the system's certificates takes milliseconds.
    tls: OnceCell<TlsConnector>,
    types: Types,
    pub(super) round_trip_queue: RoundTripQueue,
}

impl Connector {
    pub(super) fn new(config: Config) -> Self {
        Self {
            target: config.connect.target().into(),
            config,
            tls: OnceCell::new(),
            types: Types::default(),
            round_trip_queue: RoundTripQueue::default(),
        }
    }

    /// Statements of a pool that are sent together at most.
    pub(super) fn max_pipeline(&self) -> usize {
        self.config.max_pipeline
    }

    pub(super) fn target(&self) -> &Rc<str> {
        &self.target
    }

    pub(super) fn connect_timeout(&self) -> Duration {
        self.config.connect.connect_timeout
    }

    /// # Errors
    /// [`Error::Connect`], at the latest after the connect timeout.
    pub(super) async fn connect(&self) -> Result<Connection, Error> {
        self.within_timeout(async |deadline| {
            let stream = self.open(deadline).await?;
            self.log_in(stream).await
        })
        .await
    }

    /// Cancels the statement of the connection with this key. Returns when the server has processed the request.
    pub(super) async fn cancel(&self, key: CancelKey) -> Result<(), Error> {
        self.within_timeout(async |deadline| {
            let mut stream = self.open(deadline).await?;
            let mut request = BytesMut::new();
            frontend::cancel_request(key.process_id, key.secret, &mut request);
            let sent = async {
                stream.write_all(&request).await?;
                stream.flush().await
            };
            sent.await.map_err(|error| self.refused(&error))?;
            // The server answers by closing the connection, over TLS without a close_notify.
            let mut answer = stream.take(CANCEL_ANSWER_BYTES);
            let _ = answer.read_to_end(&mut Vec::new()).await;
            Ok(())
        })
        .await
    }

    async fn within_timeout<T>(
        &self,
        attempt: impl AsyncFnOnce(Deadline) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let deadline = Deadline::after(self.config.connect.connect_timeout);
        match deadline.limit(attempt(deadline)).await {
            Ok(outcome) => outcome,
            Err(silence) => Err(self.failed(ConnectFailure::Timeout, silence.to_string())),
        }
    }

    async fn open(&self, deadline: Deadline) -> Result<Stream, Error> {
        match &self.config.connect.endpoint {
            Endpoint::Unix { socket } => Stream::connect_unix(socket)
                .await
                .map_err(|error| self.refused(&error)),
            Endpoint::Tcp { host, port } => {
                let dialled = net::dial(host, *port, deadline).await;
                let socket = dialled.map_err(|error| {
                    self.failed(ConnectFailure::of_dial(&error), error.to_string())
                })?;
                self.secure(host, socket).await
            }
        }
    }

    /// Requests TLS if the mode requires or prefers it (`SSLRequest`).
    async fn secure(&self, host: &str, mut socket: TcpStream) -> Result<Stream, Error> {
        if self.config.connect.ssl_mode == SslMode::Disable {
            return Ok(Stream::Tcp(socket));
        }
        let mut request = BytesMut::new();
        frontend::ssl_request(&mut request);
        let sent = socket.write_all(&request).await;
        sent.map_err(|error| self.refused(&error))?;
        match self.read_tls_answer(&mut socket).await? {
            b'S' => {
                let secured = self.tls()?.handshake(host, socket).await;
                secured.map_err(|reason| self.failed(ConnectFailure::Tls, reason))
            }
            b'N' if self.config.connect.ssl_mode == SslMode::Prefer => Ok(Stream::Tcp(socket)),
            b'N' => Err(self.failed(
                ConnectFailure::Tls,
                "the server does not offer TLS".to_owned(),
            )),
            _ => Err(self.failed(
                ConnectFailure::Protocol,
                "the peer answered SSLRequest with an invalid byte".to_owned(),
            )),
        }
    }

    /// Exactly one byte: bytes that an attacker appends must not be treated as encrypted (CVE-2021-23222).
    async fn read_tls_answer(&self, socket: &mut TcpStream) -> Result<u8, Error> {
        // The first byte of MySQL's greeting, its length, may be that of a valid answer.
        let mut first = [0; PEEKED_BYTES];
        let peeked = socket.peek(&mut first).await;
        let length = peeked.map_err(|error| self.refused(&error))?;
        if let Some(other) = PeerProtocol::of(&first[..length]) {
            let message = other.instead_of(EXPECTED_SERVER);
            return Err(self.failed(ConnectFailure::Protocol, message));
        }
        let answer = socket.read_u8().await;
        answer.map_err(|error| self.refused(&error))
    }

    fn tls(&self) -> Result<&TlsConnector, Error> {
        if let Some(connector) = self.tls.get() {
            return Ok(connector);
        }
        let connector = TlsConnector::new(&self.config.connect.client_tls())
            .map_err(|reason| self.failed(ConnectFailure::Tls, reason))?;
        Ok(self.tls.get_or_init(|| connector))
    }

    async fn log_in(&self, stream: Stream) -> Result<Connection, Error> {
        let mut connection = Connection::new(
            stream,
            Rc::clone(&self.target),
            self.config.connect.statement_cache,
            Rc::clone(&self.types),
        );
        connection
            .push_startup(self.settings())
            .map_err(|error| self.refused(&error))?;
        let mut login = Login::new(connection.link.stream(), &self.config);
        loop {
            let mut answer = Answers::default();
            let outcome = connection.exchange(&mut answer).await;
            if let Some(failure) = answer.failure {
                return Err(failure.into_connect_error(&self.target));
            }
            outcome.map_err(|error| self.while_logging_in(error))?;
            let written = match answer.request {
                None => {
                    login
                        .check_let_in(answer.is_let_in)
                        .map_err(|error| self.unauthenticated(&error))?;
                    connection.cancel_key = answer.key;
                    return Ok(connection);
                }
                Some(_) if answer.is_let_in => Err(io::Error::other(
                    "the server requests authentication after AuthenticationOk",
                )),
                Some(request) => login.answer(request, &mut connection.link.out).await,
            };
            written.map_err(|error| self.unauthenticated(&error))?;
        }
    }

    fn unauthenticated(&self, error: &io::Error) -> Error {
        self.failed(ConnectFailure::Authentication, error.to_string())
    }

    fn settings(&self) -> Vec<(&str, &str)> {
        let config = &self.config;
        let mut settings = vec![
            ("user", config.connect.user.as_str()),
            ("database", config.connect.database_or_user()),
            ("client_encoding", "UTF8"),
            ("DateStyle", "ISO"),
            ("application_name", &config.connect.application_name),
        ];
        if let Some(options) = &config.options {
            settings.push(("options", options));
        }
        settings
    }

    fn failed(&self, failure: ConnectFailure, message: String) -> Error {
        Error::Connect {
            target: self.target.to_string(),
            failure,
            message,
        }
    }

    fn refused(&self, error: &io::Error) -> Error {
        let failure = match error.kind() {
            io::ErrorKind::TimedOut => ConnectFailure::Timeout,
            io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidInput => ConnectFailure::Protocol,
            _ => ConnectFailure::Refused,
        };
        self.failed(failure, error.to_string())
    }

    fn while_logging_in(&self, error: Error) -> Error {
        match error {
            Error::ConnectionLost { message, .. } => self.failed(ConnectFailure::Protocol, message),
            other => other,
        }
    }
}
