use std::error::Error as _;

use h2::Reason;

use super::endpoint::HEADER_BYTES;
use crate::grpc::status::{Code, Status};

/// The status for a lost connection or stream, by doc/PROTOCOL-HTTP2.md of grpc/grpc.
pub(super) fn status_of(error: &hyper::Error) -> Status {
    let source = error.source();
    let code = source
        .and_then(|source| source.downcast_ref::<h2::Error>())
        .filter(|error| error.is_reset())
        .and_then(h2::Error::reason)
        .map_or(Code::UNAVAILABLE, of_reset);
    let what = match code {
        Code::UNAVAILABLE => "the connection was lost",
        _ => "the server broke the call off",
    };
    let mut message = match source {
        Some(source) => format!("{what}: {error}: {source}"),
        None => format!("{what}: {error}"),
    };
    if is_refused_header_list(error) {
        message.push_str(&header_list_limit());
    }
    Status::new(code, message)
}

/// The status of an answer without one. h2 drops the fields of trailers that are too large, silently.
pub(super) fn no_status() -> Status {
    let message = format!("the server sent no grpc-status{}", header_list_limit());
    Status::new(Code::UNKNOWN, message)
}

fn header_list_limit() -> String {
    format!("; this client accepts no header list above {HEADER_BYTES} bytes")
}

/// Whether the client itself has refused what it received in a way in which h2 refuses a header list that is too large, among others: it
/// resets the stream, or closes the connection where the list is much larger.
fn is_refused_header_list(error: &hyper::Error) -> bool {
    let source = error.source();
    source
        .and_then(|source| source.downcast_ref::<h2::Error>())
        .filter(|error| error.is_library())
        .and_then(h2::Error::reason)
        .is_some_and(|reason| {
            matches!(
                reason,
                Reason::PROTOCOL_ERROR | Reason::COMPRESSION_ERROR | Reason::ENHANCE_YOUR_CALM
            )
        })
}

/// Whether the server has not processed the call, so that any call may be retried.
pub(super) fn is_unprocessed(error: &hyper::Error) -> bool {
    let source = error.source();
    let Some(error) = source.and_then(|source| source.downcast_ref::<h2::Error>()) else {
        return false;
    };
    let says = |reason| error.reason() == Some(reason);
    // A stream that ends by GOAWAY is above the last processed one (RFC 9113 §6.8).
    error.is_remote()
        && (error.is_reset() && says(Reason::REFUSED_STREAM)
            || error.is_go_away() && says(Reason::NO_ERROR))
}

fn of_reset(reason: Reason) -> Code {
    match reason {
        Reason::CANCEL => Code::CANCELLED,
        Reason::REFUSED_STREAM => Code::UNAVAILABLE,
        Reason::ENHANCE_YOUR_CALM => Code::RESOURCE_EXHAUSTED,
        Reason::INADEQUATE_SECURITY => Code::PERMISSION_DENIED,
        _ => Code::INTERNAL,
    }
}
