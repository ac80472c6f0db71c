use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::percent_decode_str;

use super::Error;
use crate::net::{ClientTls, Identity, PeerCheck, dsn};

/// The address, credentials and settings of a connection to a broker.
///
/// Made from a DSN by [`Config::parse`]; the fields may be changed afterwards.
#[derive(Clone, PartialEq, Eq)]
pub struct Config {
    /// Tried in turn, first to last. Never empty.
    pub hosts: Vec<Host>,
    pub user: String,
    pub password: String,
    pub vhost: String,
    /// Longest silence before the peer counts as dead is twice this; the broker may ask for less. Zero turns it off.
    pub heartbeat: Duration,
    /// Bounds one attempt on one host, from the name lookup to the open connection.
    pub connect_timeout: Duration,
    /// Bounds each method that the broker answers (declare, bind, consume, cancel, open and close of a channel, and so on).
    /// A broker that is late is left: the call fails and the connection is made anew. Not counted while the broker blocks
    /// the connection. Zero turns it off.
    pub rpc_timeout: Duration,
    /// Shown in the broker's list of connections.
    pub name: Option<String>,
    /// Largest frame in bytes, at least 4,096; the broker may ask for less.
    pub frame_max: u32,
    /// Most channels at once; the broker may ask for fewer.
    pub channel_max: u16,
    pub mechanism: Mechanism,
    pub tls: Option<ClientTls>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    pub name: String,
    pub port: u16,
}

/// How the client authenticates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mechanism {
    /// User and password.
    Plain,
    /// The TLS client certificate.
    External,
}

const PARAMETERS: [&str; 12] = [
    "heartbeat",
    "connect_timeout",
    "rpc_timeout",
    "name",
    "frame_max",
    "channel_max",
    "auth_mechanism",
    "cacertfile",
    "certfile",
    "keyfile",
    "verify",
    "server_name_indication",
];

const NO_SCHEME: &str = "it must start with amqp:// or amqps://";

impl Default for Config {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            user: "guest".into(),
            password: "guest".into(),
            vhost: "/".into(),
            heartbeat: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(5),
            rpc_timeout: Duration::from_secs(30),
            name: None,
            frame_max: 131_072,
            channel_max: 2_047,
            mechanism: Mechanism::Plain,
            tls: None,
        }
    }
}

impl Config {
    /// Reads `amqp://user:password@host:port,host2:port/vhost?heartbeat=10&…`, or `amqps://` for TLS.
    ///
    /// Everything is percent-decoded. Without a path the virtual host is `/`; a path of `/` alone names the virtual
    /// host with the empty name, as in the RabbitMQ URI specification. Times are seconds and may have a fraction.
    ///
    /// # Errors
    /// [`Error::Dsn`] says which part is wrong and repeats the DSN without its password.
    pub fn parse(dsn: &str) -> Result<Self, Error> {
        Self::parse_parts(dsn).map_err(|reason| Error::Dsn {
            dsn: dsn::redact(dsn, &PARAMETERS),
            reason: dsn::reason(dsn, reason),
        })
    }

    fn parse_parts(dsn: &str) -> Result<Self, String> {
        let (scheme, rest) = dsn.split_once("://").ok_or(NO_SCHEME)?;
        let mut config = Self::default();
        let default_port = match scheme {
            "amqp" => 5672,
            "amqps" => {
                config.tls = Some(ClientTls::default());
                5671
            }
            _ if dsn::is_scheme(scheme) => {
                return Err(format!(
                    "unknown scheme \"{scheme}\", expected amqp or amqps"
                ));
            }
            _ => return Err(NO_SCHEME.to_owned()),
        };
        dsn::check_path(dsn)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = match rest.split_once('/') {
            Some((authority, path)) => (authority, Some(path)),
            None => (rest, None),
        };
        let hosts = match authority.rsplit_once('@') {
            Some((user_info, hosts)) => {
                config.set_user_info(user_info)?;
                hosts
            }
            None => authority,
        };
        config.hosts = hosts
            .split(',')
            .map(|host| parse_host(host, default_port))
            .collect::<Result<_, _>>()?;
        if let Some(path) = path {
            config.set_vhost(path)?;
        }
        config.set_parameters(query)?;
        Ok(config)
    }

    fn set_user_info(&mut self, user_info: &str) -> Result<(), String> {
        let (user, password) = user_info.split_once(':').unwrap_or((user_info, ""));
        self.user = decoded(user, "user")?;
        self.password = decoded(password, "password")?;
        Ok(())
    }

    fn set_vhost(&mut self, path: &str) -> Result<(), String> {
        if path.contains('/') {
            return Err(format!(
                "the virtual host \"{path}\" contains a slash; write it as %2F"
            ));
        }
        self.vhost = decoded(path, "virtual host")?;
        if self.vhost.len() > 255 {
            return Err("the virtual host is longer than 255 bytes".into());
        }
        Ok(())
    }

    fn set_parameters(&mut self, query: &str) -> Result<(), String> {
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decoded(value, name)?;
            self.set_parameter(name, value)?;
        }
        self.check_identity()
    }

    fn set_parameter(&mut self, name: &str, value: String) -> Result<(), String> {
        match name {
            "heartbeat" => self.heartbeat = seconds(name, &value)?,
            "connect_timeout" => self.connect_timeout = seconds(name, &value)?,
            "rpc_timeout" => self.rpc_timeout = seconds(name, &value)?,
            "name" => self.name = Some(value),
            "frame_max" => self.frame_max = number(name, &value, 4_096, 128 << 20)?,
            "channel_max" => self.channel_max = number(name, &value, 1, 65_535)? as u16,
            "auth_mechanism" => self.mechanism = mechanism(&value)?,
            "cacertfile" | "certfile" | "keyfile" | "verify" | "server_name_indication" => {
                self.set_tls_parameter(name, value)?;
            }
            _ => {
                return Err(format!(
                    "unknown parameter \"{name}\"; known are {}",
                    PARAMETERS.join(", ")
                ));
            }
        }
        Ok(())
    }

    fn set_tls_parameter(&mut self, name: &str, value: String) -> Result<(), String> {
        let tls = self
            .tls
            .as_mut()
            .ok_or_else(|| format!("parameter \"{name}\" needs the scheme amqps"))?;
        match name {
            "cacertfile" => tls.ca_file = Some(value.into()),
            "certfile" => identity_of(tls).cert_file = value.into(),
            "keyfile" => identity_of(tls).key_file = value.into(),
            "server_name_indication" => tls.server_name = Some(value),
            _ => {
                tls.check = match value.as_str() {
                    "verify_peer" => PeerCheck::AuthorityAndName,
                    "verify_none" => PeerCheck::None,
                    _ => {
                        return Err(format!(
                            "verify is \"{value}\", expected verify_peer or verify_none"
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    fn check_identity(&self) -> Result<(), String> {
        match self.tls.as_ref().and_then(|tls| tls.identity.as_ref()) {
            Some(identity) if identity.cert_file.as_os_str().is_empty() => {
                Err("keyfile is given without certfile".into())
            }
            Some(identity) if identity.key_file.as_os_str().is_empty() => {
                Err("certfile is given without keyfile".into())
            }
            _ => Ok(()),
        }
    }

    /// Hosts and virtual host, as errors and logs name the broker.
    pub fn target(&self) -> String {
        let hosts: Vec<String> = self.hosts.iter().map(Host::to_string).collect();
        format!("{}/{}", hosts.join(","), self.vhost.replace('/', "%2F"))
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("target", &self.target())
            .field("user", &self.user)
            .field("heartbeat", &self.heartbeat)
            .field("tls", &self.tls)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.contains(':') {
            write!(f, "[{}]:{}", self.name, self.port)
        } else {
            write!(f, "{}:{}", self.name, self.port)
        }
    }
}

/// The client certificate's place to be filled in; [`Config::check_identity`] wants both halves.
fn identity_of(tls: &mut ClientTls) -> &mut Identity {
    tls.identity.get_or_insert_with(|| Identity {
        cert_file: PathBuf::new(),
        key_file: PathBuf::new(),
    })
}

fn parse_host(text: &str, default_port: u16) -> Result<Host, String> {
    let (name, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (name, port) = rest
                .split_once(']')
                .ok_or_else(|| format!("host \"{text}\" has no closing bracket"))?;
            (name, port.strip_prefix(':'))
        }
        None => match text.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (text, None),
        },
    };
    let name = decoded(name, "host")?;
    if name.is_empty() {
        return Err("the host is missing".into());
    }
    let port = match port {
        None | Some("") => default_port,
        Some(digits) => match digits.parse() {
            Ok(port) if port > 0 => port,
            _ if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                return Err(format!(
                    "port \"{digits}\" of host \"{name}\" is not within 1 to 65535"
                ));
            }
            // Not shown: host and port may be a user and the start of a password with a "/" or "?" in it.
            _ => {
                return Err("the port is not within 1 to 65535; in a password, \"/\", \"?\" and \"@\" are written \"%2F\", \"%3F\" and \"%40\"".into());
            }
        },
    };
    Ok(Host { name, port })
}

fn decoded(text: &str, what: &str) -> Result<String, String> {
    percent_decode_str(text)
        .decode_utf8()
        .map(|text| text.into_owned())
        .map_err(|_| format!("the {what} is not UTF-8 after percent-decoding"))
}

fn seconds(name: &str, value: &str) -> Result<Duration, String> {
    value
        .parse()
        .ok()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .filter(|duration| *duration <= Duration::from_secs(65_535))
        .ok_or_else(|| format!("{name} is \"{value}\", expected seconds from 0 to 65535"))
}

fn number(name: &str, value: &str, least: u32, most: u32) -> Result<u32, String> {
    value
        .parse()
        .ok()
        .filter(|number| (least..=most).contains(number))
        .ok_or_else(|| format!("{name} is \"{value}\", expected a number from {least} to {most}"))
}

fn mechanism(value: &str) -> Result<Mechanism, String> {
    match value.to_ascii_lowercase().as_str() {
        "plain" => Ok(Mechanism::Plain),
        "external" => Ok(Mechanism::External),
        _ => Err(format!(
            "auth_mechanism is \"{value}\", expected plain or external"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(dsn: &str) -> String {
        Config::parse(dsn).unwrap_err().to_string()
    }

    #[test]
    fn a_full_dsn_is_read() {
        let config = Config::parse(
            "amqp://us%65r:p%40ss@one:1111,[::1]:2222,three/my%2Fhost?heartbeat=0.5&connect_timeout=3&rpc_timeout=2.5&name=a%20b&frame_max=8192",
        )
        .unwrap();
        assert_eq!(
            (config.user.as_str(), config.password.as_str()),
            ("user", "p@ss")
        );
        assert_eq!(config.target(), "one:1111,[::1]:2222,three:5672/my%2Fhost");
        assert_eq!(config.heartbeat, Duration::from_millis(500));
        assert_eq!(config.connect_timeout, Duration::from_secs(3));
        assert_eq!(config.rpc_timeout, Duration::from_millis(2_500));
        assert_eq!(config.name.as_deref(), Some("a b"));
        assert_eq!(config.frame_max, 8192);
    }

    #[test]
    fn the_virtual_host_follows_the_uri_specification() {
        let vhost = |dsn| Config::parse(dsn).unwrap().vhost;
        assert_eq!(vhost("amqp://host"), "/");
        assert_eq!(vhost("amqp://host/"), "");
        assert_eq!(vhost("amqp://host/%2f"), "/");
        assert_eq!(vhost("amqp://host/vhost?heartbeat=0"), "vhost");
        assert!(reason("amqp://host/a/b").contains("%2F"));
    }

    #[test]
    fn tls_parameters_are_read_and_need_amqps() {
        let config = Config::parse(
            "amqps://host?cacertfile=/ca.pem&certfile=/c.pem&keyfile=/k.pem&verify=verify_none&server_name_indication=other",
        )
        .unwrap();
        let tls = config.tls.unwrap();
        assert_eq!(config.hosts[0].port, 5671);
        assert_eq!(tls.ca_file, Some("/ca.pem".into()));
        assert_eq!(tls.identity.unwrap().key_file, PathBuf::from("/k.pem"));
        assert_eq!(tls.server_name.as_deref(), Some("other"));
        assert_eq!(tls.check, PeerCheck::None);
        assert!(reason("amqp://host?verify=verify_none").contains("amqps"));
        assert!(reason("amqps://host?certfile=a").contains("keyfile"));
    }

    #[test]
    fn a_wrong_dsn_is_refused_with_its_reason_and_without_its_password() {
        for (dsn, expected) in [
            ("localhost:5672", "amqp://"),
            ("http://u:secret@host", "scheme \"http\""),
            ("amqp://u:secret@:5672", "host is missing"),
            ("amqp://u:secret@host:0", "port \"0\""),
            ("amqp://u:secret@host:70000", "port \"70000\""),
            (
                "amqp://u:secret@host?heartbeat=soon",
                "heartbeat is \"soon\"",
            ),
            ("amqp://u:secret@host?heartbeat=-1", "heartbeat is \"-1\""),
            (
                "amqp://u:secret@host?rpc_timeout=-1",
                "rpc_timeout is \"-1\", expected seconds",
            ),
            ("amqp://u:secret@host?frame_max=1", "from 4096"),
            (
                "amqp://u:secret@host?hartbeat=1",
                "unknown parameter \"hartbeat\"",
            ),
            ("amqp://u:secret@host/%FF", "UTF-8"),
            ("amqp://u:sec/ret@host/x", "%2F"),
            ("amqp://u:12/secret@host/x", "%2F"),
            ("amqp://u:12/secret@host", "%2F"),
            ("amqp://u:12?secret@host/x", "%3F"),
            ("amqp://u:12?heartbeat=secret@host/x", "%3F"),
            ("amqp:u:secret://x@host", "be a part of the password"),
            (
                "amqp://host?password=secret",
                "unknown parameter \"password\"",
            ),
        ] {
            let message = reason(dsn);
            assert!(message.contains(expected), "{dsn}: {message}");
            assert!(
                !message.contains("secret") && !message.contains("sec/ret"),
                "{message}"
            );
        }
    }

    #[test]
    fn debug_output_hides_the_password() {
        let config = Config::parse("amqp://u:secret@host").unwrap();
        assert!(!format!("{config:?}").contains("secret"));
    }
}
