use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::http::Id;

/// When which call is over. One timer for all of them: most end long before, and arming a timer costs more than an entry.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    entries: RefCell<BTreeSet<(Instant, Id)>>,
    /// When the timer fires.
    armed: Cell<Option<Instant>>,
    earlier: Notify,
}

impl Deadlines {
    pub(super) fn insert(&self, at: Instant, id: Id) {
        self.entries.borrow_mut().insert((at, id));
        if self.armed.get().is_none_or(|armed| at < armed) {
            self.earlier.notify_one();
        }
    }

    pub(super) fn remove(&self, at: Instant, id: Id) {
        self.entries.borrow_mut().remove(&(at, id));
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.borrow().len()
    }

    /// The calls whose time is over, once there is one.
    pub(super) async fn due(&self) -> Vec<Id> {
        loop {
            let first = self.entries.borrow().first().map(|(at, _)| *at);
            self.armed.set(first);
            let Some(first) = first else {
                self.earlier.notified().await;
                continue;
            };
            tokio::select! {
                () = tokio::time::sleep_until(first) => {}
                () = self.earlier.notified() => continue,
            }
            let due = self.take(Instant::now());
            if !due.is_empty() {
                return due;
            }
        }
    }

    fn take(&self, now: Instant) -> Vec<Id> {
        let mut entries = self.entries.borrow_mut();
        let mut due = Vec::new();
        while let Some((at, id)) = entries.first().copied()
            && at <= now
        {
            entries.pop_first();
            due.push(id);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_earliest_comes_first_although_it_was_set_last() {
        let deadlines = Rc::new(Deadlines::default());
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        deadlines.insert(at(5), 1);
        deadlines.insert(at(9), 2);
        let later = Rc::clone(&deadlines);
        let waiting = async { deadlines.due().await };
        let inserting = async {
            tokio::task::yield_now().await;
            later.insert(at(2), 3);
            later.remove(at(5), 1);
        };
        let (due, ()) = tokio::join!(waiting, inserting);
        assert_eq!((due, start.elapsed().as_secs()), (vec![3], 2));
        assert_eq!(
            (deadlines.due().await, start.elapsed().as_secs()),
            (vec![2], 9)
        );
    }
}
