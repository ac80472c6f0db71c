//! Tracks which deliveries of a channel are finished, and acknowledges them with as few frames as possible.

use std::collections::VecDeque;

use super::codec::method;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Outstanding,
    /// Finished, and the broker does not know yet.
    Finished,
    /// Finished since before the last sweep, behind an older delivery that still runs.
    Straggling,
    /// The broker knows, or will from a frame already queued.
    Settled,
}

/// Which settled deliveries to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Collect {
    /// The contiguous prefix; others only if they alone hold `stragglers` slots or more.
    Prefix {
        stragglers: usize,
    },
    /// The prefix, and single deliveries after an unfinished one since the last sweep.
    Sweep,
    Everything,
}

/// The un-acked window of one channel. Delivery tags count up from 1 on every channel without gaps.
#[derive(Debug)]
pub(super) struct AckWindow {
    /// Tag of the first entry.
    first: u64,
    states: VecDeque<State>,
    /// Entries that are finished or straggling.
    unsent: usize,
    rejected: Vec<(u64, bool)>,
}

impl Default for AckWindow {
    fn default() -> Self {
        Self {
            first: 1,
            states: VecDeque::new(),
            unsent: 0,
            rejected: Vec::new(),
        }
    }
}

impl AckWindow {
    /// Notes a delivery; false if its tag is not the next one.
    pub(super) fn delivered(&mut self, tag: u64) -> bool {
        let expected = self.first + self.states.len() as u64;
        self.states.push_back(State::Outstanding);
        tag == expected
    }

    /// False if the tag is unknown or was settled before.
    pub(super) fn ack(&mut self, tag: u64) -> bool {
        let settled = self.settle(tag, State::Finished);
        self.unsent += usize::from(settled);
        settled
    }

    /// False if the tag is unknown or was settled before.
    pub(super) fn reject(&mut self, tag: u64, requeue: bool) -> bool {
        let settled = self.settle(tag, State::Settled);
        if settled {
            self.rejected.push((tag, requeue));
        }
        settled
    }

    fn settle(&mut self, tag: u64, to: State) -> bool {
        let index = tag.checked_sub(self.first).map(|index| index as usize);
        match index.and_then(|index| self.states.get_mut(index)) {
            Some(state @ State::Outstanding) => {
                *state = to;
                true
            }
            _ => false,
        }
    }

    /// The length of the window: deliveries from the oldest one that is not settled on.
    pub(super) fn unfinished(&self) -> usize {
        self.states.len()
    }

    /// How many finished or rejected deliveries the broker has not been told about.
    pub(super) fn unsent(&self) -> usize {
        self.unsent + self.rejected.len()
    }

    /// Appends the frames for the deliveries that `how` selects. Rejections go first: a later `multiple` must not cover them.
    pub(super) fn collect(&mut self, out: &mut Vec<u8>, channel: u16, how: Collect) {
        for (tag, requeue) in self.rejected.drain(..) {
            method::put_reject(out, channel, tag, requeue);
        }
        self.collect_prefix(out, channel);
        match how {
            Collect::Prefix { stragglers } if self.unsent < stragglers => {}
            Collect::Sweep => self.collect_stragglers(out, channel),
            Collect::Prefix { .. } | Collect::Everything => self.collect_rest(out, channel),
        }
    }

    fn collect_prefix(&mut self, out: &mut Vec<u8>, channel: u16) {
        let mut last = 0;
        let mut count = 0;
        while let Some(state) = self.states.front().copied() {
            if state == State::Outstanding {
                break;
            }
            if state != State::Settled {
                // The broker refuses a tag it no longer holds, so `multiple` names one that is really outstanding.
                last = self.first;
                count += 1;
            }
            self.states.pop_front();
            self.first += 1;
        }
        if count > 0 {
            method::put_ack(out, channel, last, count > 1);
            self.unsent -= count;
        }
    }

    fn collect_stragglers(&mut self, out: &mut Vec<u8>, channel: u16) {
        if self.unsent == 0 {
            return;
        }
        for (tag, state) in (self.first..).zip(&mut self.states) {
            match state {
                State::Straggling => {
                    method::put_ack(out, channel, tag, false);
                    *state = State::Settled;
                    self.unsent -= 1;
                }
                State::Finished => *state = State::Straggling,
                State::Outstanding | State::Settled => {}
            }
        }
    }

    fn collect_rest(&mut self, out: &mut Vec<u8>, channel: u16) {
        if self.unsent == 0 {
            return;
        }
        for (tag, state) in (self.first..).zip(&mut self.states) {
            if matches!(state, State::Finished | State::Straggling) {
                method::put_ack(out, channel, tag, false);
                *state = State::Settled;
            }
        }
        self.unsent = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::super::codec::frame;
    use super::super::codec::method::{ACK, REJECT};
    use super::*;

    /// A broker that applies the frames and refuses tags that are not outstanding.
    struct Broker {
        outstanding: Vec<u64>,
        requeued: Vec<u64>,
        frames: usize,
    }

    impl Broker {
        fn with(tags: u64) -> (Self, AckWindow) {
            let mut window = AckWindow::default();
            assert!((1..=tags).all(|tag| window.delivered(tag)));
            let broker = Self {
                outstanding: (1..=tags).collect(),
                requeued: Vec::new(),
                frames: 0,
            };
            (broker, window)
        }

        fn receive(&mut self, window: &mut AckWindow, how: Collect) {
            let mut bytes = Vec::new();
            window.collect(&mut bytes, 1, how);
            let mut rest = &bytes[..];
            while let Some(part) = frame::parse(rest, 4096).unwrap() {
                self.apply(part.payload);
                self.frames += 1;
                rest = &rest[part.len()..];
            }
        }

        fn apply(&mut self, payload: &[u8]) {
            let method = u32::from_be_bytes(payload[..4].try_into().unwrap());
            let tag = u64::from_be_bytes(payload[4..12].try_into().unwrap());
            let flag = payload[12] == 1;
            assert!(
                self.outstanding.contains(&tag),
                "unknown delivery tag {tag}"
            );
            match method {
                ACK if flag => self.outstanding.retain(|known| *known > tag),
                ACK => self.outstanding.retain(|known| *known != tag),
                REJECT => {
                    self.outstanding.retain(|known| *known != tag);
                    self.requeued.push(tag);
                }
                other => panic!("unexpected method {other:#x}"),
            }
        }
    }

    #[test]
    fn a_contiguous_prefix_is_one_frame() {
        let (mut broker, mut window) = Broker::with(100);
        (1..=60).rev().for_each(|tag| assert!(window.ack(tag)));
        broker.receive(&mut window, Collect::Prefix { stragglers: 200 });
        assert_eq!(broker.outstanding, (61..=100).collect::<Vec<_>>());
        assert_eq!((broker.frames, window.unsent()), (1, 0));
    }

    #[test]
    fn a_slow_oldest_delivery_holds_the_others_for_two_ticks_at_most() {
        let (mut broker, mut window) = Broker::with(4);
        (2..=4).for_each(|tag| assert!(window.ack(tag)));
        broker.receive(&mut window, Collect::Sweep);
        assert_eq!(broker.frames, 0);
        broker.receive(&mut window, Collect::Sweep);
        assert_eq!(
            (broker.outstanding.as_slice(), broker.frames),
            (&[1][..], 3)
        );
        assert!(window.ack(1));
        broker.receive(&mut window, Collect::Sweep);
        assert!(broker.outstanding.is_empty());
    }

    #[test]
    fn stragglers_that_hold_many_slots_are_not_kept_for_a_sweep() {
        let (mut broker, mut window) = Broker::with(10);
        (2..=10).for_each(|tag| assert!(window.ack(tag)));
        broker.receive(&mut window, Collect::Prefix { stragglers: 5 });
        assert_eq!(broker.outstanding, [1]);
    }

    #[test]
    fn a_rejected_delivery_is_never_covered_by_multiple() {
        let (mut broker, mut window) = Broker::with(3);
        assert!(window.ack(1) && window.reject(2, true) && window.ack(3));
        broker.receive(&mut window, Collect::Sweep);
        assert_eq!(
            (broker.requeued.as_slice(), broker.outstanding.len()),
            (&[2][..], 0)
        );
    }

    #[test]
    fn a_second_settlement_and_an_unknown_tag_are_ignored() {
        let (mut broker, mut window) = Broker::with(2);
        assert!(window.ack(2));
        assert!(!window.ack(2) && !window.reject(2, true) && !window.ack(3) && !window.ack(0));
        broker.receive(&mut window, Collect::Everything);
        assert!(!window.ack(2));
        assert_eq!(broker.outstanding, [1]);
    }

    #[test]
    fn any_order_of_settlements_ends_with_nothing_outstanding() {
        let mut seed = 7u64;
        let mut random = move |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % below
        };
        for _ in 0..500 {
            let (mut broker, mut window) = Broker::with(64);
            let mut running: Vec<u64> = (1..=64).collect();
            while !running.is_empty() {
                let tag = running.swap_remove(random(running.len().min(20)));
                let settled = if random(5) == 0 {
                    window.reject(tag, true)
                } else {
                    window.ack(tag)
                };
                assert!(settled);
                match random(8) {
                    0 => broker.receive(&mut window, Collect::Sweep),
                    1 => broker.receive(&mut window, Collect::Prefix { stragglers: 8 }),
                    2 => broker.receive(&mut window, Collect::Everything),
                    _ => {}
                }
            }
            broker.receive(&mut window, Collect::Everything);
            assert!(broker.outstanding.is_empty());
            assert_eq!(window.unsent(), 0);
        }
    }
}
