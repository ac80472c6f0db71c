//! Closing a connection whose client may still be sending (RFC 9112 §9.6).
//!
//! The kernel answers what arrives at a closed socket, and what lies there unread when it is closed, with a reset, and throws
//! away what it has not sent: the client would lose the end of its answer.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::timeout;

use super::connection::Connection;
use super::shared::Shared;
use crate::net::Stream;

/// A client that has its answer and sends nothing for so long is closed.
const SILENCE: Duration = Duration::from_secs(1);
/// For so long a client that has its answer may go on sending; on a server that stops no longer than [`SILENCE`].
pub(super) const LONGEST: Duration = Duration::from_secs(5);
/// Bytes that are read of it.
pub(super) const MOST: usize = 64 << 20;
/// One in so many of the connections that a server takes may wait for its client like this.
const SHARE: usize = 4;
const TICK: Duration = Duration::from_millis(250);

/// Reads what the client still sends, and lets it take its answer. The writing side of the socket has been shut down.
///
/// `is_sending`: more is to be expected of it, even if nothing has come by now.
pub(super) async fn lingering_close(connection: Rc<Connection>, stream: &Stream, is_sending: bool) {
    let mut rest = Rest {
        connection: &connection,
        stream,
        left: MOST,
        was_heard: false,
    };
    let looked = poll_fn(|context| Poll::Ready(rest.poll(context))).await;
    if looked.is_ready() || !is_sending && !rest.was_heard {
        return;
    }
    let Some(_place) = Place::take(&connection.shared) else {
        return;
    };
    let _busy = connection.enter();
    let mut unsent = stream.unsent();
    let (mut silent, mut lasted) = (Duration::ZERO, Duration::ZERO);
    while timeout(TICK, poll_fn(|context| rest.poll(context)))
        .await
        .is_err()
    {
        let before = std::mem::replace(&mut unsent, stream.unsent());
        let was_heard = std::mem::take(&mut rest.was_heard);
        if unsent < before {
            (silent, lasted) = (Duration::ZERO, Duration::ZERO);
            continue;
        }
        lasted += TICK;
        silent = match was_heard && unsent == 0 {
            true => Duration::ZERO,
            false => silent + TICK,
        };
        let is_over = match unsent {
            0 => silent >= SILENCE || lasted >= longest(&connection.shared),
            _ => silent >= connection.shared.limits.write_timeout,
        };
        if is_over {
            return;
        }
    }
}

fn longest(shared: &Shared) -> Duration {
    match shared.is_stopping() {
        true => SILENCE,
        false => LONGEST,
    }
}

/// What the client still sends.
struct Rest<'a> {
    connection: &'a Connection,
    stream: &'a Stream,
    left: usize,
    was_heard: bool,
}

impl Rest<'_> {
    /// Ready when there is nothing more to wait for.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            match self.stream.poll_discard(context) {
                Poll::Ready(Ok(length @ 1..)) if length < self.left => {
                    self.left -= length;
                    self.was_heard = true;
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return self.wait(context),
            }
        }
    }

    fn wait(&self, context: &Context<'_>) -> Poll<()> {
        let _ = self.connection.obey(context, || {});
        match self.connection.may_linger() {
            true => Poll::Pending,
            false => Poll::Ready(()),
        }
    }
}

/// Of one connection among those that wait for their client.
struct Place(Rc<Shared>);

impl Place {
    fn take(shared: &Rc<Shared>) -> Option<Self> {
        let taken = shared.lingering.get();
        if taken >= shared.limits.connections.div_ceil(SHARE) {
            return None;
        }
        shared.lingering.set(taken + 1);
        Some(Self(Rc::clone(shared)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.lingering.set(self.0.lingering.get() - 1);
    }
}
