//! One program in several processes.
//!
//! A [`Supervisor`] starts workers by exec, holds their listening sockets and hears of their end; it has no Tokio in it.
//! A worker's [`Link`] asks for sockets, says when it is ready, and watches with a thread of its own whether the loop
//! still turns. Between them is one Unix socket per worker; a message is a JSON object, a descriptor may come with it.

mod channel;
mod endpoint;
mod files;
mod link;
mod listeners;
pub mod pulse;
mod signals;
mod spawn;
mod supervisor;

pub use endpoint::Endpoint;
pub use link::{Link, listeners, work_done};
pub use supervisor::{Event, Supervisor};
