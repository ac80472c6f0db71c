use std::io;
use std::net::TcpListener;
use std::os::fd::RawFd;

/// The answer to `/hello`, as long as that of the other contenders.
pub const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 13\r\n\
    date: Mon, 23 Nov 2026 18:00:00 GMT\r\n\r\nHello, World!";

pub fn listen(port: &str) -> io::Result<TcpListener> {
    let port = port.parse().map_err(io::Error::other)?;
    TcpListener::bind(("127.0.0.1", port))
}

/// Small answers leave at once.
pub fn without_delay(socket: RawFd) {
    let on: libc::c_int = 1;
    let size = size_of_val(&on) as libc::socklen_t;
    // SAFETY: the kernel reads an int.
    unsafe {
        libc::setsockopt(
            socket,
            libc::IPPROTO_TCP,
            libc::TCP_NODELAY,
            (&raw const on).cast(),
            size,
        );
    }
}

pub fn close(socket: RawFd) {
    // SAFETY: nothing else uses the descriptor.
    unsafe { libc::close(socket) };
}

/// An answer of -1 is the error of the thread's last call.
pub fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}
