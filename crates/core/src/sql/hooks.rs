//! What the user's program does with connections at the turning points of their lives.
//!
//! The program reads of them in [`Calls`], a queue it empties when it comes by. A connection it may use meanwhile is kept
//! with its visit until the program says that it is done.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::rc::{Rc, Weak};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};

use super::{Error, ResultSet, Statement};
use crate::pool::Holder;

/// Which hooks there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hooks {
    pub created: bool,
    pub borrowed: bool,
    pub returned: bool,
    pub closed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    Created,
    /// Cleaning its session has undone what the hook for new ones had set: it is called again.
    Renewed,
    Borrowed,
    Returned,
    Closed,
}

/// Something the program is to do or to know.
#[derive(Debug)]
pub enum Call {
    Hook {
        moment: Moment,
        /// Names the visit; 0 where the connection is gone and nobody waits.
        visit: u64,
        /// The server's number of the session.
        session: i64,
    },
    /// Nobody waits for the visit any more.
    Abandon { visit: u64 },
    /// A connection is held for longer than the leak threshold.
    Leak(Holder),
}

/// What waits for the program.
#[derive(Default)]
pub struct Calls {
    queue: RefCell<VecDeque<Call>>,
    bell: Notify,
}

impl Calls {
    /// Resolves when there are any.
    pub async fn wait(&self) {
        while self.queue.borrow().is_empty() {
            self.bell.notified().await;
        }
    }

    pub fn take(&self) -> VecDeque<Call> {
        self.queue.take()
    }

    pub(crate) fn push(&self, call: Call) {
        self.queue.borrow_mut().push_back(call);
        self.bell.notify_one();
    }
}

/// What a connection that hooks may use can do.
pub trait Guest {
    /// The server's number of the session.
    fn session(&self) -> i64;

    fn execute(&mut self, statement: &Statement) -> impl Future<Output = Result<ResultSet, Error>>;

    /// Neither an answer nor the end of a transaction is outstanding.
    fn is_in_order(&self) -> bool;

    /// What was set in the session up to now belongs to it.
    fn keep_residue(&mut self);

    fn mark(&mut self) -> &mut Mark;
}

/// What hooks have to know about a connection.
#[derive(Default)]
pub struct Mark {
    /// The hook for new connections has run since the session was made as new.
    pub(crate) is_set_up: bool,
    farewell: Option<Farewell>,
}

/// Tells that a connection is no more, however it has ended.
struct Farewell {
    calls: Weak<Calls>,
    session: i64,
}

impl Drop for Farewell {
    fn drop(&mut self) {
        if let Some(calls) = self.calls.upgrade() {
            calls.push(Call::Hook {
                moment: Moment::Closed,
                visit: 0,
                session: self.session,
            });
        }
    }
}

/// Connections on their way through the hooks of one pool.
pub struct Visits<C> {
    pub(crate) hooks: Hooks,
    pub(crate) calls: Rc<Calls>,
    open: RefCell<HashMap<u64, Visit<C>>>,
    last: Cell<u64>,
}

struct Visit<C> {
    /// Taken out while a statement runs on it.
    connection: Option<C>,
    done: oneshot::Sender<Result<C, Error>>,
}

impl<C: Guest> Visits<C> {
    pub(crate) fn new(hooks: Hooks) -> Rc<Self> {
        Rc::new(Self {
            hooks,
            calls: Rc::default(),
            open: RefCell::default(),
            last: Cell::new(0),
        })
    }

    /// A connection was opened.
    ///
    /// # Errors
    /// What the hook threw; the connection is closed then.
    pub(crate) async fn created(&self, mut connection: C) -> Result<C, Error> {
        if self.hooks.closed {
            connection.mark().farewell = Some(Farewell {
                calls: Rc::downgrade(&self.calls),
                session: connection.session(),
            });
        }
        self.set_up(Moment::Created, connection).await
    }

    /// A connection was cleaned. `None` when it has to be closed.
    pub(crate) async fn cleaned(&self, connection: C) -> Option<C> {
        self.set_up(Moment::Renewed, connection).await.ok()
    }

    async fn set_up(&self, moment: Moment, mut connection: C) -> Result<C, Error> {
        if !self.hooks.created || connection.mark().is_set_up {
            return Ok(connection);
        }
        connection = self.visit(moment, connection).await?;
        if !connection.is_in_order() {
            return Err(unfinished());
        }
        connection.keep_residue();
        connection.mark().is_set_up = true;
        Ok(connection)
    }

    /// A connection is about to be lent. `within` zero is no limit.
    ///
    /// # Errors
    /// What the hook threw, or that it took too long; the connection is closed then.
    pub(crate) async fn borrowed(&self, connection: C, within: Duration) -> Result<C, Error> {
        let limit = if within.is_zero() {
            Duration::MAX
        } else {
            within
        };
        let visit = self.visit(Moment::Borrowed, connection);
        let connection = tokio::time::timeout(limit, visit)
            .await
            .unwrap_or_else(|_| {
                Err(Error::Hook {
                    message: format!("the hook \"borrowed\" took longer than {within:?}"),
                    thrown: 0,
                })
            })?;
        match connection.is_in_order() {
            true => Ok(connection),
            false => Err(unfinished()),
        }
    }

    /// A connection came back and is clean; it may be dirty afterwards. `None` when it has to be closed.
    pub(crate) async fn returned(&self, connection: C) -> Option<C> {
        self.visit(Moment::Returned, connection).await.ok()
    }

    async fn visit(&self, moment: Moment, connection: C) -> Result<C, Error> {
        let (done, answered) = oneshot::channel();
        let visit = self.last.get() + 1;
        self.last.set(visit);
        let session = connection.session();
        let connection = Some(connection);
        self.open
            .borrow_mut()
            .insert(visit, Visit { connection, done });
        let _absence = Absence {
            visits: self,
            visit,
        };
        self.calls.push(Call::Hook {
            moment,
            visit,
            session,
        });
        answered.await.unwrap_or_else(|_| Err(unfinished()))
    }

    /// Runs a statement of a hook.
    ///
    /// Dropping the future leaves the connection in the middle of it, and the visit ends in an error.
    ///
    /// # Errors
    /// As `Database::execute`; [`Error::Usage`] when the hook has ended.
    pub(crate) async fn execute(
        self: Rc<Self>,
        visit: u64,
        statement: Statement,
    ) -> Result<ResultSet, Error> {
        let connection = self
            .open
            .borrow_mut()
            .get_mut(&visit)
            .and_then(|visit| visit.connection.take());
        let Some(connection) = connection else {
            return Err(Error::Usage {
                message: "the session of a hook is used by one statement at a time, and not after the hook has returned"
                    .to_owned(),
            });
        };
        let mut use_of_it = Use {
            visits: &self,
            visit,
            connection: Some(connection),
        };
        match &mut use_of_it.connection {
            Some(connection) => connection.execute(&statement).await,
            None => Err(unfinished()),
        }
    }

    /// The program is done with a visit; an error closes the connection.
    pub(crate) fn finish(&self, visit: u64, outcome: Result<(), Error>) {
        let Some(visit) = self.open.borrow_mut().remove(&visit) else {
            return;
        };
        let answer = outcome.and_then(|()| visit.connection.ok_or_else(unfinished));
        // Whoever waited may have left; then the connection is closed here.
        let _ = visit.done.send(answer);
    }
}

fn unfinished() -> Error {
    Error::Hook {
        message: "a hook has left a statement or a transaction unfinished".to_owned(),
        thrown: 0,
    }
}

/// A visit ends with whoever waits for it.
struct Absence<'a, C> {
    visits: &'a Visits<C>,
    visit: u64,
}

impl<C> Drop for Absence<'_, C> {
    fn drop(&mut self) {
        let abandoned = self.visits.open.borrow_mut().remove(&self.visit);
        if abandoned.is_some() {
            self.visits.calls.push(Call::Abandon { visit: self.visit });
        }
    }
}

/// A connection goes back to its visit when a statement ends, and is closed when that is over.
struct Use<'a, C> {
    visits: &'a Visits<C>,
    visit: u64,
    connection: Option<C>,
}

impl<C> Drop for Use<'_, C> {
    fn drop(&mut self) {
        if let Some(visit) = self.visits.open.borrow_mut().get_mut(&self.visit) {
            visit.connection = self.connection.take();
        }
    }
}
