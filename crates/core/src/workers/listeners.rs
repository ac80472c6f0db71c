//! Listening sockets that outlive workers.

use std::collections::HashMap;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;

/// Every address that a worker ever asked for, opened once: what is in a socket's queue waits for the next worker.
#[derive(Default)]
pub(super) struct Listeners {
    by_address: HashMap<String, OwnedFd>,
}

impl Listeners {
    pub fn get(&mut self, address: &str) -> Result<BorrowedFd<'_>, String> {
        if !self.by_address.contains_key(address) {
            let socket = open(address).map_err(|error| error.to_string())?;
            self.by_address.insert(address.to_owned(), socket);
        }
        match self.by_address.get(address) {
            Some(socket) => Ok(socket.as_fd()),
            None => Err(format!("no socket for {address}")),
        }
    }
}

fn open(address: &str) -> io::Result<OwnedFd> {
    if let Some(path) = address.strip_prefix("unix:") {
        let socket = UnixListener::bind(path)?;
        socket.set_nonblocking(true)?;
        return Ok(socket.into());
    }
    let socket = TcpListener::bind(address)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}
