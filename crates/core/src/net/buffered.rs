use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWrite};

use super::Stream;

/// The least free space for a read.
const LEAST_ROOM: usize = 4 * 1024;
const READ_CHUNK: usize = 16 * 1024;
/// Larger buffers shrink back when they are empty.
const KEPT: usize = 1024 * 1024;

/// A stream with buffers for output that is not sent and input that is not read.
///
/// All state is kept here and none in a future, so that sending and receiving can be cancelled at any point.
pub(crate) struct BufferedStream {
    stream: Stream,
    /// Output that is not sent.
    pub(crate) out: BytesMut,
    /// Input that is not read.
    pub(crate) input: BytesMut,
    /// Output was written and must be flushed: TLS buffers it while its own socket is full.
    unflushed: bool,
}

impl BufferedStream {
    /// `input` was received while the connection was opened.
    pub(crate) fn new(stream: Stream, input: BytesMut) -> Self {
        Self {
            stream,
            out: BytesMut::with_capacity(LEAST_ROOM),
            input,
            unflushed: false,
        }
    }

    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The stream and the unread input. Unsent output is lost.
    pub(crate) fn into_parts(self) -> (Stream, BytesMut) {
        (self.stream, self.input)
    }

    /// Sends and receives as much as possible at the same time: a server may read only after its own output was read. Returns the number
    /// of received bytes, at least one. `wanted` is the number of bytes that the next message lacks, if known.
    pub(crate) fn poll_transfer(
        &mut self,
        cx: &mut Context<'_>,
        wanted: usize,
    ) -> Poll<io::Result<usize>> {
        if let Err(error) = self.poll_send(cx) {
            return Poll::Ready(Err(error));
        }
        self.make_room(wanted);
        let read = pin!(self.stream.read_buf(&mut self.input));
        read.poll(cx).map(|received| match received {
            Ok(0) => Err(io::Error::other("the server closed the connection")),
            // The same with TLS.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the server closed the connection",
            )),
            other => other,
        })
    }

    /// Sends as much as the socket accepts.
    pub(crate) fn poll_send(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if self.is_sent() {
            return Ok(());
        }
        while !self.out.is_empty() {
            match Pin::new(&mut self.stream).poll_write(cx, &self.out) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(sent)) => {
                    self.out.advance(sent);
                    self.unflushed = true;
                }
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => return Ok(()),
            }
        }
        if self.out.capacity() > KEPT {
            self.out = BytesMut::with_capacity(READ_CHUNK);
        }
        match Pin::new(&mut self.stream).poll_flush(cx) {
            Poll::Ready(Ok(())) => {
                self.unflushed = false;
                Ok(())
            }
            Poll::Ready(Err(error)) => Err(error),
            Poll::Pending => Ok(()),
        }
    }

    /// Whether everything was sent.
    pub(crate) fn is_sent(&self) -> bool {
        self.out.is_empty() && !self.unflushed
    }

    /// Sends everything.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        poll_fn(|cx| match self.poll_send(cx) {
            Ok(()) if self.is_sent() => Poll::Ready(Ok(())),
            Ok(()) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        })
        .await
    }

    /// Sends as much as possible without waiting and ignores failures, for the last bytes of a connection.
    pub(crate) fn send_now(&mut self) {
        let _ = self.poll_send(&mut Context::from_waker(Waker::noop()));
    }

    fn make_room(&mut self, wanted: usize) {
        if self.input.is_empty() && self.input.capacity() > KEPT {
            self.input = BytesMut::new();
        }
        let wanted = wanted.max(LEAST_ROOM);
        if self.input.capacity() - self.input.len() < wanted {
            self.input.reserve(wanted.max(READ_CHUNK));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::AsyncWriteExt;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    async fn pair() -> (BufferedStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).await;
        let (far, _) = listener.accept().await.unwrap();
        let near = BufferedStream::new(Stream::Tcp(near.unwrap()), BytesMut::new());
        (near, far)
    }

    async fn transfer(near: &mut BufferedStream) -> io::Result<usize> {
        poll_fn(|cx| near.poll_transfer(cx, 0)).await
    }

    #[tokio::test]
    async fn both_sides_may_send_more_than_the_sockets_hold_at_the_same_time() {
        const LARGE: usize = 32 << 20;
        let (mut near, far) = pair().await;
        near.out.resize(LARGE, 1);
        let (mut reader, mut writer) = far.into_split();
        let far = async {
            let mut received = vec![0; LARGE];
            let write = async { writer.write_all(&vec![2; LARGE]).await };
            let (read, written) = tokio::join!(reader.read_exact(&mut received), write);
            read.unwrap();
            written.unwrap();
            received
        };
        let near = async {
            while near.input.len() < LARGE {
                transfer(&mut near).await.unwrap();
            }
            near.flush().await.unwrap();
            near
        };
        let both = tokio::time::timeout(Duration::from_secs(30), async { tokio::join!(far, near) });
        let (received, near) = both.await.unwrap();
        assert!(received.iter().all(|byte| *byte == 1));
        assert!(near.input.iter().all(|byte| *byte == 2));
        assert!(near.is_sent());
    }

    #[tokio::test]
    async fn grown_buffers_shrink_back() {
        let (mut near, mut far) = pair().await;
        near.out.resize(4 * KEPT, 0);
        let drain = tokio::spawn(async move {
            let mut received = vec![0; 4 * KEPT];
            far.read_exact(&mut received).await.unwrap();
            far.write_all(b"x").await.unwrap();
        });
        near.flush().await.unwrap();
        assert!(near.out.capacity() <= KEPT);
        near.input.reserve(4 * KEPT);
        assert_eq!(transfer(&mut near).await.unwrap(), 1);
        assert!(near.input.capacity() <= KEPT);
        drain.await.unwrap();
    }

    #[tokio::test]
    async fn the_end_of_the_stream_is_an_error() {
        let (mut near, far) = pair().await;
        drop(far);
        let error = transfer(&mut near).await.unwrap_err();
        assert_eq!(error.to_string(), "the server closed the connection");
    }
}
