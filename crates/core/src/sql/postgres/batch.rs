use std::sync::Arc;

use crate::sql::{Error, ResultSet, Statement};

/// Statements that are sent together: one write, one `Sync`, one answer.
///
/// Without `begin` and outside of a transaction they form one implicit transaction that ends with the `Sync`
/// (PostgreSQL documentation, "Pipelining"): all of them take effect or none does.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    /// The `BEGIN` statement to send first.
    pub begin: Option<&'a Arc<str>>,
    pub statements: &'a [Statement],
    pub end: End,
}

/// The end of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// An open transaction stays open.
    Open,
    Commit,
}

/// The outcome of a batch.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Results of the successful statements, in order.
    pub results: Vec<ResultSet>,
    /// The first failure; later statements were not executed.
    pub failure: Option<Failure>,
}

#[derive(Debug)]
pub struct Failure {
    /// Index of the statement; the number of statements when the commit failed.
    pub at: usize,
    pub error: Error,
    /// The prepared statement may be outdated; preparing it again may help.
    pub(super) outdated: Option<Outdated>,
}

/// The reason why a prepared statement may be outdated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outdated {
    /// The server no longer has it.
    Gone,
    /// It would return other columns.
    Columns,
    /// The server refused what follows from the types of its parameters, which may have changed since it was prepared.
    Types,
    /// A parameter does not fit the type it had when the statement was prepared. The statement was not sent.
    Parameter,
}

impl<'a> Batch<'a> {
    /// Statements without `BEGIN` and `COMMIT`.
    pub fn of(statements: &'a [Statement]) -> Self {
        Self {
            begin: None,
            statements,
            end: End::Open,
        }
    }
}

impl Outcome {
    /// The outcome of one statement.
    pub(super) fn into_single(mut self) -> Result<ResultSet, Error> {
        match self.failure {
            Some(failure) => Err(failure.error),
            None => Ok(self.results.pop().unwrap_or_default()),
        }
    }

    /// Index of the statement that was not sent because a parameter does not fit its type of an earlier preparation.
    pub(super) fn misfit(&self) -> Option<usize> {
        let failure = self.failure.as_ref()?;
        (failure.outdated == Some(Outdated::Parameter)).then_some(failure.at)
    }

    /// The outcome for a transaction that was begun earlier: all of it is to be repeated.
    pub(super) fn of_transaction(mut self, outdated: Outdated) -> Self {
        if outdated == Outdated::Columns
            && let Some(failure) = &mut self.failure
            && let Error::Server(error) = &mut failure.error
        {
            error.is_repeatable = true;
            error.hint = Some(
                "a table has changed since the statement was prepared, so repeat the transaction"
                    .to_owned(),
            );
        }
        self
    }
}

impl Failure {
    pub(super) fn in_words_of(self, statements: &[Statement]) -> Self {
        match statements.get(self.at) {
            Some(statement) => Self {
                error: self.error.in_words_of(statement),
                ..self
            },
            None => self,
        }
    }
}

/// Whether a statement begins or ends a transaction, which only the transaction object may do.
pub(super) fn is_boundary(sql: &str) -> bool {
    const BOUNDARIES: [&str; 6] = ["BEGIN", "START", "COMMIT", "END", "ABORT", "ROLLBACK"];
    let first = Words::of(sql).next().unwrap_or_default();
    let is = |word: &&str| first.eq_ignore_ascii_case(word);
    if first.eq_ignore_ascii_case("PREPARE") {
        // The first phase of a two-phase commit. Other statements with `PREPARE` define a prepared statement.
        let mut rest = Words::of(sql).skip(1);
        return rest
            .next()
            .is_some_and(|word| word.eq_ignore_ascii_case("TRANSACTION"));
    }
    BOUNDARIES.iter().any(is) && !is_rollback_to(sql)
}

pub(super) fn is_copy(sql: &str) -> bool {
    let first = Words::of(sql).next();
    first.is_some_and(|word| word.eq_ignore_ascii_case("COPY"))
}

/// `ROLLBACK [WORK | TRANSACTION] TO …`.
pub(in crate::sql) fn is_rollback_to(sql: &str) -> bool {
    let is =
        |word: Option<&str>, other: &str| word.is_some_and(|word| word.eq_ignore_ascii_case(other));
    let mut words = Words::of(sql);
    if !is(words.next(), "ROLLBACK") {
        return false;
    }
    let second = words.next();
    is(second, "TO")
        || ((is(second, "WORK") || is(second, "TRANSACTION")) && is(words.next(), "TO"))
}

/// The leading keywords of a statement.
struct Words<'a>(&'a str);

impl<'a> Words<'a> {
    fn of(sql: &'a str) -> Self {
        Self(sql)
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let skipped = self.0.len() - skip_to_keyword(self.0.as_bytes()).len();
        let rest = self.0.get(skipped..)?;
        let end = rest
            .find(|character: char| !character.is_ascii_alphanumeric() && character != '_')
            .unwrap_or(rest.len());
        let (word, rest) = rest.split_at(end);
        self.0 = rest;
        Some(word).filter(|word| !word.is_empty())
    }
}

/// Whether a statement has the same effect inside an implicit transaction, and does not change how
/// later statements are parsed.
pub(super) fn is_plain(sql: &str) -> bool {
    const PLAIN: [&str; 8] = [
        "INSERT", "UPDATE", "DELETE", "SELECT", "WITH", "MERGE", "VALUES", "TABLE",
    ];
    let first = Words::of(sql).next().unwrap_or_default();
    PLAIN.iter().any(|word| first.eq_ignore_ascii_case(word))
}

/// Skips white space, opening parentheses and comments. Block comments nest.
pub(super) fn skip_to_keyword(mut rest: &[u8]) -> &[u8] {
    loop {
        rest = match rest {
            [byte, tail @ ..] if byte.is_ascii_whitespace() || *byte == b'(' => tail,
            [b'-', b'-', tail @ ..] => match tail.iter().position(|&byte| byte == b'\n') {
                Some(end) => &tail[end..],
                None => &[],
            },
            [b'/', b'*', tail @ ..] => skip_block_comment(tail),
            _ => return rest,
        };
    }
}

fn skip_block_comment(mut rest: &[u8]) -> &[u8] {
    let mut depth = 1;
    while depth > 0 {
        rest = match rest {
            [] => return rest,
            [b'/', b'*', tail @ ..] => {
                depth += 1;
                tail
            }
            [b'*', b'/', tail @ ..] => {
                depth -= 1;
                tail
            }
            [_, tail @ ..] => tail,
        };
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_told_apart_by_their_first_keyword() {
        for plain in [
            "INSERT INTO t VALUES (1)",
            "  select 1",
            "/* a /* nested */ b */ -- c\n(SELECT 1) UNION (SELECT 2)",
            "with x as (select 1) table x",
        ] {
            assert!(is_plain(plain), "{plain}");
        }
        for other in [
            "",
            "SAVEPOINT a",
            "CREATE TABLE t ()",
            "-- SELECT 1",
            "selected",
            "/* SELECT",
            "SET x = 1",
            "ä",
        ] {
            assert!(!is_plain(other), "{other}");
        }
    }

    #[test]
    fn statements_that_begin_or_end_a_transaction_are_known_by_their_first_words() {
        for boundary in [
            "BEGIN",
            "begin isolation level serializable",
            "/* a /* b */ */ START TRANSACTION",
            "COMMIT AND CHAIN",
            "-- bye\nEND;",
            "abort",
            "ROLLBACK",
            "rollback work",
            "PREPARE TRANSACTION 'x'",
        ] {
            assert!(is_boundary(boundary), "{boundary}");
        }
        for other in [
            "",
            "SAVEPOINT a",
            "ROLLBACK TO a",
            "PREPARE transactions AS SELECT 1",
            "SELECT 'COMMIT'",
            "committed",
        ] {
            assert!(!is_boundary(other), "{other}");
        }
    }

    #[test]
    fn only_a_rollback_to_a_savepoint_lets_a_failed_transaction_go_on() {
        for sql in [
            "ROLLBACK TO a",
            " rollback work to savepoint a",
            "/**/ROLLBACK/**/TRANSACTION TO a",
        ] {
            assert!(is_rollback_to(sql), "{sql}");
        }
        for sql in ["ROLLBACK", "ROLLBACK WORK", "SELECT 1", "ROLLBACK TOO"] {
            assert!(!is_rollback_to(sql), "{sql}");
        }
    }
}
