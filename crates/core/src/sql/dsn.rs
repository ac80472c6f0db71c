//! The parts that all DSNs of servers share: `scheme://user:password@host:port/database?name=value&…`.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::percent_decode_str;

use crate::net::{ClientTls, PeerCheck};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    Tcp { host: String, port: u16 },
    Unix { socket: PathBuf },
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix { socket } => write!(f, "{}", socket.display()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SslMode {
    Disable,
    /// TLS if the server offers it, without verifying its identity.
    #[default]
    Prefer,
    /// TLS is required; the identity of the server is not verified.
    Require,
    /// TLS is required, with a certificate of a trusted authority.
    VerifyCa,
    /// As `verify-ca`, and the certificate must be for this host.
    VerifyFull,
}

impl fmt::Display for SslMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disable => "disable",
            Self::Prefer => "prefer",
            Self::Require => "require",
            Self::VerifyCa => "verify-ca",
            Self::VerifyFull => "verify-full",
        })
    }
}

impl SslMode {
    /// As in libpq, `require` with a root certificate means `verify-ca`.
    pub(super) fn client_tls(self, root_cert: Option<&PathBuf>) -> ClientTls {
        ClientTls {
            ca_file: root_cert.cloned(),
            check: match (self, root_cert) {
                (Self::VerifyFull, _) => PeerCheck::AuthorityAndName,
                (Self::VerifyCa, _) | (Self::Require, Some(_)) => PeerCheck::Authority,
                _ => PeerCheck::None,
            },
            ..ClientTls::default()
        }
    }
}

/// A DSN without its scheme, every part percent-decoded. Missing parts are empty or `None`.
pub(super) struct Parts {
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    pub(super) host: String,
    pub(super) port: Option<u16>,
    pub(super) database: Option<String>,
    pub(super) options: Vec<(String, String)>,
    /// Set by options alone, as is the next.
    pub(super) ssl_mode: Option<SslMode>,
    /// A PEM file, or `system`.
    pub(super) ssl_root_cert: Option<String>,
}

impl Parts {
    /// # Errors
    /// A message that names the invalid part.
    pub(super) fn read(rest: &str) -> Result<Self, String> {
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, address) = match authority.rsplit_once('@') {
            Some((login, address)) => (login, address),
            None => ("", authority),
        };
        let (user, password) = match login.split_once(':') {
            Some((user, password)) => (user, Some(password)),
            None => (login, None),
        };
        let (host, port) = split_address(address)?;
        let options = query.split('&').filter(|pair| !pair.is_empty());
        Ok(Self {
            user: present(user, "user")?,
            password: password.map(|p| decode(p, "password")).transpose()?,
            host: decode(host, "host")?,
            port: port.map(read_port).transpose()?,
            database: present(path, "database")?,
            options: options
                .map(|pair| {
                    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                    Ok((name.to_owned(), decode(value, name)?))
                })
                .collect::<Result<_, String>>()?,
            ssl_mode: None,
            ssl_root_cert: None,
        })
    }
}

fn split_address(address: &str) -> Result<(&str, Option<&str>), String> {
    let (host, port) = match address.strip_prefix('[') {
        Some(bracketed) => {
            let (host, rest) = bracketed
                .split_once(']')
                .ok_or("the host has no closing \"]\"")?;
            (host, rest.strip_prefix(':'))
        }
        None => match address.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (address, None),
        },
    };
    Ok((host, port.filter(|port| !port.is_empty())))
}

fn present(text: &str, part: &str) -> Result<Option<String>, String> {
    match text {
        "" => Ok(None),
        text => decode(text, part).map(Some),
    }
}

fn decode(text: &str, part: &str) -> Result<String, String> {
    percent_decode_str(text)
        .decode_utf8()
        .map(|decoded| decoded.into_owned())
        .map_err(|_| format!("the {part} is not UTF-8 after percent-decoding"))
}

pub(super) fn read_port(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(port) if port > 0 => Ok(port),
        _ if text.bytes().all(|byte| byte.is_ascii_digit()) => Err(format!(
            "the port \"{text}\" is not a number from 1 to 65535"
        )),
        // Not shown: it may be the start of a password with a "/" or "?" in it.
        _ => Err("the port is not a number from 1 to 65535; in a password, \"/\", \"?\" and \"@\" are written \"%2F\", \"%3F\" and \"%40\"".to_owned()),
    }
}

pub(super) fn read_seconds(text: &str) -> Result<Duration, String> {
    text.parse()
        .ok()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .filter(|timeout| !timeout.is_zero())
        .ok_or_else(|| format!("connect_timeout \"{text}\" is not a positive number of seconds"))
}

pub(super) fn read_ssl_mode(text: &str) -> Result<SslMode, String> {
    match text {
        "disable" => Ok(SslMode::Disable),
        "prefer" => Ok(SslMode::Prefer),
        "require" => Ok(SslMode::Require),
        "verify-ca" => Ok(SslMode::VerifyCa),
        "verify-full" => Ok(SslMode::VerifyFull),
        _ => Err(format!(
            "sslmode \"{text}\" must be one of disable, prefer, require, verify-ca, verify-full"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_shown_only_where_it_cannot_be_a_password() {
        assert!(read_port("70000").is_err_and(|error| error.contains("70000")));
        for text in ["se", "12x", "-1"] {
            assert!(
                read_port(text).is_err_and(|error| !error.contains(text) && error.contains("%2F"))
            );
        }
    }
}
