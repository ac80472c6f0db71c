//! Writes to the socket, in the order in which they must leave.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::AsyncWrite;
use tokio::time::Instant;

use super::super::session::Role;
use super::super::write_buffer::{HIGH_WATER, Urgency};
use super::io_loop::{Driver, Ended};
use super::timer::armed;

/// How long a finished delivery may wait for others to share an ack with.
const COALESCE_ACKS_FOR: Duration = Duration::from_millis(2);

/// How long published messages may wait for others to share a write with.
const COALESCE_WRITES_FOR: Duration = Duration::from_millis(1);

impl Driver {
    pub(super) fn write_all(&mut self, cx: &mut Context<'_>, mut tick: bool) -> Result<(), Ended> {
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
                        self.ack_timer = Some(armed(COALESCE_ACKS_FOR, cx));
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
        for command in self.session.take_commands() {
            self.execute(command);
        }
        self.refill_from_write_buffer(cx);
        self.writing.append(&mut self.control);
    }

    fn refill_from_write_buffer(&mut self, cx: &mut Context<'_>) {
        match self.shared.write_buffer.urgency() {
            Some(Urgency::Soon) if self.control.is_empty() => {
                if self.write_timer.is_none() {
                    self.write_timer = Some(armed(COALESCE_WRITES_FOR, cx));
                }
            }
            _ => {
                self.write_timer = None;
                self.shared.write_buffer.swap(&mut self.writing);
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
        if waiting && self.ack_timer.is_none() {
            self.ack_timer = Some(armed(COALESCE_ACKS_FOR, cx));
        }
    }
}
