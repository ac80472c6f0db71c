use std::cell::RefCell;
use std::rc::Rc;

use super::connection::Connection;
use super::context::Context;
use super::forwarded::TrustedProxies;
use super::limits::Limits;
use super::memory_trim::MemoryTrim;
use crate::server::{Id, Slab};

/// A server and its connections.
pub(super) struct Shared {
    pub(super) context: Rc<Context>,
    pub(super) connections: RefCell<Slab<Rc<Connection>>>,
    pub(super) memory_trim: MemoryTrim,
}

impl Shared {
    pub(super) fn new(limits: Limits, proxies: Option<TrustedProxies>) -> Self {
        Self {
            context: Rc::new(Context::new(limits, proxies)),
            connections: RefCell::default(),
            memory_trim: MemoryTrim::default(),
        }
    }

    pub(super) fn insert(&self, make: impl FnOnce(Id) -> Connection) -> Rc<Connection> {
        let mut connections = self.connections.borrow_mut();
        let connection = Rc::new(make(connections.next_id()));
        connections.insert(Rc::clone(&connection));
        connection
    }
}
