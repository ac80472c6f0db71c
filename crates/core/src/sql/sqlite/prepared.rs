//! One prepared statement: binds parameters and reads rows.

#![allow(unsafe_code, reason = "calls SQLite")]

use std::sync::Arc;

use fallible_iterator::FallibleIterator;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Batch, Connection, Row, Rows, StatementStatus, ffi};

use super::failure;
use super::statement_kind::StatementKind;
use crate::sql::error::excerpt;
use crate::sql::json;
use crate::sql::{Column, Error, ResultSet, Value};

/// Prepared statements that each connection keeps (up to twice as many).
pub(super) const STATEMENT_CACHE_SIZE: usize = 256;

/// Longer parameters are not kept by an idle statement.
const PARAMETER_BYTES_KEPT: usize = 4096;

pub(super) struct Prepared<'c> {
    connection: &'c Connection,
    sql: Arc<str>,
    kind: StatementKind,
    statement: rusqlite::Statement<'c>,
    shape: Arc<Shape>,
    readonly: bool,
    parameters: usize,
}

/// The columns at the last (re)preparation.
struct Shape {
    columns: Arc<[Column]>,
    declared: Vec<Declared>,
    repreparations: i32,
}

/// The conversion of a column's values by its declared type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Declared {
    Bool,
    Json,
    Date,
    Timestamp,
    /// By the storage class.
    Other,
}

impl<'c> Prepared<'c> {
    /// # Errors
    /// SQLite's own, and SQLSTATE 42601 for more than one statement or none.
    pub(super) fn new(
        connection: &'c Connection,
        sql: &Arc<str>,
        kind: StatementKind,
    ) -> Result<Self, Error> {
        let mut batch = Batch::new(connection, sql);
        let statement = batch
            .next()
            .map_err(|error| failure::of_statement(&error, sql))?
            .ok_or_else(|| failure::server("42601", "the text contains no statement", sql))?;
        if !matches!(batch.next(), Ok(None)) {
            return Err(failure::server(
                "42601",
                "the text contains more than one statement",
                sql,
            ));
        }
        Ok(Self {
            connection,
            sql: Arc::clone(sql),
            kind,
            shape: Arc::new(Shape::of(&statement)),
            readonly: statement.readonly(),
            parameters: statement.parameter_count(),
            statement,
        })
    }

    pub(super) fn kind(&self) -> StatementKind {
        self.kind
    }

    pub(super) fn is_readonly(&self) -> bool {
        self.readonly
    }

    /// Runs to the end.
    pub(super) fn run(&mut self, params: &[Value]) -> Result<ResultSet, Error> {
        #[cfg(test)]
        super::panic_tests::panic_on_purpose(&self.sql);
        self.bind(params)?;
        let result = self.collect();
        if params.iter().any(is_long) {
            self.statement.clear_bindings();
        }
        result
    }

    fn collect(&mut self) -> Result<ResultSet, Error> {
        let rows = self.start(|cursor| {
            let mut rows = Vec::new();
            while let Some(row) = cursor.next()? {
                rows.push(row);
            }
            Ok(rows)
        })?;
        let affected = match self.kind {
            _ if self.readonly => rows.len() as u64,
            kind if kind.changes_rows() => self.connection.changes(),
            _ => 0,
        };
        Ok(ResultSet {
            columns: Arc::clone(&self.shape.columns),
            rows,
            affected,
            last_insert_id: self.last_insert_id(affected),
            further: Vec::new(),
        })
    }

    fn last_insert_id(&self, affected: u64) -> Option<i64> {
        if affected == 0 || self.readonly || !self.kind.inserts() {
            return None;
        }
        Some(self.connection.last_insert_rowid()).filter(|id| *id != 0)
    }

    /// Passes a cursor over the rows to `visit` and resets the statement afterwards.
    pub(super) fn start<T>(
        &mut self,
        visit: impl FnOnce(&mut Cursor<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut cursor = Cursor {
            rows: self.statement.raw_query(),
            shape: Arc::clone(&self.shape),
            sql: &self.sql,
            first: true,
        };
        let result = visit(&mut cursor);
        drop(cursor);
        if let Some(shape) = self.shape.renewed(&self.statement) {
            self.shape = Arc::new(shape);
        }
        result
    }

    pub(super) fn bind(&mut self, params: &[Value]) -> Result<(), Error> {
        if params.len() != self.parameters {
            return Err(self.parameter_error(format!(
                "the statement has {} parameters, but {} were given",
                self.parameters,
                params.len()
            )));
        }
        for (index, value) in params.iter().enumerate() {
            let encoded = encode(value).map_err(|reason| {
                self.parameter_error(format!("parameter {} {reason}", index + 1))
            })?;
            self.statement
                .raw_bind_parameter(index + 1, encoded)
                .map_err(|error| failure::of_statement(&error, &self.sql))?;
        }
        Ok(())
    }

    fn parameter_error(&self, message: String) -> Error {
        Error::Parameter {
            statement: excerpt(&self.sql),
            message,
        }
    }
}

/// The rows of a running statement.
pub(super) struct Cursor<'s> {
    rows: Rows<'s>,
    shape: Arc<Shape>,
    sql: &'s str,
    first: bool,
}

impl Cursor<'_> {
    pub(super) fn next(&mut self) -> Result<Option<Vec<Value>>, Error> {
        let failed = |error: rusqlite::Error| failure::of_statement(&error, self.sql);
        let Some(row) = self.rows.next().map_err(failed)? else {
            return Ok(None);
        };
        if std::mem::take(&mut self.first)
            && let Some(shape) = self.shape.renewed(row.as_ref())
        {
            self.shape = Arc::new(shape);
        }
        decode_row(row, &self.shape.declared)
            .map(Some)
            .map_err(failed)
    }

    /// Final from the first row on.
    pub(super) fn columns(&self) -> &Arc<[Column]> {
        &self.shape.columns
    }
}

impl Shape {
    fn of(statement: &rusqlite::Statement<'_>) -> Self {
        let declared =
            |column: rusqlite::Column<'_>| Declared::of(column.decl_type().unwrap_or_default());
        Self {
            declared: statement.columns().map(declared).collect(),
            columns: statement.columns().map(column).collect(),
            repreparations: statement.get_status(StatementStatus::RePrepare),
        }
    }

    /// SQLite prepares a statement again when a table has changed, which may change its columns.
    fn renewed(&self, statement: &rusqlite::Statement<'_>) -> Option<Self> {
        let repreparations = statement.get_status(StatementStatus::RePrepare);
        (repreparations != self.repreparations).then(|| Self::of(statement))
    }
}

fn column(column: rusqlite::Column<'_>) -> Column {
    Column {
        name: column.name().to_owned(),
        type_name: column.decl_type().unwrap_or_default().to_owned(),
    }
}

impl Declared {
    fn of(type_name: &str) -> Self {
        let name = type_name.split('(').next().unwrap_or_default().trim();
        let is = |candidates: &[&str]| {
            candidates
                .iter()
                .any(|candidate| name.eq_ignore_ascii_case(candidate))
        };
        if is(&["BOOLEAN", "BOOL"]) {
            Self::Bool
        } else if is(&["JSON", "JSONB"]) {
            Self::Json
        } else if is(&["DATE"]) {
            Self::Date
        } else if is(&["DATETIME", "TIMESTAMP", "TIMESTAMPTZ"]) {
            Self::Timestamp
        } else {
            Self::Other
        }
    }
}

fn decode_row(row: &Row<'_>, declared: &[Declared]) -> rusqlite::Result<Vec<Value>> {
    declared
        .iter()
        .enumerate()
        .map(|(index, declared)| Ok(decode(row.get_ref(index)?, *declared)))
        .collect()
}

/// A value that does not match its column's declared type keeps its storage class; text that is not UTF-8 becomes bytes.
fn decode(value: ValueRef<'_>, declared: Declared) -> Value {
    match (value, declared) {
        (ValueRef::Null, _) => Value::Null,
        (ValueRef::Integer(number @ (0 | 1)), Declared::Bool) => Value::Bool(number == 1),
        (ValueRef::Integer(number), _) => Value::Int(number),
        (ValueRef::Real(number), _) => Value::Float(number),
        (ValueRef::Blob(bytes), _) => Value::Bytes(bytes.to_vec()),
        (ValueRef::Text(bytes), declared) => match String::from_utf8(bytes.to_vec()) {
            Ok(text) => decode_text(text, declared),
            Err(error) => Value::Bytes(error.into_bytes()),
        },
    }
}

fn decode_text(text: String, declared: Declared) -> Value {
    match declared {
        Declared::Json => Value::Json(text),
        Declared::Date => Value::Date(text),
        Declared::Timestamp => Value::Timestamp(text),
        Declared::Bool | Declared::Other => Value::Text(text),
    }
}

fn encode(value: &Value) -> Result<ToSqlOutput<'_>, String> {
    let reference = match value {
        Value::Null => ValueRef::Null,
        Value::Bool(flag) => ValueRef::Integer(i64::from(*flag)),
        Value::Int(number) => ValueRef::Integer(*number),
        Value::Float(number) if number.is_nan() => {
            return Err("is NaN, which SQLite would store as NULL".into());
        }
        Value::Float(number) => ValueRef::Real(*number),
        Value::Text(text) | Value::Json(text) | Value::Date(text) | Value::Timestamp(text) => {
            ValueRef::Text(text.as_bytes())
        }
        Value::Bytes(bytes) => ValueRef::Blob(bytes),
        Value::List(items) => return Ok(ToSqlOutput::from(json::encode(items)?)),
    };
    Ok(ToSqlOutput::Borrowed(reference))
}

fn is_long(value: &Value) -> bool {
    match value {
        Value::Text(text) | Value::Json(text) => text.len() > PARAMETER_BYTES_KEPT,
        Value::Bytes(bytes) => bytes.len() > PARAMETER_BYTES_KEPT,
        Value::List(_) => true,
        _ => false,
    }
}

/// Resets `last_insert_rowid()` before each job, because it would return the value of another job.
pub(super) fn forget_last_insert_id(connection: &Connection) {
    // SAFETY: the handle is open for as long as `connection` is borrowed, and this thread alone uses it.
    unsafe { ffi::sqlite3_set_last_insert_rowid(connection.handle(), 0) }
}
