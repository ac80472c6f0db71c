use crate::pool;
use std::sync::Arc;

use super::Statement;

/// Everything that can go wrong between a statement and its result.
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

    /// The connection broke after the statement was sent: whether it took effect is unknown.
    #[error("connection to {target} lost: {message}")]
    ConnectionLost { target: String, message: String },

    /// The commit was sent and its answer never came: because the connection broke, or because nobody waits for it any more.
    #[error(
        "the outcome of a transaction is unknown: COMMIT was sent to {target} and not answered ({message}). It is either committed or rolled back as a whole. \
         Before you repeat it, read back something that only it has written, such as a row with a unique id"
    )]
    OutcomeUnknown { target: String, message: String },

    #[error("{0}")]
    Server(Box<ServerError>),

    /// The statement's text and its parameters do not fit together; nothing was sent.
    #[error("{message} [statement: {statement}]")]
    Parameter { statement: String, message: String },

    /// Every connection was in use for the whole borrow timeout; the message names the holders.
    #[error("{message}")]
    PoolExhausted { message: String },

    /// There was room in the pool, but no new connection was ready within the borrow timeout.
    #[error("{message}")]
    PoolSlow { message: String },

    /// The task holds the connections it waits for.
    #[error("{message}")]
    PoolBlocked { message: String },

    /// Refused at once, because the last attempts to connect have failed.
    #[error("{message}")]
    ServerDown { message: String },

    /// What the user's hook threw, by its number, 0 where it threw nothing.
    #[error("{message}")]
    Hook { message: String, thrown: i64 },

    #[error("{pool} is closed")]
    PoolClosed { pool: String },

    #[error("statement cancelled [statement: {statement}]")]
    Cancelled { statement: String },

    /// The caller broke the rules of the object, such as using a finished transaction.
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

    /// What a lost connection means for a transaction whose commit had been sent.
    pub(crate) fn of_commit(self) -> Self {
        match self {
            Self::ConnectionLost { target, message } => Self::OutcomeUnknown { target, message },
            other => other,
        }
    }

    /// Whether it means that no server answers at all.
    pub(crate) fn is_down(&self) -> bool {
        let Self::Connect { failure, .. } = self else {
            return false;
        };
        matches!(
            failure,
            ConnectFailure::Refused | ConnectFailure::Timeout | ConnectFailure::Dns
        )
    }

    /// A transaction begins and ends through its object, which otherwise would not know of it.
    pub(crate) fn boundary(sql: &str) -> Self {
        Self::Usage {
            message: format!(
                "a transaction is begun, committed and rolled back by its object, not by a statement [statement: {}]",
                excerpt(sql)
            ),
        }
    }

    pub(crate) fn open_transaction() -> Self {
        Self::Usage {
            message: "the statement left a transaction open, which was rolled back; use a transaction object"
                .to_owned(),
        }
    }

    /// The same error with the statement as its author wrote it, where it holds the driver's form.
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

/// Why a connection could not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectFailure {
    /// Nothing listens there, or the host cannot be reached.
    Refused,
    Timeout,
    /// The server refused user or password.
    Authentication,
    /// The server has no database of that name.
    Database,
    /// The file cannot be opened or created, or is no database.
    File,
    Tls,
    /// The host name has no address.
    Dns,
    /// The peer answered in a way this client does not understand, or refused for another reason.
    Protocol,
}

/// An error the database itself reported.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message} (SQLSTATE {sqlstate}){} [statement: {statement}]", detail_suffix(.detail, .hint))]
pub struct ServerError {
    /// Five characters; SQLite's result codes are mapped to their nearest SQLSTATE.
    pub sqlstate: String,
    pub message: String,
    /// The server's DETAIL line is left out where it would repeat a parameter's value.
    pub detail: Option<String>,
    pub hint: Option<String>,
    pub constraint: Option<String>,
    /// MySQL's error number, SQLite's extended result code; PostgreSQL has none.
    pub code: Option<i32>,
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

/// A statement's text as errors carry it: cut to 1,000 characters.
pub(crate) fn excerpt(sql: &str) -> String {
    match sql.char_indices().nth(1_000) {
        Some((end, _)) => format!("{}…", &sql[..end]),
        None => sql.to_owned(),
    }
}
