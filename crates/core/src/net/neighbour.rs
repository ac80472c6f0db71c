use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::sleep;

use super::Stream;

/// How long a connection waits for the worker whose it is before another one takes it.
const PATIENCE: Duration = Duration::from_millis(10);
/// So often in a row nobody else has come for it: nobody accepts from that socket.
const DESERTED: u32 = 3;

/// The listening socket of another worker, accepted from where that one does not: it computes, hangs, or has died.
pub(crate) struct Neighbour {
    socket: AsyncFd<TcpListener>,
    /// Connections that were there after the wait, since one was not.
    left: u32,
}

impl Neighbour {
    /// To be called inside the reactor.
    pub(crate) fn new(socket: TcpListener) -> io::Result<Self> {
        // SAFETY: a listener is one open descriptor for as long as it lives, and nobody here takes it out again.
        let socket = unsafe { AsyncFd::register_with_interest(socket, Interest::READABLE) };
        Ok(Self {
            socket: socket?,
            left: 0,
        })
    }

    /// The next connection that its worker has left in the queue. Cancelling it loses no connection.
    pub(crate) async fn accept(&mut self) -> io::Result<(Stream, Option<SocketAddr>)> {
        loop {
            let mut ready = self.socket.readable().await?;
            if self.left < DESERTED {
                sleep(PATIENCE).await;
            }
            match ready.try_io(|socket| socket.get_ref().accept()) {
                Err(_) => self.left = 0,
                Ok(accepted) => {
                    self.left = self.left.saturating_add(1);
                    let (stream, peer) = accepted?;
                    return Ok((Stream::accepted(stream)?, Some(peer)));
                }
            }
        }
    }
}
