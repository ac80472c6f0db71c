//! The event loop of one process: Tokio on the PHP thread, completions by id.
//!
//! PHP never runs inside a Tokio task. A task touches native data only and stores its outcome here. The scheduler outside calls
//! [`Reactor::poll`] for the ids of finished operations and takes their outcomes one by one.

#![allow(unsafe_code, reason = "ends the runtime while it is dropped")]

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::io;
use std::mem::ManuallyDrop;
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::task::{Poll, Waker};
use std::time::Duration;

use crate::net::idle_hook;
use crate::workers::loop_watchdog;
use crate::{blocking, panics};
use tokio::runtime::{Builder, Runtime};
use tokio::task::{AbortHandle, LocalSet};
use tokio::time::sleep;

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
    running: HashMap<OpId, Running>,
    /// Outcomes that have not been taken.
    outcomes: HashMap<OpId, T>,
    /// Ids whose outcome has not been announced by `poll` yet, in order of completion.
    unannounced: Vec<OpId>,
    /// `poll`, waiting for the next one.
    waiter: Option<Waker>,
}

/// How to end an unfinished operation.
enum Running {
    Task(AbortHandle),
    /// Dropping what it owns.
    Claim {
        _owned: Box<dyn Any>,
    },
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
            running: HashMap::new(),
            outcomes: HashMap::new(),
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
        let handle = {
            let _context = self.runtime.enter();
            self.tasks.spawn_local(async move {
                let outcome = match panics::caught(future).await {
                    Ok(outcome) => outcome,
                    Err(message) => (shared.on_panic)(message),
                };
                shared.finish(id, outcome);
            })
        };
        self.shared
            .state
            .borrow_mut()
            .running
            .insert(id, Running::Task(handle.abort_handle()));
        id
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
        self.runtime.block_on(self.turn(timeout));
        loop_watchdog::unpark();
        std::mem::take(&mut self.shared.state.borrow_mut().unannounced)
    }

    async fn turn(&self, timeout: Option<Duration>) {
        let is_brief = timeout == Some(Duration::ZERO)
            || self.shared.has_unannounced()
            || timeout.is_none() && self.running() == 0;
        let mut limit = pin!(timeout.filter(|_| !is_brief).map(sleep));
        // Tokio runs the tasks and asks the system what is new after each poll of this: operations that finish without the system must
        // not starve the others, and tasks that yield are not woken before.
        let mut has_asked = false;
        let finished = poll_fn(|context| {
            let limit = limit.as_mut().as_pin_mut();
            let is_late = limit.is_some_and(|limit| limit.poll(context).is_ready());
            let is_done = is_late || is_brief || self.shared.has_unannounced();
            if is_done {
                // The first time so that Tokio does not wait; the second time because what is woken while PHP runs would write to
                // an eventfd, unless the next turn is known to begin with the tasks in any case.
                context.waker().wake_by_ref();
            }
            if is_done && has_asked {
                return Poll::Ready(());
            }
            self.shared.state.borrow_mut().waiter = Some(context.waker().clone());
            has_asked = true;
            Poll::Pending
        });
        self.tasks.run_until(finished).await;
    }

    /// Takes the outcome of a finished operation.
    pub fn take(&self, id: OpId) -> Option<T> {
        self.shared.state.borrow_mut().outcomes.remove(&id)
    }

    /// Drops the operation, running or finished; the destructors of its future clean up. Unknown ids are ignored.
    pub fn cancel(&self, id: OpId) {
        // Claim and outcome are dropped after the borrow ends: their destructors may come back here.
        let (running, outcome) = {
            let mut state = self.shared.state.borrow_mut();
            (state.running.remove(&id), state.outcomes.remove(&id))
        };
        if let Some(Running::Task(handle)) = &running {
            handle.abort();
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
        assert!(reactor.poll(Some(Duration::from_millis(1))).is_empty());
        assert_eq!(Rc::strong_count(&alive), 1);
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
    fn operations_that_finish_at_once_do_not_starve_sockets() {
        let reactor = reactor();
        let (near, far) = std::os::unix::net::UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        let reading = reactor.spawn(async move {
            let near = tokio::net::UnixStream::from_std(near).unwrap();
            near.readable().await.unwrap();
            1
        });
        reactor.poll(Some(Duration::ZERO));
        std::io::Write::write_all(&mut &far, b"x").unwrap();
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
