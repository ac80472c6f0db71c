//! The functions that `crates/ext/hooks` calls, as hooks.h declares them.

#![allow(unsafe_code, reason = "exports functions to C")]

use std::ffi::{c_int, c_void};

use super::{libraries, wait};
use crate::c::{RawWork, Work};

/// # Safety
/// `descriptors` points to `count` structs.
#[unsafe(no_mangle)]
unsafe extern "C" fn weft_wait_start(
    descriptors: *const libc::pollfd,
    count: usize,
    deadline: i64,
) -> i64 {
    let descriptors = match count {
        0 => &[],
        // SAFETY: the caller says so.
        _ => unsafe { std::slice::from_raw_parts(descriptors, count) },
    };
    wait::start(descriptors, deadline)
}

/// # Safety
/// `work` is valid and has a reference for the thread, unless this returns [`wait::UNAVAILABLE`].
#[unsafe(no_mangle)]
unsafe extern "C" fn weft_blocking_start(work: *mut RawWork) -> i64 {
    // SAFETY: the caller says so.
    wait::run_blocking(|| unsafe { Work::new(work) })
}

#[unsafe(no_mangle)]
extern "C" fn weft_only_event_source() -> c_int {
    wait::only_event_source()
}

#[unsafe(no_mangle)]
extern "C" fn weft_process_waits(begins: bool) {
    wait::process_waits(begins);
}

#[unsafe(no_mangle)]
extern "C" fn weft_wait_cancel(operation: i64) {
    wait::cancel(operation);
}

#[unsafe(no_mangle)]
extern "C" fn weft_is_awaited(descriptor: c_int) -> bool {
    wait::is_awaited(descriptor)
}

#[unsafe(no_mangle)]
extern "C" fn weft_taken(descriptor: c_int) {
    wait::taken(descriptor);
}

#[unsafe(no_mangle)]
extern "C" fn weft_closed(descriptor: c_int) {
    wait::closed(descriptor);
}

#[unsafe(no_mangle)]
extern "C" fn weft_scan_libraries() {
    libraries::scan();
}

#[unsafe(no_mangle)]
extern "C" fn weft_caller_keeps_connection(caller: *const c_void) -> bool {
    libraries::keeps_connection(caller as usize)
}
