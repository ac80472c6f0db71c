//! System calls that no crate wraps.

#![allow(unsafe_code, reason = "calls libc")]

/// Has the C library call `handler` in each forked child, on the thread that forked. The handler must only write memory that
/// no other thread changes, and make system calls that are safe after a fork.
pub fn after_fork_in_child(handler: extern "C" fn()) {
    // SAFETY: the handler keeps to what is said above, and the library is never unmapped.
    unsafe { libc::pthread_atfork(None, None, Some(handler)) };
}

/// Lets the C library's allocator keep freed memory: blocks below `mmap_threshold` bytes, and up to `trim_threshold` bytes at
/// the end of the heap.
#[cfg(target_env = "gnu")]
pub fn keep_freed_memory(mmap_threshold: i32, trim_threshold: i32) {
    // SAFETY: mallopt takes glibc's own lock and only stores the two limits.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, mmap_threshold);
        libc::mallopt(libc::M_TRIM_THRESHOLD, trim_threshold);
    }
}

#[cfg(not(target_env = "gnu"))]
pub fn keep_freed_memory(_mmap_threshold: i32, _trim_threshold: i32) {}

/// Puts an empty epoll instance in the place of another one, in a child right after fork: only the parent goes on with the
/// one that both share.
#[cfg(target_os = "linux")]
pub fn replace_event_poll(poll: i32) {
    // SAFETY: these calls are safe in a child right after fork, and fail where the descriptor is none.
    unsafe {
        let empty = libc::epoll_create1(libc::EPOLL_CLOEXEC);
        if empty >= 0 {
            libc::dup3(empty, poll, libc::O_CLOEXEC);
            libc::close(empty);
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub fn replace_event_poll(_poll: i32) {}
