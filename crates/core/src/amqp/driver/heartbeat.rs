//! Heartbeats: sent when nothing else was, and the silence of the peer that ends a connection.

use std::task::Context;
use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior};

pub(super) struct Heartbeat {
    interval: Duration,
    check: Interval,
    pub(super) last_read: Instant,
    pub(super) last_write: Instant,
}

impl Heartbeat {
    pub(super) fn new(interval: Duration) -> Option<Self> {
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

    /// Whether this side has been silent for long enough to send a heartbeat.
    ///
    /// # Errors
    /// How long the peer has been silent, where that ends the connection.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Result<bool, Duration> {
        let mut is_due = false;
        while self.check.poll_tick(cx).is_ready() {
            let now = Instant::now();
            let silence = now - self.last_read;
            if silence > self.interval * 2 {
                return Err(silence);
            }
            // Checked four times in an interval, so never silent for more than half of it.
            is_due = now - self.last_write >= self.interval / 5;
        }
        Ok(is_due)
    }
}
