/// One side of a body has given up before its end: the client must not take what it has got for the whole, and nothing more can be
/// written.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the response was not written to its end")]
pub struct BodyAborted;
