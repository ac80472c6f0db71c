use std::time::Duration;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use hyper::HeaderMap;
use hyper::header::{self, HeaderName, HeaderValue};

/// Binary values are sent without padding and accepted with and without it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);
/// `google.rpc.Status`, allowed in metadata although its name is reserved for the protocol.
pub(super) const DETAILS: &str = "grpc-status-details-bin";
/// The same: the server's retry delay.
pub(super) const PUSHBACK: &str = "grpc-retry-pushback-ms";

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
    #[error(
        "\"{0}\" is not a name of metadata: it may have lower-case letters, digits, \"_\", \"-\" and \".\""
    )]
    Name(String),
    #[error("the metadata \"{0}\" belongs to the protocol")]
    Reserved(String),
    #[error(
        "the metadata \"{0}\" must be printable ASCII; bytes go into a name that ends in \"-bin\""
    )]
    Value(String),
}

/// A decoded value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetadataValue<'a> {
    Text(&'a [u8]),
    Binary(Vec<u8>),
}

impl MetadataValue<'_> {
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text,
            Self::Binary(bytes) => bytes,
        }
    }
}

/// The metadata among header fields: those that belong to neither gRPC nor HTTP. Binary values that are not base64 are skipped.
pub fn metadata(fields: &HeaderMap) -> impl Iterator<Item = (&str, MetadataValue<'_>)> {
    fields
        .iter()
        .filter(|(name, _)| !belongs_to_the_protocol(name.as_str()))
        .flat_map(|(name, value)| {
            let name = name.as_str();
            values(name, value).map(move |value| (name, value))
        })
}

fn values<'a>(
    name: &str,
    value: &'a HeaderValue,
) -> Box<dyn Iterator<Item = MetadataValue<'a>> + 'a> {
    let bytes = value.as_bytes();
    if !name.ends_with("-bin") {
        return Box::new(std::iter::once(MetadataValue::Text(bytes)));
    }
    // One field may hold several values, separated by commas, which base64 does not contain.
    let decoded = bytes
        .split(|byte| *byte == b',')
        .filter_map(|part| BASE64.decode(part.trim_ascii()).ok())
        .map(MetadataValue::Binary);
    Box::new(decoded)
}

pub(super) fn belongs_to_the_protocol(name: &str) -> bool {
    match name {
        "content-type" | "te" | "content-length" | "date" | "host" | "connection"
        | "keep-alive" | "proxy-connection" | "transfer-encoding" | "upgrade" => true,
        DETAILS | PUSHBACK => false,
        name => name.starts_with("grpc-"),
    }
}

/// The size of the header list of a response as RFC 9113 §6.5.2 counts it, with room for the fields that are added to these:
/// `:status`, `date`, `content-type`.
pub(super) fn header_list_bytes(fields: &HeaderMap) -> usize {
    const OTHERS: usize = 256;
    OTHERS + fields_bytes(fields)
}

/// The same for a request, with its pseudo-header fields (RFC 9113 §8.3.1).
pub(super) fn request_header_list_bytes<B>(request: &hyper::Request<B>) -> usize {
    let uri = request.uri();
    let path = uri
        .path_and_query()
        .map_or("/", |path_and_query| path_and_query.as_str());
    let pseudo = [
        (":method", request.method().as_str()),
        (":scheme", uri.scheme_str().unwrap_or_default()),
        (
            ":authority",
            uri.authority().map_or("", |name| name.as_str()),
        ),
        (":path", path),
    ];
    let pseudo = pseudo.map(|(name, value)| field_bytes(name, value.len()));
    pseudo.iter().sum::<usize>() + fields_bytes(request.headers())
}

fn fields_bytes(fields: &HeaderMap) -> usize {
    let fields = fields.iter();
    fields
        .map(|(name, value)| field_bytes(name.as_str(), value.len()))
        .sum()
}

fn field_bytes(name: &str, value: usize) -> usize {
    const OVERHEAD: usize = 32;
    name.len() + value + OVERHEAD
}

/// Encodes metadata. Values of names that end in `-bin` are bytes.
///
/// # Errors
/// A name or value is not valid in a header.
pub fn trailers<'a>(
    entries: impl IntoIterator<Item = (impl AsRef<str>, &'a [u8])>,
) -> Result<HeaderMap, MetadataError> {
    let mut fields = HeaderMap::new();
    for (name, value) in entries {
        let name = name.as_ref();
        let is_name = !name.is_empty()
            && name
                .bytes()
                .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.'));
        let key = HeaderName::from_bytes(name.as_bytes())
            .ok()
            .filter(|_| is_name)
            .ok_or_else(|| MetadataError::Name(name.to_owned()))?;
        if belongs_to_the_protocol(name) {
            return Err(MetadataError::Reserved(name.to_owned()));
        }
        fields.append(key, wire_value(name, value)?);
    }
    Ok(fields)
}

fn wire_value(name: &str, value: &[u8]) -> Result<HeaderValue, MetadataError> {
    let refuse = || MetadataError::Value(name.to_owned());
    if name.ends_with("-bin") {
        return HeaderValue::try_from(BASE64.encode(value)).map_err(|_| refuse());
    }
    let is_text = value.iter().all(|byte| matches!(byte, b' '..=b'~'));
    match is_text {
        true => HeaderValue::from_bytes(value).map_err(|_| refuse()),
        false => Err(refuse()),
    }
}

/// `grpc-timeout`: at most eight digits and a unit. `None` where it is malformed.
pub(super) fn parse_timeout(value: &[u8]) -> Option<Duration> {
    let (unit, digits) = value.split_last()?;
    if digits.is_empty() || digits.len() > 8 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = digits
        .iter()
        .fold(0_u64, |number, digit| number * 10 + u64::from(digit - b'0'));
    match unit {
        b'H' => Some(Duration::from_secs(number * 3600)),
        b'M' => Some(Duration::from_secs(number * 60)),
        b'S' => Some(Duration::from_secs(number)),
        b'm' => Some(Duration::from_millis(number)),
        b'u' => Some(Duration::from_micros(number)),
        b'n' => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

/// Formats a timeout in the finest unit that fits eight digits, rounded up.
pub(super) fn timeout_value(timeout: Duration) -> HeaderValue {
    const UNITS: [(char, u128); 5] = [
        ('n', 1),
        ('u', 1_000),
        ('m', 1_000_000),
        ('S', 1_000_000_000),
        ('M', 60_000_000_000),
    ];
    let nanos = timeout.as_nanos();
    let fitting = UNITS.iter().find_map(|(unit, size)| {
        let number = nanos.div_ceil(*size);
        (number < 100_000_000).then(|| format!("{number}{unit}"))
    });
    let text = fitting.unwrap_or_else(|| "99999999H".to_owned());
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("99999999H"))
}

/// The suffix of the content type, such as `+proto`, or nothing.
pub(super) fn content_type(fields: &HeaderMap) -> &[u8] {
    fields
        .get(header::CONTENT_TYPE)
        .map_or(b"", |value| value.as_bytes())
}

/// The content type of the response, which is that of the request. It is a copy: a slice would stay in the dynamic header table (RFC
/// 7541 §2.3.2) for the life of the connection, and keep the whole read buffer of the request alive.
pub(super) fn answered_type(asked: &HeaderMap) -> HeaderValue {
    const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
    match content_type(asked) {
        b"" | b"application/grpc" => GRPC,
        b"application/grpc+proto" => HeaderValue::from_static("application/grpc+proto"),
        other => HeaderValue::from_bytes(other).unwrap_or(GRPC),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_has_eight_digits_at_most_and_a_unit() {
        let seconds = |text: &str| parse_timeout(text.as_bytes()).map(|time| time.as_secs_f64());
        assert_eq!(seconds("1H"), Some(3600.0));
        assert_eq!(seconds("2M"), Some(120.0));
        assert_eq!(seconds("99999999S"), Some(99_999_999.0));
        assert_eq!(seconds("1500m"), Some(1.5));
        assert_eq!(seconds("100u"), Some(0.0001));
        assert_eq!(seconds("0n"), Some(0.0));
        for wrong in ["", "S", "1", "1s", "100000000S", "-1S", "1 S", "1.5S"] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_timeout_is_sent_in_the_finest_unit_that_fits() {
        let text = |seconds| timeout_value(Duration::from_secs_f64(seconds));
        assert_eq!(text(0.05), "50000000n");
        assert_eq!(text(1.5), "1500000u");
        assert_eq!(text(1e3), "1000000m");
        assert_eq!(timeout_value(Duration::MAX), "99999999H");
    }

    #[test]
    fn binary_values_are_read_with_and_without_padding_and_several_in_one_field() {
        let mut fields = HeaderMap::new();
        fields.append("a-bin", HeaderValue::from_static("q6ur, q6s=,q6s,!!"));
        fields.append("b", HeaderValue::from_static("text"));
        fields.append("grpc-timeout", HeaderValue::from_static("1S"));
        let read: Vec<_> = metadata(&fields).collect();
        assert_eq!(
            read,
            [
                ("a-bin", MetadataValue::Binary(vec![0xab, 0xab, 0xab])),
                ("a-bin", MetadataValue::Binary(vec![0xab, 0xab])),
                ("a-bin", MetadataValue::Binary(vec![0xab, 0xab])),
                ("b", MetadataValue::Text(b"text")),
            ]
        );
    }

    #[test]
    fn an_answer_has_the_type_of_its_call_and_none_of_its_memory() {
        for kind in [
            "application/grpc",
            "application/grpc+proto",
            "application/grpc-web+json",
        ] {
            let read = bytes::Bytes::from(kind.as_bytes().to_vec());
            let mut asked = HeaderMap::new();
            let value = HeaderValue::from_maybe_shared(read.clone()).unwrap();
            asked.insert(header::CONTENT_TYPE, value);
            assert!(!read.is_unique());
            let answered = answered_type(&asked);
            drop(asked);
            assert_eq!(answered, kind);
            assert!(read.is_unique(), "{kind}");
        }
        assert_eq!(answered_type(&HeaderMap::new()), "application/grpc");
    }

    #[test]
    fn invalid_metadata_is_refused_by_name() {
        let refused = |name, value: &'static [u8]| trailers([(name, value)]).unwrap_err();
        assert_eq!(refused("Upper", b""), MetadataError::Name("Upper".into()));
        assert_eq!(refused("", b""), MetadataError::Name(String::new()));
        let reserved = MetadataError::Reserved("grpc-status".into());
        assert_eq!(refused("grpc-status", b"0"), reserved);
        assert_eq!(refused("a", b"\xff"), MetadataError::Value("a".into()));
        assert_eq!(refused("a", b"x\ny"), MetadataError::Value("a".into()));
        assert_eq!(
            trailers([("a-bin", &b"\xff\xff"[..])]).unwrap()["a-bin"],
            "//8"
        );
    }
}
