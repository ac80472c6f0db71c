use std::future::Future;
use std::time::Duration;

/// How the pool makes, judges and ends its connections.
pub trait Manage: 'static {
    type Connection: 'static;
    type Error: Clone + 'static;

    fn connect(&self) -> impl Future<Output = Result<Self::Connection, Self::Error>>;

    /// Whether [`lend`](Self::lend) is to see every connection before its borrower does.
    fn sees_lending(&self) -> bool {
        false
    }

    /// Has a last look at a connection that is lent; after an error it is gone. The borrower waits, and counts on an answer
    /// `within` that time (zero: any).
    fn lend(
        &self,
        connection: Self::Connection,
        within: Duration,
    ) -> impl Future<Output = Result<Self::Connection, Self::Error>> {
        let _ = within;
        std::future::ready(Ok(connection))
    }

    /// Whether [`recover`](Self::recover) is to see what comes back clean, too.
    fn sees_returns(&self) -> bool {
        false
    }

    /// Asked before a connection is lent and when it comes back. Must be cheap: no round trip.
    fn condition(&self, connection: &mut Self::Connection) -> Condition;

    /// Makes a dirty connection clean again; `None` when that is impossible. The connection counts as in use meanwhile; the
    /// pool drops the future after its return timeout.
    fn recover(
        &self,
        connection: Self::Connection,
    ) -> impl Future<Output = Option<Self::Connection>>;

    /// Asked before [`recover`](Self::recover): what ends, on the server, the work of a connection whose recovery does not end
    /// within the return timeout. It runs beside the pool after the recovery was dropped, has to limit its own time, and is
    /// dropped unused when the recovery ends in time. `None` where closing the connection is enough.
    fn terminate(
        &self,
        connection: &mut Self::Connection,
    ) -> Option<impl Future<Output = ()> + 'static> {
        let _ = connection;
        None::<std::future::Ready<()>>
    }

    /// A round trip that shows whether the peer still answers; `None` when it does not. The pool drops the future after its
    /// validation timeout.
    fn validate(
        &self,
        connection: Self::Connection,
    ) -> impl Future<Output = Option<Self::Connection>> {
        std::future::ready(Some(connection))
    }

    /// Whether the error means that no server answers: then nobody can be served, and lent connections are no hope either.
    fn is_down(&self, _error: &Self::Error) -> bool {
        false
    }

    /// Says good-bye without waiting.
    fn close(&self, connection: Self::Connection);
}

/// What a connection is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// Can be lent as it is.
    Clean,
    /// Its borrower left in the middle of something.
    Dirty,
    /// Of no use to anybody.
    Broken,
}
