use super::json::{from_json, to_json};
use super::tests::schema;
use super::wire::{put_delimited, put_varint};
use super::*;
use crate::fuzz::{Random, Rounds};

impl Random {
    /// Bytes that are a message in most places, so that they get past the first tag.
    pub(super) fn message(&mut self, depth: u64) -> Vec<u8> {
        let mut out = Vec::new();
        for _ in 0..self.below(6) {
            let number = if self.below(9) == 0 {
                1000
            } else {
                1 + self.below(9)
            };
            let wire = [0, 2, 2, 2, 1, 5, 3, 4][self.below(8) as usize];
            put_varint(&mut out, number << 3 | wire);
            match wire {
                0 => put_varint(&mut out, self.next() >> self.below(64)),
                1 => out.extend(self.next().to_le_bytes()),
                5 => out.extend((self.next() as u32).to_le_bytes()),
                2 if depth > 0 => {
                    let nested = self.message(depth - 1);
                    put_delimited(&mut out, &nested);
                }
                2 => put_delimited(&mut out, &self.next().to_le_bytes()),
                _ => {}
            }
        }
        if self.below(3) == 0 && !out.is_empty() {
            let place = self.below(out.len() as u64) as usize;
            out[place] = self.next() as u8;
        }
        out
    }
}

#[test]
fn no_bytes_make_the_decoder_panic_and_what_it_takes_has_json_that_it_takes_back() {
    let (schema, id) = schema();
    let rounds = Rounds::new(60_000);
    let is_usual = rounds.is_usual();
    let mut taken = 0;
    for mut random in rounds {
        let bytes = if random.below(4) == 0 {
            random.bytes(40)
        } else {
            random.message(4)
        };
        if Tree::decode(&schema, id, &bytes).is_err() {
            continue;
        }
        taken += 1;
        let json = to_json(&schema, id, &bytes).unwrap();
        let back = from_json(&schema, id, json.as_bytes(), false).unwrap();
        assert_eq!(json, to_json(&schema, id, &back).unwrap(), "{bytes:?}");
    }
    assert!(
        !is_usual || taken > 5_000,
        "only {taken} of the messages were valid"
    );
}

#[test]
fn no_text_makes_the_json_reader_panic() {
    let (schema, id) = schema();
    let pieces = [
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"number\"",
        "\"text\"",
        "\"child\"",
        "\"children\"",
        "\"numbers\"",
        "\"named\"",
        "\"colour\"",
        "\"ratio\"",
        "1",
        "-1",
        "1e400",
        "1.5",
        "null",
        "true",
        "\"RED\"",
        "\"\\ud800\"",
        "\"x\"",
    ];
    for mut random in Rounds::new(40_000) {
        let count = random.below(14);
        let text: String = (0..count)
            .map(|_| pieces[random.below(pieces.len() as u64) as usize])
            .collect();
        let _ = from_json(&schema, id, text.as_bytes(), random.below(2) == 0);
    }
}

#[test]
fn no_descriptor_makes_the_schema_panic_and_a_refused_one_leaves_nothing_behind() {
    for mut random in Rounds::new(20_000) {
        let mut schema = Schema::default();
        if schema.add(&random.message(5)).is_err() {
            assert!(schema.message("t.All").is_none());
        }
    }
}
