use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use bytes::Bytes;

use super::codec::frame::ContentHeader;
use super::codec::wire::Malformed;
use super::{Error, Field, FieldTable, Properties};

/// A message to publish, borrowed for the call.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    /// Empty for the default exchange, which routes to the queue named by the routing key.
    pub exchange: &'a str,
    pub routing_key: &'a str,
    pub properties: &'a Properties<'a>,
    pub body: &'a [u8],
    /// Whether a message that reaches no queue comes back as [`Error::Unroutable`].
    pub mandatory: bool,
}

impl Message<'_> {
    pub(super) fn check(&self) -> Result<(), Error> {
        check_short("exchange", self.exchange)?;
        check_short("routing key", self.routing_key)?;
        for (what, text) in self.properties.texts() {
            check_short(what, text.unwrap_or_default())?;
        }
        check_table(&self.properties.headers)
    }
}

/// AMQP's short strings hold at most 255 bytes.
pub(super) fn check_short(what: &str, text: &str) -> Result<(), Error> {
    if text.len() <= 255 {
        return Ok(());
    }
    let start: String = text.chars().take(40).collect();
    Err(Error::usage(format!(
        "the {what} \"{start}…\" has {} bytes, AMQP allows 255",
        text.len()
    )))
}

/// Headers and arguments that the broker can take. RabbitMQ answers a float that is not finite by closing the connection: Erlang has none.
pub(super) fn check_table(table: &FieldTable<'_>) -> Result<(), Error> {
    check_entries(table, None)
}

fn check_entries(table: &FieldTable<'_>, outer: Option<&Path<'_>>) -> Result<(), Error> {
    table.0.iter().try_for_each(|(name, field)| {
        check_short("name of AMQP header or argument", name)?;
        check_field(field, &Path { outer, name })
    })
}

fn check_field(field: &Field<'_>, path: &Path<'_>) -> Result<(), Error> {
    match field {
        Field::F32(number) => check_float(f64::from(*number), path),
        Field::F64(number) => check_float(*number, path),
        Field::Table(table) => check_entries(table, Some(path)),
        Field::Array(fields) => fields.iter().enumerate().try_for_each(|(index, field)| {
            let path = Path {
                outer: Some(path),
                name: &index,
            };
            check_field(field, &path)
        }),
        _ => Ok(()),
    }
}

fn check_float(number: f64, path: &Path<'_>) -> Result<(), Error> {
    if number.is_finite() {
        return Ok(());
    }
    let shown = number.to_string().to_uppercase();
    Err(Error::usage(format!(
        "AMQP header or argument \"{path}\" must be a finite number, got {shown}"
    )))
}

/// Where a field is, for messages: `x.y` in a table, `x.0` in an array.
struct Path<'a> {
    outer: Option<&'a Path<'a>>,
    name: &'a dyn fmt::Display,
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.outer {
            Some(outer) => write!(f, "{outer}.{}", self.name),
            None => self.name.fmt(f),
        }
    }
}

/// Names one delivery to its consumer. A tag from before a reconnect settles nothing: the broker delivers again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DeliveryTag(u64);

impl DeliveryTag {
    /// Channel generations wrap after 2^19, tags of one channel after 2^44; the result fits a signed 64-bit integer.
    const TAG_BITS: u32 = 44;
    pub(super) const GENERATIONS: u32 = 1 << 19;

    pub(super) fn new(generation: u32, tag: u64) -> Self {
        Self((u64::from(generation) << Self::TAG_BITS) | tag)
    }

    pub(super) fn generation(self) -> u32 {
        (self.0 >> Self::TAG_BITS) as u32
    }

    pub(super) fn tag(self) -> u64 {
        self.0 & ((1 << Self::TAG_BITS) - 1)
    }

    /// A number for a host language; never above `i64::MAX`.
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// The inverse of [`to_bits`](Self::to_bits); other numbers name no delivery.
    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}

/// A message from the broker. It shares memory with what was read from the socket until it is dropped.
#[derive(Debug, Clone)]
pub struct Delivery {
    tag: DeliveryTag,
    redelivered: bool,
    raw: Bytes,
    layout: Layout,
}

/// Where the parts of a delivery lie in its bytes.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    /// The exchange's length octet; the routing key follows the exchange.
    pub(super) exchange_at: u32,
    pub(super) properties: Range<u32>,
    pub(super) body: Range<u32>,
}

impl Delivery {
    pub(super) fn new(tag: DeliveryTag, redelivered: bool, raw: Bytes, layout: Layout) -> Self {
        Self {
            tag,
            redelivered,
            raw,
            layout,
        }
    }

    pub fn tag(&self) -> DeliveryTag {
        self.tag
    }

    /// Whether the broker may have delivered this message before.
    pub fn redelivered(&self) -> bool {
        self.redelivered
    }

    pub fn exchange(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.short_at(self.layout.exchange_at as usize).0)
    }

    pub fn routing_key(&self) -> Cow<'_, str> {
        let (_, next) = self.short_at(self.layout.exchange_at as usize);
        String::from_utf8_lossy(self.short_at(next).0)
    }

    /// Decoded on each call.
    ///
    /// # Errors
    /// [`Error::Usage`] if the publisher sent properties that do not follow the protocol.
    pub fn properties(&self) -> Result<Properties<'_>, Error> {
        let decoded = Properties::decode(self.slice(&self.layout.properties));
        decoded.map_err(|Malformed(what)| {
            Error::usage(format!(
                "the message's properties cannot be read: malformed {what}"
            ))
        })
    }

    pub fn body(&self) -> &[u8] {
        self.slice(&self.layout.body)
    }

    /// The body without copying it.
    pub fn body_bytes(&self) -> Bytes {
        let Range { start, end } = self.layout.body;
        self.raw.slice(start as usize..end as usize)
    }

    fn slice(&self, range: &Range<u32>) -> &[u8] {
        &self.raw[range.start as usize..range.end as usize]
    }

    fn short_at(&self, at: usize) -> (&[u8], usize) {
        let end = at + 1 + usize::from(self.raw[at]);
        (&self.raw[at + 1..end], end)
    }
}

/// Where the properties lie in a content header's payload that starts at `start`.
pub(super) fn properties_range(start: usize, payload_len: usize) -> Range<u32> {
    (start + ContentHeader::LEN) as u32..(start + payload_len) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(table: FieldTable<'_>) -> String {
        check_table(&table).unwrap_err().to_string()
    }

    #[test]
    fn a_float_that_is_not_finite_is_refused_with_its_path() {
        for (number, shown) in [
            (f64::NAN, "NAN"),
            (f64::INFINITY, "INF"),
            (f64::NEG_INFINITY, "-INF"),
        ] {
            let nested = FieldTable::new().with("y", Field::Array(vec![1.5.into(), number.into()]));
            assert_eq!(
                refusal(FieldTable::new().with("x", nested)),
                format!("AMQP header or argument \"x.y.1\" must be a finite number, got {shown}")
            );
        }
        assert!(refusal(FieldTable::new().with("x", Field::F32(f32::NAN))).contains("\"x\""));
    }

    #[test]
    fn a_name_longer_than_a_short_string_is_refused_at_every_depth() {
        let table = |length: usize| FieldTable::new().with("k".repeat(length), 1);
        assert_eq!(check_table(&table(255)), Ok(()));
        assert!(refusal(table(256)).contains("has 256 bytes, AMQP allows 255"));
        let nested = Field::Array(vec![table(256).into()]);
        assert!(refusal(FieldTable::new().with("x", nested)).contains("has 256 bytes"));
    }
}
