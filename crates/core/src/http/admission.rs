//! Which requests may be handled now, and how much of the server one client may take.
//!
//! A request is counted in one of three ways: it waits (its body is being read, or it is queued), a handler runs for it, or its
//! handler runs for long (an event stream, a WebSocket). Each way has a limit for the server, one for a client address and, for the
//! last, one for a connection. Clients take turns, so that a long queue of one delays no other.
//!
//! The counts belong to [`Permit`]s and change nowhere else: dropping a permit, at whatever moment, gives back what it holds.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::rc::{Rc, Weak};
use std::task::Waker;

use super::registry::Id;

/// Abandoned entries a queue keeps at most beside as many live ones.
const ABANDONED: usize = 32;

/// How a request is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Its body is being read, or it is queued.
    Waiting,
    /// Its handler runs.
    Running,
    /// Its handler serves an event stream or a WebSocket.
    LongLived,
}

const KINDS: usize = 3;

/// Limits of the whole server, and the part of them one client may take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Capacity {
    pub(crate) waiting: usize,
    pub(crate) running: usize,
    pub(crate) long_lived: usize,
    pub(crate) long_lived_per_connection: usize,
    pub(crate) connections: usize,
    /// Above 0, up to 1.
    pub(crate) client_share: f64,
}

impl Capacity {
    fn of(&self, kind: Kind) -> usize {
        match kind {
            Kind::Waiting => self.waiting,
            Kind::Running => self.running,
            Kind::LongLived => self.long_lived,
        }
    }

    /// What one client may take of `limit`: 1 at least.
    fn share(&self, limit: usize) -> usize {
        let share = (limit as f64 * self.client_share).ceil() as usize;
        share.clamp(1, limit.max(1))
    }

    /// How many handlers may run at a time.
    fn handlers(&self) -> usize {
        self.running.saturating_add(self.long_lived)
    }

    /// Leaves no more places than there are fibers to handle them: where there are too few, half of them are for requests that last.
    fn fitted(self, fibers: usize) -> Self {
        if self.handlers() <= fibers {
            return self;
        }
        let long_lived = self.long_lived.min(fibers.div_ceil(2));
        let running = self.running.min(fibers.saturating_sub(long_lived).max(1));
        Self {
            running,
            long_lived,
            ..self
        }
    }
}

/// All places of that kind are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

#[derive(Debug, Default)]
struct Counts([Cell<usize>; KINDS]);

impl Counts {
    fn get(&self, kind: Kind) -> usize {
        self.0[kind as usize].get()
    }

    fn add(&self, kind: Kind) {
        let count = &self.0[kind as usize];
        count.set(count.get() + 1);
    }

    fn remove(&self, kind: Kind) {
        let count = &self.0[kind as usize];
        debug_assert!(count.get() > 0, "{kind:?} is given back twice");
        count.set(count.get().saturating_sub(1));
    }
}

/// The places of a server.
pub(crate) struct Admission {
    configured: Capacity,
    /// `configured`, fitted to the fibers there are.
    capacity: Cell<Capacity>,
    counts: Counts,
    clients: RefCell<HashMap<IpAddr, Weak<Client>>>,
    /// The client of all connections without an address: a proxy on the other side of a Unix socket.
    local: RefCell<Weak<Client>>,
    /// Clients that have queued requests and may start one, in the order in which they may.
    turns: RefCell<VecDeque<Rc<Client>>>,
    /// The task that waits for a request to start.
    pub(crate) waiter: RefCell<Option<Waker>>,
}

/// All connections from one address; from one IPv6 network of 64 bits, which is what one customer gets.
pub(crate) struct Client {
    /// `None` has no limits of its own.
    address: Option<IpAddr>,
    admission: Weak<Admission>,
    counts: Counts,
    connections: Cell<usize>,
    queue: RefCell<VecDeque<(Id, Weak<Permit>)>>,
    has_turn: Cell<bool>,
}

/// What the requests of one connection have in common.
pub(crate) struct Origin {
    admission: Rc<Admission>,
    client: Rc<Client>,
    long_lived: Cell<usize>,
}

/// An open connection; it counts until it is dropped.
pub(crate) struct OpenConnection(Rc<Origin>);

/// A place of a request. Dropping the last reference gives it back.
pub(crate) struct Permit {
    origin: Rc<Origin>,
    kind: Cell<Kind>,
}

impl Admission {
    pub(crate) fn new(capacity: Capacity) -> Rc<Self> {
        Rc::new(Self {
            configured: capacity,
            capacity: Cell::new(capacity),
            counts: Counts::default(),
            clients: RefCell::default(),
            local: RefCell::default(),
            turns: RefCell::default(),
            waiter: RefCell::default(),
        })
    }

    /// How many handlers may run at a time, if there are fibers for them.
    pub(crate) fn handlers(&self) -> usize {
        self.configured.handlers()
    }

    /// There are no more than that many fibers. May be said again with another number; what runs goes on.
    pub(crate) fn fit(&self, fibers: usize) {
        self.capacity.set(self.configured.fitted(fibers));
        self.wake();
    }

    /// A connection from `address`, unless that client has as many as it may have.
    pub(crate) fn connect(
        self: &Rc<Self>,
        address: Option<IpAddr>,
    ) -> Result<OpenConnection, Full> {
        let client = self.client(address.map(network));
        let capacity = self.capacity.get();
        let is_full = client.connections.get() >= capacity.share(capacity.connections);
        if client.address.is_some() && is_full {
            return Err(Full);
        }
        client.connections.set(client.connections.get() + 1);
        Ok(OpenConnection(Rc::new(Origin {
            admission: Rc::clone(self),
            client,
            long_lived: Cell::default(),
        })))
    }

    fn client(self: &Rc<Self>, address: Option<IpAddr>) -> Rc<Client> {
        let known = match address {
            Some(address) => self.clients.borrow().get(&address).and_then(Weak::upgrade),
            None => self.local.borrow().upgrade(),
        };
        known.unwrap_or_else(|| {
            let client = Rc::new(Client::new(address, Rc::downgrade(self)));
            match address {
                Some(address) => {
                    let known = Rc::downgrade(&client);
                    self.clients.borrow_mut().insert(address, known);
                }
                None => *self.local.borrow_mut() = Rc::downgrade(&client),
            }
            client
        })
    }

    /// Whether [`next`](Self::next) may have something.
    pub(crate) fn has_next(&self) -> bool {
        self.counts.get(Kind::Running) < self.capacity.get().running
            && !self.turns.borrow().is_empty()
    }

    /// The queued request that starts now, with its permit, which counts as running.
    pub(crate) fn next(&self) -> Option<(Id, Rc<Permit>)> {
        while self.has_next() {
            let client = self.turns.borrow_mut().pop_front()?;
            client.has_turn.set(false);
            let first = client.first();
            if let Some((_, permit)) = &first {
                permit.become_kind(Kind::Running);
            }
            self.give_turn(&client);
            if first.is_some() {
                return first;
            }
        }
        None
    }

    fn give_turn(&self, client: &Rc<Client>) {
        let may_start = self.has_room(client, Kind::Running);
        if may_start && !client.queue.borrow().is_empty() && !client.has_turn.replace(true) {
            self.turns.borrow_mut().push_back(Rc::clone(client));
        }
    }

    /// Whether the client may have one more of that kind, whatever the server has.
    fn has_room(&self, client: &Client, kind: Kind) -> bool {
        let capacity = self.capacity.get();
        client.address.is_none() || client.counts.get(kind) < capacity.share(capacity.of(kind))
    }

    fn wake(&self) {
        if self.has_next()
            && let Some(waiter) = self.waiter.borrow_mut().take()
        {
            waiter.wake();
        }
    }

    #[cfg(test)]
    fn count(&self, kind: Kind) -> usize {
        self.counts.get(kind)
    }
}

impl Client {
    fn new(address: Option<IpAddr>, admission: Weak<Admission>) -> Self {
        Self {
            address,
            admission,
            counts: Counts::default(),
            connections: Cell::default(),
            queue: RefCell::default(),
            has_turn: Cell::default(),
        }
    }

    /// The first queued request that was not abandoned.
    fn first(&self) -> Option<(Id, Rc<Permit>)> {
        let mut queue = self.queue.borrow_mut();
        while let Some((id, permit)) = queue.pop_front() {
            if let Some(permit) = permit.upgrade() {
                return Some((id, permit));
            }
        }
        None
    }

    /// Requests that were abandoned do not pile up while nothing is started.
    fn forget_abandoned(&self) {
        let mut queue = self.queue.borrow_mut();
        if queue.len() > 2 * self.counts.get(Kind::Waiting) + ABANDONED {
            queue.retain(|(_, permit)| permit.strong_count() > 0);
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let (Some(address), Some(admission)) = (self.address, self.admission.upgrade()) {
            admission.clients.borrow_mut().remove(&address);
        }
    }
}

impl OpenConnection {
    /// A place for a request that has arrived.
    pub(crate) fn admit(&self) -> Result<Rc<Permit>, Full> {
        let origin = &self.0;
        let admission = &origin.admission;
        let is_full = admission.counts.get(Kind::Waiting) >= admission.capacity.get().waiting;
        if is_full || !admission.has_room(&origin.client, Kind::Waiting) {
            return Err(Full);
        }
        origin.add(Kind::Waiting);
        Ok(Rc::new(Permit {
            origin: Rc::clone(origin),
            kind: Cell::new(Kind::Waiting),
        }))
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        let connections = &self.0.client.connections;
        connections.set(connections.get() - 1);
    }
}

impl Origin {
    fn add(&self, kind: Kind) {
        self.admission.counts.add(kind);
        self.client.counts.add(kind);
        if kind == Kind::LongLived {
            self.long_lived.set(self.long_lived.get() + 1);
        }
    }

    fn remove(&self, kind: Kind) {
        self.admission.counts.remove(kind);
        self.client.counts.remove(kind);
        if kind == Kind::LongLived {
            self.long_lived.set(self.long_lived.get() - 1);
        }
    }

    /// After a count has become smaller.
    fn proceed(&self, kind: Kind) {
        match kind {
            Kind::Waiting => self.client.forget_abandoned(),
            Kind::Running => {
                self.admission.give_turn(&self.client);
                self.admission.wake();
            }
            Kind::LongLived => {}
        }
    }
}

impl Permit {
    /// Queues the request of that id: [`Admission::next`] starts it, unless the permit is dropped before.
    pub(crate) fn queue(self: &Rc<Self>, id: Id) {
        let client = &self.origin.client;
        client.forget_abandoned();
        let entry = (id, Rc::downgrade(self));
        client.queue.borrow_mut().push_back(entry);
        self.origin.admission.give_turn(client);
        self.origin.admission.wake();
    }

    /// The request becomes one that lasts: it leaves its place to another.
    pub(crate) fn last(&self) -> Result<(), Full> {
        let origin = &self.origin;
        let capacity = origin.admission.capacity.get();
        let is_full = origin.admission.counts.get(Kind::LongLived) >= capacity.long_lived
            || origin.long_lived.get() >= capacity.long_lived_per_connection;
        if is_full || !origin.admission.has_room(&origin.client, Kind::LongLived) {
            return Err(Full);
        }
        self.become_kind(Kind::LongLived);
        Ok(())
    }

    fn become_kind(&self, kind: Kind) {
        let before = self.kind.replace(kind);
        self.origin.remove(before);
        self.origin.add(kind);
        self.origin.proceed(before);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let kind = self.kind.get();
        self.origin.remove(kind);
        self.origin.proceed(kind);
    }
}

fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = address.to_bits() & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from_bits(network))
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::*;
    use crate::properties::at_least;

    const CAPACITY: Capacity = Capacity {
        waiting: 8,
        running: 4,
        long_lived: 4,
        long_lived_per_connection: 2,
        connections: 6,
        client_share: 0.5,
    };

    fn address(last: u8) -> Option<IpAddr> {
        Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, last)))
    }

    fn queued(connection: &OpenConnection, id: Id) -> Rc<Permit> {
        let permit = connection.admit().ok().unwrap();
        permit.queue(id);
        permit
    }

    #[test]
    fn requests_of_one_client_start_in_their_order_and_clients_take_turns() {
        let admission = Admission::new(CAPACITY);
        let one = admission.connect(address(1)).ok().unwrap();
        let other = admission.connect(address(2)).ok().unwrap();
        let _waiting: Vec<_> = [(&one, 1), (&one, 2), (&one, 3), (&other, 4), (&other, 5)]
            .map(|(connection, id)| queued(connection, id))
            .into();
        let mut running = Vec::new();
        while let Some(next) = admission.next() {
            running.push(next);
        }
        let ids: Vec<Id> = running.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids, [1, 4, 2, 5]);
    }

    #[test]
    fn one_client_takes_no_more_than_its_share_of_anything() {
        let admission = Admission::new(CAPACITY);
        let connections: Vec<_> = (0..3).map(|_| admission.connect(address(1))).collect();
        assert!(connections.iter().all(Result::is_ok));
        assert!(admission.connect(address(1)).is_err());
        let greedy = connections[0].as_ref().ok().unwrap();
        let waiting: Vec<_> = (0..4).map(|id| queued(greedy, id)).collect();
        assert!(greedy.admit().is_err());
        let running: Vec<_> = (0..2).map(|_| admission.next().unwrap().1).collect();
        assert!(admission.next().is_none());
        let other = admission.connect(address(2)).ok().unwrap();
        let theirs = queued(&other, 9);
        assert_eq!(admission.next().map(|(id, _)| id), Some(9));
        drop((waiting, running, theirs));
        assert_eq!(admission.count(Kind::Waiting), 0);
    }

    #[test]
    fn a_request_that_lasts_leaves_its_place_to_others() {
        let admission = Admission::new(CAPACITY);
        let connection = admission.connect(None).ok().unwrap();
        let events: Vec<_> = (0..3)
            .map(|id| {
                let permit = queued(&connection, id);
                admission.next().unwrap();
                permit
            })
            .collect();
        assert_eq!(events[0].last(), Ok(()));
        assert_eq!(events[1].last(), Ok(()));
        assert_eq!(events[2].last(), Err(Full), "two for a connection");
        assert_eq!(admission.count(Kind::LongLived), 2);
        assert_eq!(admission.count(Kind::Running), 1);
    }

    #[test]
    fn abandoned_requests_neither_count_nor_pile_up() {
        let admission = Admission::new(CAPACITY);
        let connection = admission.connect(address(1)).ok().unwrap();
        for id in 0..100_000 {
            drop(queued(&connection, id));
        }
        assert_eq!(admission.count(Kind::Waiting), 0);
        assert!(connection.0.client.queue.borrow().len() <= ABANDONED + 1);
        let live = queued(&connection, 7);
        assert_eq!(admission.next().map(|(id, _)| id), Some(7));
        drop(live);
    }

    #[test]
    fn as_many_handlers_run_as_there_are_fibers_for() {
        let fitted = CAPACITY.fitted(5);
        assert_eq!((fitted.running, fitted.long_lived), (2, 3));
        let alone = CAPACITY.fitted(1);
        assert_eq!((alone.running, alone.long_lived), (1, 1));
        assert_eq!(CAPACITY.fitted(CAPACITY.handlers()), CAPACITY);
    }

    #[test]
    fn a_client_that_has_left_is_forgotten() {
        let admission = Admission::new(CAPACITY);
        let connection = admission.connect(address(1)).ok().unwrap();
        let permit = connection.admit().ok().unwrap();
        drop(connection);
        assert_eq!(admission.clients.borrow().len(), 1);
        drop(permit);
        assert_eq!(admission.clients.borrow().len(), 0);
    }

    #[test]
    fn addresses_of_one_ipv6_network_are_one_client() {
        let one: IpAddr = "2001:db8::1".parse().unwrap();
        let other: IpAddr = "2001:db8::ffff:2".parse().unwrap();
        let mapped: IpAddr = "::ffff:192.0.2.1".parse().unwrap();
        assert_eq!(network(one), network(other));
        assert_eq!(Some(network(mapped)), address(1));
    }

    #[derive(Debug, Clone)]
    enum Step {
        Connect(u8),
        Disconnect(usize),
        Admit(usize),
        Queue(usize),
        Start,
        Last(usize),
        Drop(usize),
        Clone(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0_u8..4).prop_map(Step::Connect),
            any::<usize>().prop_map(Step::Disconnect),
            any::<usize>().prop_map(Step::Admit),
            any::<usize>().prop_map(Step::Queue),
            Just(Step::Start),
            any::<usize>().prop_map(Step::Last),
            any::<usize>().prop_map(Step::Drop),
            any::<usize>().prop_map(Step::Clone),
        ]
    }

    #[derive(Default)]
    struct World {
        connections: Vec<OpenConnection>,
        arrived: Vec<Rc<Permit>>,
        held: Vec<Rc<Permit>>,
    }

    impl World {
        fn act(&mut self, admission: &Rc<Admission>, step: &Step) {
            let pick = |index: usize, length: usize| (length > 0).then(|| index % length);
            match *step {
                Step::Connect(0) => self.connections.extend(admission.connect(None)),
                Step::Connect(last) => self.connections.extend(admission.connect(address(last))),
                Step::Disconnect(index) => {
                    pick(index, self.connections.len()).map(|at| self.connections.remove(at));
                }
                Step::Admit(index) => {
                    let at = pick(index, self.connections.len());
                    let admitted = at.map(|at| self.connections[at].admit());
                    self.arrived.extend(admitted.into_iter().flatten());
                }
                Step::Queue(index) => {
                    if let Some(at) = pick(index, self.arrived.len()) {
                        let permit = self.arrived.remove(at);
                        permit.queue(index as Id);
                        self.held.push(permit);
                    }
                }
                Step::Start => self.held.extend(admission.next().map(|(_, permit)| permit)),
                Step::Last(index) => {
                    let at = pick(index, self.held.len());
                    let running = at.map(|at| &self.held[at]);
                    if let Some(permit) = running.filter(|it| it.kind.get() == Kind::Running) {
                        let _ = permit.last();
                    }
                }
                Step::Drop(index) => match index % 2 {
                    0 => {
                        pick(index / 2, self.held.len()).map(|at| self.held.swap_remove(at));
                    }
                    _ => {
                        pick(index / 2, self.arrived.len()).map(|at| self.arrived.swap_remove(at));
                    }
                },
                Step::Clone(index) => {
                    let at = pick(index, self.held.len());
                    let clone = at.map(|at| Rc::clone(&self.held[at]));
                    self.held.extend(clone);
                }
            }
        }

        fn counted(&self, kind: Kind) -> usize {
            let all = self.arrived.iter().chain(&self.held);
            let mut places: Vec<_> = all
                .filter(|permit| permit.kind.get() == kind)
                .map(Rc::as_ptr)
                .collect();
            places.sort_unstable();
            places.dedup();
            places.len()
        }
    }

    proptest! {
        #![proptest_config(at_least(256))]

        #[test]
        fn whatever_is_dropped_when_counts_are_those_of_what_is_held(
            steps in prop::collection::vec(step(), 1..200),
        ) {
            let admission = Admission::new(CAPACITY);
            let mut world = World::default();
            for step in &steps {
                world.act(&admission, step);
                for kind in [Kind::Waiting, Kind::Running, Kind::LongLived] {
                    prop_assert_eq!(admission.count(kind), world.counted(kind));
                    prop_assert!(admission.count(kind) <= CAPACITY.of(kind));
                }
            }
            drop(world);
            while admission.next().is_some() {}
            for kind in [Kind::Waiting, Kind::Running, Kind::LongLived] {
                prop_assert_eq!(admission.count(kind), 0);
            }
            prop_assert!(admission.clients.borrow().is_empty());
        }
    }
}
