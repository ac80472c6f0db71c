//! All time-outs of a server with one timer: a clock that ticks four times a second, and a walk over what is open.
//!
//! Reading a real clock and arming a real timer for each request would cost more than parsing it.

use std::rc::Rc;
use std::time::Duration;

use super::connection::{Command, Connection, Phase};
use super::memory_trim::release_free_memory;
use super::shared::Shared;
use crate::net::idle_hook;

/// Quarters of a second since the server was started.
pub(super) type Tick = u32;

const TICK: Duration = Duration::from_millis(250);
/// How long a kept-alive connection may still send a request once the server is stopping: closing it at once would
/// break off a request that is on its way.
const LINGER: Duration = Duration::from_secs(1);

/// Does not end; dropped with the server.
pub(super) async fn enforce_timeouts(shared: Rc<Shared>) {
    let mut clock = tokio::time::interval(TICK);
    clock.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    clock.tick().await;
    loop {
        clock.tick().await;
        let now = shared.clock.get() + 1;
        shared.clock.set(now);
        // A loop that has always something to do never waits.
        idle_hook::run();
        end_late_connections(&shared, now);
        end_late_calls(&shared, now);
        shared.refusals.tell(now);
        if shared
            .memory_trim
            .is_due(shared.connections.borrow().len(), now)
        {
            release_free_memory();
        }
    }
}

/// Rounded up, one at least.
pub(super) fn ticks(time: Duration) -> Tick {
    let ticks = time.as_millis().div_ceil(TICK.as_millis()).max(1);
    Tick::try_from(ticks).unwrap_or(Tick::MAX / 4)
}

/// The latest tick at which something must have begun to be over `limit` now.
fn before(now: Tick, limit: Duration) -> Option<Tick> {
    now.checked_sub(ticks(limit))
}

fn end_late_connections(shared: &Shared, now: Tick) {
    let limits = &shared.limits;
    let idle_limit = match shared.is_stopping() {
        true => limits.idle_timeout.min(LINGER),
        false => limits.idle_timeout,
    };
    let header = before(now, limits.header_timeout);
    let idle = before(now, idle_limit);
    let write = before(now, limits.write_timeout);
    let is_late = |since: Tick, limit: Option<Tick>| limit.is_some_and(|limit| since <= limit);
    for connection in shared.connections.borrow().iter() {
        if connection
            .blocked()
            .is_some_and(|since| is_late(since, write))
        {
            connection.command(Command::Abort);
            continue;
        }
        connection.listen(now);
        connection.age(now);
        match connection.phase() {
            Phase::New(since) if is_late(since, header) => connection.command(Command::Abort),
            Phase::Head(since) if is_late(since, header) => end_half(connection),
            Phase::Idle(since) if is_late(since, idle) => end_idle(connection),
            _ => {}
        }
    }
}

/// In the middle of the answer to another request 408 would be taken for a part of that.
fn end_half(connection: &Connection) {
    match connection.write_blocked.get() {
        None => connection.command(Command::TimeOut),
        Some(_) => connection.command(Command::Abort),
    }
}

/// HTTP/2 says goodbye first; a client that has not answered that by the next walk is not waited for, though it may have much to
/// read before it comes to the goodbye.
fn end_idle(connection: &Connection) {
    match connection.is_finishing() {
        true => connection.command(Command::Close),
        false => connection.command(Command::Finish),
    }
}

fn end_late_calls(shared: &Shared, now: Tick) {
    let pace = shared.limits.pace();
    let deadline = shared.limits.deadline.and_then(|limit| before(now, limit));
    let late: Vec<_> = {
        let calls = shared.calls.borrow();
        calls
            .iter()
            .filter(|call| {
                call.body.keep_pace(pace);
                deadline.is_some_and(|since| call.arrived <= since)
            })
            .map(Rc::clone)
            .collect()
    };
    for call in late {
        shared.expire(&call);
    }
}
