use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::{JoinHandle, LocalSet, spawn_local};

use super::*;

mod cancellation;
mod model;
mod regressions;

/// A made-up kind of connection whose every step the test decides.
#[derive(Clone, Default)]
pub(super) struct TestManager(pub(super) Rc<TestServer>);

#[derive(Default)]
pub(super) struct TestServer {
    /// Connects under way, in order, when they are not answered at once.
    pub(super) orders: RefCell<VecDeque<ConnectReply>>,
    pub(super) by_hand: Cell<bool>,
    pub(super) made: Cell<usize>,
    pub(super) alive: Cell<usize>,
    most_alive: Cell<usize>,
    pub(super) recovers: Cell<bool>,
    /// The connections up to this number have died.
    pub(super) dead: Cell<usize>,
    /// So many of the next steps panic.
    pub(super) panics: Cell<usize>,
    /// Peers do not answer.
    pub(super) hangs: Cell<bool>,
    pub(super) validated: Cell<usize>,
    /// So many were terminated because their recovery took too long.
    pub(super) terminated: Cell<usize>,
}

type ConnectReply = oneshot::Sender<Result<(), &'static str>>;

impl TestServer {
    async fn stumble(&self) {
        if self.panics.get() > 0 {
            self.panics.set(self.panics.get() - 1);
            panic!("on purpose");
        }
        if self.hangs.get() {
            std::future::pending::<()>().await;
        }
    }
}

pub(super) struct TestConnection {
    pub(super) number: usize,
    pub(super) condition: Condition,
    bench: Rc<TestServer>,
}

impl Drop for TestConnection {
    fn drop(&mut self) {
        self.bench.alive.set(self.bench.alive.get() - 1);
    }
}

impl TestManager {
    fn make(&self) -> TestConnection {
        let bench = &self.0;
        bench.made.set(bench.made.get() + 1);
        bench.alive.set(bench.alive.get() + 1);
        bench
            .most_alive
            .set(bench.most_alive.get().max(bench.alive.get()));
        TestConnection {
            number: bench.made.get(),
            condition: Condition::Clean,
            bench: Rc::clone(bench),
        }
    }

    pub(super) fn answer_next(&self, answer: Result<(), &'static str>) -> bool {
        let order = self.0.orders.borrow_mut().pop_front();
        order.is_some_and(|order| order.send(answer).is_ok())
    }
}

impl Manage for TestManager {
    type Connection = TestConnection;
    type Error = &'static str;

    async fn connect(&self) -> Result<TestConnection, &'static str> {
        if self.0.by_hand.get() {
            let (order, answer) = oneshot::channel();
            self.0.orders.borrow_mut().push_back(order);
            answer.await.unwrap_or(Err("the factory has ended"))?;
            if self.0.panics.get() > 0 {
                self.0.stumble().await;
            }
        }
        Ok(self.make())
    }

    fn condition(&self, tool: &mut TestConnection) -> Condition {
        if tool.number <= self.0.dead.get() {
            return Condition::Broken;
        }
        tool.condition
    }

    async fn recover(&self, mut tool: TestConnection) -> Option<TestConnection> {
        tokio::task::yield_now().await;
        self.0.stumble().await;
        tool.condition = Condition::Clean;
        self.0.recovers.get().then_some(tool)
    }

    fn terminate(&self, _: &mut TestConnection) -> Option<impl Future<Output = ()> + 'static> {
        let bench = Rc::clone(&self.0);
        Some(async move {
            // As long as the recovery may take: a connection has to be opened first.
            tokio::time::sleep(Duration::from_secs(5)).await;
            bench.terminated.set(bench.terminated.get() + 1);
        })
    }

    async fn validate(&self, tool: TestConnection) -> Option<TestConnection> {
        self.0.validated.set(self.0.validated.get() + 1);
        self.0.stumble().await;
        Some(tool)
    }

    fn close(&self, _: TestConnection) {}
}

pub(super) fn pool(size: usize) -> (Pool<TestManager>, TestManager) {
    pool_with(PoolOptions {
        size,
        ..PoolOptions::default()
    })
}

pub(super) fn pool_with(options: PoolOptions) -> (Pool<TestManager>, TestManager) {
    let manager = TestManager::default();
    manager.0.recovers.set(true);
    let options = PoolOptions {
        name: "tools".to_owned(),
        ..options
    };
    (Pool::new(manager.clone(), options), manager)
}

/// Time stands still unless everybody waits, so a timeout costs no time.
pub(super) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, test)
}

/// Lets every other task run until it waits.
pub(super) async fn settle() {
    yields(20).await;
}

pub(super) async fn yields(times: usize) {
    for _ in 0..times {
        tokio::task::yield_now().await;
    }
}

pub(super) type Borrowing =
    JoinHandle<std::result::Result<Lease<TestManager>, Error<&'static str>>>;

pub(super) fn borrow(pool: &Pool<TestManager>) -> Borrowing {
    let pool = pool.clone();
    spawn_local(async move { pool.borrow().await })
}

#[test]
fn connections_are_opened_only_when_needed_and_the_last_used_is_lent_first() {
    run(async {
        let (pool, manager) = pool(5);
        assert_eq!(manager.0.made.get(), 0);
        let first = pool.borrow().await.unwrap();
        let second = pool.borrow().await.unwrap();
        drop(first);
        drop(second);
        assert_eq!(pool.borrow().await.unwrap().number, 2);
        assert_eq!(manager.0.made.get(), 2);
        assert_eq!(pool.stats().idle, 2);
    });
}

#[test]
fn waiters_are_served_first_come_first_served() {
    run(async {
        let (pool, _) = pool(1);
        let held = pool.borrow().await.unwrap();
        let order = Rc::new(RefCell::new(Vec::new()));
        let tasks: Vec<_> = (0..5)
            .map(|number| {
                let (pool, order) = (pool.clone(), Rc::clone(&order));
                spawn_local(async move {
                    let lease = pool.borrow().await.unwrap();
                    order.borrow_mut().push(number);
                    tokio::task::yield_now().await;
                    drop(lease);
                })
            })
            .collect();
        settle().await;
        drop(held);
        // A borrower that comes now finds no idle connection.
        let late = borrow(&pool);
        settle().await;
        for task in tasks {
            task.await.unwrap();
        }
        late.await.unwrap().unwrap();
        assert_eq!(*order.borrow(), [0, 1, 2, 3, 4]);
    });
}

/// After a pause the first borrower waits until the loop has looked at the sockets.
#[test]
fn borrowers_after_a_pause_are_served_first_come_first_served() {
    run(async {
        let (pool, _) = pool(1);
        drop(pool.borrow().await.unwrap());
        for cancelled in [None, Some(0), Some(1)] {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let order = Rc::new(RefCell::new(Vec::new()));
            let tasks: Vec<_> = (0..50)
                .map(|number| {
                    let (pool, order) = (pool.clone(), Rc::clone(&order));
                    spawn_local(async move {
                        let lease = pool.borrow().await.unwrap();
                        order.borrow_mut().push(number);
                        tokio::task::yield_now().await;
                        drop(lease);
                    })
                })
                .collect();
            tokio::task::yield_now().await;
            assert!(pool.try_borrow().is_none() && pool.queue().is_none());
            if let Some(number) = cancelled {
                tasks[number].abort();
            }
            for task in tasks {
                drop(task.await);
            }
            let expected = (0..50).filter(|number| Some(*number) != cancelled);
            assert_eq!(*order.borrow(), expected.collect::<Vec<_>>());
            assert!(pool.try_borrow().is_some());
        }
    });
}

#[test]
fn a_waiter_takes_a_returned_connection_while_its_own_is_still_being_opened() {
    run(async {
        let (pool, manager) = pool(2);
        let held = pool.borrow().await.unwrap();
        manager.0.by_hand.set(true);
        let waiting = borrow(&pool);
        settle().await;
        assert_eq!(pool.stats().connecting, 1);
        drop(held);
        assert_eq!(waiting.await.unwrap().unwrap().number, 1);
        assert!(manager.answer_next(Ok(())));
        settle().await;
        assert_eq!((pool.stats().idle, pool.stats().created), (2, 2));
    });
}

#[test]
fn a_waiter_that_gives_up_at_the_moment_of_delivery_passes_the_connection_on() {
    run(async {
        let (pool, _) = pool(1);
        let held = pool.borrow().await.unwrap();
        let quitter = borrow(&pool);
        settle().await;
        let next = borrow(&pool);
        settle().await;
        drop(held);
        // OnAcquired, but its task has not run since.
        quitter.abort();
        assert_eq!(next.await.unwrap().unwrap().number, 1);
        assert!(quitter.await.is_err_and(|error| error.is_cancelled()));
        assert_eq!((pool.stats().idle, pool.stats().in_use), (1, 0));
    });
}

#[test]
fn a_borrow_that_times_out_tells_the_numbers_and_leaves_the_queue() {
    run(async {
        let (pool, _) = pool(1);
        let held = pool.borrow().await.unwrap();
        let error = pool.borrow().await.err().unwrap();
        assert_eq!(
            error,
            Error::Exhausted {
                pool: "tools".to_owned(),
                waited: Duration::from_secs(30),
                size: 1,
                in_use: 1,
                waiting: 1,
                holders: pool.holders(),
            }
        );
        assert_eq!((pool.stats().waiting, pool.stats().timeouts), (0, 1));
        drop(held);
        assert!(pool.borrow().await.is_ok());
    });
}

#[test]
fn a_failed_connect_wakes_everybody_who_has_nothing_else_to_wait_for() {
    run(async {
        let (pool, manager) = pool(1);
        manager.0.by_hand.set(true);
        let (first, second) = (borrow(&pool), borrow(&pool));
        settle().await;
        assert!(manager.answer_next(Err("down")));
        assert_eq!(first.await.unwrap().err(), Some(Error::Connect("down")));
        assert_eq!(second.await.unwrap().err(), Some(Error::Connect("down")));
        assert!(matches!(
            pool.borrow().await.err(),
            Some(Error::Down {
                error: "down",
                attempts: 1,
                ..
            })
        ));
        tokio::time::sleep(Duration::from_millis(50)).await;
        // Somebody has asked: the pool tries again by itself.
        assert!(manager.answer_next(Ok(())));
        settle().await;
        assert!(pool.borrow().await.is_ok());
        assert_eq!(pool.stats().connect_failures, 1);
    });
}

#[test]
fn a_failed_connect_leaves_waiters_to_the_connections_that_are_lent_and_tries_again() {
    run(async {
        let (pool, manager) = pool(2);
        let held = pool.borrow().await.unwrap();
        manager.0.by_hand.set(true);
        let waiting = borrow(&pool);
        settle().await;
        assert!(manager.answer_next(Err("too many connections")));
        settle().await;
        assert!(!waiting.is_finished() && !manager.answer_next(Ok(())));
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(manager.answer_next(Ok(())));
        assert_eq!(waiting.await.unwrap().unwrap().number, 2);
        drop(held);
    });
}

#[test]
fn a_broken_connection_is_never_lent_again_and_its_room_is_free() {
    run(async {
        let (pool, manager) = pool(1);
        let mut lease = pool.borrow().await.unwrap();
        lease.condition = Condition::Broken;
        let waiting = borrow(&pool);
        settle().await;
        drop(lease);
        assert_eq!(waiting.await.unwrap().unwrap().number, 2);
        assert_eq!((pool.stats().broken, manager.0.most_alive.get()), (1, 1));
    });
}

#[test]
fn a_connection_that_died_while_idle_is_replaced_before_it_is_lent() {
    run(async {
        let (pool, manager) = pool(2);
        drop(pool.borrow().await.unwrap());
        manager.0.dead.set(1);
        assert_eq!(pool.borrow().await.unwrap().number, 2);
        assert_eq!(manager.0.alive.get(), 1);
    });
}

#[test]
fn a_dirty_connection_counts_as_in_use_until_it_is_clean() {
    run(async {
        let (pool, manager) = pool(1);
        let mut lease = pool.borrow().await.unwrap();
        lease.condition = Condition::Dirty;
        drop(lease);
        assert_eq!((pool.stats().in_use, pool.stats().idle), (1, 0));
        assert_eq!(pool.borrow().await.unwrap().number, 1);
        manager.0.recovers.set(false);
        let mut lease = pool.borrow().await.unwrap();
        lease.condition = Condition::Dirty;
        drop(lease);
        assert_eq!(pool.borrow().await.unwrap().number, 2);
    });
}

#[test]
fn closing_refuses_everybody_and_waits_for_the_last_lease() {
    run(async {
        let (pool, manager) = pool(1);
        let held = pool.borrow().await.unwrap();
        let waiting = borrow(&pool);
        settle().await;
        let closing = {
            let pool = pool.clone();
            spawn_local(async move { pool.close().await })
        };
        settle().await;
        let closed = Error::Closed {
            pool: "tools".to_owned(),
        };
        assert_eq!(waiting.await.unwrap().err(), Some(closed.clone()));
        assert_eq!(pool.borrow().await.err(), Some(closed));
        assert!(!closing.is_finished());
        drop(held);
        closing.await.unwrap();
        pool.close().await;
        assert_eq!(manager.0.alive.get(), 0);
    });
}

#[test]
fn a_connection_opened_for_a_pool_that_closed_meanwhile_is_closed() {
    run(async {
        let (pool, manager) = pool(1);
        manager.0.by_hand.set(true);
        let waiting = borrow(&pool);
        settle().await;
        let closing = {
            let pool = pool.clone();
            spawn_local(async move { pool.close().await })
        };
        settle().await;
        assert!(waiting.await.unwrap().is_err());
        assert!(manager.answer_next(Ok(())));
        closing.await.unwrap();
        assert_eq!(manager.0.alive.get(), 0);
    });
}

/// A small generator of our own: the same seed gives the same run on every machine (xorshift64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

/// The state of a random run.
struct Run {
    pool: Pool<TestManager>,
    manager: TestManager,
    size: usize,
    waiting: Vec<Borrowing>,
    leases: Vec<Lease<TestManager>>,
    dice: Dice,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let size = 1 + dice.below(4);
        let (pool, manager) = pool(size);
        manager.0.by_hand.set(true);
        Self {
            pool,
            manager,
            size,
            waiting: Vec::new(),
            leases: Vec::new(),
            dice,
        }
    }

    async fn step(&mut self) {
        match self.dice.below(10) {
            0..=2 => self.waiting.push(borrow(&self.pool)),
            3 | 4 => drop(self.manager.answer_next(Ok(()))),
            5 => drop(self.manager.answer_next(Err("down"))),
            6 | 7 => self.give_back(),
            8 => self.give_up(),
            _ => settle().await,
        }
        self.collect().await;
        self.check();
    }

    fn give_back(&mut self) {
        if !self.leases.is_empty() {
            let at = self.dice.below(self.leases.len());
            let mut lease = self.leases.swap_remove(at);
            lease.condition = match self.dice.below(4) {
                0 => Condition::Broken,
                1 => Condition::Dirty,
                _ => Condition::Clean,
            };
            self.manager.0.recovers.set(self.dice.below(2) == 0);
        }
    }

    fn give_up(&mut self) {
        if !self.waiting.is_empty() {
            let at = self.dice.below(self.waiting.len());
            self.waiting.remove(at).abort();
        }
    }

    async fn collect(&mut self) {
        for task in std::mem::take(&mut self.waiting) {
            if !task.is_finished() {
                self.waiting.push(task);
            } else if let Ok(lease) = task.await.unwrap() {
                assert_eq!(lease.condition, Condition::Clean);
                self.leases.push(lease);
            }
        }
    }

    fn check(&self) {
        let stats = self.pool.stats();
        let total = stats.idle + stats.in_use + stats.connecting;
        assert!(total <= self.size, "{stats:?}");
        assert!(stats.waiting == 0 || stats.idle == 0, "{stats:?}");
        assert!(self.leases.len() <= stats.in_use, "{stats:?}");
        assert!(self.manager.0.alive.get() <= self.size, "{stats:?}");
        assert!(
            stats.waiting == 0
                || total == self.size
                || stats.connecting >= stats.waiting
                || stats.connect_failures > 0,
            "somebody waits for nothing: {stats:?}"
        );
    }

    /// Everything comes back: afterwards all of the room can be lent.
    async fn finish(mut self) {
        self.manager.0.recovers.set(true);
        while !self.waiting.is_empty() || self.pool.stats().connecting > 0 {
            self.manager.answer_next(Ok(()));
            self.leases.clear();
            tokio::time::sleep(Duration::from_millis(300)).await;
            self.collect().await;
            self.check();
        }
        self.leases.clear();
        self.manager.0.by_hand.set(false);
        tokio::time::sleep(Duration::from_millis(300)).await;
        for _ in 0..self.size {
            self.leases.push(self.pool.borrow().await.unwrap());
        }
        self.check();
        assert_eq!(self.pool.stats().in_use, self.size);
        self.leases.clear();
        self.pool.close().await;
        assert_eq!(self.manager.0.alive.get(), 0);
    }
}

#[test]
fn no_order_of_events_loses_a_connection_a_waiter_or_room() {
    for seed in 1..=300_u64 {
        run(async {
            let mut run = Run::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            for _ in 0..200 {
                run.step().await;
            }
            run.finish().await;
        });
    }
}
