//! Answers that no handler gives.

use bytes::Bytes;
use hyper::header::{self, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode, Version};

use super::body::Body;
use super::request_body::BodyError;

/// What no handler should have to see.
pub(super) fn refusal(head: &Parts) -> Option<Response<Body>> {
    // RFC 9112 §3.2: exactly one Host.
    if head.version == Version::HTTP_11 && head.headers.get_all(header::HOST).iter().count() != 1 {
        return Some(last(StatusCode::BAD_REQUEST));
    }
    // RFC 9112 §3.2.3: a name alone is the target of CONNECT only.
    if head.uri.path().is_empty() && head.method != Method::CONNECT {
        return Some(last(StatusCode::BAD_REQUEST));
    }
    // RFC 9112 §6.3: what a proxy in front of us could read as another length than we do must not be answered.
    let mut codings = head.headers.get_all(header::TRANSFER_ENCODING).iter();
    let is_odd = |coding: &HeaderValue| !coding.as_bytes().eq_ignore_ascii_case(b"chunked");
    if codings.next().is_some_and(is_odd) || codings.next().is_some() {
        return Some(last(StatusCode::BAD_REQUEST));
    }
    // RFC 9110 §10.1.1
    let expectation = head.headers.get(header::EXPECT);
    let is_unknown = |value: &HeaderValue| !value.as_bytes().eq_ignore_ascii_case(b"100-continue");
    if expectation.is_some_and(is_unknown) {
        return Some(last(StatusCode::EXPECTATION_FAILED));
    }
    None
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
