//! The gRPC client.
//!
//! A [`Channel`] holds an HTTP/2 connection to each of its servers, opened when a call needs it and reopened when it is lost. A
//! [`ClientCall`] sends and receives messages. Dropping it before its end cancels the call.

mod call;
mod channel;
mod endpoint;
mod failure;
#[cfg(test)]
mod malformed_input_tests;
mod names;
mod options;
mod settings;
#[cfg(test)]
mod tests;
mod upload;

pub use call::{ClientCall, Request};
pub use channel::Channel;
pub use options::{Balancing, ChannelOptions};
