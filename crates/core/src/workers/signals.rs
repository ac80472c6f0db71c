//! Signals of a supervisor as a descriptor to read.

#![allow(unsafe_code, reason = "reads signals from a descriptor")]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Signals that are blocked for the process and read from here instead; the old mask comes back at the end, and with it the old action of
/// SIGCHLD.
///
/// A process may inherit that SIGCHLD is ignored. Its children then leave no exit status, and no signal tells of their end. Workers
/// inherit the default action from here.
pub(super) struct SignalQueue {
    descriptor: OwnedFd,
    previous: libc::sigset_t,
    previous_sigchld: libc::sigaction,
}

impl SignalQueue {
    pub fn new(signals: &[i32]) -> io::Result<Self> {
        let mut set = MaybeUninit::uninit();
        let mut previous = MaybeUninit::uninit();
        // SAFETY: sigemptyset initialises the set before anything reads it; the mask is this thread's own, and is changed only once
        // there is a descriptor to read the signals from.
        let descriptor = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            for signal in signals {
                libc::sigaddset(set.as_mut_ptr(), *signal);
            }
            libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
        };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just made the descriptor for us; both sets live until the call returns, and it fills in the
        // previous one.
        unsafe {
            let descriptor = OwnedFd::from_raw_fd(descriptor);
            libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), previous.as_mut_ptr());
            // All-zero is a valid `sigaction`: the default action.
            let mut previous_sigchld: libc::sigaction = std::mem::zeroed();
            let default: libc::sigaction = std::mem::zeroed();
            libc::sigaction(libc::SIGCHLD, &default, &mut previous_sigchld);
            Ok(Self {
                descriptor,
                previous: previous.assume_init(),
                previous_sigchld,
            })
        }
    }

    /// The next one that has arrived.
    pub fn take(&self) -> Option<i32> {
        let mut arrived = MaybeUninit::<libc::signalfd_siginfo>::uninit();
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: the kernel writes at most `size` bytes, and the value is used only when it wrote them all.
        unsafe {
            let fd = self.descriptor.as_raw_fd();
            let length = libc::read(fd, arrived.as_mut_ptr().cast(), size);
            (length == size as isize).then(|| arrived.assume_init().ssi_signo as i32)
        }
    }
}

impl AsFd for SignalQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for SignalQueue {
    fn drop(&mut self) {
        // SAFETY: both came from the kernel.
        unsafe {
            libc::sigaction(libc::SIGCHLD, &self.previous_sigchld, std::ptr::null_mut());
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.previous, std::ptr::null_mut());
        }
    }
}
