//! `?` and `:name` placeholders, rewritten to what the driver understands.

use std::sync::Arc;

use super::{Error, Value};

/// How a driver writes its positional parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// `$1`; dollar-quoted strings, `E''` strings, nested comments, `::` casts.
    Postgres,
    /// `?1`; backtick and bracket identifiers.
    Sqlite,
}

/// Parameters as the user gave them.
#[derive(Debug, Clone, PartialEq)]
pub enum Params {
    Positional(Vec<Value>),
    Named(Vec<(String, Value)>),
}

/// SQL text with its placeholders located and rewritten. Parse once, bind often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedSql {
    /// The rewritten text.
    pub sql: Arc<str>,
    placeholders: Placeholders,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Placeholders {
    None,
    Positional(usize),
    /// Names in order of their number; a name used twice has one number.
    Named(Vec<String>),
}
