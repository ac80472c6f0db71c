use std::fmt;

/// Bytes of a version or line that an error repeats.
const TEXT_BYTES: usize = 100;
/// MySQL's packets have three bytes of length and a sequence number, 0 for the first. Then comes the version of the protocol, which is 10
/// since MySQL 3.21, or 0xff for an error.
const MYSQL_HEADER: usize = 5;
const MYSQL_VERSION: u8 = 10;
const MYSQL_ERROR: u8 = 0xff;

/// The protocol of a server to which the DSN of another one has led, as its first bytes show it. An error that names it says more than one
/// about a malformed message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PeerProtocol {
    /// With the version of the server, or the error that it greets with.
    Mysql(String),
    /// With the status line.
    Http(String),
    Amqp,
    Redis,
}

impl PeerProtocol {
    /// Recognizes only what no server of PostgreSQL or AMQP sends first, and for MySQL and AMQP itself their own greeting.
    pub(crate) fn of(first: &[u8]) -> Option<Self> {
        if let Some(greeting) = mysql_greeting(first) {
            return Some(Self::Mysql(greeting));
        }
        if first.starts_with(b"HTTP/") {
            let line = first.split(|byte| byte.is_ascii_control()).next();
            return Some(Self::Http(excerpt(line.unwrap_or_default())));
        }
        if first.starts_with(b"AMQP") {
            return Some(Self::Amqp);
        }
        // The second is the answer of the protected mode, which comes without a question.
        let is_redis = [&b"-ERR "[..], b"-DENIED ", b"-NOAUTH "]
            .iter()
            .any(|error| first.starts_with(error));
        is_redis.then_some(Self::Redis)
    }

    /// What an error says about a server that should be `expected`, such as "a PostgreSQL server".
    pub(crate) fn instead_of(&self, expected: &str) -> String {
        format!(
            "this is not {expected}: it answered as {self}. Check scheme, host and port of the DSN"
        )
    }
}

impl fmt::Display for PeerProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mysql(greeting) => write!(f, "MySQL or MariaDB ({greeting})"),
            Self::Http(line) => write!(f, "an HTTP server ({line})"),
            Self::Amqp => f.write_str("an AMQP broker"),
            Self::Redis => f.write_str("Redis"),
        }
    }
}

/// The version or the error in MySQL's first packet.
fn mysql_greeting(first: &[u8]) -> Option<String> {
    let (header, rest) = first.split_first_chunk::<MYSQL_HEADER>()?;
    // No first packet is longer than 64 KiB.
    let [_, _, 0, 0, kind] = *header else {
        return None;
    };
    match kind {
        MYSQL_VERSION if rest.first().is_some_and(u8::is_ascii_digit) => {
            let end = rest.iter().position(|byte| *byte == 0)?;
            Some(excerpt(&rest[..end]))
        }
        // The number of the error comes first.
        MYSQL_ERROR => Some(excerpt(rest.get(2..)?)),
        _ => None,
    }
}

fn excerpt(text: &[u8]) -> String {
    let text = text.get(..TEXT_BYTES).unwrap_or(text);
    String::from_utf8_lossy(text).escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(first: &[u8]) -> Option<String> {
        PeerProtocol::of(first).map(|protocol| protocol.to_string())
    }

    #[test]
    fn servers_are_recognized_by_their_first_bytes() {
        for (first, expected) in [
            (
                &b"\x63\0\0\0\x0a5.5.5-10.11.6-MariaDB\0\x07\0\0\0salt"[..],
                "MySQL or MariaDB (5.5.5-10.11.6-MariaDB)",
            ),
            (
                b"\x17\0\0\0\xff\x10\x04Too many connections",
                "MySQL or MariaDB (Too many connections)",
            ),
            (
                b"HTTP/1.1 400 Bad Request\r\nServer: nginx\r\n\r\n",
                "an HTTP server (HTTP/1.1 400 Bad Request)",
            ),
            (b"AMQP\0\0\x09\x01", "an AMQP broker"),
            (b"-ERR unknown command\r\n", "Redis"),
            (b"-DENIED Redis is running in protected mode", "Redis"),
        ] {
            assert_eq!(named(first).as_deref(), Some(expected));
        }
        let long = [&b"HTTP/1.1 400 "[..], &[b'a'; 10_000]].concat();
        assert!(named(&long).unwrap().len() < 200);
        assert_eq!(
            named(b"HTTP/1.1 \xff\"").as_deref(),
            Some("an HTTP server (HTTP/1.1 \u{fffd}\\\")")
        );
    }

    #[test]
    fn messages_of_postgresql_and_frames_of_amqp_are_not_taken_for_greetings() {
        for first in [
            &b""[..],
            b"N",
            b"S",
            b"R\0\0\0\x08\0\0\0\0",
            b"R\0\0\0\x0c\0\0\0\x05salt",
            b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0",
            b"S\0\0\0\x0aTZ\0UT\0",
            b"E\0\0\0\x0aSFATAL\0",
            b"\x01\0\0\0\0\x01\xf0\0\x0a\0\x0a\0\x09",
            // The greeting is incomplete.
            b"\x63\0\0\0\x0a5.5.5-10.11.6-Maria",
        ] {
            assert_eq!(named(first), None, "{first:?}");
        }
    }
}
