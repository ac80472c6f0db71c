//! Waits that a library begins from C: an operation of the reactor each, which the scheduler awaits as any other.
//!
//! The calls are separate, so no value of Rust lives across the suspension: one begins the wait and returns the operation; the scheduler
//! takes its outcome; one drops what was interrupted.

use std::ffi::c_int;

use weft_core::blocking::{self, Purpose};
use weft_core::fd_wait::{End, FdWaits, Interest, Refusal};
use weft_core::workers::loop_watchdog;

use crate::c::Work;
use crate::outcome::Payload;
use crate::process::Process;

/// `WEFT_FOREVER` of hooks.h.
const FOREVER: i64 = -1;
/// Results of `weft_wait_start` that are no operation.
const ALWAYS_READY: i64 = 0;
pub const UNAVAILABLE: i64 = -1;

/// `weft_end` of hooks.h, and above it the events of a descriptor that are known: `events_of` of suspend.c.
const fn code(end: End) -> i64 {
    match end {
        End::Ready(events) => 1 | (events as i64) << 8,
        End::TimedOut => 2,
        End::Closed => 3,
    }
}

fn waits() -> Option<FdWaits> {
    Process::existing()?.fd_waits()
}

/// `weft_wait_start` of hooks.h.
pub fn start(descriptors: &[libc::pollfd], deadline: i64) -> i64 {
    let Some(process) = Process::existing() else {
        return UNAVAILABLE;
    };
    let Some(waits) = process.fd_waits() else {
        return UNAVAILABLE;
    };
    let used = descriptors.iter().filter(|descriptor| descriptor.fd >= 0);
    let interests: Vec<Interest> = used
        .map(|descriptor| Interest {
            fd: descriptor.fd,
            events: u32::from(descriptor.events as u16),
        })
        .collect();
    let deadline = (deadline != FOREVER).then_some(deadline.max(0) as u64);
    let operation = process.reactor.try_expect(|promise| {
        waits.start(&interests, deadline, move |end| {
            promise.keep(Ok(Payload::Int(code(end))));
        })
    });
    match operation {
        Ok(operation) => operation as i64,
        Err(Refusal::AlwaysReady(_)) => ALWAYS_READY,
        Err(Refusal::Failed(..)) => UNAVAILABLE,
    }
}

/// Runs the call on another thread. It is only taken over where it runs: otherwise the result is [`UNAVAILABLE`].
pub fn run_blocking(take_over: impl FnOnce() -> Work) -> i64 {
    let Some(process) = Process::existing() else {
        return UNAVAILABLE;
    };
    let work = take_over();
    let operation = process.reactor.spawn_leaf(async move {
        // A call that cannot be run ends too: the caller finds no result.
        let _ = blocking::run(Purpose::Libraries, move || work.run()).await;
        Ok(Payload::Int(code(End::Ready(0))))
    });
    operation as i64
}

/// The descriptor that wakes the event loop, or -1 where it has work that no descriptor tells of.
pub fn only_event_source() -> c_int {
    let source = Process::existing().and_then(|process| process.only_event_source());
    source.unwrap_or(-1)
}

/// The process waits for a while: the event loop is not blocked.
pub fn process_waits(begins: bool) {
    if begins {
        loop_watchdog::park();
    } else {
        loop_watchdog::unpark();
    }
}

pub fn cancel(operation: i64) {
    if let Some(process) = Process::existing() {
        process.reactor.cancel(operation as u64);
    }
}

pub fn is_awaited(descriptor: c_int) -> bool {
    waits().is_some_and(|waits| waits.is_awaited(descriptor))
}

pub fn taken(descriptor: c_int) {
    if let Some(waits) = waits() {
        waits.taken(descriptor);
    }
}

pub fn closed(descriptor: c_int) {
    if let Some(waits) = waits() {
        waits.closed(descriptor);
    }
}
