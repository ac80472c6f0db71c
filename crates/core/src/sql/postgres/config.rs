use std::path::PathBuf;

use super::auth::{BindingMode, RequireAuth};
use crate::sql::Error;
use crate::sql::connect_options::{ConnectOptions, Kind};

const POSTGRES: Kind = Kind {
    schemes: &["postgres", "postgresql", "pgsql"],
    port: 5432,
    options: &["options", "require_auth", "channel_binding", "max_pipeline"],
    socket: |directory, port| PathBuf::from(format!("{directory}/.s.PGSQL.{port}")),
};

/// The address and credentials of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Without a statement cache every statement is sent unnamed and in text, as poolers without prepared statements require.
    pub connect: ConnectOptions,
    /// Server settings as `-c name=value`, passed on unchanged.
    pub options: Option<String>,
    /// The authentication methods that the server may request.
    pub require_auth: RequireAuth,
    /// Whether SCRAM is bound to the TLS connection.
    pub channel_binding: BindingMode,
    /// The largest number of statements that are sent together while they wait for a connection of the pool, 1 to 1,000. 1, the default, sends each
    /// alone. A slow statement holds up those that were sent after it.
    pub max_pipeline: usize,
}

const MOST_PIPELINED: usize = 1_000;

impl Config {
    /// Reads what [`ConnectOptions`] does, with the scheme `postgres`, `postgresql` or `pgsql`, and `options`, `require_auth`,
    /// `channel_binding` and `max_pipeline`. A host that is a path is the directory of a socket; without a database it is the one with the user's
    /// name.
    ///
    /// # Errors
    /// [`Error::Dsn`] with the password hidden.
    pub fn parse(dsn: &str) -> Result<Self, Error> {
        let mut options = None;
        let mut require_auth = RequireAuth::default();
        let mut channel_binding = BindingMode::default();
        let mut max_pipeline = 1;
        let mut connect = ConnectOptions::parse(dsn, &POSTGRES, |name, value| {
            match name {
                "options" => options = Some(value.to_owned()),
                "require_auth" => require_auth = RequireAuth::parse(value)?,
                "channel_binding" => channel_binding = BindingMode::parse(value)?,
                "max_pipeline" => {
                    let number = value.parse().ok();
                    max_pipeline = number
                        .filter(|number| (1..=MOST_PIPELINED).contains(number))
                        .ok_or_else(|| format!("max_pipeline \"{value}\" is not a whole number from 1 to {MOST_PIPELINED}"))?;
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        connect.database.get_or_insert_with(|| connect.user.clone());
        Ok(Self {
            connect,
            options,
            require_auth,
            channel_binding,
            max_pipeline,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::net::{ClientTls, PeerCheck};
    use crate::sql::dsn::SslMode;

    #[test]
    fn every_part_is_read_and_percent_decoded() {
        let config = Config::parse(
            "postgres://us%40er:p%3Aw%2Fd@db.example:6543/my%20db?sslmode=verify-full&sslrootcert=/ca.pem&connect_timeout=2.5&application_name=a&options=-c%20x%3D1&statement_cache=0",
        )
        .unwrap();
        assert_eq!(config.connect.user, "us@er");
        assert_eq!(config.connect.password.as_deref(), Some("p:w/d"));
        assert_eq!(config.connect.endpoint.to_string(), "db.example:6543");
        assert_eq!(config.connect.database_or_user(), "my db");
        assert_eq!(config.connect.ssl_mode, SslMode::VerifyFull);
        assert_eq!(config.connect.ssl_root_cert, Some(PathBuf::from("/ca.pem")));
        assert_eq!(config.connect.connect_timeout, Duration::from_millis(2500));
        assert_eq!(config.connect.application_name, "a");
        assert_eq!(config.options.as_deref(), Some("-c x=1"));
        assert_eq!(config.connect.statement_cache, 0);
    }

    #[test]
    fn omitted_options_have_defaults() {
        let config = Config::parse("postgresql://app@localhost").unwrap();
        assert_eq!(config.connect.database_or_user(), "app");
        assert_eq!(config.connect.endpoint.to_string(), "localhost:5432");
        assert_eq!(config.connect.connect_timeout, Duration::from_secs(5));
        assert_eq!(config.connect.ssl_mode, SslMode::Prefer);
    }

    /// As in libpq.
    #[test]
    fn the_authorities_of_the_system_imply_that_certificate_and_name_are_verified() {
        let read = |options: &str| Config::parse(&format!("postgres://a@h/d?{options}"));
        for options in [
            "sslrootcert=system",
            "sslrootcert=system&sslmode=verify-full",
            "sslmode=verify-full&sslrootcert=system",
        ] {
            let connect = read(options).unwrap().connect;
            assert_eq!(connect.ssl_mode, SslMode::VerifyFull);
            assert_eq!(connect.client_tls(), ClientTls::default());
        }
        for mode in ["disable", "prefer", "require", "verify-ca"] {
            for options in [
                format!("sslrootcert=system&sslmode={mode}"),
                format!("sslmode={mode}&sslrootcert=system"),
            ] {
                let message = read(&options).unwrap_err().to_string();
                assert!(
                    message.contains(&format!("sslmode \"{mode}\"")),
                    "{message}"
                );
                assert!(message.contains("\"system\""), "{message}");
                assert!(message.contains("\"verify-full\""), "{message}");
            }
        }
    }

    #[test]
    fn authorities_in_a_file_verify_the_certificate() {
        let file = "postgres://a@h/d?sslrootcert=/ca.pem";
        let connect = Config::parse(file).unwrap().connect;
        assert_eq!(connect.ssl_mode, SslMode::VerifyCa);
        assert_eq!(connect.client_tls().check, PeerCheck::Authority);
    }

    #[test]
    fn a_host_that_is_a_directory_means_the_socket_in_it() {
        let config = Config::parse("postgres://app@/db?host=/run/postgresql&port=5433").unwrap();
        assert_eq!(
            config.connect.endpoint.to_string(),
            "/run/postgresql/.s.PGSQL.5433"
        );
        let encoded = Config::parse("postgres://app@%2Frun/db").unwrap();
        assert_eq!(encoded.connect.endpoint.to_string(), "/run/.s.PGSQL.5432");
    }

    #[test]
    fn an_ipv6_host_stands_in_brackets() {
        let config = Config::parse("postgres://app@[::1]:6000/db").unwrap();
        assert_eq!(config.connect.endpoint.to_string(), "[::1]:6000");
    }

    #[test]
    fn errors_name_the_cause_and_never_the_password() {
        for (dsn, cause) in [
            ("mysql://a:secret@h/d", "does not start with postgres://"),
            ("postgres://a:secret@h:99999/d", "port \"99999\""),
            (
                "postgres://a:sec:ret@h/d?sslmode=maybe",
                "sslmode \"maybe\"",
            ),
            (
                "postgres://a:secret@h/d?colour=red",
                "\"colour\" is unknown; there are host, port, user, password, dbname, sslmode, sslrootcert, connect_timeout, application_name, statement_cache, options, require_auth, channel_binding and max_pipeline",
            ),
            (
                "postgres://a@h/d?password=secret&connect_timeout=0",
                "connect_timeout",
            ),
            (
                "postgres://a:secret@h/d?max_pipeline=0",
                "max_pipeline \"0\" is not a whole number from 1 to 1000",
            ),
            (
                "postgres://a:secret@h/d?max_pipeline=1001",
                "max_pipeline \"1001\"",
            ),
            ("postgres://a:12?secret@h/d", "%3F"),
            ("postgres://a:12?connect_timeout=secret@h/d", "%3F"),
            ("postgres://a:12?secret=%ff@h/d", "%3F"),
            ("postgres://a:secret@h/d@e", "%40"),
            ("postgres://a@h/d?password=x&secret", "%26"),
            ("postgres://a@h/d?pass=secret", "\"pass\" is unknown"),
            ("postgres://:secret@h/d", "no user"),
            ("postgres://a:secret@/d", "no host"),
            ("postgres://a:secret@h/%ff", "database is not UTF-8"),
        ] {
            let message = Config::parse(dsn).unwrap_err().to_string();
            assert!(message.contains(cause), "{message}");
            assert!(
                !message.contains("secret") && !message.contains("ret@"),
                "{message}"
            );
        }
    }

    #[test]
    fn the_debug_form_shows_no_password() {
        let config = Config::parse("postgres://app:secret@localhost/db").unwrap();
        assert!(!format!("{config:?}").contains("secret"));
    }
}
