//! A worker's process.

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use super::channel::Channel;

/// Starts `command` in a process group of its own, so that a Ctrl-C reaches the supervisor only, and returns its pid.
///
/// Of the descriptors it inherits its output, and `channel` as `WEFT_SUPERVISOR`. It gets a SIGTERM when the supervisor
/// dies.
pub(super) fn spawn(
    command: &[String],
    environment: &[(String, String)],
    channel: &Channel,
) -> io::Result<u32> {
    let (program, arguments) = command
        .split_first()
        .ok_or_else(|| io::Error::other("the command is empty"))?;
    let descriptor = channel.as_fd().as_raw_fd();
    let supervisor = std::process::id();
    let mut process = Command::new(program);
    process
        .args(arguments)
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .env("WEFT_SUPERVISOR", descriptor.to_string())
        .stdin(Stdio::null())
        .process_group(0);
    // SAFETY: between fork and exec the closure only makes system calls that are async-signal-safe.
    unsafe { process.pre_exec(move || prepare(descriptor, supervisor)) };
    // The pid is all that is needed: whoever waits for children reaps it.
    Ok(process.spawn()?.id())
}

fn prepare(descriptor: RawFd, supervisor: u32) -> io::Result<()> {
    // SAFETY: plain system calls on values of our own.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
        if libc::getppid() as u32 != supervisor {
            return Err(io::Error::other("the supervisor has died"));
        }
        // Older kernels do not know it; what PHP opens without the flag is then inherited.
        libc::syscall(
            libc::SYS_close_range,
            3_u32,
            u32::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        );
        if libc::fcntl(descriptor, libc::F_SETFD, 0) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}
