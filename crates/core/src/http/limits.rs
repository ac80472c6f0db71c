use std::time::Duration;

use super::request_body::BodyRate;
use crate::server::{Capacity, LaneLimits};

/// The lane of all requests, until they become event streams or WebSockets.
pub(super) const REQUESTS: usize = 0;
/// The lane of event streams and WebSockets.
pub(super) const LONG_LIVED: usize = 1;

/// Limits of a server. The defaults suit a server that faces the internet.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Open connections; further ones wait in the kernel's queue.
    pub connections: usize,
    /// Requests whose handlers run at a time, without event streams and WebSockets; further ones wait in `queue`.
    pub in_flight: usize,
    /// Requests that wait for a handler, or for a small body; further ones get 503.
    pub queue: usize,
    /// Open event streams and WebSockets; further ones get 503.
    pub long_lived: usize,
    /// The same on one connection.
    pub long_lived_per_connection: usize,
    /// The part of `connections`, `in_flight`, `queue` and `long_lived` one client address may take, above 0 and up to 1. Clients of
    /// a Unix socket have no address and no such limit.
    pub client_share: f64,
    /// Header fields of one request; more get 431.
    pub header_count: usize,
    /// Bytes of the request line and header fields; more get 431.
    pub header_bytes: usize,
    /// Bytes of one request body; more get 413.
    pub body_bytes: u64,
    /// From the first byte of a request to the end of its header.
    pub header_timeout: Duration,
    /// Between two chunks of a request body.
    pub body_timeout: Duration,
    /// Average bytes per second at which a request body must arrive once a reader has waited for `body_timeout`; `None` is any rate.
    pub min_body_rate: Option<u32>,
    /// How long a connection is kept without a request in flight.
    pub idle_timeout: Duration,
    /// How long a client may read nothing of the bytes that are sent to it.
    pub write_timeout: Duration,
    /// From the header of a request to the head of its response; `None` is unlimited.
    pub deadline: Option<Duration>,
    /// HTTP/2: silence after which the server pings the client; `None` is never.
    pub ping_interval: Option<Duration>,
    /// HTTP/2: how long the client may take to answer that ping.
    pub ping_timeout: Duration,
    /// HTTP/2: the least interval of a client's pings. The third ping that comes too early, without a response in between, ends the
    /// connection with ENHANCE_YOUR_CALM; `None` allows any.
    pub min_ping_interval: Option<Duration>,
    /// Age, with a jitter of a tenth, after which a connection takes no more requests; those in flight are answered.
    pub max_age: Option<Duration>,
    /// How long after that requests in flight may take before the connection is aborted; `None` is unlimited.
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
            min_body_rate: Some(500),
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
    /// Lanes in the order of [`REQUESTS`] and [`LONG_LIVED`].
    pub(super) fn capacity(&self) -> Capacity {
        let requests = LaneLimits {
            name: "requests",
            running: self.in_flight,
            per_connection: usize::MAX,
            queues: true,
        };
        let long_lived = LaneLimits {
            name: "event streams and WebSockets",
            running: self.long_lived,
            per_connection: self.long_lived_per_connection,
            queues: false,
        };
        Capacity {
            noun: "requests",
            connections: self.connections,
            queue: self.queue,
            lanes: vec![requests, long_lived],
            concurrency: Vec::new(),
            client_share: self.client_share,
            buffered_bytes: usize::MAX,
        }
    }

    pub(super) fn body_rate_limit(&self) -> BodyRate {
        BodyRate {
            timeout: self.body_timeout,
            rate: self.min_body_rate,
        }
    }
}
