//! All timeouts of connections and bodies with one timer: a clock that ticks four times a second, and a walk over what is open.
//!
//! Reading a real clock and arming a real timer for each request would cost more than parsing it.

use std::rc::Rc;
use std::time::Duration;

use super::clock::{TICK, Tick, ticks};
use super::connection::{Command, Connection, Phase};
use super::memory_trim::release_free_memory;
use super::shared::Shared;
use crate::net::idle_hook;

/// How long a connection that is kept alive may still send a request once the server is stopping: closing it at once would break off
/// a request that is on its way.
const STOPPING_IDLE_TIMEOUT: Duration = Duration::from_secs(1);

/// Does not end; dropped with the server.
pub(super) async fn enforce_timeouts(shared: Rc<Shared>) {
    let mut clock = tokio::time::interval(TICK);
    clock.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    clock.tick().await;
    loop {
        clock.tick().await;
        let now = shared.context.clock.advance();
        // An event loop that always has something to do is never idle.
        idle_hook::run();
        end_late_connections(&shared, now);
        let rate = shared.context.limits.body_rate_limit();
        let admission = &shared.context.admission;
        admission.for_each_request(|call| call.body.enforce_rate(rate));
        let connections = shared.connections.borrow().len();
        if shared.memory_trim.is_due(connections, now) {
            release_free_memory();
        }
    }
}

/// The latest tick at which something must have begun to be over `limit` now.
fn before(now: Tick, limit: Duration) -> Option<Tick> {
    now.checked_sub(ticks(limit))
}

fn end_late_connections(shared: &Shared, now: Tick) {
    let limits = &shared.context.limits;
    let idle_limit = match shared.context.is_stopping() {
        true => limits.idle_timeout.min(STOPPING_IDLE_TIMEOUT),
        false => limits.idle_timeout,
    };
    let header = before(now, limits.header_timeout);
    let idle = before(now, idle_limit);
    let is_late = |since: Tick, limit: Option<Tick>| limit.is_some_and(|limit| since <= limit);
    for connection in shared.connections.borrow().iter() {
        if connection.is_write_timed_out(now) {
            connection.command(Command::Abort);
            continue;
        }
        connection.check_keepalive(now);
        connection.check_age(now);
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
