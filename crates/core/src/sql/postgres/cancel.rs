//! Bringing a connection back to order after its user left in the middle.

use std::rc::Rc;
use std::time::Duration;

use super::cancel_key::CancelKey;
use super::connection::{Connection, TransactionStatus};
use super::startup::Connector;
use crate::sql::Error;

/// How long a statement may go on before it is cancelled: a cancellation costs the server a process.
const CANCEL_AFTER: Duration = Duration::from_millis(20);
/// Time until a cancellation is repeated for the first time; it doubles each time. A server ignores a cancellation that arrives before
/// it has read the statement.
const FIRST_CANCEL_RETRY: Duration = Duration::from_millis(50);

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
        // Reading must go on meanwhile: a server blocked in sending does not notice the cancellation. And the request
        // must have ended before anything else is sent, or it could hit that.
        let drained = tokio::time::timeout(retry_after, connection.drain());
        let (cancelled, drained) = tokio::join!(connector.cancel(key), drained);
        cancelled?;
        if let Ok(drained) = drained {
            drained?;
            break;
        }
        retry_after *= 2;
    }
    // The cancellation may have come too late for its statement. By this round trip the server has noticed it, and it
    // cannot hit the next statement.
    connection.push_sync();
    connection.drain().await
}
