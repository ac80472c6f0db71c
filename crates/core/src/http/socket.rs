use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use hyper::rt::{Read, ReadBufCursor, Write};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::connection::Connection;
use crate::net::Stream;

/// What hyper reads and writes: the connection's socket, which notes when something moves.
pub(super) struct Socket {
    stream: Stream,
    /// What was read to tell HTTP/1 from HTTP/2.
    prefix: Bytes,
    connection: Rc<Connection>,
}

impl Socket {
    pub(super) fn new(stream: Stream, prefix: Bytes, connection: Rc<Connection>) -> Self {
        Self {
            stream,
            prefix,
            connection,
        }
    }

    fn written(&self, result: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        self.connection.wrote(result.is_ready());
        result
    }
}

impl Read for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let socket = self.get_mut();
        if !socket.prefix.is_empty() {
            let length = socket.prefix.len().min(buffer.remaining());
            buffer.put_slice(&socket.prefix[..length]);
            socket.prefix.advance(length);
            socket.connection.read();
            return Poll::Ready(Ok(()));
        }
        // SAFETY: `ReadBuf` only ever writes initialised bytes into the uninitialised part.
        let mut free = ReadBuf::uninit(unsafe { buffer.as_mut() });
        let result = Pin::new(&mut socket.stream).poll_read(context, &mut free);
        if !matches!(result, Poll::Ready(Ok(()))) {
            return result;
        }
        let length = free.filled().len();
        // SAFETY: that many bytes have been filled by the read above.
        unsafe { buffer.advance(length) };
        if length > 0 {
            socket.connection.read();
        }
        result
    }
}

impl Write for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let socket = self.get_mut();
        let result = Pin::new(&mut socket.stream).poll_write(context, bytes);
        socket.written(result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let socket = self.get_mut();
        let result = Pin::new(&mut socket.stream).poll_write_vectored(context, pieces);
        socket.written(result)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

/// Once the connection has left HTTP.
impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let socket = self.get_mut();
        let before = buffer.filled().len();
        let result = Pin::new(&mut socket.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            socket.connection.read();
        }
        result
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Write::poll_write(self, context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Write::poll_flush(self, context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Write::poll_shutdown(self, context)
    }
}
