use std::time::Duration;

use crate::grpc::encoding::Encoding;
use crate::net::ClientTls;

/// The load-balancing policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Balancing {
    /// The first server that can be connected to, for as long as it is connected.
    PickFirst,
    /// Each in turn: every address of every name.
    RoundRobin,
}

#[derive(Debug, Clone)]
pub struct ChannelOptions {
    /// Host and port of each server in order of preference; at least one.
    pub servers: Vec<(String, u16)>,
    pub balancing: Balancing,
    /// `None` is plain text.
    pub tls: Option<ClientTls>,
    /// Timeout of one attempt to connect to one server.
    pub connect_timeout: Duration,
    /// Bytes of a received message, before and after decompression.
    pub message_bytes: usize,
    /// The encoding of sent messages.
    pub encoding: Option<Encoding>,
    /// Silence during a call after which the client pings the server; `None` is never.
    pub ping_interval: Option<Duration>,
    /// How long the server may take to answer that ping.
    pub ping_timeout: Duration,
    /// Bytes a server may send on one stream before they are read.
    pub stream_window: u32,
}
