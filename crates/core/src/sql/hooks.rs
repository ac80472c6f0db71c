//! User hooks in the life cycle of connections.
//!
//! The program takes the calls of its hooks from [`PoolEvents`]. Until it reports the end of a call, the connection is kept with
//! the [`HookCall`], so that the hook can run statements on it.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::rc::{Rc, Weak};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};

use super::{Error, ResultSet, Statement};
use crate::pool::Holder;

/// Which hooks are set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hooks {
    pub created: bool,
    pub borrowed: bool,
    pub returned: bool,
    pub closed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookPoint {
    Created,
    /// The session was reset, so the hook for new connections runs again.
    Renewed,
    Borrowed,
    Returned,
    Closed,
}

/// A hook call or a report for the program.
#[derive(Debug)]
pub enum PoolEvent {
    Hook {
        point: HookPoint,
        /// Identifies the call; 0 when the connection is closed and no answer is awaited.
        call: u64,
        /// The server's id of the session.
        session: i64,
    },
    /// The borrower no longer waits for the call.
    Abandon { call: u64 },
    /// A connection is held for longer than the leak threshold.
    Leak(Holder),
}

/// The queue of events for the program.
#[derive(Default)]
pub struct PoolEvents {
    queue: RefCell<VecDeque<PoolEvent>>,
    wake: Notify,
}

impl PoolEvents {
    /// Resolves when the queue is not empty.
    pub async fn wait(&self) {
        while self.queue.borrow().is_empty() {
            self.wake.notified().await;
        }
    }

    pub fn take(&self) -> VecDeque<PoolEvent> {
        self.queue.take()
    }

    pub(crate) fn push(&self, call: PoolEvent) {
        self.queue.borrow_mut().push_back(call);
        self.wake.notify_one();
    }
}

/// A connection on which hooks can run statements.
pub trait HookedConnection {
    /// The server's id of the session.
    fn session(&self) -> i64;

    fn execute(&mut self, statement: &Statement) -> impl Future<Output = Result<ResultSet, Error>>;

    /// Whether no answer is outstanding and no transaction is open.
    fn is_ready(&self) -> bool;

    /// Accepts the current session state as the connection's own, so that cleaning keeps it.
    fn keep_session_state(&mut self);

    fn mark(&mut self) -> &mut HookState;
}

/// The state of hooks on one connection.
#[derive(Default)]
pub struct HookState {
    /// The hook for new connections has run since the session was reset.
    pub(crate) is_set_up: bool,
    close_notice: Option<CloseNotice>,
}

/// Calls the hook for closed connections when it is dropped with its connection.
struct CloseNotice {
    events: Weak<PoolEvents>,
    session: i64,
}

impl Drop for CloseNotice {
    fn drop(&mut self) {
        if let Some(events) = self.events.upgrade() {
            events.push(PoolEvent::Hook {
                point: HookPoint::Closed,
                call: 0,
                session: self.session,
            });
        }
    }
}

/// The running hook calls of one pool, with their connections.
pub struct HookCalls<C> {
    pub(crate) hooks: Hooks,
    pub(crate) events: Rc<PoolEvents>,
    open: RefCell<HashMap<u64, HookCall<C>>>,
    last: Cell<u64>,
}

struct HookCall<C> {
    /// `None` while a statement runs on it.
    connection: Option<C>,
    done: oneshot::Sender<Result<C, Error>>,
}

impl<C: HookedConnection> HookCalls<C> {
    pub(crate) fn new(hooks: Hooks) -> Rc<Self> {
        Rc::new(Self {
            hooks,
            events: Rc::default(),
            open: RefCell::default(),
            last: Cell::new(0),
        })
    }

    /// Runs the hook for a connection that was opened.
    ///
    /// # Errors
    /// The hook's exception; the connection is then closed.
    pub(crate) async fn created(&self, mut connection: C) -> Result<C, Error> {
        if self.hooks.closed {
            connection.mark().close_notice = Some(CloseNotice {
                events: Rc::downgrade(&self.events),
                session: connection.session(),
            });
        }
        self.set_up(HookPoint::Created, connection).await
    }

    /// Runs the hook for new connections again after cleaning. `None` when the connection has to be closed.
    pub(crate) async fn cleaned(&self, connection: C) -> Option<C> {
        self.set_up(HookPoint::Renewed, connection).await.ok()
    }

    async fn set_up(&self, point: HookPoint, mut connection: C) -> Result<C, Error> {
        if !self.hooks.created || connection.mark().is_set_up {
            return Ok(connection);
        }
        connection = self.call(point, connection).await?;
        if !connection.is_ready() {
            return Err(unfinished());
        }
        connection.keep_session_state();
        connection.mark().is_set_up = true;
        Ok(connection)
    }

    /// Runs the hook for a connection that is borrowed. `within` zero is unlimited.
    ///
    /// # Errors
    /// The hook's exception or its timeout; the connection is then closed.
    pub(crate) async fn borrowed(&self, connection: C, within: Duration) -> Result<C, Error> {
        let limit = if within.is_zero() {
            Duration::MAX
        } else {
            within
        };
        let call = self.call(HookPoint::Borrowed, connection);
        let connection = tokio::time::timeout(limit, call)
            .await
            .unwrap_or_else(|_| {
                Err(Error::Hook {
                    message: format!("the hook \"borrowed\" took longer than {within:?}"),
                    thrown: 0,
                })
            })?;
        match connection.is_ready() {
            true => Ok(connection),
            false => Err(unfinished()),
        }
    }

    /// Runs the hook for a connection that was returned, after cleaning; it may leave the connection dirty. `None` when the
    /// connection has to be closed.
    pub(crate) async fn returned(&self, connection: C) -> Option<C> {
        self.call(HookPoint::Returned, connection).await.ok()
    }

    async fn call(&self, point: HookPoint, connection: C) -> Result<C, Error> {
        let (done, answered) = oneshot::channel();
        let call = self.last.get() + 1;
        self.last.set(call);
        let session = connection.session();
        let connection = Some(connection);
        self.open
            .borrow_mut()
            .insert(call, HookCall { connection, done });
        let _absence = Absence {
            hook_calls: self,
            call,
        };
        self.events.push(PoolEvent::Hook {
            point,
            call,
            session,
        });
        answered.await.unwrap_or_else(|_| Err(unfinished()))
    }

    /// Runs a statement of a hook.
    ///
    /// Dropping the future leaves the statement unfinished, and the call ends in an error.
    ///
    /// # Errors
    /// As `Database::execute`; [`Error::Usage`] when the hook has ended.
    pub(crate) async fn execute(
        self: Rc<Self>,
        call: u64,
        statement: Statement,
    ) -> Result<ResultSet, Error> {
        let connection = self
            .open
            .borrow_mut()
            .get_mut(&call)
            .and_then(|call| call.connection.take());
        let Some(connection) = connection else {
            return Err(Error::Usage {
                message: "the session of a hook is used by one statement at a time, and not after the hook has returned"
                    .to_owned(),
            });
        };
        let mut use_of_it = Use {
            hook_calls: &self,
            call,
            connection: Some(connection),
        };
        match &mut use_of_it.connection {
            Some(connection) => connection.execute(&statement).await,
            None => Err(unfinished()),
        }
    }

    /// Ends a call; an error closes the connection.
    pub(crate) fn finish(&self, call: u64, outcome: Result<(), Error>) {
        let Some(call) = self.open.borrow_mut().remove(&call) else {
            return;
        };
        let answer = outcome.and_then(|()| call.connection.ok_or_else(unfinished));
        // Fails when the borrower no longer waits; then the connection is closed here.
        let _ = call.done.send(answer);
    }
}

fn unfinished() -> Error {
    Error::Hook {
        message: "a hook has left a statement or a transaction unfinished".to_owned(),
        thrown: 0,
    }
}

/// Ends a call when the borrower no longer waits.
struct Absence<'a, C> {
    hook_calls: &'a HookCalls<C>,
    call: u64,
}

impl<C> Drop for Absence<'_, C> {
    fn drop(&mut self) {
        let abandoned = self.hook_calls.open.borrow_mut().remove(&self.call);
        if abandoned.is_some() {
            self.hook_calls
                .events
                .push(PoolEvent::Abandon { call: self.call });
        }
    }
}

/// Returns the connection to its call when a statement ends; closes it when the call has ended.
struct Use<'a, C> {
    hook_calls: &'a HookCalls<C>,
    call: u64,
    connection: Option<C>,
}

impl<C> Drop for Use<'_, C> {
    fn drop(&mut self) {
        if let Some(call) = self.hook_calls.open.borrow_mut().get_mut(&self.call) {
            call.connection = self.connection.take();
        }
    }
}
