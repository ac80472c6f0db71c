//! Pings of HTTP/2 (RFC 9113 §6.7), ours and the client's.
//!
//! hyper reads a clock for every frame once it is to ping, and h2 answers pings without telling anybody. So frames are
//! watched as they pass by, and ours go between two of theirs.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use bytes::BytesMut;

use super::sweep::Tick;

const PING: &[u8] = b"\0\0\x08\x06\0\0\0\0\0weftping";
/// GOAWAY with the highest stream there can be, `ENHANCE_YOUR_CALM`, and why.
const TOO_MANY_PINGS: &[u8] = b"\0\0\x16\x07\0\0\0\0\0\x7f\xff\xff\xff\0\0\0\x0btoo_many_pings";
/// How often a client may ping too early, as grpc-go and gRPC's core have it.
const STRIKES: u32 = 2;

/// What a connection has to do with pings.
#[derive(Debug, Default)]
pub(super) struct Pings {
    /// Frames of ours that wait for their turn.
    pub(super) waiting: RefCell<BytesMut>,
    pub(super) has_waiting: Cell<bool>,
    /// Nothing more is read, and what waits is the last that is sent.
    pub(super) is_over: Cell<bool>,
    heard: Cell<Tick>,
    asked: Cell<Option<Tick>>,
    last: Cell<Option<Instant>>,
    strikes: Cell<u32>,
}

/// What to do about a silent client.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Silence {
    Wait,
    Ask,
    Dead,
}

impl Pings {
    pub(super) fn heard(&self, now: Tick) {
        self.heard.set(now);
        self.asked.set(None);
    }

    /// To be asked at every tick at which nothing was heard.
    pub(super) fn silence(&self, now: Tick, interval: Tick, timeout: Tick) -> Silence {
        match self.asked.get() {
            Some(asked) if now.saturating_sub(asked) >= timeout => Silence::Dead,
            None if now.saturating_sub(self.heard.get()) >= interval => {
                self.asked.set(Some(now));
                self.send(PING);
                Silence::Ask
            }
            _ => Silence::Wait,
        }
    }

    /// The client has pinged that often. False when that was too often: then the connection is over.
    pub(super) fn count(&self, pings: u32, minimum: Duration) -> bool {
        for _ in 0..pings {
            let now = Instant::now();
            let last = self.last.replace(Some(now));
            if last.is_some_and(|last| now.duration_since(last) < minimum) {
                self.strikes.set(self.strikes.get() + 1);
            }
        }
        if self.strikes.get() > STRIKES && !self.is_over.replace(true) {
            self.send(TOO_MANY_PINGS);
        }
        !self.is_over.get()
    }

    /// Something of an answer was sent: clients may ping for every one, to measure the way.
    pub(super) fn forgive(&self) {
        self.strikes.set(0);
        self.last.set(None);
    }

    fn send(&self, frame: &[u8]) {
        self.waiting.borrow_mut().extend_from_slice(frame);
        self.has_waiting.set(true);
    }
}

/// Counts the frames of a kind in what one side sends, after the preface.
#[derive(Debug, Default)]
pub(super) struct Frames {
    head: [u8; 9],
    known: usize,
    /// Bytes of a payload that are still to come.
    payload: usize,
}

impl Frames {
    /// Pings that begin in these bytes; answers to pings do not count.
    pub(super) fn pings(&mut self, bytes: &[u8]) -> u32 {
        self.count(bytes, |kind, flags| kind == 6 && flags & 1 == 0)
    }

    /// Parts of answers that begin in these bytes: DATA and HEADERS.
    pub(super) fn answers(&mut self, bytes: &[u8]) -> u32 {
        self.count(bytes, |kind, _| kind <= 1)
    }

    fn count(&mut self, mut bytes: &[u8], is_meant: impl Fn(u8, u8) -> bool) -> u32 {
        let mut count = 0;
        while !bytes.is_empty() {
            if self.payload > 0 {
                let length = self.payload.min(bytes.len());
                self.payload -= length;
                bytes = &bytes[length..];
                continue;
            }
            let length = bytes.len().min(self.head.len() - self.known);
            self.head[self.known..self.known + length].copy_from_slice(&bytes[..length]);
            self.known += length;
            bytes = &bytes[length..];
            if self.known == self.head.len() {
                let [a, b, c, kind, flags, ..] = self.head;
                self.payload = u32::from_be_bytes([0, a, b, c]) as usize;
                self.known = 0;
                count += u32::from(is_meant(kind, flags));
            }
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACKNOWLEDGED: &[u8] = b"\0\0\x08\x06\x01\0\0\0\0weftping";
    const DATA: &[u8] = b"\0\0\x0b\0\0\0\0\0\x01\0\0\x08\x06\0\0\0\0\0\0\0";

    #[test]
    fn pings_are_found_however_the_bytes_are_split() {
        let wire = [PING, DATA, ACKNOWLEDGED, PING].concat();
        for size in 1..wire.len() {
            let mut frames = Frames::default();
            let found: u32 = wire.chunks(size).map(|piece| frames.pings(piece)).sum();
            assert_eq!(found, 2, "in pieces of {size}");
            let mut frames = Frames::default();
            let found: u32 = wire.chunks(size).map(|piece| frames.answers(piece)).sum();
            assert_eq!(found, 1, "in pieces of {size}");
        }
    }

    #[test]
    fn the_third_ping_too_early_is_one_too_many() {
        let pings = Pings::default();
        let minimum = Duration::from_secs(300);
        assert!(pings.count(3, minimum));
        assert!(!pings.count(1, minimum));
        assert_eq!(*pings.waiting.borrow(), TOO_MANY_PINGS);
        assert!(!pings.count(1, minimum));
        assert_eq!(pings.waiting.borrow().len(), TOO_MANY_PINGS.len());
    }

    #[test]
    fn pings_between_answers_are_forgiven() {
        let pings = Pings::default();
        for _ in 0..100 {
            assert!(pings.count(2, Duration::from_secs(300)));
            pings.forgive();
        }
    }

    #[test]
    fn pings_that_keep_their_distance_are_welcome() {
        let pings = Pings::default();
        assert!(pings.count(100, Duration::ZERO));
    }

    #[test]
    fn a_silent_client_is_asked_once_and_then_dead() {
        let pings = Pings::default();
        pings.heard(10);
        assert_eq!(pings.silence(13, 4, 2), Silence::Wait);
        assert_eq!(pings.silence(14, 4, 2), Silence::Ask);
        assert_eq!(*pings.waiting.borrow(), PING);
        assert_eq!(pings.silence(15, 4, 2), Silence::Wait);
        assert_eq!(pings.silence(16, 4, 2), Silence::Dead);
        pings.heard(16);
        assert_eq!(pings.silence(17, 4, 2), Silence::Wait);
    }
}
