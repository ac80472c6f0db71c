//! Heartbeats: sent when nothing else was, and the silence of the peer that ends a connection.

use std::task::Context;
use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior};

use super::super::codec::frame;
use super::{Driver, Ended};

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
}

impl Driver {
    pub(super) fn poll_heartbeat(&mut self, cx: &mut Context<'_>) -> Result<(), Ended> {
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
}
