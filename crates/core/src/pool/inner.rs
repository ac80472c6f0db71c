use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::sync::oneshot::{self, error::TryRecvError};

use super::nursery::Nursery;
use super::state::{Delivery, Refusal, State, Ticket};
use super::{Condition, Error, Manage, PoolOptions, Stats};

pub(super) struct Inner<M: Manage> {
    manager: M,
    options: PoolOptions,
    state: RefCell<State<M::Connection, M::Error>>,
    nursery: Nursery,
    drained: Notify,
    /// When somebody borrowed last.
    borrowed: Cell<Instant>,
}

/// After so long without a borrower the state of the sockets is asked for anew.
const LULL: Duration = Duration::from_millis(50);

impl<M: Manage> Inner<M> {
    pub(super) fn new(manager: M, options: PoolOptions) -> Self {
        Self {
            state: RefCell::new(State::new(options.size.max(1))),
            manager,
            options,
            nursery: Nursery::new(),
            drained: Notify::new(),
            borrowed: Cell::new(Instant::now()),
        }
    }

    pub(super) fn manager(&self) -> &M {
        &self.manager
    }

    pub(super) fn options(&self) -> &PoolOptions {
        &self.options
    }

    pub(super) fn stats(&self) -> Stats {
        self.state.borrow().stats()
    }

    pub(super) async fn borrow(self: &Rc<Self>) -> Result<M::Connection, Error<M::Error>> {
        self.nursery.open();
        if self.state.borrow().is_closed() {
            return Err(self.closed());
        }
        if self.borrowed.replace(Instant::now()).elapsed() > LULL {
            // A process that blocks between statements does not pump its loop: that a server has hung up meanwhile is
            // known only after the loop has looked, which it does before it resumes a task that yields.
            tokio::task::yield_now().await;
        }
        let connection = match self.lend_idle() {
            Some(connection) => connection,
            None => self.wait().await?,
        };
        self.state.borrow_mut().count_borrowed();
        Ok(connection)
    }

    pub(super) fn take_back(self: &Rc<Self>, mut connection: M::Connection) {
        match self.manager.condition(&mut connection) {
            Condition::Clean => self.give_back(connection),
            Condition::Broken => self.discard(connection),
            Condition::Dirty => self.send_to_recovery(connection),
        }
    }

    pub(super) async fn close(self: &Rc<Self>) {
        let idle = self.state.borrow_mut().close();
        for connection in idle {
            self.manager.close(connection);
        }
        while !self.state.borrow().is_drained() {
            self.drained.notified().await;
        }
        // Whoever else waits for the end of the pool.
        self.drained.notify_one();
    }

    /// Connections that died while idle are sorted out on the way.
    fn lend_idle(self: &Rc<Self>) -> Option<M::Connection> {
        loop {
            let mut connection = self.state.borrow_mut().lend_idle()?;
            if self.manager.condition(&mut connection) == Condition::Clean {
                return Some(connection);
            }
            self.discard(connection);
        }
    }

    async fn wait(self: &Rc<Self>) -> Result<M::Connection, Error<M::Error>> {
        let mut place = Place::take(self);
        self.grow();
        match tokio::time::timeout(self.patience(), &mut place.delivery).await {
            Ok(Ok(Ok(connection))) => Ok(connection),
            Ok(Ok(Err(Refusal::Connect(error)))) => Err(Error::Connect(error)),
            Ok(Ok(Err(Refusal::Closed)) | Err(_)) => Err(self.closed()),
            Err(_) => Err(self.exhausted()),
        }
    }

    /// Whoever waits for nobody still waits for the connection that is opened for him.
    fn patience(&self) -> Duration {
        match self.options.borrow_timeout {
            Duration::ZERO if self.state.borrow().opens_for_everybody() => Duration::MAX,
            timeout => timeout,
        }
    }

    fn give_back(self: &Rc<Self>, connection: M::Connection) {
        let surplus = self.state.borrow_mut().give_back(connection);
        self.retire(surplus);
    }

    fn discard(self: &Rc<Self>, connection: M::Connection) {
        self.state.borrow_mut().discard();
        self.retire(Some(connection));
        self.grow();
    }

    fn send_to_recovery(self: &Rc<Self>, connection: M::Connection) {
        let recovery = Recovery(Some(Rc::clone(self)));
        self.nursery.spawn(recovery.run(connection));
    }

    /// Opens a connection for every waiter that has none under way, as far as there is room.
    fn grow(self: &Rc<Self>) {
        while self.state.borrow_mut().claim_connect() {
            let claim = Claim(Some(Rc::clone(self)));
            self.nursery.spawn(claim.run());
        }
    }

    fn connected(self: &Rc<Self>, outcome: Result<M::Connection, M::Error>) {
        match outcome {
            Ok(connection) => {
                let surplus = self.state.borrow_mut().connected(connection);
                self.retire(surplus);
            }
            Err(error) => self.state.borrow_mut().connect_failed(error),
        }
        self.settle();
    }

    fn settle(self: &Rc<Self>) {
        self.grow();
        self.retire(None);
    }

    fn retire(&self, connection: Option<M::Connection>) {
        if let Some(connection) = connection {
            self.manager.close(connection);
        }
        if self.state.borrow().is_drained() {
            self.drained.notify_one();
        }
    }

    fn closed(&self) -> Error<M::Error> {
        Error::Closed {
            pool: self.options.name.clone(),
        }
    }

    fn exhausted(&self) -> Error<M::Error> {
        let mut state = self.state.borrow_mut();
        state.count_timeout();
        let stats = state.stats();
        Error::Exhausted {
            pool: self.options.name.clone(),
            waited: self.options.borrow_timeout,
            size: stats.size,
            in_use: stats.in_use,
            waiting: stats.waiting,
        }
    }
}

/// A place in the queue. Leaving it early passes on what was delivered in the last moment.
struct Place<'a, M: Manage> {
    pool: &'a Rc<Inner<M>>,
    ticket: Ticket,
    delivery: oneshot::Receiver<Delivery<M::Connection, M::Error>>,
}

impl<'a, M: Manage> Place<'a, M> {
    fn take(pool: &'a Rc<Inner<M>>) -> Self {
        let (ticket, delivery) = pool.state.borrow_mut().enqueue();
        Self {
            pool,
            ticket,
            delivery,
        }
    }
}

impl<M: Manage> Drop for Place<'_, M> {
    fn drop(&mut self) {
        match self.delivery.try_recv() {
            Ok(Ok(connection)) => self.pool.take_back(connection),
            Err(TryRecvError::Empty) => self.pool.state.borrow_mut().forget(self.ticket),
            Ok(Err(_)) | Err(TryRecvError::Closed) => {}
        }
    }
}

/// Room claimed for a connection that is being opened; free again when the task vanishes.
struct Claim<M: Manage>(Option<Rc<Inner<M>>>);

impl<M: Manage> Claim<M> {
    async fn run(mut self) {
        let Some(pool) = self.0.clone() else { return };
        let outcome = pool.manager.connect().await;
        self.0 = None;
        pool.connected(outcome);
    }
}

impl<M: Manage> Drop for Claim<M> {
    fn drop(&mut self) {
        if let Some(pool) = self.0.take() {
            pool.state.borrow_mut().connect_abandoned();
            pool.settle();
        }
    }
}

/// A connection being cleaned; its room is free again when the task vanishes.
struct Recovery<M: Manage>(Option<Rc<Inner<M>>>);

impl<M: Manage> Recovery<M> {
    async fn run(mut self, connection: M::Connection) {
        let Some(pool) = self.0.clone() else { return };
        let recovered = pool.manager.recover(connection).await;
        self.0 = None;
        match recovered {
            // Not `take_back`: what is still dirty after a recovery would be recovered for ever.
            Some(mut connection) => match pool.manager.condition(&mut connection) {
                Condition::Clean => pool.give_back(connection),
                Condition::Dirty | Condition::Broken => pool.discard(connection),
            },
            None => pool.lose(),
        }
    }
}

impl<M: Manage> Inner<M> {
    fn lose(self: &Rc<Self>) {
        self.state.borrow_mut().discard();
        self.settle();
    }
}

impl<M: Manage> Drop for Recovery<M> {
    fn drop(&mut self) {
        if let Some(pool) = self.0.take() {
            pool.lose();
        }
    }
}
