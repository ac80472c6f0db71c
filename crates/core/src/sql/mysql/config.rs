use std::path::PathBuf;

use crate::sql::Error;
use crate::sql::connect_options::{ConnectOptions, Kind};

const MYSQL: Kind = Kind {
    schemes: &["mysql", "mariadb"],
    port: 3306,
    options: &[
        "local_infile",
        "server_public_key",
        "allow_unverified_server",
    ],
    socket: |path, _| PathBuf::from(path),
};

/// The address and credentials of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// `performance_schema.session_connect_attrs` shows the application's name as `program_name`. Without a statement
    /// cache each statement is prepared for one use.
    pub connect: ConnectOptions,
    /// Whether `LOAD DATA LOCAL INFILE` may read files of this machine. Default no.
    pub local_infile: bool,
    /// PEM file with the RSA public key of the server, which encrypts the password on connections without TLS.
    pub server_public_key: Option<PathBuf>,
    /// Whether the password may be sent to an unverified server: in the clear over TLS without a verified
    /// certificate, or without TLS encrypted by a key that the server itself sends. Default no.
    pub allow_unverified_server: bool,
}

impl Config {
    /// Reads what [`ConnectOptions`] does, with the scheme `mysql` or `mariadb`, and `local_infile` (`on`, `off` = default),
    /// `server_public_key` (a PEM file), `allow_unverified_server` (`on`, `off` = default).
    ///
    /// # Errors
    /// [`Error::Dsn`] with the password hidden.
    pub fn parse(dsn: &str) -> Result<Self, Error> {
        let (mut local_infile, mut allow_unverified_server) = (false, false);
        let mut server_public_key = None;
        let connect = ConnectOptions::parse(dsn, &MYSQL, |name, value| {
            match name {
                "local_infile" => local_infile = read_switch(name, value)?,
                "allow_unverified_server" => allow_unverified_server = read_switch(name, value)?,
                "server_public_key" if value.is_empty() => {
                    return Err("server_public_key names no file".to_owned());
                }
                "server_public_key" => server_public_key = Some(PathBuf::from(value)),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(Self {
            connect,
            local_infile,
            server_public_key,
            allow_unverified_server,
        })
    }
}

fn read_switch(name: &str, value: &str) -> Result<bool, String> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("{name} \"{value}\" is neither on nor off")),
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
            "mariadb://us%40er:p%3Aw%2Fd@db.example:3307/my%20db?sslmode=verify-ca&sslrootcert=/ca.pem&connect_timeout=2.5&application_name=a&statement_cache=0&local_infile=on&server_public_key=/key.pem&allow_unverified_server=on",
        )
        .unwrap();
        assert_eq!(config.connect.user, "us@er");
        assert_eq!(config.connect.password.as_deref(), Some("p:w/d"));
        assert_eq!(config.connect.endpoint.to_string(), "db.example:3307");
        assert_eq!(config.connect.database.as_deref(), Some("my db"));
        assert_eq!(config.connect.ssl_mode, SslMode::VerifyCa);
        assert_eq!(config.connect.ssl_root_cert, Some(PathBuf::from("/ca.pem")));
        assert_eq!(config.connect.connect_timeout, Duration::from_millis(2500));
        assert_eq!(config.connect.application_name, "a");
        assert_eq!(config.connect.statement_cache, 0);
        assert!(config.local_infile && config.allow_unverified_server);
        assert_eq!(config.server_public_key, Some(PathBuf::from("/key.pem")));
    }

    #[test]
    fn omitted_options_have_defaults() {
        let config = Config::parse("mysql://app@localhost").unwrap();
        assert_eq!(config.connect.database, None);
        assert_eq!(config.connect.endpoint.to_string(), "localhost:3306");
        assert_eq!(config.connect.ssl_mode, SslMode::Prefer);
        assert!(!config.local_infile && !config.allow_unverified_server);
        assert_eq!(config.server_public_key, None);
    }

    /// As MySQL's clients do.
    #[test]
    fn authorities_in_a_file_verify_the_certificate() {
        let mode = |dsn: &str| Config::parse(dsn).unwrap().connect.ssl_mode;
        assert_eq!(mode("mysql://a@h?sslrootcert=/ca.pem"), SslMode::VerifyCa);
        assert_eq!(
            mode("mysql://a@h?sslrootcert=/ca.pem&sslmode=prefer"),
            SslMode::Prefer
        );
        assert_eq!(mode("mysql://a@h?sslrootcert=system"), SslMode::VerifyFull);
    }

    #[test]
    fn a_host_that_is_a_path_is_a_socket() {
        let config = Config::parse("mysql://app@/db?host=/run/mysqld/mysqld.sock").unwrap();
        assert_eq!(
            config.connect.endpoint.to_string(),
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
                "\"colour\" is unknown; there are host, port, user, password, dbname, sslmode, sslrootcert, connect_timeout, application_name, statement_cache, local_infile, server_public_key and allow_unverified_server",
            ),
            (
                "mysql://a:secret@h/d?allow_unverified_server=yes",
                "allow_unverified_server \"yes\" is neither on nor off",
            ),
            (
                "mysql://a:secret@h/d?server_public_key=",
                "server_public_key names no file",
            ),
            ("mysql://a:12?secret@h/d", "%3F"),
            ("mysql://a:12?sslmode=secret@h/d", "%3F"),
            ("mysql://a:12/secret@h/d?user=b", "%2F"),
            ("mysql://a@h/d?password=x&secret", "%26"),
            ("mysql://a@h/d?passwd=secret", "\"passwd\" is unknown"),
            ("mysql://:secret@h/d", "no user"),
            ("mysql://a:secret@/d", "no host"),
        ] {
            let message = Config::parse(dsn).unwrap_err().to_string();
            assert!(message.contains(cause), "{message}");
            assert!(!message.contains("secret"), "{message}");
        }
    }
}
