//! What one client may hold open: long-lived calls by connection and by address.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::rc::Rc;

use super::lane::Lane;
use super::refusal::{Cause, Refusal};
use super::status::{Code, Status};
use super::upload_budget::UploadBudget;
use crate::http::Peer;

/// How many calls of one kind may be open at a time, whether they wait or are being handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShareLimits {
    /// Of all clients together.
    pub server: usize,
    /// On one connection.
    pub connection: usize,
    /// From one address, of IPv6 from one network of 64 bits. Clients on a Unix socket have none.
    pub peer: usize,
}

/// What a connection has open and holds, kept with its [`Peer`].
#[derive(Debug, Default)]
pub(super) struct ConnectionUse {
    streams: Cell<usize>,
    watches: Cell<usize>,
    pub(super) uploads: UploadBudget,
}

impl ConnectionUse {
    pub(super) fn of(peer: &Peer) -> Rc<Self> {
        peer.service_state.get_or_default()
    }

    fn open(&self, lane: Lane) -> &Cell<usize> {
        match lane {
            Lane::Watch => &self.watches,
            _ => &self.streams,
        }
    }
}

/// What is open of one lane.
pub(super) struct Shares {
    lane: Lane,
    limits: ShareLimits,
    /// `limits.server`, fitted to the fibers there are.
    server: Cell<usize>,
    open: Cell<usize>,
    by_network: RefCell<HashMap<IpAddr, usize>>,
}

impl Shares {
    pub(super) fn new(lane: Lane, limits: ShareLimits) -> Rc<Self> {
        Rc::new(Self {
            lane,
            limits,
            server: Cell::new(limits.server),
            open: Cell::default(),
            by_network: RefCell::default(),
        })
    }

    /// All clients together may have no more than that.
    pub(super) fn fit(&self, server: usize) {
        self.server.set(server);
    }

    /// Counts a call as open until the share is dropped.
    pub(super) fn take(self: &Rc<Self>, peer: &Peer) -> Result<Share, Refusal> {
        let connection = ConnectionUse::of(peer);
        let network = peer.address.map(|address| network(address.ip()));
        self.check(&connection, network)?;
        add(&self.open);
        add(connection.open(self.lane));
        if let Some(network) = network {
            *self.by_network.borrow_mut().entry(network).or_default() += 1;
        }
        Ok(Share {
            shares: Rc::clone(self),
            connection,
            network,
        })
    }

    fn check(&self, connection: &ConnectionUse, network: Option<IpAddr>) -> Result<(), Refusal> {
        let by_network = self.by_network.borrow();
        let from_network = network.and_then(|network| by_network.get(&network));
        let from_network = from_network.copied().unwrap_or_default();
        let on_connection = connection.open(self.lane).get();
        let (whose, limit) = match self.limits {
            limits if on_connection >= limits.connection => ("connection", limits.connection),
            limits if from_network >= limits.peer => ("client address", limits.peer),
            _ if self.open.get() >= self.server.get() => ("server", self.server.get()),
            _ => return Ok(()),
        };
        let (what, cause) = match self.lane {
            Lane::Watch => ("health watches", Cause::WatchLimit),
            _ => ("streams", Cause::StreamLimit),
        };
        let message = format!("the {whose} has {limit} {what} open, which is its limit");
        let status = Status::new(Code::RESOURCE_EXHAUSTED, message);
        Err(Refusal { cause, status })
    }

    #[cfg(test)]
    pub(super) fn open(&self) -> (usize, usize) {
        (self.open.get(), self.by_network.borrow().len())
    }
}

/// A call that counts as open.
pub(super) struct Share {
    shares: Rc<Shares>,
    connection: Rc<ConnectionUse>,
    network: Option<IpAddr>,
}

impl Drop for Share {
    fn drop(&mut self) {
        let shares = &self.shares;
        subtract(&shares.open);
        subtract(self.connection.open(shares.lane));
        let Some(network) = self.network else {
            return;
        };
        let mut by_network = shares.by_network.borrow_mut();
        if let Some(open) = by_network.get_mut(&network) {
            *open -= 1;
            if *open == 0 {
                by_network.remove(&network);
            }
        }
    }
}

fn add(counter: &Cell<usize>) {
    counter.set(counter.get() + 1);
}

fn subtract(counter: &Cell<usize>) {
    counter.set(counter.get() - 1);
}

/// A client with one IPv6 address has a network of 2⁶⁴ addresses (RFC 6177).
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ShareLimits = ShareLimits {
        server: 5,
        connection: 2,
        peer: 3,
    };

    fn peer(address: &str) -> Peer {
        Peer::new(Some(address.parse().unwrap()), false)
    }

    fn refusal(shares: &Rc<Shares>, peer: &Peer) -> String {
        match shares.take(peer) {
            Ok(_) => "taken".to_owned(),
            Err(refusal) => refusal.status.message.into_owned(),
        }
    }

    #[test]
    fn a_connection_an_address_and_the_server_have_limits_of_their_own() {
        let shares = Shares::new(Lane::Watch, LIMITS);
        let (first, second) = (peer("192.0.2.1:1"), peer("192.0.2.1:2"));
        let mut held = vec![shares.take(&first).ok(), shares.take(&first).ok()];
        let full = |whose, limit| {
            format!("the {whose} has {limit} health watches open, which is its limit")
        };
        assert_eq!(refusal(&shares, &first), full("connection", 2));
        held.push(shares.take(&second).ok());
        assert_eq!(refusal(&shares, &second), full("client address", 3));
        let (third, fourth) = (peer("192.0.2.2:1"), peer("192.0.2.3:1"));
        held.extend([shares.take(&third).ok(), shares.take(&third).ok()]);
        assert_eq!(refusal(&shares, &fourth), full("server", 5));
        assert!(held.iter().all(Option::is_some));
        held.clear();
        assert_eq!(shares.open(), (0, 0));
        assert_eq!(refusal(&shares, &first), "taken");
    }

    #[test]
    fn the_addresses_of_one_network_of_ipv6_are_one_client() {
        let shares = Shares::new(Lane::Stream, ShareLimits { peer: 1, ..LIMITS });
        let _held = shares.take(&peer("[2001:db8::1]:1")).ok().unwrap();
        assert_ne!(refusal(&shares, &peer("[2001:db8::ffff:2]:1")), "taken");
        assert_eq!(refusal(&shares, &peer("[2001:db8:0:1::1]:1")), "taken");
    }
}
