//! Manages the connections of a pool, for every kind of server.

use std::rc::Rc;
use std::time::Duration;

use super::Error;
use super::hooks::HookCalls;
use super::server::{Server, ServerConnection};
use crate::pool::{Condition, Manage};

/// Time for a statement to end by itself before it is cancelled, because a cancellation costs the server a connection.
const CANCEL_AFTER: Duration = Duration::from_millis(20);
/// Time until a cancellation is repeated for the first time; it doubles each time. A server ignores a cancellation that arrives before
/// it has read the statement, and more statements may have been sent after the cancelled one.
const FIRST_CANCEL_RETRY: Duration = Duration::from_millis(50);

/// Opens, checks, cleans and closes the connections of a pool.
pub struct ServerManager<S: Server> {
    pub(super) server: Rc<S>,
    pub(super) hook_calls: Rc<HookCalls<Box<S::Connection>>>,
}

impl<S: Server> ServerManager<S> {
    pub(super) fn new(config: S::Config, hook_calls: Rc<HookCalls<Box<S::Connection>>>) -> Self {
        Self {
            server: Rc::new(S::new(config)),
            hook_calls,
        }
    }

    /// Ends the running statement, rolls back and cleans the session. `None` if that fails. The pool limits the time.
    async fn clean(&self, mut connection: Box<S::Connection>) -> Option<Box<S::Connection>> {
        self.settle(&mut connection).await.ok()?;
        self.server.clean(&mut connection).await.ok()?;
        self.hook_calls.cleaned(connection).await
    }

    /// Reads the rest of the answers, and cancels a statement that takes long.
    pub(super) async fn settle(&self, connection: &mut S::Connection) -> Result<(), Error> {
        if !connection.is_busy() {
            return Ok(());
        }
        match tokio::time::timeout(CANCEL_AFTER, connection.drain()).await {
            Ok(drained) => drained,
            Err(_) => self.cancel(connection).await,
        }
    }

    async fn cancel(&self, connection: &mut S::Connection) -> Result<(), Error> {
        let key = connection.key();
        let mut retry_after = FIRST_CANCEL_RETRY;
        loop {
            // Reading continues: a server that is blocked in sending does not notice the cancellation. The request
            // must have ended before anything else is sent, because it could cancel that.
            let drained = tokio::time::timeout(retry_after, connection.drain());
            let (cancelled, drained) = tokio::join!(self.server.cancel(key), drained);
            cancelled?;
            if let Ok(drained) = drained {
                drained?;
                break;
            }
            retry_after *= 2;
        }
        // The cancellation may be too late for its statement. It hits this request instead of the next statement.
        connection.push_ping();
        connection.drain().await
    }
}

impl<S: Server> Manage for ServerManager<S> {
    /// Boxed because it is moved at every borrow.
    type Connection = Box<S::Connection>;
    type Error = Error;

    async fn connect(&self) -> Result<Box<S::Connection>, Error> {
        let connection = self.server.connect().await.map(Box::new)?;
        self.hook_calls.created(connection).await
    }

    fn has_borrow_hook(&self) -> bool {
        self.hook_calls.hooks.borrowed
    }

    async fn on_borrow(
        &self,
        connection: Box<S::Connection>,
        within: Duration,
    ) -> Result<Box<S::Connection>, Error> {
        self.hook_calls.borrowed(connection, within).await
    }

    fn has_return_hook(&self) -> bool {
        self.hook_calls.hooks.returned
    }

    fn condition(&self, connection: &mut Box<S::Connection>) -> Condition {
        connection.condition()
    }

    async fn recover(&self, connection: Box<S::Connection>) -> Option<Box<S::Connection>> {
        let mut connection = self.clean(connection).await?;
        if self.hook_calls.hooks.returned {
            connection = self.hook_calls.returned(connection).await?;
            if connection.condition() == Condition::Dirty {
                connection = self.clean(connection).await?;
            }
        }
        Some(connection)
    }

    fn terminate(
        &self,
        connection: &mut Box<S::Connection>,
    ) -> Option<impl Future<Output = ()> + 'static> {
        let terminated = Rc::clone(&self.server).terminate(connection.key());
        Some(async move {
            // The session may have ended in the meantime.
            let _ = terminated.await;
        })
    }

    async fn validate(&self, mut connection: Box<S::Connection>) -> Option<Box<S::Connection>> {
        connection.push_ping();
        connection.drain().await.is_ok().then_some(connection)
    }

    fn is_down(&self, error: &Error) -> bool {
        error.is_down()
    }

    fn close(&self, mut connection: Box<S::Connection>) {
        connection.quit();
    }
}
