//! Protocol Buffers: descriptors, message layouts compiled from them, and a decoder that builds no intermediate tree.
//!
//! [`Schema`] takes serialized `FileDescriptorProto`s and resolves them into [`Layout`]s. [`decode`] reads bytes by a layout
//! and hands every value to a [`Sink`]; the extension's sink writes property slots of PHP objects.

mod decode;
mod descriptor;
mod dynamic;
mod error;
mod features;
pub mod json;
mod layout;
mod limits;
mod schema;
mod tree;
pub mod wire;

pub use decode::{Scalar, Sink, decode};
pub use dynamic::Dynamic;
pub use error::{DecodeError, SchemaError, WireError};
pub use layout::{
    Cardinality, EnumId, Enumeration, Field, Kind, Layout, LayoutId, MapEntry, Oneof, Presence,
    WellKnown,
};
pub use limits::{Budget, Depth, Limits, MAX_DEPTH, message_memory};
pub use schema::Schema;
pub use tree::{Leaf, Node, Slot, Tree};

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
