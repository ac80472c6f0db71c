//! Listening sockets that outlive workers.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::channel::MAX_DESCRIPTORS;
use crate::net::{self, Address, ListenError};

/// The sockets of every address that a worker has asked for. Connections in an accept queue wait for the next worker.
///
/// On TCP each worker slot has a socket of its own, and the kernel spreads connections over them (`SO_REUSEPORT`): with one
/// shared queue, the worker that has just accepted would accept again. A Unix socket has one queue.
///
/// A worker that asks twice for one address means two ports, which port 0 allows; so the number of the request is part of the key.
pub(super) struct Listeners {
    workers: usize,
    open: HashMap<(String, usize), Vec<OwnedFd>>,
    asked: HashMap<u32, HashMap<String, usize>>,
}

impl Listeners {
    pub fn new(workers: usize) -> Self {
        Self {
            workers: workers.max(1),
            open: HashMap::new(),
            asked: HashMap::new(),
        }
    }

    /// The next sockets of that address for the worker `pid` in the slot `index`, counted from 1: its own, then those of the slots
    /// after it, as many as fit one message.
    pub fn get(
        &mut self,
        pid: u32,
        index: usize,
        address: &str,
    ) -> Result<Vec<BorrowedFd<'_>>, String> {
        let turns = self.asked.entry(pid).or_default();
        let turn = *turns.entry(address.to_owned()).or_insert(0);
        let key = (address.to_owned(), turn);
        if !self.open.contains_key(&key) {
            let opened = open(address, self.workers).or_else(|_| {
                // A socket that only ended workers used, such as those of an abandoned reload, may be what occupies the address.
                self.retain_asked(|_| true);
                open(address, self.workers)
            });
            let opened = opened.map_err(|error| reason(&error))?;
            self.open.insert(key.clone(), opened);
        }
        *self
            .asked
            .entry(pid)
            .or_default()
            .entry(address.to_owned())
            .or_insert(0) += 1;
        let sockets = &self.open[&key];
        let own = index.saturating_sub(1) % sockets.len();
        let from_own = sockets.iter().cycle().skip(own);
        let given = from_own.take(sockets.len().min(MAX_DESCRIPTORS));
        Ok(given.map(AsFd::as_fd).collect())
    }

    /// Closes the sockets that none of these workers has asked for.
    pub fn close_except_of(&mut self, pids: &[u32]) {
        self.retain_asked(|pid| pids.contains(pid));
    }

    /// Keeps the sockets that one of the selected living workers has asked for.
    fn retain_asked(&mut self, is_selected: impl Fn(&u32) -> bool) {
        let asked = &self.asked;
        self.open.retain(|(address, turn), _| {
            let mut selected = asked.iter().filter(|(pid, _)| is_selected(pid));
            selected.any(|(_, turns)| turns.get(address).is_some_and(|count| count > turn))
        });
    }

    /// The worker has ended.
    pub fn forget(&mut self, pid: u32) {
        self.asked.remove(&pid);
    }
}

fn open(address: &str, workers: usize) -> Result<Vec<OwnedFd>, ListenError> {
    let address: Address = address.parse()?;
    let listeners = net::open_spread(&address, workers)?;
    Ok(listeners
        .into_iter()
        .map(net::Listener::into_descriptor)
        .collect())
}

/// Without the address, which the worker adds.
fn reason(error: &ListenError) -> String {
    match error {
        ListenError::Refused { reason, .. } => reason.clone(),
        ListenError::Address(_) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    fn address(socket: BorrowedFd<'_>) -> SocketAddr {
        let socket = TcpListener::from(socket.try_clone_to_owned().unwrap());
        socket.local_addr().unwrap()
    }

    fn numbers(sockets: &[BorrowedFd<'_>]) -> Vec<i32> {
        sockets.iter().map(AsRawFd::as_raw_fd).collect()
    }

    #[test]
    fn a_successor_in_the_same_slot_gets_the_same_socket() {
        let mut listeners = Listeners::new(1);
        let first = address(listeners.get(1, 1, "127.0.0.1:0").unwrap()[0]);
        let second = address(listeners.get(1, 1, "127.0.0.1:0").unwrap()[0]);
        assert_ne!(first, second);
        assert_eq!(
            address(listeners.get(2, 1, "127.0.0.1:0").unwrap()[0]),
            first
        );
        assert_eq!(
            address(listeners.get(2, 1, "127.0.0.1:0").unwrap()[0]),
            second
        );
    }

    #[test]
    fn every_slot_has_a_socket_of_its_own_on_one_port_and_knows_those_after_it() {
        let mut listeners = Listeners::new(3);
        let first = numbers(&listeners.get(1, 1, "127.0.0.1:0").unwrap());
        let second = numbers(&listeners.get(2, 2, "127.0.0.1:0").unwrap());
        let third = numbers(&listeners.get(3, 3, "127.0.0.1:0").unwrap());
        assert_eq!(second, [first[1], first[2], first[0]]);
        assert_eq!(third, [first[2], first[0], first[1]]);
        let sockets = listeners.get(4, 1, "127.0.0.1:0").unwrap();
        let ports: Vec<_> = sockets.into_iter().map(address).collect();
        assert_eq!(ports, [ports[0]; 3]);
    }

    #[test]
    fn a_worker_knows_as_many_sockets_as_fit_one_message() {
        let mut listeners = Listeners::new(MAX_DESCRIPTORS + 5);
        let sockets = listeners.get(1, MAX_DESCRIPTORS + 4, "127.0.0.1:0");
        assert_eq!(sockets.unwrap().len(), MAX_DESCRIPTORS);
    }

    #[test]
    fn the_kernel_spreads_connections_over_the_sockets() {
        let mut listeners = Listeners::new(2);
        let sockets = listeners.get(1, 1, "127.0.0.1:0").unwrap();
        let port = address(sockets[0]);
        let clients: Vec<_> = (0..200)
            .map(|_| TcpStream::connect(port).unwrap())
            .collect();
        for socket in sockets {
            let socket = TcpListener::from(socket.try_clone_to_owned().unwrap());
            let waiting = std::iter::from_fn(|| socket.accept().ok()).count();
            assert!((60..=140).contains(&waiting), "{waiting} of 200");
        }
        drop(clients);
    }

    #[test]
    fn sockets_that_no_remaining_worker_has_asked_for_are_closed() {
        let mut listeners = Listeners::new(1);
        let kept = address(listeners.get(1, 1, "127.0.0.1:0").unwrap()[0]);
        let closed = address(listeners.get(1, 1, "127.0.0.1:0").unwrap()[0]);
        listeners.get(2, 1, "127.0.0.1:0").unwrap();
        listeners.close_except_of(&[2]);
        assert!(TcpStream::connect(kept).is_ok());
        assert!(TcpStream::connect(closed).is_err());
    }

    #[test]
    fn a_socket_that_only_ended_workers_used_does_not_occupy_its_port() {
        let mut listeners = Listeners::new(1);
        let port = address(listeners.get(1, 1, "127.0.0.1:0").unwrap()[0]).port();
        let everywhere = format!("0.0.0.0:{port}");
        assert!(listeners.get(2, 1, &everywhere).is_err());
        listeners.forget(1);
        assert!(listeners.get(2, 1, &everywhere).is_ok());
    }

    #[test]
    fn a_port_in_use_is_refused_and_may_be_asked_for_again() {
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = other.local_addr().unwrap().to_string();
        for workers in [1, 2] {
            let refused = Listeners::new(workers).get(1, 1, &address).err().unwrap();
            assert!(refused.contains("Address already in use"), "{refused}");
        }
        drop(other);
        let mut listeners = Listeners::new(2);
        assert!(listeners.get(1, 1, &address).is_ok());
        let refused = Listeners::new(2).get(1, 1, &address).err().unwrap();
        assert!(refused.contains("Address already in use"), "{refused}");
    }
}
