//! The part of AMQP 0-9-1 a client of RabbitMQ needs, as bytes: no sockets, no state.

mod field;
pub(crate) mod frame;
pub(crate) mod method;
pub(crate) mod outgoing;
mod properties;
pub(crate) mod wire;

#[cfg(test)]
mod malformed_input_tests;
#[cfg(test)]
mod tests;

pub use field::{Field, FieldTable};
pub use properties::Properties;
