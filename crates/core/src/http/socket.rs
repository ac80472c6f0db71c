#![allow(unsafe_code, reason = "reads a socket into uninitialised memory")]

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use hyper::rt::{Read, ReadBufCursor, Write};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::connection::Connection;
use super::keepalive::Frames;
use crate::net::Stream;
use crate::net::idle_hook::{self, OnIdle};

/// Writes below this size are copied together: a system call costs more.
const SMALL: usize = 8 << 10;
/// The most bytes that are held back until h2 flushes.
const HELD: usize = 16 << 10;

/// The capacity that an idle connection keeps.
const KEPT: usize = 1 << 10;

/// Short responses are copied into one buffer: a vectored write costs the kernel more.
const GATHERED: usize = 512;

/// The beginning of a PING acknowledgement (RFC 9113 §6.7), and its length.
const PONG: &[u8] = b"\0\0\x08\x06\x01";
const PONG_LENGTH: usize = 17;

/// Copies all slices into `room` if they fit.
fn gather<'a>(slices: &[io::IoSlice<'_>], room: &'a mut [u8; GATHERED]) -> Option<&'a [u8]> {
    let mut length = 0;
    for slice in slices {
        let end = length + slice.len();
        room.get_mut(length..end)?.copy_from_slice(slice);
        length = end;
    }
    Some(&room[..length])
}

fn are_pongs(bytes: &[u8]) -> bool {
    let mut frames = bytes.chunks(PONG_LENGTH);
    frames.all(|frame| frame.len() == PONG_LENGTH && frame.starts_with(PONG))
}

/// The socket that hyper reads and writes. It records progress on the connection.
pub(super) struct Socket {
    stream: Stream,
    /// Bytes that were read to tell HTTP/1 from HTTP/2.
    prefix: Bytes,
    connection: Rc<Connection>,
    /// The HTTP/2 frames that are read and written.
    frames: Option<(Frames, Frames)>,
    /// hyper has not written a part of a frame.
    is_between_frames: bool,
    /// Bytes that h2 has written and not flushed. With vectored writes h2 makes one for every DATA frame of 256 bytes or more. Without, it
    /// gathers small frames itself, and writes the head of a large frame separately.
    held: BytesMut,
    delay: Delay,
}

/// Whether held output may wait for a response to share a write with. Clients of grpc-go ping with every call to measure bandwidth.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Delay {
    None,
    /// The output is PING acknowledgements only.
    Pongs,
    /// The same, and it waits at most until that run of the idle hook.
    UntilRun(u64),
}

impl Socket {
    pub(super) fn new(stream: Stream, prefix: Bytes, connection: Rc<Connection>) -> Self {
        let frames = connection.is_http2().then(Default::default);
        Self {
            stream,
            prefix,
            connection,
            frames,
            is_between_frames: true,
            held: BytesMut::new(),
            delay: Delay::None,
        }
    }

    /// Whether the socket itself finds out that the client has disconnected while its request is handled. With TLS it cannot: the end
    /// of the input is a message, which must be decrypted.
    pub(super) fn watches_end(&self) -> bool {
        !matches!(self.stream, Stream::Tls(_))
    }

    /// hyper flushes at the end of each turn, and reads nothing while a request is handled.
    fn poll_end(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.connection.is_awaiting_response() {
            return Poll::Pending;
        }
        self.stream
            .poll_end(context)
            .map(|()| Err(io::ErrorKind::UnexpectedEof.into()))
    }

    pub(super) fn stream(&self) -> &Stream {
        &self.stream
    }

    fn written(&mut self, result: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        self.connection.wrote(result.is_ready());
        if result.is_ready() {
            self.is_between_frames = false;
        }
        result
    }

    /// Writes the server's own frames if hyper is between two frames.
    fn write_own_frames(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let keepalive = &self.connection.keepalive;
        if !keepalive.has_waiting.get() || !self.is_between_frames {
            return Poll::Ready(Ok(()));
        }
        let mut waiting = keepalive.waiting.borrow_mut();
        while !waiting.is_empty() {
            let result = Pin::new(&mut self.stream).poll_write(context, &waiting);
            self.connection.wrote(result.is_ready());
            match ready!(result)? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                length => waiting.advance(length),
            }
        }
        keepalive.has_waiting.set(false);
        Poll::Ready(Ok(()))
    }

    /// Accepts bytes from h2.
    fn poll_write_http2(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.write_own_frames(context))?;
        self.delay = match self.delay {
            Delay::None if !self.held.is_empty() => Delay::None,
            _ if !self.is_between_frames || !are_pongs(bytes) => Delay::None,
            Delay::None => Delay::Pongs,
            delay => delay,
        };
        self.is_between_frames = false;
        let taken = ready!(self.poll_hold(context, bytes))?;
        if let Some((_, outgoing)) = &mut self.frames {
            let mut frames = 0;
            outgoing.each(&bytes[..taken], |frame| {
                frames += u32::from(frame.is_of_message());
            });
            self.connection.sent(frames);
        }
        Poll::Ready(Ok(taken))
    }

    fn poll_hold(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if bytes.len() < SMALL && self.held.len() < HELD {
            self.held.extend_from_slice(bytes);
            return Poll::Ready(Ok(bytes.len()));
        }
        while !self.held.is_empty() {
            let slices = [io::IoSlice::new(&self.held), io::IoSlice::new(bytes)];
            let result = Pin::new(&mut self.stream).poll_write_vectored(context, &slices);
            let written = ready!(self.written(result))?;
            let beyond = self.held_written(written)?;
            if beyond > 0 {
                return Poll::Ready(Ok(beyond));
            }
        }
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(result)
    }

    fn poll_write_held(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.held.is_empty() {
            let result = Pin::new(&mut self.stream).poll_write(context, &self.held);
            let written = ready!(self.written(result))?;
            self.held_written(written)?;
        }
        if self.held.capacity() > KEPT {
            self.held = BytesMut::new();
        }
        self.delay = Delay::None;
        self.connection.holds_back.set(false);
        Poll::Ready(Ok(()))
    }

    /// Whether the held output may wait until the event loop is idle.
    fn can_wait(&mut self) -> bool {
        match (self.delay, idle_hook::next_run()) {
            (Delay::UntilRun(run), Some(next)) => run == next,
            (Delay::Pongs, Some(next)) => {
                self.connection.holds_back.set(true);
                idle_hook::register(Rc::clone(&self.connection) as Rc<dyn OnIdle>);
                self.delay = Delay::UntilRun(next);
                true
            }
            _ => false,
        }
    }

    /// Removes written bytes from the held ones. Returns how many were written beyond those.
    fn held_written(&mut self, written: usize) -> io::Result<usize> {
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        let held = self.held.len().min(written);
        self.held.advance(held);
        Ok(written - held)
    }

    fn is_going_away(&self) -> bool {
        self.connection.keepalive.is_going_away.get()
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
            socket.connection.read(&socket.prefix[..length]);
            socket.prefix.advance(length);
            return Poll::Ready(Ok(()));
        }
        if socket.is_going_away() {
            // Writing GOAWAY ends the connection.
            return Poll::Pending;
        }
        // SAFETY: `ReadBuf` only ever writes initialised bytes into the uninitialised part.
        let mut free = ReadBuf::uninit(unsafe { buffer.as_mut() });
        let result = Pin::new(&mut socket.stream).poll_read(context, &mut free);
        if !matches!(result, Poll::Ready(Ok(()))) {
            return result;
        }
        let length = free.filled().len();
        if let Some((incoming, _)) = &mut socket.frames {
            let connection = &socket.connection;
            incoming.each(free.filled(), |frame| connection.received(frame));
        }
        if length > 0 {
            socket.connection.read(free.filled());
        }
        // SAFETY: that many bytes have been filled by the read above.
        unsafe { buffer.advance(length) };
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
        if socket.connection.is_http2() {
            return socket.poll_write_http2(context, bytes);
        }
        let result = Pin::new(&mut socket.stream).poll_write(context, bytes);
        socket.written(result)
    }

    fn is_write_vectored(&self) -> bool {
        !self.connection.is_http2() && self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let socket = self.get_mut();
        let mut gathered = [0; GATHERED];
        let result = match gather(slices, &mut gathered) {
            Some(bytes) => Pin::new(&mut socket.stream).poll_write(context, bytes),
            None => Pin::new(&mut socket.stream).poll_write_vectored(context, slices),
        };
        socket.written(result)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let socket = self.get_mut();
        if !socket.connection.is_http2() {
            ready!(Pin::new(&mut socket.stream).poll_flush(context))?;
            return match socket.poll_end(context) {
                Poll::Ready(result) => Poll::Ready(result),
                Poll::Pending => Poll::Ready(Ok(())),
            };
        }
        if socket.can_wait() {
            socket.is_between_frames = true;
            return Poll::Ready(Ok(()));
        }
        ready!(socket.poll_write_held(context))?;
        // h2 flushes when it has written all of its frames.
        socket.is_between_frames = true;
        ready!(socket.write_own_frames(context))?;
        ready!(Pin::new(&mut socket.stream).poll_flush(context))?;
        match socket.is_going_away() {
            true => Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into())),
            false => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let socket = self.get_mut();
        ready!(socket.poll_write_held(context))?;
        Pin::new(&mut socket.stream).poll_shutdown(context)
    }
}

/// For the 408 response, which hyper does not send.
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
