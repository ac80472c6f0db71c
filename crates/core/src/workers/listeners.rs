//! Listening sockets that outlive workers.

use std::collections::{HashMap, HashSet};
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use super::channel::MAX_DESCRIPTORS;
use crate::net::{self, Address, ListenError};

/// The address of a request and its number among the worker's requests for that address: one that asks twice means two ports, which
/// port 0 allows.
type Key = (String, usize);

/// The sockets of every address that a worker has asked for. Connections in an accept queue wait for the next worker.
///
/// On TCP each worker slot has a socket of its own, and the kernel spreads connections over them (`SO_REUSEPORT`): with one
/// shared queue, the worker that has just accepted would accept again. A Unix socket has one queue.
///
/// In a reload the addresses of old and new code may overlap, such as `127.0.0.1:80` and `0.0.0.0:80`. Of two sockets the kernel
/// chooses the one with the narrower address. So workers of the wider one accept from the narrower ones too, which are closed with it.
pub(super) struct Listeners {
    workers: usize,
    open: HashMap<Key, Rc<Vec<OwnedFd>>>,
    /// How often each living worker has asked for each address.
    asked: HashMap<u32, HashMap<String, usize>>,
    /// The sockets that each living worker has.
    held: HashMap<u32, HashSet<Key>>,
}

impl Listeners {
    pub fn new(workers: usize) -> Self {
        Self {
            workers: workers.max(1),
            open: HashMap::new(),
            asked: HashMap::new(),
            held: HashMap::new(),
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
            let opened = open(address, self.workers)
                .or_else(|_| {
                    // Sockets that only ended workers used, such as those of an abandoned reload, may be what occupies the address.
                    self.close_unheld(|_| true);
                    open(address, self.workers)
                })
                .map(Rc::new);
            let opened = opened.or_else(|error| self.open_beside(pid, address, &error))?;
            self.open.insert(key.clone(), opened);
        }
        *self
            .asked
            .entry(pid)
            .or_default()
            .entry(address.to_owned())
            .or_insert(0) += 1;
        let narrower = self.narrower_than(&key);
        let held = self.held.entry(pid).or_default();
        held.insert(key.clone());
        held.extend(narrower.iter().cloned());
        let groups: Vec<&Vec<OwnedFd>> = std::iter::once(&key)
            .chain(&narrower)
            .map(|key| &*self.open[key])
            .collect();
        let slots = groups.iter().map(|group| group.len()).max().unwrap_or(0);
        let from_own = (0..slots).flat_map(|after| {
            groups
                .iter()
                .filter(move |group| after < group.len())
                .map(move |group| &group[(index.saturating_sub(1) + after) % group.len()])
        });
        Ok(from_own.take(MAX_DESCRIPTORS).map(AsFd::as_fd).collect())
    }

    /// The worker is ready: connections to its addresses queue for it from now on. It starts to accept a little later, and meanwhile those
    /// of a narrower address would go to the wider socket of the worker that it replaces, which stops accepting.
    pub fn start(&self, pid: u32) {
        let keys = self.held.get(&pid).into_iter().flatten();
        for socket in keys
            .filter_map(|key| self.open.get(key))
            .flat_map(|sockets| sockets.iter())
        {
            // The worker does the same when it accepts, and reports the failure.
            let _ = net::start_listening(socket.as_fd());
        }
    }

    /// Closes the sockets that none of these workers has.
    pub fn close_except_of(&mut self, pids: &[u32]) {
        self.close_unheld(|pid| pids.contains(pid));
    }

    /// Closes the sockets that none of the selected living workers has.
    fn close_unheld(&mut self, is_selected: impl Fn(&u32) -> bool) {
        let held = &self.held;
        self.open.retain(|key, _| {
            let mut selected = held.iter().filter(|(pid, _)| is_selected(pid));
            selected.any(|(_, keys)| keys.contains(key))
        });
    }

    /// The worker has ended. Its sockets stay open for the next one, except those that overlap with the address of another worker: they
    /// would take its connections.
    pub fn forget(&mut self, pid: u32) {
        self.asked.remove(&pid);
        let Some(keys) = self.held.remove(&pid) else {
            return;
        };
        for key in keys {
            let is_held = |key: &Key| self.held.values().any(|keys| keys.contains(key));
            let address = self.address_of(&key);
            let takes_from_others = !is_held(&key)
                && self.open.keys().any(|other| {
                    let other_address = self.address_of(other);
                    is_held(other)
                        && address
                            .zip(other_address)
                            .is_some_and(|(one, other)| overlap(one, other))
                });
            if takes_from_others {
                self.open.remove(&key);
            }
        }
    }

    /// Sockets of an address that overlaps with one that running workers have, and is of other code than theirs.
    fn open_beside(
        &self,
        pid: u32,
        address: &str,
        refused: &ListenError,
    ) -> Result<Rc<Vec<OwnedFd>>, String> {
        let wanted: Vec<SocketAddr> = match address.parse() {
            Ok(Address::Tcp(text)) => text.to_socket_addrs().into_iter().flatten().collect(),
            Ok(Address::Unix(_)) | Err(_) => Vec::new(),
        };
        let is_own = |key: &Key| self.held.get(&pid).is_some_and(|keys| keys.contains(key));
        for wanted in wanted {
            let occupying = self.open.iter().filter_map(|(key, sockets)| {
                let address = self.address_of(key)?;
                overlap(address, wanted).then_some((key, address, sockets))
            });
            let occupying: Vec<_> = occupying.collect();
            if let Some(((own, _), ..)) = occupying.iter().find(|(key, ..)| is_own(key)) {
                return Err(format!(
                    "{}; this application listens on {own} itself",
                    reason(refused)
                ));
            }
            if let Some((.., sockets)) = occupying.iter().find(|(_, other, _)| *other == wanted) {
                return Ok(Rc::clone(sockets));
            }
            let Some(((old, _), ..)) = occupying.first() else {
                continue;
            };
            let sockets: Vec<_> = occupying
                .iter()
                .flat_map(|(.., sockets)| sockets.iter().map(AsFd::as_fd))
                .collect();
            return match net::bind_beside(wanted, self.workers, &sockets) {
                Ok(opened) => Ok(Rc::new(opened)),
                Err(error) => Err(format!(
                    "{error}; the running workers listen on {old}, which overlaps with it: stop the supervisor and start it again"
                )),
            };
        }
        Err(reason(refused))
    }

    /// Open sockets of other addresses which this one includes.
    fn narrower_than(&self, key: &Key) -> Vec<Key> {
        let Some(address) = self.address_of(key) else {
            return Vec::new();
        };
        let mut narrower: Vec<Key> = Vec::new();
        for (other, sockets) in &self.open {
            let is_known = narrower
                .iter()
                .any(|key| Rc::ptr_eq(&self.open[key], sockets));
            let is_narrower = |other| other != address && includes(address, other);
            if !is_known && self.address_of(other).is_some_and(is_narrower) {
                narrower.push(other.clone());
            }
        }
        narrower
    }

    fn address_of(&self, key: &Key) -> Option<SocketAddr> {
        net::local_address(self.open.get(key)?.first()?.as_fd())
    }
}

/// Whether a connection to `narrow` reaches a socket of `wide` if there is no other one.
fn includes(wide: SocketAddr, narrow: SocketAddr) -> bool {
    let is_any = wide.ip().is_unspecified() && (wide.is_ipv6() || narrow.is_ipv4());
    wide.port() == narrow.port() && (is_any || wide.ip() == narrow.ip())
}

fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    includes(one, other) || includes(other, one)
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

    /// A port that no socket has.
    fn free(host: &str) -> SocketAddr {
        let socket = TcpListener::bind((host, 0)).unwrap();
        socket.local_addr().unwrap()
    }

    /// Connects, and says whether the connection reaches one of these sockets.
    fn reaches(sockets: &[BorrowedFd<'_>], port: SocketAddr) -> bool {
        let _client = TcpStream::connect(port).unwrap();
        sockets.iter().any(|socket| {
            let socket = TcpListener::from(socket.try_clone_to_owned().unwrap());
            socket.accept().is_ok()
        })
    }

    fn listen(sockets: &[BorrowedFd<'_>]) {
        for socket in sockets {
            socket2::SockRef::from(socket).listen(1).unwrap();
        }
    }

    #[test]
    fn workers_of_a_wider_address_have_the_sockets_of_the_narrower_one_until_it_is_narrow_again() {
        for workers in [1, 2] {
            let narrow = free("127.0.0.1");
            let text = narrow.to_string();
            let mut listeners = Listeners::new(workers);
            let narrow_sockets = numbers(&listeners.get(1, 1, &text).unwrap());
            let everywhere = format!("0.0.0.0:{}", narrow.port());
            for pid in [2, 3] {
                let sockets = listeners.get(pid, 1, &everywhere).unwrap();
                assert_eq!(sockets.len(), 2 * workers);
                assert!(
                    narrow_sockets
                        .iter()
                        .all(|it| numbers(&sockets).contains(it))
                );
                listen(&sockets);
                assert!(reaches(&sockets, narrow));
                listeners.close_except_of(&[pid]);
                listeners.forget(pid - 1);
            }
            let again = listeners.get(4, 1, &text).unwrap();
            assert_eq!(numbers(&again), narrow_sockets);
            assert!(reaches(&again, narrow));
            listeners.close_except_of(&[4]);
            assert_eq!(listeners.open.len(), 1);
        }
    }

    #[test]
    fn a_narrower_address_takes_no_connection_before_a_worker_accepts_there_nor_after_it_has_ended()
    {
        for workers in [1, 2] {
            let wide = free("0.0.0.0");
            let narrow = SocketAddr::from(([127, 0, 0, 1], wide.port()));
            let everywhere = wide.to_string();
            let mut listeners = Listeners::new(workers);
            let reaches_old = |listeners: &mut Listeners| {
                let old: Vec<_> = listeners.open[&(everywhere.clone(), 0)]
                    .iter()
                    .map(AsFd::as_fd)
                    .collect();
                reaches(&old, narrow)
            };
            listeners.get(1, 1, &everywhere).unwrap();
            let sockets = listeners.get(2, 1, &narrow.to_string()).unwrap();
            assert_eq!(sockets.len(), workers);
            assert!(reaches_old(&mut listeners));
            let sockets = listeners.get(3, 1, &narrow.to_string()).unwrap();
            listen(&sockets);
            assert!(reaches(&sockets, narrow));
            listeners.forget(2);
            listeners.forget(3);
            assert!(reaches_old(&mut listeners));
        }
    }

    #[test]
    fn a_narrower_address_takes_connections_when_its_worker_is_ready_and_does_not_accept_yet() {
        let wide = free("0.0.0.0");
        let narrow = SocketAddr::from(([127, 0, 0, 1], wide.port()));
        let mut listeners = Listeners::new(2);
        listeners.get(1, 1, &wide.to_string()).unwrap();
        listeners.get(2, 1, &narrow.to_string()).unwrap();
        listeners.start(2);
        let _client = TcpStream::connect(narrow).unwrap();
        listeners.close_except_of(&[2]);
        let accepted = listeners.open[&(narrow.to_string(), 0)]
            .iter()
            .any(|socket| {
                let socket = TcpListener::from(socket.try_clone().unwrap());
                socket.accept().is_ok()
            });
        assert!(accepted);
    }

    #[test]
    fn other_text_for_an_address_means_the_same_sockets() {
        let port = free("127.0.0.1").to_string();
        let mut listeners = Listeners::new(2);
        let sockets = numbers(&listeners.get(1, 1, &port).unwrap());
        let renamed = port.replace("127.0.0.1", "127.1");
        assert_eq!(numbers(&listeners.get(2, 1, &renamed).unwrap()), sockets);
        listeners.close_except_of(&[2]);
        listeners.forget(1);
        assert_eq!(numbers(&listeners.get(3, 1, &renamed).unwrap()), sockets);
    }

    #[test]
    fn addresses_of_one_application_must_not_overlap() {
        let mut listeners = Listeners::new(1);
        let port = address(listeners.get(1, 1, "127.0.0.1:0").unwrap()[0]).port();
        let refused = listeners
            .get(1, 1, &format!("0.0.0.0:{port}"))
            .err()
            .unwrap();
        assert!(
            refused.contains("Address already in use")
                && refused.ends_with("; this application listens on 127.0.0.1:0 itself"),
            "{refused}"
        );
    }

    #[test]
    fn a_port_that_another_program_occupies_as_well_is_refused_with_what_to_do() {
        let other = TcpListener::bind("127.0.0.2:0").unwrap();
        let port = other.local_addr().unwrap().port();
        let mut listeners = Listeners::new(1);
        let old = format!("127.0.0.1:{port}");
        listeners.get(1, 1, &old).unwrap();
        let refused = listeners
            .get(2, 1, &format!("0.0.0.0:{port}"))
            .err()
            .unwrap();
        assert!(
            refused.contains("Address already in use")
                && refused.contains(&format!("the running workers listen on {old}")),
            "{refused}"
        );
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
