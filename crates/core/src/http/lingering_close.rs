//! Closing a connection whose client may still be sending (RFC 9112 §9.6).
//!
//! If data arrives at a closed socket, or lies there unread when it is closed, the kernel sends a reset and discards what it has not
//! sent: the client would lose the end of its response.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::timeout;

use super::connection::Connection;
use super::context::Context as Server;
use super::request_body::{DISCARD_BYTES, DISCARD_TIMEOUT};
use crate::net::Stream;

/// Silence after which a client that has its response is disconnected.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(1);
/// At most one in this many connections may be in its lingering close.
const LINGERING_DIVISOR: usize = 4;
const TICK: Duration = Duration::from_millis(250);

/// Reads and discards what the client still sends, until it has received its response. The caller has shut down the writing side.
///
/// `is_sending`: the client is expected to send more, even if nothing has arrived yet.
pub(super) async fn lingering_close(connection: Rc<Connection>, stream: &Stream, is_sending: bool) {
    let mut discard = Discard {
        connection: &connection,
        stream,
        left: DISCARD_BYTES,
        has_received: false,
    };
    let looked = poll_fn(|context| Poll::Ready(discard.poll(context))).await;
    if looked.is_ready() || !is_sending && !discard.has_received {
        return;
    }
    let Some(_lingering) = LingeringGuard::take(&connection.server) else {
        return;
    };
    let _busy = connection.enter();
    let mut unsent = stream.unsent();
    let (mut silence, mut lasted) = (Duration::ZERO, Duration::ZERO);
    while timeout(TICK, poll_fn(|context| discard.poll(context)))
        .await
        .is_err()
    {
        let before = std::mem::replace(&mut unsent, stream.unsent());
        let has_received = std::mem::take(&mut discard.has_received);
        if unsent < before {
            (silence, lasted) = (Duration::ZERO, Duration::ZERO);
            continue;
        }
        lasted += TICK;
        silence = match has_received && unsent == 0 {
            true => Duration::ZERO,
            false => silence + TICK,
        };
        let is_over = match unsent {
            0 => silence >= SILENCE_TIMEOUT || lasted >= longest(&connection.server),
            _ => silence >= connection.server.limits.write_timeout,
        };
        if is_over {
            return;
        }
    }
}

fn longest(server: &Server) -> Duration {
    match server.is_stopping() {
        true => SILENCE_TIMEOUT,
        false => DISCARD_TIMEOUT,
    }
}

/// Reads and discards the input of the client.
struct Discard<'a> {
    connection: &'a Connection,
    stream: &'a Stream,
    left: usize,
    has_received: bool,
}

impl Discard<'_> {
    /// Ready at the end of the stream, after an error, and once too much was discarded.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            match self.stream.poll_discard(context) {
                Poll::Ready(Ok(length @ 1..)) if length < self.left => {
                    self.left -= length;
                    self.has_received = true;
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return self.wait(context),
            }
        }
    }

    fn wait(&self, context: &Context<'_>) -> Poll<()> {
        let _ = self.connection.poll_command(context, || {});
        match self.connection.may_linger() {
            true => Poll::Pending,
            false => Poll::Ready(()),
        }
    }
}

/// Counts a connection in its lingering close.
struct LingeringGuard(Rc<Server>);

impl LingeringGuard {
    fn take(server: &Rc<Server>) -> Option<Self> {
        let taken = server.lingering.get();
        if taken >= server.limits.connections.div_ceil(LINGERING_DIVISOR) {
            return None;
        }
        server.lingering.set(taken + 1);
        Some(Self(Rc::clone(server)))
    }
}

impl Drop for LingeringGuard {
    fn drop(&mut self) {
        self.0.lingering.set(self.0.lingering.get() - 1);
    }
}
