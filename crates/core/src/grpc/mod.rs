//! gRPC over the connections of [`http::Server`](crate::http::Server), as a [`Service`](crate::http::Service) of it.
//!
//! A request to a known method becomes a [`Call`] in the queue of [`Calls`]: for methods that take one message together with
//! that message, for the others at once. Whoever runs the handlers asks for [`Calls::next`], takes the calls and answers.
//! Messages stay bytes: they are decoded by whoever knows their class.

mod call;
mod calls;
pub mod client;
mod deadlines;
mod encoding;
mod frame;
mod gate;
mod inbound;
mod json;
mod metadata;
mod meter;
mod outbound;
mod reply;
mod service;
mod status;
mod web;

pub use call::Call;
pub use calls::{Calls, Event, Limits, Method};
pub use encoding::Encoding;
pub use gate::GateLimits;
pub use json::{Rule, TemplateError};
pub use metadata::{MetadataError, MetadataValue, metadata, trailers};
pub use outbound::Closed;
pub use status::{Code, Status};
