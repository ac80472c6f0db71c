//! From nothing to a session that is ready for statements.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::io;
use std::rc::Rc;

use bytes::BytesMut;
use mysql_common::auth::plugins::{AuthProc, ChallengeResponsePlugin, Context, Response};
use mysql_common::constants::{CapabilityFlags, MariadbCapabilities};
use mysql_common::io::ParseBuf;
use mysql_common::packets::{
    AuthPlugin, AuthSwitchRequest, HandshakePacket, HandshakeResponse, SslRequest,
};
use mysql_common::proto::{MyDeserialize, MySerialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::config::{Config, Endpoint, SslMode};
use super::connection::Connection;
use super::failure::ServerFailure;
use super::reply::{Answer, Manner};
use super::wire::{Framing, Reader, frame, push_packet, take_packet};
use crate::net::{self, DialError, Stream, TlsConnector};
use crate::sql::{ConnectFailure, Error, Value};

/// The longest packet we accept, in bytes: as much as the protocol allows a server to be told.
const LONGEST_PACKET: u32 = 1 << 30;
/// `utf8mb4_general_ci`, which every server knows.
const COLLATION: u8 = 45;
/// A handshake is a few hundred bytes.
const HANDSHAKE_LIMIT: usize = 1 << 20;

/// What every session begins with. A loop over a stream may pause for longer than the minute that servers wait by
/// default for their client to read on.
const SETUP: &str = "SET NAMES utf8mb4, @@session.net_write_timeout = 3600, @@session.session_track_state_change = 1";
/// The same for servers that have no session tracking.
const PLAIN_SETUP: &str = "SET NAMES utf8mb4, @@session.net_write_timeout = 3600";
const UNKNOWN_VARIABLE: u16 = 1193;

/// Opens connections to one database.
pub(super) struct Connector {
    pub(super) config: Config,
    target: Rc<str>,
    /// Built once: reading the system's certificates takes milliseconds.
    tls: OnceCell<TlsConnector>,
}

impl Connector {
    pub(super) fn new(config: Config) -> Self {
        Self {
            target: config.target().into(),
            config,
            tls: OnceCell::new(),
        }
    }

    pub(super) fn target(&self) -> &str {
        &self.target
    }

    /// # Errors
    /// [`Error::Connect`], at the latest after the connect timeout.
    pub(super) async fn connect(&self) -> Result<Connection, Error> {
        self.within_timeout(async {
            let mut connection = self.log_in().await?;
            connection.push_control(SETUP);
            connection.push_query("SELECT @@max_allowed_packet");
            let ready = self.read_setup(&mut connection).await;
            ready.map_err(|error| self.while_logging_in(error))?;
            Ok(connection)
        })
        .await
    }

    /// Makes a used session as good as new.
    pub(super) async fn reset(&self, connection: &mut Connection) -> Result<(), Error> {
        connection.push_reset();
        if let Some(database) = &self.config.database {
            connection.push_database(database);
        }
        connection.push_control(SETUP);
        while connection.awaited() > 1 {
            if let Answer::Failed(failure) = connection.answer("").await? {
                return Err(connection.give_up(&failure.summary()));
            }
        }
        self.read_session_setup(connection).await?;
        connection.mark_clean();
        Ok(())
    }

    /// Stops what the session is doing; `connection` ends it altogether.
    pub(super) async fn kill(&self, id: u32, connection: bool) -> Result<(), Error> {
        self.within_timeout(async {
            let mut other = self.log_in().await?;
            let target = if connection { "CONNECTION" } else { "QUERY" };
            other.push_control(&format!("KILL {target} {id}"));
            // It may have gone by itself meanwhile.
            other.answer("KILL").await?;
            other.quit();
            Ok(())
        })
        .await
    }

    async fn read_setup(&self, connection: &mut Connection) -> Result<(), Error> {
        let set_up = connection.answer(SETUP).await?;
        if let Answer::Done(result) = connection.answer("").await?
            && let Some([Value::Int(bytes)]) = result.rows.first().map(Vec::as_slice)
        {
            connection.max_packet = usize::try_from(*bytes).unwrap_or(connection.max_packet);
        }
        self.finish_setup(connection, set_up).await
    }

    async fn read_session_setup(&self, connection: &mut Connection) -> Result<(), Error> {
        let set_up = connection.answer(SETUP).await?;
        self.finish_setup(connection, set_up).await
    }

    async fn finish_setup(&self, connection: &mut Connection, answer: Answer) -> Result<(), Error> {
        let failure = match answer {
            Answer::Failed(failure) if failure.code == UNKNOWN_VARIABLE => {
                connection.push_control(PLAIN_SETUP);
                match connection.answer(PLAIN_SETUP).await? {
                    Answer::Failed(failure) => failure,
                    _ => return Ok(()),
                }
            }
            Answer::Failed(failure) => failure,
            _ => return Ok(()),
        };
        Err(connection.give_up(&failure.summary()))
    }

    async fn within_timeout<T>(
        &self,
        attempt: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let limit = self.config.connect_timeout;
        match tokio::time::timeout(limit, attempt).await {
            Ok(outcome) => outcome,
            Err(_) => Err(self.failed(
                ConnectFailure::Timeout,
                format!("no answer within {limit:?}"),
            )),
        }
    }

    async fn log_in(&self) -> Result<Connection, Error> {
        let mut wire = Wire {
            stream: self.open().await?,
            input: BytesMut::new(),
            sequence: 0,
        };
        let greeting = self.receive(&mut wire).await?;
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
            password: self.config.password.as_deref().unwrap_or_default(),
            is_tls: matches!(wire.stream, Stream::Tls(_)),
            is_ipc: matches!(wire.stream, Stream::Unix(_)),
            scramble: greeting.nonce(),
        };
        // The scramble is told with a zero byte behind it.
        login.scramble.truncate(20);
        // The server asks for another one where the user's account has another.
        let plugin = match greeting.auth_plugin() {
            Some(AuthPlugin::CachingSha2Password) => AuthPlugin::CachingSha2Password,
            _ => AuthPlugin::MysqlNativePassword,
        };
        let mut procedure = self.begin(&plugin)?;
        let response = procedure.run(&login, &login.scramble);
        let response = response.map_err(|error| self.refused_plugin(&plugin, &error))?;
        let attributes = [
            ("program_name", self.config.application_name.as_str()),
            ("_client_name", "weft"),
        ];
        let attributes: HashMap<String, String> = attributes
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        let has_attributes = capabilities.contains(CapabilityFlags::CLIENT_CONNECT_ATTRS);
        let answer = HandshakeResponse::new(
            Some(response.data().unwrap_or_default()),
            (8, 0, 0),
            Some(self.config.user.as_bytes()),
            self.config.database.as_ref().map(String::as_bytes),
            Some(plugin.borrow()),
            capabilities,
            has_attributes.then_some(attributes),
            LONGEST_PACKET,
        )
        .with_mariadb_ext_capabilities(extensions);
        self.send(&mut wire, &answer).await?;
        let status = self.authenticate(&mut wire, &mut login, procedure).await?;
        let manner = Manner {
            without_eof: capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF),
            tracks_session: capabilities.contains(CapabilityFlags::CLIENT_SESSION_TRACK),
            extended: extensions.contains(extended),
        };
        Ok(Connection::new(
            wire.stream,
            wire.input,
            Rc::clone(&self.target),
            &self.config,
            manner,
            (greeting.connection_id(), status),
        ))
    }

    fn wanted(&self) -> CapabilityFlags {
        let mut wanted = CapabilityFlags::CLIENT_LONG_PASSWORD
            | CapabilityFlags::CLIENT_FOUND_ROWS
            | CapabilityFlags::CLIENT_LONG_FLAG
            | CapabilityFlags::CLIENT_CONNECT_WITH_DB
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
        if self.config.local_infile {
            wanted |= CapabilityFlags::CLIENT_LOCAL_FILES;
        }
        if self.config.ssl_mode != SslMode::Disable {
            wanted |= CapabilityFlags::CLIENT_SSL;
        }
        wanted
    }

    async fn open(&self) -> Result<Stream, Error> {
        match &self.config.endpoint {
            Endpoint::Unix { socket } => Stream::connect_unix(socket)
                .await
                .map_err(|error| self.refused(&error)),
            Endpoint::Tcp { host, port } => {
                net::dial(host, *port)
                    .await
                    .map(Stream::Tcp)
                    .map_err(|error| match error {
                        DialError::Name(error) => {
                            self.failed(ConnectFailure::Dns, error.to_string())
                        }
                        DialError::Socket(error) => self.refused(&error),
                    })
            }
        }
    }

    /// Switches to TLS where the mode wants it and the server has it.
    async fn secure(
        &self,
        mut wire: Wire,
        capabilities: &mut CapabilityFlags,
        extensions: MariadbCapabilities,
    ) -> Result<Wire, Error> {
        let Endpoint::Tcp { host, .. } = &self.config.endpoint else {
            capabilities.remove(CapabilityFlags::CLIENT_SSL);
            return Ok(wire);
        };
        if !capabilities.contains(CapabilityFlags::CLIENT_SSL) {
            return match self.config.ssl_mode {
                SslMode::Disable | SslMode::Prefer => Ok(wire),
                _ => Err(self.failed(
                    ConnectFailure::Tls,
                    "the server does not offer TLS".to_owned(),
                )),
            };
        }
        let request = SslRequest::new(*capabilities, LONGEST_PACKET, COLLATION)
            .with_mariadb_capabilities(extensions);
        self.send(&mut wire, &request).await?;
        // What a man in the middle might append to the greeting must not pass for encrypted.
        let Stream::Tcp(socket) = wire.stream else {
            return Ok(wire);
        };
        let secured = self.tls()?.handshake(host, socket).await;
        Ok(Wire {
            stream: secured.map_err(|reason| self.failed(ConnectFailure::Tls, reason))?,
            input: BytesMut::new(),
            sequence: wire.sequence,
        })
    }

    fn tls(&self) -> Result<&TlsConnector, Error> {
        if let Some(connector) = self.tls.get() {
            return Ok(connector);
        }
        let connector = TlsConnector::new(&self.config.client_tls())
            .map_err(|reason| self.failed(ConnectFailure::Tls, reason))?;
        Ok(self.tls.get_or_init(|| connector))
    }

    /// Answers what the server asks until it lets us in; its status flags.
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
                    procedure = self.begin(&plugin)?;
                    procedure.run(&*login, request.plugin_data())
                }
                Some(0x01) => procedure.run(&*login, &packet[1..]),
                _ => procedure.run(&*login, &packet),
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

    fn begin(&self, plugin: &AuthPlugin<'_>) -> Result<AuthProc, Error> {
        match plugin {
            AuthPlugin::MysqlNativePassword
            | AuthPlugin::CachingSha2Password
            | AuthPlugin::Ed25519 => plugin
                .init()
                .map_err(|error| self.refused_plugin(plugin, &error)),
            // The others show the password, or next to it, to whoever claims to be the server.
            _ => Err(self.refused_plugin(plugin, &"that plugin is not supported")),
        }
    }

    fn refused_plugin(&self, plugin: &AuthPlugin<'_>, reason: &dyn std::fmt::Display) -> Error {
        let name = String::from_utf8_lossy(plugin.as_bytes()).into_owned();
        self.failed(
            ConnectFailure::Authentication,
            format!("the server wants authentication by \"{name}\": {reason}"),
        )
    }

    async fn receive(&self, wire: &mut Wire) -> Result<BytesMut, Error> {
        let packet = wire.receive().await.map_err(|error| self.refused(&error))?;
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

    /// A connection lost during the log-in was never made.
    fn while_logging_in(&self, error: Error) -> Error {
        match error {
            Error::ConnectionLost { message, .. } => self.failed(ConnectFailure::Protocol, message),
            other => other,
        }
    }

    fn refused(&self, error: &io::Error) -> Error {
        self.failed(ConnectFailure::Refused, error.to_string())
    }

    fn failed(&self, failure: ConnectFailure, message: String) -> Error {
        Error::Connect {
            target: self.target.to_string(),
            failure,
            message,
        }
    }
}

/// The socket while the packets of both sides are numbered in one sequence.
struct Wire {
    stream: Stream,
    input: BytesMut,
    sequence: u8,
}

impl Wire {
    async fn receive(&mut self) -> io::Result<BytesMut> {
        loop {
            match frame(&self.input) {
                Framing::Whole { total } => {
                    let (packet, sequence) = take_packet(&mut self.input, total);
                    self.sequence = sequence.wrapping_add(1);
                    return Ok(packet);
                }
                Framing::Missing(bytes) if bytes > HANDSHAKE_LIMIT => {
                    return Err(io::Error::other(
                        "the peer does not speak the MySQL protocol",
                    ));
                }
                Framing::Missing(_) => {}
            }
            if self.stream.read_buf(&mut self.input).await? == 0 {
                return Err(io::Error::other("the server closed the connection"));
            }
        }
    }

    async fn send(&mut self, body: &[u8]) -> io::Result<()> {
        let mut packet = BytesMut::new();
        self.sequence = push_packet(&mut packet, self.sequence, |out| {
            out.extend_from_slice(body)
        });
        self.stream.write_all(&packet).await?;
        self.stream.flush().await
    }
}

/// What an authentication plugin may know.
struct Login<'a> {
    password: &'a str,
    is_tls: bool,
    is_ipc: bool,
    scramble: Vec<u8>,
}

impl Context for &Login<'_> {
    fn pass(&self) -> &[u8] {
        self.password.as_bytes()
    }

    fn is_ipc_transport(&self) -> bool {
        self.is_ipc
    }

    fn is_tls_transport(&self) -> bool {
        self.is_tls
    }

    fn scramble(&self) -> &[u8] {
        &self.scramble
    }

    fn server_key_pem(&self) -> Option<&[u8]> {
        None
    }
}
