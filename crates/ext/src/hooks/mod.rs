//! Blocking calls of libraries suspend the task: the Rust half. `crates/ext/hooks/hooks.h` explains the whole.

mod exports;
mod functions;
mod libraries;
mod life;
mod linker;
mod slots;
mod wait;

pub use functions::register;
pub use life::{forked, request_shutdown, request_startup, startup};
