//! Starts a worker's process.

#![allow(unsafe_code, reason = "runs code between fork and exec")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};

use super::channel::Channel;

/// Starts `command` in a process group of its own, so that Ctrl-C reaches the supervisor only, and returns its pid.
///
/// The process inherits the supervisor's standard output and error, and `channel` under the number in `WEFT_SUPERVISOR`. The
/// kernel sends it SIGTERM when the supervisor dies.
pub(super) fn spawn(
    command: &[String],
    environment: &[(String, String)],
    channel: &Channel,
) -> io::Result<u32> {
    let (program, arguments) = command
        .split_first()
        .ok_or_else(|| io::Error::other("the command is empty"))?;
    let descriptor = channel.as_fd().as_raw_fd();
    let supervisor = getpid();
    let mut process = Command::new(program);
    process
        .args(arguments)
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .env("WEFT_SUPERVISOR", descriptor.to_string())
        .stdin(Stdio::null())
        .process_group(0);
    // SAFETY: between fork and exec the closure only makes system calls that are async-signal-safe.
    unsafe { process.pre_exec(move || prepare(descriptor, supervisor)) };
    // Supervisor::wait() reaps all children, so the pid is all that is needed.
    Ok(process.spawn()?.id())
}

/// Runs in the child between fork and exec.
fn prepare(descriptor: RawFd, supervisor: Pid) -> io::Result<()> {
    // SAFETY: plain system calls on values of this function.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
        // Kernels before 5.11 do not know it; the worker then inherits what PHP opened without O_CLOEXEC.
        libc::syscall(
            libc::SYS_close_range,
            3_u32,
            u32::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        );
    }
    set_parent_process_death_signal(Some(Signal::TERM))?;
    if getppid() != Some(supervisor) {
        return Err(io::Error::other("the supervisor has died"));
    }
    // SAFETY: the child has inherited the channel, which nothing closes before exec.
    let channel = unsafe { BorrowedFd::borrow_raw(descriptor) };
    Ok(fcntl_setfd(channel, FdFlags::empty())?)
}
