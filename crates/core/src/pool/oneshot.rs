//! A channel for one value between tasks of one thread, whose receiver is a task or a callback.

use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

pub(super) struct Sender<T>(Rc<RefCell<Slot<T>>>);

/// Dropping it makes [`Sender::send`] return the value.
pub(super) struct Receiver<T>(Rc<RefCell<Slot<T>>>);

enum Slot<T> {
    Awaited(Waiter<T>),
    Arrived(T),
    /// The value was taken, or the receiver was dropped.
    Closed,
}

enum Waiter<T> {
    /// Not polled yet.
    None,
    Task(Waker),
    Callback(Box<dyn FnOnce(T)>),
}

pub(super) fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let slot = Rc::new(RefCell::new(Slot::Awaited(Waiter::None)));
    (Sender(Rc::clone(&slot)), Receiver(slot))
}

impl<T> Sender<T> {
    /// # Errors
    /// The value itself, when the receiver was dropped.
    pub(super) fn send(self, value: T) -> Result<(), T> {
        let mut slot = self.0.borrow_mut();
        match std::mem::replace(&mut *slot, Slot::Closed) {
            Slot::Awaited(Waiter::Callback(callback)) => {
                drop(slot);
                callback(value);
            }
            Slot::Awaited(waiter) => {
                *slot = Slot::Arrived(value);
                if let Waiter::Task(waker) = waiter {
                    waker.wake();
                }
            }
            Slot::Arrived(_) | Slot::Closed => return Err(value),
        }
        Ok(())
    }
}

impl<T> Receiver<T> {
    /// Takes the value, if it has arrived.
    pub(super) fn take(&self) -> Option<T> {
        let mut slot = self.0.borrow_mut();
        if !matches!(*slot, Slot::Arrived(_)) {
            return None;
        }
        match std::mem::replace(&mut *slot, Slot::Closed) {
            Slot::Arrived(value) => Some(value),
            Slot::Awaited(_) | Slot::Closed => None,
        }
    }

    pub(super) fn has_arrived(&self) -> bool {
        matches!(*self.0.borrow(), Slot::Arrived(_))
    }

    pub(super) fn is_awaited(&self) -> bool {
        matches!(*self.0.borrow(), Slot::Awaited(_))
    }

    pub(super) fn poll(&self, context: &mut Context<'_>) -> Poll<T> {
        if let Some(value) = self.take() {
            return Poll::Ready(value);
        }
        if let Slot::Awaited(waiter) = &mut *self.0.borrow_mut() {
            match waiter {
                Waiter::Task(waker) => waker.clone_from(context.waker()),
                _ => *waiter = Waiter::Task(context.waker().clone()),
            }
        }
        Poll::Pending
    }

    /// For a callback, which is dropped with the receiver.
    pub(super) fn pending(&self) -> Pending<T> {
        Pending(Rc::clone(&self.0))
    }

    /// Whether the sender was dropped.
    #[cfg(test)]
    pub(super) fn has_no_sender(&self) -> bool {
        self.is_awaited() && Rc::strong_count(&self.0) == 1
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        drop(self.0.replace(Slot::Closed));
    }
}

/// A value that has not been received.
pub(super) struct Pending<T>(Rc<RefCell<Slot<T>>>);

impl<T> Pending<T> {
    /// Calls back once, perhaps at once. The callback is dropped uncalled when the receiver is dropped first.
    pub(super) fn then(self, callback: impl FnOnce(T) + 'static) {
        let mut slot = self.0.borrow_mut();
        match std::mem::replace(&mut *slot, Slot::Closed) {
            Slot::Awaited(_) => *slot = Slot::Awaited(Waiter::Callback(Box::new(callback))),
            Slot::Arrived(value) => {
                drop(slot);
                callback(value);
            }
            Slot::Closed => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn listener() -> (Rc<Cell<u32>>, impl FnOnce(u32) + 'static) {
        let heard = Rc::new(Cell::new(0));
        let ear = Rc::clone(&heard);
        (heard, move |value| ear.set(ear.get() + value))
    }

    #[test]
    fn a_value_arrives_once() {
        let (sender, receiver) = channel();
        assert_eq!((receiver.is_awaited(), receiver.take()), (true, None));
        assert_eq!(sender.send(7), Ok(()));
        assert_eq!((receiver.has_arrived(), receiver.take()), (true, Some(7)));
        assert_eq!((receiver.is_awaited(), receiver.take()), (false, None));
    }

    #[test]
    fn a_callback_gets_a_value_that_arrives_before_or_after_it_is_set() {
        let ((early, receiver), (heard, call)) = (channel(), listener());
        receiver.pending().then(call);
        assert_eq!(heard.get(), 0);
        assert_eq!(early.send(7), Ok(()));
        assert_eq!((heard.get(), receiver.take()), (7, None));

        let ((late, receiver), (heard, call)) = (channel(), listener());
        assert_eq!(late.send(8), Ok(()));
        receiver.pending().then(call);
        assert_eq!((heard.get(), receiver.take()), (8, None));
    }

    #[test]
    fn a_value_without_a_receiver_comes_back_and_its_callback_is_dropped() {
        let ((sender, receiver), (heard, call)) = (channel(), listener());
        receiver.pending().then(call);
        drop(receiver);
        assert_eq!(Rc::strong_count(&heard), 1);
        assert_eq!((sender.send(7), heard.get()), (Err(7), 0));
    }
}
