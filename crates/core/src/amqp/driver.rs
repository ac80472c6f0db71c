//! The I/O loop of one connection: reads and hands over, collects and writes, keeps time.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::time::{Instant, Interval, MissedTickBehavior, Sleep};

use super::Error;
use super::channel::{Arrived, Channel, Misfit, Opening, Partial};
use super::codec::frame::{self, ContentHeader, Frame};
use super::codec::method::{self, CloseReason, Incoming, MethodId, Reply};
use super::codec::outgoing;
use super::confirms::{Returned, Verdict};
use super::connection::Shared;
use super::handshake::{Limits, Opened};
use super::link::{Answer, Command, Link, Role, refused};
use super::message::{Layout, properties_range};
use super::outbox::{HIGH_WATER, Urgency};
use super::status::{Event, Status};
use crate::net::Stream;

/// Free space offered to each read.
const READ_SIZE: usize = 64 << 10;
/// Reads in one pass before acks and writes get their turn.
const READS_PER_PASS: usize = 8;
/// How long a finished delivery may wait for others to share an ack with.
const ACK_TICK: Duration = Duration::from_millis(2);

/// How long published messages may wait for others to share a write with.
const OUTBOX_TICK: Duration = Duration::from_millis(1);

/// How a connection ended.
pub(super) enum Ended {
    /// After the closing handshake this side began.
    Closed,
    Lost(Error),
}

/// The peer broke the protocol; the code is the one it is told (specification §1.2).
#[derive(Debug)]
struct Violation {
    code: u16,
    text: String,
}

const FRAME_ERROR: u16 = 501;
const SYNTAX_ERROR: u16 = 502;
const COMMAND_INVALID: u16 = 503;
const CHANNEL_ERROR: u16 = 504;
const UNEXPECTED_FRAME: u16 = 505;

fn violation(code: u16, text: impl Into<String>) -> Violation {
    Violation {
        code,
        text: text.into(),
    }
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
    ack_tick: Option<Pin<Box<Sleep>>>,
    outbox_tick: Option<Pin<Box<Sleep>>>,
    heartbeat: Option<Heartbeat>,
}

struct Heartbeat {
    interval: Duration,
    check: Interval,
    last_read: Instant,
    last_write: Instant,
}

impl Heartbeat {
    fn new(interval: Duration) -> Option<Self> {
        if interval.is_zero() {
            return None;
        }
        let mut check = tokio::time::interval(interval / 4);
        check.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let now = Instant::now();
        Some(Self {
            interval,
            check,
            last_read: now,
            last_write: now,
        })
    }
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
            ack_tick: None,
            outbox_tick: None,
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
        self.poll_heartbeat(cx)?;
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

    // Reading

    fn read_all(&mut self, cx: &mut Context<'_>) -> Result<(), Ended> {
        for _ in 0..READS_PER_PASS {
            self.read.reserve(READ_SIZE);
            let polled = pin!(self.stream.read_buf(&mut self.read)).poll(cx);
            match polled {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(0)) => return Err(self.lost("the broker closed the connection")),
                Poll::Ready(Ok(_)) => {
                    if let Some(heartbeat) = &mut self.heartbeat {
                        heartbeat.last_read = Instant::now();
                    }
                    self.take_frames(cx)?;
                }
                Poll::Ready(Err(error)) => return Err(self.lost(error.to_string())),
            }
        }
        cx.waker().wake_by_ref();
        Ok(())
    }

    fn take_frames(&mut self, cx: &mut Context<'_>) -> Result<(), Ended> {
        let taken = self.parse_frames();
        // What came before a violation is handed over all the same.
        let handed_over = self.hand_over_all();
        match (taken, handed_over) {
            (Ok(None), Ok(())) => Ok(()),
            (Ok(Some(ended)), _) => Err(ended),
            (Err(violation), _) | (_, Err(violation)) => Err(self.protest(cx, &violation)),
        }
    }

    /// Tells the peer what it did wrong, as far as one write goes, and gives up.
    fn protest(&mut self, cx: &mut Context<'_>, violation: &Violation) -> Ended {
        if self.written == self.writing.len() {
            let close = method::close(0, violation.code, &violation.text);
            let _ = Pin::new(&mut self.stream).poll_write(cx, &close);
            let _ = Pin::new(&mut self.stream).poll_flush(cx);
        }
        self.lost(format!(
            "protocol violation: {} (AMQP {})",
            violation.text, violation.code
        ))
    }

    fn parse_frames(&mut self) -> Result<Option<Ended>, Violation> {
        loop {
            if self.take_whole_delivery()? {
                continue;
            }
            let parsed = frame::parse(&self.read, self.limits.frame_max)
                .map_err(|error| violation(FRAME_ERROR, error.to_string()))?;
            let Some(first) = parsed else {
                return Ok(None);
            };
            let len = first.len();
            let (kind, channel) = (first.kind, first.channel);
            let bytes = self.read.split_to(len).freeze();
            let payload = &bytes[frame::HEADER_LEN..len - 1];
            let ended = self.take_frame(Frame {
                kind,
                channel,
                payload,
            })?;
            if ended.is_some() {
                return Ok(ended);
            }
        }
    }

    /// The usual case: the three frames of a small message are all here, and stay where they are.
    fn take_whole_delivery(&mut self) -> Result<bool, Violation> {
        let Some(whole) = whole_delivery(&self.read, self.limits.frame_max) else {
            return Ok(false);
        };
        let Some(Some(channel)) = self.channels.get_mut(usize::from(whole.channel)) else {
            return Ok(false);
        };
        if channel.closing
            || channel.partial.is_some()
            || !matches!(channel.role, Role::Consumer(_))
        {
            return Ok(false);
        }
        if !channel.has_batch() {
            self.batched.push(whole.channel);
        }
        channel.deliveries.push(Arrived {
            tag: whole.tag,
            redelivered: whole.redelivered,
            raw: self.read.split_to(whole.len).freeze(),
            layout: whole.layout,
        });
        Ok(true)
    }

    fn take_frame(&mut self, frame: Frame<'_>) -> Result<Option<Ended>, Violation> {
        match frame.kind {
            frame::METHOD => {
                let incoming = Incoming::decode(frame.payload)
                    .map_err(|error| violation(SYNTAX_ERROR, error.to_string()))?;
                match frame.channel {
                    0 => self.take_connection_method(incoming),
                    channel => self
                        .take_channel_method(channel, incoming, frame.payload)
                        .map(|()| None),
                }
            }
            frame::HEADER | frame::BODY => self.take_content(frame).map(|()| None),
            frame::HEARTBEAT if frame.channel == 0 => Ok(None),
            kind => Err(violation(
                UNEXPECTED_FRAME,
                format!("frame of type {kind} on channel {}", frame.channel),
            )),
        }
    }

    fn take_connection_method(
        &mut self,
        incoming: Incoming<'_>,
    ) -> Result<Option<Ended>, Violation> {
        match incoming {
            Incoming::ConnectionClose(CloseReason { code, text, .. }) => {
                let close_ok = method::bare(0, method::CONNECTION_CLOSE_OK);
                if self.written == self.writing.len() {
                    let mut cx = Context::from_waker(std::task::Waker::noop());
                    let _ = Pin::new(&mut self.stream).poll_write(&mut cx, &close_ok);
                    let _ = Pin::new(&mut self.stream).poll_flush(&mut cx);
                }
                let text = format!("the broker closed the connection: {text} (AMQP {code})");
                return Ok(Some(self.lost(text)));
            }
            Incoming::ConnectionCloseOk => return Ok(Some(Ended::Closed)),
            Incoming::Blocked { reason } => {
                let reason = reason.into_owned();
                self.shared.set_status(Status::Blocked {
                    reason: reason.clone(),
                });
                self.shared.events.push(Event::Blocked { reason });
            }
            Incoming::Unblocked => {
                self.shared.set_status(Status::Connected);
                self.shared.events.push(Event::Unblocked);
            }
            other => {
                let text = format!("{other:?} on channel 0");
                return Err(violation(COMMAND_INVALID, text));
            }
        }
        Ok(None)
    }

    fn open_channel(&mut self, number: u16) -> Result<&mut Channel, Violation> {
        match self.channels.get_mut(usize::from(number)) {
            Some(Some(channel)) => Ok(channel),
            _ => Err(violation(
                CHANNEL_ERROR,
                format!("frame on channel {number}, which is not open"),
            )),
        }
    }

    fn take_channel_method(
        &mut self,
        number: u16,
        incoming: Incoming<'_>,
        payload: &[u8],
    ) -> Result<(), Violation> {
        // Both sides may close a channel at once: the second answer then finds nothing.
        if matches!(incoming, Incoming::ChannelCloseOk) {
            self.answer_close(number);
            return Ok(());
        }
        let channel = self.open_channel(number)?;
        if let Incoming::ChannelClose(reason) = incoming {
            self.channel_closed(number, reason);
            return Ok(());
        }
        if channel.closing {
            return Ok(());
        }
        if channel.partial.is_some() {
            let text = format!("a method inside the content on channel {number}");
            return Err(violation(UNEXPECTED_FRAME, text));
        }
        match incoming {
            Incoming::Ack { tag, multiple } => self.take_verdict(number, tag, multiple, true),
            Incoming::Nack { tag, multiple } => self.take_verdict(number, tag, multiple, false),
            Incoming::Deliver {
                tag,
                redelivered,
                exchange_at,
            } if matches!(channel.role, Role::Consumer(_)) => {
                let opening = Opening::Deliver {
                    tag,
                    redelivered,
                    exchange_at,
                };
                channel.partial = Some(Partial::new(opening, payload));
                Ok(())
            }
            Incoming::Return { .. } if matches!(channel.role, Role::Publisher(_)) => {
                channel.partial = Some(Partial::new(Opening::Return, payload));
                Ok(())
            }
            Incoming::Flow { active } => {
                let flow_ok = method::flow_ok(number, active);
                self.control.extend_from_slice(&flow_ok);
                Ok(())
            }
            Incoming::Cancel {
                no_wait,
                consumer_tag,
            } => {
                if !no_wait {
                    let cancel_ok = method::cancel_ok(number, &consumer_tag);
                    self.control.extend_from_slice(&cancel_ok);
                }
                self.consumer_cancelled(number);
                Ok(())
            }
            Incoming::Reply(method, reply) => self.answer(number, method, reply),
            other => Err(violation(
                COMMAND_INVALID,
                format!("{other:?} on channel {number}"),
            )),
        }
    }

    fn take_verdict(
        &mut self,
        number: u16,
        tag: u64,
        multiple: bool,
        accepted: bool,
    ) -> Result<(), Violation> {
        let channel = self.open_channel(number)?;
        if !matches!(channel.role, Role::Publisher(_)) {
            let text = format!("a confirm on channel {number}, which does not publish");
            return Err(violation(COMMAND_INVALID, text));
        }
        let first = !channel.has_batch();
        channel.verdicts.push(Verdict {
            tag,
            multiple,
            accepted,
        });
        if first {
            self.batched.push(number);
        }
        Ok(())
    }

    fn take_content(&mut self, frame: Frame<'_>) -> Result<(), Violation> {
        let number = frame.channel;
        let channel = self.open_channel(number)?;
        if channel.closing {
            return Ok(());
        }
        let Some(partial) = &mut channel.partial else {
            let text = format!("content on channel {number} without its method");
            return Err(violation(UNEXPECTED_FRAME, text));
        };
        let fitted = if frame.kind == frame::HEADER {
            partial.header(frame.payload)
        } else {
            partial.body(frame.payload)
        };
        fitted.map_err(|misfit| misfit_violation(number, misfit))?;
        if partial.is_complete()
            && let Some(partial) = channel.partial.take()
        {
            self.take_message(number, partial)?;
        }
        Ok(())
    }

    fn take_message(&mut self, number: u16, partial: Partial) -> Result<(), Violation> {
        let opening = partial.opening;
        let (raw, layout) = partial.finish();
        match opening {
            Opening::Deliver {
                tag, redelivered, ..
            } => {
                let channel = self.open_channel(number)?;
                let first = !channel.has_batch();
                channel.deliveries.push(Arrived {
                    tag,
                    redelivered,
                    raw,
                    layout,
                });
                if first {
                    self.batched.push(number);
                }
            }
            Opening::Return => {
                // Confirms of earlier messages first: what is returned must be found among the unconfirmed.
                self.hand_over(number)?;
                self.take_returned(number, &raw, &layout)?;
            }
        }
        Ok(())
    }

    fn take_returned(&mut self, number: u16, raw: &[u8], layout: &Layout) -> Result<(), Violation> {
        let channel = self.open_channel(number)?;
        let Role::Publisher(publisher) = &channel.role else {
            return Ok(());
        };
        let part = |range: &std::ops::Range<u32>| &raw[range.start as usize..range.end as usize];
        if let Ok(Incoming::Return {
            code,
            text,
            exchange,
            routing_key,
        }) = Incoming::decode(raw)
        {
            publisher.returned(&Returned {
                code,
                text: &text,
                exchange: &exchange,
                routing_key: &routing_key,
                properties: part(&layout.properties),
                body: part(&layout.body),
            });
        }
        Ok(())
    }

    // Handing over

    fn hand_over_all(&mut self) -> Result<(), Violation> {
        let mut batched = std::mem::take(&mut self.batched);
        let result = batched
            .drain(..)
            .try_for_each(|number| self.hand_over(number));
        self.batched = batched;
        result
    }

    fn hand_over(&mut self, number: u16) -> Result<(), Violation> {
        let Some(Some(channel)) = self.channels.get_mut(usize::from(number)) else {
            return Ok(());
        };
        let in_order = match &channel.role {
            Role::Consumer(consumer) if !channel.deliveries.is_empty() => {
                consumer.deliver(&mut channel.deliveries)
            }
            Role::Publisher(publisher) if !channel.verdicts.is_empty() => {
                let known = publisher.settle(&channel.verdicts);
                channel.verdicts.clear();
                self.shared.outbox.hurry();
                known
            }
            _ => true,
        };
        if in_order {
            Ok(())
        } else {
            let text = format!("a delivery tag out of order on channel {number}");
            Err(violation(COMMAND_INVALID, text))
        }
    }

    // Calls and channels

    fn answer(&mut self, number: u16, method: MethodId, reply: Reply) -> Result<(), Violation> {
        // What was delivered before, for instance before a cancel-ok, is there when the caller continues.
        self.hand_over(number)?;
        let channel = self.open_channel(number)?;
        match channel.waiting.pop_front() {
            Some((expected, waiting)) if expected == method => {
                let _ = waiting.send(Ok(reply));
                Ok(())
            }
            _ => Err(violation(
                COMMAND_INVALID,
                format!("an answer ({method:#010x}) nobody asked for on channel {number}"),
            )),
        }
    }

    fn answer_close(&mut self, number: u16) {
        let slot = self.channels.get_mut(usize::from(number));
        if let Some(channel) = slot.and_then(Option::take) {
            for (_, waiting) in channel.waiting {
                let _ = waiting.send(Ok(Reply::Done));
            }
        }
    }

    fn channel_closed(&mut self, number: u16, reason: CloseReason) {
        let _ = self.hand_over(number);
        let slot = self.channels.get_mut(usize::from(number));
        let Some(channel) = slot.and_then(Option::take) else {
            return;
        };
        let was_closing = channel.closing;
        for (expected, waiting) in channel.waiting {
            let answer: Answer = match expected {
                method::CHANNEL_CLOSE_OK => Ok(Reply::Done),
                _ => Err(reason.clone()),
            };
            let _ = waiting.send(answer);
        }
        if !was_closing {
            self.restart_role(channel.role, &reason);
        }
        // After this nothing may be sent on the channel until it is opened again.
        let close_ok = method::bare(number, method::CHANNEL_CLOSE_OK);
        self.control.extend_from_slice(&close_ok);
    }

    fn restart_role(&mut self, role: Role, reason: &CloseReason) {
        match role {
            Role::Publisher(publisher) if publisher.go_offline() => {
                let error = refused("publish".into(), reason);
                // What is not written yet would be passed over by the broker.
                publisher.put_back(self.shared.outbox.extract(publisher.channel));
                publisher.refuse(&error, &reason.text);
                self.shared.restart_publisher(&self.link, publisher, error);
            }
            Role::Consumer(consumer) if consumer.is_online() => {
                let error = refused(format!("consume queue \"{}\"", consumer.queue()), reason);
                if consumer.go_offline() {
                    self.shared.restart_consumer(&self.link, consumer, error);
                }
            }
            // Whoever is opening the channel was told by its call.
            _ => {}
        }
    }

    fn consumer_cancelled(&mut self, number: u16) {
        if let Some(Some(channel)) = self.channels.get(usize::from(number))
            && let Role::Consumer(consumer) = &channel.role
        {
            self.shared
                .resume_cancelled_consumer(&self.link, Arc::clone(consumer));
        }
    }

    // Writing

    fn write_all(&mut self, cx: &mut Context<'_>, mut tick: bool) -> Result<(), Ended> {
        if self.flushing {
            self.flush(cx)?;
        }
        loop {
            if self.written == self.writing.len() {
                self.refill(cx, std::mem::take(&mut tick));
                if self.writing.is_empty() {
                    return Ok(());
                }
            }
            let rest = &self.writing[self.written..];
            match Pin::new(&mut self.stream).poll_write(cx, rest) {
                Poll::Ready(Ok(0)) => return Err(self.lost("the connection takes no more bytes")),
                Poll::Ready(Ok(count)) => self.written += count,
                Poll::Ready(Err(error)) => return Err(self.lost(error.to_string())),
                Poll::Pending => {
                    if tick {
                        self.ack_tick = Some(armed(ACK_TICK, cx));
                    }
                    return Ok(());
                }
            }
            if let Some(heartbeat) = &mut self.heartbeat {
                heartbeat.last_write = Instant::now();
            }
            if self.written == self.writing.len() {
                self.flush(cx)?;
            }
        }
    }

    fn flush(&mut self, cx: &mut Context<'_>) -> Result<(), Ended> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.flushing = flushed.is_pending();
        match flushed {
            Poll::Ready(Err(error)) => Err(self.lost(error.to_string())),
            _ => Ok(()),
        }
    }

    /// Acks and calls are collected first but written last: a message published before an ack goes out before it.
    fn refill(&mut self, cx: &mut Context<'_>, tick: bool) {
        self.writing.clear();
        self.writing.shrink_to(HIGH_WATER * 2);
        self.written = 0;
        self.collect_acks(cx, tick);
        for command in self.link.take_commands() {
            self.execute(command);
        }
        self.refill_from_outbox(cx);
        self.writing.append(&mut self.control);
    }

    fn refill_from_outbox(&mut self, cx: &mut Context<'_>) {
        match self.shared.outbox.urgency() {
            Some(Urgency::Soon) if self.control.is_empty() => {
                if self.outbox_tick.is_none() {
                    self.outbox_tick = Some(armed(OUTBOX_TICK, cx));
                }
            }
            _ => {
                self.outbox_tick = None;
                self.shared.outbox.swap(&mut self.writing);
            }
        }
    }

    fn collect_acks(&mut self, cx: &mut Context<'_>, tick: bool) {
        let mut waiting = false;
        for channel in self.channels.iter().flatten() {
            if let Role::Consumer(consumer) = &channel.role
                && !channel.closing
            {
                waiting |= consumer.collect_due(&mut self.control, tick);
            }
        }
        if waiting && self.ack_tick.is_none() {
            self.ack_tick = Some(armed(ACK_TICK, cx));
        }
    }

    fn execute(&mut self, command: Command) {
        match command {
            Command::Open {
                channel: number,
                role,
                reply,
            } => {
                let mut channel = Channel::new(role);
                channel.waiting.push_back((method::CHANNEL_OPEN_OK, reply));
                let index = usize::from(number);
                if self.channels.len() <= index {
                    self.channels.resize_with(index + 1, || None);
                }
                self.channels[index] = Some(channel);
                let open = method::bare(number, method::CHANNEL_OPEN);
                self.control.extend_from_slice(&open);
            }
            Command::Call {
                channel,
                frame,
                expected,
                reply,
            } => self.call(channel, &frame, expected, reply),
            Command::CloseConnection => {
                for channel in self.channels.iter().flatten() {
                    if let Role::Consumer(consumer) = &channel.role {
                        consumer.collect_all(&mut self.control);
                    }
                }
                let close = method::close(0, 200, "");
                self.control.extend_from_slice(&close);
            }
        }
    }

    fn call(
        &mut self,
        number: u16,
        frame: &[u8],
        expected: MethodId,
        reply: tokio::sync::oneshot::Sender<Answer>,
    ) {
        let Some(Some(channel)) = self.channels.get_mut(usize::from(number)) else {
            // Closed by the broker meanwhile; closing it once more is done, anything else is refused.
            let _ = reply.send(match expected {
                method::CHANNEL_CLOSE_OK => Ok(Reply::Done),
                _ => Err(CloseReason {
                    code: CHANNEL_ERROR,
                    text: "the broker has closed the channel".into(),
                    method: 0,
                }),
            });
            return;
        };
        if let Role::Consumer(consumer) = &channel.role {
            consumer.collect_all(&mut self.control);
        }
        self.control.extend_from_slice(frame);
        channel.waiting.push_back((expected, reply));
        channel.closing |= expected == method::CHANNEL_CLOSE_OK;
    }

    fn poll_heartbeat(&mut self, cx: &mut Context<'_>) -> Result<(), Ended> {
        let Some(heartbeat) = &mut self.heartbeat else {
            return Ok(());
        };
        while heartbeat.check.poll_tick(cx).is_ready() {
            let now = Instant::now();
            let silence = now - heartbeat.last_read;
            if silence > heartbeat.interval * 2 {
                return Err(self.lost(format!("nothing heard for {silence:.1?} (heartbeat)")));
            }
            // Checked four times in an interval, so never silent for more than half of it.
            if now - heartbeat.last_write >= heartbeat.interval / 5 && self.writing.is_empty() {
                self.control.extend_from_slice(&frame::HEARTBEAT_FRAME);
            }
        }
        Ok(())
    }

    // The end

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

fn misfit_violation(number: u16, misfit: Misfit) -> Violation {
    match misfit {
        Misfit::Unexpected => violation(
            UNEXPECTED_FRAME,
            format!("content frames out of order on channel {number}"),
        ),
        Misfit::Malformed => violation(
            FRAME_ERROR,
            format!("malformed content on channel {number}"),
        ),
        Misfit::TooLarge => violation(
            FRAME_ERROR,
            format!("a body larger than 1 GiB on channel {number}"),
        ),
    }
}

struct WholeDelivery {
    channel: u16,
    len: usize,
    tag: u64,
    redelivered: bool,
    layout: Layout,
}

/// A delivery at the front of `buffer` whose frames follow each other and are all here.
fn whole_delivery(buffer: &[u8], frame_max: usize) -> Option<WholeDelivery> {
    let deliver = frame_at(buffer, 0, frame_max)?;
    if deliver.kind != frame::METHOD || !deliver.payload.starts_with(&method::DELIVER.to_be_bytes())
    {
        return None;
    }
    let header_at = deliver.len();
    let header = frame_at(buffer, header_at, frame_max)?;
    if header.kind != frame::HEADER
        || header.channel != deliver.channel
        || header.payload.len() < ContentHeader::LEN + 2
    {
        return None;
    }
    let body_size = ContentHeader::decode(header.payload).ok()?.body_size;
    let body_frame_at = header_at + header.len();
    let (body_at, body_len, len) = if body_size == 0 {
        (body_frame_at, 0, body_frame_at)
    } else {
        let body = frame_at(buffer, body_frame_at, frame_max)?;
        let complete = body.payload.len() as u64 == body_size;
        if body.kind != frame::BODY || body.channel != deliver.channel || !complete {
            return None;
        }
        let body_at = body_frame_at + frame::HEADER_LEN;
        (body_at, body.payload.len(), body_frame_at + body.len())
    };
    let Ok(Incoming::Deliver {
        tag,
        redelivered,
        exchange_at,
    }) = Incoming::decode(deliver.payload)
    else {
        return None;
    };
    let header_payload_at = header_at + frame::HEADER_LEN;
    Some(WholeDelivery {
        channel: deliver.channel,
        len,
        tag,
        redelivered,
        layout: Layout {
            exchange_at: (frame::HEADER_LEN + exchange_at) as u32,
            properties: properties_range(header_payload_at, header.payload.len()),
            body: body_at as u32..(body_at + body_len) as u32,
        },
    })
}

fn frame_at(buffer: &[u8], at: usize, frame_max: usize) -> Option<Frame<'_>> {
    frame::parse(buffer.get(at..)?, frame_max).ok().flatten()
}
