//! SQL errors on their way to PHP exceptions.

use weft_core::sql::{ConnectFailure, Error, ServerError};

use crate::failure::{Detail, Failure};

/// The failure of one item of a batch, counted from 0. A lost connection and the like are no item's failure.
pub fn item_failure(error: Error, item: i64) -> Failure {
    if !matches!(error, Error::Server(_) | Error::Parameter { .. }) {
        return failure(error);
    }
    let mut failure = failure(error).with("item", Detail::Int(item));
    failure.message = format!("item {item}: {}", failure.message);
    failure
}

/// The one mapping of SQL errors onto kinds; `Weft\Internal\Failures` turns a kind into an exception.
pub fn failure(error: Error) -> Failure {
    let message = error.to_string();
    match error {
        Error::Dsn { .. } => Failure::new("dsn", message),
        Error::Connect { failure, .. } => Failure::new(connect_kind(failure), message),
        Error::ConnectionLost { sqlstate, .. } => {
            Failure::new("sql.connection_lost", message).with("sqlState", Detail::Text(sqlstate))
        }
        Error::OutcomeUnknown { .. } => Failure::new("sql.outcome_unknown", message),
        Error::Server(server) => Failure::new(server_kind(&server), message)
            .with("sqlState", Detail::Text(Some(server.sqlstate)))
            .with("statement", Detail::Text(Some(server.statement)))
            .with("constraint", Detail::Text(server.constraint))
            .with("code", Detail::Int(server.code.unwrap_or(0).into())),
        Error::Parameter { statement, .. } => {
            Failure::new("sql.parameter", message).with("statement", Detail::Text(Some(statement)))
        }
        Error::PoolExhausted { .. } => Failure::new("pool.exhausted", message),
        Error::PoolSlow { .. } => Failure::new("sql.pool_slow", message),
        Error::PoolBlocked { .. } => Failure::new("pool.blocked", message),
        Error::ServerDown { .. } => Failure::new("sql.server_down", message),
        Error::Hook { thrown, .. } => {
            Failure::new("sql.hook", message).with("error", Detail::Int(thrown))
        }
        Error::PoolClosed { .. } => Failure::new("pool.closed", message),
        Error::Cancelled { statement } => {
            Failure::new("sql.cancelled", message).with("statement", Detail::Text(Some(statement)))
        }
        Error::Usage { .. } => Failure::new("usage", message),
    }
}

fn server_kind(error: &ServerError) -> &'static str {
    match error.is_repeatable {
        true => "sql.server.repeatable",
        false => "sql.server",
    }
}

fn connect_kind(failure: ConnectFailure) -> &'static str {
    match failure {
        ConnectFailure::Refused => "sql.connect.refused",
        ConnectFailure::Timeout => "sql.connect.timeout",
        ConnectFailure::Authentication => "sql.connect.authentication",
        ConnectFailure::Database => "sql.connect.database",
        ConnectFailure::File => "sql.connect.file",
        ConnectFailure::Tls => "sql.connect.tls",
        ConnectFailure::Dns => "sql.connect.dns",
        ConnectFailure::Protocol => "sql.connect.protocol",
    }
}
