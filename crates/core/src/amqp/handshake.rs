//! From a host name to an open AMQP connection: TCP, TLS, then start, tune and open (specification §2.2.4).

use std::io;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::codec::method::{self, CloseReason, Incoming, Reply};
use super::codec::{Field, FieldTable, frame};
use super::config::{Config, Host, Mechanism};
use super::{ConnectFailure, Error};
use crate::net::{self, Deadline, DialError, PeerProtocol, Stream, TlsConnector};

/// The broker's first frames come before a size is agreed on.
const FRAME_MAX_BEFORE_TUNE: usize = 131_072;

const ACCESS_REFUSED: u16 = 403;
const NOT_FOUND: u16 = 404;
const NOT_ALLOWED: u16 = 530;

/// An open connection, ready for its driver.
pub(super) struct Opened {
    pub(super) stream: Stream,
    /// Bytes that came after the handshake.
    pub(super) read: BytesMut,
    pub(super) limits: Limits,
    pub(super) server: Server,
}

/// The negotiated parameters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) frame_max: usize,
    pub(super) channel_max: u16,
    /// Zero means none.
    pub(super) heartbeat: Duration,
}

/// The properties of the broker.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Server {
    /// Such as `RabbitMQ`.
    pub product: String,
    /// Such as `3.10.8`.
    pub version: String,
    /// The address this connection is made to.
    pub address: String,
}

/// Connects to the first host that answers.
pub(super) async fn connect_any(config: &Config) -> Result<Opened, Error> {
    let mut first_error = None;
    for host in &config.hosts {
        let deadline = Deadline::after(config.connect_timeout);
        match deadline.limit(connect(config, host, deadline)).await {
            Ok(Ok(opened)) => return Ok(opened),
            Ok(Err(error)) => first_error.get_or_insert(error),
            Err(silence) => {
                let message = silence.to_string();
                first_error.get_or_insert(failed(host, ConnectFailure::Timeout, message))
            }
        };
    }
    Err(first_error.unwrap_or_else(|| Error::usage("no host to connect to")))
}

fn unexpected(host: &Host, expected: &str, got: &Incoming<'_>) -> Error {
    // Its properties may be long.
    let got: String = format!("{got:?}").chars().take(200).collect();
    let message = format!("expected {expected}, the broker sent {got}");
    failed(host, ConnectFailure::Protocol, message)
}

fn failed(host: &Host, failure: ConnectFailure, message: impl Into<String>) -> Error {
    Error::Connect {
        target: host.to_string(),
        failure,
        message: message.into(),
    }
}

async fn connect(config: &Config, host: &Host, deadline: Deadline) -> Result<Opened, Error> {
    let socket = net::dial(&host.name, host.port, deadline)
        .await
        .map_err(|error| {
            let failure = match error {
                DialError::Name(_) => ConnectFailure::Dns,
                DialError::Socket(_) => ConnectFailure::Refused,
                DialError::Timeout(_) => ConnectFailure::Timeout,
            };
            failed(host, failure, error.to_string())
        })?;
    let stream = match &config.tls {
        None => Stream::Tcp(socket),
        Some(options) => {
            let tls_failed = |reason: String| failed(host, ConnectFailure::Tls, reason);
            // Built for every attempt: files that were replaced meanwhile count.
            let connector = TlsConnector::new(options).map_err(tls_failed)?;
            let secured = connector.handshake(&host.name, socket).await;
            secured.map_err(tls_failed)?
        }
    };
    let handshake = Handshake {
        config,
        host,
        stream,
        read: BytesMut::with_capacity(8_192),
        consumed: 0,
    };
    handshake.run(deadline).await
}

struct Handshake<'a> {
    config: &'a Config,
    host: &'a Host,
    stream: Stream,
    read: BytesMut,
    /// Bytes at the front of `read` that belong to the method handled last.
    consumed: usize,
}

impl Handshake<'_> {
    async fn run(mut self, deadline: Deadline) -> Result<Opened, Error> {
        self.send(frame::PROTOCOL_HEADER).await?;
        let server = self.authenticate(deadline).await?;
        let limits = self.tune().await?;
        self.open().await?;
        self.read.advance(self.consumed);
        Ok(Opened {
            stream: self.stream,
            read: self.read,
            limits,
            server,
        })
    }

    async fn authenticate(&mut self, deadline: Deadline) -> Result<Server, Error> {
        let host = self.host;
        let silent = |silence| {
            let message = format!(
                "{silence}: a broker answers the protocol header at once, while servers of HTTP (such as RabbitMQ's management) and Redis \
                 wait for more. Is this an AMQP port?"
            );
            failed(host, ConnectFailure::Timeout, message)
        };
        let mechanism = match self.config.mechanism {
            Mechanism::Plain => "PLAIN",
            Mechanism::External => "EXTERNAL",
        };
        let address = self.host.to_string();
        let first = deadline.limit(self.receive()).await;
        let (server, offered) = match first.map_err(silent)?? {
            Incoming::Start {
                server_properties,
                mechanisms,
            } => {
                let text = |name: &str| {
                    let value = server_properties.get(name).and_then(Field::as_str);
                    value.unwrap_or_default().to_owned()
                };
                let server = Server {
                    product: text("product"),
                    version: text("version"),
                    address,
                };
                (server, String::from_utf8_lossy(mechanisms).into_owned())
            }
            other => return Err(unexpected(host, "connection.start", &other)),
        };
        if !offered.split(' ').any(|name| name == mechanism) {
            let message = format!("the broker offers \"{offered}\", not {mechanism}");
            return Err(failed(self.host, ConnectFailure::Authentication, message));
        }
        let start_ok =
            method::start_ok(&client_properties(self.config), mechanism, &self.response());
        self.send(&start_ok).await?;
        Ok(server)
    }

    fn response(&self) -> Vec<u8> {
        match self.config.mechanism {
            Mechanism::Plain => {
                format!("\0{}\0{}", self.config.user, self.config.password).into_bytes()
            }
            Mechanism::External => Vec::new(),
        }
    }

    async fn tune(&mut self) -> Result<Limits, Error> {
        let host = self.host;
        let (channel_max, frame_max, heartbeat) = match self.receive().await? {
            Incoming::Tune {
                channel_max,
                frame_max,
                heartbeat,
            } => (channel_max, frame_max, heartbeat),
            Incoming::ConnectionClose(reason) => return Err(self.refused(reason)),
            other => return Err(unexpected(host, "connection.tune", &other)),
        };
        let wanted_heartbeat = self.config.heartbeat.as_secs_f64().ceil() as u16;
        let channel_max = lower(self.config.channel_max.into(), channel_max.into()) as u16;
        let frame_max = lower(self.config.frame_max, frame_max).max(4_096);
        let heartbeat = lower(wanted_heartbeat.into(), heartbeat.into()) as u16;
        // A client that wants no heartbeats gets none, regardless of the broker's proposal.
        let heartbeat = if wanted_heartbeat == 0 { 0 } else { heartbeat };
        self.send(&method::tune_ok(channel_max, frame_max, heartbeat))
            .await?;
        Ok(Limits {
            frame_max: frame_max as usize,
            channel_max,
            heartbeat: Duration::from_secs(heartbeat.into()),
        })
    }

    async fn open(&mut self) -> Result<(), Error> {
        let host = self.host;
        self.send(&method::connection_open(&self.config.vhost))
            .await?;
        match self.receive().await? {
            Incoming::Reply(method::CONNECTION_OPEN_OK, Reply::Done) => Ok(()),
            Incoming::ConnectionClose(reason) => {
                let error = self.refused(reason);
                let close_ok = method::bare(0, method::CONNECTION_CLOSE_OK);
                let _ = self.send(&close_ok).await;
                Err(error)
            }
            other => Err(unexpected(host, "connection.open-ok", &other)),
        }
    }

    fn refused(&self, reason: CloseReason) -> Error {
        let vhost = &self.config.vhost;
        let (failure, message) = match reason.code {
            ACCESS_REFUSED => (
                ConnectFailure::Authentication,
                format!("user \"{}\" was refused: {}", self.config.user, reason.text),
            ),
            NOT_ALLOWED | NOT_FOUND => (
                ConnectFailure::VirtualHost,
                format!("virtual host \"{vhost}\": {}", reason.text),
            ),
            code => (
                ConnectFailure::Protocol,
                format!("{} (AMQP {code})", reason.text),
            ),
        };
        failed(self.host, failure, message)
    }

    fn broken(&self, error: &io::Error) -> Error {
        // rustls reports a refused certificate as an I/O error of the first read.
        let failure = match self.stream {
            Stream::Tls(_) if error.kind() == io::ErrorKind::InvalidData => ConnectFailure::Tls,
            _ => ConnectFailure::Protocol,
        };
        failed(self.host, failure, format!("during the handshake: {error}"))
    }

    async fn send(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let written = self.stream.write_all(bytes).await;
        let flushed = match written {
            Ok(()) => self.stream.flush().await,
            Err(error) => Err(error),
        };
        flushed.map_err(|error| self.broken(&error))
    }

    async fn receive(&mut self) -> Result<Incoming<'_>, Error> {
        self.read.advance(self.consumed);
        self.consumed = 0;
        loop {
            self.check_protocol()?;
            match frame::parse(&self.read, FRAME_MAX_BEFORE_TUNE) {
                Ok(Some(first)) if first.kind == frame::HEARTBEAT => {
                    let length = first.len();
                    self.read.advance(length);
                }
                Ok(Some(first)) if first.kind != frame::METHOD || first.channel != 0 => {
                    let (kind, channel) = (first.kind, first.channel);
                    let message =
                        format!("frame of type {kind} on channel {channel} in the handshake");
                    return Err(self.malformed(message));
                }
                Ok(Some(first)) => {
                    self.consumed = first.len();
                    break;
                }
                Ok(None) => self.fill().await?,
                Err(error) => return Err(self.malformed(error.to_string())),
            }
        }
        let payload = &self.read[frame::HEADER_LEN..self.consumed - 1];
        Incoming::decode(payload).map_err(|error| self.malformed(error.to_string()))
    }

    async fn fill(&mut self) -> Result<(), Error> {
        match self.stream.read_buf(&mut self.read).await {
            Ok(0) => {
                let closed = io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "the peer closed the connection; is it an AMQP port with the right TLS setting?",
                );
                Err(self.broken(&closed))
            }
            Ok(_) => Ok(()),
            Err(error) => Err(self.broken(&error)),
        }
    }

    fn check_protocol(&self) -> Result<(), Error> {
        match PeerProtocol::of(&self.read) {
            None => Ok(()),
            // A broker that wants another version answers with its own protocol header and hangs up.
            Some(PeerProtocol::Amqp) => match self.read.first_chunk::<8>() {
                Some(header) => {
                    let message = format!("the peer wants another protocol: {header:?}");
                    Err(self.malformed(message))
                }
                None => Ok(()),
            },
            Some(other) => Err(self.malformed(other.instead_of("an AMQP broker"))),
        }
    }

    fn malformed(&self, message: String) -> Error {
        failed(self.host, ConnectFailure::Protocol, message)
    }
}

/// The lower of two limits where zero means none.
fn lower(client: u32, server: u32) -> u32 {
    match (client, server) {
        (0, limit) | (limit, 0) => limit,
        (client, server) => client.min(server),
    }
}

fn client_properties(config: &Config) -> FieldTable<'_> {
    let capabilities = [
        "authentication_failure_close",
        "basic.nack",
        "connection.blocked",
        "consumer_cancel_notify",
        "exchange_exchange_bindings",
        "publisher_confirms",
    ];
    let capabilities = capabilities
        .into_iter()
        .fold(FieldTable::new(), |table, name| table.with(name, true));
    let properties = FieldTable::new()
        .with("product", "Weft")
        .with("version", env!("CARGO_PKG_VERSION"))
        .with("platform", "PHP")
        .with("capabilities", capabilities);
    match &config.name {
        Some(name) => properties.with("connection_name", name.as_str()),
        None => properties,
    }
}
