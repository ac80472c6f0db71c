//! Parameters in the binary protocol.

use bytes::{BufMut, BytesMut};

use super::wire::put_length;
use crate::sql::error::excerpt;
use crate::sql::{Error, Statement, Value, json};

const COM_STMT_EXECUTE: u8 = 0x17;

const TINY: u8 = 1;
const DOUBLE: u8 = 5;
const NULL: u8 = 6;
const LONGLONG: u8 = 8;
const DATE: u8 = 10;
const DATETIME: u8 = 12;
const BLOB: u8 = 252;
const VAR_STRING: u8 = 253;

/// The reason why a parameter cannot be sent; completes "parameter 1 …".
type TypeMismatch = String;

/// Writes the body of `COM_STMT_EXECUTE`; with `cursor` the server keeps the rows.
///
/// # Errors
/// [`Error::Parameter`]; the output is then incomplete and must be discarded.
pub(super) fn execute(
    id: u32,
    statement: &Statement,
    cursor: bool,
    out: &mut BytesMut,
) -> Result<(), Error> {
    let params = &statement.params;
    out.put_u8(COM_STMT_EXECUTE);
    out.put_u32_le(id);
    // `CURSOR_TYPE_READ_ONLY` or none; one execution.
    out.put_u8(cursor.into());
    out.put_u32_le(1);
    if params.is_empty() {
        return Ok(());
    }
    let nulls = out.len();
    out.put_bytes(0, params.len().div_ceil(8));
    out.put_u8(1);
    for (at, value) in params.iter().enumerate() {
        if *value == Value::Null {
            out[nulls + at / 8] |= 1 << (at % 8);
        }
        out.put_slice(&[type_of(value), 0]);
    }
    for (at, value) in params.iter().enumerate() {
        put(value, out).map_err(|mismatch| Error::Parameter {
            statement: excerpt(&statement.source),
            message: format!("parameter {} {mismatch}", at + 1),
        })?;
    }
    Ok(())
}

fn type_of(value: &Value) -> u8 {
    match value {
        Value::Null => NULL,
        Value::Bool(_) => TINY,
        Value::Int(_) => LONGLONG,
        Value::Float(_) => DOUBLE,
        Value::Text(_) | Value::Json(_) | Value::List(_) => VAR_STRING,
        Value::Bytes(_) => BLOB,
        Value::Date(_) => DATE,
        Value::Timestamp(_) => DATETIME,
    }
}

fn put(value: &Value, out: &mut BytesMut) -> Result<(), TypeMismatch> {
    match value {
        Value::Null => {}
        Value::Bool(flag) => out.put_u8((*flag).into()),
        Value::Int(number) => out.put_i64_le(*number),
        Value::Float(number) if number.is_finite() => out.put_f64_le(*number),
        Value::Float(_) => return Err("is NaN or infinite, which MySQL cannot hold".to_owned()),
        Value::Text(text) | Value::Json(text) => put_string(text.as_bytes(), out),
        Value::Bytes(bytes) => put_string(bytes, out),
        Value::List(items) => put_string(json::encode(items)?.as_bytes(), out),
        Value::Date(text) | Value::Timestamp(text) => put_time(text, out)?,
    }
    Ok(())
}

fn put_string(bytes: &[u8], out: &mut BytesMut) {
    out.reserve(bytes.len() + 9);
    put_length(out, bytes.len() as u64);
    out.put_slice(bytes);
}

/// The local time of an ISO 8601 text, because no type of MySQL has an offset.
fn put_time(text: &str, out: &mut BytesMut) -> Result<(), TypeMismatch> {
    let time = WallClock::read(text)
        .ok_or("is a date MySQL cannot hold: the years are 0000 to 9999".to_owned())?;
    out.put_u8(11);
    out.put_u16_le(time.year);
    out.put_slice(&[time.month, time.day, time.hour, time.minute, time.second]);
    out.put_u32_le(time.microsecond);
    Ok(())
}

#[derive(Debug, Default, PartialEq, Eq)]
struct WallClock {
    year: u16,
    month: u8,
    day: u8,
    hour: u8,
    minute: u8,
    second: u8,
    microsecond: u32,
}

impl WallClock {
    /// `2024-02-29`, `2024-02-29T23:59:59.123456+05:30`.
    fn read(text: &str) -> Option<Self> {
        let number = |from: usize, to: usize| text.get(from..to)?.parse::<u16>().ok();
        let small = |from, to| number(from, to).and_then(|number| u8::try_from(number).ok());
        let mark = |at: usize, marks: &[u8]| text.as_bytes().get(at).filter(|b| marks.contains(b));
        mark(4, b"-")?;
        mark(7, b"-")?;
        let date = Self {
            year: number(0, 4)?,
            month: small(5, 7)?,
            day: small(8, 10)?,
            ..Self::default()
        };
        if text.len() == 10 {
            return Some(date);
        }
        mark(10, b"T ")?;
        let fraction = match mark(19, b".") {
            Some(_) => {
                let digits = text[20..].bytes().take_while(u8::is_ascii_digit).count();
                format!("{:0<6}", &text[20..20 + digits.min(6)])
                    .parse()
                    .ok()?
            }
            None => 0,
        };
        Some(Self {
            hour: small(11, 13)?,
            minute: small(14, 16)?,
            second: small(17, 19)?,
            microsecond: fraction,
            ..date
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wall_clock_of_a_timestamp_is_sent() {
        let read = WallClock::read("2024-02-29T23:59:58.1234567+05:30").unwrap();
        let expected = WallClock {
            year: 2024,
            month: 2,
            day: 29,
            hour: 23,
            minute: 59,
            second: 58,
            microsecond: 123_456,
        };
        assert_eq!(read, expected);
        assert_eq!(
            WallClock::read("2024-02-29T23:59:58.5Z")
                .unwrap()
                .microsecond,
            500_000
        );
        assert_eq!(WallClock::read("2024-02-29").unwrap().day, 29);
    }

    #[test]
    fn years_beyond_four_digits_and_other_texts_are_refused() {
        for text in [
            "12024-02-29T00:00:00Z",
            "-0044-03-15T00:00:00Z",
            "",
            "today",
            "2024-02-29Tä",
        ] {
            assert_eq!(WallClock::read(text), None, "{text}");
        }
    }

    #[test]
    fn a_value_that_does_not_fit_is_named_by_its_place() {
        let params = vec![Value::Null, Value::Float(f64::NAN)];
        let statement = Statement::new("SELECT ?, ?", params);
        let error = execute(1, &statement, false, &mut BytesMut::new()).unwrap_err();
        assert!(
            error.to_string().starts_with("parameter 2 is NaN"),
            "{error}"
        );
    }
}
