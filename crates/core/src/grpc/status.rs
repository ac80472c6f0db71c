use std::borrow::Cow;

use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode, percent_encode};

pub(super) const STATUS: HeaderName = HeaderName::from_static("grpc-status");
pub(super) const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// Bytes of `grpc-message` as it is sent. Clients accept header lists of 8 KiB or more, and a longer one ends the connection of some of
/// them, with all its calls.
const MESSAGE_BYTES: usize = 2 << 10;

/// Bytes that are not percent-encoded: printable ASCII except the percent sign.
const ESCAPED: &AsciiSet = &CONTROLS.add(b'%');

/// One of the 17 status codes of gRPC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code(u8);

impl Code {
    pub const COUNT: usize = 17;

    pub const OK: Self = Self(0);
    pub const CANCELLED: Self = Self(1);
    pub const UNKNOWN: Self = Self(2);
    pub const INVALID_ARGUMENT: Self = Self(3);
    pub const DEADLINE_EXCEEDED: Self = Self(4);
    pub const PERMISSION_DENIED: Self = Self(7);
    pub const RESOURCE_EXHAUSTED: Self = Self(8);
    pub const UNIMPLEMENTED: Self = Self(12);
    pub const INTERNAL: Self = Self(13);
    pub const UNAVAILABLE: Self = Self(14);
    pub const UNAUTHENTICATED: Self = Self(16);

    pub fn new(number: i64) -> Option<Self> {
        u8::try_from(number)
            .ok()
            .filter(|number| *number <= 16)
            .map(Self)
    }

    pub fn number(self) -> u8 {
        self.0
    }

    /// As in the specification.
    pub fn name(self) -> &'static str {
        const NAMES: [&str; Code::COUNT] = [
            "OK",
            "CANCELLED",
            "UNKNOWN",
            "INVALID_ARGUMENT",
            "DEADLINE_EXCEEDED",
            "NOT_FOUND",
            "ALREADY_EXISTS",
            "PERMISSION_DENIED",
            "RESOURCE_EXHAUSTED",
            "FAILED_PRECONDITION",
            "ABORTED",
            "OUT_OF_RANGE",
            "UNIMPLEMENTED",
            "INTERNAL",
            "UNAVAILABLE",
            "DATA_LOSS",
            "UNAUTHENTICATED",
        ];
        NAMES[usize::from(self.0)]
    }

    fn text(self) -> HeaderValue {
        const TEXTS: [&str; Code::COUNT] = [
            "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15",
            "16",
        ];
        HeaderValue::from_static(TEXTS[usize::from(self.0)])
    }
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    pub code: Code,
    pub message: Cow<'static, str>,
}

impl Status {
    pub const OK: Self = Self {
        code: Code::OK,
        message: Cow::Borrowed(""),
    };

    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        let message = message.into();
        Self { code, message }
    }

    pub(super) fn internal(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::INTERNAL, message)
    }

    /// Parses trailers, or the head of a Trailers-Only response. An unknown number is UNKNOWN.
    pub(super) fn read(fields: &HeaderMap) -> Option<Self> {
        let number = fields.get(STATUS)?.to_str().ok();
        let code = number.and_then(|number| Code::new(number.parse().ok()?));
        let message = fields.get(MESSAGE).map_or(&b""[..], HeaderValue::as_bytes);
        let message = percent_decode(message).decode_utf8_lossy().into_owned();
        Some(Self::new(code.unwrap_or(Code::UNKNOWN), message))
    }

    /// Writes trailers. A long message is cut.
    pub(super) fn write(&self, fields: &mut HeaderMap) {
        fields.insert(STATUS, self.code.text());
        if self.message.is_empty() {
            return;
        }
        if let Ok(value) = HeaderValue::try_from(escaped(&self.message)) {
            fields.insert(MESSAGE, value);
        }
    }
}

/// The message in printable ASCII, with at most [`MESSAGE_BYTES`].
fn escaped(message: &str) -> String {
    if message.len() <= MESSAGE_BYTES {
        let whole = percent_encode(message.as_bytes(), ESCAPED).to_string();
        if whole.len() <= MESSAGE_BYTES {
            return whole;
        }
    }
    let note = format!(" [cut, the message has {} bytes]", message.len());
    let mut cut = String::with_capacity(MESSAGE_BYTES);
    for character in message.chars() {
        let mut bytes = [0; 4];
        let bytes = character.encode_utf8(&mut bytes).as_bytes();
        let before = cut.len();
        cut.extend(percent_encode(bytes, ESCAPED));
        if cut.len() + note.len() > MESSAGE_BYTES {
            cut.truncate(before);
            break;
        }
    }
    cut + &note
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_travels_as_printable_ascii_whatever_is_in_it() {
        let mut fields = HeaderMap::new();
        Status::new(Code::UNKNOWN, "\t\ntest 100% \u{1F608}").write(&mut fields);
        assert_eq!(fields[STATUS], "2");
        assert_eq!(fields[MESSAGE], "%09%0Atest 100%25 %F0%9F%98%88");
        let read = Status::read(&fields).unwrap();
        assert_eq!(read, Status::new(Code::UNKNOWN, "\t\ntest 100% \u{1F608}"));
    }

    #[test]
    fn a_long_message_is_cut_at_a_character_and_says_so() {
        let sent = |message: String| {
            let mut fields = HeaderMap::new();
            Status::new(Code::UNKNOWN, message).write(&mut fields);
            let read = Status::read(&fields).unwrap().message.into_owned();
            (fields[MESSAGE].len(), read)
        };
        let whole = "a".repeat(MESSAGE_BYTES);
        assert_eq!(sent(whole.clone()), (MESSAGE_BYTES, whole));
        let (length, read) = sent("a".repeat(300_000));
        assert_eq!(length, MESSAGE_BYTES);
        assert!(read.starts_with("aaaa"), "{read}");
        assert!(read.ends_with("a [cut, the message has 300000 bytes]"));
        // Twelve bytes for each character on the wire.
        let (length, read) = sent("\u{1F608}".repeat(200));
        assert!((MESSAGE_BYTES - 12..=MESSAGE_BYTES).contains(&length));
        assert!(read.ends_with("\u{1F608} [cut, the message has 800 bytes]"));
    }

    #[test]
    fn there_are_seventeen_codes() {
        assert_eq!(Code::new(16).map(Code::number), Some(16));
        assert_eq!(Code::new(17), None);
        assert_eq!(Code::new(-1), None);
    }
}
