//! Name resolution of a channel.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use tokio::time::{Instant, timeout};

/// The shortest time between two look-ups of the same names.
pub(super) const LOOKUP_PAUSE: Duration = Duration::from_secs(5);

type Addresses = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>>>>;

/// Resolves one name. Tests pass their own, and need no name server.
pub(super) type Resolve = Rc<dyn Fn(String, u16) -> Addresses>;

/// One address of a server, and the name it was found by.
pub(super) struct Found {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) name: String,
}

/// Decides when names are looked up, and remembers why the last look-up failed.
///
/// A look-up is a task of its own that all calls of the channel share: a cancelled call does not stop it.
pub(super) struct Names {
    servers: Vec<(String, u16)>,
    /// The timeout for all names together.
    limit: Duration,
    resolve: Resolve,
    state: RefCell<State>,
}

enum State {
    /// The names were not looked up, or an address has failed; `since` is the last look-up.
    Stale {
        since: Option<Instant>,
        failure: Option<String>,
    },
    Running,
    Fresh(Instant),
}

impl Names {
    pub(super) fn new(servers: Vec<(String, u16)>, limit: Duration, resolve: Resolve) -> Self {
        Self {
            servers,
            limit,
            resolve,
            state: RefCell::new(State::Stale {
                since: None,
                failure: None,
            }),
        }
    }

    /// An address has failed: the next call after the pause looks the names up again.
    pub(super) fn expire(&self) {
        let mut state = self.state.borrow_mut();
        if let State::Fresh(since) = *state {
            *state = State::Stale {
                since: Some(since),
                failure: None,
            };
        }
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(*self.state.borrow(), State::Running)
    }

    /// When a look-up may begin; `None` while one runs or if none is needed.
    pub(super) fn due(&self) -> Option<Instant> {
        match *self.state.borrow() {
            State::Stale { since: None, .. } => Some(Instant::now()),
            State::Stale {
                since: Some(at), ..
            } => Some(at + LOOKUP_PAUSE),
            State::Running | State::Fresh(_) => None,
        }
    }

    /// Why the last look-up found nothing.
    pub(super) fn failure(&self) -> Option<String> {
        match &*self.state.borrow() {
            State::Stale { failure, .. } => failure.clone(),
            _ => None,
        }
    }

    /// Begins a look-up if one is due. If the future is dropped unfinished, the look-up counts as never begun.
    pub(super) fn begin(self: &Rc<Self>) -> Option<impl Future<Output = Vec<Found>> + use<>> {
        if self.due().is_none_or(|due| due > Instant::now()) {
            return None;
        }
        let unfinished = Unfinished(Rc::clone(self), Some(self.state.replace(State::Running)));
        Some(async move {
            let names = Rc::clone(&unfinished.0);
            let (found, failure) = names.look_up().await;
            unfinished.finish(found.is_empty(), failure);
            found
        })
    }

    async fn look_up(&self) -> (Vec<Found>, Option<String>) {
        let mut found = Vec::new();
        let mut failure = None;
        let until = Instant::now() + self.limit;
        for (name, port) in &self.servers {
            let left = until.saturating_duration_since(Instant::now());
            let asked = timeout(left, (self.resolve)(name.clone(), *port)).await;
            match asked {
                Ok(Ok(addresses)) => found.extend(addresses.into_iter().map(|address| Found {
                    host: address.ip().to_string(),
                    port: *port,
                    name: name.clone(),
                })),
                Ok(Err(error)) => failure = Some(format!("cannot find {name}: {error}")),
                Err(_) => {
                    let limit = self.limit;
                    failure = Some(format!(
                        "cannot find {name}: the look-up took more than {limit:?}"
                    ));
                }
            }
        }
        (found, failure)
    }
}

/// Puts back what was before, where a look-up is dropped or panics.
struct Unfinished(Rc<Names>, Option<State>);

impl Unfinished {
    fn finish(mut self, found_nothing: bool, failure: Option<String>) {
        self.1 = None;
        let now = Instant::now();
        let reason = || "the names of the servers have no address".to_owned();
        *self.0.state.borrow_mut() = match failure {
            None if !found_nothing => State::Fresh(now),
            // Names that failed beside others that did not are looked up again.
            failure => State::Stale {
                since: Some(now),
                failure: Some(failure.unwrap_or_else(reason)),
            },
        };
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(before) = self.1.take() {
            *self.0.state.borrow_mut() = before;
        }
    }
}

/// The system's resolver, which every connection uses.
pub(super) fn system() -> Resolve {
    Rc::new(|name, port| Box::pin(async move { crate::blocking::addresses(&name, port).await }))
}
