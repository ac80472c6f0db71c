use std::path::PathBuf;

use crate::sql::Error;
use crate::sql::access::{Access, Kind};

const MYSQL: Kind = Kind {
    schemes: &["mysql", "mariadb"],
    port: 3306,
    option: "local_infile",
    socket: |path, _| PathBuf::from(path),
};

/// Where a database is and how to get in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The application's name is shown by `performance_schema.session_connect_attrs` as `program_name`. Without a statement
    /// cache each statement is prepared for one use.
    pub access: Access,
    /// Whether `LOAD DATA LOCAL INFILE` may read files of this machine. Default no.
    pub local_infile: bool,
}

impl Config {
    /// Reads what [`Access`] does, with the scheme `mysql` or `mariadb`, and `local_infile` (`on`, `off` = default).
    ///
    /// # Errors
    /// [`Error::Dsn`] with the password hidden.
    pub fn parse(dsn: &str) -> Result<Self, Error> {
        let mut local_infile = false;
        let access = Access::parse(dsn, &MYSQL, |name, value| {
            if name != "local_infile" {
                return Ok(false);
            }
            local_infile = match value {
                "on" => true,
                "off" => false,
                _ => return Err(format!("local_infile \"{value}\" is neither on nor off")),
            };
            Ok(true)
        })?;
        Ok(Self {
            access,
            local_infile,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::sql::dsn::SslMode;

    #[test]
    fn every_part_is_read_and_percent_decoded() {
        let config = Config::parse(
            "mariadb://us%40er:p%3Aw%2Fd@db.example:3307/my%20db?sslmode=verify-ca&sslrootcert=/ca.pem&connect_timeout=2.5&application_name=a&statement_cache=0&local_infile=on",
        )
        .unwrap();
        assert_eq!(config.access.user, "us@er");
        assert_eq!(config.access.password.as_deref(), Some("p:w/d"));
        assert_eq!(config.access.endpoint.to_string(), "db.example:3307");
        assert_eq!(config.access.database.as_deref(), Some("my db"));
        assert_eq!(config.access.ssl_mode, SslMode::VerifyCa);
        assert_eq!(config.access.ssl_root_cert, Some(PathBuf::from("/ca.pem")));
        assert_eq!(config.access.connect_timeout, Duration::from_millis(2500));
        assert_eq!(config.access.application_name, "a");
        assert_eq!(config.access.statement_cache, 0);
        assert!(config.local_infile);
    }

    #[test]
    fn what_is_left_out_has_a_default() {
        let config = Config::parse("mysql://app@localhost").unwrap();
        assert_eq!(config.access.database, None);
        assert_eq!(config.access.endpoint.to_string(), "localhost:3306");
        assert_eq!(config.access.ssl_mode, SslMode::Prefer);
        assert!(!config.local_infile);
    }

    #[test]
    fn a_host_that_is_a_path_is_a_socket() {
        let config = Config::parse("mysql://app@/db?host=/run/mysqld/mysqld.sock").unwrap();
        assert_eq!(
            config.access.endpoint.to_string(),
            "/run/mysqld/mysqld.sock"
        );
    }

    #[test]
    fn errors_name_the_cause_and_never_the_password() {
        for (dsn, cause) in [
            ("postgres://a:secret@h/d", "does not start with mysql://"),
            ("mysql://a:secret@h:0/d", "port \"0\""),
            ("mysql://a:secret@h/d?sslmode=maybe", "sslmode \"maybe\""),
            ("mysql://a:secret@h/d?local_infile=1", "local_infile \"1\""),
            (
                "mysql://a:secret@h/d?colour=red",
                "\"colour\" is unknown; there are host, port, user, password, dbname, sslmode, sslrootcert, connect_timeout, application_name, statement_cache and local_infile",
            ),
            ("mysql://:secret@h/d", "no user"),
            ("mysql://a:secret@/d", "no host"),
        ] {
            let message = Config::parse(dsn).unwrap_err().to_string();
            assert!(message.contains(cause), "{message}");
            assert!(!message.contains("secret"), "{message}");
        }
    }
}
