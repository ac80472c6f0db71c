//! Rounds of random input, the same ones every time: each has a seed of its own.
//!
//! `WEFT_FUZZ_SECONDS` makes a test go on for so long with rounds that nobody has had before; `WEFT_FUZZ_SEED` repeats the one round
//! that a failure has named.

use std::time::{Duration, Instant, SystemTime};

/// Small and fast: xorshift64*.
#[derive(Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        // Neighbouring seeds must not begin alike, and 0 would stay 0.
        let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self((mixed ^ (mixed >> 31)).max(1))
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 32) % bound
    }

    /// Less than `bound` of them.
    pub fn bytes(&mut self, bound: u64) -> Vec<u8> {
        (0..self.below(bound)).map(|_| self.next() as u8).collect()
    }
}

/// How long a test goes on, where that was asked for.
pub fn long() -> Option<Duration> {
    number("WEFT_FUZZ_SECONDS").map(Duration::from_secs)
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The rounds of one test. Dropped by a panic it says how to repeat the last.
pub struct Rounds {
    next: u64,
    seed: u64,
    left: u64,
    end: Option<Instant>,
}

impl Rounds {
    /// So many, where the environment says nothing else.
    pub fn new(count: u64) -> Self {
        if let Some(seed) = number("WEFT_FUZZ_SEED") {
            return Self::from(seed, 1, None);
        }
        match long() {
            None => Self::from(1, count, None),
            Some(time) => {
                let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
                Self::from(now.as_nanos() as u64, u64::MAX, Some(Instant::now() + time))
            }
        }
    }

    fn from(next: u64, left: u64, end: Option<Instant>) -> Self {
        Self {
            next,
            seed: next,
            left,
            end,
        }
    }

    /// All of the usual rounds are run, so that what they must reach between them can be asked for.
    pub fn is_usual(&self) -> bool {
        self.end.is_none() && std::env::var_os("WEFT_FUZZ_SEED").is_none()
    }
}

impl Iterator for Rounds {
    type Item = Random;

    fn next(&mut self) -> Option<Random> {
        if self.left == 0 || self.end.is_some_and(|end| Instant::now() > end) {
            return None;
        }
        self.left -= 1;
        self.seed = self.next;
        self.next = self.next.wrapping_add(1);
        Some(Random::new(self.seed))
    }
}

impl Drop for Rounds {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("repeat it with WEFT_FUZZ_SEED={}", self.seed);
        }
    }
}
