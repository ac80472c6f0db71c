use std::cell::Cell;
use std::sync::LazyLock;

use hyper::body::{Body as _, Incoming};
use memchr::memmem;

use super::request_head::has_whole_line_ends;

/// The end of a head.
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
    /// Bytes after the first head in the last read, until its request begins.
    behind_head: Cell<Option<Behind>>,
    /// A part of a head has been read, and not its end.
    is_in_head: Cell<bool>,
    body: Cell<Expected>,
    is_within: Cell<bool>,
}

/// The bytes that must follow the head of the request in flight.
#[derive(Clone, Copy, Default)]
enum Expected {
    /// The request has no body.
    Nothing,
    /// There is no request.
    #[default]
    Head,
    /// Bytes that have not been read; negative for bytes read beyond the body.
    Bytes(i64),
    Chunks(Chunks),
    /// The same as for `Unknown`, but chunks end with an empty line, and seldom have one within.
    UnknownChunks,
    /// The body began behind another request, or behind a head with other line ends: not counted.
    Unknown,
}

/// How many of the bytes end an empty line that began in those before them.
fn end_of_cut_line(tail: [u8; 3], bytes: &[u8]) -> Option<usize> {
    (1..=tail.len().min(bytes.len())).find(|&end| {
        let (before, after) = EMPTY_LINE.split_at(EMPTY_LINE.len() - end);
        tail.ends_with(before) && bytes.starts_with(after)
    })
}

/// Bytes behind a head, before it is known what they are.
#[derive(Clone, Copy)]
struct Behind {
    bytes: i64,
    /// The chunks in them, if the body is chunked.
    chunks: Chunks,
}

impl Behind {
    fn new(bytes: &[u8]) -> Self {
        Self {
            bytes: bytes.len() as i64,
            chunks: Chunks::Size(None).after(bytes),
        }
    }
}

/// A place in a chunked body (RFC 9112 §7.1). hyper decodes and judges it; this only has to find its end.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Chunks {
    /// In the digits of a size.
    Size(Option<u64>),
    /// Behind them, in the same line.
    SizeLine(u64),
    /// Bytes left of the data and of its line end.
    Data(u64),
    /// Behind the last chunk, at the beginning of a line or within it.
    Trailer { is_empty_line: bool },
    /// Whether something was read behind the body.
    End { is_followed: bool },
    /// hyper ends the connection.
    Invalid,
}

impl Chunks {
    fn after(self, mut bytes: &[u8]) -> Self {
        let mut state = self;
        while let [byte, rest @ ..] = bytes {
            bytes = rest;
            state = match (state, byte) {
                (Self::Data(left), _) => {
                    let skipped = left.min(rest.len() as u64 + 1);
                    bytes = &rest[skipped as usize - 1..];
                    match left - skipped {
                        0 => Self::Size(None),
                        left => Self::Data(left),
                    }
                }
                (Self::Size(size), _) if byte.is_ascii_hexdigit() => {
                    let digit = char::from(*byte).to_digit(16).map_or(0, u64::from);
                    match size.unwrap_or(0).checked_mul(16) {
                        Some(size) => Self::Size(Some(size | digit)),
                        None => Self::Invalid,
                    }
                }
                (Self::Size(None), _) => Self::Invalid,
                (Self::Size(Some(size)) | Self::SizeLine(size), b'\n') => match size {
                    0 => Self::Trailer {
                        is_empty_line: true,
                    },
                    _ => Self::Data(size.saturating_add(2)),
                },
                (Self::Size(Some(size)) | Self::SizeLine(size), _) => Self::SizeLine(size),
                (Self::Trailer { is_empty_line }, b'\n') => match is_empty_line {
                    true => Self::End { is_followed: false },
                    false => Self::Trailer {
                        is_empty_line: true,
                    },
                },
                (Self::Trailer { is_empty_line }, _) => Self::Trailer {
                    is_empty_line: is_empty_line && *byte == b'\r',
                },
                (Self::End { .. }, _) => return Self::End { is_followed: true },
                (Self::Invalid, _) => return Self::Invalid,
            };
        }
        state
    }
}

impl Http1Framing {
    pub(super) fn read(&self, bytes: &[u8]) {
        match self.body.get() {
            Expected::Bytes(left) => self.body.set(Expected::Bytes(left - bytes.len() as i64)),
            Expected::Chunks(chunks) => self.body.set(Expected::Chunks(chunks.after(bytes))),
            Expected::Nothing | Expected::Head => self.read_head(bytes),
            Expected::UnknownChunks | Expected::Unknown => {}
        }
        let mut tail = self.tail.get();
        for byte in &bytes[bytes.len().saturating_sub(tail.len())..] {
            tail = [tail[1], tail[2], *byte];
        }
        self.tail.set(tail);
    }

    /// Looks for the end of a head. An end that is not certain is not counted.
    fn read_head(&self, bytes: &[u8]) {
        let is_continued = self.is_in_head.get();
        // Empty lines before a request line are ignored (RFC 9112 §2.2).
        let start = match is_continued {
            true => 0,
            false => bytes
                .iter()
                .take_while(|byte| b"\r\n".contains(byte))
                .count(),
        };
        let bytes = &bytes[start..];
        let cut = is_continued.then(|| end_of_cut_line(self.tail.get(), bytes));
        let end = cut.flatten().or_else(|| {
            let at = FINDER.find(bytes)?;
            Some(at + EMPTY_LINE.len())
        });
        let before = is_continued.then(|| self.tail.get()[2]);
        let behind = end.filter(|end| has_whole_line_ends(before, &bytes[..*end]));
        self.behind_head
            .set(behind.map(|end| Behind::new(&bytes[end..])));
        self.is_in_head.set(end.is_none() && !bytes.is_empty());
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
            (false, None, Some(behind)) => Expected::Chunks(behind.chunks),
            (false, Some(length), Some(behind)) => {
                Expected::Bytes(i64::try_from(length).unwrap_or(i64::MAX) - behind.bytes)
            }
            (false, None, None) => Expected::UnknownChunks,
            (false, Some(_), None) => Expected::Unknown,
        });
    }

    /// Whether the request in flight has been read to its end. Not known for a body that is not counted: then it says so.
    pub(super) fn is_whole(&self) -> bool {
        match self.body.get() {
            Expected::Head | Expected::UnknownChunks => self.is_behind_empty_line(),
            Expected::Bytes(left) => left <= 0,
            Expected::Chunks(chunks) => matches!(chunks, Chunks::End { .. }),
            Expected::Nothing | Expected::Unknown => true,
        }
    }

    fn is_behind_empty_line(&self) -> bool {
        matches!(self.tail.get(), [_, b'\n', b'\n'] | [b'\n', b'\r', b'\n'])
    }

    /// The request is answered. Returns whether a part of the next one has been read.
    pub(super) fn end(&self) -> bool {
        let (is_followed, is_within) = match self.body.replace(Expected::Head) {
            Expected::Nothing | Expected::Head => {
                let is_within = !self.is_behind_empty_line();
                (is_within, is_within)
            }
            Expected::Bytes(left) => (left < 0, left != 0),
            Expected::Chunks(Chunks::End { is_followed }) => (is_followed, is_followed),
            Expected::Chunks(_) => (false, true),
            // To wait for a client in vain is better than to reset one that is sending.
            Expected::UnknownChunks => (!self.is_behind_empty_line(), true),
            Expected::Unknown => (false, true),
        };
        self.is_within.set(is_within);
        self.is_in_head.set(is_followed);
        is_followed
    }

    /// Whether the client was, or may have been, in the middle of a message when the last request was answered.
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
    fn a_chunked_body_of_which_nothing_has_arrived_is_known_to_be_missing() {
        let framing = after(&[b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"]);
        framing.expect(false, None);
        assert!(!framing.is_whole());
        assert!(!framing.end());
        assert!(framing.is_within());
    }

    #[test]
    fn a_chunked_body_ends_behind_its_last_chunk_and_nowhere_before() {
        let head = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
        for body in [
            &b"0\r\n\r\n"[..],
            b"6\r\nline\r\n\r\n000\r\n\r\n",
            b"6;a=\"b\"\r\n\r\n0\r\n\r\r\n1A\r\nabcdefghijklmnopqrstuvwxyz\r\n0;last\r\nA: b\r\n\r\n",
        ] {
            for at in 0..=body.len() {
                let framing = after(&[&[head, &body[..at]].concat()]);
                framing.expect(false, None);
                for (index, byte) in body.iter().enumerate().skip(at) {
                    assert!(!framing.is_whole(), "{index} of {body:?}, {at} with the head");
                    framing.read(&[*byte]);
                }
                assert!(framing.is_whole(), "{body:?}, {at} with the head");
                assert!(!framing.end() && !framing.is_within());
            }
            let framing = after(&[&[head, body, b"G"].concat()]);
            framing.expect(false, None);
            assert!(framing.is_whole());
            assert!(framing.end());
        }
    }

    #[test]
    fn a_chunk_that_is_none_never_ends() {
        for body in [
            &b"zz\r\n\r\n"[..],
            b"\r\n\r\n",
            b"10000000000000000\r\n\r\n",
        ] {
            assert_eq!(Chunks::Size(None).after(body), Chunks::Invalid, "{body:?}");
        }
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
    fn a_body_that_cannot_be_counted_may_go_on() {
        let framing =
            after(&[&[GET, b"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody"].concat()]);
        framing.expect(true, Some(0));
        framing.end();
        framing.expect(false, Some(4));
        assert!(framing.is_whole());
        assert!(!framing.end());
        assert!(framing.is_within());
    }

    #[test]
    fn a_head_that_is_cut_or_comes_behind_empty_lines_is_counted() {
        let requests = [
            (
                &b"POST / HTTP/1.1\r\nContent-Length: 6\r\n\r\na\r\n\r\nb"[..],
                Some(6),
            ),
            (
                b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
                None,
            ),
        ];
        for (request, length) in requests {
            let head = memmem::find(request, EMPTY_LINE).unwrap() + EMPTY_LINE.len();
            for before in [&b""[..], b"\r\n", b"\r\n\r\n", GET] {
                for at in 1..head {
                    let framing = Http1Framing::default();
                    if before == GET {
                        framing.read(before);
                        framing.expect(true, Some(0));
                        assert!(!framing.end());
                    } else {
                        framing.read(before);
                    }
                    framing.read(&request[..at]);
                    framing.read(&request[at..]);
                    framing.expect(false, length);
                    assert!(
                        framing.is_whole(),
                        "{request:?} cut at {at} behind {before:?}"
                    );
                    assert!(!framing.end());
                    assert!(
                        !framing.is_within(),
                        "{request:?} cut at {at} behind {before:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_head_with_other_line_ends_is_not_counted() {
        let framing =
            after(&[b"POST / HTTP/1.1\nTransfer-Encoding: chunked\n\n5\r\nhello\r\n0\r\n\r\n"]);
        framing.expect(false, None);
        assert!(framing.is_whole());
        assert!(!framing.end());
    }

    #[test]
    fn the_beginning_of_a_head_is_noticed_behind_chunks_that_cannot_be_counted() {
        for (rest, is_followed) in [(&b""[..], false), (b"G", true)] {
            let framing = after(&[&[
                GET,
                b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                rest,
            ]
            .concat()]);
            framing.expect(true, Some(0));
            framing.end();
            framing.expect(false, None);
            assert_eq!(framing.is_whole(), !is_followed);
            assert_eq!(framing.end(), is_followed);
            assert!(framing.is_within());
        }
    }
}
