//! How a waiter gets what it waits for: a place for one value that both ends share on their one thread.

use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// The pool's end.
pub(super) struct Sender<T>(Rc<RefCell<Stage<T>>>);

/// The waiter's end. Dropping it tells the pool that nobody waits any more.
pub(super) struct Receiver<T>(Rc<RefCell<Stage<T>>>);

enum Stage<T> {
    Awaited(Waiter<T>),
    Arrived(T),
    /// Taken, or nobody waits for it any more.
    Over,
}

enum Waiter<T> {
    Silent,
    Task(Waker),
    Call(Box<dyn FnOnce(T)>),
}

pub(super) fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let stage = Rc::new(RefCell::new(Stage::Awaited(Waiter::Silent)));
    (Sender(Rc::clone(&stage)), Receiver(stage))
}

impl<T> Sender<T> {
    /// Returns the value when nobody waits for it any more.
    pub(super) fn send(self, value: T) -> Result<(), T> {
        let mut stage = self.0.borrow_mut();
        match std::mem::replace(&mut *stage, Stage::Over) {
            Stage::Awaited(Waiter::Call(call)) => {
                drop(stage);
                call(value);
            }
            Stage::Awaited(waiter) => {
                *stage = Stage::Arrived(value);
                if let Waiter::Task(waker) = waiter {
                    waker.wake();
                }
            }
            Stage::Arrived(_) | Stage::Over => return Err(value),
        }
        Ok(())
    }
}

impl<T> Receiver<T> {
    /// What has arrived, once.
    pub(super) fn take(&self) -> Option<T> {
        let mut stage = self.0.borrow_mut();
        if !matches!(*stage, Stage::Arrived(_)) {
            return None;
        }
        match std::mem::replace(&mut *stage, Stage::Over) {
            Stage::Arrived(value) => Some(value),
            Stage::Awaited(_) | Stage::Over => None,
        }
    }

    pub(super) fn has_arrived(&self) -> bool {
        matches!(*self.0.borrow(), Stage::Arrived(_))
    }

    pub(super) fn is_awaited(&self) -> bool {
        matches!(*self.0.borrow(), Stage::Awaited(_))
    }

    pub(super) fn poll(&self, context: &mut Context<'_>) -> Poll<T> {
        if let Some(value) = self.take() {
            return Poll::Ready(value);
        }
        if let Stage::Awaited(waiter) = &mut *self.0.borrow_mut() {
            match waiter {
                Waiter::Task(waker) => waker.clone_from(context.waker()),
                _ => *waiter = Waiter::Task(context.waker().clone()),
            }
        }
        Poll::Pending
    }

    /// Lets a call have what arrives, for as long as this is not dropped.
    pub(super) fn arrival(&self) -> Arrival<T> {
        Arrival(Rc::clone(&self.0))
    }

    /// Whether nobody can send any more.
    #[cfg(test)]
    pub(super) fn is_forgotten(&self) -> bool {
        self.is_awaited() && Rc::strong_count(&self.0) == 1
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        drop(self.0.replace(Stage::Over));
    }
}

pub(super) struct Arrival<T>(Rc<RefCell<Stage<T>>>);

impl<T> Arrival<T> {
    /// `call` is made once, perhaps at once, and dropped when nobody waits any more.
    pub(super) fn then(self, call: impl FnOnce(T) + 'static) {
        let mut stage = self.0.borrow_mut();
        match std::mem::replace(&mut *stage, Stage::Over) {
            Stage::Awaited(_) => *stage = Stage::Awaited(Waiter::Call(Box::new(call))),
            Stage::Arrived(value) => {
                drop(stage);
                call(value);
            }
            Stage::Over => {}
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
    fn what_is_sent_arrives_once() {
        let (sender, receiver) = channel();
        assert_eq!((receiver.is_awaited(), receiver.take()), (true, None));
        assert_eq!(sender.send(7), Ok(()));
        assert_eq!((receiver.has_arrived(), receiver.take()), (true, Some(7)));
        assert_eq!((receiver.is_awaited(), receiver.take()), (false, None));
    }

    #[test]
    fn a_call_has_what_arrives_before_and_after_it_is_made() {
        let ((early, receiver), (heard, call)) = (channel(), listener());
        receiver.arrival().then(call);
        assert_eq!(heard.get(), 0);
        assert_eq!(early.send(7), Ok(()));
        assert_eq!((heard.get(), receiver.take()), (7, None));

        let ((late, receiver), (heard, call)) = (channel(), listener());
        assert_eq!(late.send(8), Ok(()));
        receiver.arrival().then(call);
        assert_eq!((heard.get(), receiver.take()), (8, None));
    }

    #[test]
    fn what_nobody_waits_for_comes_back_and_no_call_is_kept() {
        let ((sender, receiver), (heard, call)) = (channel(), listener());
        receiver.arrival().then(call);
        drop(receiver);
        assert_eq!(Rc::strong_count(&heard), 1);
        assert_eq!((sender.send(7), heard.get()), (Err(7), 0));
    }
}
