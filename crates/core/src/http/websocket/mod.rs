//! WebSocket (RFC 6455), over HTTP/1.1 and HTTP/2 (RFC 8441), with compressed messages (RFC 7692).
//!
//! The handler's end of a conversation is a [`WebSocket`]; the task of its connection or stream moves messages between the
//! two ends.

mod deflate;
mod driver;
mod frame;
mod handshake;
mod reader;
mod session;

use std::str::Utf8Error;
use std::time::Duration;

use bytes::Bytes;

pub(super) use driver::{STOPPING, converse, converse_on_stream};
pub use handshake::UpgradeError;
pub(super) use handshake::{accept, is_stream};
pub use session::{Upgrade, WebSocket};

#[derive(Debug, Clone)]
pub struct WebSocketLimits {
    /// A longer message ends the conversation with 1009.
    pub message_bytes: usize,
    /// How often the client is pinged; one that has sent nothing at all by the ping after is gone. `None` is never.
    pub ping_interval: Option<Duration>,
    /// Messages are compressed where the client can, both ways.
    pub compress: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    bytes: Bytes,
    is_binary: bool,
}

impl Message {
    /// # Errors
    /// The bytes are no UTF-8.
    pub fn text(bytes: Bytes) -> Result<Self, Utf8Error> {
        std::str::from_utf8(&bytes)?;
        Ok(Self {
            bytes,
            is_binary: false,
        })
    }

    pub fn binary(bytes: Bytes) -> Self {
        Self {
            bytes,
            is_binary: true,
        }
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn is_binary(&self) -> bool {
        self.is_binary
    }
}
