//! Threads beside the PHP thread.

#![allow(unsafe_code, reason = "changes the signal mask of threads")]

use std::io;
use std::mem::MaybeUninit;
use std::thread::Builder;

/// Starts a thread that never runs a signal handler: PHP's handlers may only run on PHP's own thread.
pub(crate) fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let thread = Builder::new().name(name.to_owned());
    let started = thread.spawn(move || {
        block_signals();
        run();
    });
    started.map(drop)
}

/// Leaves the signals of the process to its other threads.
pub(crate) fn block_signals() {
    let mut all = MaybeUninit::uninit();
    // SAFETY: sigfillset initialises the set; changing this thread's mask touches no memory of others.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), std::ptr::null_mut());
    }
}
