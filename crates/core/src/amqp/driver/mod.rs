//! The I/O loop of one connection: reads and hands over, collects and writes, keeps time.

mod calls;
mod content;
mod heartbeat;
mod methods;
mod overdue;
mod read;
mod violation;
mod whole_delivery;
mod write;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::BytesMut;
use tokio::time::Sleep;

use super::Error;
use super::channel::Channel;
use super::codec::outgoing;
use super::handshake::{Limits, Opened};
use super::link::{Link, Role};
use super::shared::Shared;
use crate::net::Stream;
use heartbeat::Heartbeat;

/// Answers and acks that may wait for a broker that does not read.
const MOST_CONTROL: usize = 16 << 20;

/// How a connection ended.
pub(super) enum Ended {
    /// After the closing handshake this side began.
    Closed,
    Lost(Error),
}

pub(super) struct Driver {
    shared: Arc<Shared>,
    link: Link,
    limits: Limits,
    stream: Stream,
    read: BytesMut,
    channels: Vec<Option<Channel>>,
    /// Channels with a batch to hand over at the end of this read.
    batched: Vec<u16>,
    /// Frames from this side that are no messages: calls, acks, heartbeats.
    control: Vec<u8>,
    writing: Vec<u8>,
    written: usize,
    /// TLS holds bytes the socket has not taken.
    flushing: bool,
    /// This side has sent connection.close.
    closing: bool,
    ack_tick: Option<Pin<Box<Sleep>>>,
    outbox_tick: Option<Pin<Box<Sleep>>>,
    /// When the oldest call may be overdue.
    call_tick: Option<Pin<Box<Sleep>>>,
    /// Whether a call may be waiting for its answer.
    has_calls: bool,
    /// The broker has blocked the connection and may leave calls unanswered meanwhile.
    blocked: bool,
    heartbeat: Option<Heartbeat>,
}

impl Driver {
    pub(super) fn new(shared: Arc<Shared>, link: Link, opened: Opened) -> Self {
        Self {
            shared,
            link,
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
            ack_tick: None,
            outbox_tick: None,
            call_tick: None,
            has_calls: false,
            blocked: false,
            heartbeat: Heartbeat::new(opened.limits.heartbeat),
        }
    }

    /// Runs until the connection ends. The driver is then to be [dismantled](Self::dismantle).
    pub(super) async fn run(&mut self) -> Ended {
        std::future::poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        self.shared.signal.rearm(cx.waker());
        match self.pass(cx) {
            Ok(()) => Poll::Pending,
            Err(ended) => Poll::Ready(ended),
        }
    }

    fn pass(&mut self, cx: &mut Context<'_>) -> Result<(), Ended> {
        self.read_all(cx)?;
        let tick = is_over(&mut self.ack_tick, cx);
        if is_over(&mut self.outbox_tick, cx) {
            self.shared.outbox.hurry();
        }
        self.write_all(cx, tick)?;
        if self.control.len() > MOST_CONTROL {
            return Err(self.lost("the broker sends requests and does not read the answers"));
        }
        self.poll_heartbeat(cx)?;
        self.poll_calls(cx)?;
        // A heartbeat just queued goes out now.
        if !self.control.is_empty() {
            self.write_all(cx, false)?;
        }
        Ok(())
    }

    fn lost(&self, message: impl Into<String>) -> Ended {
        Ended::Lost(Error::ConnectionLost {
            target: self.link.server().address.clone(),
            message: message.into(),
        })
    }

    /// Ends all calls, takes publishers and consumers off the link, and gives back what was not sent.
    pub(super) fn dismantle(self) {
        self.link.end();
        let mut publishers = Vec::new();
        for channel in self.channels.into_iter().flatten() {
            match channel.role {
                Role::Publisher(publisher) => {
                    publisher.go_offline();
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
        let boundary = unsent.len();
        self.shared.outbox.drain_to(&mut unsent);
        let mut back: Vec<(u16, Vec<u8>)> = Vec::new();
        for message in outgoing::messages(&unsent) {
            if message.range.start < boundary && message.range.end <= written {
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

fn armed(delay: Duration, cx: &mut Context<'_>) -> Pin<Box<Sleep>> {
    let mut sleep = Box::pin(tokio::time::sleep(delay));
    let _ = sleep.as_mut().poll(cx);
    sleep
}

/// Whether a tick was armed and its time has come; then it is disarmed.
fn is_over(tick: &mut Option<Pin<Box<Sleep>>>, cx: &mut Context<'_>) -> bool {
    let over = tick
        .as_mut()
        .is_some_and(|sleep| sleep.as_mut().poll(cx).is_ready());
    if over {
        *tick = None;
    }
    over
}
