//! Statements that wait for a connection of the pool share one: the first that gets it sends others with its own.
//!
//! Each remains a transaction of its own, because each has its own `Sync` (PostgreSQL documentation, "Pipelining"). So do the statements of a transaction
//! that is sent as a whole.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use super::batch::{Batch, Outcome, is_plain};
use super::connection::Connection;
use super::round_trip_queue::{Waiting, Wanted};
use super::startup::Postgres;
use crate::panics;
use crate::pool::{Lease, Pool};
use crate::sql::hooks::HookedConnection;
use crate::sql::{Error, ResultSet, Statement};

/// What a wait for a connection ends with.
pub(super) enum Turn {
    /// A connection, on which the caller sends the statements by themselves.
    Alone(Lease<Postgres>),
    /// Their outcome.
    Shared(Outcome),
}

/// How many statements may share a round trip. None where they must not, because hooks prepare a connection for one borrower, or because another statement may
/// wait for what this task holds, such as a lock of its transaction: it must not be sent after that one.
pub(super) fn limit(pool: &Pool<Postgres>) -> Option<usize> {
    let manager = pool.manager();
    let hooks = &manager.hook_calls.hooks;
    let limit = manager.server.max_pipeline();
    (limit > 1 && !hooks.borrowed && !hooks.returned && !pool.borrower_has_lease()).then_some(limit)
}

/// Runs a statement by itself, together with at most `limit` in all that wait for a connection, too.
///
/// Dropping the future cancels the statement if no outcome is waited for any more of those that it was sent with; otherwise it runs
/// to its end, and its result is discarded.
///
/// # Errors
/// As [`PooledDatabase::execute`](crate::sql::pooled_database::PooledDatabase::execute).
pub(super) async fn execute(
    pool: &Pool<Postgres>,
    limit: usize,
    statement: Statement,
) -> Result<ResultSet, Error> {
    let waiting = Waiting::new(vec![statement]);
    match take_turn(pool, limit, &waiting).await? {
        Turn::Alone(mut lease) => lease.execute(&waiting.statements[0]).await,
        Turn::Shared(outcome) => outcome.into_single(),
    }
}

/// Runs the statements, of which there is at least one, as one transaction, in the same way; or borrows a connection for them.
///
/// # Errors
/// Those of the pool and of the connection. One of a statement is in the [`Outcome`].
pub(super) async fn take_turn(
    pool: &Pool<Postgres>,
    limit: usize,
    waiting: &Rc<Waiting>,
) -> Result<Turn, Error> {
    let queue = &pool.manager().server.round_trip_queue;
    let place = queue.enter(waiting);
    let lease = {
        let mut borrowing = pin!(pool.borrow());
        // The end of this block gives up the place in the pool's queue, also when another task has sent the statements.
        poll_fn(|cx| match waiting.is_queued(cx) {
            true => borrowing.as_mut().poll(cx).map(Some),
            false => Poll::Ready(None),
        })
        .await
    };
    if let Some(lease) = lease {
        let lease = lease?;
        if let Some(statement) = waiting.statements.last() {
            lease.set_statement(&statement.source);
        }
        queue.leave(waiting);
        let mut group = companions(pool, &lease, waiting, limit);
        if group.is_empty() {
            return Ok(Turn::Alone(lease));
        }
        group.insert(0, Rc::clone(waiting));
        let wanted = Wanted::new(group.len());
        group.iter().for_each(|member| member.join_group(&wanted));
        // The first of the group may go on before the others have their outcomes.
        lease.disown();
        tokio::task::spawn_local(run(lease, group, wanted));
    }
    let outcome = poll_fn(|cx| waiting.poll_outcome(cx)).await;
    drop(place);
    outcome.map(Turn::Shared)
}

/// What is sent together with the transaction that has the connection.
fn companions(
    pool: &Pool<Postgres>,
    connection: &Connection,
    first: &Waiting,
    limit: usize,
) -> Vec<Rc<Waiting>> {
    // A task that holds a connection may have what the others wait for, such as a lock: it is served before them.
    if !connection.is_ready_for(&first.statements) || pool.holder_waits() {
        return Vec::new();
    }
    let queue = &pool.manager().server.round_trip_queue;
    let fits = |statements: &[Statement]| connection.is_ready_for(statements);
    queue.take(first, limit, pool.waiting(), pool.available(), fits)
}

/// Belongs to no task of those that wait: each of them may be cancelled.
async fn run(mut lease: Lease<Postgres>, mut group: Vec<Rc<Waiting>>, wanted: Rc<Wanted>) {
    // Tasks may have been cancelled since.
    group.retain(|member| member.is_wanted());
    let outcome = tokio::select! {
        biased;
        outcome = panics::caught(run_each(&mut lease, &group)) => outcome,
        // The pool cancels what the connection still runs.
        () = wanted.none() => return,
    };
    let outcome = outcome.unwrap_or_else(|panic| Err(lease.give_up(&panic)));
    if let Err(error) = outcome {
        group
            .iter()
            .for_each(|member| member.finish(Err(error.clone())));
    }
}

/// Runs the statements of each member as a transaction of its own, all in one round trip. Each gets its outcome as soon as that is there.
///
/// # Errors
/// [`Error::ConnectionLost`]: members without an outcome have failed with it, and may have taken effect if they were sent.
async fn run_each(lease: &mut Lease<Postgres>, group: &[Rc<Waiting>]) -> Result<(), Error> {
    let batches: Vec<_> = group
        .iter()
        .map(|member| Batch::of(&member.statements))
        .collect();
    let commit = Connection::commit_text();
    let mut sent = Vec::with_capacity(group.len());
    let mut again = Vec::new();
    lease.close_evicted();
    for (at, batch) in batches.iter().enumerate() {
        let mut steps = lease.steps(batch, &commit);
        let start = lease.link.out.len();
        match lease.write_all(&mut steps) {
            None => {
                lease.push_sync();
                group[at].is_sent.set(true);
                sent.push((at, steps));
            }
            // A parameter does not fit.
            Some(_) => {
                lease.link.out.truncate(start);
                again.push((at, None));
            }
        }
    }
    for (at, steps) in sent {
        let (member, batch) = (&group[at], &batches[at]);
        let mut outcome = Outcome::default();
        lease.read_results(&steps, batch, &mut outcome).await?;
        let failure = outcome.failure.take();
        let failure = failure.map(|failure| failure.in_words_of(batch.statements));
        let outdated = failure.as_ref().and_then(|failure| failure.outdated);
        outcome.failure = failure;
        match outdated {
            Some(outdated) => {
                member.is_sent.set(false);
                again.push((at, Some((outcome, outdated))));
            }
            None => member.finish(Ok(outcome)),
        }
    }
    // What needs to be prepared anew had no effect.
    for (at, failed) in again {
        let (member, batch) = (&group[at], batches[at]);
        if !member.is_wanted() {
            continue;
        }
        member.is_sent.set(true);
        let outcome = match failed {
            Some((outcome, outdated)) => lease.run_anew(batch, outcome, outdated).await,
            None => lease.run(batch).await,
        };
        match outcome {
            Err(error) if lease.is_broken() => return Err(error),
            outcome => member.finish(outcome),
        }
    }
    lease.cache.trim();
    Ok(())
}

impl Connection {
    /// Whether the statements are prepared here, have no effect on the session, and can be sent together with others.
    fn is_ready_for(&self, statements: &[Statement]) -> bool {
        statements.iter().all(|statement| {
            let prepared = self.cache.get(&statement.sql);
            prepared.is_some_and(|prepared| {
                prepared.session_state.is_none() && is_plain(&statement.sql)
            })
        })
    }
}
