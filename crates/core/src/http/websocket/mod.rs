//! WebSocket (RFC 6455), over HTTP/1.1 and HTTP/2 (RFC 8441), with compressed messages (RFC 7692).
//!
//! The handler has a [`WebSocket`]. The task of its connection or stream, the driver, moves messages between the two.

mod deflate;
mod driver;
mod frame;
mod handshake;
mod reader;
mod session;

use std::str::Utf8Error;
use std::time::Duration;

use bytes::Bytes;

pub(super) use driver::{drive, drive_stream};
pub use handshake::UpgradeError;
pub(super) use handshake::{accept, is_stream};
pub(super) use session::STOPPING;
pub use session::{Upgrade, WebSocket};

#[derive(Debug, Clone)]
pub struct WebSocketLimits {
    /// A longer message closes the WebSocket with 1009.
    pub message_bytes: usize,
    /// Interval of pings. A client that sends nothing between two pings is considered gone. `None` is never.
    pub ping_interval: Option<Duration>,
    /// Compress messages in both directions if the client supports it.
    pub compress: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    bytes: Bytes,
    is_binary: bool,
}

impl Message {
    /// # Errors
    /// The bytes are not UTF-8.
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
