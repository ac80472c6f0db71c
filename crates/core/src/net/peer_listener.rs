#![allow(unsafe_code, reason = "registers a descriptor with Tokio")]

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::sleep;

use super::Stream;

/// How long a connection is left to the worker that owns the socket before this worker accepts it.
const OWNER_ACCEPT_DELAY: Duration = Duration::from_millis(10);
/// After this many connections in a row that their owner left in the queue, the owner is considered stuck, and this worker accepts
/// without a delay.
const OWNER_STUCK_AFTER: u32 = 3;

/// The listening socket of another worker of the same address.
///
/// This worker accepts connections that the owner leaves in the queue because it computes, hangs or has died.
pub(crate) struct PeerListener {
    socket: AsyncFd<TcpListener>,
    /// Connections in a row that the owner had not accepted after the delay.
    left_by_owner: u32,
}

impl PeerListener {
    /// Must be called inside the reactor.
    pub(crate) fn new(socket: TcpListener) -> io::Result<Self> {
        // SAFETY: a listener is one open descriptor for as long as it lives, and nothing here takes the descriptor out of it.
        let socket = unsafe { AsyncFd::register_with_interest(socket, Interest::READABLE) };
        Ok(Self {
            socket: socket?,
            left_by_owner: 0,
        })
    }

    /// The next connection that the owner has left in the queue. Cancelling this future loses no connection.
    pub(crate) async fn accept(&mut self) -> io::Result<(Stream, Option<SocketAddr>)> {
        loop {
            let mut ready = self.socket.readable().await?;
            if self.left_by_owner < OWNER_STUCK_AFTER {
                sleep(OWNER_ACCEPT_DELAY).await;
            }
            match ready.try_io(|socket| socket.get_ref().accept()) {
                Err(_) => self.left_by_owner = 0,
                Ok(accepted) => {
                    self.left_by_owner = self.left_by_owner.saturating_add(1);
                    let (stream, peer) = accepted?;
                    return Ok((Stream::accepted(stream)?, Some(peer)));
                }
            }
        }
    }
}
