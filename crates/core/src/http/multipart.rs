//! Incremental parser of `multipart/form-data` (RFC 7578). It buffers at most one part head or one chunk.

use std::collections::VecDeque;

use bytes::{Buf as _, Bytes, BytesMut};
use memchr::memmem::Finder;

use super::part_headers::{MultipartError, PartHead, boundary, part_head};

#[derive(Debug, Clone)]
pub struct MultipartLimits {
    pub parts: usize,
    /// Parts with a file name.
    pub files: usize,
    /// Bytes of the head of one part.
    pub header_bytes: usize,
    /// Bytes of all values that are not files, with their names.
    pub field_bytes: u64,
    /// Bytes of one file.
    pub file_bytes: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event {
    Begin(PartHead),
    /// At least one byte.
    Data(Bytes),
    End,
}

/// A parser without I/O.
pub(super) struct Parser {
    finder: Finder<'static>,
    /// Length of line break, two dashes and boundary.
    delimiter: usize,
    limits: MultipartLimits,
    arrived: BytesMut,
    state: State,
    parts: usize,
    events: VecDeque<Event>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first delimiter; ignored.
    Preamble,
    /// Behind a delimiter: two dashes after the last one, a line break after the others.
    Delimiter,
    Head,
    Contents,
    /// Behind the last delimiter; ignored.
    Epilogue,
}

impl Parser {
    pub(super) fn new(
        content_type: Option<&[u8]>,
        limits: MultipartLimits,
    ) -> Result<Self, MultipartError> {
        let boundary = boundary(content_type)?;
        let delimiter = [b"\r\n--".as_slice(), &boundary].concat();
        Ok(Self {
            delimiter: delimiter.len(),
            finder: Finder::new(&delimiter).into_owned(),
            limits,
            // The first delimiter may have no line break before it.
            arrived: BytesMut::from(&b"\r\n"[..]),
            state: State::Preamble,
            parts: 0,
            events: VecDeque::new(),
        })
    }

    /// Parses a chunk of the body.
    pub(super) fn feed(&mut self, chunk: &[u8]) -> Result<(), MultipartError> {
        self.arrived.extend_from_slice(chunk);
        while self.step()? {}
        Ok(())
    }

    pub(super) fn event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The body has ended.
    pub(super) fn finish(&self) -> Result<(), MultipartError> {
        match self.state {
            State::Epilogue => Ok(()),
            _ => Err(MultipartError::Malformed(
                "it ends without its last boundary",
            )),
        }
    }

    /// Parses one element. Returns whether more may be parsed.
    fn step(&mut self) -> Result<bool, MultipartError> {
        match self.state {
            State::Preamble => self.preamble(),
            State::Delimiter => self.delimiter(),
            State::Head => self.head(),
            State::Contents => Ok(self.contents()),
            State::Epilogue => {
                self.arrived.clear();
                Ok(false)
            }
        }
    }

    fn preamble(&mut self) -> Result<bool, MultipartError> {
        if let Some(at) = self.finder.find(&self.arrived) {
            self.arrived.advance(at + self.delimiter);
            self.state = State::Delimiter;
            return Ok(true);
        }
        self.arrived.advance(self.surplus());
        Ok(false)
    }

    /// Emits the bytes that cannot be the beginning of a delimiter.
    fn surplus(&self) -> usize {
        self.arrived.len().saturating_sub(self.delimiter - 1)
    }

    fn delimiter(&mut self) -> Result<bool, MultipartError> {
        if self.arrived.starts_with(b"--") {
            self.state = State::Epilogue;
            return Ok(true);
        }
        let is_padding = |byte: &u8| matches!(byte, b' ' | b'\t');
        let padding = self
            .arrived
            .iter()
            .take_while(|byte| is_padding(byte))
            .count();
        if padding > self.limits.header_bytes {
            return Err(self.long_head());
        }
        let rest = &self.arrived[padding..];
        if rest.starts_with(b"\r\n") {
            self.arrived.advance(padding + 2);
            self.state = State::Head;
            return Ok(true);
        }
        match rest {
            [] | b"\r" => Ok(false),
            b"-" if padding == 0 => Ok(false),
            _ => Err(MultipartError::Malformed(
                "a boundary has something behind it",
            )),
        }
    }

    fn head(&mut self) -> Result<bool, MultipartError> {
        // A part without fields begins with the empty line.
        let (length, skipped) = match self.arrived.starts_with(b"\r\n") {
            true => (0, 2),
            false => match memchr::memmem::find(&self.arrived, b"\r\n\r\n") {
                Some(at) => (at, at + 4),
                None if self.arrived.len() >= self.limits.header_bytes + 4 => {
                    return Err(self.long_head());
                }
                None => return Ok(false),
            },
        };
        if length > self.limits.header_bytes {
            return Err(self.long_head());
        }
        self.parts += 1;
        if self.parts > self.limits.parts {
            let limit = self.limits.parts;
            return Err(MultipartError::Parts { limit });
        }
        let head = part_head(&self.arrived[..length])?;
        self.events.push_back(Event::Begin(head));
        self.arrived.advance(skipped);
        self.state = State::Contents;
        Ok(true)
    }

    fn contents(&mut self) -> bool {
        let Some(at) = self.finder.find(&self.arrived) else {
            let surplus = self.surplus();
            self.pass(surplus);
            return false;
        };
        self.pass(at);
        self.arrived.advance(self.delimiter);
        self.events.push_back(Event::End);
        self.state = State::Delimiter;
        true
    }

    fn pass(&mut self, length: usize) {
        if length > 0 {
            let data = self.arrived.split_to(length).freeze();
            self.events.push_back(Event::Data(data));
        }
    }

    fn long_head(&self) -> MultipartError {
        let limit = self.limits.header_bytes;
        MultipartError::Head { limit }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: MultipartLimits = MultipartLimits {
        parts: 5,
        files: 5,
        header_bytes: 200,
        field_bytes: 1_000,
        file_bytes: 1_000,
    };

    /// Parts as head and contents, whatever chunks the body arrives in.
    fn parts(body: &[u8], chunk: usize) -> Result<Vec<(PartHead, Vec<u8>)>, MultipartError> {
        let mut parser = Parser::new(Some(b"multipart/form-data; boundary=XX"), LIMITS)?;
        let mut parts: Vec<(PartHead, Vec<u8>)> = Vec::new();
        let mut is_open = false;
        for chunk in body.chunks(chunk.max(1)) {
            parser.feed(chunk)?;
            while let Some(event) = parser.event() {
                match event {
                    Event::Begin(head) => {
                        assert!(!is_open);
                        is_open = true;
                        parts.push((head, Vec::new()));
                    }
                    Event::Data(data) => {
                        assert!(is_open && !data.is_empty());
                        parts.last_mut().unwrap().1.extend_from_slice(&data);
                    }
                    Event::End => {
                        assert!(is_open);
                        is_open = false;
                    }
                }
            }
        }
        parser.finish()?;
        Ok(parts)
    }

    fn part(name: &str, file_name: Option<&str>, contents: &[u8]) -> Vec<u8> {
        let file = file_name.map_or(String::new(), |name| format!("; filename=\"{name}\""));
        let head = format!("--XX\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n");
        [head.as_bytes(), contents, b"\r\n"].concat()
    }

    #[test]
    fn values_and_files_are_read_in_chunks_of_every_size() {
        let body = [
            b"preamble --XX\r\n".to_vec(),
            part("a", None, b""),
            part("b[]", Some("x.txt"), b"\r\n--X\r\n--XY is no boundary\r\n-"),
            b"--XX \t\r\ncontent-type: text/plain\r\ncontent-disposition:form-data;name=c\r\n\r\n\r\n\r\n".to_vec(),
            b"--XX--\r\nepilogue --XX\r\n".to_vec(),
        ]
        .concat();
        // XY would be a boundary with something behind it.
        let body = String::from_utf8(body).unwrap().replace("--XY", "--Y");
        for chunk in 1..body.len() {
            let parts = parts(body.as_bytes(), chunk).unwrap();
            let names: Vec<_> = parts.iter().map(|(head, _)| &head.name[..]).collect();
            assert_eq!(names, [&b"a"[..], b"b[]", b"c"], "{chunk}");
            assert_eq!(parts[0].1, b"");
            assert_eq!(parts[1].0.file_name.as_deref(), Some(&b"x.txt"[..]));
            assert_eq!(parts[1].1, b"\r\n--X\r\n--Y is no boundary\r\n-");
            assert_eq!(parts[2].0.content_type.as_deref(), Some(&b"text/plain"[..]));
            assert_eq!(parts[2].1, b"\r\n");
        }
    }

    #[test]
    fn a_form_without_parts_is_none() {
        assert_eq!(parts(b"--XX--", 100), Ok(vec![]));
        assert_eq!(parts(b"\r\n--XX--\r\n", 1), Ok(vec![]));
    }

    #[test]
    fn names_are_read_as_browsers_and_others_write_them() {
        let cases: [(&str, &str, Option<&str>); 9] = [
            (r#"form-data; name="a""#, "a", None),
            (r#"form-data; name=a; filename=b.txt"#, "a", Some("b.txt")),
            (r#"Form-Data ; filename="b" ; NAME="a""#, "a", Some("b")),
            (
                r#"form-data; name="a\"b"; filename="c;name=d""#,
                "a\"b",
                Some("c;name=d"),
            ),
            (
                r#"form-data; name="a"; filename="C:\dir\x.txt""#,
                "a",
                Some("C:\\dir\\x.txt"),
            ),
            (
                r#"form-data; name="a"; filename="C:\dir\""#,
                "a",
                Some("C:\\dir\\"),
            ),
            (r#"form-data; name="%22"; filename="""#, "%22", Some("")),
            (r#"form-data; flag; name="a""#, "a", None),
            (r#"form-data; name=""; name="a""#, "", None),
        ];
        for (disposition, name, file_name) in cases {
            let head = part_head(format!("content-disposition: {disposition}").as_bytes()).unwrap();
            assert_eq!(head.name, name.as_bytes(), "{disposition}");
            assert_eq!(
                head.file_name.as_deref(),
                file_name.map(str::as_bytes),
                "{disposition}"
            );
        }
    }

    #[test]
    fn malformed_forms_are_refused_with_the_reason() {
        let ends = Err(MultipartError::Malformed(
            "it ends without its last boundary",
        ));
        assert_eq!(parts(b"", 1), ends);
        assert_eq!(parts(&part("a", None, b"b"), 7), ends);
        assert_eq!(
            parts(b"--XX\r\n\r\n\r\n--XX--", 7),
            Err(MultipartError::Malformed("a part has no name"))
        );
        assert_eq!(
            parts(b"--XXX\r\n", 7),
            Err(MultipartError::Malformed(
                "a boundary has something behind it"
            ))
        );
        assert_eq!(
            parts(b"--XX\r\nno field\r\n\r\n", 7),
            Err(MultipartError::Malformed(
                "a line in the head of a part is not a header field"
            ))
        );
        let attachment = b"--XX\r\ncontent-disposition: attachment; name=a\r\n\r\n";
        assert_eq!(
            parts(attachment, 7),
            Err(MultipartError::Malformed("a part is not form-data"))
        );
    }

    #[test]
    fn parts_and_heads_are_limited() {
        let many = [part("a", None, b"").repeat(6), b"--XX--".to_vec()].concat();
        assert_eq!(parts(&many, 50), Err(MultipartError::Parts { limit: 5 }));
        for long in ["x".repeat(300), format!("x{}", "\r\na: b".repeat(60))] {
            let long = part(&long, None, b"");
            assert_eq!(parts(&long, 9), Err(MultipartError::Head { limit: 200 }));
        }
        let padding = [b"--XX".as_slice(), &b" ".repeat(300)].concat();
        assert_eq!(parts(&padding, 9), Err(MultipartError::Head { limit: 200 }));
    }

    #[test]
    fn a_boundary_has_one_to_seventy_characters_of_those_allowed() {
        let long = format!("multipart/form-data; boundary={}", "x".repeat(71));
        let refused = [
            "",
            "text/plain",
            "multipart/mixed; boundary=a",
            "multipart/form-data",
            "multipart/form-data; boundary=",
            "multipart/form-data; boundary=\"",
            "multipart/form-data; boundary=\"a \"",
            "multipart/form-data; boundary=a\u{e9}",
            &long,
        ];
        for kind in refused {
            assert!(
                matches!(
                    Parser::new(Some(kind.as_bytes()), LIMITS),
                    Err(MultipartError::Kind { .. })
                ),
                "{kind}"
            );
        }
        let taken = [
            &long[..long.len() - 1],
            "Multipart/Form-Data; charset=utf-8; Boundary=\"a: b\"; x=y",
        ];
        for kind in taken {
            assert!(Parser::new(Some(kind.as_bytes()), LIMITS).is_ok(), "{kind}");
        }
    }

    proptest! {
        #[test]
        fn contents_come_out_as_they_went_in(contents in "[-\r\nX a]{0,60}", chunks in 1_usize..20) {
            prop_assume!(!format!("\r\n{contents}\r\n").contains("\r\n--XX"));
            let body = [part("a", Some("f"), contents.as_bytes()), b"--XX--".to_vec()].concat();
            let parts = parts(&body, chunks).unwrap();
            prop_assert_eq!(&parts[0].1, contents.as_bytes());
        }

        #[test]
        fn chunks_of_any_size_say_the_same(body in "(--XX|\r\n|--|content-disposition: form-data; name=|\"|\\|a|;|: ){0,30}", chunk in 1_usize..9) {
            prop_assert_eq!(parts(body.as_bytes(), chunk), parts(body.as_bytes(), body.len()));
        }

        #[test]
        fn no_bytes_make_it_panic(body in proptest::collection::vec(any::<u8>(), 0..300), kind in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = parts(&body, 13);
            let _ = boundary(Some(&kind));
            let _ = part_head(&kind);
        }
    }
}
