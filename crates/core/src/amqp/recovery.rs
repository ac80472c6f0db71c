//! The life cycle of a connection: connect, restore, run, reconnect, until it is closed.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::channel_lifecycle::{
    cancel_consumer, consumer_cancelled, open_consumer, open_publisher,
};
use super::consumer_state::ConsumerShared;
use super::driver::{Driver, Ended};
use super::handshake::{self, Opened};
use super::registry::{DeclaredQueue, Registry};
use super::session::Session;
use super::shared::{Phase, Shared};
use super::status::{Event, Status};
use super::topology::Binding;
use super::{Error, declare};

/// Limit of an orderly close: outstanding confirms and the closing handshake.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
const RECONNECT_DELAY: Duration = Duration::from_millis(100);
/// Work continues within two seconds of the broker's return.
const MAX_RECONNECT_DELAY: Duration = Duration::from_secs(2);
/// Runs a connection until it is closed; `first` hears how the first attempt went.
pub(super) async fn run(shared: Arc<Shared>, first: oneshot::Sender<Result<(), Error>>) {
    let connection = run_until_closed(Arc::clone(&shared), first);
    shared.supervised(connection).await;
}

async fn run_until_closed(shared: Arc<Shared>, first: oneshot::Sender<Result<(), Error>>) {
    let mut opened = match handshake::connect_any(&shared.config).await {
        Ok(opened) => opened,
        Err(error) => {
            shared.end(&error);
            let _ = first.send(Err(error));
            return;
        }
    };
    let mut first = Some(first);
    loop {
        let error = match serve(&shared, opened, first.take()).await {
            Ended::Closed => break,
            Ended::Lost(error) => error,
        };
        if shared.is_closing() {
            break;
        }
        shared.events.push(Event::Disconnected {
            error: error.clone(),
        });
        match reconnect(&shared, error).await {
            Some(again) => opened = again,
            None => break,
        }
    }
    let error = shared.closed_error();
    shared.end(&error);
}

/// Drives one session to its end.
async fn serve(
    shared: &Arc<Shared>,
    opened: Opened,
    first: Option<oneshot::Sender<Result<(), Error>>>,
) -> Ended {
    shared.write_buffer.lock().frame_max = opened.limits.frame_max;
    shared.set_server(&opened.server);
    let generation = {
        let mut registry = shared.registry();
        registry.generation += 1;
        registry.generation
    };
    let session = Session::new(
        generation,
        opened.limits,
        opened.server.clone(),
        shared.config.target(),
        Arc::clone(&shared.io_waker),
    );
    let _ended = EndOnDrop(session.clone());
    let mut driver = Driver::new(Arc::clone(shared), session.clone(), opened);
    match first {
        Some(first) => {
            shared.set_status(Status::Connected);
            shared.advance(Phase::Up(session.clone()));
            let _ = first.send(Ok(()));
        }
        None => {
            shared.spawn(restore(Arc::clone(shared), session.clone()));
        }
    }
    let ended = tokio::select! {
        ended = driver.run() => ended,
        () = close(shared, &session) => Ended::Closed,
    };
    // From here on nothing can be committed to this session, so tearing down finds everything that was.
    shared.registry().generation += 1;
    shared.advance(Phase::Connecting);
    driver.tear_down();
    ended
}

/// Fails all calls of a session when it ends, even by a panic.
struct EndOnDrop(Session);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Begins an orderly end once it is asked for; finishes only if the broker does not answer in time.
async fn close(shared: &Shared, session: &Session) {
    shared.close_requested().await;
    let publishers = shared.registry().publishers.clone();
    let handshake = async {
        for publisher in publishers {
            publisher.sent().await;
        }
        session.close_connection();
        std::future::pending::<()>().await;
    };
    let _ = timeout(CLOSE_TIMEOUT, handshake).await;
}

/// Tries until a host answers; `None` if the connection is to be closed first.
async fn reconnect(shared: &Shared, error: Error) -> Option<Opened> {
    let mut last_error = error;
    let mut attempt = 1;
    loop {
        shared.set_status(Status::Connecting {
            attempt,
            last_error: Some(last_error),
        });
        let connecting = async {
            sleep(reconnect_delay(attempt)).await;
            handshake::connect_any(&shared.config).await
        };
        let connected = tokio::select! {
            connected = connecting => connected,
            () = shared.close_requested() => return None,
        };
        match connected {
            Ok(opened) => {
                shared.attempts.store(attempt, Ordering::Relaxed);
                return Some(opened);
            }
            Err(error) => {
                shared.events.push(Event::ReconnectFailed {
                    attempt,
                    error: error.clone(),
                });
                last_error = error;
                attempt = attempt.saturating_add(1);
            }
        }
    }
}

/// Doubles from attempt to attempt; a random part keeps many clients from coming back at the same moment.
fn reconnect_delay(attempt: u32) -> Duration {
    let longest = RECONNECT_DELAY
        .saturating_mul(1 << attempt.saturating_sub(1).min(10))
        .min(MAX_RECONNECT_DELAY);
    let random = RandomState::new().hash_one(attempt) as f64 / u64::MAX as f64;
    longest.mul_f64(0.5 + random / 2.0)
}

/// Puts everything back on a new session: channels, topology, consumers, then what was not confirmed.
///
/// A refusal is reported and skipped. Only the loss of the session ends it early; the next session then starts over.
async fn restore(shared: Arc<Shared>, session: Session) {
    if try_restore(&shared, &session).await.is_err() {
        return;
    }
    let attempts = shared.attempts.load(Ordering::Relaxed);
    let consumers = shared.commit(&session, |registry| {
        shared.restored();
        shared.advance(Phase::Up(session.clone()));
        shared.events.push(Event::Recovered { attempts });
        registry.restored();
        registry.consumers.clone()
    });
    // Cancelled after they were started and before there was a session to cancel them on.
    for consumer in consumers.unwrap_or_default() {
        if consumer.must_be_cancelled() {
            let _ = cancel_consumer(&session, &consumer).await;
        }
    }
}

async fn try_restore(shared: &Arc<Shared>, session: &Session) -> Result<(), Error> {
    let (publishers, consumers, control) = {
        let mut registry = shared.registry();
        let channel_max = session.limits().channel_max;
        let control = registry
            .has_topology()
            .then(|| registry.take_channel(channel_max))
            .transpose();
        (
            registry.publishers.clone(),
            registry.consumers.clone(),
            control,
        )
    };
    let mut open = Vec::with_capacity(publishers.len());
    for publisher in publishers.into_iter().filter(|known| known.is_wanted()) {
        let opened = open_publisher(shared, session, &publisher).await;
        // Its messages would wait for a channel that does not come.
        if let Err(error) = &opened
            && !error.ends_session()
        {
            publisher.close(error);
        }
        if report_refusal(shared, opened)?.is_some() {
            open.push(publisher);
        }
    }
    if let Some(channel) = report_refusal(shared, control)?.flatten() {
        let restored = restore_topology(shared, session, channel).await;
        shared.registry().release_channel(channel);
        restored?;
    }
    for consumer in consumers {
        restore_consumer(shared, session, &consumer).await?;
    }
    let online: Vec<_> = shared.commit(session, |_| {
        let publishers = open.iter();
        publishers.map(|publisher| publisher.go_online()).collect()
    })?;
    for (publisher, online) in open.into_iter().zip(online) {
        shared.restart_if_closed(session, publisher, online);
    }
    Ok(())
}

/// Reports a refusal and returns `None`; passes the loss of the session on to the caller.
fn report_refusal<T>(shared: &Shared, result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.ends_session() => Err(error),
        Err(error) => {
            shared.events.push(Event::RestoreFailed { error });
            Ok(None)
        }
    }
}

async fn restore_topology(shared: &Shared, session: &Session, channel: u16) -> Result<(), Error> {
    let (exchanges, queues) = {
        let registry = shared.registry();
        (registry.exchanges.clone(), registry.queues.clone())
    };
    session.open_control(channel).await?;
    for exchange in &exchanges {
        let declared = declare::exchange(session, channel, exchange).await;
        give_up_if_fatal(shared, &declared, |registry| {
            registry.forget_exchange(&exchange.name);
        });
        reopen_if_refused(shared, session, channel, declared).await?;
    }
    for queue in &queues {
        let declared = restore_queue(shared, session, channel, queue).await;
        give_up_if_fatal(shared, &declared, |registry| {
            registry.forget_queue(&queue.name);
        });
        reopen_if_refused(shared, session, channel, declared).await?;
    }
    // Queues may have got new names, and with them the bindings.
    let bindings: Vec<Binding> = shared.registry().bindings.clone();
    for binding in &bindings {
        let bound = declare::binding(session, channel, binding).await;
        give_up_if_fatal(shared, &bound, |registry| registry.forget_binding(binding));
        reopen_if_refused(shared, session, channel, bound).await?;
    }
    session.close_channel(channel).await
}

/// Forgets what the broker closes one connection after the other on: the connection would never come back.
fn give_up_if_fatal(
    shared: &Shared,
    result: &Result<(), Error>,
    forget: impl FnOnce(&mut Registry),
) {
    let mut registry = shared.registry();
    if let Err(error) = result
        && registry.must_give_up(result)
    {
        forget(&mut registry);
        let error = error.clone();
        shared.events.push(Event::RestoreFailed { error });
    }
}

async fn restore_queue(
    shared: &Shared,
    session: &Session,
    channel: u16,
    known: &DeclaredQueue,
) -> Result<(), Error> {
    let state = declare::queue(session, channel, &known.queue).await?;
    if state.name != known.name {
        shared.registry().rename_queue(&known.name, &state.name);
    }
    Ok(())
}

/// Opens the channel again if a refusal has closed it.
async fn reopen_if_refused(
    shared: &Shared,
    session: &Session,
    channel: u16,
    result: Result<(), Error>,
) -> Result<(), Error> {
    match report_refusal(shared, result)? {
        Some(()) => Ok(()),
        None => session.open_control(channel).await,
    }
}

async fn restore_consumer(
    shared: &Shared,
    session: &Session,
    consumer: &Arc<ConsumerShared>,
) -> Result<(), Error> {
    if !consumer.is_wanted() {
        return Ok(());
    }
    let started = open_consumer(shared, session, consumer).await;
    if let Err(error) = &started
        && (!error.ends_session() || shared.registry().must_give_up(&started))
    {
        consumer.fail(consumer_cancelled(consumer, error));
    }
    report_refusal(shared, started).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_stay_below_two_seconds() {
        for attempt in 1..40 {
            let pause = reconnect_delay(attempt);
            assert!(
                pause >= RECONNECT_DELAY / 2 && pause <= MAX_RECONNECT_DELAY,
                "{pause:?}"
            );
        }
        assert!(reconnect_delay(10) >= MAX_RECONNECT_DELAY / 2);
    }
}
