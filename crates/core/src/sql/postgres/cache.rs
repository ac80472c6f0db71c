use std::cell::Cell;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;
use std::sync::Arc;

use super::decode::RowShape;
use super::session_state::SessionState;
use super::types::Type;

/// A prepared statement and its name on the server.
pub(super) struct Prepared {
    pub(super) name: String,
    pub(super) parameters: Box<[Type]>,
    pub(super) shape: RowShape,
    pub(super) session_state: SessionState,
    used: Cell<u64>,
}

impl Prepared {
    pub(super) fn new(
        name: String,
        parameters: Vec<Type>,
        shape: RowShape,
        session_state: SessionState,
    ) -> Self {
        Self {
            name,
            parameters: parameters.into(),
            shape,
            session_state,
            used: Cell::new(0),
        }
    }
}

/// The prepared statements of one connection by their text. Beyond the limit the least recently used one is evicted.
pub(super) struct StatementCache {
    limit: usize,
    entries: HashMap<Arc<str>, Rc<Prepared>>,
    clock: Cell<u64>,
    /// Names to close with the next batch.
    evicted: Vec<String>,
    /// Prefix of every name. A pooler may assign a server connection on which another client has prepared statements;
    /// their names must not collide with these.
    prefix: u32,
    next_name: u64,
}

impl StatementCache {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            entries: HashMap::new(),
            clock: Cell::new(0),
            evicted: Vec::new(),
            prefix: RandomState::new().hash_one(limit) as u32,
            next_name: 0,
        }
    }

    /// False if statements are sent without a name.
    pub(super) fn is_enabled(&self) -> bool {
        self.limit > 0
    }

    pub(super) fn get(&self, sql: &str) -> Option<Rc<Prepared>> {
        let prepared = self.entries.get(sql)?;
        self.clock.set(self.clock.get() + 1);
        prepared.used.set(self.clock.get());
        Some(Rc::clone(prepared))
    }

    pub(super) fn fresh_name(&mut self) -> String {
        self.next_name += 1;
        format!("w{:x}_{}", self.prefix, self.next_name)
    }

    pub(super) fn insert(&mut self, sql: Arc<str>, prepared: Prepared) {
        self.clock.set(self.clock.get() + 1);
        prepared.used.set(self.clock.get());
        self.entries.insert(sql, Rc::new(prepared));
    }

    /// Removes a statement whose plan is outdated.
    pub(super) fn remove(&mut self, sql: &str) {
        if let Some(prepared) = self.entries.remove(sql) {
            self.evicted.push(prepared.name.clone());
        }
    }

    /// Closes a statement that is not to be used again.
    pub(super) fn discard(&mut self, name: String) {
        self.evicted.push(name);
    }

    /// Removes all statements, because the server no longer has them.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.evicted.clear();
    }

    /// Evicts down to the limit. Not called while a batch is built, which may need more at once.
    pub(super) fn trim(&mut self) {
        while self.entries.len() > self.limit {
            let oldest = self
                .entries
                .iter()
                .min_by_key(|(_, prepared)| prepared.used.get())
                .map(|(sql, _)| Arc::clone(sql));
            match oldest {
                Some(sql) => self.remove(&sql),
                None => return,
            }
        }
    }

    pub(super) fn take_evicted(&mut self) -> Vec<String> {
        std::mem::take(&mut self.evicted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insert(cache: &mut StatementCache, sql: &str) -> String {
        let name = cache.fresh_name();
        let prepared = Prepared::new(
            name.clone(),
            vec![],
            RowShape::default(),
            SessionState::default(),
        );
        cache.insert(sql.into(), prepared);
        name
    }

    #[test]
    fn no_two_connections_use_the_same_names() {
        let (mut one, mut other) = (StatementCache::new(2), StatementCache::new(2));
        assert_ne!(one.fresh_name(), other.fresh_name());
    }

    #[test]
    fn beyond_the_limit_the_statement_not_used_for_longest_is_closed() {
        let mut cache = StatementCache::new(2);
        insert(&mut cache, "a");
        let second = insert(&mut cache, "b");
        insert(&mut cache, "c");
        assert!(cache.get("a").is_some());
        cache.trim();
        assert_eq!(cache.take_evicted(), vec![second]);
        assert!(cache.get("c").is_some() && cache.get("b").is_none());
        assert!(cache.take_evicted().is_empty());
    }
}
