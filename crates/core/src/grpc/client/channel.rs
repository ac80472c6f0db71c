use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::endpoint::{Connection, Endpoint, Failure, Look};
use super::names::{self, Found, LOOKUP_PAUSE, Names, Resolve};
use super::options::{Balancing, ChannelOptions};
use crate::grpc::status::{Code, Status};
use crate::net::{ClientTls, TlsConnector};

/// The shortest pause of a call that waits for a server.
const SHORTEST_WAIT: Duration = Duration::from_millis(10);

/// HTTP/2 connections to one or several servers of the same service. Clones share them.
#[derive(Clone)]
pub struct Channel {
    shared: Rc<Shared>,
}

struct Shared {
    options: ChannelOptions,
    tls: Option<TlsConnector>,
    endpoints: RefCell<Vec<Rc<Endpoint>>>,
    /// The endpoint whose turn it is.
    turn: Cell<usize>,
    /// Name resolution, if each address is a server of its own.
    names: Option<Rc<Names>>,
    /// Notified when a connection attempt or a look-up has ended.
    changed: Notify,
}

enum Pick {
    Ready(Rc<Endpoint>, Connection),
    Wait,
    Failed(Vec<Failure>),
}

impl Channel {
    /// A channel that connects when the first call needs it.
    ///
    /// # Errors
    /// Which file of the TLS options is invalid, and why.
    pub fn new(options: ChannelOptions) -> Result<Self, String> {
        Self::resolved_by(options, names::system())
    }

    pub(super) fn resolved_by(options: ChannelOptions, resolve: Resolve) -> Result<Self, String> {
        let tls = options.tls.as_ref().map(|tls| {
            TlsConnector::new(&ClientTls {
                protocols: vec![b"h2".to_vec()],
                ..tls.clone()
            })
        });
        let tls = tls.transpose()?;
        let servers = match options.balancing {
            // A connection attempt tries all addresses of a name.
            Balancing::PickFirst => options.servers.as_slice(),
            Balancing::RoundRobin => &[],
        };
        let endpoint = |(host, port): &(String, u16)| {
            Rc::new(Endpoint::new(host.clone(), *port, host.clone()))
        };
        let names = match options.balancing {
            Balancing::PickFirst => None,
            Balancing::RoundRobin => {
                let names = Names::new(options.servers.clone(), options.connect_timeout, resolve);
                Some(Rc::new(names))
            }
        };
        let shared = Shared {
            tls,
            endpoints: RefCell::new(servers.iter().map(endpoint).collect()),
            options,
            turn: Cell::default(),
            names,
            changed: Notify::new(),
        };
        Ok(Self {
            shared: Rc::new(shared),
        })
    }

    pub(super) fn options(&self) -> &ChannelOptions {
        &self.shared.options
    }

    pub(super) fn scheme(&self) -> &'static str {
        match self.shared.tls {
            Some(_) => "https",
            None => "http",
        }
    }

    /// A connection to the server whose turn it is, opened if there is none, and the authority of that server.
    ///
    /// `waits`: wait for a connection instead of failing if no server can be connected to. Look-ups and connection attempts are tasks of
    /// their own, so that dropping this future cancels none that other calls use.
    pub(super) async fn connection(&self, waits: bool) -> Result<(String, Connection), Status> {
        let shared = &self.shared;
        let since = (!waits).then(Instant::now);
        loop {
            let changed = shared.changed.notified();
            self.find_servers();
            let failures = match self.pick(since) {
                Pick::Ready(endpoint, connection) => {
                    return Ok((endpoint.authority(), connection));
                }
                Pick::Failed(failures) if !shared.is_looking_up() => failures,
                Pick::Wait | Pick::Failed(_) => {
                    changed.await;
                    continue;
                }
            };
            if !waits {
                return Err(self.unavailable(&failures));
            }
            let due = shared.names.as_ref().and_then(|names| names.due());
            let first = failures.iter().map(|failure| failure.until).chain(due);
            let first = first.min();
            // An attempt that is due has just been made.
            let soonest = Instant::now() + SHORTEST_WAIT;
            let until = first.map_or_else(|| Instant::now() + LOOKUP_PAUSE, |at| at.max(soonest));
            tokio::select! {
                () = tokio::time::sleep_until(until) => {}
                () = changed => {}
            }
        }
    }

    #[cfg(test)]
    pub(super) fn expire_names(&self) {
        if let Some(names) = &self.shared.names {
            names.expire();
        }
    }

    /// Starts name resolution for round robin, if it was not done or a server has failed since.
    fn find_servers(&self) {
        let Some(names) = &self.shared.names else {
            return;
        };
        if let Some(looking) = names.begin() {
            let channel = self.clone();
            tokio::task::spawn_local(async move {
                let _changed = Changed(Rc::clone(&channel.shared));
                let found = looking.await;
                if !found.is_empty() {
                    channel.replace(found);
                }
            });
        }
    }

    /// Replaces the endpoints. Those whose addresses were found again keep their connections.
    fn replace(&self, found: Vec<Found>) {
        let mut endpoints = self.shared.endpoints.borrow_mut();
        let mut fresh: Vec<Rc<Endpoint>> = Vec::with_capacity(found.len());
        for Found { host, port, name } in found {
            let is_same = |one: &&Rc<Endpoint>| one.host == host && one.port == port;
            if fresh.iter().any(|one| is_same(&one)) {
                continue;
            }
            let known = endpoints.iter().find(is_same).map(Rc::clone);
            fresh.push(known.unwrap_or_else(|| Rc::new(Endpoint::new(host, port, name))));
        }
        *endpoints = fresh;
    }

    fn pick(&self, since: Option<Instant>) -> Pick {
        let shared = &self.shared;
        let endpoints = shared.endpoints.borrow();
        let now = Instant::now();
        let is_in_turn = shared.options.balancing == Balancing::RoundRobin;
        let turn = match is_in_turn {
            true => shared.turn.get(),
            false => 0,
        };
        let mut failures = Vec::new();
        let mut startable = Vec::new();
        let mut is_connecting = false;
        for step in 0..endpoints.len() {
            let endpoint = &endpoints[(turn + step) % endpoints.len()];
            match endpoint.look(now, since) {
                Look::Ready(connection) => {
                    shared.turn.set((turn + step + 1) % endpoints.len());
                    if is_in_turn {
                        startable.into_iter().for_each(|one| self.start(one));
                    }
                    return Pick::Ready(Rc::clone(endpoint), connection);
                }
                Look::Startable => startable.push(endpoint),
                Look::Connecting => is_connecting = true,
                Look::Failed(failure) => failures.push(failure),
            }
        }
        if !failures.is_empty()
            && let Some(names) = &shared.names
        {
            names.expire();
        }
        if is_in_turn {
            is_connecting |= !startable.is_empty();
            startable.into_iter().for_each(|one| self.start(one));
        } else if !is_connecting && let Some(first) = startable.first() {
            self.start(first);
            is_connecting = true;
        }
        match is_connecting {
            true => Pick::Wait,
            false => Pick::Failed(failures),
        }
    }

    fn start(&self, endpoint: &Rc<Endpoint>) {
        let attempt = endpoint.begin();
        let (shared, endpoint) = (Rc::clone(&self.shared), Rc::clone(endpoint));
        tokio::task::spawn_local(async move {
            let _changed = Changed(Rc::clone(&shared));
            endpoint
                .connect(attempt, &shared.options, shared.tls.as_ref())
                .await;
        });
    }

    /// The status that says why no server can be called.
    fn unavailable(&self, failures: &[Failure]) -> Status {
        let lookup = self.shared.names.as_ref().and_then(|names| names.failure());
        let reasons = failures.iter().map(|failure| failure.reason.clone());
        let reasons: Vec<String> = reasons.chain(lookup).collect();
        if reasons.is_empty() {
            return Status::new(Code::UNAVAILABLE, "the channel knows no server to call");
        }
        Status::new(Code::UNAVAILABLE, reasons.join("; "))
    }
}

impl Shared {
    fn is_looking_up(&self) -> bool {
        self.names.as_ref().is_some_and(|names| names.is_running())
    }
}

/// Wakes the calls that wait for a server when an attempt ends, also by a panic.
struct Changed(Rc<Shared>);

impl Drop for Changed {
    fn drop(&mut self) {
        self.0.changed.notify_waiters();
    }
}
