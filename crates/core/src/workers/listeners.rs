//! Listening sockets that outlive workers.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::net::{self, Address, ListenError};

/// Every address that a worker ever asked for, opened once: what is in a socket's queue waits for the next worker.
///
/// A worker that asks twice for one address means two sockets, as port 0 allows; so each is known by its turn as well.
#[derive(Default)]
pub(super) struct Listeners {
    open: HashMap<(String, usize), OwnedFd>,
    asked: HashMap<u32, HashMap<String, usize>>,
}

impl Listeners {
    /// The next socket of that address for this worker.
    pub fn get(&mut self, worker: u32, address: &str) -> Result<BorrowedFd<'_>, String> {
        let turns = self.asked.entry(worker).or_default();
        let turn = turns.entry(address.to_owned()).or_insert(0);
        let socket: &OwnedFd = match self.open.entry((address.to_owned(), *turn)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                unknown.insert(open(address).map_err(|error| reason(&error))?)
            }
        };
        *turn += 1;
        Ok(socket.as_fd())
    }

    /// The worker has ended and asks no more.
    pub fn forget(&mut self, worker: u32) {
        self.asked.remove(&worker);
    }
}

fn open(address: &str) -> Result<OwnedFd, ListenError> {
    let address: Address = address.parse()?;
    Ok(net::open(&address, false)?.into_descriptor())
}

/// The worker names the address itself.
fn reason(error: &ListenError) -> String {
    match error {
        ListenError::Refused { reason, .. } => reason.clone(),
        ListenError::Address(_) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{SocketAddr, TcpListener};

    fn address(socket: BorrowedFd<'_>) -> SocketAddr {
        let socket = TcpListener::from(socket.try_clone_to_owned().unwrap());
        socket.local_addr().unwrap()
    }

    #[test]
    fn another_worker_gets_the_same_socket() {
        let mut listeners = Listeners::default();
        let first = address(listeners.get(1, "127.0.0.1:0").unwrap());
        let second = address(listeners.get(1, "127.0.0.1:0").unwrap());
        assert_ne!(first, second);
        assert_eq!(address(listeners.get(2, "127.0.0.1:0").unwrap()), first);
        assert_eq!(address(listeners.get(2, "127.0.0.1:0").unwrap()), second);
    }

    #[test]
    fn a_port_in_use_is_refused_and_may_be_asked_for_again() {
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = other.local_addr().unwrap().to_string();
        let mut listeners = Listeners::default();
        let refused = listeners.get(1, &address).err().unwrap();
        assert!(refused.contains("Address already in use"), "{refused}");
        drop(other);
        assert!(listeners.get(1, &address).is_ok());
    }
}
