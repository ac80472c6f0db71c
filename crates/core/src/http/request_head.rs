use std::cell::OnceCell;
use std::mem::MaybeUninit;
use std::ops::Range;

use bytes::Bytes;
use hyper::header::{HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Uri};

use super::error_response::is_host;

/// Header fields of a request that is read without hyper; one with more is hyper's.
const MOST_FIELDS: usize = 100;
/// A longer head is hyper's, which has limits for the parts of one.
const MOST_BYTES: usize = u16::MAX as usize - 1;

/// The head of a request.
pub(super) enum RequestHead {
    /// As hyper has read it.
    Parsed(Box<Parts>),
    /// As it has arrived.
    Plain(PlainHead),
}

impl RequestHead {
    pub(super) fn parts(&self) -> &Parts {
        match self {
            Self::Parsed(parts) => parts,
            Self::Plain(head) => head.parts.get_or_init(|| Box::new(head.parse())),
        }
    }

    pub(super) fn path(&self) -> &str {
        match self {
            Self::Parsed(parts) => parts.uri.path(),
            Self::Plain(head) => head.path(),
        }
    }

    pub(super) fn query(&self) -> &str {
        match self {
            Self::Parsed(parts) => parts.uri.query().unwrap_or_default(),
            Self::Plain(head) => head.query(),
        }
    }
}

/// The head of a plain request: GET over HTTP/1.1 without a body and without a field that changes how the connection goes on.
///
/// Most handlers look at the path and the query only, so the fields are parsed a second time when the first of them is asked for.
pub(super) struct PlainHead {
    bytes: Bytes,
    target: Range<usize>,
    /// Offset of the question mark, or the end of the target.
    path_end: usize,
    parts: OnceCell<Box<Parts>>,
}

/// How the beginning of the input reads.
pub(super) enum Reading {
    Plain(PlainHead),
    /// The head is not complete.
    Partial,
    /// hyper reads it, whatever it is.
    Other,
}

impl PlainHead {
    /// Reads the first head of `input`. A head that is not certain to mean the same to everybody (RFC 9112 §11.2) is not plain.
    pub(super) fn read(input: &[u8], most_fields: usize, most_bytes: usize) -> Reading {
        let mut fields = [const { MaybeUninit::uninit() }; MOST_FIELDS];
        // A head with too many fields is known to be one before it is complete.
        let fields = &mut fields[..most_fields.min(MOST_FIELDS)];
        let mut request = httparse::Request::new(&mut []);
        let length = match request.parse_with_uninit_headers(input, fields) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) if input.len() <= most_bytes => return Reading::Partial,
            _ => return Reading::Other,
        };
        let target = request.path.unwrap_or_default();
        let is_plain = request.method == Some("GET")
            && request.version == Some(1)
            && length <= most_bytes.min(MOST_BYTES)
            && is_plain_target(target.as_bytes())
            && are_plain(request.headers)
            && has_whole_line_ends(None, &input[..length]);
        if !is_plain {
            return Reading::Other;
        }
        let start = target.as_ptr() as usize - input.as_ptr() as usize;
        let path = memchr::memchr(b'?', target.as_bytes()).unwrap_or(target.len());
        Reading::Plain(Self {
            bytes: Bytes::copy_from_slice(&input[..length]),
            target: start..start + target.len(),
            path_end: start + path,
            parts: OnceCell::new(),
        })
    }

    /// All of it, with the empty line.
    pub(super) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    fn path(&self) -> &str {
        self.text(self.target.start..self.path_end)
    }

    fn query(&self) -> &str {
        self.text((self.path_end + 1).min(self.target.end)..self.target.end)
    }

    /// The target is ASCII.
    fn text(&self, range: Range<usize>) -> &str {
        std::str::from_utf8(&self.bytes[range]).unwrap_or_default()
    }

    /// The same as hyper makes of it.
    #[cold]
    fn parse(&self) -> Parts {
        let (mut parts, ()) = Request::new(()).into_parts();
        parts.method = Method::GET;
        parts.uri =
            Uri::from_maybe_shared(self.bytes.slice(self.target.clone())).unwrap_or_default();
        let mut fields = [const { MaybeUninit::uninit() }; MOST_FIELDS];
        let mut request = httparse::Request::new(&mut []);
        if request
            .parse_with_uninit_headers(&self.bytes, &mut fields)
            .is_err()
        {
            return parts;
        }
        parts.headers.reserve(request.headers.len());
        for field in request.headers {
            let name = HeaderName::from_bytes(field.name.as_bytes());
            let value = HeaderValue::from_maybe_shared(self.bytes.slice_ref(field.value));
            if let (Ok(name), Ok(value)) = (name, value) {
                parts.headers.append(name, value);
            }
        }
        parts
    }
}

/// RFC 3986 §3.3 and §3.4: a path, and perhaps a query. `http::Uri` takes more, and refuses some of it.
const OF_TARGET: [bool; 256] = {
    let mut of_target = [false; 256];
    let marks = b"-._~!$&'()*+,;=:@/?%";
    let mut index = 0;
    while index < marks.len() {
        of_target[marks[index] as usize] = true;
        index += 1;
    }
    let mut byte = 0;
    while byte < 128 {
        of_target[byte as usize] |= (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    of_target
};

fn is_plain_target(target: &[u8]) -> bool {
    target.first() == Some(&b'/') && target.iter().all(|byte| OF_TARGET[usize::from(*byte)])
}

/// httparse takes a line feed alone for the end of a line (RFC 9112 §2.2), which a proxy may not do.
///
/// `before`: the byte before these.
pub(super) fn has_whole_line_ends(before: Option<u8>, head: &[u8]) -> bool {
    memchr::memchr_iter(b'\n', head).all(|at| {
        let previous = at.checked_sub(1).map_or(before, |at| Some(head[at]));
        previous == Some(b'\r')
    })
}

/// Whether there is exactly one valid Host (RFC 9112 §3.2), and no field that frames the message or is about the connection.
fn are_plain(fields: &[httparse::Header<'_>]) -> bool {
    let mut hosts = 0;
    for field in fields {
        let is = |name: &str| field.name.eq_ignore_ascii_case(name);
        match field.name.len() {
            2 if is("te") => return false,
            4 if is("host") => {
                hosts += 1;
                if !is_host(field.value) {
                    return false;
                }
            }
            6 if is("expect") => return false,
            7 if is("upgrade") || is("trailer") => return false,
            10 if is("connection") && !field.value.eq_ignore_ascii_case(b"keep-alive") => {
                return false;
            }
            14 if is("content-length") || is("http2-settings") => return false,
            17 if is("transfer-encoding") => return false,
            _ => {}
        }
    }
    hosts == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(input: &str) -> Reading {
        PlainHead::read(input.as_bytes(), 100, 16 << 10)
    }

    fn is_other(input: &str) -> bool {
        matches!(read(input), Reading::Other)
    }

    #[test]
    fn path_query_and_fields_are_those_of_the_head() {
        let head = "GET /a/b%20c?d=1?e HTTP/1.1\r\nHost: x:1\r\nX-One: 1 \r\nx-one:2\r\nConnection: Keep-Alive\r\n\r\n";
        let Reading::Plain(plain) = read(&format!("{head}GET /next")) else {
            panic!("it is plain");
        };
        assert_eq!(plain.bytes(), head.as_bytes());
        let head = RequestHead::Plain(plain);
        assert_eq!((head.path(), head.query()), ("/a/b%20c", "d=1?e"));
        let parts = head.parts();
        assert_eq!(
            (parts.uri.path(), parts.uri.query()),
            ("/a/b%20c", Some("d=1?e"))
        );
        assert_eq!(parts.headers["host"], "x:1");
        let values: Vec<_> = parts.headers.get_all("x-one").iter().collect();
        assert_eq!(values, ["1", "2"]);
        for (target, expected) in [("/", ("/", "")), ("/?", ("/", "")), ("/a?b", ("/a", "b"))] {
            let Reading::Plain(plain) = read(&format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n"))
            else {
                panic!("{target} is plain");
            };
            let head = RequestHead::Plain(plain);
            assert_eq!((head.path(), head.query()), expected);
        }
    }

    #[test]
    fn every_beginning_of_a_head_is_partial() {
        let head = "GET /a?b HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n";
        for end in 1..head.len() {
            assert!(
                matches!(read(&head[..end]), Reading::Partial),
                "{end} bytes"
            );
        }
        assert!(matches!(read(head), Reading::Plain(_)));
    }

    #[test]
    fn what_could_mean_something_else_to_somebody_is_not_plain() {
        for target in [
            "*",
            "http://x/",
            "x",
            "/a#b",
            "/a\"",
            "/a|b",
            "/\\",
            "/ä",
            "/<",
        ] {
            assert!(
                is_other(&format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n")),
                "{target}"
            );
        }
        for line in [
            "POST / HTTP/1.1",
            "HEAD / HTTP/1.1",
            "get / HTTP/1.1",
            "GET / HTTP/1.0",
            "GET  / HTTP/1.1",
            "GET / HTTP/2.0",
        ] {
            assert!(is_other(&format!("{line}\r\nHost: x\r\n\r\n")), "{line}");
        }
        for field in [
            "Content-Length: 0",
            "content-length: 5",
            "Transfer-Encoding: chunked",
            "Transfer-Encoding : chunked",
            "Connection: close",
            "Connection: keep-alive, upgrade",
            "Upgrade: websocket",
            "Expect: 100-continue",
            "TE: trailers",
            "Trailer: x",
            "HTTP2-Settings: x",
            "Host: y",
            " folded: x",
            "no colon",
            "nul: \0",
            "bare: a\rb",
        ] {
            assert!(
                is_other(&format!("GET / HTTP/1.1\r\nHost: x\r\n{field}\r\n\r\n")),
                "{field}"
            );
        }
        for host in ["", "a/b", "user@a", "a b"] {
            let is_plain_empty = host.is_empty();
            assert_eq!(
                is_other(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")),
                !is_plain_empty,
                "{host}"
            );
        }
        assert!(is_other("GET / HTTP/1.1\r\n\r\n"), "no Host");
        for head in [
            "GET / HTTP/1.1\nHost: x\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\r\n\n",
            "\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
        ] {
            assert!(is_other(head), "{head:?}");
        }
    }

    #[test]
    fn a_head_beyond_the_limits_is_not_plain() {
        let many: String = (0..100).map(|number| format!("x-{number}: \r\n")).collect();
        assert!(is_other(&format!(
            "GET / HTTP/1.1\r\nHost: x\r\n{many}\r\n"
        )));
        let long = format!(
            "GET / HTTP/1.1\r\nHost: x\r\nlong: {}\r\n",
            "x".repeat(20_000)
        );
        assert!(is_other(&long), "not complete");
        assert!(is_other(&format!("{long}\r\n")));
        for end in ["", "c: d\r\n", "\r\n"] {
            let head = format!("GET / HTTP/1.1\r\nHost: x\r\na: b\r\n{end}");
            let reading = PlainHead::read(head.as_bytes(), 1, 1_000);
            assert!(matches!(reading, Reading::Other), "{head:?}");
        }
    }
}
