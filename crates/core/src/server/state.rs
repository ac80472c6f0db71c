//! The state machine: no `await`, no clock, no cells and no wakers, so that a model can explore every order of its steps.

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::rc::Rc;

use tokio::time::Instant;

use super::capacity::{Capacity, ConcurrencyLimits, LANES};
use super::queue::Queue;
use super::refusal::{Refusal, Scope};
use super::refusals::{RefusalReason, RefusalReport, Refusals};
use super::slab::{Id, Slab};
use super::timers::{Timer, Timers};

/// Uploads up to this size need no reservation: the number of requests bounds them.
pub(crate) const UNRESERVED: usize = 64 << 10;

/// An event for the code that runs the handlers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<R> {
    /// A handler is to be started for a request.
    Request(R),
    /// The client of a request whose handler runs has cancelled it or gone away.
    Gone(Id),
    /// The deadline of a request has passed while its handler runs.
    Expired(Id),
}

/// A task for the owner of a request, which follows from a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// Answer that the request is refused. It is counted already.
    Refuse(Refusal),
    /// The deadline has passed while the handler runs.
    Expire,
    /// Compare the progress of the upload with what it was.
    CheckUpload,
    /// The bytes that the upload waits for are reserved.
    Resume,
}

/// A request that arrives.
#[derive(Debug, Clone, Default)]
pub(crate) struct Arrival {
    pub(crate) connection: Id,
    pub(crate) lane: usize,
    /// Indexes of the concurrency limits it is subject to.
    pub(crate) concurrency: Option<Rc<[usize]>>,
    pub(crate) deadline: Option<Instant>,
}

/// Everything that a server counts.
#[cfg(test)]
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) requests: usize,
    pub(crate) waiting: usize,
    pub(crate) running: [usize; LANES],
    pub(crate) open: [usize; LANES],
    /// Those that wait for a handler and have arrived as a whole.
    pub(crate) queued: usize,
    pub(crate) concurrency: usize,
    pub(crate) reserved: usize,
    pub(crate) timers: usize,
}

/// The progress of a request, up to the end of its handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The request is not complete.
    Arriving,
    /// It waits at a concurrency limit.
    Limited(usize),
    /// It waits for a handler.
    Queued,
    /// Its handler runs.
    Running,
    /// Its handler has ended, or it will never get one.
    Ended,
}

impl Stage {
    fn is_waiting(self) -> bool {
        matches!(self, Self::Arriving | Self::Limited(_) | Self::Queued)
    }
}

#[derive(Debug)]
struct Request<R> {
    handle: R,
    connection: Id,
    client: Id,
    lane: usize,
    stage: Stage,
    concurrency: Option<Rc<[usize]>>,
    /// It counts as running at its concurrency limits.
    is_inside: bool,
    /// Its client waits for the answer, or for more of it.
    is_open: bool,
    /// Its connection still needs it, because the response is not sent.
    is_attached: bool,
    deadline: Option<Instant>,
    /// When the progress of the upload is checked.
    upload: Option<Instant>,
    bytes: Bytes,
}

/// The part of a request in the byte budget of its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bytes {
    None,
    Waiting,
    Reserved(usize),
}

#[derive(Debug, Default)]
struct Connection {
    client: Id,
    peer: Option<SocketAddr>,
    is_open: bool,
    /// Requests that refer to it.
    requests: u32,
    /// Requests that wait or run, by lane.
    open: [u32; LANES],
    /// Made for the first upload that needs bytes.
    uploads: Option<Box<Uploads>>,
}

/// Large uploads of a connection.
#[derive(Debug, Default)]
struct Uploads {
    reserved: usize,
    /// Those that wait for their bytes, in order.
    waiting: VecDeque<(Id, usize)>,
}

/// All connections of one address; of IPv6 one network of 64 bits, which is what one customer gets (RFC 6177).
#[derive(Debug, Default)]
struct Client {
    /// `None` has no share.
    network: Option<IpAddr>,
    /// Records of connections that refer to it.
    records: usize,
    connections: usize,
    waiting: usize,
    lanes: [ClientLane; LANES],
}

#[derive(Debug, Default)]
struct ClientLane {
    open: usize,
    running: usize,
    queue: Queue,
    /// It is among the clients that may start a request.
    has_turn: bool,
}

impl Client {
    /// Whether a request of the client may start, where its `share` of the lane is that many.
    fn can_start(&self, lane: usize, share: usize) -> bool {
        let of = &self.lanes[lane];
        !of.queue.is_empty() && (self.network.is_none() || of.running < share)
    }
}

/// The change of the counts by a transition of a request.
#[derive(Clone, Copy, Default)]
struct Change {
    open: isize,
    waiting: isize,
    running: isize,
}

#[derive(Debug, Default)]
struct Lane {
    open: usize,
    running: usize,
    /// `running` of its limits, fitted to the fibers.
    limit: usize,
    /// The part of `limit` that one client may take.
    share: usize,
    /// Clients that have queued requests and may start one, in the order in which they may.
    turns: VecDeque<Id>,
}

#[derive(Debug)]
struct Concurrency {
    limits: ConcurrencyLimits,
    running: usize,
    waiting: Queue,
}

impl Concurrency {
    fn is_full(&self) -> bool {
        self.running >= self.limits.running
    }
}

/// Admission and life cycle of everything a server serves.
///
/// A request arrives on a connection, waits until it is complete, then at its concurrency limits, then in the queue of its client;
/// its handler runs and ends. Independently of that its client waits for the answer until that is finished or the client leaves.
/// Every count is changed by the transition that it belongs to, and nowhere else.
pub(super) struct State<R, C> {
    capacity: Capacity,
    connections: Slab<Connection>,
    open_connections: usize,
    listeners: usize,
    is_stopping: bool,
    clients: Slab<Client>,
    by_network: HashMap<IpAddr, Id>,
    /// The client of connections without an address: a proxy at the other end of a Unix socket.
    local: Option<Id>,
    requests: Slab<Request<R>>,
    /// Requests that arrive or wait, in lanes that queue.
    waiting: usize,
    attached: usize,
    lanes: [Lane; LANES],
    /// The lane whose turn it is.
    turn: usize,
    concurrency: Vec<Concurrency>,
    /// The part of the queue that one client may take.
    queue_share: usize,
    timers: Timers,
    events: VecDeque<Event<R>>,
    actions: VecDeque<(Id, Action)>,
    refusals: Refusals<C>,
}

fn is_queued<R>(requests: &Slab<Request<R>>, id: Id) -> bool {
    requests
        .get(id)
        .is_some_and(|request| request.stage == Stage::Queued)
}

fn is_limited<R>(requests: &Slab<Request<R>>, id: Id, limit: usize) -> bool {
    requests
        .get(id)
        .is_some_and(|request| request.stage == Stage::Limited(limit))
}

fn is_timed<R>(requests: &Slab<Request<R>>, at: Instant, id: Id, timer: Timer) -> bool {
    requests.get(id).is_some_and(|request| match timer {
        Timer::Deadline => request.deadline == Some(at),
        Timer::Upload => request.upload == Some(at),
    })
}

impl<R: Clone, C: RefusalReason> State<R, C> {
    pub(super) fn new(capacity: Capacity) -> Self {
        let concurrency = capacity.concurrency.iter().map(|limits| Concurrency {
            limits: limits.clone(),
            running: 0,
            waiting: Queue::default(),
        });
        let mut state = Self {
            concurrency: concurrency.collect(),
            queue_share: capacity.share(capacity.queue),
            capacity,
            connections: Slab::default(),
            open_connections: 0,
            listeners: 0,
            is_stopping: false,
            clients: Slab::default(),
            by_network: HashMap::new(),
            local: None,
            requests: Slab::default(),
            waiting: 0,
            attached: 0,
            lanes: Default::default(),
            turn: 0,
            timers: Timers::default(),
            events: VecDeque::new(),
            actions: VecDeque::new(),
            refusals: Refusals::default(),
        };
        state.fit(usize::MAX);
        state
    }

    pub(super) fn capacity(&self) -> &Capacity {
        &self.capacity
    }

    /// Lets no more handlers run than there are fibers. Handlers that run go on, and requests that would wait for one of them in a
    /// lane without a queue are refused.
    pub(super) fn fit(&mut self, fibers: usize) {
        let fitted = self.capacity.fitted(fibers);
        for (lane, limit) in self.lanes.iter_mut().zip(fitted) {
            lane.limit = limit;
            lane.share = self.capacity.share(limit);
        }
        for lane in 0..self.capacity.lanes.len() {
            if !self.capacity.lanes[lane].queues {
                self.refuse_surplus(lane);
            }
        }
        let clients: Vec<Id> = self.clients.ids().collect();
        for client in clients {
            (0..self.capacity.lanes.len()).for_each(|lane| self.give_turn(client, lane));
        }
    }

    /// Refuses what has arrived in a lane without a queue while its limit was larger, such as before the server runs: its requests last,
    /// so those beyond the limit would wait for a handler for an unlimited time. Those of the client with the most of them go first.
    fn refuse_surplus(&mut self, lane: usize) {
        let Lane { limit, share, .. } = self.lanes[lane];
        let mut waiting = self.waiting_in(lane);
        loop {
            waiting.retain(|(_, ids)| !ids.is_empty());
            let open = |client: Id| {
                let client = self.clients.get(client);
                client.map_or((0, false), |it| (it.lanes[lane].open, it.network.is_some()))
            };
            let most = waiting.iter_mut().max_by_key(|(client, _)| {
                let (open, has_share) = open(*client);
                (has_share && open > share, open)
            });
            let Some((client, ids)) = most else {
                return;
            };
            let (scope, limit) = match open(*client) {
                (open, true) if open > share => (Scope::Client, share),
                _ if self.lanes[lane].open > limit => (Scope::Server, limit),
                _ => return,
            };
            if let Some(id) = ids.pop() {
                let name = self.capacity.lanes[lane].name;
                self.refuse_for(id, Refusal::lane(lane, name, scope, limit));
            }
        }
    }

    /// The requests of a lane that wait, by client, the latest last.
    fn waiting_in(&self, lane: usize) -> Vec<(Id, Vec<Id>)> {
        let mut waiting = Vec::new();
        let mut places = HashMap::new();
        for id in self.clients.ids() {
            let queue = self.clients.get(id).map(|it| &it.lanes[lane].queue);
            let queued = queue.into_iter().flat_map(Queue::iter);
            places.insert(id, waiting.len());
            waiting.push((
                id,
                queued.filter(|id| is_queued(&self.requests, *id)).collect(),
            ));
        }
        for id in self.requests.ids() {
            if let Some(request) = self.requests.get(id)
                && request.lane == lane
                && matches!(request.stage, Stage::Arriving | Stage::Limited(_))
                && let Some(place) = places.get(&request.client)
            {
                let (_, ids): &mut (Id, Vec<Id>) = &mut waiting[*place];
                ids.push(id);
            }
        }
        waiting
    }

    // Connections

    pub(super) fn open_listener(&mut self) {
        self.listeners += 1;
    }

    pub(super) fn close_listener(&mut self) {
        self.listeners -= 1;
    }

    /// Whether one more connection may be accepted.
    pub(super) fn has_room_for_connection(&self) -> bool {
        self.open_connections < self.capacity.connections
    }

    pub(super) fn open_connections(&self) -> usize {
        self.open_connections
    }

    /// A connection was accepted.
    ///
    /// # Errors
    /// Its client address has as many as it may have.
    pub(super) fn connect(&mut self, peer: Option<SocketAddr>) -> Result<Id, Refusal> {
        let network = peer.map(|peer| network(peer.ip()));
        let limit = self.capacity.share(self.capacity.connections);
        let id = self.client(network);
        let Some(client) = self.clients.get_mut(id) else {
            return Err(Refusal::connections(limit));
        };
        if network.is_some() && client.connections >= limit {
            let refusal = Refusal::connections(limit);
            self.refusals
                .add(C::of(refusal.limit), peer, &refusal.message);
            return Err(refusal);
        }
        client.connections += 1;
        client.records += 1;
        self.open_connections += 1;
        Ok(self.connections.insert(Connection {
            client: id,
            peer,
            is_open: true,
            ..Connection::default()
        }))
    }

    fn client(&mut self, network: Option<IpAddr>) -> Id {
        let known = match network {
            Some(network) => self.by_network.get(&network).copied(),
            None => self.local,
        };
        if let Some(known) = known {
            return known;
        }
        let id = self.clients.insert(Client {
            network,
            ..Client::default()
        });
        match network {
            Some(network) => drop(self.by_network.insert(network, id)),
            None => self.local = Some(id),
        }
        id
    }

    /// The connection has ended. Its requests are detached by their owners.
    pub(super) fn disconnect(&mut self, id: Id) {
        let Some(connection) = self.connections.get_mut(id) else {
            return;
        };
        if std::mem::take(&mut connection.is_open) {
            let client = connection.client;
            self.open_connections -= 1;
            if let Some(client) = self.clients.get_mut(client) {
                client.connections -= 1;
            }
        }
        self.forget_connection(id);
    }

    fn forget_connection(&mut self, id: Id) {
        let is_unused = |connection: &Connection| !connection.is_open && connection.requests == 0;
        if !self.connections.get(id).is_some_and(is_unused) {
            return;
        }
        let Some(Connection { client, .. }) = self.connections.remove(id) else {
            return;
        };
        let Some(known) = self.clients.get_mut(client) else {
            return;
        };
        known.records -= 1;
        if known.records > 0 {
            return;
        }
        match known.network {
            Some(network) => drop(self.by_network.remove(&network)),
            None => self.local = None,
        }
        self.clients.remove(client);
    }

    /// Accepts no more.
    pub(super) fn stop(&mut self) -> bool {
        !std::mem::replace(&mut self.is_stopping, true)
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.is_stopping
    }

    /// Whether no connection is open, nor waits to be accepted.
    pub(super) fn is_drained(&self) -> bool {
        self.listeners == 0 && self.open_connections == 0
    }

    // Requests

    /// A request arrives: it counts as waiting until its handler starts.
    ///
    /// # Errors
    /// There is no room for it. The refusal is counted, and the parts come back.
    pub(super) fn arrive<T, M>(
        &mut self,
        arrival: Arrival,
        parts: T,
        make: impl FnOnce(Id, T) -> (R, M),
    ) -> Result<(Id, M), (Refusal, T)> {
        let Arrival {
            connection: on,
            lane,
            concurrency,
            deadline,
        } = arrival;
        let client = match self.check_room(on, lane) {
            Ok(client) => client,
            Err(refusal) => {
                self.add_refusal_on(on, &refusal);
                return Err((refusal, parts));
            }
        };
        let id = self.requests.next_id();
        let (handle, made) = make(id, parts);
        self.requests.insert(Request {
            handle,
            connection: on,
            client,
            lane,
            stage: Stage::Arriving,
            concurrency,
            is_inside: false,
            is_open: true,
            is_attached: true,
            deadline,
            upload: None,
            bytes: Bytes::None,
        });
        if let Some(deadline) = deadline {
            self.timers.start(deadline, id, Timer::Deadline);
        }
        self.attached += 1;
        if let Some(connection) = self.connections.get_mut(on) {
            connection.requests += 1;
        }
        let change = Change {
            open: 1,
            waiting: 1,
            ..Change::default()
        };
        self.count(on, client, lane, change);
        Ok((id, made))
    }

    /// Whether there is room for a request. Returns the client of the connection.
    fn check_room(&self, on: Id, lane: usize) -> Result<Id, Refusal> {
        let limits = &self.capacity.lanes[lane];
        let connection = self.connections.get(on).filter(|on| on.is_open);
        let Some(connection) = connection else {
            return Err(Refusal::lane(lane, limits.name, Scope::Connection, 0));
        };
        self.check_open(connection, lane)?;
        if !limits.queues {
            return Ok(connection.client);
        }
        let (queue, noun) = (self.capacity.queue, self.capacity.noun);
        if self.waiting >= queue {
            return Err(Refusal::queue(Scope::Server, queue, noun));
        }
        let share = self.queue_share;
        let client = self.clients.get(connection.client);
        if client.is_some_and(|client| client.network.is_some() && client.waiting >= share) {
            return Err(Refusal::queue(Scope::Client, share, noun));
        }
        Ok(connection.client)
    }

    /// Whether there is room for one more open request of the lane.
    fn check_open(&self, connection: &Connection, lane: usize) -> Result<(), Refusal> {
        let limits = &self.capacity.lanes[lane];
        let full = |scope, limit| Err(Refusal::lane(lane, limits.name, scope, limit));
        if connection.open[lane] as usize >= limits.per_connection {
            return full(Scope::Connection, limits.per_connection);
        }
        if limits.queues {
            return Ok(());
        }
        let Lane {
            open, limit, share, ..
        } = self.lanes[lane];
        let client = self.clients.get(connection.client);
        if open >= limit {
            return full(Scope::Server, limit);
        }
        if client.is_some_and(|it| it.network.is_some() && it.lanes[lane].open >= share) {
            return full(Scope::Client, share);
        }
        Ok(())
    }

    /// Counts a refusal on a connection.
    fn add_refusal_on(&mut self, connection: Id, refusal: &Refusal) {
        let peer = self.connections.get(connection).and_then(|on| on.peer);
        self.refusals
            .add(C::of(refusal.limit), peer, &refusal.message);
    }

    /// The request has arrived as a whole, or its handler reads the rest: it waits for a handler.
    pub(super) fn complete(&mut self, id: Id) {
        if let Some(request) = self.requests.get(id)
            && request.stage == Stage::Arriving
        {
            if request.upload.is_some() {
                self.stop_upload_timer(id);
            }
            self.enter(id);
        }
    }

    /// Passes the concurrency limits and queues, or waits at the first limit that is full.
    fn enter(&mut self, id: Id) {
        let Some(request) = self.requests.get(id) else {
            return;
        };
        if let Some(limits) = request.concurrency.clone()
            && !self.pass(id, &limits)
        {
            return;
        }
        self.queue(id);
    }

    /// Counts a request as running at all of its concurrency limits. False where one of them is full: there it waits, or is refused.
    fn pass(&mut self, id: Id, limits: &[usize]) -> bool {
        let Some(request) = self.requests.get_mut(id) else {
            return false;
        };
        let is_full = |limit: &usize| self.concurrency[*limit].is_full();
        let Some(limit) = limits.iter().copied().find(is_full) else {
            request.is_inside = true;
            for limit in limits {
                self.concurrency[*limit].running += 1;
            }
            return true;
        };
        let full = &mut self.concurrency[limit];
        let (running, waiting) = (full.running, full.waiting.len());
        if waiting < full.limits.queue {
            full.waiting.push(id);
            request.stage = Stage::Limited(limit);
            return false;
        }
        // It was popped from the queue of another limit, or has just arrived: it is in no queue.
        request.stage = Stage::Arriving;
        let refusal = Refusal::concurrency(&full.limits.name, running, waiting, self.capacity.noun);
        self.refuse_for(id, refusal);
        false
    }

    fn queue(&mut self, id: Id) {
        let Some(request) = self.requests.get_mut(id) else {
            return;
        };
        request.stage = Stage::Queued;
        let (client, lane) = (request.client, request.lane);
        if let Some(client) = self.clients.get_mut(client) {
            client.lanes[lane].queue.push(id);
        }
        self.give_turn(client, lane);
    }

    fn give_turn(&mut self, id: Id, lane: usize) {
        let share = self.lanes[lane].share;
        if let Some(client) = self.clients.get_mut(id)
            && client.can_start(lane, share)
            && !std::mem::replace(&mut client.lanes[lane].has_turn, true)
        {
            self.lanes[lane].turns.push_back(id);
        }
    }

    /// The next event. Requests of one client come in the order of their arrival, clients and lanes take turns.
    pub(super) fn next(&mut self) -> Option<Event<R>> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        if !self.may_have_next() {
            return None;
        }
        let count = self.capacity.lanes.len();
        for after in 0..count {
            let lane = match self.turn + after {
                lane if lane < count => lane,
                lane => lane - count,
            };
            if let Some(request) = self.start(lane) {
                self.turn = if lane + 1 < count { lane + 1 } else { 0 };
                return Some(Event::Request(request));
            }
        }
        None
    }

    /// Whether [`next`](Self::next) has something.
    pub(super) fn has_next(&mut self) -> bool {
        !self.events.is_empty()
            || self.may_have_next()
                && (0..self.capacity.lanes.len()).any(|lane| self.next_client(lane).is_some())
    }

    /// False where [`next`](Self::next) has nothing.
    #[inline]
    pub(super) fn may_have_next(&self) -> bool {
        !self.events.is_empty() || self.lanes.iter().any(|lane| !lane.turns.is_empty())
    }

    /// The client whose turn it is. Those that cannot start anything lose their turn, until that changes.
    fn next_client(&mut self, lane: usize) -> Option<Id> {
        let of = &mut self.lanes[lane];
        if of.running >= of.limit {
            return None;
        }
        while let Some(id) = of.turns.front().copied() {
            if let Some(client) = self.clients.get_mut(id) {
                if client.can_start(lane, of.share) {
                    return Some(id);
                }
                client.lanes[lane].has_turn = false;
            }
            of.turns.pop_front();
        }
        None
    }

    fn start(&mut self, lane: usize) -> Option<R> {
        let client_id = self.next_client(lane)?;
        self.lanes[lane].turns.pop_front();
        let client = &mut self.clients.get_mut(client_id)?.lanes[lane];
        client.has_turn = false;
        let requests = &self.requests;
        let id = client.queue.pop(|id| is_queued(requests, id))?;
        let request = self.requests.get_mut(id)?;
        request.stage = Stage::Running;
        let (on, handle) = (request.connection, request.handle.clone());
        let change = Change {
            waiting: -1,
            running: 1,
            ..Change::default()
        };
        self.count(on, client_id, lane, change);
        self.give_turn(client_id, lane);
        Some(handle)
    }

    /// The request changes to another lane, whose requests last longer, and leaves its place in its own to others.
    ///
    /// # Errors
    /// There is no room for it there. The refusal is counted.
    pub(super) fn change_lane(&mut self, id: Id, lane: usize) -> Result<(), Refusal> {
        let Some(request) = self
            .requests
            .get(id)
            .filter(|it| it.stage == Stage::Running)
        else {
            return Ok(());
        };
        let (on, client, from) = (request.connection, request.client, request.lane);
        if let Some(connection) = self.connections.get(on)
            && let Err(refusal) = self.check_open(connection, lane)
        {
            self.add_refusal_on(on, &refusal);
            return Err(refusal);
        }
        for (lane, by) in [(from, -1), (lane, 1)] {
            let change = Change {
                open: by,
                running: by,
                ..Change::default()
            };
            self.count(on, client, lane, change);
        }
        if let Some(request) = self.requests.get_mut(id) {
            request.lane = lane;
        }
        self.give_turn(client, from);
        Ok(())
    }

    /// The answer is finished, or refused: true once, while the client waits for it. A request that waits never gets a handler.
    pub(super) fn finish(&mut self, id: Id) -> bool {
        let Some(request) = self.requests.get_mut(id) else {
            return false;
        };
        let was_open = std::mem::take(&mut request.is_open);
        if was_open {
            let is_waiting = request.stage.is_waiting();
            self.clear_deadline(id);
            if is_waiting {
                self.end_waiting(id);
            }
        }
        was_open
    }

    /// Refuses a request that no handler has seen. False where its client no longer waits: then nothing is counted.
    pub(super) fn refuse(&mut self, id: Id, reason: C, detail: &str) -> bool {
        let peer = self.peer_of(id);
        let was_open = self.finish(id);
        if was_open {
            self.refusals.add(reason, peer, detail);
        }
        was_open
    }

    fn refuse_for(&mut self, id: Id, refusal: Refusal) {
        if self.refuse(id, C::of(refusal.limit), &refusal.message) {
            self.actions.push_back((id, Action::Refuse(refusal)));
        }
    }

    /// Counts a refusal for which there is no request.
    pub(super) fn add_refusal(&mut self, reason: C, peer: Option<SocketAddr>, detail: &str) {
        self.refusals.add(reason, peer, detail);
    }

    fn peer_of(&self, id: Id) -> Option<SocketAddr> {
        let request = self.requests.get(id)?;
        self.connections.get(request.connection)?.peer
    }

    /// Whether the client still waits for the answer, or for more of it.
    pub(super) fn is_open(&self, id: Id) -> bool {
        self.requests.get(id).is_some_and(|it| it.is_open)
    }

    pub(super) fn is_running(&self, id: Id) -> bool {
        let request = self.requests.get(id);
        request.is_some_and(|it| it.stage == Stage::Running)
    }

    /// The connection no longer needs the request: the response is sent, or the client has disconnected. A handler that has not finished
    /// gets [`Event::Gone`].
    pub(super) fn detach(&mut self, id: Id) {
        let Some(request) = self.requests.get(id) else {
            return;
        };
        if request.is_open || request.deadline.is_some() || request.bytes != Bytes::None {
            // The client has not waited for the end of the answer.
            self.release_bytes(id);
            self.cancel(id);
            self.clear_deadline(id);
            self.end_waiting(id);
        }
        if let Some(request) = self.requests.get_mut(id)
            && std::mem::take(&mut request.is_attached)
        {
            self.attached -= 1;
        }
        self.forget(id);
    }

    /// The client takes no more of the response: a handler that has not finished gets [`Event::Gone`], once.
    pub(super) fn cancel(&mut self, id: Id) {
        if let Some(request) = self.requests.get_mut(id)
            && std::mem::take(&mut request.is_open)
            && request.stage == Stage::Running
        {
            self.events.push_back(Event::Gone(id));
            self.clear_deadline(id);
        }
    }

    /// The handler of the request has ended: another one may run in its place.
    pub(super) fn end_handler(&mut self, id: Id) {
        let Some(request) = self.requests.get_mut(id) else {
            return;
        };
        if request.stage != Stage::Running {
            return;
        }
        request.stage = Stage::Ended;
        let (on, client, lane) = (request.connection, request.client, request.lane);
        let is_inside = request.is_inside;
        let change = Change {
            open: -1,
            running: -1,
            ..Change::default()
        };
        self.count(on, client, lane, change);
        if is_inside {
            self.leave_concurrency(id);
        }
        self.give_turn(client, lane);
        self.forget(id);
    }

    /// A request that waits for a handler waits no more.
    fn end_waiting(&mut self, id: Id) {
        let Some(request) = self.requests.get_mut(id) else {
            return;
        };
        if !request.stage.is_waiting() {
            return;
        }
        let (on, client, lane) = (request.connection, request.client, request.lane);
        let before = std::mem::replace(&mut request.stage, Stage::Ended);
        self.stop_upload_timer(id);
        self.release_bytes(id);
        let change = Change {
            open: -1,
            waiting: -1,
            ..Change::default()
        };
        self.count(on, client, lane, change);
        let requests = &self.requests;
        match before {
            Stage::Limited(limit) => self.concurrency[limit]
                .waiting
                .abandon(|id| is_limited(requests, id, limit)),
            Stage::Queued => {
                if let Some(client) = self.clients.get_mut(client) {
                    client.lanes[lane]
                        .queue
                        .abandon(|id| is_queued(requests, id));
                }
            }
            Stage::Arriving | Stage::Running | Stage::Ended => {}
        }
        self.leave_concurrency(id);
    }

    /// Lets requests in that wait at the concurrency limits of one that has ended.
    fn leave_concurrency(&mut self, id: Id) {
        let Some(request) = self.requests.get_mut(id) else {
            return;
        };
        if !std::mem::take(&mut request.is_inside) {
            return;
        }
        let Some(limits) = request.concurrency.clone() else {
            return;
        };
        for limit in &*limits {
            self.concurrency[*limit].running -= 1;
        }
        for limit in &*limits {
            while !self.concurrency[*limit].is_full() {
                let requests = &self.requests;
                let waiting = &mut self.concurrency[*limit].waiting;
                let Some(next) = waiting.pop(|id| is_limited(requests, id, *limit)) else {
                    break;
                };
                self.enter(next);
            }
        }
    }

    /// Removes a request that neither its connection nor a handler needs.
    fn forget(&mut self, id: Id) {
        let is_over = |it: &Request<R>| !it.is_attached && it.stage == Stage::Ended;
        if !self.requests.get(id).is_some_and(is_over) {
            return;
        }
        let Some(request) = self.requests.remove(id) else {
            return;
        };
        if let Some(connection) = self.connections.get_mut(request.connection) {
            connection.requests -= 1;
            if !connection.is_open {
                self.forget_connection(request.connection);
            }
        }
    }

    /// Changes the counts of the server, of a connection and of its client.
    #[inline(always)]
    fn count(&mut self, on: Id, client: Id, lane: usize, change: Change) {
        fn add(count: &mut usize, by: isize) {
            debug_assert!(count.checked_add_signed(by).is_some());
            *count = count.wrapping_add_signed(by);
        }
        let queues = self.capacity.lanes[lane].queues;
        let of = &mut self.lanes[lane];
        add(&mut of.open, change.open);
        add(&mut of.running, change.running);
        if queues {
            add(&mut self.waiting, change.waiting);
        }
        if change.open != 0
            && let Some(connection) = self.connections.get_mut(on)
        {
            let open = &mut connection.open[lane];
            *open = open.wrapping_add_signed(change.open as i32);
        }
        if let Some(client) = self.clients.get_mut(client) {
            if queues {
                add(&mut client.waiting, change.waiting);
            }
            let of = &mut client.lanes[lane];
            add(&mut of.open, change.open);
            add(&mut of.running, change.running);
        }
    }

    // Time

    /// The answer has begun: it may take as long as it likes.
    pub(super) fn clear_deadline(&mut self, id: Id) {
        if let Some(request) = self.requests.get_mut(id)
            && request.deadline.take().is_some()
        {
            let requests = &self.requests;
            self.timers
                .end(|at, id, timer| is_timed(requests, at, id, timer));
        }
    }

    /// Looks at the upload of a request that arrives at `at`, unless its deadline is earlier. One look at a time.
    pub(super) fn start_upload_timer(&mut self, id: Id, at: Instant) {
        if let Some(request) = self.requests.get_mut(id)
            && request.stage == Stage::Arriving
            && request.upload.is_none()
            && request.deadline.is_none_or(|deadline| at < deadline)
        {
            request.upload = Some(at);
            self.timers.start(at, id, Timer::Upload);
        }
    }

    fn stop_upload_timer(&mut self, id: Id) {
        if let Some(request) = self.requests.get_mut(id)
            && request.upload.take().is_some()
        {
            let requests = &self.requests;
            self.timers
                .end(|at, id, timer| is_timed(requests, at, id, timer));
        }
    }

    /// When [`expire`](Self::expire) has to be called next.
    pub(super) fn next_timer(&mut self) -> Option<Instant> {
        let requests = &self.requests;
        self.timers
            .first(|at, id, timer| is_timed(requests, at, id, timer))
    }

    /// Acts on everything that is due.
    pub(super) fn expire(&mut self, now: Instant) {
        loop {
            let requests = &self.requests;
            let is_live = |at, id, timer| is_timed(requests, at, id, timer);
            let Some((id, timer)) = self.timers.due(now, is_live) else {
                return;
            };
            let Some(request) = self.requests.get_mut(id) else {
                continue;
            };
            if timer == Timer::Upload {
                request.upload = None;
                self.actions.push_back((id, Action::CheckUpload));
                continue;
            }
            request.deadline = None;
            match request.stage {
                Stage::Running => {
                    self.events.push_back(Event::Expired(id));
                    self.actions.push_back((id, Action::Expire));
                }
                Stage::Ended => {}
                stage => {
                    let is_arriving = stage == Stage::Arriving;
                    self.refuse_for(id, Refusal::deadline(is_arriving));
                }
            }
        }
    }

    // Bytes

    /// Reserves bytes for the upload of a request, once: true when they are reserved. Otherwise [`Action::Resume`] follows, in the
    /// order of the reservations, so that what has begun can always end. An upload larger than the budget has it alone.
    pub(super) fn reserve(&mut self, id: Id, bytes: usize) -> bool {
        let Some(request) = self.requests.get_mut(id) else {
            return true;
        };
        if bytes <= UNRESERVED || matches!(request.bytes, Bytes::Reserved(_)) {
            return true;
        }
        if request.bytes == Bytes::Waiting {
            return false;
        }
        let on = request.connection;
        let Some(connection) = self.connections.get_mut(on) else {
            return true;
        };
        request.bytes = Bytes::Waiting;
        let uploads = connection.uploads.get_or_insert_default();
        uploads.waiting.push_back((id, bytes));
        self.grant_bytes(on);
        let is_reserved = !self.is_waiting_for_bytes(id);
        if is_reserved {
            // The return value says so.
            self.actions.pop_back();
        }
        is_reserved
    }

    fn grant_bytes(&mut self, on: Id) {
        let connection = self.connections.get_mut(on);
        let Some(uploads) = connection.and_then(|on| on.uploads.as_mut()) else {
            return;
        };
        while let Some((id, bytes)) = uploads.waiting.front().copied() {
            let reserved = uploads.reserved;
            let fits = reserved.saturating_add(bytes) <= self.capacity.buffered_bytes;
            if reserved > 0 && !fits {
                return;
            }
            uploads.waiting.pop_front();
            if let Some(request) = self.requests.get_mut(id) {
                uploads.reserved += bytes;
                request.bytes = Bytes::Reserved(bytes);
                self.actions.push_back((id, Action::Resume));
            }
        }
    }

    /// The upload waits for others of its connection, not for its client.
    pub(super) fn is_waiting_for_bytes(&self, id: Id) -> bool {
        let request = self.requests.get(id);
        request.is_some_and(|it| it.bytes == Bytes::Waiting)
    }

    /// The handler has taken the upload, or its bytes are released.
    pub(super) fn release_bytes(&mut self, id: Id) {
        let Some(request) = self.requests.get_mut(id) else {
            return;
        };
        let on = request.connection;
        let before = std::mem::replace(&mut request.bytes, Bytes::None);
        let connection = self.connections.get_mut(on);
        let Some(uploads) = connection.and_then(|on| on.uploads.as_mut()) else {
            return;
        };
        match before {
            Bytes::None => return,
            Bytes::Waiting => uploads.waiting.retain(|(waiting, _)| *waiting != id),
            Bytes::Reserved(bytes) => uploads.reserved -= bytes,
        }
        self.grant_bytes(on);
    }

    // Consequences of a step

    /// Whether [`next_action`](Self::next_action) or [`take_refused`](Self::take_refused) has something.
    pub(super) fn has_consequences(&self) -> bool {
        !self.actions.is_empty() || self.refusals.is_changed()
    }

    /// The next action and the request it is for.
    pub(super) fn next_action(&mut self) -> Option<(R, Action)> {
        while let Some((id, action)) = self.actions.pop_front() {
            if let Some(request) = self.requests.get(id) {
                return Some((request.handle.clone(), action));
            }
        }
        None
    }

    /// Whether a refusal was added since the last call.
    pub(super) fn take_refused(&mut self) -> bool {
        self.refusals.take_changed()
    }

    /// Refusals to report now.
    pub(super) fn take_reports(&mut self, now: Instant) -> Vec<RefusalReport<C>> {
        self.refusals.take_reports(now)
    }

    /// When there are more.
    pub(super) fn reports_due(&self) -> Option<Instant> {
        self.refusals.due()
    }

    // Counts

    pub(super) fn requests(&self) -> impl Iterator<Item = &R> {
        self.requests.iter().map(|request| &request.handle)
    }

    /// Requests that their connections still need, with those in the queue.
    pub(super) fn attached(&self) -> usize {
        self.attached
    }

    #[cfg(test)]
    pub(super) fn counts(&self) -> Counts {
        Counts {
            requests: self.requests.len(),
            waiting: self.waiting,
            running: self.lanes.each_ref().map(|lane| lane.running),
            open: self.lanes.each_ref().map(|lane| lane.open),
            queued: self
                .requests
                .iter()
                .filter(|request| matches!(request.stage, Stage::Queued | Stage::Limited(_)))
                .count(),
            concurrency: self.concurrency.iter().map(|limit| limit.running).sum(),
            reserved: self
                .connections
                .iter()
                .filter_map(|connection| connection.uploads.as_ref())
                .map(|uploads| uploads.reserved)
                .sum(),
            timers: self.timers.len(),
        }
    }
}

/// The network that counts as one client: an IPv4 address, or the 64 bits of IPv6 that one customer gets.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
    }
}
