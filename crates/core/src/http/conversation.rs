//! Moves the messages of a [`WebSocket`] between its handler and its connection.

use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Sink, Stream};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, Interval, MissedTickBehavior, Sleep, interval_at, sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message as Frame, Utf8Bytes};

use super::connection::Connection;
use super::socket::Socket;
use super::websocket::{LOST, Message, WebSocket};

/// How long a client may take to answer that the conversation ends.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long what a client still sends is read after the last frame: closing at once could take the frame from it.
const LINGER: Duration = Duration::from_secs(1);
pub(super) const STOPPING: &str = "the server is stopping";
/// The client's frame of closing had no code (RFC 6455 §7.1.5).
const NO_CODE: u16 = 1005;
/// The longest reason a frame of closing has room for (RFC 6455 §5.5).
const REASON: usize = 123;

/// Holds the conversation until it has ended, then closes the connection.
///
/// `read` are bytes of the client's that came with its request.
pub(super) async fn converse(
    connection: Rc<Connection>,
    socket: Socket,
    read: Bytes,
    conversation: WebSocket,
) {
    let _busy = connection.enter();
    let limits = &conversation.limits;
    let config = WebSocketConfig::default()
        .max_message_size(Some(limits.message_bytes))
        .max_frame_size(Some(limits.message_bytes));
    let pings = limits
        .ping_interval
        .map(|every| interval_at(Instant::now() + every, every));
    let pings = pings.map(|mut pings| {
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        pings
    });
    let role = Role::Server;
    let stream = WebSocketStream::from_partially_read(socket, read.to_vec(), role, Some(config));
    let mut talk = Talk {
        stream: stream.await,
        connection,
        conversation,
        pings,
        patience: None,
        is_reading: true,
    };
    let ended = poll_fn(|context| talk.poll(context)).await;
    talk.conversation.end(LOST, "the connection was lost");
    if ended.is_ok() {
        linger(&mut talk).await;
    }
}

async fn linger(talk: &mut Talk) {
    let socket = talk.stream.get_mut();
    let reading = async {
        let mut rest = [0; 4096];
        socket.shutdown().await?;
        while socket.read(&mut rest).await? > 0 {}
        std::io::Result::Ok(())
    };
    let _ = timeout(LINGER, reading).await;
}

/// As much of a reason as a frame of closing takes.
fn shortened(reason: &str) -> String {
    let fits = |(at, letter): &(usize, char)| at + letter.len_utf8() <= REASON;
    let letters = reason.char_indices().take_while(fits);
    letters.map(|(_, letter)| letter).collect()
}

/// The connection is of no more use: it was cut off, or the client does not answer.
struct Lost;

struct Talk {
    stream: WebSocketStream<Socket>,
    connection: Rc<Connection>,
    conversation: WebSocket,
    pings: Option<Interval>,
    /// Since the frame of closing was sent.
    patience: Option<Pin<Box<Sleep>>>,
    is_reading: bool,
}

impl Talk {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Lost>> {
        self.conversation.wait(context.waker());
        let finish = || self.conversation.close(1001, STOPPING);
        if self.connection.obey(context, finish).is_ready() || self.has_lost_patience(context) {
            return Poll::Ready(Err(Lost));
        }
        if self.is_reading {
            self.read(context);
        }
        // After reading: the answer to a ping may have waited for us while the thread was busy.
        self.ping(context)?;
        ready!(self.write(context))?;
        match self.is_reading {
            true => Poll::Pending,
            false => Poll::Ready(Ok(())),
        }
    }

    fn has_lost_patience(&mut self, context: &mut Context<'_>) -> bool {
        let patience = self.patience.as_mut();
        patience.is_some_and(|sleep| sleep.as_mut().poll(context).is_ready())
    }

    /// A client that was pinged and has sent nothing since is gone, unless it is us who do not read.
    fn ping(&mut self, context: &mut Context<'_>) -> Result<(), Lost> {
        let Some(pings) = &mut self.pings else {
            return Ok(());
        };
        while pings.poll_tick(context).is_ready() {
            let was_heard = self.connection.heard.replace(false);
            if !was_heard && self.conversation.has_room() {
                return Err(Lost);
            }
            if self.patience.is_none() {
                let _ = Pin::new(&mut self.stream).start_send(Frame::Ping(Bytes::new()));
            }
        }
        Ok(())
    }

    fn read(&mut self, context: &mut Context<'_>) {
        while self.conversation.has_room() {
            let Poll::Ready(frame) = Pin::new(&mut self.stream).poll_next(context) else {
                return;
            };
            match frame {
                Some(Ok(Frame::Text(text))) => self.conversation.arrive(Message::Text(text)),
                Some(Ok(Frame::Binary(bytes))) => self.conversation.arrive(Message::Binary(bytes)),
                Some(Ok(Frame::Close(frame))) => self.closed_by_client(frame),
                Some(Ok(_)) => {}
                Some(Err(error)) => return self.fail(&error),
                None => {
                    self.is_reading = false;
                    return;
                }
            }
        }
    }

    fn closed_by_client(&self, frame: Option<CloseFrame>) {
        match frame {
            Some(frame) => {
                let code = u16::from(frame.code);
                self.conversation.end(code, frame.reason.as_str());
            }
            None => self.conversation.end(NO_CODE, ""),
        }
    }

    /// The client has broken the rules, or the connection is lost (RFC 6455 §7.4.1).
    fn fail(&mut self, error: &Error) {
        self.is_reading = false;
        let code = match error {
            Error::Capacity(_) => 1009,
            Error::Utf8(_) => 1007,
            // Not said goodbye: nobody is there to be told.
            Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
                return self.conversation.end(LOST, &error.to_string());
            }
            Error::Protocol(_) | Error::AttackAttempt => 1002,
            _ => return self.conversation.end(LOST, &error.to_string()),
        };
        let reason = error.to_string();
        self.say_goodbye(code, &reason);
        self.conversation.end(code, &reason);
    }

    fn say_goodbye(&mut self, code: u16, reason: &str) {
        let frame = CloseFrame {
            code: code.into(),
            reason: Utf8Bytes::from(shortened(reason)),
        };
        let _ = Pin::new(&mut self.stream).start_send(Frame::Close(Some(frame)));
        self.patience = Some(Box::pin(sleep(PATIENCE)));
    }

    fn write(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Lost>> {
        loop {
            if let Poll::Ready(result) = Pin::new(&mut self.stream).poll_ready(context) {
                if result.is_err() {
                    return self.broken();
                }
            } else {
                return Poll::Pending;
            }
            if let Some(message) = self.conversation.leave() {
                let frame = match message {
                    Message::Text(text) => Frame::Text(text),
                    Message::Binary(bytes) => Frame::Binary(bytes),
                };
                let _ = Pin::new(&mut self.stream).start_send(frame);
                continue;
            }
            if self.patience.is_none()
                && !self.conversation.is_over()
                && let Some((code, reason)) = self.conversation.closed()
            {
                self.say_goodbye(code, &reason);
                // Its timer has to be armed.
                context.waker().wake_by_ref();
            }
            return match ready!(Pin::new(&mut self.stream).poll_flush(context)) {
                Ok(()) => Poll::Ready(Ok(())),
                Err(_) => self.broken(),
            };
        }
    }

    /// Nothing can be written: after the closing handshake that is as it should be.
    fn broken(&self) -> Poll<Result<(), Lost>> {
        match self.is_reading && !self.conversation.is_over() {
            true => Poll::Ready(Err(Lost)),
            false => Poll::Ready(Ok(())),
        }
    }
}
