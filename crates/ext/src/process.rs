//! The one runtime of this process: made on first use, refused after a fork, dropped at request shutdown.

use std::cell::{OnceCell, RefCell};
use std::mem::ManuallyDrop;
use std::os::fd::RawFd;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::time::Duration;

use weft_core::fd_wait::FdWaits;
use weft_core::reactor::Reactor;
use weft_core::signal::{self, Signals};
use weft_core::sql::sqlite;

use crate::failure::{Detail, Failure};
use crate::os;
use crate::outcome::Outcome;
use crate::zend;

/// How long a process waits for its SQLite threads when it ends.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// The state that all native objects of this process share.
pub struct Process {
    pub reactor: Reactor<Outcome>,
    pub signals: Rc<Signals>,
    fd_waits: OnceCell<Option<FdWaits>>,
}

thread_local! {
    /// Never dropped with its thread: a library may call `exit()` of C, as PHP does when the system refuses memory, and the runtime cannot
    /// end without the variables of the thread that are gone by then.
    static CURRENT: RefCell<Option<ManuallyDrop<Rc<Process>>>> = const { RefCell::new(None) };
}

/// Pid that made the runtime; 0 while there is none.
static OWNER: AtomicU32 = AtomicU32::new(0);
/// Set in a child whose parent had a runtime: its sockets and threads are the parent's.
static FORKED: AtomicBool = AtomicBool::new(false);
/// Set after a request, in which PHP may still run code: that of a stream or a save handler which PHP closes last. What Weft kept for it would
/// name classes and objects in the next request that are gone.
static ENDED: AtomicBool = AtomicBool::new(false);
/// Descriptors of the runtime's epoll instance, of which Tokio has two; -1 where there is none.
static EVENT_POLLS: [AtomicI32; 4] = [const { AtomicI32::new(-1) }; 4];

impl Process {
    /// # Errors
    /// `forked` when this process inherited a runtime through `fork`, `runtime` after the request.
    pub fn current() -> Result<Rc<Self>, Failure> {
        Self::refuse_after_fork()?;
        Self::refuse_after_request()?;
        CURRENT.with_borrow_mut(|current| match current {
            Some(process) => Ok(Rc::clone(process)),
            None => {
                let process = Rc::new(Self::start()?);
                *current = Some(ManuallyDrop::new(Rc::clone(&process)));
                Ok(process)
            }
        })
    }

    /// For calls that start no operation but act on what belongs to the parent, such as its buffers.
    ///
    /// # Errors
    /// `forked` when this process inherited a runtime through `fork`.
    pub fn refuse_after_fork() -> Result<(), Failure> {
        if FORKED.load(Ordering::Relaxed) {
            return Err(used_after_fork());
        }
        Ok(())
    }

    /// For calls that keep something until the request ends.
    ///
    /// # Errors
    /// `runtime` when that is past.
    pub fn refuse_after_request() -> Result<(), Failure> {
        if ENDED.load(Ordering::Relaxed) {
            return Err(Failure::new(
                "runtime",
                "Weft was called after the request had ended, by code that PHP runs last, such as the close of a stream: \
                 call it before, or from a function that register_shutdown_function() registers",
            ));
        }
        Ok(())
    }

    /// Drops what an object gives up when it is closed. In a forked child it is leaked instead, as inherited objects are: its
    /// destructor would speak to the parent's servers.
    pub fn release<T>(value: T) {
        match Self::refuse_after_fork() {
            Ok(()) => drop(value),
            Err(_) => std::mem::forget(value),
        }
    }

    /// The runtime if it exists and is this process's own: what destructors use.
    pub fn existing() -> Option<Rc<Self>> {
        if FORKED.load(Ordering::Relaxed) {
            return None;
        }
        CURRENT.with_borrow(|current| current.as_deref().map(Rc::clone))
    }

    fn start() -> Result<Self, Failure> {
        keep_freed_memory();
        let before = event_polls();
        let reactor = Reactor::new(|panic| Err(Failure::panic(panic))).map_err(|error| {
            Failure::new("runtime", format!("cannot start the event loop: {error}"))
        })?;
        let own = event_polls();
        let own = own.into_iter().filter(|poll| !before.contains(poll));
        for (place, poll) in EVENT_POLLS.iter().zip(own) {
            place.store(poll, Ordering::Relaxed);
        }
        OWNER.store(std::process::id(), Ordering::Relaxed);
        Ok(Self {
            reactor,
            signals: Rc::default(),
            fd_waits: OnceCell::new(),
        })
    }

    /// A descriptor that is ready to read when the event loop has something to do, where nothing else tells of it: no operation runs.
    pub fn only_event_source(&self) -> Option<RawFd> {
        let poll = EVENT_POLLS[0].load(Ordering::Relaxed);
        (poll >= 0 && self.reactor.is_quiet()).then_some(poll)
    }

    /// The waits that libraries begin. None where the process has no descriptor left for them.
    pub fn fd_waits(&self) -> Option<FdWaits> {
        let start = || {
            let waits = FdWaits::new().ok()?;
            let driver = waits.clone().drive();
            self.reactor.spawn_watcher(async {
                if let Err(error) = driver.await {
                    eprintln!("weft: waits of libraries have ended: {error}");
                }
            });
            Some(waits)
        };
        self.fd_waits.get_or_init(start).clone()
    }
}

/// Buffers of 64 KiB and more come and go with every large body. By default glibc gives each back to the kernel, which then has
/// to clear its pages again for the next: a response of 100 kB cost two thirds more CPU.
fn keep_freed_memory() {
    const MMAP_THRESHOLD: i32 = 4 << 20;
    const TRIM_THRESHOLD: i32 = 32 << 20;
    os::keep_freed_memory(MMAP_THRESHOLD, TRIM_THRESHOLD);
}

fn used_after_fork() -> Failure {
    let (owner, own) = (OWNER.load(Ordering::Relaxed), std::process::id());
    Failure::new(
        "forked",
        format!(
            "Weft was started in process {owner} and cannot be used in its forked child {own}: \
             sockets and threads belong to the parent. Fork before the first use of Weft, or start a new process."
        ),
    )
    .with("parent", Detail::Int(owner.into()))
    .with("child", Detail::Int(own.into()))
}

/// In a forked child: what the parent has started remains the parent's.
pub fn forked() {
    if OWNER.load(Ordering::Relaxed) != 0 {
        FORKED.store(true, Ordering::Relaxed);
        part_from_parent();
        zend::leak_inherited_objects();
        signal::restore_after_fork();
    }
}

/// The descriptors of epoll instances that are open; none where there is no `/proc`.
fn event_polls() -> Vec<i32> {
    let Ok(descriptors) = std::fs::read_dir("/proc/self/fd") else {
        return Vec::new();
    };
    descriptors
        .flatten()
        .filter(|entry| {
            let target = std::fs::read_link(entry.path());
            target.is_ok_and(|target| target.as_os_str() == "anon_inode:[eventpoll]")
        })
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// An epoll instance is shared after a fork: a socket that the child takes out of it when it drops its copy would be out of
/// the parent's, which would then wait for it without end. So the child gets empty ones in their place.
fn part_from_parent() {
    for poll in &EVENT_POLLS {
        let poll = poll.load(Ordering::Relaxed);
        if poll >= 0 {
            os::replace_event_poll(poll);
        }
    }
}

pub fn begin_request() {
    ENDED.store(false, Ordering::Relaxed);
}

/// From here on nothing is kept any more.
pub fn end_request() {
    ENDED.store(true, Ordering::Relaxed);
}

/// Ends the runtime with all operations.
pub fn end() {
    let current = CURRENT.take();
    if FORKED.load(Ordering::Relaxed) {
        // The epoll instance and the sockets are shared with the parent: dropping them would disturb it.
        return;
    }
    drop(current.map(ManuallyDrop::into_inner));
    // Lets a commit that is under way end; what was answered is on disk already.
    sqlite::shutdown(SHUTDOWN_TIMEOUT);
}
