//! Bringing a connection back to order after its user left in the middle.

use std::rc::Rc;
use std::time::Duration;

use super::connection::{Connection, TransactionStatus};
use super::startup::Connector;
use super::text::Malformed;
use super::wire::Reader;
use crate::sql::Error;

/// A statement that is almost done is cheaper to wait for than to cancel, which costs the server a process.
const GRACE: Duration = Duration::from_millis(20);
/// How long the first cancellation may take to show. It is repeated: a server ignores one that arrives before it has read
/// the statement.
const FIRST_PATIENCE: Duration = Duration::from_millis(50);
/// What the server wants to see in a `CancelRequest` (`BackendKeyData`).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CancelKey {
    pub(super) process_id: i32,
    pub(super) secret: i32,
}

impl CancelKey {
    pub(super) fn read(body: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(body);
        Ok(Self {
            process_id: reader.i32()?,
            secret: reader.i32()?,
        })
    }
}

/// Stops what is running, reads what is left of its answer and rolls back. `None` when that fails. The pool limits the time.
pub(super) async fn recover(
    mut connection: Box<Connection>,
    connector: &Connector,
) -> Option<Box<Connection>> {
    let tidied = tidy(&mut connection, connector).await;
    tidied.is_ok().then_some(connection)
}

/// Stops what a connection that was closed meanwhile has left running: the server would notice a closed socket only when it
/// next writes to it. Limited by the connect timeout.
pub(super) async fn terminate(key: CancelKey, connector: Rc<Connector>) {
    // It may have gone by itself meanwhile.
    let _ = connector.cancel(key).await;
}

async fn tidy(connection: &mut Connection, connector: &Connector) -> Result<(), Error> {
    if connection.is_busy() {
        match tokio::time::timeout(GRACE, connection.drain()).await {
            Ok(drained) => drained?,
            Err(_) => stop(connection, connector).await?,
        }
    }
    if connection.status() != TransactionStatus::Idle {
        connection.rollback().await?;
    }
    connection.reset_session().await
}

async fn stop(connection: &mut Connection, connector: &Connector) -> Result<(), Error> {
    let key = connection.cancel_key;
    let mut patience = FIRST_PATIENCE;
    loop {
        // Reading must go on meanwhile: a server blocked in sending does not notice the cancellation. And the request
        // must have ended before anything else is sent, or it could hit that.
        let drained = tokio::time::timeout(patience, connection.drain());
        let (cancelled, drained) = tokio::join!(connector.cancel(key), drained);
        cancelled?;
        if let Ok(drained) = drained {
            drained?;
            break;
        }
        patience *= 2;
    }
    // The cancellation may have come too late for its statement. By this round trip the server has noticed it, and it
    // cannot hit the next statement.
    connection.push_sync();
    connection.drain().await
}
