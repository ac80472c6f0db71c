//! Heads of responses as bytes, for connections that are served without hyper.

use std::io::Write as _;

use hyper::body::Body as _;
use hyper::http::HeaderMap;
use hyper::{Response, StatusCode, header};

use super::body::Body;
use super::clock::Tick;
use super::date::Date;

/// The fields of a response as bytes, which only [`encode`](Self::encode) makes: they frame nothing and are valid.
#[derive(Debug, Clone)]
pub struct EncodedFields {
    bytes: Box<[u8]>,
    has_date: bool,
}

impl EncodedFields {
    /// `None` if a field is about the framing of the message or the connection: hyper knows what follows from it.
    pub fn encode(fields: &HeaderMap) -> Option<Self> {
        let mut bytes = Vec::new();
        let has_date = encode_fields(fields, &mut bytes)?;
        Some(Self {
            bytes: bytes.into(),
            has_date,
        })
    }
}

/// Returns whether there is a date among them, which takes the place of the server's own. Every response of Symfony and Laravel has one.
fn encode_fields(fields: &HeaderMap, out: &mut Vec<u8>) -> Option<bool> {
    let mut has_date = false;
    for (name, value) in fields {
        if [header::CONTENT_LENGTH, header::TRANSFER_ENCODING].contains(name) {
            // The length of the body is written instead, as `frame` has hyper do it.
            continue;
        }
        let is_of_connection = [
            header::CONNECTION,
            header::TE,
            header::TRAILER,
            header::UPGRADE,
        ]
        .contains(name);
        if is_of_connection {
            return None;
        }
        has_date |= *name == header::DATE;
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    Some(has_date)
}

/// Whether the body of a response with that status is what the handler says.
pub(super) fn is_plain(status: StatusCode) -> bool {
    let has_body = !matches!(
        status,
        StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED
    );
    has_body && !status.is_informational()
}

/// Writes the head of a response with a body of that length. Its status [is plain](is_plain).
pub(super) fn write_head(
    status: StatusCode,
    fields: &EncodedFields,
    length: usize,
    date: (&Date, Tick),
    out: &mut Vec<u8>,
) {
    begin(status, out);
    out.extend_from_slice(&fields.bytes);
    end(length as u64, (!fields.has_date).then_some(date), out);
}

/// Writes the head of a response whose body is a string or a file. `None`, and nothing is written, if hyper has to write the response.
pub(super) fn write_head_of(
    response: &Response<Body>,
    date: (&Date, Tick),
    out: &mut Vec<u8>,
) -> Option<()> {
    let body = response.body();
    if !matches!(body, Body::Empty | Body::Full(_) | Body::File(_)) || !is_plain(response.status())
    {
        return None;
    }
    let length = body.size_hint().exact()?;
    let start = out.len();
    begin(response.status(), out);
    let Some(has_date) = encode_fields(response.headers(), out) else {
        out.truncate(start);
        return None;
    };
    end(length, (!has_date).then_some(date), out);
    Some(())
}

fn begin(status: StatusCode, out: &mut Vec<u8>) {
    if status == StatusCode::OK {
        out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
        return;
    }
    let reason = status.canonical_reason().unwrap_or_default();
    // Writing to a vector does not fail.
    let _ = write!(out, "HTTP/1.1 {} {reason}\r\n", status.as_str());
}

fn end(length: u64, date: Option<(&Date, Tick)>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"content-length: ");
    let mut digits = [0; 20];
    out.extend_from_slice(decimal(length, &mut digits));
    if let Some((date, now)) = date {
        out.extend_from_slice(b"\r\ndate: ");
        date.write(now, out);
    }
    out.extend_from_slice(b"\r\n\r\n");
}

/// `write!` takes ten times as long.
fn decimal(mut number: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[at..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(response: &Response<Body>) -> Option<String> {
        let mut out = Vec::new();
        write_head_of(response, (&Date::default(), 1), &mut out)?;
        Some(String::from_utf8(out).unwrap())
    }

    fn response(status: u16, fields: &[(&'static str, &'static str)]) -> Response<Body> {
        let mut response = Response::builder().status(status);
        for (name, value) in fields {
            response = response.header(*name, *value);
        }
        response.body(Body::Full("body".into())).unwrap()
    }

    #[test]
    fn a_head_has_the_fields_the_length_and_a_date() {
        let text = written(&response(404, &[("a", "1"), ("b", "2"), ("a", "3")])).unwrap();
        let (head, rest) = text.split_once("date: ").unwrap();
        assert_eq!(
            head,
            "HTTP/1.1 404 Not Found\r\na: 1\r\na: 3\r\nb: 2\r\ncontent-length: 4\r\n"
        );
        let date = rest.strip_suffix("\r\n\r\n").unwrap();
        assert!(httpdate::parse_http_date(date).is_ok(), "{date}");
    }

    #[test]
    fn a_date_of_the_response_is_the_only_one() {
        let own = [("date", "Sun, 06 Nov 1994 08:49:37 GMT"), ("a", "1")];
        let expected = "HTTP/1.1 200 OK\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\na: 1\r\ncontent-length: 4\r\n\r\n";
        assert_eq!(written(&response(200, &own)).unwrap(), expected);

        let response = response(200, &own);
        let fields = EncodedFields::encode(response.headers()).unwrap();
        let mut head = Vec::new();
        write_head(StatusCode::OK, &fields, 4, (&Date::default(), 1), &mut head);
        assert_eq!(String::from_utf8(head).unwrap(), expected);
    }

    #[test]
    fn what_is_about_the_connection_is_left_to_hyper() {
        for field in ["connection", "te", "trailer", "upgrade"] {
            assert_eq!(
                written(&response(200, &[("a", "b"), (field, "1")])),
                None,
                "{field}"
            );
        }
        for status in [204, 205, 304] {
            assert_eq!(written(&response(status, &[])), None, "{status}");
        }
        let (_writer, stream) = Body::stream(None);
        assert_eq!(written(&Response::new(stream)), None);
    }

    #[test]
    fn a_status_without_a_name_has_none() {
        let text = written(&response(419, &[])).unwrap();
        assert!(text.starts_with("HTTP/1.1 419 \r\n"), "{text}");
    }

    #[test]
    fn the_length_is_that_of_the_body() {
        let wrong = [
            ("content-length", "1"),
            ("a", "b"),
            ("transfer-encoding", "chunked"),
        ];
        let text = written(&response(200, &wrong)).unwrap();
        assert!(
            text.starts_with("HTTP/1.1 200 OK\r\na: b\r\ncontent-length: 4\r\ndate: "),
            "{text}"
        );
    }

    #[test]
    fn a_length_is_decimal() {
        for number in [0, 7, 10, 4_096, 100_000, u64::MAX] {
            assert_eq!(decimal(number, &mut [0; 20]), number.to_string().as_bytes());
        }
    }
}
