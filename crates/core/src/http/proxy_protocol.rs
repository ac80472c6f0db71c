//! The PROXY protocol, versions 1 and 2: a header before everything else on a connection, in which a proxy names its client.
//!
//! <https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt>

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// How version 2 begins (§2.2).
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
const TEXT: &[u8] = b"PROXY ";
/// The longest line of version 1 with its end (§2.1).
const TEXT_BYTES: usize = 107;
/// More than any proxy sends: addresses take 216 bytes at most, certificates are not among what follows them.
const BINARY_BYTES: usize = 4_096;
const LOCAL: u8 = 0x20;
const PROXY: u8 = 0x21;
const TCP4: u8 = 0x11;
const TCP6: u8 = 0x21;
/// The proxy's statement about the client's TLS (§2.2.5).
const TYPE_SSL: u8 = 0x20;
const CLIENT_SSL: u8 = 0x01;

/// The client that a proxy names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Proxied {
    /// `None` if the proxy speaks for itself, as its health checks do, or does not know.
    pub(super) client: Option<SocketAddr>,
    /// The client has connected to the proxy by TLS.
    pub(super) is_tls: bool,
}

const NO_CLIENT: Proxied = Proxied {
    client: None,
    is_tls: false,
};

/// Reads the header, and nothing behind it.
pub(super) async fn read_header(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Proxied> {
    let mut start = [0; SIGNATURE.len()];
    stream.read_exact(&mut start).await?;
    if &start == SIGNATURE {
        return read_binary(stream).await;
    }
    match start.starts_with(TEXT) {
        true => read_text(stream, &start).await,
        false => Err(malformed(
            "a trusted proxy has sent no header of the PROXY protocol",
        )),
    }
}

/// A line: `PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n`.
async fn read_text(stream: &mut (impl AsyncRead + Unpin), start: &[u8]) -> io::Result<Proxied> {
    let mut line = start.to_vec();
    while !line.ends_with(b"\r\n") {
        if line.len() == TEXT_BYTES {
            return Err(malformed("the line of the PROXY protocol is too long"));
        }
        line.push(stream.read_u8().await?);
    }
    std::str::from_utf8(&line)
        .ok()
        .and_then(parse_text)
        .ok_or_else(|| malformed("the line of the PROXY protocol is malformed"))
}

fn parse_text(line: &str) -> Option<Proxied> {
    let mut words = line.strip_suffix("\r\n")?.split(' ').skip(1);
    let family = words.next()?;
    if family == "UNKNOWN" {
        return Some(NO_CLIENT);
    }
    let source: IpAddr = words.next()?.parse().ok()?;
    let destination: IpAddr = words.next()?.parse().ok()?;
    let port: u16 = words.next()?.parse().ok()?;
    let _destination_port: u16 = words.next()?.parse().ok()?;
    let is_family = match family {
        "TCP4" => source.is_ipv4() && destination.is_ipv4(),
        "TCP6" => source.is_ipv6() && destination.is_ipv6(),
        _ => false,
    };
    (is_family && words.next().is_none()).then_some(Proxied {
        client: Some(SocketAddr::new(source, port)),
        is_tls: false,
    })
}

async fn read_binary(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Proxied> {
    let command = stream.read_u8().await?;
    let family = stream.read_u8().await?;
    let length = usize::from(stream.read_u16().await?);
    if length > BINARY_BYTES || (command != LOCAL && command != PROXY) {
        return Err(malformed(
            "the header of the PROXY protocol has an unknown command or is too long",
        ));
    }
    let mut rest = vec![0; length];
    stream.read_exact(&mut rest).await?;
    match command {
        LOCAL => Ok(NO_CLIENT),
        _ => parse_binary(family, &rest)
            .ok_or_else(|| malformed("the header of the PROXY protocol is malformed")),
    }
}

fn parse_binary(family: u8, rest: &[u8]) -> Option<Proxied> {
    let (client, more) = match family {
        TCP4 => {
            let (addresses, more) = rest.split_at_checked(12)?;
            let source: [u8; 4] = addresses[..4].try_into().ok()?;
            (
                Some(socket_address(
                    Ipv4Addr::from(source).into(),
                    &addresses[8..10],
                )),
                more,
            )
        }
        TCP6 => {
            let (addresses, more) = rest.split_at_checked(36)?;
            let source: [u8; 16] = addresses[..16].try_into().ok()?;
            (
                Some(socket_address(
                    Ipv6Addr::from(source).into(),
                    &addresses[32..34],
                )),
                more,
            )
        }
        // A Unix socket, a datagram, or a family of its own: the connection is the proxy's.
        _ => return Some(NO_CLIENT),
    };
    Some(Proxied {
        client,
        is_tls: has_tls(more)?,
    })
}

fn socket_address(address: IpAddr, port: &[u8]) -> SocketAddr {
    SocketAddr::new(address, u16::from_be_bytes([port[0], port[1]]))
}

/// Reads type, length and value of what follows the addresses; `None` if it is malformed.
fn has_tls(mut rest: &[u8]) -> Option<bool> {
    let mut is_tls = false;
    while let [kind, high, low, more @ ..] = rest {
        let (value, after) =
            more.split_at_checked(usize::from(u16::from_be_bytes([*high, *low])))?;
        if *kind == TYPE_SSL {
            is_tls = value.first()? & CLIENT_SSL != 0;
        }
        rest = after;
    }
    rest.is_empty().then_some(is_tls)
}

fn malformed(reason: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The header of some bytes, and how many are behind it.
    async fn read(bytes: &[u8]) -> io::Result<(Proxied, usize)> {
        let mut rest = bytes;
        let proxied = read_header(&mut rest).await?;
        Ok((proxied, rest.len()))
    }

    fn binary(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let length = u16::try_from(rest.len()).unwrap().to_be_bytes();
        [
            SIGNATURE.as_slice(),
            &[command, family],
            &length,
            rest,
            b"GET",
        ]
        .concat()
    }

    fn of(client: &str, is_tls: bool) -> Proxied {
        Proxied {
            client: Some(client.parse().unwrap()),
            is_tls,
        }
    }

    #[tokio::test]
    async fn a_line_names_the_client() {
        let line = b"PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\nGET";
        assert_eq!(read(line).await.unwrap(), (of("192.0.2.1:56324", false), 3));
        let line = b"PROXY TCP6 2001:db8::1 ::1 1 2\r\n";
        assert_eq!(read(line).await.unwrap(), (of("[2001:db8::1]:1", false), 0));
        for unknown in [
            b"PROXY UNKNOWN\r\nGET".as_slice(),
            b"PROXY UNKNOWN a b c\r\nGET",
        ] {
            assert_eq!(read(unknown).await.unwrap(), (NO_CLIENT, 3));
        }
    }

    #[tokio::test]
    async fn a_malformed_line_is_refused() {
        for line in [
            "PROXY TCP4 192.0.2.1 198.51.100.1 56324\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 56324 443 x\r\n",
            "PROXY TCP4 2001:db8::1 ::1 1 2\r\n",
            "PROXY TCP4 192.0.2.1 198.51.100.1 65536 443\r\n",
            "PROXY UDP4 192.0.2.1 198.51.100.1 1 2\r\n",
            "PROXY  TCP4 192.0.2.1 198.51.100.1 1 2\r\n",
            "GET / HTTP/1.1\r\n\r\n",
            "PROXY TCP4 192.0.2.1",
            "PROXY",
        ] {
            assert!(read(line.as_bytes()).await.is_err(), "{line}");
        }
        let long = format!("PROXY UNKNOWN {}\r\n", "x".repeat(TEXT_BYTES));
        assert_eq!(
            read(long.as_bytes()).await.unwrap_err().kind(),
            io::ErrorKind::InvalidData
        );
    }

    #[tokio::test]
    async fn a_binary_header_names_the_client_and_its_tls() {
        let four = [192, 0, 2, 1, 198, 51, 100, 1, 0xdc, 0x04, 1, 0xbb];
        assert_eq!(
            read(&binary(PROXY, TCP4, &four)).await.unwrap(),
            (of("192.0.2.1:56324", false), 3)
        );
        let tls = [
            four.as_slice(),
            &[0x04, 0, 1, 9, TYPE_SSL, 0, 5, CLIENT_SSL, 0, 0, 0, 0],
        ]
        .concat();
        assert_eq!(
            read(&binary(PROXY, TCP4, &tls)).await.unwrap(),
            (of("192.0.2.1:56324", true), 3)
        );
        let mut six = [0; 36];
        six[15] = 1;
        six[33] = 80;
        assert_eq!(
            read(&binary(PROXY, TCP6, &six)).await.unwrap(),
            (of("[::1]:80", false), 3)
        );
        for (command, family) in [
            (LOCAL, TCP4),
            (LOCAL, 0),
            (PROXY, 0),
            (PROXY, 0x31),
            (PROXY, 0x12),
        ] {
            assert_eq!(
                read(&binary(command, family, &[])).await.unwrap(),
                (NO_CLIENT, 3)
            );
        }
    }

    #[tokio::test]
    async fn a_malformed_binary_header_is_refused() {
        let four = [192, 0, 2, 1, 198, 51, 100, 1, 0xdc, 0x04, 1, 0xbb];
        let cut = [four.as_slice(), &[TYPE_SSL, 0, 5, CLIENT_SSL]].concat();
        let odd = [four.as_slice(), &[TYPE_SSL]].concat();
        for header in [
            binary(PROXY, TCP4, &four[..11]),
            binary(PROXY, TCP6, &four),
            binary(PROXY, TCP4, &cut),
            binary(PROXY, TCP4, &odd),
            binary(0x22, TCP4, &four),
            binary(0x11, TCP4, &four),
            binary(PROXY, TCP4, &vec![0; BINARY_BYTES + 1]),
        ] {
            assert_eq!(
                read(&header).await.unwrap_err().kind(),
                io::ErrorKind::InvalidData
            );
        }
    }
}
