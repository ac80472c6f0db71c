use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use socket2::{Domain, Protocol, SockRef, Socket, Type};

use super::{PeerListener, Stream};
use crate::workers;

/// Connections that the kernel completes and keeps in the queue until they are accepted.
const BACKLOG: i32 = 4096;

/// Where a server listens: `0.0.0.0:8080`, `[::1]:8080`, `localhost:0` or `unix:/run/app.sock`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    Tcp(String),
    Unix(PathBuf),
}

#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error(
        "\"{0}\" is not an address to listen on: write HOST:PORT, [IPV6]:PORT or unix:/path/to/socket"
    )]
    Address(String),
    #[error("cannot listen on {address}: {reason}")]
    Refused { address: String, reason: String },
}

impl FromStr for Address {
    type Err = ListenError;

    fn from_str(text: &str) -> Result<Self, ListenError> {
        let refuse = || ListenError::Address(text.to_owned());
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return match path {
                "" => Err(refuse()),
                path => Ok(Self::Unix(PathBuf::from(path))),
            };
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(refuse)?;
        let is_bare_ipv6 = host.contains(':') && !host.starts_with('[');
        if host.is_empty() || is_bare_ipv6 || port.parse::<u16>().is_err() {
            return Err(refuse());
        }
        Ok(Self::Tcp(text.to_owned()))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => formatter.write_str(address),
            Self::Unix(path) => write!(formatter, "unix:{}", path.display()),
        }
    }
}

/// A listening socket. The kernel queues connections as soon as it exists.
pub struct Listener {
    socket: ListeningSocket,
    address: Address,
    /// Sockets of the same address that other workers own.
    others: Vec<TcpListener>,
}

enum ListeningSocket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// Opens a listening socket; every server of this crate gets its socket here.
///
/// In a worker the socket is borrowed from the supervisor, so that connections in its queue survive this process. In other
/// processes `share_port` lets several of them listen on one TCP port, and the kernel distributes the connections.
pub fn listen(address: &Address, share_port: bool) -> Result<Listener, ListenError> {
    let text = address.to_string();
    match workers::listening_sockets(&text) {
        None => open(address, share_port),
        Some(sockets) => sockets
            .and_then(|sockets| {
                Listener::inherited(sockets, address).map_err(|error| error.to_string())
            })
            .map_err(|reason| ListenError::Refused {
                address: text,
                reason,
            }),
    }
}

/// Opens a socket that belongs to this process.
fn open(address: &Address, share_port: bool) -> Result<Listener, ListenError> {
    match address {
        Address::Tcp(text) => tcp(text, share_port),
        Address::Unix(path) => unix(path),
    }
    .map_err(|error| ListenError::Refused {
        address: address.to_string(),
        reason: error.to_string(),
    })
}

/// Opens `count` sockets of one address, over which the kernel distributes the connections. A Unix socket is opened once.
pub(crate) fn open_spread(address: &Address, count: usize) -> Result<Vec<Listener>, ListenError> {
    match address {
        Address::Tcp(text) if count > 1 => tcp_spread(text, count).map_err(|error| {
            let reason = error.to_string();
            let address = address.to_string();
            ListenError::Refused { address, reason }
        }),
        _ => Ok(vec![open(address, false)?]),
    }
}

/// Binds `count` sockets of a TCP address whose port other sockets of this process occupy, at addresses that overlap with it: each
/// of those in `occupying` shares its port from now on. The new sockets do not listen, so the kernel goes on to use the old ones,
/// until a worker accepts from them.
///
/// # Errors
/// Another program occupies the port as well.
pub(crate) fn bind_beside(
    address: SocketAddr,
    count: usize,
    occupying: &[BorrowedFd<'_>],
) -> io::Result<Vec<OwnedFd>> {
    for socket in occupying {
        SockRef::from(socket).set_reuse_port(true)?;
    }
    (0..count)
        .map(|_| bound(address, true).map(OwnedFd::from))
        .collect()
}

/// Lets connections queue on a socket of [`bind_beside`] from now on. It changes nothing on one that listens.
pub(crate) fn start_listening(socket: BorrowedFd<'_>) -> io::Result<()> {
    SockRef::from(&socket).listen(BACKLOG)
}

/// The address of a listening socket. None for a Unix socket.
pub(crate) fn local_address(socket: BorrowedFd<'_>) -> Option<SocketAddr> {
    SockRef::from(&socket).local_addr().ok()?.as_socket()
}

fn tcp(text: &str, share_port: bool) -> io::Result<Listener> {
    let socket = first_bound(text, share_port)?;
    socket.listen(BACKLOG)?;
    Listener::of_tcp(socket.into())
}

fn tcp_spread(text: &str, count: usize) -> io::Result<Vec<Listener>> {
    // `SO_REUSEPORT` hides another program on the port that sets it too. This bind, without the option, detects it.
    let reserved = first_bound(text, false)?;
    let address = reserved.local_addr()?;
    let address = address.as_socket().ok_or(io::ErrorKind::AddrNotAvailable)?;
    let sockets: Vec<Socket> = (0..count)
        .map(|_| bound(address, true))
        .collect::<io::Result<_>>()?;
    sockets
        .into_iter()
        .map(|socket| {
            socket.listen(BACKLOG)?;
            Listener::of_tcp(socket.into())
        })
        .collect()
}

/// A socket bound to the first address of the host name that can be bound.
fn first_bound(text: &str, share_port: bool) -> io::Result<Socket> {
    let mut refused = io::Error::other("the name has no address");
    for address in text.to_socket_addrs()? {
        match bound(address, share_port) {
            Ok(socket) => return Ok(socket),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

fn bound(address: SocketAddr, share_port: bool) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(share_port)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

fn unix(path: &Path) -> io::Result<Listener> {
    remove_stale(path)?;
    let socket = UnixListener::bind(path)?;
    socket.set_nonblocking(true)?;
    Ok(Listener {
        socket: ListeningSocket::Unix(socket),
        address: Address::Unix(path.to_owned()),
        others: Vec::new(),
    })
}

/// Removes a socket file that a killed process has left behind: a connection to it is refused.
fn remove_stale(path: &Path) -> io::Result<()> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|data| data.file_type().is_socket());
    if !is_socket {
        return Ok(());
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path)
        }
        _ => Ok(()),
    }
}

impl Listener {
    fn inherited(sockets: Vec<OwnedFd>, asked: &Address) -> io::Result<Self> {
        let mut sockets = sockets.into_iter();
        let own = sockets.next().ok_or(io::ErrorKind::NotFound)?;
        match asked {
            Address::Tcp(_) => Ok(Self {
                others: sockets.map(TcpListener::from).collect(),
                ..Self::of_tcp(own.into())?
            }),
            Address::Unix(_) => Ok(Self {
                socket: ListeningSocket::Unix(UnixListener::from(own)),
                address: asked.clone(),
                others: Vec::new(),
            }),
        }
    }

    fn of_tcp(socket: TcpListener) -> io::Result<Self> {
        Ok(Self {
            address: Address::Tcp(socket.local_addr()?.to_string()),
            socket: ListeningSocket::Tcp(socket),
            others: Vec::new(),
        })
    }

    /// The descriptor, for a process that keeps the socket open and does not accept from it.
    pub(crate) fn into_descriptor(self) -> OwnedFd {
        match self.socket {
            ListeningSocket::Tcp(socket) => socket.into(),
            ListeningSocket::Unix(socket) => socket.into(),
        }
    }

    /// The address in use. Where port 0 was requested it has the port that the system chose.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The sockets of other workers from which this one accepts too. Must be called inside the reactor.
    pub(crate) fn peer_listeners(&mut self) -> io::Result<Vec<PeerListener>> {
        let others = self.others.drain(..).map(|socket| {
            SockRef::from(&socket).listen(BACKLOG)?;
            PeerListener::new(socket)
        });
        others.collect()
    }

    /// Must be called inside the reactor.
    pub(crate) fn acceptor(self) -> io::Result<Acceptor> {
        Ok(match self.socket {
            ListeningSocket::Tcp(socket) => {
                // That of a supervisor may not listen yet. A socket that does goes on to.
                SockRef::from(&socket).listen(BACKLOG)?;
                Acceptor::Tcp(tokio::net::TcpListener::from_std(socket)?)
            }
            ListeningSocket::Unix(socket) => {
                Acceptor::Unix(tokio::net::UnixListener::from_std(socket)?)
            }
        })
    }
}

pub(crate) enum Acceptor {
    Tcp(tokio::net::TcpListener),
    Unix(tokio::net::UnixListener),
}

impl Acceptor {
    /// The next connection and the address of its client, which is `None` on a Unix socket. Cancelling this future loses no
    /// connection.
    pub(crate) async fn accept(&self) -> io::Result<(Stream, Option<SocketAddr>)> {
        match self {
            Self::Tcp(socket) => {
                let (stream, peer) = socket.accept().await?;
                stream.set_nodelay(true)?;
                Ok((Stream::Tcp(stream), Some(peer)))
            }
            Self::Unix(socket) => {
                let (stream, _) = socket.accept().await?;
                Ok((Stream::Unix(stream), None))
            }
        }
    }

    /// Closes the socket and returns the connections in its queue, which the kernel would otherwise reset.
    pub(crate) fn close(self) -> io::Result<Vec<(Stream, Option<SocketAddr>)>> {
        let mut accepted = Vec::new();
        match self {
            Self::Tcp(socket) => {
                let socket = socket.into_std()?;
                while let Ok((stream, peer)) = socket.accept() {
                    if let Ok(stream) = Stream::accepted(stream) {
                        accepted.push((stream, Some(peer)));
                    }
                }
            }
            Self::Unix(socket) => {
                let socket = socket.into_std()?;
                while let Ok((stream, _)) = socket.accept() {
                    stream.set_nonblocking(true)?;
                    let stream = tokio::net::UnixStream::from_std(stream)?;
                    accepted.push((Stream::Unix(stream), None));
                }
            }
        }
        Ok(accepted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_with_a_port_or_the_path_of_a_socket() {
        for text in [
            "0.0.0.0:8080",
            "[::1]:8080",
            "localhost:0",
            "unix:/run/a.sock",
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn invalid_addresses_are_refused_by_name() {
        for text in [
            "",
            "8080",
            ":8080",
            "host",
            "host:",
            "host:99999",
            "::1:80",
            "unix:",
        ] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains(&format!("\"{text}\"")), "{error}");
        }
    }

    #[test]
    fn port_zero_becomes_the_port_the_system_chose() {
        let listener = listen(&"127.0.0.1:0".parse().unwrap(), false).unwrap();
        let address = listener.address().to_string();
        assert!(
            address.starts_with("127.0.0.1:") && !address.ends_with(":0"),
            "{address}"
        );
    }

    #[test]
    fn a_port_that_is_taken_is_refused_unless_it_is_shared() {
        let first = listen(&"127.0.0.1:0".parse().unwrap(), true).unwrap();
        assert!(listen(first.address(), true).is_ok());
        let refused = listen(first.address(), false).err().unwrap().to_string();
        assert!(refused.contains("Address already in use"), "{refused}");
    }

    #[test]
    fn a_socket_file_left_behind_is_replaced_and_one_in_use_is_not() {
        let path = std::env::temp_dir().join(format!("weft-{}.sock", uuid::Uuid::now_v7()));
        let address = Address::Unix(path.clone());
        let first = listen(&address, false).unwrap();
        assert!(listen(&address, false).is_err());
        drop(first);
        assert!(listen(&address, false).is_ok());
        std::fs::remove_file(path).unwrap();
    }
}
