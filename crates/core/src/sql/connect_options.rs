//! Connection options that the DSNs of all servers share.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::Error;
use super::dsn::{Endpoint, Parts, SslMode, read_port, read_seconds, read_ssl_mode};
use crate::net::{ClientTls, PeerCheck, dsn};

const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const DEFAULT_STATEMENT_CACHE: usize = 256;
const OPTIONS: [&str; 10] = [
    "host",
    "port",
    "user",
    "password",
    "dbname",
    "sslmode",
    "sslrootcert",
    "connect_timeout",
    "application_name",
    "statement_cache",
];

/// The address and credentials of a server. Its `Debug` form hides the password.
#[derive(Clone, PartialEq, Eq)]
pub struct ConnectOptions {
    pub endpoint: Endpoint,
    pub user: String,
    pub password: Option<String>,
    /// `None` if the DSN has none.
    pub database: Option<String>,
    pub ssl_mode: SslMode,
    /// PEM file with the certificates to trust; the system's when `None`.
    pub ssl_root_cert: Option<PathBuf>,
    /// Limits everything from opening the socket to the end of authentication. Default 5 s.
    pub connect_timeout: Duration,
    /// The name that the server shows for the connection. Default `weft`.
    pub application_name: String,
    /// Prepared statements kept per connection; 0 keeps none. Default 256.
    pub statement_cache: usize,
}

/// The differences between the DSNs of the kinds of servers.
pub(super) struct Kind {
    /// The first one appears in error messages.
    pub(super) schemes: &'static [&'static str],
    pub(super) port: u16,
    /// The options that only this kind has.
    pub(super) options: &'static [&'static str],
    /// The path of the Unix socket for a host that is a path, and a port.
    pub(super) socket: fn(&str, u16) -> PathBuf,
}

impl Kind {
    fn options(&self) -> Vec<&'static str> {
        OPTIONS.iter().chain(self.options).copied().collect()
    }
}

impl ConnectOptions {
    /// Reads `scheme://user:password@host:port/database?name=value`. All parts are percent-decoded.
    ///
    /// Names: `host` (a path when it begins with `/`), `port`, `user`, `password`, `dbname`, `sslmode` (`disable`, `prefer`
    /// = default, `require`, `verify-ca`, `verify-full`), `sslrootcert`, `connect_timeout` in seconds, `application_name`,
    /// `statement_cache`, and those that `own` knows.
    ///
    /// # Errors
    /// [`Error::Dsn`] with the password hidden.
    pub(super) fn parse(
        dsn: &str,
        kind: &Kind,
        own: impl FnMut(&str, &str) -> Result<bool, String>,
    ) -> Result<Self, Error> {
        read(dsn, kind, own).map_err(|reason| Error::Dsn {
            dsn: dsn::redact(dsn, &kind.options()),
            reason: dsn::reason(dsn, reason),
        })
    }

    pub(super) fn client_tls(&self) -> ClientTls {
        self.ssl_mode.client_tls(self.ssl_root_cert.as_ref())
    }

    /// Whether TLS with these settings proves the identity of the server. A certificate for any name proves nothing if any
    /// authority that the system trusts may have issued it.
    pub(super) fn proves_server(&self) -> bool {
        match self.client_tls().check {
            PeerCheck::AuthorityAndName => true,
            PeerCheck::Authority => self.ssl_root_cert.is_some(),
            PeerCheck::None => false,
        }
    }

    /// The database; the name of the user if the DSN has none.
    pub fn database_or_user(&self) -> &str {
        self.database.as_deref().unwrap_or(&self.user)
    }

    /// The target of the connection for error messages: `database at host:port as user`.
    pub fn target(&self) -> String {
        let place = format!("{} as \"{}\"", self.endpoint, self.user);
        match &self.database {
            Some(database) => format!("database \"{database}\" at {place}"),
            None => place,
        }
    }
}

impl fmt::Debug for ConnectOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectOptions")
            .field("target", &self.target())
            .field("ssl_mode", &self.ssl_mode)
            .finish_non_exhaustive()
    }
}

fn read(
    dsn: &str,
    kind: &Kind,
    mut own: impl FnMut(&str, &str) -> Result<bool, String>,
) -> Result<ConnectOptions, String> {
    let schemes = kind.schemes.iter();
    let rest = schemes
        .filter_map(|scheme| dsn.strip_prefix(scheme)?.strip_prefix("://"))
        .next()
        .ok_or_else(|| format!("it does not start with {}://", kind.schemes[0]))?;
    let mut parts = Parts::read(rest)?;
    let mut connect = ConnectOptions {
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
    };
    dsn::check_path(dsn)?;
    let mut follows_password = false;
    for (name, value) in std::mem::take(&mut parts.options) {
        follows_password |= name == "password";
        if !own(&name, &value)? && !connect.read_option(&mut parts, &name, value)? {
            return Err(unknown(&name, follows_password, kind));
        }
    }
    connect.finish(parts, kind)
}

impl ConnectOptions {
    fn read_option(
        &mut self,
        parts: &mut Parts,
        name: &str,
        value: String,
    ) -> Result<bool, String> {
        match name {
            "host" => parts.host = value,
            "port" => parts.port = Some(read_port(&value)?),
            "user" => parts.user = Some(value),
            "password" => parts.password = Some(value),
            "dbname" => parts.database = Some(value),
            "sslmode" => parts.ssl_mode = Some(read_ssl_mode(&value)?),
            "sslrootcert" => parts.ssl_root_cert = Some(value),
            "connect_timeout" => self.connect_timeout = read_seconds(&value)?,
            "application_name" => self.application_name = value,
            "statement_cache" => {
                self.statement_cache = value
                    .parse()
                    .map_err(|_| format!("statement_cache \"{value}\" is not a whole number"))?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn finish(self, parts: Parts, kind: &Kind) -> Result<Self, String> {
        let names_no = |part| {
            let scheme = kind.schemes[0];
            format!("it names no {part}, as {scheme}://user:password@host/database does")
        };
        let user = parts.user.ok_or_else(|| names_no("user"))?;
        let texts = [
            Some(&user),
            parts.password.as_ref(),
            parts.database.as_ref(),
        ];
        if texts.into_iter().flatten().any(|text| text.contains('\0')) {
            return Err("it contains a NUL byte".to_owned());
        }
        let port = parts.port.unwrap_or(kind.port);
        let endpoint = match parts.host {
            host if host.is_empty() => return Err(names_no("host")),
            host if host.starts_with('/') => Endpoint::Unix {
                socket: (kind.socket)(&host, port),
            },
            host => Endpoint::Tcp { host, port },
        };
        let (ssl_mode, ssl_root_cert) = trust(parts.ssl_mode, parts.ssl_root_cert)?;
        Ok(Self {
            endpoint,
            user,
            password: parts.password,
            database: parts.database,
            ssl_mode,
            ssl_root_cert,
            ..self
        })
    }
}

/// Authorities are named to verify the server with them, so naming them without a mode implies one that does: that of libpq for those of the
/// system, which have signed certificates for anybody; that of MySQL's clients for a file.
fn trust(
    mode: Option<SslMode>,
    root_cert: Option<String>,
) -> Result<(SslMode, Option<PathBuf>), String> {
    match (root_cert.as_deref(), mode) {
        (Some("system"), None | Some(SslMode::VerifyFull)) => Ok((SslMode::VerifyFull, None)),
        (Some("system"), Some(weaker)) => Err(format!(
            "sslmode \"{weaker}\" is weaker than sslrootcert \"system\" allows, which is for sslmode \"verify-full\" alone: any certificate \
             that an authority of the system has signed would do"
        )),
        (Some(file), mode) => Ok((mode.unwrap_or(SslMode::VerifyCa), Some(PathBuf::from(file)))),
        (None, mode) => Ok((mode.unwrap_or_default(), None)),
    }
}

fn unknown(name: &str, follows_password: bool, kind: &Kind) -> String {
    let known = kind.options();
    let known = match known.split_last() {
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => String::new(),
    };
    match follows_password {
        false => format!("the option \"{name}\" is unknown; there are {known}"),
        // Not shown: it may be the rest of the password.
        true => format!(
            "an option after the password is unknown; in a password, \"&\" is written \"%26\"; there are {known}"
        ),
    }
}
