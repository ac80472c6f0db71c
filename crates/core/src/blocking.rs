//! Blocking calls on threads of their own, bounded by purpose.
//!
//! Tokio has one thread pool for all blocking calls of a runtime. If a few reads from a slow disk could occupy all of its threads, name
//! lookups would stall, and a reachable database would count as down. So each purpose has threads of its own.

use std::cell::OnceCell;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;

use tokio::sync::Semaphore;

/// The purpose of a blocking call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Reading, writing and moving files.
    Files,
    /// `getaddrinfo`, which may wait for a name server for many seconds.
    Names,
    /// Large bodies that are compressed whole.
    Compression,
    /// Calls of libraries that PHP has loaded, for which there is no descriptor to wait for.
    Libraries,
    /// Keys that are derived from passwords, which takes milliseconds on purpose.
    Passwords,
}

const PURPOSES: [Purpose; 5] = [
    Purpose::Files,
    Purpose::Names,
    Purpose::Compression,
    Purpose::Libraries,
    Purpose::Passwords,
];

impl Purpose {
    /// Concurrent calls of this purpose; further calls wait.
    pub const fn threads(self) -> usize {
        match self {
            Self::Files | Self::Names => 4,
            Self::Compression | Self::Passwords => 2,
            Self::Libraries => 16,
        }
    }
}

/// The number of threads that a runtime needs for all purposes.
pub(crate) const THREADS: usize = Purpose::Files.threads()
    + Purpose::Names.threads()
    + Purpose::Compression.threads()
    + Purpose::Libraries.threads()
    + Purpose::Passwords.threads();

thread_local! {
    /// One set for each thread: a runtime here runs on one thread and has a pool of its own.
    static LIMITS: OnceCell<[Arc<Semaphore>; PURPOSES.len()]> = const { OnceCell::new() };
}

/// Runs `call` on another thread, once one of those of its purpose is free. To be awaited on the thread of a runtime of this crate.
///
/// Dropping the future before the call has begun means that it never runs; afterwards it runs to its end and keeps its thread.
///
/// # Errors
/// The call panicked, or the runtime is shutting down.
pub async fn run<T: Send + 'static>(
    purpose: Purpose,
    call: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let permit = limit(purpose).acquire_owned().await;
    let permit = permit.map_err(io::Error::other)?;
    let running = tokio::task::spawn_blocking(move || {
        // Freed when the call has ended, not when its caller stops waiting.
        let _permit = permit;
        call()
    });
    running.await.map_err(io::Error::other)
}

fn limit(purpose: Purpose) -> Arc<Semaphore> {
    let make = || PURPOSES.map(|purpose| Arc::new(Semaphore::new(purpose.threads())));
    LIMITS.with(|limits| Arc::clone(&limits.get_or_init(make)[purpose as usize]))
}

/// The addresses of a host, as the system's resolver orders them. An IP address needs no thread.
pub(crate) async fn addresses(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let host = host.to_owned();
    let look_up = move || Ok((host.as_str(), port).to_socket_addrs()?.collect());
    run(Purpose::Names, look_up).await?
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;
    use crate::reactor::Reactor;

    /// Runs `future` on a reactor; `None` if it has not completed after half a minute.
    fn on_reactor<T: 'static>(future: impl Future<Output = T> + 'static) -> Option<T> {
        let reactor = Reactor::new(|_| None).unwrap();
        let limited = async { timeout(Duration::from_secs(30), future).await.ok() };
        let id = reactor.spawn(limited);
        while !reactor.poll(None).contains(&id) {}
        reactor.take(id).flatten()
    }

    #[test]
    fn names_are_looked_up_while_every_thread_for_files_waits_for_a_disk() {
        let found = on_reactor(async {
            let (release, disk) = mpsc::channel::<()>();
            let disk = Arc::new(std::sync::Mutex::new(disk));
            let slow = (0..2 * Purpose::Files.threads()).map(|_| {
                let disk = Arc::clone(&disk);
                tokio::task::spawn_local(run(Purpose::Files, move || {
                    let _ = disk.lock().unwrap().recv();
                }))
            });
            let slow: Vec<_> = slow.collect();
            tokio::task::yield_now().await;
            let found = addresses("localhost", 1).await;
            drop(release);
            for call in slow {
                call.await.unwrap().unwrap();
            }
            found
        });
        let found = found.unwrap().unwrap();
        assert!(found.iter().all(|address| address.ip().is_loopback()));
    }

    #[test]
    fn a_call_nobody_waits_for_keeps_its_thread_until_it_ends() {
        let free = on_reactor(async {
            let (release, held) = mpsc::channel::<()>();
            let running = tokio::task::spawn_local(run(Purpose::Compression, move || {
                let _ = held.recv();
            }));
            while limit(Purpose::Compression).available_permits() > 1 {
                tokio::task::yield_now().await;
            }
            // It has begun: the thread is taken from here on.
            tokio::time::sleep(Duration::from_millis(5)).await;
            running.abort();
            let _ = running.await;
            let while_running = limit(Purpose::Compression).available_permits();
            drop(release);
            while limit(Purpose::Compression).available_permits() < 2 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            while_running
        });
        assert_eq!(free, Some(1));
    }

    #[test]
    fn a_call_that_panics_gives_its_thread_back_and_fails() {
        let outcome = on_reactor(async {
            for _ in 0..2 * Purpose::Files.threads() {
                let failed = run(Purpose::Files, || panic!("on purpose")).await;
                assert!(failed.is_err());
            }
            run(Purpose::Files, || 7).await.unwrap()
        });
        assert_eq!(outcome, Some(7));
    }
}
