//! gRPC over the connections of [`http::Server`](crate::http::Server), as a [`Service`](crate::http::Service) of it.
//!
//! A request to a known method becomes a [`Call`] in the queue of [`Calls`]: for methods that take one message together with
//! that message, for the others at once. Whoever runs the handlers asks for [`Calls::next`], takes the calls and answers.
//! Messages stay bytes: they are decoded by whoever knows their class.

mod call;
mod calls;
pub mod client;
mod encoding;
mod frame;
mod inbound;
mod lane;
mod metadata;
mod metrics;
mod outbound;
mod refusal;
mod response_body;
mod service;
mod status;
#[cfg(test)]
#[path = "../../tests/support/grpc.rs"]
mod test_support;
#[cfg(test)]
mod tests;
mod transcoding;
mod web;

pub use call::Call;
pub use calls::{Calls, Event, Limits, Method};
pub use encoding::Encoding;
pub use lane::Lane;
pub use metadata::{MetadataError, MetadataValue, metadata, trailers};
pub use outbound::Closed;
pub use refusal::Cause;
pub use status::{Code, Status};

pub use crate::server::{ConcurrencyLimits, RefusalReport};
pub use transcoding::{Rule, TemplateError};
