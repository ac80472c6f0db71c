//! Calls that the broker does not answer in time although its heartbeats arrive.

use std::task::Context;
use std::time::Duration;

use tokio::time::Instant;

use super::super::channel::Call;
use super::super::codec::method;
use super::super::session::CallFailure;
use super::io_loop::{Driver, Ended};
use super::timer::{armed, is_over};

impl Driver {
    /// Ends the connection once a call has waited for `rpc_timeout`: the answers of a channel come in order, so nothing on it
    /// would be answered any more.
    pub(super) fn poll_call_timeouts(&mut self, cx: &mut Context<'_>) -> Result<(), Ended> {
        let limit = self.shared.config.rpc_timeout;
        // RabbitMQ reads nothing from a connection that it has blocked.
        if limit.is_zero() || self.blocked {
            return Ok(());
        }
        while self.has_calls && (self.call_timer.is_none() || is_over(&mut self.call_timer, cx)) {
            let Some(oldest) = self.calls().map(|call| call.since).min() else {
                self.has_calls = false;
                break;
            };
            let left = limit.saturating_sub(oldest.elapsed());
            if left.is_zero() {
                return Err(self.timed_out(limit));
            }
            self.call_timer = Some(armed(left, cx));
        }
        Ok(())
    }

    /// The broker reads again what waited meanwhile.
    pub(super) fn unblock_calls(&mut self) {
        self.blocked = false;
        let now = Instant::now();
        for channel in self.channels.iter_mut().flatten() {
            for call in &mut channel.waiting {
                call.since = now;
            }
        }
    }

    fn calls(&self) -> impl Iterator<Item = &Call> {
        self.channels
            .iter()
            .flatten()
            .flat_map(|channel| &channel.waiting)
    }

    /// Fails each call that has timed out; the others learn that the connection is lost.
    fn timed_out(&mut self, limit: Duration) -> Ended {
        let mut first = None;
        for (number, channel) in self.channels.iter_mut().enumerate() {
            let Some(channel) = channel else { continue };
            while let Some(call) = channel.waiting.front()
                && call.since.elapsed() >= limit
            {
                first.get_or_insert((number, call.expected));
                if let Some(call) = channel.waiting.pop_front() {
                    let _ = call.reply.send(Err(CallFailure::TimedOut(limit)));
                }
            }
        }
        let (number, method) = first.unwrap_or_default();
        let question = method::question(method);
        let seconds = limit.as_secs_f64();
        self.lost(format!(
            "{question} on channel {number} was not answered within {seconds} s (rpc_timeout)"
        ))
    }
}
