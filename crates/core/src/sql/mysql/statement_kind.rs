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

/// First words of statements that commit an open transaction before they do anything else (MySQL Reference Manual, "Statements That Cause an
/// Implicit Commit"; MariaDB Knowledge Base, "SQL statements That Cause an Implicit Commit"). `CREATE` and `DROP` do unless the table is temporary.
const COMMITS: [&str; 19] = [
    "ALTER",
    "TRUNCATE",
    "RENAME",
    "GRANT",
    "REVOKE",
    "OPTIMIZE",
    "REPAIR",
    "CHECK",
    "FLUSH",
    "CACHE",
    "INSTALL",
    "UNINSTALL",
    "IMPORT",
    "BACKUP",
    "RESET",
    "START",
    "STOP",
    "CHANGE",
    "SHUTDOWN",
];

/// The same for statements whose second word tells them from others: `ANALYZE SELECT`, `LOCK INSTANCE` and `LOAD DATA` do not commit.
const COMMITS_WITH: [(&str, &[&str]); 4] = [
    (
        "ANALYZE",
        &["TABLE", "TABLES", "NO_WRITE_TO_BINLOG", "LOCAL"],
    ),
    ("LOCK", &["TABLE", "TABLES"]),
    ("LOAD", &["INDEX"]),
    ("SET", &["PASSWORD"]),
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
        let rest = || after(sql, first);
        let is_savepoint =
            is("SAVEPOINT") || is("RELEASE") || (is("ROLLBACK") && has_word(rest(), "TO"));
        Self {
            changes_session: !KEEPS_SESSION.into_iter().any(is) || mentions_session(sql),
            is_batchable: is_savepoint || BATCHABLE.into_iter().any(is),
            is_savepoint,
            commits: commits(first, rest()),
            controls_transaction: is("BEGIN") && !has_word(rest(), "NOT")
                || ["COMMIT", "END", "ABORT"].into_iter().any(is)
                || is("XA")
                || (is("START") && has_word(rest(), "TRANSACTION"))
                || (is("ROLLBACK") && !is_savepoint),
        }
    }
}

/// Whether a statement commits an open transaction, by its first word and the text after that.
fn commits(first: &str, rest: &str) -> bool {
    let is = |word: &str| first.eq_ignore_ascii_case(word);
    let mut words = Words(rest);
    let second = words.next().unwrap_or_default();
    let follows = |word: &str| second.eq_ignore_ascii_case(word);
    if is("CREATE") || is("DROP") {
        // `CREATE OR REPLACE TEMPORARY TABLE` is MariaDB's.
        let kind = match follows("OR") {
            true => words.nth(1).unwrap_or_default(),
            false => second,
        };
        return !kind.eq_ignore_ascii_case("TEMPORARY");
    }
    if is("RESET") {
        return !follows("PERSIST");
    }
    if is("SET") && turns_autocommit_on(rest) {
        return true;
    }
    if is("EXECUTE") && follows("IMMEDIATE") {
        return literal(words.0).is_some_and(|text| {
            let first = first_word(text);
            commits(first, after(text, first))
        });
    }
    COMMITS.into_iter().any(is)
        || COMMITS_WITH
            .into_iter()
            .any(|(word, seconds)| is(word) && seconds.iter().copied().any(follows))
}

/// Whether `SET` gives `autocommit` another value than off. A user variable of that name begins with `@`.
fn turns_autocommit_on(assignments: &str) -> bool {
    const NAME: &str = "autocommit";
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$');
    let bytes = assignments.as_bytes();
    let names = (0..bytes.len()).filter(|&at| {
        let before = &bytes[..at];
        let name = bytes.get(at..at + NAME.len());
        name.is_some_and(|name| name.eq_ignore_ascii_case(NAME.as_bytes()))
            && !before.last().is_some_and(|&byte| is_name(byte))
            && (before.ends_with(b"@@") || !before.ends_with(b"@"))
    });
    names
        .filter_map(|at| {
            let rest = assignments.get(at + NAME.len()..)?;
            let rest = rest.trim_start_matches('`').trim_start();
            let value = rest.strip_prefix(":=").or_else(|| rest.strip_prefix('='))?;
            Some(value.trim_start())
        })
        .any(|value| {
            let end = value.bytes().take_while(|&byte| is_name(byte)).count();
            !["0", "OFF", "FALSE"]
                .into_iter()
                .any(|off| value[..end].eq_ignore_ascii_case(off))
        })
}

/// The contents of a string literal at the beginning of a text.
fn literal(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let quote = text
        .chars()
        .next()
        .filter(|quote| matches!(quote, '\'' | '"'))?;
    let (contents, _) = text[1..].split_once(quote)?;
    Some(contents)
}

/// The leading words of a text.
struct Words<'a>(&'a str);

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let word = first_word(self.0);
        self.0 = after(self.0, word);
        Some(word).filter(|word| !word.is_empty())
    }
}

/// What follows a word in its text.
fn after<'a>(text: &'a str, word: &'a str) -> &'a str {
    &text[word.as_ptr() as usize - text.as_ptr() as usize + word.len()..]
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

/// Skips white space, opening parentheses and comments. The server runs the contents of `/*! … */` and `/*M! … */`, which may begin with a version.
fn first_word(sql: &str) -> &str {
    let mut rest = sql;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '(');
        let end = &rest[rest.len()..];
        rest = if let Some(comment) = rest.strip_prefix('#').or_else(|| rest.strip_prefix("--")) {
            comment.split_once('\n').map_or(end, |(_, after)| after)
        } else if let Some(code) = rest
            .strip_prefix("/*!")
            .or_else(|| rest.strip_prefix("/*M!"))
        {
            code.trim_start_matches(|c: char| c.is_ascii_digit())
        } else if let Some(comment) = rest.strip_prefix("/*") {
            comment.split_once("*/").map_or(end, |(_, after)| after)
        } else if let Some(after) = rest.strip_prefix("*/") {
            after
        } else {
            let is_letter = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
            let end = rest.bytes().take_while(is_letter).count();
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
            "TRUNCATE TABLE temporary_imports",
            "CREATE TABLE t (a INT) COMMENT 'temporary'",
            "DROP TABLE temporary",
            "ALTER TABLE temporary_imports ADD a INT",
            "CREATE USER 'temporary'@'localhost'",
            "CREATE OR REPLACE TABLE temporary_imports (a INT)",
            "/*!50000 ALTER TABLE t COMMENT 'x' */",
            "/*M! TRUNCATE t */",
            "/*!50000 */ TRUNCATE t",
            "LOCK TABLES t WRITE",
            "lock table t read",
            "ANALYZE TABLE t",
            "ANALYZE LOCAL TABLE t",
            "ANALYZE NO_WRITE_TO_BINLOG TABLE t",
            "CHECK TABLE t",
            "FLUSH TABLES",
            "CACHE INDEX t IN c",
            "LOAD INDEX INTO CACHE t",
            "INSTALL PLUGIN p SONAME 's'",
            "UNINSTALL PLUGIN p",
            "SET PASSWORD = 'x'",
            "SET PASSWORD FOR u = 'x'",
            "RESET MASTER",
            "STOP SLAVE",
            "CHANGE MASTER TO MASTER_HOST = 'h'",
            "BACKUP STAGE START",
            "EXECUTE IMMEDIATE 'LOCK TABLES t WRITE'",
            "SET autocommit = 1",
            "set @@session.autocommit=ON",
            "SET SESSION autocommit := DEFAULT",
            "SET @a = 1, `autocommit` = TRUE",
        ] {
            assert!(StatementKind::of(sql).commits, "{sql}");
        }
        for sql in [
            "INSERT INTO t VALUES ('CREATE')",
            "CREATE TEMPORARY TABLE t (a INT)",
            "CREATE /* x */ temporary TABLE t (a INT)",
            "CREATE OR REPLACE TEMPORARY TABLE t (a INT)",
            "DROP TEMPORARY TABLE t",
            "SELECT 1",
            "ANALYZE SELECT 1",
            "ANALYZE FORMAT=JSON SELECT 1",
            "LOCK INSTANCE FOR BACKUP",
            "UNLOCK TABLES",
            "LOAD DATA INFILE 'f' INTO TABLE t",
            "RESET PERSIST",
            "SET @password = 1",
            "SET autocommit = 0",
            "SET @autocommit = 1",
            "SET @was = @@autocommit",
            "EXECUTE IMMEDIATE 'SELECT 1'",
            "EXECUTE IMMEDIATE @sql",
            "EXECUTE s",
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
