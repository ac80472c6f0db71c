use hyper::{Response, StatusCode};

use super::body::Body;
use super::response_head::EncodedFields;

/// The connection of a request, as long as hyper does not serve it: a plain response is written from the call that gives it.
///
/// The connection knows its requests and not the other way round, so a request has only this of it.
pub(super) trait ResponseWriter {
    /// Whether a response can be written now.
    fn is_ready(&self) -> bool;

    /// Whether the connection's task has to write the rest of a response.
    fn has_unsent(&self) -> bool;

    /// Writes a response. Returns it, with nothing written, if it is not plain or cannot be written now.
    fn write(&self, response: Response<Body>) -> Option<Response<Body>>;

    /// The same for the parts of a plain one, while the writer [is ready](Self::is_ready). The response is on its way when this returns, as
    /// far as the socket takes it.
    fn write_parts(&self, status: StatusCode, fields: &EncodedFields, body: &[u8]);
}
