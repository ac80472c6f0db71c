//! Recovers connections after cancelled statements, and cleans their sessions.

use std::rc::Rc;
use std::time::Duration;

use super::connection::Connection;
use super::startup::Connector;
use crate::sql::Error;

/// Time for a statement to end by itself before it is cancelled, because a cancellation costs a connection.
const CANCEL_AFTER: Duration = Duration::from_millis(20);
/// Time until a cancellation is repeated for the first time; it doubles each time. More statements may have been sent behind the one
/// that it stops.
const FIRST_CANCEL_RETRY: Duration = Duration::from_millis(50);

/// Cancels the running statement, reads the rest of its answer, rolls back and cleans the session. `None` if that fails. The
/// pool limits the time.
pub(super) async fn recover(
    mut connection: Box<Connection>,
    connector: &Connector,
) -> Option<Box<Connection>> {
    let tidied = tidy(&mut connection, connector).await;
    tidied.is_ok().then_some(connection)
}

/// Kills the session on the server, which would notice a closed socket only at its next write. Limited by the connect
/// timeout.
pub(super) async fn terminate(id: u32, connector: Rc<Connector>) {
    // The session may have ended in the meantime.
    let _ = connector.kill(id, true).await;
}

async fn tidy(connection: &mut Connection, connector: &Connector) -> Result<(), Error> {
    if connection.is_busy() {
        match tokio::time::timeout(CANCEL_AFTER, connection.drain()).await {
            Ok(drained) => drained?,
            Err(_) => stop(connection, connector).await?,
        }
    }
    if connection.has_changed_session() {
        // Also rolls back. A session without a default database could not leave the one it has changed to.
        if connector.config.connect.database.is_none() {
            return Err(connection.give_up("its session cannot be reset"));
        }
        return connector.reset(connection).await;
    }
    if !connection.is_idle() {
        connection.rollback().await?;
    }
    Ok(())
}

async fn stop(connection: &mut Connection, connector: &Connector) -> Result<(), Error> {
    let id = connection.id;
    let mut retry_after = FIRST_CANCEL_RETRY;
    loop {
        // Reading continues: a server that is blocked in sending does not notice the cancellation. The request
        // must have ended before anything else is sent, because it could cancel that.
        let drained = tokio::time::timeout(retry_after, connection.drain());
        let (killed, drained) = tokio::join!(connector.kill(id, false), drained);
        killed?;
        if let Ok(drained) = drained {
            drained?;
            break;
        }
        retry_after *= 2;
    }
    // A late cancellation hits this statement instead of the next one.
    connection.push_control("DO 0");
    connection.drain().await
}
