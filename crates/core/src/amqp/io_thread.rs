use std::io;
use std::sync::Mutex;
use std::sync::mpsc;

use tokio::runtime::{Builder, Handle};

use super::lock::lock;
use crate::blocking::Purpose;

/// The runtime of this process's I/O thread, with the process that owns it: a thread does not survive a fork.
static RUNNING: Mutex<Option<(u32, Handle)>> = Mutex::new(None);

/// The runtime all AMQP connections of this process live on, started by the first of them.
///
/// It has its own thread so that heartbeats, acks and recovery go on while the caller's thread computes.
pub(super) fn handle() -> io::Result<Handle> {
    let mut running = lock(&RUNNING);
    match &*running {
        Some((pid, handle)) if *pid == std::process::id() => Ok(handle.clone()),
        _ => {
            let handle = start()?;
            *running = Some((std::process::id(), handle.clone()));
            Ok(handle)
        }
    }
}

fn start() -> io::Result<Handle> {
    let (sender, receiver) = mpsc::channel();
    let run = move || {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(Purpose::Names.threads())
            .thread_name("weft-amqp-dns")
            .on_thread_start(crate::thread::block_signals)
            .build();
        match runtime {
            Ok(runtime) => {
                let _ = sender.send(Ok(runtime.handle().clone()));
                runtime.block_on(std::future::pending::<()>());
            }
            Err(error) => {
                let _ = sender.send(Err(error));
            }
        }
    };
    crate::thread::spawn("weft-amqp", run)?;
    receiver
        .recv()
        .unwrap_or_else(|_| Err(io::Error::other("the AMQP thread ended at its start")))
}
