use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::net::ClientTls;
use crate::sql::Error;
pub use crate::sql::dsn::{Endpoint, SslMode};
use crate::sql::dsn::{Parts, read_port, read_seconds, read_ssl_mode, redact};

const DEFAULT_PORT: u16 = 3306;
const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const DEFAULT_STATEMENT_CACHE: usize = 256;

/// Where a database is and how to get in. Its `Debug` form shows no password.
#[derive(Clone, PartialEq, Eq)]
pub struct Config {
    pub endpoint: Endpoint,
    pub user: String,
    pub password: Option<String>,
    /// No default database when `None`.
    pub database: Option<String>,
    pub ssl_mode: SslMode,
    /// PEM file with the certificates to trust; the system's when `None`.
    pub ssl_root_cert: Option<PathBuf>,
    /// For the whole way from the socket to the end of the log-in. Default 5 s.
    pub connect_timeout: Duration,
    /// Shown by `performance_schema.session_connect_attrs` as `program_name`.
    pub application_name: String,
    /// Prepared statements kept per connection; 0 prepares each statement for one use. Default 256.
    pub statement_cache: usize,
    /// Whether `LOAD DATA LOCAL INFILE` may read files of this machine. Default no.
    pub local_infile: bool,
}

impl Config {
    /// Reads `mysql://user:password@host:port/database?name=value`, `mariadb://` as well. All parts are percent-decoded.
    ///
    /// Names: `host` (a socket when it begins with `/`), `port`, `user`, `password`, `dbname`, `sslmode` (`disable`,
    /// `prefer` = default, `require`, `verify-ca`, `verify-full`), `sslrootcert`, `connect_timeout` in seconds,
    /// `application_name`, `statement_cache`, `local_infile` (`on`, `off` = default).
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
        match &self.database {
            Some(database) => format!(
                "database \"{database}\" at {} as \"{}\"",
                self.endpoint, self.user
            ),
            None => format!("{} as \"{}\"", self.endpoint, self.user),
        }
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

fn read(dsn: &str) -> Result<Config, String> {
    let rest = ["mysql://", "mariadb://"]
        .iter()
        .find_map(|scheme| dsn.strip_prefix(scheme))
        .ok_or("it does not start with mysql:// or mariadb://")?;
    let mut parts = Parts::read(rest)?;
    let mut config = Config {
        endpoint: Endpoint::Unix {
            socket: PathBuf::new(),
        },
        user: String::new(),
        password: None,
        database: None,
        ssl_mode: SslMode::default(),
        ssl_root_cert: None,
        connect_timeout: DEFAULT_CONNECT_TIMEOUT,
        application_name: "weft".to_owned(),
        statement_cache: DEFAULT_STATEMENT_CACHE,
        local_infile: false,
    };
    for (name, value) in std::mem::take(&mut parts.options) {
        read_option(&mut config, &mut parts, &name, value)?;
    }
    finish(config, parts)
}

fn read_option(
    config: &mut Config,
    parts: &mut Parts,
    name: &str,
    value: String,
) -> Result<(), String> {
    match name {
        "host" => parts.host = value,
        "port" => parts.port = Some(read_port(&value)?),
        "user" => parts.user = Some(value),
        "password" => parts.password = Some(value),
        "dbname" => parts.database = Some(value),
        "sslmode" => config.ssl_mode = read_ssl_mode(&value)?,
        "sslrootcert" if value == "system" => config.ssl_root_cert = None,
        "sslrootcert" => config.ssl_root_cert = Some(PathBuf::from(value)),
        "connect_timeout" => config.connect_timeout = read_seconds(&value)?,
        "application_name" => config.application_name = value,
        "statement_cache" => {
            config.statement_cache = value
                .parse()
                .map_err(|_| format!("statement_cache \"{value}\" is not a whole number"))?;
        }
        "local_infile" => {
            config.local_infile = match value.as_str() {
                "on" => true,
                "off" => false,
                _ => return Err(format!("local_infile \"{value}\" is neither on nor off")),
            };
        }
        _ => return Err(format!("the option \"{name}\" is unknown")),
    }
    Ok(())
}

fn finish(config: Config, parts: Parts) -> Result<Config, String> {
    let user = parts.user.ok_or("it names no user")?;
    let texts = [
        Some(&user),
        parts.password.as_ref(),
        parts.database.as_ref(),
    ];
    if texts.into_iter().flatten().any(|text| text.contains('\0')) {
        return Err("it contains a NUL byte".to_owned());
    }
    let endpoint = match parts.host {
        host if host.is_empty() => return Err("it names no host".to_owned()),
        host if host.starts_with('/') => Endpoint::Unix {
            socket: PathBuf::from(host),
        },
        host => Endpoint::Tcp {
            host,
            port: parts.port.unwrap_or(DEFAULT_PORT),
        },
    };
    Ok(Config {
        endpoint,
        user,
        password: parts.password,
        database: parts.database,
        ..config
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_read_and_percent_decoded() {
        let config = Config::parse(
            "mariadb://us%40er:p%3Aw%2Fd@db.example:3307/my%20db?sslmode=verify-ca&sslrootcert=/ca.pem&connect_timeout=2.5&application_name=a&statement_cache=0&local_infile=on",
        )
        .unwrap();
        assert_eq!(config.user, "us@er");
        assert_eq!(config.password.as_deref(), Some("p:w/d"));
        assert_eq!(config.endpoint.to_string(), "db.example:3307");
        assert_eq!(config.database.as_deref(), Some("my db"));
        assert_eq!(config.ssl_mode, SslMode::VerifyCa);
        assert_eq!(config.ssl_root_cert, Some(PathBuf::from("/ca.pem")));
        assert_eq!(config.connect_timeout, Duration::from_millis(2500));
        assert_eq!(config.application_name, "a");
        assert_eq!(config.statement_cache, 0);
        assert!(config.local_infile);
    }

    #[test]
    fn what_is_left_out_has_a_default() {
        let config = Config::parse("mysql://app@localhost").unwrap();
        assert_eq!(config.database, None);
        assert_eq!(config.endpoint.to_string(), "localhost:3306");
        assert_eq!(config.ssl_mode, SslMode::Prefer);
        assert!(!config.local_infile);
    }

    #[test]
    fn a_host_that_is_a_path_is_a_socket() {
        let config = Config::parse("mysql://app@/db?host=/run/mysqld/mysqld.sock").unwrap();
        assert_eq!(config.endpoint.to_string(), "/run/mysqld/mysqld.sock");
    }

    #[test]
    fn errors_name_the_cause_and_never_the_password() {
        for (dsn, cause) in [
            ("postgres://a:secret@h/d", "does not start with mysql://"),
            ("mysql://a:secret@h:0/d", "port \"0\""),
            ("mysql://a:secret@h/d?sslmode=maybe", "sslmode \"maybe\""),
            ("mysql://a:secret@h/d?local_infile=1", "local_infile \"1\""),
            ("mysql://a:secret@h/d?colour=red", "\"colour\" is unknown"),
            ("mysql://:secret@h/d", "no user"),
            ("mysql://a:secret@/d", "no host"),
        ] {
            let message = Config::parse(dsn).unwrap_err().to_string();
            assert!(message.contains(cause), "{message}");
            assert!(!message.contains("secret"), "{message}");
        }
    }
}
