//! Three calls for a request where one client waits, and one `epoll_wait` for many where there are many.

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, RawFd};
use std::ptr::null_mut;

use crate::socket::{ANSWER, checked, close, without_delay};

const BATCH: usize = 256;

pub fn serve(listener: &TcpListener) -> io::Result<()> {
    let listener = listener.as_raw_fd();
    // SAFETY: the call has no pointers.
    let epoll = checked(unsafe { libc::epoll_create1(0) })?;
    watch(epoll, listener, libc::EPOLLIN)?;
    let mut events = [libc::epoll_event { events: 0, u64: 0 }; BATCH];
    loop {
        // SAFETY: there is room for so many events.
        let count =
            checked(unsafe { libc::epoll_wait(epoll, events.as_mut_ptr(), BATCH as i32, -1) })?;
        for event in &events[..count as usize] {
            match event.u64 as RawFd {
                ready if ready == listener => accept(epoll, listener)?,
                ready => answer(ready),
            }
        }
    }
}

fn watch(epoll: RawFd, socket: RawFd, events: libc::c_int) -> io::Result<()> {
    let mut event = libc::epoll_event {
        events: events as u32,
        u64: socket as u64,
    };
    // SAFETY: the kernel reads the struct.
    checked(unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, socket, &raw mut event) })?;
    Ok(())
}

fn accept(epoll: RawFd, listener: RawFd) -> io::Result<()> {
    // SAFETY: the address is not asked for.
    let socket =
        checked(unsafe { libc::accept4(listener, null_mut(), null_mut(), libc::SOCK_NONBLOCK) })?;
    without_delay(socket);
    watch(epoll, socket, libc::EPOLLIN | libc::EPOLLET)
}

fn answer(socket: RawFd) {
    let mut room = [0_u8; 4096];
    // SAFETY: there is room for so many bytes.
    match unsafe { libc::recv(socket, room.as_mut_ptr().cast(), room.len(), 0) } {
        0 => close(socket),
        // SAFETY: the answer has so many bytes.
        1.. => drop(unsafe {
            libc::send(
                socket,
                ANSWER.as_ptr().cast(),
                ANSWER.len(),
                libc::MSG_NOSIGNAL,
            )
        }),
        // Nothing was there.
        _ => {}
    }
}
