//! The handle of a publisher.

use std::sync::Arc;

use super::Error;
use super::channel_lifecycle::flush_channel;
use super::handle::Handle;
use super::message::Message;
use super::publisher_state::{Confirm, Dispatcher, PublisherShared};

/// Sends messages over a channel of its own. Dropping it never blocks; what was published is still sent.
pub struct Publisher {
    shared: Arc<PublisherShared>,
    handle: Arc<Handle>,
}

impl Publisher {
    pub(super) fn new(shared: Arc<PublisherShared>, handle: Arc<Handle>) -> Self {
        Self { shared, handle }
    }

    /// Encodes the message for the I/O thread; never waits. `None` without confirms.
    ///
    /// While the connection is down, messages are kept up to the same bounds and sent when it is back.
    ///
    /// # Errors
    /// [`Error::Full`] when the window or the buffer has no room: wait for [`ready`](Self::ready). [`Error::Usage`] for a
    /// name longer than 255 bytes or headers larger than a frame. [`Error::Closed`] after the connection was closed.
    pub fn try_publish(&self, message: &Message<'_>) -> Result<Option<Confirm>, Error> {
        message.check()?;
        let id = self.shared.publish(message)?;
        Ok(id.map(|id| Confirm::new(Arc::clone(&self.shared), id)))
    }

    /// Like [`try_publish`](Self::try_publish), after waiting for room. Dropped before it ends, nothing was sent.
    pub async fn publish(&self, message: &Message<'_>) -> Result<Option<Confirm>, Error> {
        loop {
            match self.try_publish(message) {
                Err(Error::Full { .. }) => self.ready().await?,
                other => return other,
            }
        }
    }

    /// Waits until there is room in the window and in the buffer. Others may take it first.
    pub async fn ready(&self) -> Result<(), Error> {
        self.shared.ready().await
    }

    /// How many messages the broker has not confirmed yet.
    pub fn unconfirmed(&self) -> usize {
        self.shared.unconfirmed()
    }

    /// Waits until every message published so far is confirmed.
    ///
    /// # Errors
    /// The first failure since the last call of a message whose [`Confirm`] was dropped.
    pub async fn wait_for_confirms(&self) -> Result<(), Error> {
        self.shared.confirmed().await
    }

    /// Waits until the broker has read every message published so far, and confirmed it if this publisher confirms.
    pub async fn flush(&self) -> Result<(), Error> {
        if self.shared.confirm {
            return self.wait_for_confirms().await;
        }
        self.shared.online().await?;
        // The answer comes after the broker's channel has worked off everything in front of it.
        let channel = self.shared.channel;
        let flushed = self
            .handle
            .on_session(move |session| async move {
                flush_channel(&session, channel, 0, || "flush of a publisher".to_owned()).await
            })
            .await;
        // If a message made the broker close the channel, that is the reason why the flush failed too.
        self.shared.take_failure().and(flushed)
    }

    /// Wakes the tasks that wait for confirms on the thread that polls this future, which never completes.
    ///
    /// Optional. Without it each waiting task is woken from the I/O thread; with it one wake crosses per batch. Spawn it
    /// once where the confirms are awaited; dropping it is harmless.
    pub fn dispatcher(&self) -> Dispatcher {
        Dispatcher::new(Arc::clone(&self.shared))
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.handle.retire_publisher(&self.shared);
    }
}
