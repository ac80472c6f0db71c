use std::sync::Arc;

use crate::sql::{Error, ResultSet, Statement};

/// Statements that travel together: one write, one `Sync`, one answer.
///
/// Without `begin` and outside a transaction they form one implicit transaction that ends with the `Sync`
/// (PostgreSQL documentation, "Pipelining"): all of them take effect or none does.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    /// `BEGIN` in the wording wanted.
    pub begin: Option<&'a Arc<str>>,
    pub statements: &'a [Statement],
    pub end: End,
}

/// What follows the statements of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Nothing: an open transaction stays open.
    Open,
    Commit,
}

/// How far a batch got.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Of the statements that succeeded, in order.
    pub results: Vec<ResultSet>,
    /// The first failure; nothing after it was executed.
    pub failure: Option<Failure>,
}

#[derive(Debug)]
pub struct Failure {
    /// Index of the statement; the number of statements when the commit failed.
    pub at: usize,
    pub error: Error,
    /// The server knows the statement differently from us; preparing it again may help.
    pub(super) stale: bool,
}

/// Whether a statement is certain to run inside an implicit transaction just as well, and to change nothing about how
/// the statements after it are parsed.
pub(super) fn is_plain(sql: &str) -> bool {
    const PLAIN: [&str; 8] = [
        "INSERT", "UPDATE", "DELETE", "SELECT", "WITH", "MERGE", "VALUES", "TABLE",
    ];
    let rest = skip_to_keyword(sql.as_bytes());
    let length = rest
        .iter()
        .take_while(|byte| byte.is_ascii_alphabetic())
        .count();
    let is_keyword = |word: &str| rest[..length].eq_ignore_ascii_case(word.as_bytes());
    PLAIN.into_iter().any(is_keyword)
}

/// Skips white space, opening parentheses and comments. Block comments nest.
fn skip_to_keyword(mut rest: &[u8]) -> &[u8] {
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
        ] {
            assert!(!is_plain(other), "{other}");
        }
    }
}
