//! PostgreSQL's text forms: array literals, `bytea` in hex, dates and times in ISO style.

use crate::sql::Value;

/// A literal in an undocumented form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

/// Writes `{…}`; elements are in their own text form, quoted where that could be misread.
///
/// # Errors
/// The kind of a value that has no text form inside an array.
pub(super) fn write_array(values: &[Value], out: &mut String) -> Result<(), &'static str> {
    out.push('{');
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_element(value, out)?;
    }
    out.push('}');
    Ok(())
}

fn write_element(value: &Value, out: &mut String) -> Result<(), &'static str> {
    match value {
        Value::Null => out.push_str("NULL"),
        Value::Bool(true) => out.push('t'),
        Value::Bool(false) => out.push('f'),
        Value::Int(int) => out.push_str(&int.to_string()),
        Value::Float(float) => out.push_str(&write_float(*float)),
        Value::Bytes(bytes) => write_quoted(&write_hex(bytes), out),
        Value::Text(text) | Value::Json(text) | Value::Date(text) | Value::Timestamp(text) => {
            if text.contains('\0') {
                return Err("text with a NUL byte");
            }
            write_quoted(text, out);
        }
        Value::List(list) => write_array(list, out)?,
    }
    Ok(())
}

fn write_quoted(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        if matches!(character, '"' | '\\') {
            out.push('\\');
        }
        out.push(character);
    }
    out.push('"');
}

/// The shortest text that parses to the same number; `NaN`, `Infinity`.
pub(super) fn write_float(float: f64) -> String {
    if float.is_infinite() {
        return if float > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    format!("{float:?}")
}

pub(super) fn write_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut out = String::with_capacity(2 + bytes.len() * 2);
    out.push_str("\\x");
    for byte in bytes {
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    out
}

/// `\x…`, or the older escape form.
pub(super) fn read_bytea(text: &[u8]) -> Result<Vec<u8>, Malformed> {
    match text.strip_prefix(b"\\x") {
        Some(hex) => read_hex(hex),
        None => read_escaped(text),
    }
}

fn read_hex(hex: &[u8]) -> Result<Vec<u8>, Malformed> {
    if !hex.len().is_multiple_of(2) {
        return Err(Malformed);
    }
    hex.chunks_exact(2)
        .map(|pair| Ok(nibble(pair[0])? << 4 | nibble(pair[1])?))
        .collect()
}

fn nibble(digit: u8) -> Result<u8, Malformed> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
        .ok_or(Malformed)
}

fn read_escaped(text: &[u8]) -> Result<Vec<u8>, Malformed> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    loop {
        rest = match rest {
            [] => return Ok(out),
            [b'\\', b'\\', tail @ ..] => {
                out.push(b'\\');
                tail
            }
            [
                b'\\',
                a @ b'0'..=b'3',
                b @ b'0'..=b'7',
                c @ b'0'..=b'7',
                tail @ ..,
            ] => {
                out.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                tail
            }
            [b'\\', ..] => return Err(Malformed),
            [byte, tail @ ..] => {
                out.push(*byte);
                tail
            }
        };
    }
}

/// 32 hexadecimal digits, hyphens anywhere. `None` for any other form, which the server may still parse.
pub(super) fn read_uuid(text: &str) -> Option<[u8; 16]> {
    let mut bytes = [0; 16];
    let mut digits = 0;
    for byte in text.bytes() {
        if byte == b'-' {
            continue;
        }
        let value = nibble(byte).ok()?;
        let slot = bytes.get_mut(digits / 2)?;
        *slot = *slot << 4 | value;
        digits += 1;
    }
    (digits == 32).then_some(bytes)
}

pub(super) fn write_uuid(bytes: &[u8; 16]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut out = String::with_capacity(36);
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    out
}

/// `2024-01-02 03:04:05+00` becomes `2024-01-02T03:04:05+00:00`; `infinity` and years BC stay as they are.
pub(super) fn read_timestamp(text: &str) -> String {
    let Some((date, time)) = text.split_once(' ').filter(|(_, time)| !time.contains(' ')) else {
        return text.to_owned();
    };
    let mut out = String::with_capacity(text.len() + 3);
    out.push_str(date);
    out.push('T');
    out.push_str(time);
    if time
        .rfind(['+', '-'])
        .is_some_and(|sign| time.len() - sign == 3)
    {
        out.push_str(":00");
    }
    out
}

/// Parses an array literal with optional leading dimensions, and passes the text of each element to `element`.
pub(super) fn read_array(
    text: &str,
    element: &mut dyn FnMut(&str) -> Result<Value, Malformed>,
) -> Result<Value, Malformed> {
    let text = match text.strip_prefix('[') {
        Some(bounds) => bounds.split_once('=').ok_or(Malformed)?.1,
        None => text,
    };
    let mut reader = ArrayReader { rest: text };
    let list = reader.list(element, 0)?;
    if reader.rest.is_empty() {
        Ok(list)
    } else {
        Err(Malformed)
    }
}

/// The server's maximum number of dimensions (`MAXDIM`).
const MAX_DIMENSIONS: usize = 6;

struct ArrayReader<'a> {
    rest: &'a str,
}

impl ArrayReader<'_> {
    fn list(
        &mut self,
        element: &mut dyn FnMut(&str) -> Result<Value, Malformed>,
        depth: usize,
    ) -> Result<Value, Malformed> {
        if depth == MAX_DIMENSIONS || !self.skip('{') {
            return Err(Malformed);
        }
        let mut list = Vec::new();
        if self.skip('}') {
            return Ok(Value::List(list));
        }
        loop {
            list.push(self.item(element, depth)?);
            if self.skip('}') {
                return Ok(Value::List(list));
            }
            if !self.skip(',') {
                return Err(Malformed);
            }
        }
    }

    fn item(
        &mut self,
        element: &mut dyn FnMut(&str) -> Result<Value, Malformed>,
        depth: usize,
    ) -> Result<Value, Malformed> {
        if self.rest.starts_with('{') {
            return self.list(element, depth + 1);
        }
        if self.skip('"') {
            return element(&self.quoted()?);
        }
        let end = self.rest.find([',', '}']).ok_or(Malformed)?;
        let (bare, rest) = self.rest.split_at(end);
        self.rest = rest;
        match bare {
            "" => Err(Malformed),
            "NULL" => Ok(Value::Null),
            _ => element(bare),
        }
    }

    fn quoted(&mut self) -> Result<String, Malformed> {
        let mut out = String::new();
        let mut characters = self.rest.char_indices();
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return Ok(out);
                }
                '\\' => out.push(characters.next().ok_or(Malformed)?.1),
                _ => out.push(character),
            }
        }
        Err(Malformed)
    }

    fn skip(&mut self, character: char) -> bool {
        let found = self.rest.strip_prefix(character);
        self.rest = found.unwrap_or(self.rest);
        found.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(literal: &str) -> Result<Value, Malformed> {
        read_array(literal, &mut |text| Ok(Value::Text(text.to_owned())))
    }

    #[test]
    fn an_array_literal_is_read_with_quotes_nulls_and_dimensions() {
        let text = |text: &str| Value::Text(text.to_owned());
        assert_eq!(texts("{}"), Ok(Value::List(vec![])));
        assert_eq!(
            texts(r#"[0:1]={a,"b \"c\\,}",NULL,"NULL",""}"#),
            Ok(Value::List(vec![
                text("a"),
                text("b \"c\\,}"),
                Value::Null,
                text("NULL"),
                text("")
            ]))
        );
        assert_eq!(
            texts("{{1},{2}}"),
            Ok(Value::List(vec![
                Value::List(vec![text("1")]),
                Value::List(vec![text("2")])
            ]))
        );
    }

    #[test]
    fn a_broken_array_literal_is_refused() {
        for literal in [
            "",
            "{",
            "{a",
            "{a,}",
            "{a}b",
            "{\"a",
            "[0:1]{a}",
            "{{{{{{{a}}}}}}}",
            "{\"\\",
        ] {
            assert_eq!(texts(literal), Err(Malformed), "{literal}");
        }
    }

    #[test]
    fn an_array_is_written_so_that_it_reads_back() {
        let list = vec![
            Value::Text("a\"b\\c,{} NULL".into()),
            Value::Null,
            Value::Text(String::new()),
            Value::Text("NULL".into()),
        ];
        let mut literal = String::new();
        write_array(&list, &mut literal).unwrap();
        assert_eq!(texts(&literal), Ok(Value::List(list)));
    }

    #[test]
    fn bytea_is_read_in_both_output_styles() {
        assert_eq!(read_bytea(b"\\x00ff5C"), Ok(vec![0, 255, 0x5c]));
        assert_eq!(read_bytea(b"a\\\\\\377"), Ok(vec![b'a', b'\\', 255]));
        assert_eq!(read_bytea(b"\\x0"), Err(Malformed));
        assert_eq!(read_bytea(b"\\9"), Err(Malformed));
    }

    #[test]
    fn timestamps_become_iso_8601() {
        assert_eq!(
            read_timestamp("2024-01-02 03:04:05.6"),
            "2024-01-02T03:04:05.6"
        );
        assert_eq!(
            read_timestamp("2024-01-02 03:04:05+00"),
            "2024-01-02T03:04:05+00:00"
        );
        assert_eq!(
            read_timestamp("2024-01-02 03:04:05-05:30"),
            "2024-01-02T03:04:05-05:30"
        );
        assert_eq!(read_timestamp("infinity"), "infinity");
        assert_eq!(
            read_timestamp("0044-03-15 12:00:00 BC"),
            "0044-03-15 12:00:00 BC"
        );
    }

    #[test]
    fn a_uuid_reads_back_what_was_written() {
        let text = "0190a5b0-7c4d-7abc-8def-0123456789ab";
        assert_eq!(write_uuid(&read_uuid(text).unwrap()), text);
        assert_eq!(read_uuid("0190a5b0"), None);
        assert_eq!(read_uuid("{0190a5b0-7c4d-7abc-8def-0123456789ab}"), None);
        assert_eq!(read_uuid(&format!("{text}0")), None);
    }
}
