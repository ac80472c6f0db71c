//! Pings of HTTP/2 (RFC 9113 §6.7): those of the server, to detect dead clients, and limits on those of the client.
//!
//! With its own keepalive hyper reads a clock for every frame, and h2 answers pings without reporting them. So the socket observes
//! frames as they pass, and writes its own between two of h2's.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use bytes::BytesMut;

use super::clock::Tick;

const PING: &[u8] = b"\0\0\x08\x06\0\0\0\0\0weftping";
/// GOAWAY with the highest possible stream id, and `ENHANCE_YOUR_CALM` (RFC 9113 §6.8, §7).
const GOAWAY: &[u8] = b"\x07\0\0\0\0\0\x7f\xff\xff\xff\0\0\0\x0b";
/// Bytes of its payload without debug data.
const GOAWAY_LENGTH: u8 = 8;
const TOO_MANY_PINGS: &str = "too_many_pings";
/// How often a client may ping too early, as in grpc-go and gRPC core.
const STRIKES: u32 = 2;

/// Pings of a connection, in both directions.
#[derive(Debug, Default)]
pub(super) struct Keepalive {
    /// The server's own frames that wait to be written.
    pub(super) waiting: RefCell<BytesMut>,
    pub(super) has_waiting: Cell<bool>,
    /// No more frames are read, and the waiting frames are the last that are sent.
    pub(super) is_going_away: Cell<bool>,
    last_received: Cell<Tick>,
    pinged_at: Cell<Option<Tick>>,
    last: Cell<Option<Instant>>,
    strikes: Cell<u32>,
}

/// How to treat a silent client.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum KeepaliveAction {
    None,
    Ping,
    TimedOut,
}

impl Keepalive {
    pub(super) fn received(&self, now: Tick) {
        self.last_received.set(now);
        self.pinged_at.set(None);
    }

    /// Must be called at every tick since which nothing was received.
    pub(super) fn check(&self, now: Tick, interval: Tick, timeout: Tick) -> KeepaliveAction {
        match self.pinged_at.get() {
            Some(pinged_at) if now.saturating_sub(pinged_at) >= timeout => {
                KeepaliveAction::TimedOut
            }
            None if now.saturating_sub(self.last_received.get()) >= interval => {
                self.pinged_at.set(Some(now));
                self.send(PING);
                KeepaliveAction::Ping
            }
            _ => KeepaliveAction::None,
        }
    }

    /// Counts pings of the client. Returns false if there were too many: then the connection ends.
    pub(super) fn count_pings(&self, pings: u32, minimum: Duration) -> bool {
        for _ in 0..pings {
            let now = Instant::now();
            let last = self.last.replace(Some(now));
            if last.is_some_and(|last| now.duration_since(last) < minimum) {
                self.strikes.set(self.strikes.get() + 1);
            }
        }
        self.strikes.get() <= STRIKES || !self.go_away(TOO_MANY_PINGS)
    }

    /// Sends GOAWAY with `why`, at most 247 bytes, as debug data. Returns false if that was done before.
    pub(super) fn go_away(&self, why: &str) -> bool {
        if self.is_going_away.replace(true) {
            return false;
        }
        let length = GOAWAY_LENGTH.saturating_add(u8::try_from(why.len()).unwrap_or(u8::MAX));
        self.send(&[0, 0, length]);
        self.send(GOAWAY);
        self.send(why.as_bytes());
        true
    }

    /// A part of a response was sent: clients may ping once for each, to measure bandwidth.
    pub(super) fn reset_strikes(&self) {
        self.strikes.set(0);
        self.last.set(None);
    }

    fn send(&self, frame: &[u8]) {
        self.waiting.borrow_mut().extend_from_slice(frame);
        self.has_waiting.set(true);
    }
}

/// The head of a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    pub(super) kind: u8,
    pub(super) flags: u8,
    /// It has no payload except padding.
    pub(super) is_empty: bool,
}

impl Frame {
    pub(super) fn is_ping(self) -> bool {
        self.kind == 6 && self.flags & 1 == 0
    }

    /// DATA or HEADERS.
    pub(super) fn is_of_message(self) -> bool {
        self.kind <= 1
    }
}

/// The flag `PADDED` of a DATA frame, whose payload begins with the length of the padding.
const PADDED: u8 = 8;

/// Finds the frames in the bytes of one direction, after the preface.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// The frame header of RFC 9113 §4.1 and the length of the padding.
    head: [u8; 10],
    known: usize,
    /// Bytes of the payload that have not passed.
    payload: usize,
}

impl Frames {
    /// Calls `seen` with each frame whose header ends in these bytes.
    pub(super) fn each(&mut self, mut bytes: &[u8], mut seen: impl FnMut(Frame)) {
        while !bytes.is_empty() {
            if self.payload > 0 {
                let length = self.payload.min(bytes.len());
                self.payload -= length;
                bytes = &bytes[length..];
                continue;
            }
            let length = bytes.len().min(self.head_length() - self.known);
            self.head[self.known..self.known + length].copy_from_slice(&bytes[..length]);
            self.known += length;
            bytes = &bytes[length..];
            if self.known == self.head_length() {
                seen(self.frame());
                self.payload = self.length() + 9 - self.known;
                self.known = 0;
            }
        }
    }

    fn length(&self) -> usize {
        let [a, b, c, ..] = self.head;
        u32::from_be_bytes([0, a, b, c]) as usize
    }

    fn head_length(&self) -> usize {
        let is_padded = self.known >= 9 && self.head[3] == 0 && self.head[4] & PADDED != 0;
        9 + usize::from(is_padded && self.length() > 0)
    }

    fn frame(&self) -> Frame {
        let [.., kind, flags, _, _, _, _, padding] = self.head;
        let padding = match self.known {
            10 => usize::from(padding) + 1,
            _ => 0,
        };
        Frame {
            kind,
            flags,
            is_empty: self.length() <= padding,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACKNOWLEDGED: &[u8] = b"\0\0\x08\x06\x01\0\0\0\0weftping";
    const DATA: &[u8] = b"\0\0\x0b\0\0\0\0\0\x01\0\0\x08\x06\0\0\0\0\0\0\0";

    fn count(wire: &[u8], size: usize, is_meant: impl Fn(Frame) -> bool) -> usize {
        let mut frames = Frames::default();
        let mut found = 0;
        for chunk in wire.chunks(size) {
            frames.each(chunk, |frame| found += usize::from(is_meant(frame)));
        }
        found
    }

    #[test]
    fn pings_are_found_however_the_bytes_are_split() {
        let wire = [PING, DATA, ACKNOWLEDGED, PING].concat();
        for size in 1..wire.len() {
            assert_eq!(count(&wire, size, Frame::is_ping), 2, "in chunks of {size}");
            let messages = count(&wire, size, Frame::is_of_message);
            assert_eq!(messages, 1, "in chunks of {size}");
        }
    }

    #[test]
    fn a_frame_that_is_all_padding_is_empty() {
        let padding = b"\0\0\x03\0\x08\0\0\0\x01\x02\0\0";
        let padded = b"\0\0\x03\0\x08\0\0\0\x01\x01a\0";
        let none = b"\0\0\0\0\0\0\0\0\x01";
        let wire = [&padding[..], padded, none, PING, DATA].concat();
        for size in 1..wire.len() {
            let empty = |frame: Frame| frame.is_of_message() && frame.is_empty;
            assert_eq!(count(&wire, size, empty), 2, "in chunks of {size}");
            assert_eq!(count(&wire, size, |_| true), 5, "in chunks of {size}");
        }
    }

    #[test]
    fn the_third_ping_too_early_is_one_too_many() {
        let keepalive = Keepalive::default();
        let minimum = Duration::from_secs(300);
        assert!(keepalive.count_pings(3, minimum));
        assert!(!keepalive.count_pings(1, minimum));
        let goaway = b"\0\0\x16\x07\0\0\0\0\0\x7f\xff\xff\xff\0\0\0\x0btoo_many_pings";
        assert_eq!(keepalive.waiting.borrow()[..], goaway[..]);
        keepalive.count_pings(1, minimum);
        assert_eq!(keepalive.waiting.borrow().len(), goaway.len());
    }

    #[test]
    fn pings_between_answers_are_forgiven() {
        let keepalive = Keepalive::default();
        for _ in 0..100 {
            assert!(keepalive.count_pings(2, Duration::from_secs(300)));
            keepalive.reset_strikes();
        }
    }

    #[test]
    fn pings_that_keep_their_distance_are_welcome() {
        let keepalive = Keepalive::default();
        assert!(keepalive.count_pings(100, Duration::ZERO));
    }

    #[test]
    fn a_silent_client_is_asked_once_and_then_dead() {
        let keepalive = Keepalive::default();
        keepalive.received(10);
        assert_eq!(keepalive.check(13, 4, 2), KeepaliveAction::None);
        assert_eq!(keepalive.check(14, 4, 2), KeepaliveAction::Ping);
        assert_eq!(*keepalive.waiting.borrow(), PING);
        assert_eq!(keepalive.check(15, 4, 2), KeepaliveAction::None);
        assert_eq!(keepalive.check(16, 4, 2), KeepaliveAction::TimedOut);
        keepalive.received(16);
        assert_eq!(keepalive.check(17, 4, 2), KeepaliveAction::None);
    }
}
