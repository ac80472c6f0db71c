//! Protocol Buffers: descriptors, message layouts compiled from them, and a decoder that builds no tree of its own.
//!
//! [`Schema`] takes serialized `FileDescriptorProto`s and resolves them into [`Layout`]s. [`decode`] reads bytes by a layout
//! and hands every value to a [`Sink`]; the extension's sink writes property slots of PHP objects.

mod decode;
mod descriptor;
mod dynamic;
mod error;
mod features;
mod layout;
mod schema;
pub mod wire;

pub use decode::{DEEPEST, Scalar, Sink, decode};
pub use dynamic::Dynamic;
pub use error::{DecodeError, SchemaError, WireError};
pub use layout::{
    Cardinality, Enumeration, Field, Kind, Layout, MapEntry, Oneof, Presence, WellKnown,
};
pub use schema::{EnumId, LayoutId, Schema};
