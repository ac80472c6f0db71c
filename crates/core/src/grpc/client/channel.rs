use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use hyper::client::conn::http2::SendRequest;
use tokio::sync::{Mutex, Notify};
use tokio::time::Instant;

use super::call::Upload;
use super::endpoint::{Endpoint, Failure, Look};
use crate::grpc::encoding::Encoding;
use crate::grpc::status::{Code, Status};
use crate::net::{ClientTls, TlsConnector};

/// Names are looked up again no sooner than that.
const LOOKUP_PAUSE: Duration = Duration::from_secs(5);

/// Which of several servers gets a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Balancing {
    /// The first that can be connected to, as long as it is there.
    PickFirst,
    /// Each in turn: every address of every name.
    RoundRobin,
}

#[derive(Debug, Clone)]
pub struct ChannelOptions {
    /// Host and port of each server, in order of preference; one at least.
    pub servers: Vec<(String, u16)>,
    pub balancing: Balancing,
    /// `None` is plain text.
    pub tls: Option<ClientTls>,
    /// For one attempt to connect to one server.
    pub connect_timeout: Duration,
    /// Bytes of one message of the server, before and after decompression.
    pub message_bytes: usize,
    /// How messages to the server are compressed.
    pub encoding: Option<Encoding>,
    /// A server that was silent for so long during a call is asked whether it is there.
    pub ping_interval: Option<Duration>,
    /// A server that was asked and says nothing for so long is gone.
    pub ping_timeout: Duration,
    /// Bytes a server may send on one stream before they are read.
    pub stream_window: u32,
}

/// HTTP/2 connections to one or several servers of the same service. Clones share them.
#[derive(Clone)]
pub struct Channel {
    shared: Rc<Shared>,
}

struct Shared {
    options: ChannelOptions,
    tls: Option<TlsConnector>,
    endpoints: RefCell<Vec<Rc<Endpoint>>>,
    /// Whose turn it is.
    turn: Cell<usize>,
    /// When names were looked up, and whether something has failed since.
    looked_up: Cell<Option<Instant>>,
    is_stale: Cell<bool>,
    lookup: Mutex<()>,
    /// An attempt to connect has ended.
    changed: Notify,
}

enum Pick {
    Ready(Rc<Endpoint>, SendRequest<Upload>),
    Wait,
    Failed(Vec<Failure>),
}

impl Channel {
    /// Connects when the first call needs it.
    ///
    /// # Errors
    /// Which file of the TLS options is wrong and why.
    pub fn new(options: ChannelOptions) -> Result<Self, String> {
        let tls = options.tls.as_ref().map(|tls| {
            TlsConnector::new(&ClientTls {
                protocols: vec![b"h2".to_vec()],
                ..tls.clone()
            })
        });
        let tls = tls.transpose()?;
        let servers = match options.balancing {
            // Connecting tries all addresses of a name.
            Balancing::PickFirst => options.servers.as_slice(),
            Balancing::RoundRobin => &[],
        };
        let endpoint = |(host, port): &(String, u16)| {
            Rc::new(Endpoint::new(host.clone(), *port, host.clone()))
        };
        let shared = Shared {
            tls,
            endpoints: RefCell::new(servers.iter().map(endpoint).collect()),
            options,
            turn: Cell::default(),
            looked_up: Cell::default(),
            is_stale: Cell::default(),
            lookup: Mutex::default(),
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

    /// A connection to the server whose turn it is, made where there is none; and that server's name.
    ///
    /// `waits`: until there is one, instead of failing when no server can be connected to.
    pub(super) async fn connection(
        &self,
        waits: bool,
    ) -> Result<(String, SendRequest<Upload>), Status> {
        let shared = &self.shared;
        let since = (!waits).then(Instant::now);
        loop {
            let found = self.find_servers().await;
            let changed = shared.changed.notified();
            let failures = match (found, self.pick(since)) {
                (_, Pick::Ready(endpoint, connection)) => {
                    return Ok((endpoint.authority(), connection));
                }
                (_, Pick::Wait) => {
                    changed.await;
                    continue;
                }
                (Err(reason), Pick::Failed(none)) if none.is_empty() => {
                    let now = Instant::now();
                    vec![Failure {
                        reason,
                        at: now,
                        until: now + LOOKUP_PAUSE,
                    }]
                }
                (_, Pick::Failed(failures)) => failures,
            };
            if !waits {
                return Err(unavailable(&failures));
            }
            let first = failures.iter().map(|failure| failure.until).min();
            let first = first.unwrap_or_else(|| Instant::now() + LOOKUP_PAUSE);
            tokio::select! {
                () = tokio::time::sleep_until(first) => {}
                () = changed => {}
            }
        }
    }

    /// Looks names up for calls that take turns, where that was not done or something failed since.
    async fn find_servers(&self) -> Result<(), String> {
        let shared = &self.shared;
        if shared.options.balancing != Balancing::RoundRobin {
            return Ok(());
        }
        let _lookup = shared.lookup.lock().await;
        let is_due = |at: Instant| shared.is_stale.get() && at.elapsed() >= LOOKUP_PAUSE;
        if !shared.looked_up.get().is_none_or(is_due) {
            return Ok(());
        }
        shared.looked_up.set(Some(Instant::now()));
        shared.is_stale.set(false);
        let mut found = Vec::new();
        let mut failure = None;
        for (host, port) in &shared.options.servers {
            match tokio::net::lookup_host((host.as_str(), *port)).await {
                Ok(addresses) => {
                    found.extend(addresses.map(|address| (address.ip().to_string(), *port, host)))
                }
                Err(error) => failure = Some(format!("cannot find {host}: {error}")),
            }
        }
        if found.is_empty() {
            shared.is_stale.set(true);
            return Err(failure.unwrap_or_else(|| "the names have no address".to_owned()));
        }
        self.replace(found);
        Ok(())
    }

    /// Endpoints that are still among the addresses keep their connections.
    fn replace(&self, found: Vec<(String, u16, &String)>) {
        let mut endpoints = self.shared.endpoints.borrow_mut();
        let mut fresh: Vec<Rc<Endpoint>> = Vec::with_capacity(found.len());
        for (host, port, name) in found {
            let is_same = |one: &&Rc<Endpoint>| one.host == host && one.port == port;
            if fresh.iter().any(|one| is_same(&one)) {
                continue;
            }
            let known = endpoints.iter().find(is_same).map(Rc::clone);
            fresh.push(known.unwrap_or_else(|| Rc::new(Endpoint::new(host, port, name.clone()))));
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
        if !failures.is_empty() {
            shared.is_stale.set(true);
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
        endpoint.begin();
        let (shared, endpoint) = (Rc::clone(&self.shared), Rc::clone(endpoint));
        tokio::task::spawn_local(async move {
            endpoint.connect(&shared.options, shared.tls.as_ref()).await;
            shared.changed.notify_waiters();
        });
    }
}

fn unavailable(failures: &[Failure]) -> Status {
    let reasons: Vec<&str> = failures
        .iter()
        .map(|failure| failure.reason.as_str())
        .collect();
    Status::new(Code::UNAVAILABLE, reasons.join("; "))
}
