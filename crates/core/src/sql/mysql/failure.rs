use super::local_infile::HINT;
use super::wire::{Malformed, Reader};
use crate::sql::error::excerpt;
use crate::sql::{ConnectFailure, Error, ServerError};

/// An ERR packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerFailure {
    pub(super) code: u16,
    pub(super) sqlstate: String,
    message: String,
}

/// `ER_UNSUPPORTED_PS`: the statement has no prepared form.
const UNPREPARABLE: u16 = 1295;
/// The server, or the capabilities of this client, do not allow `LOAD DATA LOCAL`.
const LOCAL_INFILE: [u16; 3] = [1148, 3948, 4166];

impl ServerFailure {
    /// Reads the packet after its first byte.
    pub(super) fn read(body: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader(body);
        let code = reader.u16()?;
        // The server omits the SQLSTATE before it knows the client's capabilities.
        let sqlstate = match reader.0.first() {
            Some(b'#') => String::from_utf8_lossy(&reader.bytes(6)?[1..]).into_owned(),
            _ => "HY000".to_owned(),
        };
        Ok(Self {
            code,
            sqlstate,
            message: String::from_utf8_lossy(reader.0).into_owned(),
        })
    }

    pub(super) fn is_unpreparable(&self) -> bool {
        self.code == UNPREPARABLE
    }

    /// The server no longer has the prepared statement, or the definition of one of its tables has changed too often.
    pub(super) fn is_stale_statement(&self) -> bool {
        matches!(self.code, 1243 | 1615)
    }

    /// Whether the server closes the connection after this error: shutdown, `KILL`, a timeout.
    pub(super) fn is_fatal(&self) -> bool {
        matches!(
            self.code,
            1053 | 1152 | 1184 | 1927 | 2006 | 2013 | 3169 | 4031
        )
    }

    pub(super) fn summary(&self) -> String {
        format!("{} (error {})", self.message, self.code)
    }

    pub(super) fn into_error(self, statement: &str) -> Error {
        let sqlstate = match state(self.code, &self.message) {
            "" => self.sqlstate,
            state => state.to_owned(),
        };
        let constraint = constraint(self.code, &self.message);
        let message = discreet(self.code, &sqlstate, self.message, constraint.as_deref());
        Error::Server(Box::new(ServerError {
            sqlstate,
            message: format!("{message} (error {})", self.code),
            detail: None,
            hint: LOCAL_INFILE.contains(&self.code).then(|| HINT.to_owned()),
            constraint,
            code: Some(self.code.into()),
            is_repeatable: false,
            statement: excerpt(statement),
        }))
    }

    /// The same during authentication.
    pub(super) fn into_connect_error(self, target: &str) -> Error {
        let failure = match self.code {
            1049 => ConnectFailure::Database,
            // Unknown user, incorrect password or plugin, no access to the database, expired password, locked account.
            1044 | 1045 | 1130 | 1251 | 1524 | 1698 | 1862 | 3118 | 3159 | 3955 | 4151 => {
                ConnectFailure::Authentication
            }
            _ => ConnectFailure::Protocol,
        };
        Error::Connect {
            target: target.to_owned(),
            failure,
            message: self.summary(),
        }
    }
}

/// The SQLSTATE that other databases use for the same failure; MySQL's own are mostly `HY000`, `23000` or `42000`.
fn state(code: u16, message: &str) -> &'static str {
    match code {
        // Only the text names the server option that prevents the statement.
        1290 if message.contains("read-only") || message.contains("read_only") => "25006",
        1792 | 1836 => "25006",
        1021 | 1114 => "53100",
        1037 | 1038 | 1041 => "53200",
        1022 | 1062 | 1169 | 1586 | 1761 | 1762 => "23505",
        1216 | 1217 | 1451 | 1452 | 1834 => "23503",
        1048 | 1263 | 1364 => "23502",
        3819 | 4025 => "23514",
        1213 | 1614 => "40P01",
        // 3101: a member of a replication group has changed the same rows; the transaction is rolled back.
        1020 | 3101 => "40001",
        1205 | 3572 => "55P03",
        1051 | 1109 | 1146 => "42P01",
        1054 => "42703",
        1064 | 1065 | 1149 => "42601",
        1044 | 1045 | 1142 | 1143 | 1148 | 1227 | 1370 | 1410 | 3948 | 4166 => "42501",
        1317 | 1969 | 3024 => "57014",
        1264 | 1690 => "22003",
        1265 | 1292 | 1366 | 1411 | 1525 => "22007",
        1365 => "22012",
        1406 => "22001",
        3140 | 3141 | 4038 => "22032",
        1153 => "54000",
        _ => "",
    }
}

/// The name of the violated constraint.
fn constraint(code: u16, message: &str) -> Option<String> {
    let after = |mark: &str, end: char| {
        let (_, rest) = message.rsplit_once(mark)?;
        let (name, _) = rest.split_once(end)?;
        Some(name.to_owned())
    };
    match code {
        // MySQL puts the table before the name of the key.
        1062 | 1586 => after("for key '", '\'').map(|name| match name.rsplit_once('.') {
            Some((_, key)) => key.to_owned(),
            None => name,
        }),
        1451 | 1452 | 4025 => after("CONSTRAINT `", '`'),
        3819 => after("Check constraint '", '\''),
        _ => None,
    }
}

/// A message without the values that it may quote.
fn discreet(code: u16, sqlstate: &str, message: String, constraint: Option<&str>) -> String {
    match code {
        1062 | 1586 => match constraint {
            Some(key) => format!("Duplicate entry for key '{key}'"),
            None => "Duplicate entry".to_owned(),
        },
        // These quote only the name of the column.
        1264 | 1406 => message,
        _ if sqlstate.starts_with("22") => without_values(&message),
        _ => message,
    }
}

/// Removes the user's value from messages such as `Incorrect integer value: 'abc' for column …`.
fn without_values(message: &str) -> String {
    match (message.find('\''), message.rfind('\'')) {
        (Some(first), Some(last)) if first < last => {
            format!("{}'…'{}", &message[..first], &message[last + 1..])
        }
        _ => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: u16, message: &str) -> ServerError {
        let failure = ServerFailure {
            code,
            sqlstate: "HY000".to_owned(),
            message: message.to_owned(),
        };
        match failure.into_error("SELECT 1") {
            Error::Server(error) => *error,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn errors_about_data_repeat_no_data() {
        for (code, message) in [
            (1062, "Duplicate entry 'sec'ret' for key 'name'"),
            (
                1366,
                "Incorrect integer value: 'sec'ret' for column `d`.`t`.`c` at row 1",
            ),
            (1292, "Truncated incorrect DOUBLE value: 'secret'"),
            (1690, "BIGINT value is out of range in '('secret' + 1)'"),
        ] {
            let error = error(code, message);
            assert!(!error.to_string().contains("sec"), "{error}");
        }
    }

    #[test]
    fn a_server_that_takes_no_changes_says_so_as_others_do() {
        for (code, message, state) in [
            (
                1290,
                "The MariaDB server is running with the --read-only option so it cannot execute this statement",
                "25006",
            ),
            (
                1290,
                "The MySQL server is running with the --secure-file-priv option so it cannot execute this statement",
                "HY000",
            ),
            (
                1792,
                "Cannot execute statement in a READ ONLY transaction",
                "25006",
            ),
            (1114, "The table 'effects' is full", "53100"),
        ] {
            assert_eq!(error(code, message).sqlstate, state, "{message}");
        }
    }

    #[test]
    fn a_conflict_between_members_of_a_replication_group_can_be_retried() {
        let message = "Plugin instructed the server to rollback the current transaction.";
        assert_eq!(error(3101, message).sqlstate, "40001");
    }

    #[test]
    fn an_expired_password_fails_the_authentication() {
        let failure = ServerFailure {
            code: 1862,
            sqlstate: "HY000".to_owned(),
            message: "Your password has expired.".to_owned(),
        };
        let Error::Connect { failure, .. } = failure.into_connect_error("db") else {
            panic!("no failure to connect");
        };
        assert!(matches!(failure, ConnectFailure::Authentication));
    }

    #[test]
    fn a_violated_constraint_is_found_in_the_message() {
        for (code, message, state, name) in [
            (
                1062,
                "Duplicate entry 'x' for key 'items.items_name'",
                "23505",
                "items_name",
            ),
            (
                1452,
                "Cannot add or update a child row: a foreign key constraint fails (`d`.`items`, CONSTRAINT `items_ibfk_1` FOREIGN KEY (`parent`) REFERENCES `items` (`id`))",
                "23503",
                "items_ibfk_1",
            ),
            (
                4025,
                "CONSTRAINT `positive` failed for `d`.`items`",
                "23514",
                "positive",
            ),
            (
                3819,
                "Check constraint 'positive' is violated.",
                "23514",
                "positive",
            ),
        ] {
            let error = error(code, message);
            assert_eq!(error.sqlstate, state);
            assert_eq!(error.constraint.as_deref(), Some(name));
        }
    }

    #[test]
    fn a_state_without_a_better_one_stays() {
        let body = b"\x10\x04#42000message";
        let failure = ServerFailure::read(body).unwrap();
        assert_eq!((failure.code, failure.sqlstate.as_str()), (1040, "42000"));
        assert_eq!(ServerFailure::read(b"\x10"), Err(Malformed));
        assert_eq!(ServerFailure::read(b"\x10\x04#42"), Err(Malformed));
    }
}
