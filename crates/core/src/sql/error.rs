use crate::net::DialError;
use crate::pool;
use std::sync::Arc;

use super::Statement;

/// The failures of statements, transactions and connections.
///
/// Messages name the statement, the server and the cause, never a parameter's value and never a password.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    #[error("invalid database DSN \"{dsn}\": {reason}")]
    Dsn { dsn: String, reason: String },

    #[error("cannot connect to {target}: {message}")]
    Connect {
        target: String,
        failure: ConnectFailure,
        message: String,
    },

    /// The connection was lost after the statement was sent. Whether it took effect is unknown.
    #[error("connection to {target} lost: {message}")]
    ConnectionLost {
        target: String,
        message: String,
        /// The SQLSTATE with which the server announced that it closes the connection.
        sqlstate: Option<String>,
    },

    /// The commit was sent and not answered, because the connection was lost or the wait was cancelled.
    #[error(
        "the outcome of a transaction is unknown: COMMIT was sent to {target} and not answered ({message}). It is either committed or rolled back as a whole. \
         Before you repeat it, read back something that only it has written, such as a row with a unique id"
    )]
    OutcomeUnknown { target: String, message: String },

    #[error("{0}")]
    Server(Box<ServerError>),

    /// The parameters do not match the statement; nothing was sent.
    #[error("{message} [statement: {statement}]")]
    Parameter { statement: String, message: String },

    /// Every connection was in use for the whole borrow timeout; the message names the holders.
    #[error("{message}")]
    PoolExhausted { message: String },

    /// The pool had capacity, but no new connection was ready within the borrow timeout.
    #[error("{message}")]
    PoolSlow { message: String },

    /// The task holds the connections it waits for.
    #[error("{message}")]
    PoolBlocked { message: String },

    /// Refused immediately, because the latest attempts to connect have failed.
    #[error("{message}")]
    ServerDown { message: String },

    /// The number of the exception that the user's hook threw; 0 if it threw none.
    #[error("{message}")]
    Hook { message: String, thrown: i64 },

    #[error("{pool} is closed")]
    PoolClosed { pool: String },

    #[error("statement cancelled [statement: {statement}]")]
    Cancelled { statement: String },

    /// Incorrect use of an object, such as a transaction that has ended.
    #[error("{message}")]
    Usage { message: String },
}

impl Error {
    /// The statement's text is cut to 1,000 characters.
    pub fn parameter(sql: &str, message: impl Into<String>) -> Self {
        Self::Parameter {
            statement: excerpt(sql),
            message: message.into(),
        }
    }

    /// The error of a transaction whose connection was lost after the commit was sent.
    pub(crate) fn of_commit(self) -> Self {
        match self {
            Self::ConnectionLost {
                target, message, ..
            } => Self::OutcomeUnknown { target, message },
            other => other,
        }
    }

    /// `ER_SP_DOES_NOT_EXIST` of MySQL, which has another meaning for other statements than `ROLLBACK TO`.
    pub(crate) fn is_missing_savepoint(&self) -> bool {
        matches!(self, Self::Server(error) if error.code == Some(1305))
    }

    /// Whether the server is unavailable.
    pub(crate) fn is_down(&self) -> bool {
        let Self::Connect { failure, .. } = self else {
            return false;
        };
        matches!(
            failure,
            ConnectFailure::Refused | ConnectFailure::Timeout | ConnectFailure::Dns
        )
    }

    /// Transactions are begun and ended through their object, which tracks their state.
    pub(crate) fn boundary(sql: &str) -> Self {
        Self::Usage {
            message: format!(
                "use a transaction object to begin, commit and roll back, not a statement [statement: {}]",
                excerpt(sql)
            ),
        }
    }

    pub(crate) fn open_transaction() -> Self {
        Self::Usage {
            message: "the statement left a transaction open, which is rolled back; use a transaction object"
                .to_owned(),
        }
    }

    /// The same error with the statement as the user wrote it instead of the driver's form.
    pub(crate) fn in_words_of(mut self, statement: &Statement) -> Self {
        let shown = match &mut self {
            Self::Server(error) => &mut error.statement,
            Self::Parameter { statement, .. } | Self::Cancelled { statement } => statement,
            _ => return self,
        };
        if !Arc::ptr_eq(&statement.sql, &statement.source) && *shown == excerpt(&statement.sql) {
            *shown = excerpt(&statement.source);
        }
        self
    }
}

impl From<pool::Error<Error>> for Error {
    fn from(error: pool::Error<Error>) -> Self {
        let message = error.to_string();
        match error {
            pool::Error::Exhausted { .. } => Self::PoolExhausted { message },
            pool::Error::Slow { .. } => Self::PoolSlow { message },
            pool::Error::SelfBlocked { .. } => Self::PoolBlocked { message },
            pool::Error::Down { .. } => Self::ServerDown { message },
            pool::Error::Closed { pool } => Self::PoolClosed {
                pool: format!("pool \"{pool}\""),
            },
            pool::Error::Connect(error) => error,
        }
    }
}

/// The reason why a connection failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectFailure {
    /// Connection refused, or host unreachable.
    Refused,
    Timeout,
    /// Authentication failed.
    Authentication,
    /// The server has no database of that name.
    Database,
    /// The file cannot be opened or created, or is not a database.
    File,
    Tls,
    /// The host name has no address.
    Dns,
    /// Protocol violation, or another refusal by the server.
    Protocol,
}

impl ConnectFailure {
    pub(super) fn of_dial(error: &DialError) -> Self {
        match error {
            DialError::Name(_) => Self::Dns,
            DialError::Socket(_) => Self::Refused,
            DialError::Timeout(_) => Self::Timeout,
        }
    }
}

/// An error the database itself reported.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message} (SQLSTATE {sqlstate}){} [statement: {statement}]", detail_suffix(.detail, .hint))]
pub struct ServerError {
    /// Five characters; SQLite's result codes are mapped to their nearest SQLSTATE.
    pub sqlstate: String,
    pub message: String,
    /// The server's DETAIL line; omitted if it could repeat the value of a parameter.
    pub detail: Option<String>,
    pub hint: Option<String>,
    pub constraint: Option<String>,
    /// MySQL's error number, SQLite's extended result code; PostgreSQL has none.
    pub code: Option<i32>,
    /// The transaction may succeed when it is repeated, although the SQLSTATE does not say so.
    pub is_repeatable: bool,
    /// The statement's text, cut to 1,000 characters.
    pub statement: String,
}

fn detail_suffix(detail: &Option<String>, hint: &Option<String>) -> String {
    [detail, hint]
        .into_iter()
        .flatten()
        .map(|line| format!("; {line}"))
        .collect()
}

/// The text of a statement for errors, cut to 1,000 characters.
pub(crate) fn excerpt(sql: &str) -> String {
    match sql.char_indices().nth(1_000) {
        Some((end, _)) => format!("{}…", &sql[..end]),
        None => sql.to_owned(),
    }
}
