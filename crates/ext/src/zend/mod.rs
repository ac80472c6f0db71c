//! The structures of the Zend engine that this crate reads and writes itself, because ext-php-rs does not wrap them.
//!
//! Each module is one idea with safe functions, except `slot`, whose callers own what they write to. All of it runs on PHP's thread.

#![allow(unsafe_code, reason = "reads and writes structures of PHP")]

mod array;
mod class;
mod fiber;
mod frames;
mod held;
mod lazy;
pub mod make;
mod object_store;
mod output_stack;
pub mod slot;
mod strings;
pub mod value;

pub use array::{is_constant_array, packed};
pub use class::{Class, NoSlot, instance};
pub use fiber::can_switch_fibers;
pub use frames::{Frame, Frames, globals_address};
pub use held::Held;
pub use object_store::leak_inherited_objects;
pub use output_stack::{Context, Handlers, OutputStack, observe_fibers};
pub use strings::is_constant;
