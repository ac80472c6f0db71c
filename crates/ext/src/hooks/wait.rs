//! Waits that a library begins from C: an operation of the reactor each, which the scheduler awaits as any other.
//!
//! The calls are separate, so no value of Rust lives across the suspension: one begins the wait and returns the operation; the scheduler
//! takes its outcome; one drops what was interrupted.

use std::ffi::c_int;

use weft_core::blocking::{self, Purpose};
use weft_core::fd_wait::{End, FdWaits, Interest, Refusal};
use weft_core::workers::loop_watchdog;

use crate::outcome::Payload;
use crate::process::Process;

/// `WEFT_FOREVER` of hooks.h.
const FOREVER: i64 = -1;
/// Results of `weft_wait_start` that are no operation.
const ALWAYS_READY: i64 = 0;
const UNAVAILABLE: i64 = -1;

/// `weft_end` of hooks.h, and above it the events of a descriptor that are known: `weft_outcome_events` of suspend.c.
const fn code(end: End) -> i64 {
    match end {
        End::Ready(events) => 1 | (events as i64) << 8,
        End::TimedOut => 2,
        End::Closed => 3,
    }
}

/// Work of the size that C knows; only its address is used here.
#[repr(C)]
pub struct Work {
    run: unsafe extern "C" fn(*mut Work),
    _release: unsafe extern "C" fn(*mut Work),
    _holders: c_int,
}

unsafe extern "C" {
    fn weft_release(work: *mut Work);
}

fn waits() -> Option<FdWaits> {
    Process::existing()?.fd_waits()
}

/// # Safety
/// `descriptors` points to `count` structs.
#[unsafe(no_mangle)]
unsafe extern "C" fn weft_wait_start(
    descriptors: *const libc::pollfd,
    count: usize,
    deadline: i64,
) -> i64 {
    let Some(process) = Process::existing() else {
        return UNAVAILABLE;
    };
    let Some(waits) = process.fd_waits() else {
        return UNAVAILABLE;
    };
    let descriptors = match count {
        0 => &[],
        // SAFETY: the caller says so.
        _ => unsafe { std::slice::from_raw_parts(descriptors, count) },
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

/// Gives one reference of the work back, on whichever thread and however the call ends.
struct Held(*mut Work);

// SAFETY: C hands the work over to another thread; both sides count their references atomically.
unsafe impl Send for Held {}

impl Held {
    fn run(&self) {
        // SAFETY: the reference keeps the work alive, and it may be run on another thread, once.
        unsafe { ((*self.0).run)(self.0) }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: this reference is given back once.
        unsafe { weft_release(self.0) }
    }
}

/// # Safety
/// `work` is valid and has a reference for the thread.
#[unsafe(no_mangle)]
unsafe extern "C" fn weft_blocking_start(work: *mut Work) -> i64 {
    let Some(process) = Process::existing() else {
        return UNAVAILABLE;
    };
    let held = Held(work);
    let operation = process.reactor.spawn_leaf(async move {
        let call = move || held.run();
        // A call that cannot be run ends too: the caller finds no result.
        let _ = blocking::run(Purpose::Libraries, call).await;
        Ok(Payload::Int(code(End::Ready(0))))
    });
    operation as i64
}

/// The descriptor that wakes the event loop, or -1 where it has work that no descriptor tells of.
#[unsafe(no_mangle)]
extern "C" fn weft_only_event_source() -> c_int {
    let source = Process::existing().and_then(|process| process.only_event_source());
    source.unwrap_or(-1)
}

/// The process waits for a while: the event loop is not blocked.
#[unsafe(no_mangle)]
extern "C" fn weft_process_waits(begins: bool) {
    if begins {
        loop_watchdog::park();
    } else {
        loop_watchdog::unpark();
    }
}

#[unsafe(no_mangle)]
extern "C" fn weft_wait_cancel(operation: i64) {
    if let Some(process) = Process::existing() {
        process.reactor.cancel(operation as u64);
    }
}

#[unsafe(no_mangle)]
extern "C" fn weft_is_awaited(descriptor: c_int) -> bool {
    waits().is_some_and(|waits| waits.is_awaited(descriptor))
}

#[unsafe(no_mangle)]
extern "C" fn weft_closed(descriptor: c_int) {
    if let Some(waits) = waits() {
        waits.closed(descriptor);
    }
}
