use std::time::Duration;

use super::admission::Capacity;
use super::request_body::Pace;

/// What a server takes from its clients. The defaults suit a server that faces the internet.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Connections at a time; more of them wait in the kernel's queue.
    pub connections: usize,
    /// Requests whose handlers run at a time, those that last excepted; more of them wait in `queue`.
    pub in_flight: usize,
    /// Requests that wait for their turn, or for a body that is read before; more of them are answered 503.
    pub queue: usize,
    /// Requests that last, event streams and WebSockets, at a time; more of them are answered 503.
    pub long_lived: usize,
    /// The same on one connection.
    pub long_lived_per_connection: usize,
    /// The part of `connections`, `in_flight`, `queue` and `long_lived` one client address may take, above 0 and up to 1. Clients of
    /// a Unix socket have no address and no such limit.
    pub client_share: f64,
    /// Header fields of one request; more of them are answered 431.
    pub header_count: usize,
    /// Bytes of request line and header fields; more of them are answered 431.
    pub header_bytes: usize,
    /// Bytes of one request body; more of them are answered 413.
    pub body_bytes: u64,
    /// From the first byte of a request to the end of its header.
    pub header_timeout: Duration,
    /// Between two pieces of a request body.
    pub body_timeout: Duration,
    /// Bytes per second a request body must arrive with on average, once a reader has waited for `body_timeout`; `None` is any.
    pub body_rate: Option<u32>,
    /// A connection without a request in flight.
    pub idle_timeout: Duration,
    /// A client that does not take what is written to it.
    pub write_timeout: Duration,
    /// From the header of a request to the first byte of its answer; `None` is for ever.
    pub deadline: Option<Duration>,
    /// HTTP/2: a client that was silent for so long is asked whether it is there.
    pub ping_interval: Option<Duration>,
    /// HTTP/2: a client that was asked and says nothing for so long is gone.
    pub ping_timeout: Duration,
    /// HTTP/2: a client that pings more often, three times and without an answer in between, is told to calm down and closed.
    pub min_ping_interval: Option<Duration>,
    /// A connection that is older takes no more requests, give or take a tenth; what is in flight is answered.
    pub max_age: Option<Duration>,
    /// What is not answered so long after that is broken off.
    pub age_grace: Option<Duration>,
    /// HTTP/2: bytes a client may send on one stream before they are read.
    pub stream_window: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            in_flight: 1_000,
            queue: 10_000,
            long_lived: 5_000,
            long_lived_per_connection: 64,
            client_share: 0.5,
            header_count: 100,
            header_bytes: 16 << 10,
            body_bytes: 8 << 20,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            body_rate: Some(500),
            idle_timeout: Duration::from_secs(75),
            write_timeout: Duration::from_secs(30),
            deadline: Some(Duration::from_secs(60)),
            ping_interval: None,
            ping_timeout: Duration::from_secs(20),
            min_ping_interval: None,
            max_age: None,
            age_grace: None,
            stream_window: 256 << 10,
        }
    }
}

impl Limits {
    pub(super) fn capacity(&self) -> Capacity {
        Capacity {
            waiting: self.queue,
            running: self.in_flight,
            long_lived: self.long_lived,
            long_lived_per_connection: self.long_lived_per_connection,
            connections: self.connections,
            client_share: self.client_share,
        }
    }

    pub(super) fn pace(&self) -> Pace {
        Pace {
            timeout: self.body_timeout,
            rate: self.body_rate,
        }
    }
}
