//! The I/O loop of one connection: reads and hands over, collects and writes, keeps time.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::BytesMut;
use tokio::time::Sleep;

use super::super::Error;
use super::super::channel::Channel;
use super::super::codec::{frame, outgoing};
use super::super::handshake::{Limits, Opened};
use super::super::session::{Role, Session};
use super::super::shared::Shared;
use super::heartbeat::Heartbeat;
use super::timer::is_over;
use crate::net::Stream;

/// Answers and acks that may wait for a broker that does not read.
const MAX_CONTROL_BYTES: usize = 16 << 20;

/// How a connection ended.
pub(in crate::amqp) enum Ended {
    /// After the closing handshake this side began.
    Closed,
    Lost(Error),
}

pub(in crate::amqp) struct Driver {
    pub(super) shared: Arc<Shared>,
    pub(super) session: Session,
    pub(super) limits: Limits,
    pub(super) stream: Stream,
    pub(super) read: BytesMut,
    pub(super) channels: Vec<Option<Channel>>,
    /// Channels with a batch to hand over at the end of this read.
    pub(super) batched: Vec<u16>,
    /// Frames of this side other than messages: calls, acks, heartbeats.
    pub(super) control: Vec<u8>,
    pub(super) writing: Vec<u8>,
    pub(super) written: usize,
    /// TLS holds bytes the socket has not taken.
    pub(super) flushing: bool,
    /// This side has sent connection.close.
    pub(super) closing: bool,
    pub(super) ack_timer: Option<Pin<Box<Sleep>>>,
    pub(super) write_timer: Option<Pin<Box<Sleep>>>,
    /// Fires when the oldest call may have timed out.
    pub(super) call_timer: Option<Pin<Box<Sleep>>>,
    /// Whether a call may be waiting for its answer.
    pub(super) has_calls: bool,
    /// The broker has blocked the connection and may leave calls unanswered meanwhile.
    pub(super) blocked: bool,
    pub(super) heartbeat: Option<Heartbeat>,
}

impl Driver {
    pub(in crate::amqp) fn new(shared: Arc<Shared>, session: Session, opened: Opened) -> Self {
        Self {
            shared,
            session,
            limits: opened.limits,
            stream: opened.stream,
            read: opened.read,
            channels: Vec::new(),
            batched: Vec::new(),
            control: Vec::new(),
            writing: Vec::new(),
            written: 0,
            flushing: false,
            closing: false,
            ack_timer: None,
            write_timer: None,
            call_timer: None,
            has_calls: false,
            blocked: false,
            heartbeat: Heartbeat::new(opened.limits.heartbeat),
        }
    }

    /// Runs until the connection ends. Call [`tear_down`](Self::tear_down) afterwards.
    pub(in crate::amqp) async fn run(&mut self) -> Ended {
        std::future::poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        self.shared.io_waker.register(cx.waker());
        match self.pass(cx) {
            Ok(()) => Poll::Pending,
            Err(ended) => Poll::Ready(ended),
        }
    }

    fn pass(&mut self, cx: &mut Context<'_>) -> Result<(), Ended> {
        self.read_all(cx)?;
        let tick = is_over(&mut self.ack_timer, cx);
        if is_over(&mut self.write_timer, cx) {
            self.shared.write_buffer.mark_urgent();
        }
        self.write_all(cx, tick)?;
        if self.control.len() > MAX_CONTROL_BYTES {
            return Err(self.lost("the broker sends requests and does not read the answers"));
        }
        self.poll_heartbeat(cx)?;
        self.poll_call_timeouts(cx)?;
        // A heartbeat just queued goes out now.
        if !self.control.is_empty() {
            self.write_all(cx, false)?;
        }
        Ok(())
    }

    fn poll_heartbeat(&mut self, cx: &mut Context<'_>) -> Result<(), Ended> {
        let Some(heartbeat) = &mut self.heartbeat else {
            return Ok(());
        };
        match heartbeat.poll(cx) {
            Ok(is_due) => {
                if is_due && self.writing.is_empty() {
                    self.control.extend_from_slice(&frame::HEARTBEAT_FRAME);
                }
                Ok(())
            }
            Err(silence) => Err(self.lost(format!("nothing heard for {silence:.1?} (heartbeat)"))),
        }
    }

    pub(super) fn lost(&self, message: impl Into<String>) -> Ended {
        Ended::Lost(Error::ConnectionLost {
            target: self.session.server().address.clone(),
            message: message.into(),
        })
    }

    /// Ends all calls, takes publishers and consumers off the session, and gives back what was not sent.
    pub(in crate::amqp) fn tear_down(self) {
        self.session.end();
        let mut publishers = Vec::new();
        for channel in self.channels.into_iter().flatten() {
            match channel.role {
                Role::Publisher(publisher) => {
                    publisher.go_offline(self.session.close_error());
                    publishers.push(publisher);
                }
                Role::Consumer(consumer) => {
                    consumer.go_offline();
                }
                Role::Control => {}
            }
        }
        let mut unsent = self.writing;
        let written = self.written;
        let write_len = unsent.len();
        self.shared.write_buffer.drain_to(&mut unsent);
        let mut back: Vec<(u16, Vec<u8>)> = Vec::new();
        for message in outgoing::messages(&unsent) {
            if message.range.start < write_len && message.range.end <= written {
                continue;
            }
            let encoded = &unsent[message.range];
            match back
                .iter_mut()
                .find(|(number, _)| *number == message.channel)
            {
                Some((_, bytes)) => bytes.extend_from_slice(encoded),
                None => back.push((message.channel, encoded.to_vec())),
            }
        }
        for (number, bytes) in back {
            if let Some(publisher) = publishers.iter().find(|known| known.channel == number) {
                publisher.put_back(bytes);
            }
        }
    }
}
