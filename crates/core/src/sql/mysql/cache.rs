use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::statement_kind::StatementKind;

/// A prepared statement and its number on the server.
pub(super) struct Prepared {
    pub(super) id: u32,
    pub(super) parameters: u16,
    pub(super) kind: StatementKind,
    used: Cell<u64>,
}

/// The prepared statements of one connection by their text. Beyond the limit the least recently used one is evicted.
pub(super) struct StatementCache {
    limit: usize,
    entries: HashMap<Arc<str>, Rc<Prepared>>,
    clock: u64,
}

impl StatementCache {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            entries: HashMap::new(),
            clock: 0,
        }
    }

    pub(super) fn get(&mut self, sql: &str) -> Option<Rc<Prepared>> {
        let prepared = self.entries.get(sql)?;
        self.clock += 1;
        prepared.used.set(self.clock);
        Some(Rc::clone(prepared))
    }

    pub(super) fn insert(&mut self, sql: Arc<str>, id: u32, parameters: u16) {
        self.clock += 1;
        let prepared = Prepared {
            id,
            parameters,
            kind: StatementKind::of(&sql),
            used: Cell::new(self.clock),
        };
        self.entries.insert(sql, Rc::new(prepared));
    }

    /// Removes a statement that has become invalid and returns its number.
    pub(super) fn remove(&mut self, sql: &str) -> Option<u32> {
        self.entries.remove(sql).map(|prepared| prepared.id)
    }

    /// Removes all statements after a reset of the session.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    /// Evicts down to the limit and returns the numbers to close. Not called while a batch is built, which may need more at once.
    pub(super) fn trim(&mut self) -> Vec<u32> {
        let surplus = self.entries.len().saturating_sub(self.limit);
        if surplus == 0 {
            return Vec::new();
        }
        let mut ages: Vec<u64> = self.entries.values().map(|p| p.used.get()).collect();
        let (_, limit, _) = ages.select_nth_unstable(surplus - 1);
        let limit = *limit;
        let mut closed = Vec::with_capacity(surplus);
        self.entries.retain(|_, prepared| {
            let stays = prepared.used.get() > limit;
            if !stays {
                closed.push(prepared.id);
            }
            stays
        });
        closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statements_not_used_for_longest_are_closed() {
        let mut cache = StatementCache::new(2);
        for (id, sql) in ["SELECT 1", "SELECT 2", "SELECT 3"].into_iter().enumerate() {
            cache.insert(sql.into(), id as u32, 0);
        }
        assert!(cache.get("SELECT 1").is_some());
        assert_eq!(cache.trim(), [1]);
        assert!(cache.get("SELECT 2").is_none());
        assert!(cache.get("SELECT 3").is_some());
        assert!(cache.trim().is_empty());
    }
}
