use super::codec::FieldTable;

/// The topology to declare, in the order exchanges, queues, bindings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Topology {
    pub exchanges: Vec<Exchange>,
    pub queues: Vec<Queue>,
    pub bindings: Vec<Binding>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Exchange {
    pub name: String,
    /// `direct`, `fanout`, `topic`, `headers` or a plugin's.
    pub kind: String,
    /// Survives a restart of the broker.
    pub durable: bool,
    pub auto_delete: bool,
    /// Takes messages from other exchanges only.
    pub internal: bool,
    /// Only check that it exists; never created, nor created again after a reconnect.
    pub passive: bool,
    pub arguments: FieldTable<'static>,
}

impl Exchange {
    /// A durable exchange.
    pub fn new(name: impl Into<String>, kind: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            kind: kind.into(),
            durable: true,
            auto_delete: false,
            internal: false,
            passive: false,
            arguments: FieldTable::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Queue {
    /// Empty lets the broker choose a name, and choose another one after a reconnect.
    pub name: String,
    /// Survives a restart of the broker.
    pub durable: bool,
    /// Belongs to this connection and disappears with it.
    pub exclusive: bool,
    pub auto_delete: bool,
    /// Only check that it exists; never created, nor created again after a reconnect.
    pub passive: bool,
    pub arguments: FieldTable<'static>,
}

impl Queue {
    /// A durable queue.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            durable: true,
            exclusive: false,
            auto_delete: false,
            passive: false,
            arguments: FieldTable::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Binding {
    /// The exchange messages come from.
    pub source: String,
    pub destination: Destination,
    pub routing_key: String,
    pub arguments: FieldTable<'static>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    Queue(String),
    Exchange(String),
}

impl Binding {
    pub fn queue(
        source: impl Into<String>,
        queue: impl Into<String>,
        routing_key: impl Into<String>,
    ) -> Self {
        Self {
            source: source.into(),
            destination: Destination::Queue(queue.into()),
            routing_key: routing_key.into(),
            arguments: FieldTable::new(),
        }
    }

    pub fn exchange(
        source: impl Into<String>,
        destination: impl Into<String>,
        routing_key: impl Into<String>,
    ) -> Self {
        Self {
            source: source.into(),
            destination: Destination::Exchange(destination.into()),
            routing_key: routing_key.into(),
            arguments: FieldTable::new(),
        }
    }
}

/// A queue as the broker counts it at this moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueState {
    pub name: String,
    /// Messages ready for delivery; those delivered and not yet acknowledged are not counted.
    pub messages: u32,
    pub consumers: u32,
}
