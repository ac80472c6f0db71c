#![allow(unsafe_code, reason = "asks the kernel for unsent bytes")]

use std::io;
use std::os::fd::{AsFd, AsRawFd as _};
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::net::{RecvFlags, recv};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsStream;

use super::channel_binding::tls_server_end_point;

/// Bytes per read that discards input.
const DISCARDED: usize = 16 << 10;

/// A socket of a client or server, with or without TLS.
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// The state of the other end of a socket, as known without reading from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PeerState {
    /// There is something to read.
    HasSent,
    /// It sends no more, or the connection has failed.
    HasEnded,
}

impl Stream {
    pub(crate) async fn connect_unix(socket: &Path) -> io::Result<Self> {
        UnixStream::connect(socket).await.map(Self::Unix)
    }

    /// A socket that was accepted.
    pub(crate) fn accepted(socket: std::net::TcpStream) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        TcpStream::from_std(socket).map(Self::Tcp)
    }

    /// A TLS connection, of either side.
    pub(crate) fn tls(stream: impl Into<TlsStream<TcpStream>>) -> Self {
        Self::Tls(Box::new(stream.into()))
    }
}

impl Stream {
    /// The channel binding `tls-server-end-point` (RFC 5929); `None` without TLS and for certificates without such a hash.
    pub(crate) fn channel_binding(&self) -> Option<Vec<u8>> {
        let Self::Tls(stream) = self else { return None };
        let certificates = stream.get_ref().1.peer_certificates()?;
        tls_server_end_point(certificates.first()?)
    }

    /// Receives and discards input, below TLS. Returns the number of bytes, 0 at the end.
    pub(crate) fn poll_discard(&self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut room = [0; DISCARDED];
        loop {
            let result = match self {
                Self::Tcp(socket) => {
                    ready!(socket.poll_read_ready(context))?;
                    socket.try_read(&mut room)
                }
                Self::Tls(socket) => {
                    let (socket, _) = socket.get_ref();
                    ready!(socket.poll_read_ready(context))?;
                    socket.try_read(&mut room)
                }
                Self::Unix(socket) => {
                    ready!(socket.poll_read_ready(context))?;
                    socket.try_read(&mut room)
                }
            };
            match result {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return Poll::Ready(result),
            }
        }
    }

    /// Ready once the peer has sent its last byte, all that it has sent was read, and the socket has no TLS. Leaves the input where it
    /// is: while there is any, nothing wakes the task.
    pub(crate) fn poll_end(&self, context: &mut Context<'_>) -> Poll<()> {
        match self.poll_peer(context) {
            Poll::Ready(PeerState::HasEnded) => Poll::Ready(()),
            Poll::Ready(PeerState::HasSent) | Poll::Pending => Poll::Pending,
        }
    }

    /// The same for input as well. Never ready with TLS.
    pub(crate) fn poll_peer(&self, context: &mut Context<'_>) -> Poll<PeerState> {
        loop {
            let result = match self {
                Self::Tcp(socket) => {
                    let _ = ready!(socket.poll_read_ready(context));
                    socket.try_io(Interest::READABLE, || peek(socket))
                }
                Self::Unix(socket) => {
                    let _ = ready!(socket.poll_read_ready(context));
                    socket.try_io(Interest::READABLE, || peek(socket))
                }
                Self::Tls(_) => return Poll::Pending,
            };
            match result {
                Ok(1..) => return Poll::Ready(PeerState::HasSent),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(0) | Err(_) => return Poll::Ready(PeerState::HasEnded),
            }
        }
    }

    /// Writes what the socket takes at once.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`], also with TLS, which has to be flushed.
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.try_write(bytes),
            Self::Unix(socket) => socket.try_write(bytes),
            Self::Tls(_) => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// The same for several slices.
    ///
    /// # Errors
    /// Those of [`try_write`](Self::try_write).
    pub(crate) fn try_write_vectored(&self, slices: &[io::IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.try_write_vectored(slices),
            Self::Unix(socket) => socket.try_write_vectored(slices),
            Self::Tls(_) => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Bytes that were written and not acknowledged by the peer's kernel.
    pub(crate) fn unsent(&self) -> usize {
        let descriptor = match self {
            Self::Tcp(socket) => socket.as_raw_fd(),
            Self::Tls(socket) => socket.get_ref().0.as_raw_fd(),
            Self::Unix(socket) => socket.as_raw_fd(),
        };
        let mut bytes: libc::c_int = 0;
        // SAFETY: the descriptor is open for as long as `self` is, and the kernel stores one integer.
        let result = unsafe { libc::ioctl(descriptor, libc::TIOCOUTQ, &raw mut bytes) };
        match result {
            0 => usize::try_from(bytes).unwrap_or_default(),
            _ => 0,
        }
    }
}

/// How much of the next byte there is.
fn peek(socket: impl AsFd) -> io::Result<usize> {
    let (peeked, _) = recv(socket, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT)?;
    Ok(peeked)
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_read(cx, buf),
            Self::Unix(socket) => Pin::new(socket).poll_read(cx, buf),
            Self::Tls(socket) => Pin::new(socket).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_write(cx, buf),
            Self::Unix(socket) => Pin::new(socket).poll_write(cx, buf),
            Self::Tls(socket) => Pin::new(socket).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_write_vectored(cx, bufs),
            Self::Unix(socket) => Pin::new(socket).poll_write_vectored(cx, bufs),
            Self::Tls(socket) => Pin::new(socket).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Tcp(socket) => socket.is_write_vectored(),
            Self::Unix(socket) => socket.is_write_vectored(),
            Self::Tls(socket) => socket.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_flush(cx),
            Self::Unix(socket) => Pin::new(socket).poll_flush(cx),
            Self::Tls(socket) => Pin::new(socket).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_shutdown(cx),
            Self::Unix(socket) => Pin::new(socket).poll_shutdown(cx),
            Self::Tls(socket) => Pin::new(socket).poll_shutdown(cx),
        }
    }
}
