//! Protocol Buffers between property slots of PHP objects and bytes, without an intermediate tree.
//!
//! The first use of a class binds it: the descriptor of its file is added to the schema, its properties are checked against the types
//! that the layout writes, and their offsets are kept until the request ends.

mod binding;
mod dynamic;
mod encode;
mod failure;
mod functions;
mod object;
mod registry;
mod schema_files;
mod sink;

pub use encode::encode;
pub use functions::{decode, register};
pub use registry::forget;
