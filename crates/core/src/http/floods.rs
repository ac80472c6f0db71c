//! Limits on HTTP/2 frames that cost a client little and a server much (CVE-2019-9511 to 9518, CVE-2023-44487).
//!
//! h2 bounds resets of requests that were not accepted, CONTINUATION and small DATA frames. Here each kind of frame has an allowance: a
//! burst, a rate, and more for what the server sends, because clients ping, update windows and cancel as part of normal work.

use std::cell::Cell;

use super::clock::Tick;
use super::keepalive::Frame;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;

/// How many frames of a kind a client may send.
#[derive(Debug, Clone, Copy)]
struct Allowance {
    /// The debug data of GOAWAY if there are more.
    name: &'static str,
    at_once: u32,
    /// Every quarter of a second.
    per_tick: u32,
    /// For every DATA or HEADERS frame that the server sends.
    per_answer: u32,
}

const KINDS: usize = 8;
const ALLOWANCES: [Allowance; KINDS] = [
    allowance("too_many_settings", 100, 3, 0),
    allowance("too_many_pings", 1_000, 250, 10),
    allowance("too_many_resets", 500, 25, 1),
    allowance("too_many_window_updates", 1_000, 250, 10),
    allowance("too_many_priorities", 1_000, 25, 10),
    allowance("too_many_continuations", 200, 25, 1),
    allowance("too_many_empty_data_frames", 80, 25, 1),
    allowance("too_many_unknown_frames", 1_000, 25, 0),
];

const fn allowance(name: &'static str, at_once: u32, per_tick: u32, per_answer: u32) -> Allowance {
    Allowance {
        name,
        at_once,
        per_tick,
        per_answer,
    }
}

/// The index of its allowance. `None` for frames that are requests, and for those that cause no work.
fn kind(frame: Frame) -> Option<usize> {
    match frame.kind {
        SETTINGS | PING if frame.flags & ACK != 0 => None,
        SETTINGS => Some(0),
        PING => Some(1),
        RST_STREAM => Some(2),
        WINDOW_UPDATE => Some(3),
        PRIORITY => Some(4),
        CONTINUATION => Some(5),
        DATA if frame.is_empty && frame.flags & END_STREAM == 0 => Some(6),
        DATA | HEADERS | PUSH_PROMISE | GOAWAY => None,
        _ => Some(7),
    }
}

/// The frames of each kind that a connection may still send.
#[derive(Debug)]
pub(super) struct Allowances {
    left: Cell<[u32; KINDS]>,
    refilled: Cell<Tick>,
}

impl Allowances {
    pub(super) fn new(now: Tick) -> Self {
        Self {
            left: Cell::new(ALLOWANCES.map(|allowance| allowance.at_once)),
            refilled: Cell::new(now),
        }
    }

    /// # Errors
    /// The allowance is used up; the name of the abuse.
    pub(super) fn spend(&self, frame: Frame, now: Tick) -> Result<(), &'static str> {
        let Some(index) = kind(frame) else {
            return Ok(());
        };
        let ticks = now.saturating_sub(self.refilled.replace(now));
        if ticks > 0 {
            self.add(|allowance| allowance.per_tick.saturating_mul(ticks));
        }
        let mut left = self.left.get();
        left[index] = left[index].checked_sub(1).ok_or(ALLOWANCES[index].name)?;
        self.left.set(left);
        Ok(())
    }

    /// The server has sent that many DATA and HEADERS frames.
    pub(super) fn answered(&self, frames: u32) {
        self.add(|allowance| allowance.per_answer.saturating_mul(frames));
    }

    fn add(&self, more: impl Fn(&Allowance) -> u32) {
        let mut left = self.left.get();
        for (left, allowance) in left.iter_mut().zip(&ALLOWANCES) {
            *left = left.saturating_add(more(allowance)).min(allowance.at_once);
        }
        self.left.set(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8) -> Frame {
        Frame {
            kind,
            flags,
            is_empty: true,
        }
    }

    /// How many are taken at once.
    fn taken(allowances: &Allowances, frame: Frame, now: Tick) -> u32 {
        let mut taken = 0;
        while taken < 10_000 && allowances.spend(frame, now).is_ok() {
            taken += 1;
        }
        taken
    }

    #[test]
    fn every_kind_has_an_end() {
        for (kind, at_once) in [
            (SETTINGS, 100),
            (PING, 1_000),
            (RST_STREAM, 500),
            (WINDOW_UPDATE, 1_000),
            (PRIORITY, 1_000),
            (CONTINUATION, 200),
            (DATA, 80),
            (0xbb, 1_000),
        ] {
            let allowances = Allowances::new(0);
            assert_eq!(taken(&allowances, frame(kind, 0), 0), at_once, "{kind}");
        }
    }

    #[test]
    fn requests_ends_of_streams_and_acknowledgements_have_none() {
        let allowances = Allowances::new(0);
        for (kind, flags) in [
            (HEADERS, 0),
            (DATA, END_STREAM),
            (PING, ACK),
            (SETTINGS, ACK),
        ] {
            assert_eq!(taken(&allowances, frame(kind, flags), 0), 10_000, "{kind}");
        }
    }

    #[test]
    fn time_and_answers_allow_more_but_never_more_than_at_first() {
        let allowances = Allowances::new(0);
        let ping = frame(PING, 0);
        taken(&allowances, ping, 0);
        assert_eq!(taken(&allowances, ping, 1), 250);
        allowances.answered(3);
        assert_eq!(taken(&allowances, ping, 1), 30);
        assert_eq!(taken(&allowances, ping, 1_000_000), 1_000);
    }
}
