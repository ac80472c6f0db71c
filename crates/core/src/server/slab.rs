/// Names an entry for as long as its slab lives: slot and generation, so that an old id never finds a new entry. Positive as `i64`.
pub type Id = u64;

const SLOT_BITS: u32 = 24;
const SLOT_MASK: u64 = (1 << SLOT_BITS) - 1;

/// Entries by id, found and iterated at the cost of a vector index.
pub(crate) struct Slab<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

struct Slot<T> {
    generation: u64,
    entry: Option<T>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    /// The id of the entry that is inserted next.
    pub(crate) fn next_id(&self) -> Id {
        let index = self
            .free
            .last()
            .map_or(self.slots.len(), |index| *index as usize);
        let generation = self.slots.get(index).map_or(0, |slot| slot.generation);
        ((generation + 1) << SLOT_BITS) | index as u64
    }

    pub(crate) fn insert(&mut self, entry: T) -> Id {
        let id = self.next_id();
        let slot = Slot {
            generation: id >> SLOT_BITS,
            entry: Some(entry),
        };
        match self.free.pop() {
            Some(index) => self.slots[index as usize] = slot,
            None => self.slots.push(slot),
        }
        id
    }

    pub(crate) fn remove(&mut self, id: Id) -> Option<T> {
        let index = (id & SLOT_MASK) as usize;
        let slot = self.slots.get_mut(index)?;
        if slot.generation != id >> SLOT_BITS {
            return None;
        }
        let entry = slot.entry.take()?;
        self.free.push(index as u32);
        Some(entry)
    }

    pub(crate) fn get(&self, id: Id) -> Option<&T> {
        let slot = self.slots.get((id & SLOT_MASK) as usize)?;
        slot.entry
            .as_ref()
            .filter(|_| slot.generation == id >> SLOT_BITS)
    }

    pub(crate) fn get_mut(&mut self, id: Id) -> Option<&mut T> {
        let slot = self.slots.get_mut((id & SLOT_MASK) as usize)?;
        slot.entry
            .as_mut()
            .filter(|_| slot.generation == id >> SLOT_BITS)
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(|slot| slot.entry.as_ref())
    }

    /// The ids of all entries.
    pub(crate) fn ids(&self) -> impl Iterator<Item = Id> {
        let slots = self.slots.iter().zip(0_u64..);
        slots
            .filter(|(slot, _)| slot.entry.is_some())
            .map(|(slot, index)| (slot.generation << SLOT_BITS) | index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_never_used_again_although_its_slot_is() {
        let mut slab = Slab::default();
        let first = slab.insert("first");
        assert_eq!(slab.remove(first), Some("first"));
        let second = slab.next_id();
        assert_eq!(slab.insert("second"), second);
        assert_ne!(first, second);
        assert!(slab.get(first).is_none() && slab.get_mut(first).is_none());
        assert!(slab.remove(first).is_none());
        assert_eq!(slab.get(second), Some(&"second"));
        assert_eq!(slab.len(), 1);
        assert_eq!(slab.slots.len(), 1);
    }

    #[test]
    fn only_open_entries_are_iterated() {
        let mut slab = Slab::default();
        let ids: Vec<Id> = (0..4).map(|number| slab.insert(number)).collect();
        slab.remove(ids[1]);
        slab.remove(ids[3]);
        assert!(slab.iter().eq(&[0, 2]));
        assert!(slab.ids().eq([ids[0], ids[2]]));
    }
}
