//! Validation of requests, and responses that no handler gives.

use bytes::Bytes;
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Version};

use super::body::Body;
use super::request_body::BodyError;

/// Validates a request. Returns whether the client expects 100 Continue.
///
/// # Errors
/// The status with which the request is refused, see [`closing_response`].
pub(super) fn validate<B>(request: &Request<B>, most_fields: usize) -> Result<bool, StatusCode> {
    if request.headers().len() > most_fields {
        return Err(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    }
    let (mut hosts, mut codings, mut is_malformed) = (0, 0, false);
    let (mut host, mut expectation) = (None, None);
    // One pass: looking up each field by its name would cost several times as much.
    for (name, value) in request.headers() {
        if *name == header::HOST {
            hosts += 1;
            host = Some(value.as_bytes());
            is_malformed |= !is_host(value.as_bytes());
        } else if *name == header::TRANSFER_ENCODING {
            codings += 1;
            is_malformed |= !value.as_bytes().eq_ignore_ascii_case(b"chunked");
        } else if *name == header::EXPECT {
            expectation = expectation.or(Some(value));
        }
    }
    // RFC 9112 §3.2: exactly one Host. HTTP/1.0 and HTTP/2 clients may omit it.
    let has_wrong_host = hosts > 1 || request.version() == Version::HTTP_11 && hosts == 0;
    // RFC 9112 §3.2.3: only CONNECT has a target without a path.
    let has_no_path = request.uri().path().is_empty() && request.method() != Method::CONNECT;
    // RFC 9112 §6.3: a proxy could read another length than this server (request smuggling).
    if has_wrong_host || has_no_path || is_malformed || codings > 1 {
        return Err(StatusCode::BAD_REQUEST);
    }
    let expects_continue = match expectation {
        None => false,
        Some(value) if value.as_bytes().eq_ignore_ascii_case(b"100-continue") => true,
        // RFC 9110 §10.1.1
        Some(_) => return Err(StatusCode::EXPECTATION_FAILED),
    };
    validate_authority(request, host)?;
    Ok(expects_continue)
}

fn validate_authority<B>(request: &Request<B>, host: Option<&[u8]>) -> Result<(), StatusCode> {
    let Some(authority) = request.uri().authority() else {
        return Ok(());
    };
    let authority = authority.as_str();
    // RFC 9110 §4.2.4: `user@host` could be displayed as the host. `is_host` refuses every `@`.
    if !is_host(authority.as_bytes()) {
        return Err(StatusCode::BAD_REQUEST);
    }
    // RFC 9113 §8.3.1: `host` must not differ. RFC 9112 §3.2.2: with a target in absolute form it is ignored.
    let scheme = request.uri().scheme_str();
    let is_same = |host| is_same_host(host, authority.as_bytes(), scheme);
    match request.version() == Version::HTTP_2 && !host.is_none_or(is_same) {
        true => Err(StatusCode::BAD_REQUEST),
        false => Ok(()),
    }
}

/// Replaces `Host` by the authority of the target if there is one, so that all parts of an application see the same host.
///
/// # Errors
/// The authority is no field value; [`validate`] has refused it.
pub(super) fn unify_host<B>(request: &mut Request<B>) -> Result<(), StatusCode> {
    let Some(authority) = request.uri().authority() else {
        return Ok(());
    };
    let authority = authority.as_str();
    if let Some(host) = request.headers().get(header::HOST)
        && host.as_bytes() == authority.as_bytes()
    {
        return Ok(());
    }
    let host = HeaderValue::from_str(authority).map_err(|_| StatusCode::BAD_REQUEST)?;
    request.headers_mut().insert(header::HOST, host);
    Ok(())
}

/// RFC 3986 §6.2.2.1 and §6.2.3: case is ignored, and the default port may be omitted.
fn is_same_host(one: &[u8], other: &[u8], scheme: Option<&str>) -> bool {
    let port: &[u8] = match scheme {
        Some("https") => b":443",
        _ => b":80",
    };
    let bare = |host| <[u8]>::strip_suffix(host, port).unwrap_or(host);
    bare(one).eq_ignore_ascii_case(bare(other))
}

/// RFC 3986 §3.2.2, and the port.
const OF_HOST: [bool; 256] = {
    let mut of_host = [false; 256];
    let marks = b"-._~%!$&'()*+,;=:[]";
    let mut index = 0;
    while index < marks.len() {
        of_host[marks[index] as usize] = true;
        index += 1;
    }
    let mut byte = 0;
    while byte < 128 {
        of_host[byte as usize] |= (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    of_host
};

/// Whether it has the form of a host with or without a port (RFC 3986 §3.2.2 and §3.2.3): a reader that takes `a:80:81` for the port 81, and
/// another that takes it for 80, would see two hosts.
pub(super) fn is_host(host: &[u8]) -> bool {
    let end = match host.strip_prefix(b"[") {
        Some(address) => match address.iter().position(|byte| b"[]".contains(byte)) {
            Some(end) if address[end] == b']' => end + 2,
            _ => return false,
        },
        None => {
            let end = host.iter().position(|byte| b":[]".contains(byte));
            end.unwrap_or(host.len())
        }
    };
    let (name, port) = host.split_at(end);
    let is_port = match port.split_first() {
        None => true,
        Some((colon, digits)) => *colon == b':' && digits.iter().all(u8::is_ascii_digit),
    };
    is_port && name.iter().all(|byte| OF_HOST[usize::from(*byte)])
}

pub(super) fn body_error_response(error: &BodyError) -> Response<Body> {
    closing_response(match error {
        BodyError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        BodyError::TimedOut { .. } | BodyError::TooSlow { .. } => StatusCode::REQUEST_TIMEOUT,
        BodyError::Incomplete { .. } | BodyError::Taken => StatusCode::BAD_REQUEST,
    })
}

/// A response after which the connection is closed, because what follows on it cannot be parsed reliably.
pub(super) fn closing_response(status: StatusCode) -> Response<Body> {
    let mut response = text_response(status);
    if status != StatusCode::SERVICE_UNAVAILABLE {
        add_close(&mut response);
    }
    response
}

pub(super) fn add_close(response: &mut Response<Body>) {
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(header::CONNECTION, close);
}

pub(super) fn text_response(status: StatusCode) -> Response<Body> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn validated(request: hyper::http::request::Builder) -> Result<Vec<String>, StatusCode> {
        let mut request = request.body(()).unwrap();
        validate(&request, 100)?;
        unify_host(&mut request)?;
        let hosts = request.headers().get_all(header::HOST).iter();
        Ok(hosts
            .map(|host| host.to_str().unwrap().to_owned())
            .collect())
    }

    fn http2(authority: &str) -> hyper::http::request::Builder {
        Request::get(format!("https://{authority}/")).version(Version::HTTP_2)
    }

    #[test]
    fn host_is_the_authority_of_the_target() {
        assert_eq!(
            validated(http2("internal")),
            Ok(vec!["internal".to_owned()])
        );
        let absolute = Request::get("http://internal/").header("host", "public");
        assert_eq!(validated(absolute), Ok(vec!["internal".to_owned()]));
        let origin = Request::get("/").header("host", "public");
        assert_eq!(validated(origin), Ok(vec!["public".to_owned()]));
    }

    #[test]
    fn two_authorities_of_one_request_are_refused() {
        let request = http2("internal").header("host", "public");
        assert_eq!(validated(request), Err(StatusCode::BAD_REQUEST));
        let twice = http2("a").header("host", "a").header("host", "a");
        assert_eq!(validated(twice), Err(StatusCode::BAD_REQUEST));
        let same = http2("Name:443").header("host", "name");
        assert_eq!(validated(same), Ok(vec!["Name:443".to_owned()]));
    }

    #[test]
    fn a_host_has_one_port_of_digits_or_none() {
        for host in [
            "",
            "a",
            "a:",
            "a:80",
            "1.2.3.4:1",
            "[::1]",
            "[::1]:",
            "[::1]:8080",
        ] {
            let request = Request::get("/").header("host", host);
            assert_eq!(validated(request), Ok(vec![host.to_owned()]), "{host}");
        }
        for host in [
            "a:x",
            "a:80x",
            "a:80:80",
            "::1",
            "a:-1",
            "[::1",
            "::1]",
            "[::1]x",
            "[::1]:x",
            "[a][b]",
            "a[b]",
            "[::1]:80:80",
        ] {
            let request = Request::get("/").header("host", host);
            assert_eq!(validated(request), Err(StatusCode::BAD_REQUEST), "{host}");
        }
        assert_eq!(
            validated(http2("a").header("host", "a:x")),
            Err(StatusCode::BAD_REQUEST)
        );
    }

    #[test]
    fn a_user_in_the_target_and_too_many_fields_are_refused() {
        assert_eq!(validated(http2("user@a")), Err(StatusCode::BAD_REQUEST));
        let mut many = http2("a");
        for number in 0..101 {
            many = many.header(format!("x-{number}"), "");
        }
        let too_large = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        assert_eq!(validated(many), Err(too_large));
    }
}
