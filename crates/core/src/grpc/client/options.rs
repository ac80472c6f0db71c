use std::time::Duration;

use crate::grpc::encoding::Encoding;
use crate::net::ClientTls;

/// Which of several servers gets a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Balancing {
    /// The first that can be connected to, as long as it is there.
    PickFirst,
    /// Each in turn: every address of every name.
    RoundRobin,
}

#[derive(Debug, Clone)]
pub struct ChannelOptions {
    /// Host and port of each server, in order of preference; one at least.
    pub servers: Vec<(String, u16)>,
    pub balancing: Balancing,
    /// `None` is plain text.
    pub tls: Option<ClientTls>,
    /// For one attempt to connect to one server.
    pub connect_timeout: Duration,
    /// Bytes of one message of the server, before and after decompression.
    pub message_bytes: usize,
    /// How messages to the server are compressed.
    pub encoding: Option<Encoding>,
    /// A server that was silent for so long during a call is asked whether it is there.
    pub ping_interval: Option<Duration>,
    /// A server that was asked and says nothing for so long is gone.
    pub ping_timeout: Duration,
    /// Bytes a server may send on one stream before they are read.
    pub stream_window: u32,
}
