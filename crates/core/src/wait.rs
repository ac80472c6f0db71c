//! Waiting for shared state to change, in futures that may be dropped at any poll.

use tokio::sync::Notify;

/// Waits until `ready` returns a value; calls it again each time `changed` notifies its waiters.
///
/// The code that changes the state calls [`Notify::notify_waiters`] afterwards, without holding the state's lock. Dropping the
/// future removes its waker: repeated timeouts leave nothing behind.
pub(crate) async fn until<T>(changed: &Notify, mut ready: impl FnMut() -> Option<T>) -> T {
    loop {
        // Made before the state is read, so a change in between is not missed.
        let notified = changed.notified();
        if let Some(value) = ready() {
            return value;
        }
        notified.await;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Wake, Waker};

    use super::*;

    struct Unused;

    impl Wake for Unused {
        fn wake(self: Arc<Self>) {}
    }

    #[test]
    fn a_dropped_wait_keeps_no_waker() {
        let changed = Notify::new();
        let task = Arc::new(Unused);
        for _ in 0..100 {
            let waker = Waker::from(Arc::clone(&task));
            let polled =
                pin!(until(&changed, || None::<()>)).poll(&mut Context::from_waker(&waker));
            assert!(polled.is_pending());
        }
        assert_eq!(Arc::strong_count(&task), 1);
    }

    #[test]
    fn a_change_between_look_and_wait_is_seen() {
        let (changed, looks) = (Notify::new(), Cell::new(0));
        let mut wait = pin!(until(&changed, || {
            looks.set(looks.get() + 1);
            if looks.get() == 1 {
                changed.notify_waiters();
            }
            (looks.get() > 1).then_some(())
        }));
        let polled = wait.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!((polled, looks.get()), (Poll::Ready(()), 2));
    }
}
