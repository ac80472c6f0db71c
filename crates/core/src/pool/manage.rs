use std::future::Future;
use std::time::Duration;

/// Opens, checks, cleans and closes the connections of a pool.
pub trait Manage: 'static {
    type Connection: 'static;
    type Error: Clone + 'static;

    fn connect(&self) -> impl Future<Output = Result<Self::Connection, Self::Error>>;

    /// Whether the pool calls [`on_borrow`](Self::on_borrow) before it lends a connection.
    fn has_borrow_hook(&self) -> bool {
        false
    }

    /// Prepares a connection for its borrower, who waits; after an error the connection is closed. `within` is the time the
    /// borrower waits, zero for unlimited.
    fn on_borrow(
        &self,
        connection: Self::Connection,
        within: Duration,
    ) -> impl Future<Output = Result<Self::Connection, Self::Error>> {
        let _ = within;
        std::future::ready(Ok(connection))
    }

    /// Whether the pool calls [`recover`](Self::recover) also for connections that are returned clean.
    fn has_return_hook(&self) -> bool {
        false
    }

    /// The condition of a connection, before it is lent and when it is returned. Must not make a round trip.
    fn condition(&self, connection: &mut Self::Connection) -> Condition;

    /// Cleans a returned connection; `None` when that is impossible. The connection counts as in use meanwhile. The pool drops
    /// the future after the return timeout.
    fn recover(
        &self,
        connection: Self::Connection,
    ) -> impl Future<Output = Option<Self::Connection>>;

    /// Makes a future that ends a connection's work on the server. The pool calls this before [`recover`](Self::recover) and
    /// runs the future only when recovery exceeds the return timeout. The future must limit its own time. `None` where closing
    /// the connection is enough.
    fn terminate(
        &self,
        connection: &mut Self::Connection,
    ) -> Option<impl Future<Output = ()> + 'static> {
        let _ = connection;
        None::<std::future::Ready<()>>
    }

    /// Checks with a round trip whether the server still answers; `None` when it does not. The pool drops the future after the
    /// validation timeout.
    fn validate(
        &self,
        connection: Self::Connection,
    ) -> impl Future<Output = Option<Self::Connection>> {
        std::future::ready(Some(connection))
    }

    /// Whether the error means that no server answers, so that waiting for lent connections is useless too.
    fn is_down(&self, _error: &Self::Error) -> bool {
        false
    }

    /// Closes a connection without waiting.
    fn close(&self, connection: Self::Connection);
}

/// Whether a connection can be lent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// It can be lent.
    Clean,
    /// Its borrower has left a statement, a transaction or session state unfinished; it must be cleaned first.
    Dirty,
    /// It must be closed.
    Broken,
}
