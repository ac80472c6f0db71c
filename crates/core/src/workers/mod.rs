//! One program in several processes.
//!
//! A [`Supervisor`] starts worker processes with exec, holds their listening sockets and waits for their end; no Tokio runs in it.
//! A worker's [`SupervisorClient`] asks for sockets, reports when the worker is ready, and watches from a thread of its own whether the
//! event loop is blocked. They exchange JSON objects over one Unix socket per worker, some with file descriptors attached.

mod channel;
mod file_watcher;
mod listeners;
pub mod loop_watchdog;
mod metrics_server;
mod signals;
mod spawn;
mod supervisor;
mod supervisor_client;

pub use metrics_server::MetricsServer;
pub use supervisor::{Event, Supervisor};
pub use supervisor_client::{SupervisorClient, listening_sockets, work_done};
