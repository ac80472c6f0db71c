//! Calls to other servers.
//!
//! A [`Channel`] holds an HTTP/2 connection to each of its servers, made when a call needs it and again when it is lost. A
//! [`ClientCall`] sends messages and gets messages; dropped before its end it is cancelled.

mod call;
mod channel;
mod endpoint;
mod failure;
mod io;
#[cfg(test)]
mod malformed_input_tests;
mod names;
mod options;
#[cfg(test)]
mod tests;
mod upload;

pub use call::{ClientCall, Request};
pub use channel::Channel;
pub use options::{Balancing, ChannelOptions};
