/// A kind of calls with a budget of its own, so that calls that a client can hold open do not take the places of calls that end by
/// themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lane {
    /// One message each way: ends when its handler does.
    Unary,
    /// A stream of messages, either way.
    Stream,
    /// Waits for changes without an end, as `grpc.health.v1.Health/Watch` does.
    Watch,
}
