//! Opens connections: address, socket, TLS, authentication, session settings.

use std::cell::OnceCell;
use std::io;
use std::rc::Rc;

use super::config::Config;
use super::connection::Connection;
use super::reply::Answer;
use crate::net::{Deadline, TlsConnector};
use crate::sql::server_manager::ServerManager;
use crate::sql::{ConnectFailure, Error, Value};

/// Settings of every session. A loop over a stream may pause for longer than the minute that servers wait by
/// default for a client to read.
const SESSION_SETUP: &str = "SET NAMES utf8mb4, @@session.net_write_timeout = 3600, @@session.session_track_state_change = 1";
/// The same for servers without session tracking.
const SESSION_SETUP_WITHOUT_TRACKING: &str =
    "SET NAMES utf8mb4, @@session.net_write_timeout = 3600";
const UNKNOWN_VARIABLE: u16 = 1193;

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
pub type Mysql = ServerManager<Connector>;

/// Opens connections to one database.
pub struct Connector {
    pub(super) config: Config,
    pub(super) target: Rc<str>,
    /// Built once: reading the system's certificates takes milliseconds.
    pub(super) tls: OnceCell<TlsConnector>,
}

impl Connector {
    pub(super) fn new(config: Config) -> Self {
        Self {
            target: config.connect.target().into(),
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
        self.within_timeout(async |deadline| {
            let mut connection = self.log_in(deadline).await?;
            connection.push_control(SESSION_SETUP);
            connection.push_query("SELECT @@max_allowed_packet");
            let ready = self.read_setup(&mut connection).await;
            ready.map_err(|error| self.while_logging_in(error))?;
            Ok(connection)
        })
        .await
    }

    /// Resets a used session.
    pub(super) async fn reset(&self, connection: &mut Connection) -> Result<(), Error> {
        connection.push_reset();
        if let Some(database) = &self.config.connect.database {
            connection.push_database(database);
        }
        connection.push_control(SESSION_SETUP);
        while connection.awaited() > 1 {
            if let Answer::Failed(failure) = connection.answer("").await? {
                return Err(connection.give_up(&failure.summary()));
            }
        }
        self.read_session_setup(connection).await?;
        connection.mark_clean();
        Ok(())
    }

    /// Cancels the statement of a session; with `connection` it ends the session.
    pub(super) async fn kill(&self, id: u32, connection: bool) -> Result<(), Error> {
        self.within_timeout(async |deadline| {
            let mut other = self.log_in(deadline).await?;
            let target = if connection { "CONNECTION" } else { "QUERY" };
            other.push_control(&format!("KILL {target} {id}"));
            // The session may have ended in the meantime.
            other.answer("KILL").await?;
            other.quit();
            Ok(())
        })
        .await
    }

    async fn read_setup(&self, connection: &mut Connection) -> Result<(), Error> {
        let set_up = connection.answer(SESSION_SETUP).await?;
        if let Answer::Done(result) = connection.answer("").await?
            && let Some([Value::Int(bytes)]) = result.rows.first().map(Vec::as_slice)
        {
            connection.max_packet = usize::try_from(*bytes).unwrap_or(connection.max_packet);
        }
        self.finish_setup(connection, set_up).await
    }

    async fn read_session_setup(&self, connection: &mut Connection) -> Result<(), Error> {
        let set_up = connection.answer(SESSION_SETUP).await?;
        self.finish_setup(connection, set_up).await
    }

    async fn finish_setup(&self, connection: &mut Connection, answer: Answer) -> Result<(), Error> {
        let failure = match answer {
            Answer::Failed(failure) if failure.code == UNKNOWN_VARIABLE => {
                connection.push_control(SESSION_SETUP_WITHOUT_TRACKING);
                match connection.answer(SESSION_SETUP_WITHOUT_TRACKING).await? {
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
        attempt: impl AsyncFnOnce(Deadline) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let deadline = Deadline::after(self.config.connect.connect_timeout);
        match deadline.limit(attempt(deadline)).await {
            Ok(outcome) => outcome,
            Err(silence) => Err(self.failed(ConnectFailure::Timeout, silence.to_string())),
        }
    }

    /// Turns the loss of a connection during authentication into a failure to connect.
    fn while_logging_in(&self, error: Error) -> Error {
        match error {
            Error::ConnectionLost { message, .. } => self.failed(ConnectFailure::Protocol, message),
            other => other,
        }
    }

    pub(super) fn refused(&self, error: &io::Error) -> Error {
        self.failed(ConnectFailure::Refused, error.to_string())
    }

    pub(super) fn failed(&self, failure: ConnectFailure, message: String) -> Error {
        Error::Connect {
            target: self.target.to_string(),
            failure,
            message,
        }
    }
}
