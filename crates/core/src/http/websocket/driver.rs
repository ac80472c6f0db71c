//! Moves the messages of a [`WebSocket`] between its handler and its connection.

#![allow(unsafe_code, reason = "reads a socket into uninitialised memory")]

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use hyper::rt::{Read, ReadBuf, Write};
use tokio::time::{Instant, Interval, MissedTickBehavior, Sleep, interval_at, sleep, timeout};

use super::deflate;
use super::frame::{self, Opcode, Violation};
use super::reader::{Arrival, Reader};
use super::session::{LOST, STOPPING, Upgrade, WebSocket};
use crate::http::connection::Connection;

/// How long a client may take to answer the closing handshake.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long input is discarded after the last frame: closing at once could make the kernel discard that frame.
const LINGER: Duration = Duration::from_secs(1);
/// The client's Close frame had no code (RFC 6455 §7.1.5).
const NO_CODE: u16 = 1005;
/// The longest reason that fits a Close frame (RFC 6455 §5.5).
const REASON: usize = 123;
/// Bytes of frames that may wait for the socket before no more messages are framed or read.
const AHEAD: usize = 64 << 10;
/// The capacity that is kept for the next frames.
const KEPT: usize = 4 << 10;

/// Drives a WebSocket until it has ended, then closes `io`.
///
/// `read`: bytes of the client that arrived with its request.
pub(in crate::http) async fn drive(
    connection: Rc<Connection>,
    io: impl Read + Write + Unpin,
    read: Bytes,
    socket: WebSocket,
) {
    let _busy = connection.enter();
    let limits = &socket.limits;
    let pings = limits
        .ping_interval
        .map(|every| interval_at(Instant::now() + every, every));
    let pings = pings.map(|mut pings| {
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        pings
    });
    let reader = Reader::new(
        BytesMut::from(read),
        limits.message_bytes,
        socket.agreement.is_some(),
    );
    let mut driver = Driver {
        io,
        reader,
        out: BytesMut::new(),
        connection,
        socket,
        pings,
        close_timer: None,
        has_received: true,
        is_reading: true,
    };
    let ended = poll_fn(|context| driver.poll(context)).await;
    driver.socket.end(LOST, "the connection was lost");
    if ended.is_ok() {
        driver.linger().await;
    }
}

/// The same on a stream of HTTP/2, which is ready once its response has been sent.
pub(in crate::http) async fn drive_stream(connection: Rc<Connection>, mut upgrade: Upgrade) {
    let Some(stream) = upgrade.stream.take() else {
        return;
    };
    if let Ok(stream) = stream.await {
        drive(connection, stream, Bytes::new(), upgrade.socket.clone()).await;
    }
}

/// The reason, truncated to fit a Close frame.
fn shortened(reason: &str) -> String {
    let fits = |(at, letter): &(usize, char)| at + letter.len_utf8() <= REASON;
    let letters = reason.char_indices().take_while(fits);
    letters.map(|(_, letter)| letter).collect()
}

/// The connection was lost, or the client does not answer.
struct Lost;

struct Driver<T> {
    io: T,
    reader: Reader,
    /// Frames that have not been sent.
    out: BytesMut,
    connection: Rc<Connection>,
    socket: WebSocket,
    pings: Option<Interval>,
    /// Runs from the moment the Close frame is written.
    close_timer: Option<Pin<Box<Sleep>>>,
    /// Something was read since the last ping.
    has_received: bool,
    is_reading: bool,
}

impl<T: Read + Write + Unpin> Driver<T> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Lost>> {
        self.socket.wait(context.waker());
        if self.is_cut_off(context) {
            return Poll::Ready(Err(Lost));
        }
        if self.is_reading {
            self.read(context);
        }
        // After reading: a pong may have arrived while the thread was busy.
        self.ping(context)?;
        let written = self.write(context);
        // Polled last, because the Close frame may just have been written.
        if self.is_close_timed_out(context) {
            return Poll::Ready(Err(Lost));
        }
        ready!(written)?;
        match self.is_reading {
            true => Poll::Pending,
            false => Poll::Ready(Ok(())),
        }
    }

    /// Whether the connection must end. On HTTP/2 the task of the connection closes the WebSockets of its streams.
    fn is_cut_off(&self, context: &Context<'_>) -> bool {
        let finish = || self.socket.close(1001, STOPPING);
        !self.connection.is_http2() && self.connection.poll_command(context, finish).is_ready()
    }

    fn is_close_timed_out(&mut self, context: &mut Context<'_>) -> bool {
        let close_timer = self.close_timer.as_mut();
        close_timer.is_some_and(|sleep| sleep.as_mut().poll(context).is_ready())
    }

    /// Pings the client. One that has sent nothing since the last ping is gone, unless the handler's backlog keeps this side from reading.
    fn ping(&mut self, context: &mut Context<'_>) -> Result<(), Lost> {
        let Some(pings) = &mut self.pings else {
            return Ok(());
        };
        while pings.poll_tick(context).is_ready() {
            let has_received = std::mem::take(&mut self.has_received);
            if !has_received && self.socket.has_room() {
                return Err(Lost);
            }
            if self.close_timer.is_none() {
                frame::write(&mut self.out, Opcode::Ping, false, &[]);
            }
        }
        Ok(())
    }

    fn read(&mut self, context: &mut Context<'_>) {
        while self.socket.has_room() && self.out.len() < AHEAD {
            match self.reader.next() {
                Ok(Some(arrival)) => {
                    self.arrived(arrival);
                    if !self.is_reading {
                        return;
                    }
                }
                Ok(None) => match self.fill(context) {
                    Poll::Pending => return self.reader.rest(),
                    Poll::Ready(Ok(1..)) => self.has_received = true,
                    Poll::Ready(Ok(0)) => return self.lose("the client has gone away"),
                    Poll::Ready(Err(error)) => return self.lose(&error.to_string()),
                },
                Err(violation) => return self.fail(violation),
            }
        }
    }

    /// Reads from the socket; 0 is the end.
    fn fill(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.reader.make_room();
        let input = &mut self.reader.input;
        let mut free = ReadBuf::uninit(input.spare_capacity_mut());
        ready!(Pin::new(&mut self.io).poll_read(context, free.unfilled()))?;
        let length = free.filled().len();
        // SAFETY: that many bytes have been filled by the read above.
        unsafe { input.advance_mut(length) };
        Poll::Ready(Ok(length))
    }

    fn arrived(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Message(message) => self.socket.push_received(message),
            Arrival::Ping(payload) if self.close_timer.is_none() => {
                frame::write(&mut self.out, Opcode::Pong, false, &payload);
            }
            Arrival::Ping(_) | Arrival::Pong => {}
            Arrival::Close(reason) => self.received_close(reason),
        }
    }

    /// The client's Close frame ends the handshake, or is answered with the same code.
    fn received_close(&mut self, reason: Option<(u16, String)>) {
        self.is_reading = false;
        let code = reason.as_ref().map(|(code, _)| *code);
        let reason = reason.map(|(_, text)| text).unwrap_or_default();
        if self.close_timer.is_none() {
            self.send_close(code, &reason);
        }
        self.socket.end(code.unwrap_or(NO_CODE), &reason);
    }

    /// The connection ended without a closing handshake.
    fn lose(&mut self, reason: &str) {
        self.is_reading = false;
        self.socket.end(LOST, reason);
    }

    /// The client has violated the protocol.
    fn fail(&mut self, violation: Violation) {
        self.is_reading = false;
        let reason = violation.to_string();
        if self.close_timer.is_none() {
            self.send_close(Some(violation.code()), &reason);
        }
        self.socket.end(violation.code(), &reason);
    }

    fn send_close(&mut self, code: Option<u16>, reason: &str) {
        let mut payload = Vec::new();
        if let Some(code) = code {
            payload.extend(code.to_be_bytes());
            payload.extend(shortened(reason).as_bytes());
        }
        frame::write(&mut self.out, Opcode::Close, false, &payload);
        self.close_timer = Some(Box::pin(sleep(CLOSE_TIMEOUT)));
    }

    fn write(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Lost>> {
        loop {
            self.frame_messages();
            if self.out.is_empty() {
                if self.out.capacity() > KEPT {
                    self.out = BytesMut::new();
                }
                return match ready!(Pin::new(&mut self.io).poll_flush(context)) {
                    Ok(()) => Poll::Ready(Ok(())),
                    Err(_) => self.broken(),
                };
            }
            match ready!(Pin::new(&mut self.io).poll_write(context, &self.out)) {
                Ok(written @ 1..) => self.out.advance(written),
                Ok(0) | Err(_) => return self.broken(),
            }
        }
    }

    /// Frames messages of the handler, and its close.
    fn frame_messages(&mut self) {
        while self.close_timer.is_none() && self.out.len() < AHEAD {
            if let Some(message) = self.socket.next_outgoing() {
                let opcode = match message.is_binary() {
                    true => Opcode::Binary,
                    false => Opcode::Text,
                };
                let agreement = self.socket.agreement;
                let coded =
                    agreement.and_then(|with| deflate::deflate(message.as_bytes(), with.window));
                match coded {
                    Some(coded) => frame::write(&mut self.out, opcode, true, &coded),
                    None => frame::write(&mut self.out, opcode, false, message.as_bytes()),
                }
            } else if !self.socket.is_over()
                && let Some((code, reason)) = self.socket.closed()
            {
                self.send_close(Some(code), &reason);
            } else {
                return;
            }
        }
    }

    /// The socket cannot be written, which is an error unless the closing handshake is over.
    fn broken(&self) -> Poll<Result<(), Lost>> {
        match self.is_reading && !self.socket.is_over() {
            true => Poll::Ready(Err(Lost)),
            false => Poll::Ready(Ok(())),
        }
    }

    async fn linger(&mut self) {
        let reading = async {
            poll_fn(|context| Pin::new(&mut self.io).poll_shutdown(context)).await?;
            self.reader.input.clear();
            while poll_fn(|context| self.fill(context)).await? > 0 {
                self.reader.input.clear();
            }
            io::Result::Ok(())
        };
        let _ = timeout(LINGER, reading).await;
    }
}
