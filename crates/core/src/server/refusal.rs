use std::fmt;

/// The scope of the limit that is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Server,
    Client,
    Connection,
}

impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Server => "server",
            Self::Client => "client address",
            Self::Connection => "connection",
        })
    }
}

/// Which limit refuses a request or a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReachedLimit {
    /// The client address has its share of all connections.
    Connections,
    /// Too many requests wait.
    Queue(Scope),
    /// Too many requests of a lane are open.
    Lane(usize),
    /// Too many requests wait at a concurrency limit.
    Concurrency,
    /// The deadline has passed before a handler was free. `is_arriving`: the request had not even arrived as a whole.
    Deadline { is_arriving: bool },
}

/// A refusal by the server core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) limit: ReachedLimit,
    /// For the client and the log.
    pub(crate) message: String,
}

impl Refusal {
    pub(super) fn connections(limit: usize) -> Self {
        Self {
            limit: ReachedLimit::Connections,
            message: format!("the client address has {limit} connections open, which is its limit"),
        }
    }

    pub(super) fn queue(scope: Scope, limit: usize, noun: &str) -> Self {
        Self {
            limit: ReachedLimit::Queue(scope),
            message: format!("the {scope} has {limit} {noun} waiting, which is its limit"),
        }
    }

    pub(super) fn lane(lane: usize, name: &str, scope: Scope, limit: usize) -> Self {
        Self {
            limit: ReachedLimit::Lane(lane),
            message: format!("the {scope} has {limit} {name} open, which is its limit"),
        }
    }

    pub(super) fn concurrency(name: &str, running: usize, waiting: usize, noun: &str) -> Self {
        Self {
            limit: ReachedLimit::Concurrency,
            message: format!(
                "{name} has {running} {noun} in progress and {waiting} waiting, which is all it takes"
            ),
        }
    }

    pub(super) fn deadline(is_arriving: bool) -> Self {
        Self {
            limit: ReachedLimit::Deadline { is_arriving },
            message: "the deadline has passed".to_owned(),
        }
    }
}
