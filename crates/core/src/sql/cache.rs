//! A bounded map keyed by SQL text.

use std::collections::HashMap;
use std::sync::Arc;

/// Keeps at least the `capacity` entries used last, in two generations. When the younger one is full, the older one, whose
/// entries were not used for a while, is evicted. Hits and evictions take constant time.
#[derive(Debug)]
pub(crate) struct Cache<V> {
    capacity: usize,
    young: HashMap<Arc<str>, V>,
    old: HashMap<Arc<str>, V>,
}

impl<V> Cache<V> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity: capacity.max(1),
            young: HashMap::new(),
            old: HashMap::new(),
        }
    }

    pub(crate) fn contains(&self, key: &str) -> bool {
        self.young.contains_key(key) || self.old.contains_key(key)
    }

    /// The entry of `key`; `make` creates a missing one, with the key to store.
    pub(crate) fn find_or_insert<E>(
        &mut self,
        key: &str,
        make: impl FnOnce() -> Result<(Arc<str>, V), E>,
    ) -> Result<&mut V, E> {
        if !self.young.contains_key(key) {
            let (key, value) = match self.old.remove_entry(key) {
                Some(entry) => entry,
                None => make()?,
            };
            if self.young.len() >= self.capacity {
                self.old = std::mem::take(&mut self.young);
            }
            return Ok(self.young.entry(key).or_insert(value));
        }
        // A second look-up, because the borrow checker rejects a return from the first one.
        match self.young.get_mut(key) {
            Some(value) => Ok(value),
            None => unreachable!("the key was there"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cached(cache: &mut Cache<u32>, key: &str, value: u32) -> u32 {
        *cache
            .find_or_insert(key, || Ok::<_, ()>((key.into(), value)))
            .unwrap()
    }

    #[test]
    fn an_entry_in_use_survives_and_an_unused_one_goes() {
        let mut cache = Cache::new(2);
        assert_eq!(cached(&mut cache, "hot", 1), 1);
        for round in 0..10 {
            cached(&mut cache, &format!("cold {round}"), 0);
            assert_eq!(cached(&mut cache, "hot", 2), 1);
        }
        assert_eq!(cached(&mut cache, "cold 0", 3), 3);
        assert!(cache.young.len() + cache.old.len() <= 4);
    }

    #[test]
    fn a_failed_make_leaves_nothing_behind() {
        let mut cache = Cache::<u32>::new(2);
        assert_eq!(cache.find_or_insert("a", || Err("no")), Err("no"));
        assert_eq!(cached(&mut cache, "a", 5), 5);
    }
}
