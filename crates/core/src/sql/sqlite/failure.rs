//! SQLite's result codes as SQLSTATE.

use std::path::Path;

use rusqlite::ffi;

use crate::sql::error::excerpt;
use crate::sql::{ConnectFailure, Error, ServerError};

const MISSING_TABLE: &str = "42P01";

/// The error of a statement.
pub(super) fn of_statement(error: &rusqlite::Error, sql: &str) -> Error {
    let (code, message) = code_and_message(error);
    let mut failure = server(sqlstate(code, &message), message, sql);
    if let Error::Server(error) = &mut failure {
        error.code = Some(code);
    }
    failure
}

/// An error of this client, with an SQLSTATE.
pub(super) fn server(sqlstate: &str, message: impl Into<String>, sql: &str) -> Error {
    let message = message.into();
    Error::Server(Box::new(ServerError {
        sqlstate: sqlstate.to_owned(),
        constraint: constraint(&message),
        message,
        detail: None,
        hint: None,
        code: None,
        is_repeatable: false,
        statement: excerpt(sql),
    }))
}

/// For an error of a reading connection while the writing one has more tables than the file.
pub(super) fn with_hint_for_missing_table(mut error: Error) -> Error {
    if let Error::Server(error) = &mut error
        && error.sqlstate == MISSING_TABLE
    {
        error.hint = Some(
            "attached databases and temporary tables belong to the connection that writes: read them in a transaction"
                .to_owned(),
        );
    }
    error
}

pub(super) fn usage(message: impl Into<String>) -> Error {
    Error::Usage {
        message: message.into(),
    }
}

/// The error of opening a file. The file system reports more about the cause than SQLite does.
pub(super) fn of_open(error: &rusqlite::Error, target: &str, path: &Path) -> Error {
    let (code, message) = code_and_message(error);
    let (failure, message) = match code & 0xff {
        ffi::SQLITE_NOTADB => (
            ConnectFailure::File,
            "the file is not an SQLite database".into(),
        ),
        ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED => (
            ConnectFailure::Timeout,
            format!("another process has locked it: {message}"),
        ),
        _ => (ConnectFailure::File, unopenable(path).unwrap_or(message)),
    };
    Error::Connect {
        target: target.to_owned(),
        failure,
        message,
    }
}

/// The cause, as the file system reports it.
fn unopenable(path: &Path) -> Option<String> {
    let directory = path
        .parent()
        .filter(|directory| !directory.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    if !directory.is_dir() {
        return Some(format!(
            "the directory \"{}\" does not exist",
            directory.display()
        ));
    }
    if path.is_dir() {
        return Some("it is a directory".into());
    }
    let error = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .err()?;
    Some(match error.kind() {
        std::io::ErrorKind::PermissionDenied => {
            "this user has no permission to read and write it".into()
        }
        std::io::ErrorKind::NotFound => format!(
            "it does not exist and cannot be created in \"{}\"",
            directory.display()
        ),
        _ => error.to_string(),
    })
}

fn code_and_message(error: &rusqlite::Error) -> (i32, String) {
    match error {
        rusqlite::Error::SqliteFailure(code, message) => (
            code.extended_code,
            message.clone().unwrap_or_else(|| code.to_string()),
        ),
        rusqlite::Error::SqlInputError { error, msg, .. } => (error.extended_code, msg.clone()),
        other => (ffi::SQLITE_ERROR, other.to_string()),
    }
}

/// The nearest SQLSTATE. SQLite distinguishes most errors in statements only by the message.
fn sqlstate(code: i32, message: &str) -> &'static str {
    match code {
        ffi::SQLITE_CONSTRAINT_UNIQUE
        | ffi::SQLITE_CONSTRAINT_PRIMARYKEY
        | ffi::SQLITE_CONSTRAINT_ROWID => return "23505",
        ffi::SQLITE_CONSTRAINT_NOTNULL => return "23502",
        ffi::SQLITE_CONSTRAINT_FOREIGNKEY => return "23503",
        ffi::SQLITE_CONSTRAINT_CHECK => return "23514",
        ffi::SQLITE_CONSTRAINT_TRIGGER => return "P0001",
        _ => {}
    }
    match code & 0xff {
        ffi::SQLITE_CONSTRAINT => "23000",
        ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED => "55P03",
        ffi::SQLITE_READONLY => "25006",
        ffi::SQLITE_FULL => "53100",
        ffi::SQLITE_NOMEM => "53200",
        ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB => "XX001",
        ffi::SQLITE_INTERRUPT => "57014",
        ffi::SQLITE_IOERR | ffi::SQLITE_CANTOPEN => "58030",
        ffi::SQLITE_TOOBIG => "54000",
        ffi::SQLITE_MISMATCH => "42804",
        ffi::SQLITE_RANGE => "07002",
        ffi::SQLITE_ERROR => sqlstate_of_message(message),
        _ => "XX000",
    }
}

fn sqlstate_of_message(message: &str) -> &'static str {
    const BEGINNINGS: [(&str, &str); 7] = [
        ("no such table", MISSING_TABLE),
        ("no such column", "42703"),
        ("no such savepoint", "3B001"),
        ("no such function", "42883"),
        ("ambiguous column name", "42702"),
        ("unrecognized token", "42601"),
        ("incomplete input", "42601"),
    ];
    if let Some((_, sqlstate)) = BEGINNINGS
        .iter()
        .find(|(beginning, _)| message.starts_with(beginning))
    {
        return sqlstate;
    }
    if message.contains("syntax error") {
        "42601"
    } else if message.contains("has no column named") {
        "42703"
    } else if message.ends_with("already exists") {
        "42P07"
    } else {
        "42000"
    }
}

/// `UNIQUE constraint failed: users.email` names columns, `CHECK constraint failed: positive` a constraint.
fn constraint(message: &str) -> Option<String> {
    let (_, name) = message.split_once(" constraint failed: ")?;
    Some(
        name.strip_prefix("index '")
            .and_then(|name| name.strip_suffix('\''))
            .unwrap_or(name)
            .to_owned(),
    )
}

/// The error for an answer of the wrong kind, which is a bug in Weft.
pub(super) fn unexpected() -> Error {
    usage("internal error: the SQLite thread returned an answer of the wrong kind")
}
