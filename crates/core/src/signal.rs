//! POSIX signals as awaitable events.
//!
//! A handler may only do async-signal-safe work, so it writes one byte into a socket pair; the reactor reads it. While
//! no task waits, the previous handler is installed, so that Ctrl-C still ends a program that has stopped listening.
//! (Tokio's driver never restores a signal, and crates that chain to the previous handler would run PHP's, whose default
//! action ends the process.)
//!
//! A worker keeps its handler from the first signal to stop on: a control group that is stopped signals the supervisor and the
//! workers, which get the supervisor's SIGTERM as well and must not die of it while they drain. The supervisor has SIGKILL.

#![allow(unsafe_code, reason = "installs signal handlers")]

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{IntoRawFd, RawFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, Ordering};

use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::sync::Notify;

/// Write ends of the socket pairs by signal number, read by the handler; -1 if no task has waited for the signal.
static WAKERS: [AtomicI32; 65] = [const { AtomicI32::new(-1) }; 65];

/// The previous action of each signal; null while no task waits for it.
static PREVIOUS: [AtomicPtr<libc::sigaction>; 65] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; 65];

/// The signals by which a program is asked to stop.
const STOP_SIGNALS: [i32; 2] = [libc::SIGTERM, libc::SIGINT];

static STOP_REQUESTED: AtomicBool = AtomicBool::new(false);

/// The process that keeps its handlers from the first signal to stop on, such as a worker; a child that it forks does not.
static KEEPS_HANDLERS: AtomicU32 = AtomicU32::new(0);

/// From the first signal to stop on, further ones no longer end this process.
pub(crate) fn keep_handlers_after_stop() {
    KEEPS_HANDLERS.store(std::process::id(), Ordering::SeqCst);
}

/// Whether one of the signals to stop has come while a task waited for it.
pub(crate) fn stop_requested() -> bool {
    STOP_REQUESTED.load(Ordering::SeqCst)
}

/// Restores the actions that the signals had before this process waited for them. Call it in a child immediately after fork.
///
/// The child shares the socket pairs with its parent, which would take the child's signals for its own. The function calls only
/// async-signal-safe functions, and leaks what it removes.
pub fn restore_after_fork() {
    for ((waker, previous), signal) in WAKERS.iter().zip(&PREVIOUS).zip(0..) {
        let previous = previous.swap(std::ptr::null_mut(), Ordering::SeqCst);
        if !previous.is_null() {
            // SAFETY: the pointer comes from `Listening::start`, and only its owner frees it.
            unsafe { libc::sigaction(signal, previous, std::ptr::null_mut()) };
        }
        waker.store(-1, Ordering::SeqCst);
    }
}

/// The signals that tasks of this process wait for.
#[derive(Default)]
pub struct Signals {
    sources: RefCell<HashMap<i32, Rc<Source>>>,
}

struct Source {
    signal: i32,
    arrived: Notify,
    waiting: Cell<usize>,
    /// The handler stays installed while no task waits.
    is_kept: Cell<bool>,
}

impl Signals {
    /// Waits for the next `signal`. Must be polled inside the reactor.
    ///
    /// # Errors
    /// The signal does not exist or cannot be caught (SIGKILL, SIGSTOP).
    pub async fn next(&self, signal: i32) -> io::Result<()> {
        let source = self.source(signal)?;
        let _listening = Listening::start(Rc::clone(&source))?;
        source.arrived.notified().await;
        if STOP_SIGNALS.contains(&signal) {
            STOP_REQUESTED.store(true, Ordering::SeqCst);
            if KEEPS_HANDLERS.load(Ordering::SeqCst) == std::process::id() {
                self.keep_stop_handlers();
            }
        }
        Ok(())
    }

    fn keep_stop_handlers(&self) {
        let sources = self.sources.borrow();
        for source in STOP_SIGNALS.iter().filter_map(|signal| sources.get(signal)) {
            // A signal that nothing waits for keeps its default action.
            if source.waiting.get() > 0 {
                source.is_kept.set(true);
            }
        }
    }

    fn source(&self, signal: i32) -> io::Result<Rc<Source>> {
        if let Some(source) = self.sources.borrow().get(&signal) {
            return Ok(Rc::clone(source));
        }
        let waker = usize::try_from(signal)
            .ok()
            .and_then(|index| WAKERS.get(index))
            .filter(|_| signal != 0)
            .ok_or_else(|| invalid(signal))?;
        let source = Rc::new(Source {
            signal,
            arrived: Notify::new(),
            waiting: Cell::new(0),
            is_kept: Cell::new(false),
        });
        let (reader, writer) = StdUnixStream::pair()?;
        reader.set_nonblocking(true)?;
        writer.set_nonblocking(true)?;
        tokio::task::spawn_local(forward(UnixStream::from_std(reader)?, Rc::clone(&source)));
        // The write end stays open for the life of the process: the handler may use it at any time.
        waker.store(writer.into_raw_fd(), Ordering::SeqCst);
        self.sources.borrow_mut().insert(signal, Rc::clone(&source));
        Ok(source)
    }
}

impl Source {
    fn previous(&self) -> &'static AtomicPtr<libc::sigaction> {
        // `Signals::source` has checked the number.
        &PREVIOUS[self.signal as usize]
    }
}

/// Keeps the handler installed while a task waits.
struct Listening(Rc<Source>);

impl Listening {
    fn start(source: Rc<Source>) -> io::Result<Self> {
        if source.waiting.get() == 0 && !source.is_kept.get() {
            let previous = Box::into_raw(Box::new(install(source.signal)?));
            source.previous().store(previous, Ordering::SeqCst);
        }
        source.waiting.set(source.waiting.get() + 1);
        Ok(Self(source))
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.waiting.set(self.0.waiting.get() - 1);
        if self.0.waiting.get() > 0 || self.0.is_kept.get() {
            return;
        }
        let previous = self
            .0
            .previous()
            .swap(std::ptr::null_mut(), Ordering::SeqCst);
        if !previous.is_null() {
            // SAFETY: the pointer comes from `start`, which got the value from the kernel for this very signal; it was
            // swapped out, so no other call frees it.
            unsafe {
                let previous = Box::from_raw(previous);
                libc::sigaction(self.0.signal, &*previous, std::ptr::null_mut());
            }
        }
    }
}

fn install(signal: i32) -> io::Result<libc::sigaction> {
    let mut previous = MaybeUninit::uninit();
    // SAFETY: all-zero is a valid `sigaction`; `wake` only does async-signal-safe work.
    let result = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = wake as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(signal, &action, previous.as_mut_ptr())
    };
    if result != 0 {
        return Err(invalid(signal));
    }
    // SAFETY: the call succeeded, so the kernel has filled it in.
    Ok(unsafe { previous.assume_init() })
}

extern "C" fn wake(signal: i32) {
    let fd: RawFd = usize::try_from(signal)
        .ok()
        .and_then(|index| WAKERS.get(index))
        .map_or(-1, |waker| waker.load(Ordering::SeqCst));
    // SAFETY: send(2) is async-signal-safe and errno is put back; a full socket means a wake is pending anyway. The reader is gone
    // once the event loop has ended.
    unsafe {
        let errno = *libc::__errno_location();
        libc::send(fd, [0_u8].as_ptr().cast(), 1, libc::MSG_NOSIGNAL);
        *libc::__errno_location() = errno;
    }
}

fn invalid(signal: i32) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("signal {signal} does not exist or cannot be caught"),
    )
}

async fn forward(mut pipe: UnixStream, source: Rc<Source>) {
    let mut buffer = [0; 64];
    while let Ok(1..) = pipe.read(&mut buffer).await {
        source.arrived.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::task::LocalSet;
    use tokio::time::timeout;

    #[tokio::test(flavor = "current_thread")]
    async fn every_waiter_hears_of_a_signal() {
        LocalSet::new()
            .run_until(async {
                let signals = Signals::default();
                let raise = async {
                    tokio::task::yield_now().await;
                    // SAFETY: SIGUSR2 has a handler by now, installed by the two waiters.
                    unsafe { libc::raise(libc::SIGUSR2) };
                };
                let both = async {
                    tokio::join!(
                        signals.next(libc::SIGUSR2),
                        signals.next(libc::SIGUSR2),
                        raise
                    )
                };
                let (first, second, ()) = timeout(Duration::from_secs(5), both).await.unwrap();
                assert!(first.is_ok() && second.is_ok());
            })
            .await;
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_signal_that_cannot_be_caught_is_refused() {
        LocalSet::new()
            .run_until(async {
                for signal in [0, -1, libc::SIGKILL, 99] {
                    let error = Signals::default().next(signal).await.unwrap_err();
                    assert!(error.to_string().starts_with(&format!("signal {signal} ")));
                }
            })
            .await;
    }
}
