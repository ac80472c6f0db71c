//! The handshake: capabilities, TLS, and the authentication plugins.

use std::collections::HashMap;
use std::future::poll_fn;
use std::io;
use std::path::Path;
use std::rc::Rc;

use bytes::BytesMut;
use mysql_common::auth::plugins::{AuthProc, ChallengeResponsePlugin, Context, Response};
use mysql_common::constants::{CapabilityFlags, MariadbCapabilities};
use mysql_common::io::ParseBuf;
use mysql_common::packets::{
    AuthPlugin, AuthSwitchRequest, HandshakePacket, HandshakeResponse, SslRequest,
};
use mysql_common::proto::{MyDeserialize, MySerialize};

use super::connection::Connection;
use super::failure::ServerFailure;
use super::reply::Capabilities;
use super::startup::Connector;
use super::wire::{Framing, Reader, frame, push_packet, take_packet};
use crate::net::{self, BufferedStream, Deadline, PeerProtocol, Stream, TlsConnector};
use crate::sql::dsn::{Endpoint, SslMode};
use crate::sql::{ConnectFailure, Error};

/// The longest accepted packet in bytes: the maximum of the protocol.
const PACKET_BYTES: u32 = 1 << 30;
/// `utf8mb4_general_ci`, which every server knows.
const COLLATION: u8 = 45;
/// A handshake is a few hundred bytes.
const HANDSHAKE_BYTES: usize = 1 << 20;
/// The server has no cached hash for `caching_sha2_password` and requests the password itself.
const FULL_AUTHENTICATION: &[u8] = &[4];

impl Connector {
    /// Performs the handshake and authenticates.
    pub(super) async fn log_in(&self, deadline: Deadline) -> Result<Connection, Error> {
        let mut wire = Wire::new(self.open(deadline).await?, 0);
        let greeting = self.receive_greeting(&mut wire, deadline).await?;
        if !has_sound_length(&greeting) {
            return Err(self.incomprehensible());
        }
        let greeting: HandshakePacket<'_> = self.parse(&greeting)?;
        let mut capabilities = self.wanted() & greeting.capabilities();
        let is_mariadb = !greeting
            .capabilities()
            .contains(CapabilityFlags::CLIENT_LONG_PASSWORD);
        let extended = MariadbCapabilities::MARIADB_CLIENT_EXTENDED_METADATA;
        let extensions = match is_mariadb {
            true => greeting.mariadb_ext_capabilities() & extended,
            false => MariadbCapabilities::empty(),
        };
        wire = self.secure(wire, &mut capabilities, extensions).await?;
        let mut login = Login {
            password: self.config.connect.password.as_deref().unwrap_or_default(),
            channel: self.channel(wire.link.stream())?,
            scramble: greeting.nonce(),
        };
        // The scramble is sent with a trailing zero byte.
        login.scramble.truncate(20);
        // The server requests another plugin if the user's account has another.
        let plugin = match greeting.auth_plugin() {
            Some(AuthPlugin::CachingSha2Password) => AuthPlugin::CachingSha2Password,
            _ => AuthPlugin::MysqlNativePassword,
        };
        let mut procedure = self.begin(&plugin, &login)?;
        let response = procedure.run(&login, &login.scramble);
        let response = response.map_err(|error| self.refused_plugin(&plugin, &error))?;
        let attributes = [
            (
                "program_name",
                self.config.connect.application_name.as_str(),
            ),
            ("_client_name", "weft"),
        ];
        let attributes: HashMap<String, String> = attributes
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        let has_attributes = capabilities.contains(CapabilityFlags::CLIENT_CONNECT_ATTRS);
        let answer = HandshakeResponse::new(
            Some(response.data().unwrap_or_default()),
            (8, 0, 0),
            Some(self.config.connect.user.as_bytes()),
            self.config.connect.database.as_ref().map(String::as_bytes),
            Some(plugin.borrow()),
            capabilities,
            has_attributes.then_some(attributes),
            PACKET_BYTES,
        )
        .with_mariadb_ext_capabilities(extensions);
        self.send(&mut wire, &answer).await?;
        let status = self.authenticate(&mut wire, &mut login, procedure).await?;
        let capabilities = Capabilities {
            without_eof: capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF),
            tracks_session: capabilities.contains(CapabilityFlags::CLIENT_SESSION_TRACK),
            extended: extensions.contains(extended),
        };
        Ok(Connection::new(
            wire.link,
            Rc::clone(&self.target),
            &self.config,
            capabilities,
            (greeting.connection_id(), status),
        ))
    }

    fn wanted(&self) -> CapabilityFlags {
        let mut wanted = CapabilityFlags::CLIENT_LONG_PASSWORD
            | CapabilityFlags::CLIENT_FOUND_ROWS
            | CapabilityFlags::CLIENT_LONG_FLAG
            | CapabilityFlags::CLIENT_PROTOCOL_41
            | CapabilityFlags::CLIENT_TRANSACTIONS
            | CapabilityFlags::CLIENT_SECURE_CONNECTION
            | CapabilityFlags::CLIENT_MULTI_RESULTS
            | CapabilityFlags::CLIENT_PS_MULTI_RESULTS
            | CapabilityFlags::CLIENT_PLUGIN_AUTH
            | CapabilityFlags::CLIENT_CONNECT_ATTRS
            | CapabilityFlags::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA
            | CapabilityFlags::CLIENT_SESSION_TRACK
            | CapabilityFlags::CLIENT_DEPRECATE_EOF;
        if self.config.connect.database.is_some() {
            wanted |= CapabilityFlags::CLIENT_CONNECT_WITH_DB;
        }
        if self.config.local_infile {
            wanted |= CapabilityFlags::CLIENT_LOCAL_FILES;
        }
        if self.config.connect.ssl_mode != SslMode::Disable {
            wanted |= CapabilityFlags::CLIENT_SSL;
        }
        wanted
    }

    async fn open(&self, deadline: Deadline) -> Result<Stream, Error> {
        match &self.config.connect.endpoint {
            Endpoint::Unix { socket } => Stream::connect_unix(socket)
                .await
                .map_err(|error| self.refused(&error)),
            Endpoint::Tcp { host, port } => {
                let dialled = net::dial(host, *port, deadline).await;
                dialled.map(Stream::Tcp).map_err(|error| {
                    self.failed(ConnectFailure::of_dial(&error), error.to_string())
                })
            }
        }
    }

    /// Switches to TLS if the mode requires or prefers it and the server supports it.
    async fn secure(
        &self,
        mut wire: Wire,
        capabilities: &mut CapabilityFlags,
        extensions: MariadbCapabilities,
    ) -> Result<Wire, Error> {
        let Endpoint::Tcp { host, .. } = &self.config.connect.endpoint else {
            capabilities.remove(CapabilityFlags::CLIENT_SSL);
            return Ok(wire);
        };
        if !capabilities.contains(CapabilityFlags::CLIENT_SSL) {
            return match self.config.connect.ssl_mode {
                SslMode::Disable | SslMode::Prefer => Ok(wire),
                _ => Err(self.failed(
                    ConnectFailure::Tls,
                    "the server does not offer TLS".to_owned(),
                )),
            };
        }
        let request = SslRequest::new(*capabilities, PACKET_BYTES, COLLATION)
            .with_mariadb_capabilities(extensions);
        self.send(&mut wire, &request).await?;
        // Bytes that an attacker appends to the greeting must not be treated as encrypted.
        let (stream, _) = wire.link.into_parts();
        let Stream::Tcp(socket) = stream else {
            return Ok(Wire::new(stream, wire.sequence));
        };
        let secured = self.tls()?.handshake(host, socket).await;
        let secured = secured.map_err(|reason| self.failed(ConnectFailure::Tls, reason))?;
        Ok(Wire::new(secured, wire.sequence))
    }

    fn tls(&self) -> Result<&TlsConnector, Error> {
        if let Some(connector) = self.tls.get() {
            return Ok(connector);
        }
        let connector = TlsConnector::new(&self.config.connect.client_tls())
            .map_err(|reason| self.failed(ConnectFailure::Tls, reason))?;
        Ok(self.tls.get_or_init(|| connector))
    }

    /// Answers the server's requests until authentication succeeds. Returns the status flags.
    async fn authenticate(
        &self,
        wire: &mut Wire,
        login: &mut Login<'_>,
        mut procedure: AuthProc,
    ) -> Result<u16, Error> {
        let mut switched = false;
        loop {
            let packet = self.receive(wire).await?;
            let response = match packet.first() {
                Some(0x00) => return self.read_welcome(&packet),
                Some(0xfe) if !switched => {
                    switched = true;
                    let request: AuthSwitchRequest<'_> = self.parse(&packet)?;
                    login.scramble = request.plugin_data().to_vec();
                    let plugin = request.auth_plugin();
                    procedure = self.begin(&plugin, login)?;
                    procedure.run(&*login, request.plugin_data())
                }
                first => {
                    let challenge = &packet[usize::from(first == Some(&0x01))..];
                    let is_cached = matches!(procedure, AuthProc::CachingSha2Password(_));
                    if is_cached && challenge == FULL_AUTHENTICATION {
                        self.check_exposure(&AuthPlugin::CachingSha2Password, login)?;
                    }
                    procedure.run(&*login, challenge)
                }
            };
            let response = response
                .map_err(|error| self.failed(ConnectFailure::Authentication, error.to_string()))?;
            if let Response::Next { packet: Some(data) } | Response::Last { packet: Some(data) } =
                response
            {
                self.send_bytes(wire, &data).await?;
            }
        }
    }

    fn read_welcome(&self, packet: &[u8]) -> Result<u16, Error> {
        let mut reader = Reader(&packet[1..]);
        let status = reader.length().and_then(|_| reader.length());
        status
            .and_then(|_| reader.u16())
            .map_err(|_| self.incomprehensible())
    }

    fn begin(&self, plugin: &AuthPlugin<'_>, login: &Login<'_>) -> Result<AuthProc, Error> {
        match plugin {
            // These prove knowledge of the password without sending it; the last one may be followed by a request for it.
            AuthPlugin::MysqlNativePassword
            | AuthPlugin::Ed25519
            | AuthPlugin::CachingSha2Password => {}
            AuthPlugin::Sha256Password | AuthPlugin::MysqlClearPassword => {
                self.check_exposure(plugin, login)?;
            }
            _ => return Err(self.refused_plugin(plugin, &"that plugin is not supported")),
        }
        plugin
            .init()
            .map_err(|error| self.refused_plugin(plugin, &error))
    }

    /// Refuses to send the password to an unverified server.
    fn check_exposure(&self, plugin: &AuthPlugin<'_>, login: &Login<'_>) -> Result<(), Error> {
        let is_clear = matches!(plugin, AuthPlugin::MysqlClearPassword);
        let obstacle = match login.channel {
            _ if login.password.is_empty() => return Ok(()),
            Channel::Socket | Channel::Proven => return Ok(()),
            Channel::Key(_) | Channel::Plain if is_clear => {
                "the connection has no TLS. Use sslmode=verify-full or a Unix socket"
            }
            Channel::Key(_) => return Ok(()),
            Channel::UnprovenTls | Channel::Plain if self.config.allow_unverified_server => {
                return Ok(());
            }
            Channel::UnprovenTls => {
                "the server's certificate is not verified. Use sslmode=verify-full (with sslrootcert=FILE for an authority of \
                 your own), sslmode=disable with server_public_key=FILE, a Unix socket, or, on a trusted network, \
                 allow_unverified_server=on"
            }
            Channel::Plain => {
                "the connection has no TLS. Use sslmode=verify-full, a Unix socket, server_public_key=FILE with the server's \
                 RSA key, or, on a trusted network, allow_unverified_server=on"
            }
        };
        Err(self.refused_plugin(
            plugin,
            &format!("that sends it the password, but {obstacle}"),
        ))
    }

    /// # Errors
    /// [`Error::Connect`] when the key of the server cannot be read.
    fn channel(&self, stream: &Stream) -> Result<Channel, Error> {
        let key = self.config.server_public_key.as_deref();
        Ok(match (stream, key) {
            (Stream::Unix(_), _) => Channel::Socket,
            (Stream::Tls(_), _) if self.config.connect.proves_server() => Channel::Proven,
            (Stream::Tls(_), _) => Channel::UnprovenTls,
            (Stream::Tcp(_), Some(file)) => Channel::Key(self.read_key(file)?),
            (Stream::Tcp(_), None) => Channel::Plain,
        })
    }

    fn read_key(&self, file: &Path) -> Result<Vec<u8>, Error> {
        let unusable = |reason: &dyn std::fmt::Display| {
            let file = file.display();
            self.failed(
                ConnectFailure::Authentication,
                format!("server_public_key {file}: {reason}"),
            )
        };
        let key = std::fs::read(file).map_err(|error| unusable(&error))?;
        // The form that `caching_sha2_password` uses, and the only one that its client supports.
        match key.starts_with(b"-----BEGIN PUBLIC KEY-----") {
            true => Ok(key),
            false => Err(unusable(
                &"it contains no public key in PEM (BEGIN PUBLIC KEY)",
            )),
        }
    }

    fn refused_plugin(&self, plugin: &AuthPlugin<'_>, reason: &dyn std::fmt::Display) -> Error {
        let name = String::from_utf8_lossy(plugin.as_bytes()).into_owned();
        self.failed(
            ConnectFailure::Authentication,
            format!("the server requires authentication by \"{name}\": {reason}"),
        )
    }

    /// The first packet, with which the server speaks first. Servers of most other protocols wait for the client.
    async fn receive_greeting(
        &self,
        wire: &mut Wire,
        deadline: Deadline,
    ) -> Result<BytesMut, Error> {
        let received = deadline.limit(wire.receive()).await;
        let other = PeerProtocol::of(&wire.link.input);
        let other = other.filter(|other| !matches!(other, PeerProtocol::Mysql(_)));
        if let Some(other) = other {
            let message = other.instead_of("a MySQL or MariaDB server");
            return Err(self.failed(ConnectFailure::Protocol, message));
        }
        match received {
            Ok(Ok(packet)) => self.check_packet(packet),
            Ok(Err(error)) => Err(self.refused(&error)),
            Err(silence) => {
                let message = format!(
                    "{silence}: MySQL and MariaDB send a greeting first. Is this one of them?"
                );
                Err(self.failed(ConnectFailure::Timeout, message))
            }
        }
    }

    async fn receive(&self, wire: &mut Wire) -> Result<BytesMut, Error> {
        let packet = wire.receive().await.map_err(|error| self.refused(&error))?;
        self.check_packet(packet)
    }

    /// # Errors
    /// The packet is empty or an error of the server.
    fn check_packet(&self, packet: BytesMut) -> Result<BytesMut, Error> {
        match packet.split_first() {
            Some((0xff, body)) => match ServerFailure::read(body) {
                Ok(failure) => Err(failure.into_connect_error(&self.target)),
                Err(_) => Err(self.incomprehensible()),
            },
            Some(_) => Ok(packet),
            None => Err(self.incomprehensible()),
        }
    }

    async fn send(&self, wire: &mut Wire, packet: &impl MySerialize) -> Result<(), Error> {
        let mut body = Vec::new();
        packet.serialize(&mut body);
        self.send_bytes(wire, &body).await
    }

    async fn send_bytes(&self, wire: &mut Wire, body: &[u8]) -> Result<(), Error> {
        wire.send(body).await.map_err(|error| self.refused(&error))
    }

    fn parse<'a, T: MyDeserialize<'a, Ctx = ()>>(&self, packet: &'a [u8]) -> Result<T, Error> {
        ParseBuf(packet)
            .parse(())
            .map_err(|_| self.incomprehensible())
    }

    fn incomprehensible(&self) -> Error {
        self.failed(
            ConnectFailure::Protocol,
            "the peer does not speak the MySQL protocol".to_owned(),
        )
    }
}

/// Whether the length of a greeting's scramble is valid: `mysql_common` treats it as a signed byte.
pub(super) fn has_sound_length(greeting: &[u8]) -> bool {
    let version = greeting.iter().skip(1).position(|byte| *byte == 0);
    // The length comes 20 bytes after the version's end.
    let length = version.and_then(|end| greeting.get(end + 22));
    length.is_none_or(|length| *length < 128)
}

/// The socket during the handshake, when the packets of both sides share one sequence.
struct Wire {
    link: BufferedStream,
    sequence: u8,
}

impl Wire {
    fn new(stream: Stream, sequence: u8) -> Self {
        Self {
            link: BufferedStream::new(stream, BytesMut::new()),
            sequence,
        }
    }

    async fn receive(&mut self) -> io::Result<BytesMut> {
        loop {
            match frame(&self.link.input) {
                Framing::Whole { total } => {
                    let (packet, sequence) = take_packet(&mut self.link.input, total);
                    self.sequence = sequence.wrapping_add(1);
                    return Ok(packet);
                }
                Framing::Missing(bytes) if bytes > HANDSHAKE_BYTES => {
                    return Err(io::Error::other(
                        "the peer does not speak the MySQL protocol",
                    ));
                }
                Framing::Missing(_) => {}
            }
            poll_fn(|cx| self.link.poll_transfer(cx, 0)).await?;
        }
    }

    async fn send(&mut self, body: &[u8]) -> io::Result<()> {
        self.sequence = push_packet(&mut self.link.out, self.sequence, |out| {
            out.extend_from_slice(body)
        });
        self.link.flush().await
    }
}

/// The identity of the peer that receives the password.
enum Channel {
    /// Only this machine's processes are on the other side.
    Socket,
    /// TLS with a verified certificate.
    Proven,
    UnprovenTls,
    /// No TLS, but a configured public key of the server (PEM).
    Key(Vec<u8>),
    Plain,
}

/// The input of an authentication plugin.
struct Login<'a> {
    password: &'a str,
    channel: Channel,
    scramble: Vec<u8>,
}

impl Context for &Login<'_> {
    fn pass(&self) -> &[u8] {
        self.password.as_bytes()
    }

    /// Whether `caching_sha2_password` sends the password in the clear. By `sha256_password` the server wants it encrypted on a socket, too.
    fn is_ipc_transport(&self) -> bool {
        matches!(self.channel, Channel::Socket)
    }

    /// Whether each plugin sends the password in the clear.
    fn is_tls_transport(&self) -> bool {
        matches!(self.channel, Channel::Proven | Channel::UnprovenTls)
    }

    fn scramble(&self) -> &[u8] {
        &self.scramble
    }

    fn server_key_pem(&self) -> Option<&[u8]> {
        match &self.channel {
            Channel::Key(key) => Some(key),
            _ => None,
        }
    }
}
