//! Calls to other servers.
//!
//! A [`Channel`] holds one HTTP/2 connection to a server, made when the first call needs it and again when it is lost. A
//! [`ClientCall`] sends messages and gets messages; dropped before its end it is cancelled.

mod call;
mod channel;
mod io;

pub use call::{ClientCall, Request};
pub use channel::{Channel, ChannelOptions};
