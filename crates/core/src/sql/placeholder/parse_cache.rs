use std::sync::Arc;

use super::dialect::Dialect;
use super::parsed_sql::ParsedSql;
use crate::sql::Error;
use crate::sql::cache::Cache;

/// Parsed statements by their text. When the cache is full, the least recently used half is evicted.
#[derive(Debug)]
pub struct ParseCache {
    dialect: Dialect,
    parsed: Cache<ParsedSql>,
}

impl ParseCache {
    /// Keeps at least the `capacity` statements used last, and at most twice as many.
    pub fn new(dialect: Dialect, capacity: usize) -> Self {
        Self {
            dialect,
            parsed: Cache::new(capacity),
        }
    }

    /// # Errors
    /// Those of [`ParsedSql::parse`]; invalid texts are not cached.
    pub fn parse(&mut self, sql: &str) -> Result<&ParsedSql, Error> {
        let dialect = self.dialect;
        let parsed = self.parsed.find_or_insert(sql, || {
            let parsed = ParsedSql::parse(dialect, sql)?;
            Ok::<_, Error>((Arc::clone(&parsed.source), parsed))
        })?;
        Ok(parsed)
    }
}
