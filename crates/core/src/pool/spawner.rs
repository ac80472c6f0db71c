use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use tokio::sync::Notify;

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// Starts tasks on the thread's `LocalSet` from anywhere on that thread.
///
/// `spawn_local` panics outside of a task, and a destructor that runs there may drop a lease. Tasks that are spawned there
/// are queued for a task that [`start`](Self::start) has started.
pub(super) struct Spawner {
    shared: Rc<Shared>,
}

struct Shared {
    queued: RefCell<VecDeque<Task>>,
    wake: Notify,
    is_running: Cell<bool>,
    is_closed: Cell<bool>,
}

impl Spawner {
    pub(super) fn new() -> Self {
        Self {
            shared: Rc::new(Shared {
                queued: RefCell::default(),
                wake: Notify::new(),
                is_running: Cell::new(false),
                is_closed: Cell::new(false),
            }),
        }
    }

    /// Lets spawned tasks run. Must be called inside a `LocalSet` task. Returns true when it was not running before.
    pub(super) fn start(&self) -> bool {
        if self.shared.is_running.replace(true) {
            return false;
        }
        let running = Running(Rc::clone(&self.shared));
        tokio::task::spawn_local(async move { running.0.run().await });
        true
    }

    pub(super) fn is_running(&self) -> bool {
        self.shared.is_running.get()
    }

    pub(super) fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.shared.queued.borrow_mut().push_back(Box::pin(task));
        self.shared.wake.notify_one();
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        self.shared.is_closed.set(true);
        self.shared.wake.notify_one();
    }
}

/// Lets the next `start` start a new task when the `LocalSet` of this one is gone.
struct Running(Rc<Shared>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.is_running.set(false);
    }
}

impl Shared {
    async fn run(&self) {
        loop {
            while let Some(task) = self.next() {
                tokio::task::spawn_local(task);
            }
            if self.is_closed.get() {
                return;
            }
            self.wake.notified().await;
        }
    }

    fn next(&self) -> Option<Task> {
        self.queued.borrow_mut().pop_front()
    }
}

/// Whether a task waits for a time, so that there is at most one.
#[derive(Default)]
pub(super) struct Timer(Rc<Cell<bool>>);

/// The timer runs while this exists.
pub(super) struct TimerGuard(Rc<Cell<bool>>);

impl Timer {
    /// Returns `None` when it runs already.
    pub(super) fn start(&self) -> Option<TimerGuard> {
        (!self.0.replace(true)).then(|| TimerGuard(Rc::clone(&self.0)))
    }
}

impl Drop for TimerGuard {
    fn drop(&mut self) {
        self.0.set(false);
    }
}
