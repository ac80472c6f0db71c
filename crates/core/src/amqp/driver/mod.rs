//! The I/O loop of one connection: reads and hands over, collects and writes, keeps time.

mod call_timeouts;
mod calls;
mod content;
mod heartbeat;
mod io_loop;
mod methods;
mod read;
mod timer;
mod violation;
mod whole_delivery;
mod write;

pub(super) use io_loop::{Driver, Ended};
