//! Waits for descriptors that other code owns: a library opens, closes and reuses them without notice.
//!
//! Tokio's `AsyncFd` cannot serve here. It refuses a descriptor that is registered already, and it must be told before one is closed. So
//! these waits have an epoll instance of their own, which Tokio watches as one descriptor, and a timer in it for their deadlines.
//!
//! A registration is one-shot: it reports once and stays in the epoll instance, disarmed, until the next wait for the descriptor arms it
//! again. That costs exactly one `epoll_ctl` for each wait and descriptor, and the same call tells whether the number still means the same
//! open file: the kernel drops the registration of a file that is closed and answers `ENOENT` for the number.
//!
//! A wait may end spuriously: two waits for one descriptor end together, and one of them finds nothing to read. The caller asks
//! the system again without waiting, as after `poll(2)`.

#![allow(unsafe_code, reason = "calls epoll and timerfd")]

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::rc::{Rc, Weak};

use tokio::io::Interest as Readiness;
use tokio::io::unix::AsyncFd;

use crate::id_map::IdMap;

/// A point in time: nanoseconds of `CLOCK_MONOTONIC`.
pub type Nanos = u64;

/// A descriptor and what to wait for, as bits of `poll(2)`, which are those of `epoll_ctl(2)`. Errors and hang-ups always count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interest {
    pub fd: RawFd,
    pub events: u32,
}

/// Why a wait has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// At least one descriptor may be ready. The bits say for what, where the wait was for a single descriptor and no other wait was for the
    /// same one: then nothing can have taken it away, unless code has used the descriptor without waiting. 0: ask the system.
    Ready(u32),
    TimedOut,
    /// One of the descriptors was closed, or its number means another file now.
    Closed,
}

/// Why a wait has not begun.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The system does not wait for such a descriptor: it is a regular file, which counts as always ready, or it is not open.
    #[error("descriptor {0} is always ready")]
    AlwaysReady(RawFd),
    #[error("cannot wait for descriptor {0}: {1}")]
    Failed(RawFd, io::Error),
}

type OnEnd = Box<dyn FnOnce(End)>;

/// The waits of one thread.
#[derive(Clone)]
pub struct FdWaits(Rc<Shared>);

struct Shared {
    epoll: OwnedFd,
    timer: OwnedFd,
    state: RefCell<State>,
}

struct State {
    /// By descriptor: numbers are small and reused.
    descriptors: Vec<Descriptor>,
    waits: IdMap<Waiting>,
    deadlines: BTreeSet<(Nanos, u64)>,
    /// When the timer goes off; `Nanos::MAX` when it is not set.
    timer_at: Nanos,
    last_id: u64,
    epoll_ctl_calls: u64,
}

#[derive(Default)]
struct Descriptor {
    /// Distinguishes the open files that have had this number; 0 while none was registered.
    generation: u32,
    waiters: Vec<(u64, u32)>,
}

struct Waiting {
    descriptors: Vec<RawFd>,
    deadline: Option<Nanos>,
    on_end: OnEnd,
}

impl Waiting {
    fn is_for_one_file(&self) -> bool {
        self.descriptors.len() == 1
    }
}

/// A wait that has begun. Dropping it cancels it.
pub struct Wait {
    id: u64,
    shared: Weak<Shared>,
}

/// Errors and hang-ups, which the system reports for every registration.
const ALWAYS: u32 = (libc::EPOLLERR | libc::EPOLLHUP) as u32;
const TIMER: u64 = u64::MAX;
const BATCH: usize = 256;

/// The time of the clock.
pub fn now() -> Nanos {
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: the call fills the struct it is given, which is valid when zeroed.
    let time = unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, time.as_mut_ptr());
        time.assume_init()
    };
    time.tv_sec as Nanos * 1_000_000_000 + time.tv_nsec as Nanos
}

impl FdWaits {
    /// # Errors
    /// The process has no descriptor left.
    pub fn new() -> io::Result<Self> {
        // SAFETY: both calls return a new descriptor or -1.
        let (epoll, timer) = unsafe {
            let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
            (
                owned(libc::epoll_create1(libc::EPOLL_CLOEXEC))?,
                owned(libc::timerfd_create(libc::CLOCK_MONOTONIC, flags))?,
            )
        };
        // Edge-triggered, so that the timer need not be read after it has gone off: setting it again is enough.
        let events = (libc::EPOLLIN | libc::EPOLLET) as u32;
        epoll_ctl(
            &epoll,
            libc::EPOLL_CTL_ADD,
            timer.as_raw_fd(),
            events,
            TIMER,
        )?;
        let state = State {
            descriptors: Vec::new(),
            waits: IdMap::default(),
            deadlines: BTreeSet::new(),
            timer_at: Nanos::MAX,
            last_id: 0,
            epoll_ctl_calls: 0,
        };
        Ok(Self(Rc::new(Shared {
            epoll,
            timer,
            state: RefCell::new(state),
        })))
    }

    /// Waits for the first of the descriptors, or for the deadline. Without descriptors it is a sleep.
    ///
    /// `on_end` is called once, from [`drive`](Self::drive) or [`closed`](Self::closed), unless the wait is dropped before.
    ///
    /// # Errors
    /// [`Refusal`]: nothing is waited for.
    pub fn start(
        &self,
        interests: &[Interest],
        deadline: Option<Nanos>,
        on_end: impl FnOnce(End) + 'static,
    ) -> Result<Wait, Refusal> {
        let mut ended = Vec::new();
        let mut state = self.0.state.borrow_mut();
        state.last_id += 1;
        let id = state.last_id;
        for (position, interest) in interests.iter().enumerate() {
            let armed = state.arm(&self.0.epoll, id, *interest, &mut ended);
            if let Err(refusal) = armed {
                for interest in &interests[..position] {
                    state.leave(interest.fd, id);
                }
                drop(state);
                announce(ended);
                return Err(refusal);
            }
        }
        let waiting = Waiting {
            descriptors: interests.iter().map(|interest| interest.fd).collect(),
            deadline,
            on_end: Box::new(on_end),
        };
        state.waits.insert(id, waiting);
        if let Some(deadline) = deadline {
            state.deadlines.insert((deadline, id));
            state.set_timer(&self.0.timer);
        }
        drop(state);
        announce(ended);
        Ok(Wait {
            id,
            shared: Rc::downgrade(&self.0),
        })
    }

    /// Must be called when a descriptor is closed: ends its waits, for which the system would report no event.
    pub fn closed(&self, fd: RawFd) {
        if !self.is_awaited(fd) {
            return;
        }
        let mut ended = Vec::new();
        self.0.state.borrow_mut().forget_file(fd, &mut ended);
        announce(ended);
    }

    /// To be called when what the descriptor was ready to read has been read: ends the waits for it, which the system would no longer report.
    pub fn taken(&self, fd: RawFd) {
        if !self.is_awaited(fd) {
            return;
        }
        let mut ended = Vec::new();
        let mut state = self.0.state.borrow_mut();
        let waiters = &state.descriptors[fd as usize].waiters;
        let readers = waiters
            .iter()
            .filter(|(_, events)| events & libc::EPOLLIN as u32 != 0);
        let readers: Vec<u64> = readers.map(|(id, _)| *id).collect();
        for id in readers {
            state.end(id, End::Ready(0), &mut ended);
        }
        drop(state);
        announce(ended);
    }

    /// Whether any wait is for this descriptor.
    pub fn is_awaited(&self, fd: RawFd) -> bool {
        let state = self.0.state.borrow();
        let descriptor = usize::try_from(fd)
            .ok()
            .and_then(|fd| state.descriptors.get(fd));
        descriptor.is_some_and(|descriptor| !descriptor.waiters.is_empty())
    }

    /// Waits that have begun and not ended.
    pub fn pending(&self) -> usize {
        self.0.state.borrow().waits.len()
    }

    /// How many `epoll_ctl` calls these waits have made in all.
    pub fn epoll_ctl_calls(&self) -> u64 {
        self.0.state.borrow().epoll_ctl_calls
    }

    /// Ends waits as their descriptors become ready and their deadlines pass. Runs until it is dropped.
    ///
    /// # Errors
    /// The runtime cannot watch the epoll instance.
    pub async fn drive(self) -> io::Result<()> {
        let source = Epoll(Rc::clone(&self.0));
        // SAFETY: the source returns the same open descriptor until it is dropped.
        let source = unsafe { AsyncFd::register_with_interest(source, Readiness::READABLE)? };
        loop {
            let mut guard = source.readable().await?;
            while self.dispatch()? == BATCH {}
            guard.clear_ready();
        }
    }

    /// Ends the waits of one batch of events. Returns the number of events.
    fn dispatch(&self) -> io::Result<usize> {
        let mut events = [const { MaybeUninit::<libc::epoll_event>::uninit() }; BATCH];
        let epoll = self.0.epoll.as_raw_fd();
        // SAFETY: the kernel writes at most `BATCH` events.
        let count = unsafe { libc::epoll_wait(epoll, events.as_mut_ptr().cast(), BATCH as i32, 0) };
        if count < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::Interrupted => Ok(BATCH),
                _ => Err(error),
            };
        }
        let count = count as usize;
        let mut ended = Vec::new();
        let mut state = self.0.state.borrow_mut();
        for event in &events[..count] {
            // SAFETY: the kernel has written `count` events.
            let event = unsafe { event.assume_init() };
            match event.u64 {
                TIMER => state.expire(&self.0.timer, &mut ended),
                data => state.ready(&self.0.epoll, data, event.events, &mut ended),
            }
        }
        drop(state);
        announce(ended);
        Ok(count)
    }
}

impl State {
    /// Registers the descriptor, or arms its registration again, for all its waiters and this one.
    fn arm(
        &mut self,
        epoll: &OwnedFd,
        id: u64,
        interest: Interest,
        ended: &mut Vec<(OnEnd, End)>,
    ) -> Result<(), Refusal> {
        let Interest { fd, events } = interest;
        let Ok(index) = usize::try_from(fd) else {
            return Err(Refusal::AlwaysReady(fd));
        };
        if index >= self.descriptors.len() {
            self.descriptors.resize_with(index + 1, Descriptor::default);
        }
        let mut outcome = Err(io::Error::from_raw_os_error(libc::ENOENT));
        if self.descriptors[index].generation != 0 {
            outcome = self.control(epoll, libc::EPOLL_CTL_MOD, fd, events);
        }
        if let Err(error) = &outcome
            && error.raw_os_error() == Some(libc::ENOENT)
        {
            self.forget_file(fd, ended);
            outcome = self.control(epoll, libc::EPOLL_CTL_ADD, fd, events);
        }
        match outcome {
            Ok(()) => {
                self.descriptors[index].waiters.push((id, events));
                Ok(())
            }
            Err(error) => Err(match error.raw_os_error() {
                Some(libc::EPERM | libc::EBADF) => Refusal::AlwaysReady(fd),
                _ => Refusal::Failed(fd, error),
            }),
        }
    }

    /// Arms the registration for all waiters and `more`.
    fn control(&mut self, epoll: &OwnedFd, operation: i32, fd: RawFd, more: u32) -> io::Result<()> {
        let descriptor = &self.descriptors[fd as usize];
        let events = descriptor
            .waiters
            .iter()
            .fold(more, |all, (_, events)| all | events);
        let data = u64::from(descriptor.generation) << 32 | fd as u64;
        self.epoll_ctl_calls += 1;
        epoll_ctl(
            epoll,
            operation,
            fd,
            events | libc::EPOLLONESHOT as u32,
            data,
        )
    }

    /// The descriptor was closed: its number may mean another file from now on.
    fn forget_file(&mut self, fd: RawFd, ended: &mut Vec<(OnEnd, End)>) {
        let descriptor = &mut self.descriptors[fd as usize];
        descriptor.generation = descriptor.generation.wrapping_add(1).max(1);
        let waiters = std::mem::take(&mut descriptor.waiters);
        for (id, _) in waiters {
            self.end(id, End::Closed, ended);
        }
    }

    fn ready(&mut self, epoll: &OwnedFd, data: u64, events: u32, ended: &mut Vec<(OnEnd, End)>) {
        let (fd, generation) = (data as u32 as RawFd, (data >> 32) as u32);
        let Some(descriptor) = self.descriptors.get(fd as usize) else {
            return;
        };
        if descriptor.generation != generation {
            return;
        }
        let news = |wanted: u32| (wanted | ALWAYS) & events;
        if let [(id, wanted)] = descriptor.waiters[..] {
            let news = news(wanted);
            if news != 0 {
                let is_single = self.waits.get(&id).is_some_and(Waiting::is_for_one_file);
                let end = End::Ready(if is_single { news } else { 0 });
                self.end(id, end, ended);
            }
        } else {
            let ready = descriptor.waiters.iter();
            let ready = ready.filter(|(_, wanted)| news(*wanted) != 0);
            let ready: Vec<u64> = ready.map(|(id, _)| *id).collect();
            for id in ready {
                self.end(id, End::Ready(0), ended);
            }
        }
        // The event has disarmed the registration, also for the waiters that wait for other events.
        if !self.descriptors[fd as usize].waiters.is_empty()
            && self.control(epoll, libc::EPOLL_CTL_MOD, fd, 0).is_err()
        {
            self.forget_file(fd, ended);
        }
    }

    fn expire(&mut self, timer: &OwnedFd, ended: &mut Vec<(OnEnd, End)>) {
        self.timer_at = Nanos::MAX;
        let now = now();
        while let Some(&(deadline, id)) = self.deadlines.first()
            && deadline <= now
        {
            self.end(id, End::TimedOut, ended);
        }
        self.set_timer(timer);
    }

    /// Sets the timer to the first deadline. A cancelled deadline leaves it as it is: then it goes off once for nothing.
    fn set_timer(&mut self, timer: &OwnedFd) {
        let Some(&(first, _)) = self.deadlines.first() else {
            return;
        };
        if first >= self.timer_at {
            return;
        }
        self.timer_at = first;
        // Zero would switch the timer off.
        let first = first.max(1);
        let at = libc::itimerspec {
            it_interval: libc::timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: libc::timespec {
                tv_sec: (first / 1_000_000_000) as libc::time_t,
                tv_nsec: (first % 1_000_000_000) as libc::c_long,
            },
        };
        let none = std::ptr::null_mut();
        // SAFETY: the kernel only reads the struct.
        unsafe {
            libc::timerfd_settime(
                timer.as_raw_fd(),
                libc::TFD_TIMER_ABSTIME,
                &raw const at,
                none,
            )
        };
    }

    fn end(&mut self, id: u64, end: End, ended: &mut Vec<(OnEnd, End)>) {
        if let Some(on_end) = self.remove(id) {
            ended.push((on_end, end));
        }
    }

    fn remove(&mut self, id: u64) -> Option<OnEnd> {
        let waiting = self.waits.remove(&id)?;
        for fd in waiting.descriptors {
            self.leave(fd, id);
        }
        if let Some(deadline) = waiting.deadline {
            self.deadlines.remove(&(deadline, id));
        }
        Some(waiting.on_end)
    }

    /// Removes a waiter. The registration stays armed and may report once more, to nobody.
    fn leave(&mut self, fd: RawFd, id: u64) {
        if let Some(descriptor) = self.descriptors.get_mut(fd as usize) {
            descriptor.waiters.retain(|(waiter, _)| *waiter != id);
        }
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade() {
            let on_end = shared.state.borrow_mut().remove(self.id);
            drop(on_end);
        }
    }
}

/// The epoll instance as Tokio sees it.
struct Epoll(Rc<Shared>);

impl AsRawFd for Epoll {
    fn as_raw_fd(&self) -> RawFd {
        self.0.epoll.as_raw_fd()
    }
}

impl AsFd for Epoll {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.epoll.as_fd()
    }
}

/// Calls the ended waits. To be called outside of every borrow: they may start or drop waits.
fn announce(ended: Vec<(OnEnd, End)>) {
    for (on_end, end) in ended {
        on_end(end);
    }
}

/// # Safety
/// `fd` is -1 or a descriptor that nothing else owns.
unsafe fn owned(fd: RawFd) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the caller guarantees that nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn epoll_ctl(epoll: &OwnedFd, operation: i32, fd: RawFd, events: u32, data: u64) -> io::Result<()> {
    let mut event = libc::epoll_event { events, u64: data };
    // SAFETY: the kernel reads the event and checks the descriptors.
    match unsafe { libc::epoll_ctl(epoll.as_raw_fd(), operation, fd, &raw mut event) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::HashMap;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use super::*;
    use crate::reactor::{OpId, Reactor};

    const IN: u32 = libc::EPOLLIN as u32;
    const OUT: u32 = libc::EPOLLOUT as u32;
    const MILLISECOND: Nanos = 1_000_000;
    const READABLE: End = End::Ready(IN);
    /// The system has to be asked what is ready.
    const ASK: End = End::Ready(0);

    /// Waits that run on a reactor, as in the extension.
    struct Loop {
        reactor: Reactor<Option<End>>,
        waits: FdWaits,
    }

    impl Loop {
        fn new() -> Self {
            let reactor = Reactor::new(|_| None).unwrap();
            let waits = FdWaits::new().unwrap();
            let driver = waits.clone().drive();
            reactor.spawn_background(async {
                let _ = driver.await;
            });
            Self { reactor, waits }
        }

        fn wait(
            &self,
            interests: &[(RawFd, u32)],
            deadline: Option<Nanos>,
        ) -> Result<OpId, Refusal> {
            let interests: Vec<_> = interests
                .iter()
                .map(|&(fd, events)| Interest { fd, events })
                .collect();
            self.reactor.try_expect(|promise| {
                self.waits
                    .start(&interests, deadline, move |end| promise.keep(Some(end)))
            })
        }

        fn readable(&self, stream: &UnixStream) -> OpId {
            self.wait(&[(stream.as_raw_fd(), IN)], None).unwrap()
        }

        /// The ends of all operations that finish within a moment.
        fn settle(&self) -> Vec<(OpId, End)> {
            let mut ended = Vec::new();
            for _ in 0..5 {
                let ids = self.reactor.poll(Some(Duration::from_millis(1)));
                ended.extend(
                    ids.into_iter()
                        .map(|id| (id, self.reactor.take(id).flatten().unwrap())),
                );
            }
            ended.sort_by_key(|(id, _)| *id);
            ended
        }

        fn until_one_ends(&self) -> Vec<(OpId, End)> {
            let ids = self.reactor.poll(Some(Duration::from_secs(60)));
            ids.into_iter()
                .map(|id| (id, self.reactor.take(id).flatten().unwrap()))
                .collect()
        }
    }

    fn pair() -> (UnixStream, UnixStream) {
        UnixStream::pair().unwrap()
    }

    #[test]
    fn a_wait_ends_when_its_descriptor_becomes_ready_and_not_before() {
        let it = Loop::new();
        let (near, mut far) = pair();
        let wait = it.readable(&near);
        assert_eq!(it.settle(), []);
        far.write_all(b"x").unwrap();
        assert_eq!(it.until_one_ends(), [(wait, READABLE)]);
        assert_eq!(it.waits.pending(), 0);
    }

    #[test]
    fn a_descriptor_that_is_ready_already_ends_its_wait() {
        let it = Loop::new();
        let (near, mut far) = pair();
        far.write_all(b"x").unwrap();
        for _ in 0..2 {
            let wait = it.readable(&near);
            assert_eq!(it.until_one_ends(), [(wait, READABLE)]);
        }
    }

    #[test]
    fn a_wait_costs_one_system_call_to_register_it_and_none_to_end_it() {
        let it = Loop::new();
        let (mut near, mut far) = pair();
        let before = it.waits.epoll_ctl_calls();
        for _ in 0..100 {
            it.readable(&near);
            far.write_all(b"x").unwrap();
            assert_eq!(it.until_one_ends().len(), 1);
            near.read_exact(&mut [0]).unwrap();
        }
        for _ in 0..100 {
            it.reactor.cancel(it.readable(&near));
        }
        assert_eq!(it.waits.epoll_ctl_calls() - before, 200);
    }

    #[test]
    fn bytes_that_arrive_while_no_code_waits_end_the_next_wait_only_if_still_unread() {
        let it = Loop::new();
        let (mut near, mut far) = pair();
        it.reactor.cancel(it.readable(&near));
        far.write_all(b"x").unwrap();
        assert_eq!(it.settle(), []);
        near.read_exact(&mut [0]).unwrap();
        let wait = it.readable(&near);
        assert_eq!(it.settle(), []);
        far.write_all(b"x").unwrap();
        assert_eq!(it.until_one_ends(), [(wait, READABLE)]);
    }

    #[test]
    fn bytes_that_other_code_has_taken_end_the_waits_for_them() {
        let it = Loop::new();
        let (mut near, mut far) = pair();
        let fd = near.as_raw_fd();
        let read = [it.readable(&near), it.readable(&near)];
        let urgent = it.wait(&[(fd, libc::EPOLLPRI as u32)], None).unwrap();
        far.write_all(b"x").unwrap();
        near.read_exact(&mut [0]).unwrap();
        assert_eq!(it.settle(), []);
        it.waits.taken(fd);
        it.waits.taken(1_000_000);
        assert_eq!(it.settle(), [(read[0], ASK), (read[1], ASK)]);
        assert_eq!(it.waits.pending(), 1);
        it.reactor.cancel(urgent);
    }

    #[test]
    fn several_waits_for_one_descriptor_end_by_what_each_waits_for() {
        let it = Loop::new();
        let (near, mut far) = pair();
        let fd = near.as_raw_fd();
        let read = [it.readable(&near), it.readable(&near)];
        let write = it.wait(&[(fd, OUT)], None).unwrap();
        assert_eq!(it.settle(), [(write, ASK)]);
        far.write_all(b"x").unwrap();
        assert_eq!(it.settle(), read.map(|wait| (wait, ASK)));
    }

    #[test]
    fn a_wait_for_several_descriptors_ends_with_the_first_and_leaves_the_others_alone() {
        let it = Loop::new();
        let pairs = [pair(), pair(), pair()];
        let interests: Vec<_> = pairs
            .iter()
            .map(|(near, _)| (near.as_raw_fd(), IN))
            .collect();
        let wait = it.wait(&interests, None).unwrap();
        let other = it.readable(&pairs[2].0);
        (&pairs[1].1).write_all(b"x").unwrap();
        assert_eq!(it.until_one_ends(), [(wait, ASK)]);
        (&pairs[0].1).write_all(b"x").unwrap();
        assert_eq!(it.settle(), []);
        (&pairs[2].1).write_all(b"x").unwrap();
        assert_eq!(it.until_one_ends(), [(other, READABLE)]);
    }

    #[test]
    fn a_single_wait_for_a_descriptor_learns_what_it_is_ready_for() {
        let it = Loop::new();
        let (near, mut far) = pair();
        let fd = near.as_raw_fd();
        far.write_all(b"x").unwrap();
        for (wanted, reported) in [(IN, IN), (OUT, OUT), (IN | OUT, IN | OUT)] {
            let wait = it.wait(&[(fd, wanted)], None).unwrap();
            assert_eq!(it.until_one_ends(), [(wait, End::Ready(reported))]);
        }
        drop(far);
        let wait = it.wait(&[(fd, 0)], None).unwrap();
        let hung_up = libc::EPOLLHUP as u32;
        assert_eq!(it.until_one_ends(), [(wait, End::Ready(hung_up))]);
    }

    #[test]
    fn a_hang_up_ends_every_wait() {
        let it = Loop::new();
        let (near, far) = pair();
        let nothing = it.wait(&[(near.as_raw_fd(), 0)], None).unwrap();
        let read = it.readable(&near);
        drop(far);
        assert_eq!(it.settle(), [(nothing, ASK), (read, ASK)]);
    }

    #[test]
    fn a_deadline_ends_a_wait_with_and_without_descriptors_in_order() {
        let it = Loop::new();
        let (near, _far) = pair();
        let start = now();
        let late = it.wait(&[], Some(start + 20 * MILLISECOND)).unwrap();
        let soon = it
            .wait(&[(near.as_raw_fd(), IN)], Some(start + 5 * MILLISECOND))
            .unwrap();
        let mut ended = it.until_one_ends();
        assert!(now() >= start + 5 * MILLISECOND);
        // On a busy machine both deadlines may have passed by then.
        if ended.len() == 1 {
            ended.extend(it.until_one_ends());
        }
        assert!(now() >= start + 20 * MILLISECOND);
        assert_eq!(ended, [(soon, End::TimedOut), (late, End::TimedOut)]);
    }

    #[test]
    fn a_deadline_that_has_passed_ends_a_wait_at_once() {
        let it = Loop::new();
        for deadline in [0, now()] {
            let wait = it.wait(&[], Some(deadline)).unwrap();
            assert_eq!(it.until_one_ends(), [(wait, End::TimedOut)]);
        }
    }

    #[test]
    fn a_cancelled_wait_never_ends_and_leaves_nothing_behind() {
        let it = Loop::new();
        let (near, mut far) = pair();
        let first = it
            .wait(&[(near.as_raw_fd(), IN)], Some(now() + MILLISECOND))
            .unwrap();
        it.reactor.cancel(first);
        assert!(!it.waits.is_awaited(near.as_raw_fd()));
        assert_eq!(it.waits.pending(), 0);
        far.write_all(b"x").unwrap();
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(it.settle(), []);
    }

    #[test]
    fn a_descriptor_that_was_closed_and_reused_wakes_only_those_who_wait_for_the_new_file() {
        let it = Loop::new();
        let (near, mut old_far) = pair();
        let fd = near.as_raw_fd();
        let old = it.readable(&near);
        // The old file stays open under another number, so its registration stays too.
        let twin = near.try_clone().unwrap();
        let (other, mut new_far) = pair();
        // SAFETY: both are open, and `near` stands for the number whatever file it is.
        unsafe { libc::dup2(other.as_raw_fd(), fd) };
        let new = it.readable(&near);
        assert_eq!(it.settle(), [(old, End::Closed)]);
        old_far.write_all(b"x").unwrap();
        assert_eq!(it.settle(), []);
        new_far.write_all(b"x").unwrap();
        assert_eq!(it.until_one_ends(), [(new, READABLE)]);
        drop(twin);
    }

    #[test]
    fn closing_a_descriptor_ends_its_waits() {
        let it = Loop::new();
        let (near, _far) = pair();
        // A number that tests on other threads do not reach.
        // SAFETY: the number is new and stays with this test.
        let fd = unsafe { libc::fcntl(near.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 900) };
        let wait = it.wait(&[(fd, IN)], None).unwrap();
        it.waits.closed(fd);
        // SAFETY: as above.
        unsafe { libc::close(fd) };
        it.waits.closed(fd);
        assert_eq!(it.settle(), [(wait, End::Closed)]);
        let refused = it.wait(&[(fd, IN)], None);
        assert!(matches!(refused, Err(Refusal::AlwaysReady(_))));

        let (next, mut far) = pair();
        // SAFETY: as above.
        let next = unsafe { OwnedFd::from_raw_fd(libc::dup2(next.as_raw_fd(), fd)) };
        let wait = it.wait(&[(fd, IN)], None).unwrap();
        far.write_all(b"x").unwrap();
        assert_eq!(it.until_one_ends(), [(wait, READABLE)]);
        drop(next);
    }

    #[test]
    fn a_regular_file_is_always_ready_and_the_wait_for_the_others_does_not_begin() {
        let it = Loop::new();
        let (near, _far) = pair();
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        let refused = it.wait(&[(near.as_raw_fd(), IN), (file.as_raw_fd(), IN)], Some(0));
        assert!(matches!(refused, Err(Refusal::AlwaysReady(fd)) if fd == file.as_raw_fd()));
        assert_eq!((it.waits.pending(), it.reactor.running()), (0, 0));
        assert!(!it.waits.is_awaited(near.as_raw_fd()));
    }

    #[test]
    fn ten_thousand_waits_at_once_end_each_for_its_own_reason() {
        let it = Loop::new();
        let pairs: Vec<_> = (0..200).map(|_| pair()).collect();
        let (soon, late) = (now() + 200 * MILLISECOND, now() + 600_000 * MILLISECOND);
        let waits: Vec<_> = (0..10_000)
            .map(|number| {
                let index = number % pairs.len();
                let (near, _) = &pairs[index];
                let deadline = if index < 100 { late } else { soon };
                let deadline = (number % 2 == 0).then_some(deadline + number as Nanos);
                it.wait(&[(near.as_raw_fd(), IN)], deadline).unwrap()
            })
            .collect();
        assert_eq!(it.waits.pending(), 10_000);
        for (_, far) in &pairs[..100] {
            (&*far).write_all(b"x").unwrap();
        }
        let mut ends = HashMap::new();
        while ends.len() < 7_500 {
            ends.extend(it.until_one_ends());
        }
        for (number, wait) in waits.iter().enumerate() {
            let expected = match (number % 200 < 100, number % 2 == 0) {
                (true, _) => Some(ASK),
                (false, true) => Some(End::TimedOut),
                (false, false) => None,
            };
            assert_eq!(ends.get(wait).copied(), expected, "wait {number}");
        }
        assert_eq!(it.waits.pending(), 2_500);
    }

    #[test]
    fn a_waiter_that_is_woken_may_begin_and_drop_waits() {
        let it = Loop::new();
        let (near, mut far) = pair();
        let fd = near.as_raw_fd();
        let ends = Rc::new(Cell::new(0));
        let held: Rc<RefCell<Vec<Wait>>> = Rc::default();
        let begin = {
            let (ends, held, waits) = (Rc::clone(&ends), Rc::clone(&held), it.waits.clone());
            move |_| {
                ends.set(ends.get() + 1);
                held.borrow_mut().clear();
                let next = waits.start(&[Interest { fd, events: IN }], None, |_| ());
                held.borrow_mut().extend(next.ok());
            }
        };
        let wait = it
            .waits
            .start(&[Interest { fd, events: IN }], None, begin)
            .ok();
        held.borrow_mut().extend(wait);
        far.write_all(b"x").unwrap();
        it.settle();
        assert_eq!(ends.get(), 1);
    }
}
