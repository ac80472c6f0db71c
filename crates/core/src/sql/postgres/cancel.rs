//! Recovers connections after cancelled statements.

use std::rc::Rc;
use std::time::Duration;

use super::cancel_key::CancelKey;
use super::connection::{Connection, TransactionStatus};
use super::startup::Connector;
use crate::sql::Error;

/// Time for a statement to end by itself before it is cancelled, because a cancellation costs the server a process.
const CANCEL_AFTER: Duration = Duration::from_millis(20);
/// Time until a cancellation is repeated for the first time; it doubles each time. A server ignores a cancellation that arrives before
/// it has read the statement.
const FIRST_CANCEL_RETRY: Duration = Duration::from_millis(50);

/// Cancels the running statement, reads the rest of its answer and rolls back. `None` if that fails. The pool limits the time.
pub(super) async fn recover(
    mut connection: Box<Connection>,
    connector: &Connector,
) -> Option<Box<Connection>> {
    let tidied = tidy(&mut connection, connector).await;
    tidied.is_ok().then_some(connection)
}

/// Cancels the statement of a connection that was closed: the server would notice a closed socket only when it
/// next writes to it. Limited by the connect timeout.
pub(super) async fn terminate(key: CancelKey, connector: Rc<Connector>) {
    // The session may have ended in the meantime.
    let _ = connector.cancel(key).await;
}

async fn tidy(connection: &mut Connection, connector: &Connector) -> Result<(), Error> {
    if connection.is_busy() {
        match tokio::time::timeout(CANCEL_AFTER, connection.drain()).await {
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
    let mut retry_after = FIRST_CANCEL_RETRY;
    loop {
        // Reading continues: a server that is blocked in sending does not notice the cancellation. The request
        // must have ended before anything else is sent, because it could cancel that.
        let drained = tokio::time::timeout(retry_after, connection.drain());
        let (cancelled, drained) = tokio::join!(connector.cancel(key), drained);
        cancelled?;
        if let Ok(drained) = drained {
            drained?;
            break;
        }
        retry_after *= 2;
    }
    // The cancellation may be too late for its statement. After this round trip the server has processed it, so that it
    // cannot hit the next statement.
    connection.push_sync();
    connection.drain().await
}
