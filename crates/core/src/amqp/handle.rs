use std::future::Future;
use std::sync::Arc;

use super::Error;
use super::consumer_state::ConsumerShared;
use super::publisher_state::PublisherShared;
use super::session::Session;
use super::shared::{Phase, Shared};

/// The connection as its users hold it; it closes when the last handle is dropped.
pub(super) struct Handle {
    pub(super) shared: Arc<Shared>,
    pub(super) runtime: tokio::runtime::Handle,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.request_close();
    }
}

impl Handle {
    /// Runs `attempt` on the current session, and again on the next one if that session was lost meanwhile.
    pub(super) async fn on_session<T, F, Fut>(&self, attempt: F) -> Result<T, Error>
    where
        F: Fn(Session) -> Fut,
        Fut: Future<Output = Result<T, Error>>,
    {
        self.shared.on_session(attempt).await
    }

    /// Runs `attempt` with a channel for this one purpose; it ends even if the caller stops waiting.
    pub(super) async fn on_control_channel<T, F, Fut>(&self, attempt: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Fn(Arc<Shared>, Session, u16) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, Error>> + Send,
    {
        let shared = Arc::clone(&self.shared);
        let task = self.runtime.spawn(async move {
            let channel = shared.take_channel().await?;
            let result = shared
                .on_session(|session| control(&shared, session, channel, &attempt))
                .await;
            shared.registry().release_channel(channel);
            result
        });
        joined(task).await
    }

    pub(super) fn retire_publisher(&self, publisher: &Arc<PublisherShared>) {
        let shared = Arc::clone(&self.shared);
        let publisher = Arc::clone(publisher);
        self.runtime
            .spawn(async move { shared.end_publisher(publisher).await });
    }

    pub(super) fn retire_consumer(&self, consumer: &Arc<ConsumerShared>) {
        consumer.retire();
        let shared = Arc::clone(&self.shared);
        let consumer = Arc::clone(consumer);
        self.runtime
            .spawn(async move { shared.end_consumer(&consumer).await });
    }

    /// The session, unless the connection is being restored or closed.
    pub(super) fn current_session(&self) -> Option<Session> {
        match &*self.shared.phase.borrow() {
            Phase::Up(session) => Some(session.clone()),
            _ => None,
        }
    }

    /// For an operation that no later session repeats: in which way the connection was lost makes no difference to it.
    pub(super) fn unrepeated<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        result.map_err(|error| match error {
            Error::ClosedByBroker { .. } => Error::ConnectionLost {
                target: self.shared.config.target(),
                message: error.to_string(),
            },
            other => other,
        })
    }

    pub(super) fn disconnected(&self) -> Error {
        Error::ConnectionLost {
            target: self.shared.config.target(),
            message: "it is being restored".into(),
        }
    }
}

async fn control<T, F, Fut>(
    shared: &Arc<Shared>,
    session: Session,
    channel: u16,
    attempt: &F,
) -> Result<T, Error>
where
    F: Fn(Arc<Shared>, Session, u16) -> Fut,
    Fut: Future<Output = Result<T, Error>>,
{
    session.open_control(channel).await?;
    let result = attempt(Arc::clone(shared), session.clone(), channel).await;
    if result.as_ref().is_err_and(Error::ends_session) {
        return result;
    }
    session.close_channel(channel).await?;
    result
}

pub(super) async fn joined<T>(task: tokio::task::JoinHandle<Result<T, Error>>) -> Result<T, Error> {
    match task.await {
        Ok(result) => result,
        Err(error) => Err(Error::usage(format!("an AMQP task ended early: {error}"))),
    }
}
