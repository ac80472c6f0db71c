use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use tokio::sync::Notify;

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// Starts tasks on the thread's `LocalSet` from anywhere on that thread.
///
/// A lease may be dropped by a destructor outside of any task, where `spawn_local` panics. What is spawned there waits
/// for the attendant, a task that [`open`](Self::open) starts.
pub(super) struct Nursery {
    shared: Rc<Shared>,
}

struct Shared {
    arrivals: RefCell<VecDeque<Task>>,
    bell: Notify,
    attended: Cell<bool>,
    closed: Cell<bool>,
}

impl Nursery {
    pub(super) fn new() -> Self {
        Self {
            shared: Rc::new(Shared {
                arrivals: RefCell::default(),
                bell: Notify::new(),
                attended: Cell::new(false),
                closed: Cell::new(false),
            }),
        }
    }

    /// Must be called inside a `LocalSet` task before the first [`spawn`](Self::spawn) is expected to run. True when it was
    /// not open before.
    pub(super) fn open(&self) -> bool {
        if self.shared.attended.replace(true) {
            return false;
        }
        let absence = Absence(Rc::clone(&self.shared));
        tokio::task::spawn_local(async move { absence.0.attend().await });
        true
    }

    pub(super) fn is_open(&self) -> bool {
        self.shared.attended.get()
    }

    pub(super) fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.shared.arrivals.borrow_mut().push_back(Box::pin(task));
        self.shared.bell.notify_one();
    }
}

/// Set while a task waits for a time, so that there is one such task at most.
#[derive(Default)]
pub(super) struct Alarm(Rc<Cell<bool>>);

/// The alarm is set for as long as the task has this.
pub(super) struct AlarmSet(Rc<Cell<bool>>);

impl Alarm {
    /// `None` when it is set.
    pub(super) fn set(&self) -> Option<AlarmSet> {
        (!self.0.replace(true)).then(|| AlarmSet(Rc::clone(&self.0)))
    }
}

impl Drop for AlarmSet {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

impl Drop for Nursery {
    fn drop(&mut self) {
        self.shared.closed.set(true);
        self.shared.bell.notify_one();
    }
}

/// Lets the next `open` start a new attendant when the `LocalSet` of this one is gone.
struct Absence(Rc<Shared>);

impl Drop for Absence {
    fn drop(&mut self) {
        self.0.attended.set(false);
    }
}

impl Shared {
    async fn attend(&self) {
        loop {
            while let Some(task) = self.next() {
                tokio::task::spawn_local(task);
            }
            if self.closed.get() {
                return;
            }
            self.bell.notified().await;
        }
    }

    fn next(&self) -> Option<Task> {
        self.arrivals.borrow_mut().pop_front()
    }
}
