use std::cell::Cell;
use std::sync::LazyLock;

use hyper::body::{Body as _, Incoming};
use memchr::memmem;

/// The end of a head, of a chunked body and of its trailers.
const EMPTY_LINE: &[u8] = b"\r\n\r\n";
/// Made once: making it costs more than a search in a short head.
static FINDER: LazyLock<memmem::Finder<'static>> =
    LazyLock::new(|| memmem::Finder::new(EMPTY_LINE));

/// Tracks whether the bytes of a client on an HTTP/1 connection end at the end of a message.
///
/// hyper does not tell what it has read beyond a request. Without this, the partial header of a next request would look like an idle
/// connection.
#[derive(Default)]
pub(super) struct Http1Framing {
    /// The last bytes that were read.
    tail: Cell<[u8; 3]>,
    /// Bytes behind the first head in the last read, until its request begins.
    behind_head: Cell<Option<i64>>,
    body: Cell<Expected>,
    is_within: Cell<bool>,
}

/// The bytes that must follow the head of the request in flight.
#[derive(Clone, Copy, Default)]
enum Expected {
    /// The request has no body.
    Nothing,
    /// A head, or chunks: both end with an empty line.
    #[default]
    EmptyLine,
    /// Bytes that have not been read; negative for bytes read beyond the body.
    Bytes(i64),
    /// The body began behind another request, or in the middle of a read: not counted.
    Unknown,
}

impl Http1Framing {
    pub(super) fn read(&self, bytes: &[u8]) {
        match self.body.get() {
            Expected::Bytes(left) => self.body.set(Expected::Bytes(left - bytes.len() as i64)),
            Expected::Nothing | Expected::EmptyLine => self.behind_head.set(
                FINDER
                    .find(bytes)
                    .map(|at| (bytes.len() - at - EMPTY_LINE.len()) as i64),
            ),
            Expected::Unknown => {}
        }
        let mut tail = self.tail.get();
        for byte in &bytes[bytes.len().saturating_sub(tail.len())..] {
            tail = [tail[1], tail[2], *byte];
        }
        self.tail.set(tail);
    }

    /// A request has begun.
    pub(super) fn begin(&self, body: &Incoming) {
        let length = body.size_hint().exact();
        self.expect(body.is_end_stream(), length);
    }

    fn expect(&self, is_empty: bool, length: Option<u64>) {
        let behind = self.behind_head.take();
        self.body.set(match (is_empty, length, behind) {
            (true, _, _) => Expected::Nothing,
            (false, None, _) => Expected::EmptyLine,
            (false, Some(length), Some(behind)) => {
                Expected::Bytes(i64::try_from(length).unwrap_or(i64::MAX) - behind)
            }
            (false, Some(_), None) => Expected::Unknown,
        });
    }

    /// Whether the request in flight has been read to its end. Not known for a body that is not counted: then it says so.
    pub(super) fn is_whole(&self) -> bool {
        match self.body.get() {
            Expected::EmptyLine => self.is_behind_empty_line(),
            Expected::Bytes(left) => left <= 0,
            Expected::Nothing | Expected::Unknown => true,
        }
    }

    fn is_behind_empty_line(&self) -> bool {
        matches!(self.tail.get(), [_, b'\n', b'\n'] | [b'\n', b'\r', b'\n'])
    }

    /// The request is answered. Returns whether a part of the next one has been read.
    pub(super) fn end(&self) -> bool {
        let (is_followed, is_within) = match self.body.replace(Expected::EmptyLine) {
            Expected::Nothing | Expected::EmptyLine => {
                let is_within = !self.is_behind_empty_line();
                (is_within, is_within)
            }
            Expected::Bytes(left) => (left < 0, left != 0),
            Expected::Unknown => (false, false),
        };
        self.is_within.set(is_within);
        is_followed
    }

    /// Whether the client was in the middle of a message when the last request was answered.
    pub(super) fn is_within(&self) -> bool {
        self.is_within.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

    fn after(chunks: &[&[u8]]) -> Http1Framing {
        let framing = Http1Framing::default();
        chunks.iter().for_each(|chunk| framing.read(chunk));
        framing
    }

    #[test]
    fn a_head_ends_with_an_empty_line_wherever_it_is_cut() {
        for at in 0..=GET.len() {
            let framing = after(&[&GET[..at], &GET[at..]]);
            framing.expect(true, Some(0));
            assert!(!framing.end(), "cut at {at}");
        }
    }

    #[test]
    fn every_beginning_of_a_second_head_is_noticed() {
        for at in 1..GET.len() {
            let framing = after(&[&[GET, &GET[..at]].concat()]);
            framing.expect(true, Some(0));
            assert!(framing.end(), "{at} bytes of it");
        }
    }

    #[test]
    fn a_body_ends_with_its_last_byte_whatever_that_is() {
        let head = b"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\n";
        for (rest, expected) in [(&b""[..], false), (b"G", true)] {
            for at in 0..=4 {
                let framing = after(&[&[&head[..], &b"body"[..at]].concat()]);
                framing.expect(false, Some(4));
                framing.read(&[&b"body"[at..], rest].concat());
                assert_eq!(framing.end(), expected, "{at} bytes with the head");
                assert_eq!(framing.is_within(), expected);
            }
        }
    }

    #[test]
    fn a_body_that_has_not_arrived_as_a_whole_is_known_to_be_missing() {
        let head = "POST / HTTP/1.1\r\n";
        let framing = after(&[&format!("{head}Content-Length: 4\r\n\r\nbod").into_bytes()]);
        framing.expect(false, Some(4));
        assert!(!framing.end());
        assert!(framing.is_within());
        let framing =
            after(&[&format!("{head}Transfer-Encoding: chunked\r\n\r\n4\r\nbo").into_bytes()]);
        framing.expect(false, None);
        framing.end();
        assert!(framing.is_within());
    }

    #[test]
    fn a_request_is_whole_with_its_last_byte() {
        let framing = after(&[&GET[..GET.len() - 1]]);
        assert!(!framing.is_whole());
        framing.read(&GET[GET.len() - 1..]);
        framing.expect(true, Some(0));
        assert!(framing.is_whole());
        let framing = after(&[b"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nbo"]);
        framing.expect(false, Some(4));
        assert!(!framing.is_whole());
        framing.read(b"dy");
        assert!(framing.is_whole());
    }

    #[test]
    fn a_request_without_a_body_is_whole_whatever_follows_it() {
        let framing = after(&[&[GET, b"GET / HT"].concat()]);
        framing.expect(true, Some(0));
        assert!(framing.is_whole());
        assert!(framing.end());
    }

    #[test]
    fn a_body_that_cannot_be_counted_is_taken_to_end_as_it_should() {
        let framing = after(&[b"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r", b"\nbody"]);
        framing.expect(false, Some(4));
        assert!(!framing.end());
    }
}
