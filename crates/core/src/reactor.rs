//! The event loop of one process: Tokio on the PHP thread, completions by id.
//!
//! PHP never runs inside a Tokio task. A task touches native data only and stores its outcome here. The scheduler outside calls
//! [`Reactor::poll`] for the ids of finished operations and takes their outcomes one by one.

#![allow(
    unsafe_code,
    reason = "ends the runtime while it is dropped, and pins the futures of operations in place"
)]

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::io;
use std::mem::ManuallyDrop;
use std::pin::{Pin, pin};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use crate::id_map::IdMap;
use crate::net::idle_hook;
use crate::workers::loop_watchdog;
use crate::{blocking, panics};
use tokio::runtime::{Builder, Runtime};
use tokio::task::{AbortHandle, LocalSet, yield_now};
use tokio::time::sleep_until;

/// Identifies one operation; never reused within a process.
pub type OpId = u64;

/// A single-threaded Tokio runtime whose tasks end in an outcome of type `T`.
///
/// Not `Send`: nothing spawned here can leave the thread, so values of the host language cannot either.
pub struct Reactor<T: 'static> {
    runtime: ManuallyDrop<Runtime>,
    tasks: LocalSet,
    shared: Rc<Shared<T>>,
    /// Whether tasks were spawned that may have left others behind, such as the one of a connection.
    has_spawned: Cell<bool>,
}

struct Shared<T> {
    state: RefCell<State<T>>,
    on_panic: fn(String) -> T,
}

struct State<T> {
    next_id: OpId,
    running: IdMap<Running>,
    /// Outcomes that have not been taken.
    outcomes: IdMap<T>,
    /// Ids whose outcome has not been announced by `poll` yet, in order of completion.
    unannounced: Vec<OpId>,
    /// The question to the system, which must not wait any more.
    waiter: Option<Waker>,
}

/// How to end an unfinished operation.
enum Running {
    Task {
        task: AbortHandle,
        /// Owned by the task.
        future: Weak<dyn Discard>,
    },
    /// Dropping what it owns.
    Claim { _owned: Box<dyn Any> },
    /// No step is needed: it only ends when it is cancelled.
    Recurring,
}

/// The future of an operation, which its task polls and its cancellation drops.
///
/// Aborting a task drops its future not before the next turn. A task of PHP that is cancelled goes on before that: what its operation has
/// taken out of its place, such as the only reader of a body, has to be back by then.
struct Slot<F>(RefCell<Option<F>>);

trait Discard {
    /// Drops the future, unless it is being polled.
    fn discard(&self);
}

impl<F: Future> Slot<F> {
    fn new(future: F) -> Rc<Self> {
        Rc::new(Self(RefCell::new(Some(future))))
    }

    /// The output, or the message of a panic. By then the future is dropped.
    fn poll(self: &Rc<Self>, context: &mut Context<'_>) -> Poll<Result<F::Output, String>> {
        let mut slot = self.0.borrow_mut();
        let Some(future) = &mut *slot else {
            return Poll::Pending;
        };
        // SAFETY: the future never moves: it is in an `Rc`, nothing else has access to it, and it is only ever dropped in place.
        let future = unsafe { Pin::new_unchecked(future) };
        let output = match panics::caught_call(|| future.poll(context)) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(output)) => Ok(output),
            Err(message) => Err(message),
        };
        let dropped = panics::caught_call(|| *slot = None);
        Poll::Ready(output.and_then(|output| dropped.map(|()| output)))
    }
}

impl<F> Discard for Slot<F> {
    fn discard(&self) {
        if let Ok(mut slot) = self.0.try_borrow_mut() {
            // Nobody waits for the operation, so nobody can be told of a panic.
            let _ = panics::caught_call(|| *slot = None);
        }
    }
}

/// The outcome of the first step of an operation.
enum Begun<R, F, T> {
    Pending(Pin<Box<dyn Future<Output = R>>>, F),
    Ended(T),
}

/// The waker of an operation's first step. Outside of the event loop, Tokio's `yield_now` wakes at once and is over at the next poll, without
/// the system having been asked in between; the pool relies on that (`pool::socket_check`).
#[derive(Default)]
struct FirstStep(AtomicBool);

impl FirstStep {
    fn has_woken(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Wake for FirstStep {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Finishes an operation that has no task.
pub struct Promise<T> {
    id: OpId,
    shared: Weak<Shared<T>>,
}

impl<T> Promise<T> {
    /// Does nothing when the operation was cancelled.
    pub fn keep(self, outcome: T) {
        if let Some(shared) = self.shared.upgrade() {
            shared.finish(self.id, outcome);
        }
    }
}

/// Announces an operation that recurs.
pub struct Announcer<T> {
    id: OpId,
    shared: Weak<Shared<T>>,
}

impl<T> Announcer<T> {
    /// The next poll returns the operation, once. Does nothing when it was cancelled.
    pub fn announce(&self) {
        if let Some(shared) = self.shared.upgrade() {
            shared.announce(self.id);
        }
    }
}

impl<T: 'static> Reactor<T> {
    /// `on_panic` turns the message of a panic into the outcome of its operation, so that the waiting task always resumes.
    pub fn new(on_panic: fn(String) -> T) -> io::Result<Self> {
        let runtime = Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(blocking::THREADS)
            .thread_name("weft-blocking")
            .on_thread_start(crate::thread::block_signals)
            .on_thread_park(idle_hook::run)
            .build()?;
        idle_hook::enable();
        let state = State {
            next_id: 1,
            running: IdMap::default(),
            outcomes: IdMap::default(),
            unannounced: Vec::new(),
            waiter: None,
        };
        Ok(Self {
            runtime: ManuallyDrop::new(runtime),
            tasks: LocalSet::new(),
            has_spawned: Cell::new(false),
            shared: Rc::new(Shared {
                state: RefCell::new(state),
                on_panic,
            }),
        })
    }

    /// Starts an operation. It makes progress only inside [`poll`](Self::poll).
    pub fn spawn(&self, future: impl Future<Output = T> + 'static) -> OpId {
        self.has_spawned.set(true);
        self.spawn_leaf(future)
    }

    /// The same for a future that spawns no task: when the operation has ended, nothing of it is left.
    pub fn spawn_leaf(&self, future: impl Future<Output = T> + 'static) -> OpId {
        let id = self.shared.reserve_id();
        let shared = Rc::clone(&self.shared);
        let slot = Slot::new(future);
        let future = Rc::downgrade(&slot);
        let handle = {
            let _context = self.runtime.enter();
            self.tasks.spawn_local(async move {
                let outcome = match poll_fn(|context| slot.poll(context)).await {
                    Ok(outcome) => outcome,
                    Err(message) => (shared.on_panic)(message),
                };
                shared.finish(id, outcome);
            })
        };
        let task = handle.abort_handle();
        let running = Running::Task { task, future };
        self.shared.state.borrow_mut().running.insert(id, running);
        id
    }

    /// Starts an operation and polls it once before this returns, so that what it sends does not wait for the next [`poll`](Self::poll).
    /// `finish` makes its outcome.
    ///
    /// An operation that ends in this first step has run its destructors when this returns; like any other, it is announced by the next
    /// [`poll`](Self::poll). An operation that yields in it goes on when the system has been asked, as inside of the event loop. A panic
    /// becomes its outcome.
    pub fn spawn_begun<R: 'static>(
        &self,
        mut future: Pin<Box<dyn Future<Output = R>>>,
        finish: impl FnOnce(R) -> T + 'static,
    ) -> OpId {
        // The first step may leave tasks behind, also where it is the last.
        self.has_spawned.set(true);
        let wakes = Arc::new(FirstStep::default());
        let waker = Waker::from(Arc::clone(&wakes));
        let begun = {
            let _runtime = self.runtime.enter();
            let _tasks = self.tasks.enter();
            panics::caught_call(move || {
                // The task polls it again, with a waker of its own.
                let mut context = Context::from_waker(&waker);
                match future.as_mut().poll(&mut context) {
                    Poll::Pending => Begun::Pending(future, finish),
                    Poll::Ready(result) => {
                        // Its destructors may need the runtime as well.
                        drop(future);
                        Begun::Ended(finish(result))
                    }
                }
            })
        };
        match begun {
            Ok(Begun::Pending(future, finish)) => {
                let has_yielded = wakes.has_woken();
                self.spawn(async move {
                    if has_yielded {
                        yield_now().await;
                    }
                    finish(future.await)
                })
            }
            Ok(Begun::Ended(outcome)) => self.shared.finished(outcome),
            Err(message) => self.shared.finished((self.shared.on_panic)(message)),
        }
    }

    /// Starts an operation without a task: keeping the promise finishes it. Cancelling it drops `claim`; the promise then has no effect.
    pub fn expect(&self, claim: impl Any) -> (OpId, Promise<T>) {
        let id = self.shared.reserve_id();
        let claim = Running::Claim {
            _owned: Box::new(claim),
        };
        self.shared.state.borrow_mut().running.insert(id, claim);
        let shared = Rc::downgrade(&self.shared);
        (id, Promise { id, shared })
    }

    /// The same for a claim that needs its promise before it exists. The promise has no effect until this returns.
    ///
    /// # Errors
    /// Those of `claim`; nothing was started.
    pub fn try_expect<C: Any, E>(
        &self,
        claim: impl FnOnce(Promise<T>) -> Result<C, E>,
    ) -> Result<OpId, E> {
        let id = self.shared.reserve_id();
        let shared = Rc::downgrade(&self.shared);
        let claim = Running::Claim {
            _owned: Box::new(claim(Promise { id, shared })?),
        };
        self.shared.state.borrow_mut().running.insert(id, claim);
        Ok(id)
    }

    /// Starts an operation that never has an outcome: each announcement makes a [`poll`](Self::poll) return it, until it is cancelled. For
    /// what happens again and again, such as the arrival of requests, this costs less than one operation after the other.
    pub fn recurring(&self) -> (OpId, Announcer<T>) {
        let id = self.shared.reserve_id();
        let mut state = self.shared.state.borrow_mut();
        state.running.insert(id, Running::Recurring);
        let shared = Rc::downgrade(&self.shared);
        (id, Announcer { id, shared })
    }

    /// Starts background work without an outcome, such as the maintenance of a connection.
    pub fn spawn_background(&self, future: impl Future<Output = ()> + 'static) {
        self.has_spawned.set(true);
        self.spawn_watcher(future);
    }

    /// The same for work that only waits for descriptors on behalf of operations.
    pub fn spawn_watcher(&self, future: impl Future<Output = ()> + 'static) {
        let _context = self.runtime.enter();
        self.tasks.spawn_local(future);
    }

    /// Runs native tasks and returns the ids finished since the last call, in order of completion.
    ///
    /// `Some(ZERO)` makes one pass without waiting, `None` waits until something finishes. Where no operation runs, `None` does not wait
    /// either: nothing could finish.
    pub fn poll(&self, timeout: Option<Duration>) -> Vec<OpId> {
        loop_watchdog::park();
        self.turn(timeout);
        loop_watchdog::unpark();
        std::mem::take(&mut self.shared.state.borrow_mut().unannounced)
    }

    /// Asks the system once for each time that it waits, and acts on each answer before it looks whether something has finished.
    fn turn(&self, timeout: Option<Duration>) {
        let is_brief = timeout == Some(Duration::ZERO)
            || self.shared.has_unannounced()
            || timeout.is_none() && self.running() == 0;
        let end = timeout
            .filter(|_| !is_brief)
            .and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            self.runtime.block_on(self.ask(is_brief, end));
            self.run_woken();
            let is_late = || end.is_some_and(|end| Instant::now() >= end);
            if is_brief || self.shared.has_unannounced() || is_late() {
                return;
            }
        }
    }

    /// Runs the tasks that are ready, then asks the system what is new, and waits for that if nothing has finished.
    ///
    /// It asks in any case: operations that finish without the system must not starve the others.
    async fn ask(&self, is_brief: bool, end: Option<Instant>) {
        let mut limit = pin!(end.map(|end| sleep_until(end.into())));
        let mut has_asked = false;
        let asked = poll_fn(|context| {
            if has_asked {
                return Poll::Ready(());
            }
            // Tokio runs the tasks and asks the system after the first poll of this.
            has_asked = true;
            let limit = limit.as_mut().as_pin_mut();
            let is_late = limit.is_some_and(|limit| limit.poll(context).is_ready());
            if is_late || is_brief || self.shared.has_unannounced() {
                // So that Tokio does not wait.
                context.waker().wake_by_ref();
            }
            self.shared.state.borrow_mut().waiter = Some(context.waker().clone());
            Poll::Pending
        });
        self.tasks.run_until(asked).await;
        self.shared.state.borrow_mut().waiter = None;
    }

    /// Runs the tasks that are ready outside of `block_on`. Inside, a task that yields is woken when the system is asked the next time, and
    /// not at all if that is never.
    ///
    /// A task woken while PHP runs needs no wake-up: the next turn runs ready tasks first.
    fn run_woken(&self) {
        let _runtime = self.runtime.enter();
        let tasks = pin!(self.tasks.run_until(std::future::pending::<()>()));
        let _: Poll<()> = tasks.poll(&mut Context::from_waker(Waker::noop()));
    }

    /// Calls `cause` and returns the operation that it has finished, if it has finished one that is not announced yet. The next
    /// [`poll`](Self::poll) does not return it: the caller has to resume the task that waits for it.
    ///
    /// For a call that makes a task ready which should not wait until all others of this turn have run.
    pub fn finished_by(&self, cause: impl FnOnce()) -> Option<OpId> {
        let before = self.shared.state.borrow().unannounced.len();
        cause();
        let mut state = self.shared.state.borrow_mut();
        let last = *state.unannounced.get(before..)?.last()?;
        // Only `poll` announces recurring operations.
        let has_ended = state.outcomes.contains_key(&last);
        has_ended.then(|| state.unannounced.pop())?
    }

    /// Takes the outcome of a finished operation.
    pub fn take(&self, id: OpId) -> Option<T> {
        self.shared.state.borrow_mut().outcomes.remove(&id)
    }

    /// Drops the operation, running or finished. The destructors of its future, which clean up, have run when this returns. Unknown ids are
    /// ignored.
    pub fn cancel(&self, id: OpId) {
        // Claim and outcome are dropped after the borrow ends: their destructors may come back here.
        let (running, outcome) = {
            let mut state = self.shared.state.borrow_mut();
            let outcome = state.outcomes.remove(&id);
            let running = state.running.remove(&id);
            if outcome.is_some() || matches!(running, Some(Running::Recurring)) {
                state.unannounced.retain(|unannounced| *unannounced != id);
            }
            (running, outcome)
        };
        if let Some(Running::Task { task, future }) = &running {
            task.abort();
            // Destructors may spawn tasks.
            let _runtime = self.runtime.enter();
            let _tasks = self.tasks.enter();
            if let Some(future) = future.upgrade() {
                future.discard();
            }
        }
        drop((running, outcome));
    }

    /// Whether the event loop has nothing to do before a descriptor becomes ready: no operation runs, and no task exists that could.
    pub fn is_quiet(&self) -> bool {
        !self.has_spawned.get() && self.running() == 0
    }

    /// How many operations have been started and neither announced by `poll` nor cancelled.
    pub fn running(&self) -> usize {
        let state = self.shared.state.borrow();
        state.running.len() + state.unannounced.len()
    }
}

/// Blocking calls that have begun are abandoned: a name server that does not answer must not keep the process from ending.
impl<T: 'static> Drop for Reactor<T> {
    fn drop(&mut self) {
        // SAFETY: nothing uses the runtime after this.
        let runtime = unsafe { ManuallyDrop::take(&mut self.runtime) };
        runtime.shutdown_background();
    }
}

impl<T> Shared<T> {
    fn reserve_id(&self) -> OpId {
        let mut state = self.state.borrow_mut();
        let id = state.next_id;
        state.next_id += 1;
        id
    }

    /// An operation that has ended before it had an id.
    fn finished(&self, outcome: T) -> OpId {
        let id = self.reserve_id();
        let mut state = self.state.borrow_mut();
        state.outcomes.insert(id, outcome);
        state.unannounced.push(id);
        id
    }

    fn finish(&self, id: OpId, outcome: T) {
        let mut state = self.state.borrow_mut();
        let running = state.running.remove(&id);
        if running.is_some() {
            state.outcomes.insert(id, outcome);
            state.unannounced.push(id);
            if let Some(waiter) = state.waiter.take() {
                waiter.wake();
            }
        }
        drop(state);
        drop(running);
    }

    fn announce(&self, id: OpId) {
        let mut state = self.state.borrow_mut();
        if state.running.contains_key(&id) && !state.unannounced.contains(&id) {
            state.unannounced.push(id);
            if let Some(waiter) = state.waiter.take() {
                waiter.wake();
            }
        }
    }

    fn has_unannounced(&self) -> bool {
        !self.state.borrow().unannounced.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reactor() -> Reactor<u32> {
        Reactor::new(|_| 999).unwrap()
    }

    /// An operation that waits for a socket, which has something to read since the last poll. With the other end, which stays open.
    fn read_of_sent(reactor: &Reactor<u32>) -> (OpId, std::os::unix::net::UnixStream) {
        let (near, far) = std::os::unix::net::UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        let reading = reactor.spawn(async move {
            let near = tokio::net::UnixStream::from_std(near).unwrap();
            near.readable().await.unwrap();
            1
        });
        reactor.poll(Some(Duration::ZERO));
        std::io::Write::write_all(&mut &far, b"x").unwrap();
        (reading, far)
    }

    #[test]
    fn a_finished_operation_is_announced_once_and_taken_once() {
        let reactor = reactor();
        let id = reactor.spawn(async { 7 });
        assert_eq!(reactor.poll(None), vec![id]);
        assert!(reactor.poll(Some(Duration::ZERO)).is_empty());
        assert_eq!(reactor.take(id), Some(7));
        assert_eq!(reactor.take(id), None);
    }

    #[test]
    fn an_operation_that_a_call_has_finished_is_not_announced_again() {
        let reactor = reactor();
        let (earlier, promise) = reactor.expect(());
        promise.keep(1);
        let (id, promise) = reactor.expect(());
        assert_eq!(reactor.finished_by(|| ()), None);
        assert_eq!(reactor.finished_by(|| promise.keep(2)), Some(id));
        assert_eq!(reactor.running(), 1);
        assert_eq!(reactor.poll(None), vec![earlier]);
        assert_eq!(reactor.take(id), Some(2));
    }

    #[test]
    fn of_several_that_a_call_has_finished_the_last_is_returned_and_the_others_are_announced() {
        let reactor = reactor();
        let (first, kept_first) = reactor.expect(());
        let (last, kept_last) = reactor.expect(());
        let finished = reactor.finished_by(|| {
            kept_first.keep(1);
            kept_last.keep(2);
        });
        assert_eq!(finished, Some(last));
        assert_eq!(reactor.poll(None), vec![first]);
    }

    #[test]
    fn what_recurs_is_left_to_the_poll() {
        let reactor = reactor();
        let (id, announcer) = reactor.recurring();
        assert_eq!(reactor.finished_by(|| announcer.announce()), None);
        assert_eq!(reactor.poll(None), vec![id]);
    }

    #[test]
    fn a_call_that_cancels_what_was_finished_has_finished_nothing() {
        let reactor = reactor();
        let (id, promise) = reactor.expect(());
        promise.keep(1);
        assert_eq!(reactor.finished_by(|| reactor.cancel(id)), None);
        assert!(reactor.poll(Some(Duration::ZERO)).is_empty());
    }

    #[test]
    fn a_zero_timeout_never_waits() {
        let reactor = reactor();
        let id = reactor.spawn(std::future::pending());
        assert!(reactor.poll(Some(Duration::ZERO)).is_empty());
        assert_eq!(reactor.running(), 1);
        reactor.cancel(id);
        assert_eq!(reactor.running(), 0);
    }

    #[test]
    fn without_operations_no_poll_waits() {
        let reactor = reactor();
        reactor.spawn_background(std::future::pending());
        assert!(reactor.poll(None).is_empty());
    }

    #[test]
    fn a_cancelled_operation_runs_its_destructors_and_is_never_announced() {
        let reactor = reactor();
        let alive = Rc::new(());
        let guard = Rc::clone(&alive);
        let id = reactor.spawn(async move {
            let _guard = guard;
            tokio::time::sleep(Duration::from_secs(60)).await;
            1
        });
        reactor.poll(Some(Duration::ZERO));
        reactor.cancel(id);
        assert_eq!(Rc::strong_count(&alive), 1);
        assert!(reactor.poll(Some(Duration::from_millis(1))).is_empty());
    }

    /// A resource that an operation takes out of its place is back when the call returns that has cancelled it.
    #[test]
    fn a_call_that_cancels_an_operation_has_run_its_destructors() {
        let reactor = reactor();
        let dropped = Rc::new(Cell::new(0));
        for turns in 0..2 {
            let waiting = || {
                let leaving = Leaving(Rc::clone(&dropped));
                Box::pin(async move {
                    let _leaving = leaving;
                    tokio::time::sleep(Duration::from_secs(60)).await;
                    1
                })
            };
            let spawned = reactor.spawn(waiting());
            let begun = reactor.spawn_begun(waiting(), |result| result);
            for _ in 0..turns {
                assert!(reactor.poll(Some(Duration::ZERO)).is_empty());
            }
            reactor.cancel(spawned);
            reactor.cancel(begun);
            assert_eq!(dropped.replace(0), 2);
            assert_eq!(reactor.running(), 0);
            assert!(reactor.poll(Some(Duration::from_millis(1))).is_empty());
        }
    }

    #[test]
    fn a_destructor_that_panics_does_not_disturb_the_call_that_cancels() {
        struct Panicking;
        impl Drop for Panicking {
            fn drop(&mut self) {
                panic!("on purpose, in a destructor");
            }
        }
        let reactor = reactor();
        let guard = Panicking;
        let id = reactor.spawn(async move {
            let _guard = guard;
            std::future::pending().await
        });
        reactor.poll(Some(Duration::ZERO));
        reactor.cancel(id);
        let guard = Panicking;
        let id = reactor.spawn(async move {
            let _guard = guard;
            1
        });
        assert_eq!(reactor.poll(None), vec![id]);
        assert_eq!(reactor.take(id), Some(999));
    }

    #[test]
    fn it_is_quiet_until_an_operation_may_have_left_tasks_behind() {
        let reactor = reactor();
        assert!(reactor.is_quiet());
        let (id, promise) = reactor.expect(());
        assert!(!reactor.is_quiet());
        promise.keep(1);
        assert!(!reactor.is_quiet());
        reactor.poll(None);
        reactor.take(id);
        assert!(reactor.is_quiet());
        let leaf = reactor.spawn_leaf(async { 2 });
        assert!(!reactor.is_quiet());
        assert_eq!(reactor.poll(None), vec![leaf]);
        assert!(reactor.is_quiet());
        reactor.spawn(async { 3 });
        reactor.poll(None);
        assert!(!reactor.is_quiet());
    }

    #[test]
    fn a_panicking_operation_ends_in_the_panic_outcome() {
        let reactor = reactor();
        let id = reactor.spawn(async { panic!("on purpose") });
        assert_eq!(reactor.poll(None), vec![id]);
        assert_eq!(reactor.take(id), Some(999));
    }

    #[test]
    fn a_promise_that_is_kept_finishes_its_operation_and_drops_its_claim() {
        let reactor = reactor();
        let claim = Rc::new(());
        let (id, promise) = reactor.expect(Rc::clone(&claim));
        assert_eq!((reactor.running(), Rc::strong_count(&claim)), (1, 2));
        promise.keep(7);
        assert_eq!((reactor.running(), Rc::strong_count(&claim)), (1, 1));
        assert_eq!(reactor.poll(None), vec![id]);
        assert_eq!(reactor.running(), 0);
        assert_eq!(reactor.take(id), Some(7));
    }

    #[test]
    fn a_promise_nobody_waits_for_any_more_drops_its_claim_and_does_nothing() {
        let reactor = reactor();
        let claim = Rc::new(());
        let (id, promise) = reactor.expect(Rc::clone(&claim));
        reactor.cancel(id);
        assert_eq!(Rc::strong_count(&claim), 1);
        promise.keep(7);
        assert!(reactor.poll(Some(Duration::ZERO)).is_empty());
        assert_eq!(reactor.take(id), None);
        let (_, promise) = reactor.expect(());
        drop(reactor);
        promise.keep(7);
    }

    #[test]
    fn a_recurring_operation_is_announced_once_for_each_poll_until_it_is_cancelled() {
        let reactor = reactor();
        let (id, announcer) = reactor.recurring();
        assert!(reactor.poll(Some(Duration::ZERO)).is_empty());
        for _ in 0..2 {
            announcer.announce();
            announcer.announce();
            assert_eq!(reactor.poll(None), vec![id]);
            assert_eq!((reactor.take(id), reactor.running()), (None, 1));
        }
        announcer.announce();
        reactor.cancel(id);
        announcer.announce();
        assert!(reactor.poll(None).is_empty());
        assert_eq!(reactor.running(), 0);
    }

    #[test]
    fn an_announcement_ends_the_wait_for_the_system() {
        let reactor = reactor();
        let (id, announcer) = reactor.recurring();
        reactor.spawn_background(async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            announcer.announce();
        });
        assert_eq!(reactor.poll(None), vec![id]);
    }

    #[test]
    fn an_operation_that_is_begun_goes_on_in_its_task() {
        let reactor = reactor();
        let steps = Rc::new(RefCell::new(Vec::new()));
        let seen = Rc::clone(&steps);
        let id = reactor.spawn_begun(
            Box::pin(async move {
                seen.borrow_mut().push("begun");
                tokio::task::spawn_local(async {}).await.unwrap();
                tokio::task::yield_now().await;
                tokio::time::sleep(Duration::from_millis(1)).await;
                seen.borrow_mut().push("ended");
                3
            }),
            |result| result + 1,
        );
        assert_eq!(*steps.borrow(), ["begun"]);
        assert_eq!(reactor.poll(None), vec![id]);
        assert_eq!(reactor.take(id), Some(4));
        assert_eq!(*steps.borrow(), ["begun", "ended"]);
        assert_eq!(reactor.running(), 0);
    }

    /// Spawns a task when it is dropped, as a connection does that goes back to its pool.
    struct Leaving(Rc<Cell<u32>>);

    impl Drop for Leaving {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
            tokio::task::spawn_local(async {});
        }
    }

    #[test]
    fn an_operation_that_ends_or_panics_in_its_first_step_is_dropped_at_once_and_announced_like_any_other()
     {
        let reactor = reactor();
        let dropped = Rc::new(Cell::new(0));
        let leaving = Leaving(Rc::clone(&dropped));
        let ended = reactor.spawn_begun(
            Box::pin(async move {
                let _leaving = leaving;
                3
            }),
            |result| result + 1,
        );
        assert_eq!(dropped.get(), 1);
        let leaving = Leaving(Rc::clone(&dropped));
        let panicked = reactor.spawn_begun(
            Box::pin(async move {
                let _leaving = leaving;
                panic!("on purpose")
            }),
            |(): ()| 0,
        );
        assert_eq!(dropped.get(), 2);
        let unfinished =
            reactor.spawn_begun(Box::pin(async {}), |()| panic!("on purpose, at the end"));
        assert_eq!(reactor.running(), 3);
        assert!(!reactor.is_quiet());
        assert_eq!(reactor.poll(None), vec![ended, panicked, unfinished]);
        assert_eq!(reactor.take(ended), Some(4));
        assert_eq!(reactor.take(panicked), Some(999));
        assert_eq!(reactor.take(unfinished), Some(999));
        assert_eq!(reactor.running(), 0);
        assert!(!reactor.is_quiet(), "there may be tasks");
    }

    #[test]
    fn an_operation_that_panics_after_it_has_begun_ends_in_the_panic_outcome() {
        let reactor = reactor();
        let id = reactor.spawn_begun(
            Box::pin(async {
                tokio::task::yield_now().await;
                panic!("on purpose")
            }),
            |(): ()| 0,
        );
        assert_eq!(reactor.poll(None), vec![id]);
        assert_eq!(reactor.take(id), Some(999));
    }

    #[test]
    fn an_operation_that_is_cancelled_after_it_has_begun_runs_its_destructors() {
        let reactor = reactor();
        let dropped = Rc::new(Cell::new(0));
        for turns in 0..2 {
            let leaving = Leaving(Rc::clone(&dropped));
            let id = reactor.spawn_begun(
                Box::pin(async move {
                    let _leaving = leaving;
                    std::future::pending::<()>().await;
                }),
                |()| 1,
            );
            for _ in 0..turns {
                assert!(reactor.poll(Some(Duration::ZERO)).is_empty());
            }
            reactor.cancel(id);
            assert!(reactor.poll(Some(Duration::ZERO)).is_empty());
            assert_eq!(dropped.get(), turns + 1);
            assert_eq!(reactor.running(), 0);
        }
        let ended = reactor.spawn_begun(Box::pin(async {}), |()| 1);
        reactor.cancel(ended);
        assert!(reactor.poll(Some(Duration::ZERO)).is_empty());
        assert_eq!(reactor.take(ended), None);
    }

    #[test]
    fn what_wakes_an_operation_between_its_first_step_and_the_next_turn_is_not_lost() {
        let reactor = reactor();
        let (near, far) = std::os::unix::net::UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let told = reactor.spawn_begun(Box::pin(receiver), |result| result.unwrap());
        let reading = reactor.spawn_begun(
            Box::pin(async move {
                let near = tokio::net::UnixStream::from_std(near).unwrap();
                near.readable().await.unwrap();
            }),
            |()| 8,
        );
        // Nobody polls: the event loop is not running.
        sender.send(7).unwrap();
        std::io::Write::write_all(&mut &far, b"x").unwrap();
        let mut finished = reactor.poll(None);
        while finished.len() < 2 {
            finished.extend(reactor.poll(None));
        }
        assert_eq!(finished, vec![told, reading]);
        assert_eq!(reactor.take(told), Some(7));
        assert_eq!(reactor.take(reading), Some(8));
    }

    #[test]
    fn an_operation_that_yields_in_its_first_step_goes_on_when_the_system_has_been_asked() {
        let reactor = reactor();
        let (near, far) = std::os::unix::net::UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        let has_heard = Rc::new(Cell::new(false));
        let heard = Rc::clone(&has_heard);
        let reading = reactor.spawn(async move {
            let near = tokio::net::UnixStream::from_std(near).unwrap();
            near.readable().await.unwrap();
            heard.set(true);
            1
        });
        assert!(reactor.poll(Some(Duration::ZERO)).is_empty());
        std::io::Write::write_all(&mut &far, b"x").unwrap();
        let yielding = reactor.spawn_begun(
            Box::pin(async move {
                tokio::task::yield_now().await;
                has_heard.get()
            }),
            u32::from,
        );
        let mut finished = Vec::new();
        while finished.len() < 2 {
            finished.extend(reactor.poll(None));
        }
        assert_eq!(finished, vec![reading, yielding]);
        assert_eq!(reactor.take(yielding), Some(1));
    }

    #[test]
    fn an_operation_may_be_begun_inside_of_another_one() {
        let reactor = Rc::new(reactor());
        let inner = Rc::new(RefCell::new(Vec::new()));
        let begin = |number: u32| {
            let (reactor, inner) = (Rc::clone(&reactor), Rc::clone(&inner));
            async move {
                let step = async move {
                    tokio::task::yield_now().await;
                    number
                };
                let id = reactor.spawn_begun(Box::pin(step), |number| number);
                inner.borrow_mut().push(id);
                // The context of the outer one is that of before.
                tokio::task::spawn_local(tokio::time::sleep(Duration::ZERO))
                    .await
                    .unwrap();
                number + 10
            }
        };
        let begun = reactor.spawn_begun(Box::pin(begin(1)), |number| number);
        let spawned = reactor.spawn(begin(2));
        let mut finished = Vec::new();
        while finished.len() < 4 {
            finished.extend(reactor.poll(None));
        }
        assert_eq!(reactor.take(begun), Some(11));
        assert_eq!(reactor.take(spawned), Some(12));
        let inner = inner.take();
        assert_eq!(reactor.take(inner[0]), Some(1));
        assert_eq!(reactor.take(inner[1]), Some(2));
    }

    #[test]
    fn what_the_system_tells_is_acted_on_in_the_same_turn() {
        let reactor = reactor();
        let (reading, _far) = read_of_sent(&reactor);
        assert_eq!(reactor.poll(Some(Duration::ZERO)), vec![reading]);
    }

    #[test]
    fn operations_that_finish_at_once_do_not_starve_sockets() {
        let reactor = reactor();
        let (reading, _far) = read_of_sent(&reactor);
        for _ in 0..3 {
            let (kept, promise) = reactor.expect(());
            promise.keep(2);
            let finished = reactor.poll(None);
            assert!(finished.contains(&kept));
            if finished.contains(&reading) {
                return;
            }
        }
        panic!("nobody looked at the socket");
    }

    #[test]
    fn a_task_that_yields_while_others_finish_goes_on() {
        let reactor = reactor();
        let yielding = reactor.spawn(async {
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            1
        });
        for turn in 0.. {
            let (kept, promise) = reactor.expect(());
            reactor.spawn_background(async move { promise.keep(2) });
            let finished = reactor.poll(None);
            assert!(finished.contains(&kept));
            if finished.contains(&yielding) {
                return;
            }
            assert!(turn < 200, "it was woken no more");
        }
    }

    #[test]
    fn a_task_woken_between_two_turns_continues_in_the_next() {
        let reactor = reactor();
        for _ in 0..2 {
            let (sender, receiver) = tokio::sync::oneshot::channel();
            let id = reactor.spawn(async move { receiver.await.unwrap_or(0) });
            assert!(reactor.poll(Some(Duration::ZERO)).is_empty());
            sender.send(4).unwrap();
            assert_eq!(reactor.poll(None), vec![id]);
            assert_eq!(reactor.take(id), Some(4));
        }
    }

    #[test]
    fn a_turn_that_is_limited_ends_without_an_operation() {
        let reactor = reactor();
        let began = std::time::Instant::now();
        assert!(reactor.poll(Some(Duration::from_millis(20))).is_empty());
        assert!(began.elapsed() >= Duration::from_millis(20));
    }

    #[test]
    fn a_blocking_call_that_never_ends_does_not_keep_the_reactor() {
        let reactor = reactor();
        let (begun, has_begun) = std::sync::mpsc::channel();
        let (end, has_ended) = std::sync::mpsc::channel::<()>();
        let id = reactor.spawn(async move {
            let call = blocking::run(blocking::Purpose::Names, move || {
                begun.send(()).unwrap();
                has_ended.recv().unwrap_err();
            });
            call.await.unwrap();
            1
        });
        while has_begun.try_recv().is_err() {
            reactor.poll(Some(Duration::from_millis(1)));
        }
        reactor.cancel(id);
        drop(reactor);
        drop(end);
    }

    #[test]
    fn a_wake_from_another_thread_ends_the_wait() {
        let reactor = reactor();
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let id = reactor.spawn(async move { receiver.await.unwrap_or(0) });
        std::thread::spawn(move || sender.send(3));
        assert_eq!(reactor.poll(Some(Duration::from_secs(5))), vec![id]);
        assert_eq!(reactor.take(id), Some(3));
    }
}
