use std::rc::Rc;

/// Names an entry for as long as the registry lives: slot and generation, so that an old id never finds a new entry.
pub type Id = u64;

const SLOT_BITS: u32 = 24;
const SLOT_MASK: u64 = (1 << SLOT_BITS) - 1;

/// What is open right now, found by id and walked through, at the price of a vector index.
pub(crate) struct Registry<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    len: usize,
}

struct Slot<T> {
    generation: u64,
    entry: Option<Rc<T>>,
}

impl<T> Default for Registry<T> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            len: 0,
        }
    }
}

impl<T> Registry<T> {
    /// `make` learns the id its entry has. Ids are positive as `i64`.
    pub(crate) fn insert(&mut self, make: impl FnOnce(Id) -> T) -> Rc<T> {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                generation: 0,
                entry: None,
            });
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        slot.generation += 1;
        let entry = Rc::new(make((slot.generation << SLOT_BITS) | u64::from(index)));
        slot.entry = Some(Rc::clone(&entry));
        self.len += 1;
        entry
    }

    pub(crate) fn remove(&mut self, id: Id) -> Option<Rc<T>> {
        let index = (id & SLOT_MASK) as usize;
        let slot = self.slots.get_mut(index)?;
        if slot.generation != id >> SLOT_BITS {
            return None;
        }
        let entry = slot.entry.take()?;
        self.free.push(index as u32);
        self.len -= 1;
        Some(entry)
    }

    pub(crate) fn get(&self, id: Id) -> Option<&Rc<T>> {
        let slot = self.slots.get((id & SLOT_MASK) as usize)?;
        slot.entry
            .as_ref()
            .filter(|_| slot.generation == id >> SLOT_BITS)
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Rc<T>> {
        self.slots.iter().filter_map(|slot| slot.entry.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_never_used_again_although_its_slot_is() {
        let mut registry = Registry::default();
        let first = *registry.insert(|id| id);
        assert_eq!(registry.remove(first).as_deref(), Some(&first));
        let second = *registry.insert(|id| id);
        assert_ne!(first, second);
        assert!(registry.get(first).is_none());
        assert!(registry.remove(first).is_none());
        assert_eq!(registry.get(second).map(|entry| **entry), Some(second));
        assert_eq!(registry.len(), 1);
        assert_eq!(registry.slots.len(), 1);
    }

    #[test]
    fn only_what_is_open_is_walked_through() {
        let mut registry = Registry::default();
        let ids: Vec<Id> = (0..4).map(|_| *registry.insert(|id| id)).collect();
        registry.remove(ids[1]);
        registry.remove(ids[3]);
        let open: Vec<Id> = registry.iter().map(|id| **id).collect();
        assert_eq!(open, [ids[0], ids[2]]);
    }
}
