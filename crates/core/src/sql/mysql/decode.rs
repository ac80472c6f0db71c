//! Rows of the binary and of the text protocol.

use std::sync::Arc;

use super::wire::{Malformed, Reader};
use crate::sql::{Column, Value};

const UNSIGNED: u16 = 0x20;
/// The number of the character set `binary`.
const BINARY: u16 = 63;

/// The columns of a result and how their values are decoded.
#[derive(Debug, Clone, Default)]
pub(super) struct RowShape {
    pub(super) columns: Arc<[Column]>,
    kinds: Arc<[Kind]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bool,
    /// A fixed number of bytes.
    Int {
        width: u8,
        unsigned: bool,
    },
    Bit,
    Float,
    Double,
    Text,
    Bytes,
    Json,
    Date,
    DateTime {
        decimals: u8,
    },
    Time {
        decimals: u8,
    },
    Null,
}

/// A column definition.
pub(super) struct Definition {
    column: Column,
    kind: Kind,
}

impl Definition {
    /// `extended`: MariaDB's extended metadata, such as that a text column holds JSON.
    pub(super) fn read(packet: &[u8], extended: bool) -> Result<Self, Malformed> {
        let mut reader = Reader(packet);
        // Catalog, schema, table and original table.
        for _ in 0..4 {
            reader.string()?;
        }
        let name = reader.text()?;
        reader.string()?;
        let is_json = extended && says_json(reader.string()?)?;
        reader.length()?;
        let charset = reader.u16()?;
        let length = reader.u32()?;
        let code = reader.u8()?;
        let unsigned = reader.u16()? & UNSIGNED != 0;
        let decimals = reader.u8()?;
        let (kind, type_name) = kind(code, charset, length, unsigned, decimals);
        let (kind, type_name) = match kind {
            Kind::Text if is_json => (Kind::Json, "json"),
            _ => (kind, type_name),
        };
        Ok(Self {
            column: Column {
                name,
                type_name: type_name.to_owned(),
            },
            kind,
        })
    }
}

/// Whether the extended metadata has the format `json`.
fn says_json(metadata: &[u8]) -> Result<bool, Malformed> {
    const FORMAT: u8 = 1;
    let mut reader = Reader(metadata);
    while !reader.is_empty() {
        let key = reader.u8()?;
        if reader.string()? == b"json" && key == FORMAT {
            return Ok(true);
        }
    }
    Ok(false)
}

fn kind(code: u8, charset: u16, length: u32, unsigned: bool, decimals: u8) -> (Kind, &'static str) {
    let int = |width| Kind::Int { width, unsigned };
    let text = |text, bytes| match charset {
        BINARY => (Kind::Bytes, bytes),
        _ => (Kind::Text, text),
    };
    match code {
        1 if length == 1 && !unsigned => (Kind::Bool, "bool"),
        1 => (int(1), "tinyint"),
        2 => (int(2), "smallint"),
        3 => (int(4), "int"),
        4 => (Kind::Float, "float"),
        5 => (Kind::Double, "double"),
        6 => (Kind::Null, "null"),
        7 => (Kind::DateTime { decimals }, "timestamp"),
        8 => (int(8), "bigint"),
        9 => (int(4), "mediumint"),
        10 | 14 => (Kind::Date, "date"),
        11 | 19 => (Kind::Time { decimals }, "time"),
        12 | 18 => (Kind::DateTime { decimals }, "datetime"),
        13 => (int(2), "year"),
        16 => (Kind::Bit, "bit"),
        0 | 246 => (Kind::Text, "decimal"),
        245 => (Kind::Json, "json"),
        247 => (Kind::Text, "enum"),
        248 => (Kind::Text, "set"),
        249..=252 => text("text", "blob"),
        255 => (Kind::Bytes, "geometry"),
        254 => text("char", "binary"),
        _ => text("varchar", "varbinary"),
    }
}

impl RowShape {
    pub(super) fn new(definitions: Vec<Definition>) -> Self {
        let kinds = definitions
            .iter()
            .map(|definition| definition.kind)
            .collect();
        let columns = definitions.into_iter().map(|definition| definition.column);
        Self {
            columns: columns.collect(),
            kinds,
        }
    }

    /// A row of a prepared statement.
    pub(super) fn binary(&self, packet: &[u8]) -> Result<Vec<Value>, Malformed> {
        let mut reader = Reader(packet);
        if reader.u8()? != 0 {
            return Err(Malformed);
        }
        // The first two bits of the bitmap of nulls are unused.
        let nulls = reader.bytes((self.kinds.len() + 9) / 8)?;
        let is_null = |at: usize| nulls[(at + 2) / 8] & (1 << ((at + 2) % 8)) != 0;
        let values = self.kinds.iter().enumerate();
        values
            .map(|(at, kind)| match is_null(at) {
                true => Ok(Value::Null),
                false => kind.binary(&mut reader),
            })
            .collect()
    }

    /// A row of a statement that cannot be prepared.
    pub(super) fn text(&self, packet: &[u8]) -> Result<Vec<Value>, Malformed> {
        const NULL: u8 = 0xfb;
        let mut reader = Reader(packet);
        let values = self.kinds.iter();
        values
            .map(|kind| {
                if reader.0.first() == Some(&NULL) {
                    reader.u8()?;
                    return Ok(Value::Null);
                }
                kind.text(reader.string()?)
            })
            .collect()
    }
}

impl Kind {
    fn binary(self, reader: &mut Reader<'_>) -> Result<Value, Malformed> {
        Ok(match self {
            Self::Bool => boolean((reader.u8()? as i8).into()),
            Self::Int { width, unsigned } => read_int(reader, width, unsigned)?,
            Self::Float => float(f32::from_bits(reader.u32()?)),
            Self::Double => Value::Float(f64::from_bits(reader.u64()?)),
            Self::Date => date(reader)?,
            Self::DateTime { decimals } => datetime(reader, decimals)?,
            Self::Time { decimals } => time(reader, decimals)?,
            Self::Null => Value::Null,
            Self::Bit | Self::Text | Self::Bytes | Self::Json => self.string(reader.string()?),
        })
    }

    fn text(self, bytes: &[u8]) -> Result<Value, Malformed> {
        fn parse<T: std::str::FromStr>(bytes: &[u8]) -> Result<T, Malformed> {
            let text = std::str::from_utf8(bytes).map_err(|_| Malformed)?;
            text.parse().map_err(|_| Malformed)
        }
        Ok(match self {
            Self::Bool => boolean(parse(bytes)?),
            Self::Int { unsigned: true, .. } => unsigned(parse(bytes)?),
            Self::Int { .. } => Value::Int(parse(bytes)?),
            Self::Float | Self::Double => Value::Float(parse(bytes)?),
            Self::Date | Self::DateTime { .. } if is_no_date(bytes) => Self::Text.string(bytes),
            Self::Date => Value::Date(String::from_utf8_lossy(bytes).into_owned()),
            Self::DateTime { .. } => Value::Timestamp(String::from_utf8_lossy(bytes).into_owned()),
            Self::Time { .. } => Self::Text.string(bytes),
            Self::Null => Value::Null,
            Self::Bit | Self::Text | Self::Bytes | Self::Json => self.string(bytes),
        })
    }

    fn string(self, bytes: &[u8]) -> Value {
        match (self, std::str::from_utf8(bytes)) {
            (Self::Bit, _) => bit(bytes),
            (Self::Json, Ok(text)) => Value::Json(text.to_owned()),
            (Self::Text, Ok(text)) => Value::Text(text.to_owned()),
            _ => Value::Bytes(bytes.to_vec()),
        }
    }
}

/// MySQL may hold dates that no calendar has: a year, month or day of 0, or the 31st of February.
fn is_no_date(bytes: &[u8]) -> bool {
    let number = |range| {
        let digits = std::str::from_utf8(bytes.get(range)?).ok()?;
        digits.parse::<u32>().ok()
    };
    match (number(0..4), number(5..7), number(8..10)) {
        (Some(year), Some(month), Some(day)) => {
            year == 0 || month == 0 || day == 0 || day > days(year, month)
        }
        _ => true,
    }
}

fn days(year: u32, month: u32) -> u32 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 => 28 + u32::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn read_int(reader: &mut Reader<'_>, width: u8, is_unsigned: bool) -> Result<Value, Malformed> {
    Ok(match (width, is_unsigned) {
        (1, true) => Value::Int(reader.u8()?.into()),
        (1, false) => Value::Int((reader.u8()? as i8).into()),
        (2, true) => Value::Int(reader.u16()?.into()),
        (2, false) => Value::Int((reader.u16()? as i16).into()),
        (4, true) => Value::Int(reader.u32()?.into()),
        (4, false) => Value::Int((reader.u32()? as i32).into()),
        (_, true) => unsigned(reader.u64()?),
        (_, false) => Value::Int(reader.u64()? as i64),
    })
}

/// `BOOLEAN` is an alias of `TINYINT(1)`, which holds any number of a byte.
fn boolean(number: i64) -> Value {
    match number {
        0 | 1 => Value::Bool(number == 1),
        other => Value::Int(other),
    }
}

/// Values beyond a signed 64-bit integer are returned as text, which is exact.
fn unsigned(number: u64) -> Value {
    match i64::try_from(number) {
        Ok(number) => Value::Int(number),
        Err(_) => Value::Text(number.to_string()),
    }
}

/// The shortest decimal with the same value: 0.1, not 0.10000000149011612.
fn float(number: f32) -> Value {
    let text = number.to_string();
    Value::Float(text.parse().unwrap_or_else(|_| f64::from(number)))
}

/// `BIT(n)`, most significant byte first.
fn bit(bytes: &[u8]) -> Value {
    let value = bytes
        .iter()
        .fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
    unsigned(value)
}

fn date(reader: &mut Reader<'_>) -> Result<Value, Malformed> {
    let mut fields = Reader(reader.string()?);
    let (year, month, day) = match fields.is_empty() {
        true => (0, 0, 0),
        false => (fields.u16()?, fields.u8()?, fields.u8()?),
    };
    let text = format!("{year:04}-{month:02}-{day:02}");
    Ok(match is_no_date(text.as_bytes()) {
        true => Value::Text(text),
        false => Value::Date(text),
    })
}

fn datetime(reader: &mut Reader<'_>, decimals: u8) -> Result<Value, Malformed> {
    let mut fields = Reader(reader.string()?);
    let (year, month, day) = match fields.is_empty() {
        true => (0, 0, 0),
        false => (fields.u16()?, fields.u8()?, fields.u8()?),
    };
    let (hour, minute, second) = match fields.is_empty() {
        true => (0, 0, 0),
        false => (fields.u8()?, fields.u8()?, fields.u8()?),
    };
    let fraction = fraction(&mut fields, decimals)?;
    let text = format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}{fraction}");
    Ok(match is_no_date(text.as_bytes()) {
        true => Value::Text(text),
        false => Value::Timestamp(text),
    })
}

/// A time of day or a duration of up to 838 hours, positive or negative.
fn time(reader: &mut Reader<'_>, decimals: u8) -> Result<Value, Malformed> {
    let mut fields = Reader(reader.string()?);
    if fields.is_empty() {
        return Ok(Value::Text(format!(
            "00:00:00{}",
            fraction(&mut fields, decimals)?
        )));
    }
    let sign = if fields.u8()? == 0 { "" } else { "-" };
    let days = fields.u32()?;
    let hours = u64::from(days) * 24 + u64::from(fields.u8()?);
    let (minutes, seconds) = (fields.u8()?, fields.u8()?);
    let fraction = fraction(&mut fields, decimals)?;
    Ok(Value::Text(format!(
        "{sign}{hours:02}:{minutes:02}:{seconds:02}{fraction}"
    )))
}

/// With as many digits as the column has, as in the server's text form.
fn fraction(fields: &mut Reader<'_>, decimals: u8) -> Result<String, Malformed> {
    let microseconds = match fields.is_empty() {
        true => 0,
        false => fields.u32()?,
    };
    Ok(match decimals {
        0 if microseconds == 0 => String::new(),
        1..=6 => format!(".{microseconds:06}")[..=usize::from(decimals)].to_owned(),
        _ if microseconds == 0 => String::new(),
        _ => format!(".{microseconds:06}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_beyond_an_int_stay_exact() {
        let mut reader = Reader(&u64::MAX.to_le_bytes());
        let read = read_int(&mut reader, 8, true);
        assert_eq!(read, Ok(Value::Text("18446744073709551615".to_owned())));
        assert_eq!(
            bit(&[0xff; 8]),
            Value::Text("18446744073709551615".to_owned())
        );
        assert_eq!(bit(&[1, 0]), Value::Int(256));
        assert_eq!(float(0.1), Value::Float(0.1));
    }

    #[test]
    fn times_are_written_as_the_server_writes_them() {
        let days = |bytes: &[u8]| {
            let mut packet = vec![bytes.len() as u8];
            packet.extend_from_slice(bytes);
            packet
        };
        let packet = days(&[1, 34, 0, 0, 0, 22, 59, 59]);
        assert_eq!(
            time(&mut Reader(&packet), 0),
            Ok(Value::Text("-838:59:59".to_owned()))
        );
        let packet = days(&[0, 0, 0, 0, 0, 1, 2, 3, 0x20, 0xa1, 7, 0]);
        assert_eq!(
            time(&mut Reader(&packet), 1),
            Ok(Value::Text("01:02:03.5".to_owned()))
        );
        assert_eq!(
            datetime(&mut Reader(&[0]), 0),
            Ok(Value::Text("0000-00-00 00:00:00".to_owned()))
        );
        let packet = days(&[0xe8, 7, 2, 29]);
        assert_eq!(
            date(&mut Reader(&packet)),
            Ok(Value::Date("2024-02-29".to_owned()))
        );
        assert_eq!(
            datetime(&mut Reader(&packet), 6),
            Ok(Value::Timestamp("2024-02-29 00:00:00.000000".to_owned()))
        );
        for cut in 1..packet.len() {
            assert_eq!(date(&mut Reader(&packet[..cut])), Err(Malformed));
        }
    }
}
