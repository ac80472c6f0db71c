//! Classifies statements by their first words, without SQLite.

use super::failure;
use crate::sql::Error;
use crate::sql::cache::Cache;
use crate::sql::error::excerpt;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatementKind {
    /// SELECT, VALUES, EXPLAIN.
    Read,
    Insert,
    /// UPDATE, DELETE.
    Change,
    /// WITH: reads or writes, which only SQLite can determine.
    With,
    /// PRAGMA, VACUUM, ATTACH, DETACH: without effect or refused inside of a transaction.
    Alone,
    /// SAVEPOINT, RELEASE.
    Savepoint,
    RollbackTo,
    /// BEGIN, COMMIT, END, ROLLBACK.
    Boundary,
    /// CREATE, DROP and all others.
    Other,
}

impl StatementKind {
    pub(super) fn of(sql: &str) -> Self {
        let mut words = Words(sql);
        let is = |word: &str, candidates: &[&str]| {
            candidates
                .iter()
                .any(|candidate| word.eq_ignore_ascii_case(candidate))
        };
        let first = words.next().unwrap_or_default();
        if is(first, &["SELECT", "VALUES", "EXPLAIN"]) {
            Self::Read
        } else if is(first, &["INSERT", "REPLACE"]) {
            Self::Insert
        } else if is(first, &["UPDATE", "DELETE"]) {
            Self::Change
        } else if is(first, &["WITH"]) {
            Self::With
        } else if is(first, &["PRAGMA", "VACUUM", "ATTACH", "DETACH"]) {
            Self::Alone
        } else if is(first, &["SAVEPOINT", "RELEASE"]) {
            Self::Savepoint
        } else if is(first, &["ROLLBACK"]) {
            let to = words.take(2).any(|word| is(word, &["TO"]));
            if to { Self::RollbackTo } else { Self::Boundary }
        } else if is(first, &["BEGIN", "COMMIT", "END"]) {
            Self::Boundary
        } else {
            Self::Other
        }
    }

    /// Whether it may give its connection tables that the file does not have: ATTACH, and CREATE with a temporary table or view.
    pub(super) fn adds_tables_of_its_own(sql: &str) -> bool {
        let mut words = Words(sql);
        let first = words.next().unwrap_or_default();
        let is_temporary = |word: &str| {
            word.eq_ignore_ascii_case("TEMP") || word.eq_ignore_ascii_case("TEMPORARY")
        };
        // CREATE TABLE IF NOT EXISTS temp.name
        first.eq_ignore_ascii_case("ATTACH")
            || first.eq_ignore_ascii_case("CREATE") && words.take(5).any(is_temporary)
    }

    /// `None` for a prepared statement, which was classified before and does not run alone.
    pub(super) fn of_uncached<V>(prepared: &Cache<V>, sql: &str) -> Option<Self> {
        (!prepared.contains(sql)).then(|| Self::of(sql))
    }

    /// Whether a reader may try it; SQLite decides.
    pub(super) fn may_read(self) -> bool {
        matches!(self, Self::Read | Self::With)
    }

    pub(super) fn inserts(self) -> bool {
        matches!(self, Self::Insert | Self::With)
    }

    pub(super) fn changes_rows(self) -> bool {
        matches!(self, Self::Insert | Self::Change | Self::With)
    }

    /// # Errors
    /// For statements that only `Transaction` may run: begin, commit, roll back; outside of one also savepoints.
    pub(super) fn allow(self, sql: &str, in_transaction: bool) -> Result<(), Error> {
        match self {
            Self::Boundary => Err(Error::boundary(sql)),
            Self::Savepoint | Self::RollbackTo if !in_transaction => Err(failure::usage(format!(
                "a savepoint needs a transaction [statement: {}]",
                excerpt(sql)
            ))),
            _ => Ok(()),
        }
    }
}

/// The words of a statement, without the white space, comments and punctuation between them.
struct Words<'a>(&'a str);

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        loop {
            self.0 = self.0.trim_start_matches(|character: char| {
                character.is_whitespace() || character == ';' || character == '\u{feff}'
            });
            if let Some(comment) = self.0.strip_prefix("--") {
                self.0 = comment.split_once('\n')?.1;
            } else if let Some(comment) = self.0.strip_prefix("/*") {
                self.0 = comment.split_once("*/")?.1;
            } else {
                break;
            }
        }
        let end = self
            .0
            .find(|character: char| !character.is_ascii_alphanumeric() && character != '_')
            .unwrap_or(self.0.len());
        let (word, rest) = self.0.split_at(end);
        self.0 = rest;
        Some(word).filter(|word| !word.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_words_tell_what_adds_tables_of_a_connection() {
        for (sql, adds) in [
            ("attach 'f' AS other", true),
            ("CREATE TEMP TABLE t (x)", true),
            ("create temporary view v AS SELECT 1", true),
            ("CREATE TABLE IF NOT EXISTS temp.t (x)", true),
            ("CREATE TABLE t (temp)", false),
            ("CREATE TABLE t (x)", false),
            ("SELECT 1 AS temp", false),
            ("DETACH other", false),
        ] {
            assert_eq!(StatementKind::adds_tables_of_its_own(sql), adds, "{sql}");
        }
    }

    #[test]
    fn the_first_words_tell_what_a_statement_does() {
        for (sql, kind) in [
            ("select 1", StatementKind::Read),
            (" \n-- INSERT\n/* DELETE */ ; SELECT 1", StatementKind::Read),
            ("(SELECT 1)", StatementKind::Other),
            ("WITH a AS (SELECT 1) SELECT * FROM a", StatementKind::With),
            ("insert into a values (1)", StatementKind::Insert),
            ("DELETE FROM a", StatementKind::Change),
            ("ROLLBACK", StatementKind::Boundary),
            ("ROLLBACK TO a", StatementKind::RollbackTo),
            (
                "rollback transaction to savepoint a",
                StatementKind::RollbackTo,
            ),
            ("ROLLBACK; TO", StatementKind::RollbackTo),
            ("COMMIT", StatementKind::Boundary),
            ("SAVEPOINT a", StatementKind::Savepoint),
            ("PRAGMA x", StatementKind::Alone),
            ("CREATE TABLE t (x)", StatementKind::Other),
            ("SELECTED", StatementKind::Other),
            ("", StatementKind::Other),
            ("-- only", StatementKind::Other),
            ("/* open", StatementKind::Other),
            ("é", StatementKind::Other),
        ] {
            assert_eq!(StatementKind::of(sql), kind, "{sql}");
        }
    }
}
