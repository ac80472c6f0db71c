//! From the socket to frames.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::time::Instant;

use super::super::codec::frame::{self, Frame};
use super::super::codec::method::{self, Incoming};
use super::super::consumer_state::ReceivedDelivery;
use super::super::session::Role;
use super::io_loop::{Driver, Ended};
use super::violation::{FRAME_ERROR, SYNTAX_ERROR, UNEXPECTED_FRAME, Violation, violation};
use super::whole_delivery::whole_delivery;

/// Free space offered to each read.
const READ_SIZE: usize = 64 << 10;
/// Reads in one pass before acks and writes get their turn.
const READS_PER_PASS: usize = 8;

impl Driver {
    pub(super) fn read_all(&mut self, cx: &mut Context<'_>) -> Result<(), Ended> {
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
        // Events before a violation are still delivered.
        let handed_over = self.hand_over_all();
        match (taken, handed_over) {
            (Ok(None), Ok(())) => Ok(()),
            (Ok(Some(ended)), _) => Err(ended),
            (Err(violation), _) | (_, Err(violation)) => Err(self.close_with(cx, &violation)),
        }
    }

    /// Tells the peer what it did wrong, as far as one write goes, and gives up.
    fn close_with(&mut self, cx: &mut Context<'_>, violation: &Violation) -> Ended {
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
        channel.deliveries.push(ReceivedDelivery {
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
}
