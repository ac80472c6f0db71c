use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::net::ClientTls;
use crate::sql::Error;
pub use crate::sql::dsn::{Endpoint, SslMode};
use crate::sql::dsn::{Parts, read_port, read_seconds, read_ssl_mode, redact};

const DEFAULT_PORT: u16 = 5432;
const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const DEFAULT_STATEMENT_CACHE: usize = 256;

/// Where a database is and how to get in. Its `Debug` form shows no password.
#[derive(Clone, PartialEq, Eq)]
pub struct Config {
    pub endpoint: Endpoint,
    pub user: String,
    pub password: Option<String>,
    pub database: String,
    pub ssl_mode: SslMode,
    /// PEM file with the certificates to trust; the system's when `None`.
    pub ssl_root_cert: Option<PathBuf>,
    /// For the whole way from the socket to the first `ReadyForQuery`. Default 5 s.
    pub connect_timeout: Duration,
    pub application_name: String,
    /// Server settings as `-c name=value`, handed over as they are.
    pub options: Option<String>,
    /// Prepared statements kept per connection. 0 keeps none and sends every statement unnamed and in text, as poolers
    /// without prepared statements need it. Default 256.
    pub statement_cache: usize,
}

impl Config {
    /// Reads `postgres://user:password@host:port/database?name=value`. All parts are percent-decoded.
    ///
    /// Names: `host` (a socket folder when it begins with `/`), `port`, `user`, `password`, `dbname`, `sslmode`
    /// (`disable`, `prefer` = default, `require`, `verify-ca`, `verify-full`), `sslrootcert`, `connect_timeout` in
    /// seconds, `application_name`, `options`, `statement_cache`.
    ///
    /// # Errors
    /// [`Error::Dsn`] with the password hidden.
    pub fn parse(dsn: &str) -> Result<Self, Error> {
        read(dsn).map_err(|reason| Error::Dsn {
            dsn: redact(dsn),
            reason,
        })
    }

    pub(super) fn client_tls(&self) -> ClientTls {
        self.ssl_mode.client_tls(self.ssl_root_cert.as_ref())
    }

    /// Where the connection goes, for error messages: `database at host:port as user`.
    pub fn target(&self) -> String {
        format!(
            "database \"{}\" at {} as \"{}\"",
            self.database, self.endpoint, self.user
        )
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("target", &self.target())
            .field("ssl_mode", &self.ssl_mode)
            .finish_non_exhaustive()
    }
}

/// The parts of a DSN, before defaults and cross-checks.
struct Draft {
    host: String,
    port: u16,
    user: Option<String>,
    password: Option<String>,
    database: Option<String>,
    config: Config,
}

fn read(dsn: &str) -> Result<Config, String> {
    let rest = ["postgres://", "postgresql://", "pgsql://"]
        .iter()
        .find_map(|scheme| dsn.strip_prefix(scheme))
        .ok_or("it does not start with postgres://")?;
    let Parts {
        user,
        password,
        host,
        port,
        database,
        options,
    } = Parts::read(rest)?;
    let mut draft = Draft {
        host,
        user,
        password,
        database,
        ..Draft::new()
    };
    draft.port = port.unwrap_or(draft.port);
    for (name, value) in options {
        draft.read_option(&name, value)?;
    }
    draft.finish()
}

impl Draft {
    fn new() -> Self {
        Self {
            host: String::new(),
            port: DEFAULT_PORT,
            user: None,
            password: None,
            database: None,
            config: Config {
                endpoint: Endpoint::Unix {
                    socket: PathBuf::new(),
                },
                user: String::new(),
                password: None,
                database: String::new(),
                ssl_mode: SslMode::default(),
                ssl_root_cert: None,
                connect_timeout: DEFAULT_CONNECT_TIMEOUT,
                application_name: "weft".to_owned(),
                options: None,
                statement_cache: DEFAULT_STATEMENT_CACHE,
            },
        }
    }

    fn read_option(&mut self, name: &str, value: String) -> Result<(), String> {
        match name {
            "host" => self.host = value,
            "port" => self.port = read_port(&value)?,
            "user" => self.user = Some(value),
            "password" => self.password = Some(value),
            "dbname" => self.database = Some(value),
            "sslmode" => self.config.ssl_mode = read_ssl_mode(&value)?,
            "sslrootcert" if value == "system" => self.config.ssl_root_cert = None,
            "sslrootcert" => self.config.ssl_root_cert = Some(PathBuf::from(value)),
            "connect_timeout" => self.config.connect_timeout = read_seconds(&value)?,
            "application_name" => self.config.application_name = value,
            "options" => self.config.options = Some(value),
            "statement_cache" => {
                self.config.statement_cache = value
                    .parse()
                    .map_err(|_| format!("statement_cache \"{value}\" is not a whole number"))?;
            }
            _ => return Err(format!("the option \"{name}\" is unknown")),
        }
        Ok(())
    }

    fn finish(self) -> Result<Config, String> {
        let user = self.user.ok_or("it names no user")?;
        let endpoint = if self.host.starts_with('/') {
            Endpoint::Unix {
                socket: PathBuf::from(format!("{}/.s.PGSQL.{}", self.host, self.port)),
            }
        } else if self.host.is_empty() {
            return Err("it names no host".to_owned());
        } else {
            Endpoint::Tcp {
                host: self.host,
                port: self.port,
            }
        };
        let texts = [Some(&user), self.password.as_ref(), self.database.as_ref()];
        if texts.into_iter().flatten().any(|text| text.contains('\0')) {
            return Err("it contains a NUL byte".to_owned());
        }
        Ok(Config {
            endpoint,
            database: self.database.unwrap_or_else(|| user.clone()),
            user,
            password: self.password,
            ..self.config
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_read_and_percent_decoded() {
        let config = Config::parse(
            "postgres://us%40er:p%3Aw%2Fd@db.example:6543/my%20db?sslmode=verify-full&sslrootcert=/ca.pem&connect_timeout=2.5&application_name=a&options=-c%20x%3D1&statement_cache=0",
        )
        .unwrap();
        assert_eq!(config.user, "us@er");
        assert_eq!(config.password.as_deref(), Some("p:w/d"));
        assert_eq!(config.endpoint.to_string(), "db.example:6543");
        assert_eq!(config.database, "my db");
        assert_eq!(config.ssl_mode, SslMode::VerifyFull);
        assert_eq!(config.ssl_root_cert, Some(PathBuf::from("/ca.pem")));
        assert_eq!(config.connect_timeout, Duration::from_millis(2500));
        assert_eq!(config.application_name, "a");
        assert_eq!(config.options.as_deref(), Some("-c x=1"));
        assert_eq!(config.statement_cache, 0);
    }

    #[test]
    fn what_is_left_out_has_a_default() {
        let config = Config::parse("postgresql://app@localhost").unwrap();
        assert_eq!(config.database, "app");
        assert_eq!(config.endpoint.to_string(), "localhost:5432");
        assert_eq!(config.connect_timeout, Duration::from_secs(5));
        assert_eq!(config.ssl_mode, SslMode::Prefer);
    }

    #[test]
    fn a_host_that_is_a_folder_means_the_socket_in_it() {
        let config = Config::parse("postgres://app@/db?host=/run/postgresql&port=5433").unwrap();
        assert_eq!(config.endpoint.to_string(), "/run/postgresql/.s.PGSQL.5433");
        let encoded = Config::parse("postgres://app@%2Frun/db").unwrap();
        assert_eq!(encoded.endpoint.to_string(), "/run/.s.PGSQL.5432");
    }

    #[test]
    fn an_ipv6_host_stands_in_brackets() {
        let config = Config::parse("postgres://app@[::1]:6000/db").unwrap();
        assert_eq!(config.endpoint.to_string(), "[::1]:6000");
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
                "\"colour\" is unknown",
            ),
            (
                "postgres://a@h/d?password=secret&connect_timeout=0",
                "connect_timeout",
            ),
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
