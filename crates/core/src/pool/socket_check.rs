use std::cell::Cell;

use tokio::sync::Notify;

/// Lets borrowers wait, first come first served, until the event loop has polled the sockets.
///
/// A process that blocks between statements does not run its event loop. A connection that the server has closed
/// meanwhile looks healthy until the loop has polled its socket, which happens before a task that yields is resumed.
#[derive(Default)]
pub(super) struct SocketCheck {
    waiters: Cell<usize>,
    is_running: Cell<bool>,
    done: Notify,
}

impl SocketCheck {
    /// Whether a borrower that lends at once would overtake others.
    pub(super) fn has_waiters(&self) -> bool {
        self.waiters.get() > 0
    }

    pub(super) async fn wait(&self) {
        let _waiter = SocketCheckWaiter::new(&self.waiters);
        if self.is_running.replace(true) {
            self.done.notified().await;
        } else {
            let _run = SocketCheckRun(self);
            tokio::task::yield_now().await;
        }
    }
}

/// Counts one waiter while it exists.
struct SocketCheckWaiter<'a>(&'a Cell<usize>);

impl<'a> SocketCheckWaiter<'a> {
    fn new(waiters: &'a Cell<usize>) -> Self {
        waiters.set(waiters.get() + 1);
        Self(waiters)
    }
}

impl Drop for SocketCheckWaiter<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// The first waiter's turn of the event loop. Its end or its cancellation wakes the others.
struct SocketCheckRun<'a>(&'a SocketCheck);

impl Drop for SocketCheckRun<'_> {
    fn drop(&mut self) {
        self.0.is_running.set(false);
        self.0.done.notify_waiters();
    }
}
