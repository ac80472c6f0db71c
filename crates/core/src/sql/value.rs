use std::sync::Arc;

/// A parameter or a value of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    Bytes(Vec<u8>),
    /// An encoded JSON document.
    Json(String),
    /// A calendar date, `YYYY-MM-DD`.
    Date(String),
    /// A point in time as ISO 8601 text; with an offset when the column has a time zone.
    Timestamp(String),
    /// An SQL array, or a JSON array where the parameter's type is JSON.
    List(Vec<Value>),
}

impl Value {
    /// Approximate memory in bytes.
    pub fn size(&self) -> usize {
        match self {
            Self::Text(text) | Self::Json(text) | Self::Date(text) | Self::Timestamp(text) => {
                text.len()
            }
            Self::Bytes(bytes) => bytes.len(),
            Self::List(list) => list.iter().map(|item| 32 + item.size()).sum(),
            _ => 0,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    /// The database's name of the type, such as `int4` or `TEXT`; empty if the driver has none.
    pub type_name: String,
}

/// The result of one statement. Owned and `Send`, so that drivers with threads can return it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResultSet {
    pub columns: Arc<[Column]>,
    pub rows: Vec<Vec<Value>>,
    /// The number of inserted, updated or deleted rows; for a query the number of returned rows.
    pub affected: u64,
    /// The last `AUTO_INCREMENT` or rowid value, if the driver has one.
    pub last_insert_id: Option<i64>,
    /// Further results of statements with several, such as `CALL` in MySQL.
    pub further: Vec<ResultSet>,
}

/// SQL text with its parameters in positional order.
///
/// The texts are shared, so that a statement is parsed only once.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// Positional form in the dialect of the driver (`$1` for PostgreSQL, `?1` for SQLite, `?` for MySQL).
    pub sql: Arc<str>,
    /// The text for errors, as the user wrote it, with `?` or `:name` placeholders.
    pub source: Arc<str>,
    pub params: Vec<Value>,
}

impl Statement {
    /// A statement whose text is in the driver's dialect.
    pub fn new(sql: impl Into<Arc<str>>, params: Vec<Value>) -> Self {
        let sql = sql.into();
        Self {
            source: Arc::clone(&sql),
            sql,
            params,
        }
    }
}
