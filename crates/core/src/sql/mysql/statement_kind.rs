//! Classifies statements by their effect on the session.

/// First words of statements that change only data or schema. A session that ran only these needs no
/// cleaning. All others (`SET`, `USE`, `CALL`, `LOCK`, `DO`, …) are assumed to change the session.
const KEEPS_SESSION: [&str; 33] = [
    "SELECT",
    "INSERT",
    "UPDATE",
    "DELETE",
    "REPLACE",
    "WITH",
    "VALUES",
    "TABLE",
    "SHOW",
    "EXPLAIN",
    "DESCRIBE",
    "DESC",
    "CREATE",
    "DROP",
    "ALTER",
    "TRUNCATE",
    "RENAME",
    "ANALYZE",
    "OPTIMIZE",
    "CHECK",
    "REPAIR",
    "GRANT",
    "REVOKE",
    "START",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT",
    "RELEASE",
    "KILL",
    "LOAD",
    "PURGE",
    "CHECKSUM",
    "HELP",
];

const BATCHABLE: [&str; 7] = [
    "SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "WITH", "VALUES",
];

/// First words of statements that commit an open transaction before they do anything else, unless they are for a temporary table.
const COMMITS: [&str; 9] = [
    "CREATE", "DROP", "ALTER", "TRUNCATE", "RENAME", "GRANT", "REVOKE", "OPTIMIZE", "REPAIR",
];

/// The properties of a statement, by its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StatementKind {
    /// It may change the session: a variable, a lock, a temporary table, another database.
    pub(super) changes_session: bool,
    /// It can be sent together with others: it neither commits nor changes the meaning of others.
    pub(super) is_batchable: bool,
    /// It sets, releases or rolls back to a savepoint.
    pub(super) is_savepoint: bool,
    /// It commits an open transaction. Others do so, too, which only the server's answer shows.
    pub(super) commits: bool,
    /// It begins or ends a transaction, which only the transaction object may do.
    pub(super) controls_transaction: bool,
}

impl StatementKind {
    pub(super) fn of(sql: &str) -> Self {
        let first = first_word(sql);
        let is = |word: &str| first.eq_ignore_ascii_case(word);
        let rest = || &sql[first.as_ptr() as usize - sql.as_ptr() as usize + first.len()..];
        let is_savepoint =
            is("SAVEPOINT") || is("RELEASE") || (is("ROLLBACK") && has_word(rest(), "TO"));
        Self {
            changes_session: !KEEPS_SESSION.into_iter().any(is) || mentions_session(sql),
            is_batchable: is_savepoint || BATCHABLE.into_iter().any(is),
            is_savepoint,
            commits: COMMITS.into_iter().any(is) && !has_word(sql, "TEMPORARY"),
            controls_transaction: is("BEGIN") && !has_word(rest(), "NOT")
                || ["COMMIT", "END", "ABORT"].into_iter().any(is)
                || is("XA")
                || (is("START") && has_word(rest(), "TRANSACTION"))
                || (is("ROLLBACK") && !is_savepoint),
        }
    }
}

/// Finds user variables, named locks and temporary tables. A match inside a string only costs an unnecessary reset.
fn mentions_session(sql: &str) -> bool {
    sql.contains('@')
        || ["GET_LOCK", "TEMPORARY"]
            .into_iter()
            .any(|word| has_word(sql, word))
}

fn has_word(sql: &str, word: &str) -> bool {
    sql.as_bytes()
        .windows(word.len())
        .any(|window| window.eq_ignore_ascii_case(word.as_bytes()))
}

/// Skips white space, opening parentheses and comments.
fn first_word(sql: &str) -> &str {
    let mut rest = sql;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '(');
        rest = if let Some(comment) = rest.strip_prefix('#').or_else(|| rest.strip_prefix("--")) {
            comment.split_once('\n').map_or("", |(_, after)| after)
        } else if let Some(comment) = rest.strip_prefix("/*") {
            comment.split_once("*/").map_or("", |(_, after)| after)
        } else {
            let end = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
            return &rest[..end];
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_may_change_the_session_make_it_dirty() {
        for sql in [
            "SET x = 1",
            "use other",
            "CALL p()",
            "LOCK TABLES t READ",
            "DO GET_LOCK('a', 1)",
            "SELECT get_lock('a', 1)",
            "SELECT 1 INTO @a",
            "CREATE TEMPORARY TABLE t (a INT)",
            "CREATE /* x */ temporary TABLE t (a INT)",
            "PREPARE s FROM 'SELECT 1'",
            "BEGIN NOT ATOMIC SET sql_mode = ''; END",
            "",
        ] {
            assert!(StatementKind::of(sql).changes_session, "{sql}");
        }
        for sql in [
            "SELECT 1",
            " # comment\n -- another\n /* and */ (select 1)",
            "INSERT INTO t VALUES (1)",
            "CREATE TABLE t (a INT)",
            "SAVEPOINT a",
        ] {
            assert!(!StatementKind::of(sql).changes_session, "{sql}");
        }
    }

    #[test]
    fn statements_that_commit_are_known_but_for_those_about_temporary_tables() {
        for sql in [
            "CREATE TABLE t (a INT)",
            "/* x */ alter table t add b INT",
            "truncate t",
        ] {
            assert!(StatementKind::of(sql).commits, "{sql}");
        }
        for sql in [
            "INSERT INTO t VALUES ('CREATE')",
            "CREATE TEMPORARY TABLE t (a INT)",
            "DROP TEMPORARY TABLE t",
            "SELECT 1",
        ] {
            assert!(!StatementKind::of(sql).commits, "{sql}");
        }
    }

    #[test]
    fn statements_that_may_travel_together_are_told_from_those_that_commit() {
        for sql in ["insert into t values (1)", "SAVEPOINT a", "ROLLBACK TO a"] {
            assert!(StatementKind::of(sql).is_batchable, "{sql}");
            assert!(!StatementKind::of(sql).controls_transaction, "{sql}");
        }
        for sql in [
            "CREATE TABLE t (a INT)",
            "CALL p()",
            "SET a = 1",
            "SELECTED",
        ] {
            assert!(!StatementKind::of(sql).is_batchable, "{sql}");
        }
        for sql in [
            "BEGIN",
            "start transaction",
            "COMMIT",
            "ROLLBACK",
            "XA START 'a'",
        ] {
            assert!(StatementKind::of(sql).controls_transaction, "{sql}");
        }
        assert!(!StatementKind::of("BEGIN NOT ATOMIC SELECT 1; END").controls_transaction);
    }
}
