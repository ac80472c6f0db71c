//! Classifies statements by their effect on the session.

use super::batch::skip_to_keyword;

/// Derived from the text of statements, because the server does not report it. A user-defined function that changes the session
/// is not detected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SessionState {
    /// Settings, roles, temporary tables, locks, cursors, subscriptions.
    session: bool,
    /// Prepared statements: created by the user, or the client's own deleted by the user.
    statements: bool,
}

/// `DISCARD ALL` without `DEALLOCATE ALL` (PostgreSQL documentation, "DISCARD").
const RESET_SESSION: &str = "SET SESSION AUTHORIZATION DEFAULT; RESET ALL; CLOSE ALL; UNLISTEN *; \
     SELECT pg_catalog.pg_advisory_unlock_all(); DISCARD TEMP; DISCARD SEQUENCES";
const RESET_SESSION_AND_STATEMENTS: &str = "SET SESSION AUTHORIZATION DEFAULT; RESET ALL; CLOSE ALL; UNLISTEN *; \
     SELECT pg_catalog.pg_advisory_unlock_all(); DISCARD TEMP; DISCARD SEQUENCES; DEALLOCATE ALL";

impl SessionState {
    pub(super) fn of(sql: &str) -> Self {
        let mut rest = skip_to_keyword(sql.as_bytes());
        let verb = next_word(&mut rest);
        let is = |word: &str| verb.eq_ignore_ascii_case(word.as_bytes());
        let after = skip_to_keyword(rest);
        let follows = |words: &[&str]| {
            let mut rest = after;
            let word = next_word(&mut rest);
            words
                .iter()
                .any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
        };
        let statements =
            is("PREPARE") && !follows(&["TRANSACTION"]) || is("DEALLOCATE") || is("DISCARD");
        let session = is("SET") && !follows(&["LOCAL", "TRANSACTION", "CONSTRAINTS"])
            || is("RESET")
            || is("LISTEN")
            || is("LOAD")
            || is("DO")
            || is("CALL")
            || is("CREATE") && contains(after, b"temp")
            || is("DECLARE") && contains(after, b"hold")
            || (is("UPDATE") || is("WITH") && contains(after, b"update"))
                && contains(after, b"pg_settings")
            || SESSION_FUNCTIONS
                .iter()
                .any(|needle| contains(after, needle))
            || selects_into_temporary(after);
        Self {
            session: session || statements,
            statements,
        }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.session |= other.session;
        self.statements |= other.statements;
    }

    pub(super) fn is_none(self) -> bool {
        self == Self::default()
    }

    pub(super) fn affects_statements(self) -> bool {
        self.statements
    }

    /// Statements that end it.
    pub(super) fn reset_sql(self) -> &'static str {
        if self.statements {
            RESET_SESSION_AND_STATEMENTS
        } else {
            RESET_SESSION
        }
    }
}

/// Functions of the server that change the session; `pg_advisory_xact_lock` is not among them.
const SESSION_FUNCTIONS: [&[u8]; 4] = [
    b"advisory_lock",
    b"set_config",
    b"pg_temp",
    b"dblink_connect",
];

fn next_word<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let length = rest
        .iter()
        .take_while(|byte| byte.is_ascii_alphabetic())
        .count();
    let (word, after) = rest.split_at(length);
    *rest = after;
    word
}

fn contains(text: &[u8], needle: &[u8]) -> bool {
    text.windows(needle.len())
        .any(|window| window.eq_ignore_ascii_case(needle))
}

fn selects_into_temporary(text: &[u8]) -> bool {
    text.windows(4).enumerate().any(|(at, window)| {
        let mut rest = skip_to_keyword(&text[at + 4..]);
        window.eq_ignore_ascii_case(b"into")
            && next_word(&mut rest)
                .to_ascii_lowercase()
                .starts_with(b"temp")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_change_the_session_are_recognised() {
        for sql in [
            "SET search_path = x",
            " set session role admin",
            "/* x */ RESET ALL",
            "LISTEN channel",
            "SELECT pg_advisory_lock(1)",
            "select PG_TRY_ADVISORY_LOCK(1)",
            "SELECT set_config('a.b', 'c', false)",
            "UPDATE pg_settings SET setting = 'c' WHERE name = 'a.b'",
            "WITH a AS (UPDATE pg_settings SET setting = 'c' RETURNING 1) SELECT 1",
            "CREATE TEMP TABLE t ()",
            "CREATE TEMPORARY VIEW v AS SELECT 1",
            "SELECT 1 INTO\n TEMP t",
            "DECLARE c CURSOR WITH HOLD FOR SELECT 1",
            "PREPARE p AS SELECT 1",
            "DISCARD ALL",
            "DO $$ BEGIN END $$",
            "CALL p()",
        ] {
            assert!(!SessionState::of(sql).is_none(), "{sql}");
        }
    }

    #[test]
    fn ordinary_statements_leave_nothing() {
        for sql in [
            "SELECT temp FROM weather",
            "SELECT setting FROM pg_settings",
            "SET LOCAL a = 1",
            "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            "SELECT pg_advisory_xact_lock(1)",
            "SELECT pg_advisory_unlock(1)",
            "INSERT INTO t VALUES (1)",
            "INSERT INTO settings VALUES (1)",
            "BEGIN",
            "ROLLBACK",
            "DECLARE c NO SCROLL CURSOR FOR SELECT 1",
            "CREATE TABLE t ()",
            "PREPARE TRANSACTION 'x'",
            "",
        ] {
            assert!(SessionState::of(sql).is_none(), "{sql}");
        }
        assert!(!SessionState::of("SET a = 1").affects_statements());
        assert!(SessionState::of("PREPARE a AS SELECT 1").affects_statements());
    }
}
