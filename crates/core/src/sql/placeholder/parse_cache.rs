use std::sync::Arc;

use super::dialect::Dialect;
use super::parsed_sql::ParsedSql;
use crate::sql::Error;
use crate::sql::cache::Cache;

/// Parsed statements by their text; bounded, the least recently used half is forgotten when it is full.
#[derive(Debug)]
pub struct ParseCache {
    dialect: Dialect,
    parsed: Cache<ParsedSql>,
}

impl ParseCache {
    /// Remembers at least the `capacity` statements used last, and never more than twice as many.
    pub fn new(dialect: Dialect, capacity: usize) -> Self {
        Self {
            dialect,
            parsed: Cache::new(capacity),
        }
    }

    /// # Errors
    /// Those of [`ParsedSql::parse`]; a text that fails is not remembered.
    pub fn parse(&mut self, sql: &str) -> Result<&ParsedSql, Error> {
        let dialect = self.dialect;
        let parsed = self.parsed.find_or_insert(sql, || {
            let parsed = ParsedSql::parse(dialect, sql)?;
            Ok::<_, Error>((Arc::clone(&parsed.source), parsed))
        })?;
        Ok(parsed)
    }
}
