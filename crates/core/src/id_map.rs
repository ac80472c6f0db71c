//! Maps by ids that a process counts itself. No stranger chooses them, so they need no hash that resists collisions, which costs more than
//! everything else in a look-up.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by numbers.
pub(crate) type IdMap<V> = HashMap<u64, V, BuildHasherDefault<IdHasher>>;

/// Spreads consecutive numbers over all bits: a hash table uses the upper ones as well as the lower.
#[derive(Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write_u64(&mut self, id: u64) {
        // 2^64 divided by the golden ratio: Knuth's multiplicative hashing (The Art of Computer Programming, volume 3, section 6.4).
        let spread = id.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = spread ^ (spread >> 32);
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0.wrapping_add(u64::from(*byte)));
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::{BuildHasher, BuildHasherDefault};

    use super::*;

    #[test]
    fn consecutive_ids_and_those_that_are_far_apart_differ_in_the_lowest_and_the_highest_bits() {
        let hash = |id: u64| BuildHasherDefault::<IdHasher>::default().hash_one(id);
        for step in [1, 2, 64, 1000] {
            let hashes: Vec<u64> = (0..1024).map(|number| hash(number * step)).collect();
            let lowest: HashSet<u64> = hashes.iter().map(|hash| hash % 1024).collect();
            let highest: HashSet<u64> = hashes.iter().map(|hash| hash >> 57).collect();
            assert!(lowest.len() > 400, "step {step}: {} of 1024", lowest.len());
            assert_eq!(highest.len(), 128, "step {step}");
        }
    }

    #[test]
    fn a_map_finds_what_it_was_given() {
        let mut map = IdMap::default();
        map.extend((1..1000).map(|id| (id, id * 2)));
        assert_eq!(map.remove(&500), Some(1000));
        assert_eq!((map.get(&500), map.get(&501)), (None, Some(&1002)));
    }
}
