use super::batch::Outdated;
use super::text::Malformed;
use super::wire::Reader;
use crate::sql::{ConnectFailure, Error, ServerError};

/// Characters of a statement that an error message shows.
const STATEMENT_CHARS: usize = 1_000;

/// An `ErrorResponse`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ServerFailure {
    severity: String,
    pub(super) sqlstate: String,
    pub(super) message: String,
    detail: Option<String>,
    hint: Option<String>,
    constraint: Option<String>,
    /// The function of the server that reported it, which is never translated.
    routine: String,
    /// The line of a `COPY`.
    place: Option<String>,
}

impl ServerFailure {
    pub(super) fn read(body: &[u8]) -> Result<Self, Malformed> {
        let mut failure = Self::default();
        let mut reader = Reader::new(body);
        loop {
            match reader.u8()? {
                0 => return Ok(failure),
                // "V" is never translated and follows the translated "S".
                b'S' | b'V' => failure.severity = reader.text()?,
                b'C' => failure.sqlstate = reader.text()?,
                b'M' => failure.message = reader.text()?,
                b'D' => failure.detail = Some(reader.text()?),
                b'H' => failure.hint = Some(reader.text()?),
                b'W' => failure.place = place_in_copy(&reader.text()?),
                b'R' => failure.routine = reader.text()?,
                b'n' => failure.constraint = Some(reader.text()?),
                _ => drop(reader.text()?),
            }
        }
    }

    /// Whether the server closes the connection after this error.
    pub(super) fn is_fatal(&self) -> bool {
        matches!(self.severity.as_str(), "FATAL" | "PANIC")
    }

    /// Whether and how the prepared statement may be outdated. `cached`: it was prepared for an earlier use.
    pub(super) fn outdated(&self, cached: bool) -> Option<Outdated> {
        match self.sqlstate.as_str() {
            // `DEALLOCATE`, a pooler.
            "26000" => Some(Outdated::Gone),
            // Behind a pooler another session may have the statement with other columns than were described.
            "08P01" if self.message.contains("result formats") => Some(Outdated::Gone),
            _ if self.changes_columns() => Some(Outdated::Columns),
            _ if cached && self.may_come_from_types() => Some(Outdated::Types),
            _ => None,
        }
    }

    /// `cached plan must not change result type`.
    fn changes_columns(&self) -> bool {
        self.sqlstate == "0A000"
            && (self.routine == "RevalidateCachedQuery" || self.message.contains("cached plan"))
    }

    /// Whether outdated types of parameters may be the cause: a prepared statement keeps those of its preparation, also when a column gets
    /// another type.
    fn may_come_from_types(&self) -> bool {
        match self.sqlstate.as_str() {
            // No such operator, a column of another type; a value that the type of its parameter cannot hold.
            "42883" | "42804" | "22P02" | "22003" | "22007" | "22008" => true,
            // The type was dropped. The server does not translate this message.
            "XX000" => self.message.starts_with("cache lookup failed"),
            _ => false,
        }
    }

    pub(super) fn summary(&self) -> String {
        format!("{} (SQLSTATE {})", self.message, self.sqlstate)
    }

    pub(super) fn into_error(self, statement: &str) -> Error {
        let class = self.sqlstate.get(..2).unwrap_or_default();
        // Constraint violations (23) quote the row in DETAIL, data exceptions (22) the value in message and DETAIL.
        let detail = self.detail.filter(|_| !matches!(class, "22" | "23"));
        let message = match class {
            "22" => without_values(&self.message),
            _ => self.message,
        };
        let message = match self.place {
            Some(place) => format!("{message} at {place}"),
            None => message,
        };
        Error::Server(Box::new(ServerError {
            sqlstate: self.sqlstate,
            message,
            detail,
            hint: self.hint,
            constraint: self.constraint,
            code: None,
            is_repeatable: false,
            statement: shorten(statement),
        }))
    }

    /// The same during start-up.
    pub(super) fn into_connect_error(self, target: &str) -> Error {
        let failure = match self.sqlstate.get(..2) {
            Some("28") => ConnectFailure::Authentication,
            Some("3D") => ConnectFailure::Database,
            _ if self.sqlstate == "42501" => ConnectFailure::Authentication,
            _ => ConnectFailure::Protocol,
        };
        Error::Connect {
            target: target.to_owned(),
            failure,
            message: self.summary(),
        }
    }
}

/// At most 1,000 characters of a statement.
pub(super) fn shorten(statement: &str) -> String {
    match statement.char_indices().nth(STATEMENT_CHARS) {
        Some((end, _)) => format!("{}…", &statement[..end]),
        None => statement.to_owned(),
    }
}

/// `COPY customers, line 3, column id: "abc"` without the value.
fn place_in_copy(context: &str) -> Option<String> {
    let place = context.lines().find(|line| line.starts_with("COPY "))?;
    Some(place.split(": \"").next().unwrap_or(place).to_owned())
}

/// Removes the user's value from messages such as `invalid input syntax for type integer: "abc"`.
fn without_values(message: &str) -> String {
    match (message.find('"'), message.rfind('"')) {
        (Some(first), Some(last)) if first < last => {
            format!("{}\"…\"{}", &message[..first], &message[last + 1..])
        }
        _ => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(sqlstate: &str, message: &str) -> ServerFailure {
        ServerFailure {
            sqlstate: sqlstate.to_owned(),
            message: message.to_owned(),
            detail: Some("Key (id)=(secret) already exists.".to_owned()),
            ..ServerFailure::default()
        }
    }

    #[test]
    fn errors_about_data_repeat_no_data() {
        for (sqlstate, message) in [
            (
                "22P02",
                "invalid input syntax for type integer: \"sec\"ret\"",
            ),
            (
                "23505",
                "duplicate key value violates unique constraint \"t_pkey\"",
            ),
        ] {
            let shown = failure(sqlstate, message)
                .into_error("SELECT 1")
                .to_string();
            assert!(!shown.contains("sec"), "{shown}");
        }
    }

    #[test]
    fn other_errors_keep_their_detail() {
        let shown = failure("42P01", "relation \"t\" does not exist")
            .into_error("x")
            .to_string();
        assert!(
            shown.contains("relation \"t\"") && shown.contains("already exists"),
            "{shown}"
        );
    }

    #[test]
    fn the_line_of_a_copy_is_told_without_its_values() {
        let body = b"SERROR\0C22P02\0Minvalid input syntax for type integer: \"secret\"\0\
            WCOPY t, line 3, column a: \"secret\"\0\0";
        let shown = ServerFailure::read(body).unwrap().into_error("COPY t");
        let shown = shown.to_string();
        assert!(shown.contains("at COPY t, line 3, column a"), "{shown}");
        assert!(!shown.contains("secret"), "{shown}");
        assert_eq!(place_in_copy("PL/pgSQL function f() line 3"), None);
        assert_eq!(
            place_in_copy("COPY t, line 2").as_deref(),
            Some("COPY t, line 2")
        );
    }

    #[test]
    fn an_outdated_statement_is_known_by_its_failure() {
        let outdated = |sqlstate, message, cached| failure(sqlstate, message).outdated(cached);
        let missing = "prepared statement \"w1_1\" does not exist";
        assert_eq!(outdated("26000", missing, false), Some(Outdated::Gone));
        let columns = "cached plan must not change result type";
        assert_eq!(outdated("0A000", columns, false), Some(Outdated::Columns));
        assert_eq!(outdated("0A000", "not supported", true), None);
        let translated = ServerFailure {
            routine: "RevalidateCachedQuery".to_owned(),
            ..failure("0A000", "übersetzt")
        };
        assert_eq!(translated.outdated(true), Some(Outdated::Columns));
        for (sqlstate, message) in [
            ("42883", "operator does not exist: text = bigint"),
            (
                "42804",
                "column \"m\" is of type b but expression is of type a",
            ),
            ("22P02", "invalid input syntax for type bigint: \"a\""),
            ("XX000", "cache lookup failed for type 4711"),
        ] {
            assert_eq!(outdated(sqlstate, message, true), Some(Outdated::Types));
            assert_eq!(outdated(sqlstate, message, false), None, "{sqlstate}");
        }
        assert_eq!(outdated("XX000", "another internal error", true), None);
        assert_eq!(outdated("23505", "duplicate key", true), None);
    }

    #[test]
    fn a_long_statement_is_cut_at_a_character() {
        let cut = shorten(&"ä".repeat(1_001));
        assert_eq!(cut.chars().count(), 1_001);
        assert!(cut.ends_with('…'));
        assert_eq!(shorten("short"), "short");
    }

    #[test]
    fn a_cut_error_response_is_malformed() {
        let body = b"SERROR\0VERROR\0C42601\0Msyntax error\0\0";
        let failure = ServerFailure::read(body).unwrap();
        assert_eq!(failure.summary(), "syntax error (SQLSTATE 42601)");
        for end in 0..body.len() {
            assert_eq!(ServerFailure::read(&body[..end]), Err(Malformed));
        }
    }
}
