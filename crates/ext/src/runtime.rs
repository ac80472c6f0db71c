//! `Weft\Native\poll`, `take`, `cancel` and the operations that belong to no other noun.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use ext_php_rs::prelude::*;
use ext_php_rs::types::{ZendHashTable, Zval};
use ext_php_rs::zend::ModuleEntry;

use weft_core::reactor::{Announcer, OpId, Promise};
use weft_core::workers::loop_watchdog;

use crate::c;
use crate::failure::Failure;
use crate::outcome::{Outcome, Payload};
use crate::process::Process;
use crate::zend::can_switch_fibers;

/// Starts `future` as an operation and returns its id to PHP.
pub fn start(future: impl Future<Output = Outcome> + 'static) -> PhpResult<i64> {
    Ok(to_php(Process::current()?.reactor.spawn(future)))
}

/// The same for an operation that sends something or whose event may come at once: it begins in this call, unless its caller cannot wait.
/// `finish` makes its outcome.
pub fn start_begun<R: 'static>(
    future: Pin<Box<dyn Future<Output = R>>>,
    finish: impl FnOnce(R) -> Outcome + 'static,
) -> PhpResult<i64> {
    let reactor = &Process::current()?.reactor;
    // In a destructor before PHP 8.4 the task cannot be suspended: the operation is cancelled before it has begun.
    let id = match can_switch_fibers() {
        true => reactor.spawn_begun(future, finish),
        false => reactor.spawn(async move { finish(future.await) }),
    };
    Ok(to_php(id))
}

/// Starts an operation without a task: keeping the promise finishes it, and cancelling it drops `claim`.
pub fn expect(claim: impl std::any::Any) -> PhpResult<(i64, Promise<Outcome>)> {
    let (id, promise) = Process::current()?.reactor.expect(claim);
    Ok((to_php(id), promise))
}

/// The operation that `cause` finishes, 0 where it finishes none. No poll returns it any more.
pub fn finished_by(cause: impl FnOnce()) -> i64 {
    let Some(process) = Process::existing() else {
        cause();
        return 0;
    };
    process.reactor.finished_by(cause).map_or(0, to_php)
}

/// Starts an operation that is announced again and again until it is cancelled, and never has an outcome.
pub fn recurring() -> PhpResult<(i64, Announcer<Outcome>)> {
    let (id, announcer) = Process::current()?.reactor.recurring();
    Ok((to_php(id), announcer))
}

fn to_php(id: OpId) -> i64 {
    // Ids count up from one; 2^63 of them outlast the process.
    id as i64
}

fn from_php(id: i64) -> OpId {
    id as OpId
}

pub fn seconds(value: f64) -> Duration {
    // `Instant` panics where something is added that it cannot hold.
    const FOREVER: Duration = Duration::from_secs(100 * 365 * 86_400);
    Duration::try_from_secs_f64(value.max(0.0)).map_or(FOREVER, |time| time.min(FOREVER))
}

/// A hash of the interface to PHP that this library was built with.
#[php_function]
#[php(name = "Weft\\Native\\interfaceHash")]
pub fn interface_hash() -> &'static str {
    env!("INTERFACE_HASH")
}

#[php_function]
#[php(name = "Weft\\Native\\poll")]
pub fn poll(timeout: Option<f64>, tasks: Option<i64>, fibers: Option<i64>) -> PhpResult<Zval> {
    if let (Some(tasks), Some(fibers)) = (tasks, fibers) {
        loop_watchdog::record_counts(tasks.max(0) as u64, fibers.max(0) as u64);
    }
    let finished = Process::current()?.reactor.poll(timeout.map(seconds));
    let mut ids = ZendHashTable::with_capacity(finished.len() as u32);
    for id in finished {
        ids.push(to_php(id))?;
    }
    let mut zval = Zval::new();
    zval.set_hashtable(ids);
    Ok(zval)
}

#[php_function]
#[php(name = "Weft\\Native\\take")]
pub fn take(op: i64) -> PhpResult<Zval> {
    let outcome = Process::current()?.reactor.take(from_php(op));
    match outcome {
        Some(outcome) => outcome?.into_zval(),
        None => Err(Failure::new(
            "usage",
            format!("operation {op} has no outcome: it is still running, was cancelled or was taken before"),
        )
        .into()),
    }
}

#[php_function]
#[php(name = "Weft\\Native\\cancel")]
pub fn cancel(op: i64) {
    if let Some(process) = Process::existing() {
        process.reactor.cancel(from_php(op));
    }
}

#[php_function]
#[php(name = "Weft\\Native\\running")]
pub fn running() -> i64 {
    Process::existing().map_or(0, |process| process.reactor.running() as i64)
}

/// Whether the running fiber is one that PHP's garbage collector calls destructors in, which PHP 8.4 and later have.
#[php_function]
#[php(name = "Weft\\Native\\isCollecting")]
pub fn is_collecting() -> bool {
    c::weft_collector_runs()
}

/// Whether the running code is in a fiber that it may suspend now: not where PHP blocks switches, nor while PHP destroys the fiber, nor in the callback of an
/// output buffer that others print into.
#[php_function]
#[php(name = "Weft\\Native\\maySuspend")]
pub fn may_suspend() -> bool {
    c::weft_may_suspend()
}

#[php_function]
#[php(name = "Weft\\Native\\sleep")]
pub fn sleep(delay: f64) -> PhpResult<i64> {
    let delay = seconds(delay);
    let until = tokio::time::Instant::now() + delay;
    let operation = Process::current()?.reactor.spawn_leaf(async move {
        tokio::time::sleep_until(until).await;
        Ok(Payload::Null)
    });
    Ok(to_php(operation))
}

#[php_function]
#[php(name = "Weft\\Native\\signal")]
pub fn signal(number: i64) -> PhpResult<i64> {
    let signals = Process::current()?.signals.clone();
    let arrival = Box::pin(async move {
        let signo = i32::try_from(number)
            .map_err(|_| Failure::new("usage", format!("there is no signal {number}")))?;
        match signals.next(signo).await {
            Ok(()) => Ok(Payload::Int(number)),
            Err(error) => Err(Failure::new(
                "usage",
                format!("cannot wait for signal {number}: {error}"),
            )),
        }
    });
    // The handler is in place when this returns: the signal may come at once.
    start_begun(arrival, |outcome| outcome)
}

/// Lets a test prove that a panic inside an operation or a call becomes a PHP error.
#[cfg(debug_assertions)]
#[php_function]
#[php(name = "Weft\\Native\\panic")]
#[allow(clippy::panic)]
pub fn panic(in_operation: bool) -> PhpResult<i64> {
    if in_operation {
        return start(async { panic!("on purpose, in an operation") });
    }
    panic!("on purpose, in a call")
}

pub extern "C" fn info(_module: *mut ModuleEntry) {
    ext_php_rs::info_table_start!();
    ext_php_rs::info_table_row!("weft", "enabled");
    ext_php_rs::info_table_row!("version", env!("CARGO_PKG_VERSION"));
    ext_php_rs::info_table_row!("interface hash", interface_hash());
    ext_php_rs::info_table_end!();
}

pub fn register(module: ModuleBuilder) -> ModuleBuilder {
    let module = module
        .info_function(info)
        .function(wrap_function!(interface_hash))
        .function(wrap_function!(poll))
        .function(wrap_function!(take))
        .function(wrap_function!(cancel))
        .function(wrap_function!(running))
        .function(wrap_function!(is_collecting))
        .function(wrap_function!(may_suspend))
        .function(wrap_function!(sleep))
        .function(wrap_function!(signal));
    #[cfg(debug_assertions)]
    let module = module.function(wrap_function!(panic));
    module
}
