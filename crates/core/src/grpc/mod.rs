//! gRPC over the connections of [`http::Server`](crate::http::Server), as a [`Service`](crate::http::Service) of it.
//!
//! A request to a known method becomes a [`Call`] in the queue of [`Calls`]: a unary call once its message has arrived, others at once.
//! The code that runs the handlers awaits [`Calls::next`], takes calls with [`Calls::take`] and answers. Messages stay bytes; the code
//! that knows their classes decodes them.

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
pub use refusal::RefusalReason;
pub use status::{Code, Status};

pub use crate::server::{ConcurrencyLimits, RefusalReport};
pub use transcoding::{Rule, TemplateError};
