//! What the kernel leaves to any server of HTTP/1.1 on one thread: `floor epoll` and `floor io_uring` receive, send a constant answer, and do
//! nothing else. They parse nothing, and take each receipt for one request.

mod epoll;
mod socket;
mod uring;

use std::{env, io};

fn main() -> io::Result<()> {
    let listener = socket::listen(&env::var("PORT").unwrap_or_default())?;
    match env::args().nth(1).as_deref() {
        Some("epoll") => epoll::serve(&listener),
        Some("io_uring") => uring::serve(&listener),
        _ => Err(io::Error::other("usage: PORT=8080 floor epoll|io_uring")),
    }
}
