use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{BufMut, Bytes, BytesMut};
use hyper::HeaderMap;

use super::status::Status;

/// The wire format of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Grpc,
    /// grpc-web: the trailers are the last message, so that browsers can read them.
    Web,
    /// grpc-web in base64.
    WebText,
    /// Plain HTTP: a body is a message in JSON.
    Json,
}

impl Protocol {
    /// The format for a content type.
    pub(super) fn of(content_type: &[u8]) -> Option<Self> {
        let rest = content_type.strip_prefix(b"application/grpc")?;
        let (protocol, rest) = if let Some(rest) = rest.strip_prefix(b"-web-text") {
            (Self::WebText, rest)
        } else if let Some(rest) = rest.strip_prefix(b"-web") {
            (Self::Web, rest)
        } else {
            (Self::Grpc, rest)
        };
        matches!(rest.first(), None | Some(b'+' | b';' | b' ')).then_some(protocol)
    }
}

/// The flag of the message with the trailers.
const TRAILERS: u8 = 0x80;

/// The trailers as the last message of a grpc-web call.
pub(super) fn trailers_frame(trailers: &HeaderMap) -> Bytes {
    let mut text = BytesMut::new();
    for (name, value) in trailers {
        text.extend_from_slice(name.as_str().as_bytes());
        text.extend_from_slice(b": ");
        text.extend_from_slice(value.as_bytes());
        text.extend_from_slice(b"\r\n");
    }
    let mut frame = BytesMut::with_capacity(text.len() + 5);
    frame.put_u8(TRAILERS);
    frame.put_u32(text.len() as u32);
    frame.extend_from_slice(&text);
    frame.freeze()
}

pub(super) fn text(bytes: &[u8]) -> Bytes {
    STANDARD.encode(bytes).into()
}

/// Decodes base64 in chunks. It may be padded in the middle if the sender has encoded messages one by one.
#[derive(Debug, Default)]
pub(super) struct TextDecoder {
    group: Vec<u8>,
}

impl TextDecoder {
    pub(super) fn decode(&mut self, chunk: &[u8]) -> Result<Bytes, Status> {
        let mut bytes = Vec::with_capacity(chunk.len() / 4 * 3 + 3);
        for byte in chunk.iter().filter(|byte| !byte.is_ascii_whitespace()) {
            self.group.push(*byte);
            if self.group.len() == 4 {
                STANDARD
                    .decode_vec(&self.group, &mut bytes)
                    .map_err(|error| {
                        Status::internal(format!("the body is not valid base64: {error}"))
                    })?;
                self.group.clear();
            }
        }
        Ok(bytes.into())
    }

    pub(super) fn is_inside(&self) -> bool {
        !self.group.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_type_names_the_protocol() {
        let of = |text: &str| Protocol::of(text.as_bytes());
        assert_eq!(of("application/grpc"), Some(Protocol::Grpc));
        assert_eq!(of("application/grpc+proto"), Some(Protocol::Grpc));
        assert_eq!(of("application/grpc;a=b"), Some(Protocol::Grpc));
        assert_eq!(of("application/grpc-web"), Some(Protocol::Web));
        assert_eq!(
            of("application/grpc-web-text+proto"),
            Some(Protocol::WebText)
        );
        assert_eq!(of("application/grpcx"), None);
        assert_eq!(of("application/json"), None);
    }

    #[test]
    fn base64_is_decoded_in_any_chunks_and_with_padding_in_the_middle() {
        let mut decoder = TextDecoder::default();
        let mut bytes = Vec::new();
        for chunk in ["YQ", "==Ym", "M", "="] {
            bytes.extend_from_slice(&decoder.decode(chunk.as_bytes()).unwrap());
        }
        assert_eq!(bytes, b"abc");
        assert!(!decoder.is_inside());
        assert!(decoder.decode(b"!!!!").is_err());
    }
}
