//! Answers that no handler gives.

use bytes::Bytes;
use hyper::header::{self, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode, Version};

use super::body::Body;
use super::request_body::BodyError;

/// Whether the client waits to be asked for the body.
///
/// # Errors
/// The status of the [`last`] answer to a request that no handler should have to see.
pub(super) fn vet(head: &Parts) -> Result<bool, StatusCode> {
    let (mut hosts, mut codings, mut is_odd, mut expectation) = (0, 0, false, None);
    // Looking up each of them by its name would cost several times as much.
    for (name, value) in &head.headers {
        if *name == header::HOST {
            hosts += 1;
            is_odd |= !value.as_bytes().iter().all(|byte| may_be_of_host(*byte));
        } else if *name == header::TRANSFER_ENCODING {
            codings += 1;
            is_odd |= !value.as_bytes().eq_ignore_ascii_case(b"chunked");
        } else if *name == header::EXPECT {
            expectation = expectation.or(Some(value));
        }
    }
    // RFC 9112 §3.2: exactly one Host, which clients before HTTP/1.1 and those of HTTP/2 may leave out.
    let has_wrong_host = hosts > 1 || head.version == Version::HTTP_11 && hosts == 0;
    // RFC 9112 §3.2.3: a name alone is the target of CONNECT only.
    let has_no_path = head.uri.path().is_empty() && head.method != Method::CONNECT;
    // RFC 9112 §6.3: what a proxy in front of us could read as another length than we do must not be answered.
    // RFC 9110 §4.2.4: whoever shows the authority would show a user for a host.
    let has_user = head
        .uri
        .authority()
        .is_some_and(|authority| authority.as_str().contains('@'));
    if has_wrong_host || has_no_path || has_user || is_odd || codings > 1 {
        return Err(StatusCode::BAD_REQUEST);
    }
    // RFC 9110 §10.1.1
    match expectation {
        None => Ok(false),
        Some(value) if value.as_bytes().eq_ignore_ascii_case(b"100-continue") => Ok(true),
        Some(_) => Err(StatusCode::EXPECTATION_FAILED),
    }
}

/// RFC 3986 §3.2.2, and the port behind it.
fn may_be_of_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=:[]".contains(&byte)
}

pub(super) fn unread(error: &BodyError) -> Response<Body> {
    last(match error {
        BodyError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        BodyError::TimedOut { .. } => StatusCode::REQUEST_TIMEOUT,
        BodyError::Incomplete { .. } | BodyError::Taken => StatusCode::BAD_REQUEST,
    })
}

/// The answer after which the connection ends, because what follows on it could be anything.
pub(super) fn last(status: StatusCode) -> Response<Body> {
    let mut response = plain(status);
    if status != StatusCode::SERVICE_UNAVAILABLE {
        close(&mut response);
    }
    response
}

pub(super) fn close(response: &mut Response<Body>) {
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(header::CONNECTION, close);
}

pub(super) fn plain(status: StatusCode) -> Response<Body> {
    let reason = status.canonical_reason().unwrap_or_default();
    let text = format!("{} {reason}\n", status.as_u16());
    let mut response = Response::new(Body::Full(Bytes::from(text)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, kind);
    if status == StatusCode::SERVICE_UNAVAILABLE {
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}
