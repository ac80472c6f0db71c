//! Damage of every kind.

use bytes::Bytes;
use tokio::time::{Duration, timeout};

use super::fuzz::{Random, Rounds};
use super::support::{STREAM, UNARY, connect, frame, head};
use super::{assert_alive, call, run, serve};

impl Random {
    /// Mostly messages, with something wrong now and then.
    fn wire(&mut self) -> Vec<u8> {
        let mut wire = Vec::new();
        for _ in 0..self.below(5) {
            let message = self.bytes(60);
            let flags = match self.below(12) {
                0 => self.next() as u8,
                1 => 1,
                _ => 0,
            };
            let mut one = frame(flags, &message).to_vec();
            match self.below(15) {
                0 => one[1] = self.next() as u8,
                1 => one[4] ^= self.next() as u8,
                2 => one.truncate(self.below(one.len() as u64 + 1) as usize),
                _ => {}
            }
            wire.extend(one);
        }
        wire
    }

    fn chunks(&mut self, mut wire: Vec<u8>) -> Vec<Bytes> {
        let mut chunks = Vec::new();
        while !wire.is_empty() {
            let length = (1 + self.below(20) as usize).min(wire.len());
            let rest = wire.split_off(length);
            chunks.push(Bytes::from(wire));
            wire = rest;
        }
        chunks
    }
}

#[test]
fn whatever_a_client_sends_its_call_ends_with_a_status_that_says_why_and_others_go_on() {
    // OK, UNIMPLEMENTED (not one message), INTERNAL (malformed), RESOURCE_EXHAUSTED (too large)
    const ALLOWED: [&str; 4] = ["0", "12", "13", "8"];
    run(async {
        let client = connect(serve()).await;
        let rounds = Rounds::new(1_000);
        let is_usual = rounds.is_usual();
        let mut seen = std::collections::BTreeMap::new();
        for mut random in rounds {
            let path = [UNARY, STREAM][random.below(2) as usize];
            let encoding = ["identity", "gzip", "deflate", "zstd"][random.below(4) as usize];
            let wire = random.wire();
            let chunks = random.chunks(wire.clone());
            let request = head(path, &[("grpc-encoding", encoding)]);
            let answer = timeout(Duration::from_secs(5), call(&client, request, chunks)).await;
            let status = match answer {
                Ok(answer) => answer.unwrap().status.unwrap_or_default(),
                Err(_) => "no end".to_owned(),
            };
            assert!(
                ALLOWED.contains(&status.as_str()),
                "{wire:02x?} to {path} with {encoding} ended with {status:?}"
            );
            *seen.entry(status).or_insert(0) += 1;
            if random.below(100) == 0 {
                assert_alive(&client).await;
            }
        }
        assert_alive(&client).await;
        for status in ALLOWED {
            assert!(
                !is_usual || seen.contains_key(status),
                "no call ended with {status}: {seen:?}"
            );
        }
    });
}
