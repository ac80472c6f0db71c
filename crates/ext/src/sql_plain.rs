//! Results as the databases' own PHP extensions return them: rows are lists, dates, JSON and arrays stay the text the server wrote.

use ext_php_rs::exception::PhpResult;
use ext_php_rs::types::{ZendHashTable, ZendStr, Zval};

use weft_core::sql::{Dialect, ResultSet, Value};

use crate::convert::array_zval;

/// `[columns, rows, affected, last id]`; the results of a procedure after the first are dropped.
pub fn result_set(result: ResultSet, dialect: Dialect) -> PhpResult<Zval> {
    let mut columns = ZendHashTable::with_capacity(result.columns.len() as u32);
    for column in result.columns.iter() {
        columns.push(column.name.as_str())?;
    }
    let mut rows = ZendHashTable::with_capacity(result.rows.len() as u32);
    for row in result.rows {
        let mut list = ZendHashTable::with_capacity(row.len() as u32);
        for value in row {
            list.push(to_zval(value, dialect))?;
        }
        rows.push(array_zval(list))?;
    }
    let mut fields = ZendHashTable::with_capacity(4);
    fields.push(array_zval(columns))?;
    fields.push(array_zval(rows))?;
    fields.push(result.affected as i64)?;
    fields.push(result.last_insert_id)?;
    Ok(array_zval(fields))
}

fn to_zval(value: Value, dialect: Dialect) -> Zval {
    let mut zval = Zval::new();
    match value {
        Value::Null => zval.set_null(),
        Value::Bool(boolean) if dialect == Dialect::Postgres => zval.set_bool(boolean),
        Value::Bool(boolean) => zval.set_long(i64::from(boolean)),
        Value::Int(number) => zval.set_long(number),
        Value::Float(number) => zval.set_double(number),
        Value::Text(text) | Value::Json(text) | Value::Date(text) => {
            zval.set_zend_string(ZendStr::new(text, false));
        }
        Value::Timestamp(text) => {
            let text = match dialect {
                Dialect::Postgres => postgres_timestamp(text),
                _ => text,
            };
            zval.set_zend_string(ZendStr::new(text, false));
        }
        Value::Bytes(bytes) => zval.set_zend_string(ZendStr::new(bytes, false)),
        Value::List(values) => {
            let mut text = String::new();
            write_array(&values, &mut text);
            zval.set_zend_string(ZendStr::new(text, false));
        }
    }
    zval
}

/// `2024-01-02T03:04:05+00:00` as the server wrote it: `2024-01-02 03:04:05+00`.
fn postgres_timestamp(text: String) -> String {
    if !text.contains('T') {
        return text;
    }
    let text = text.replacen('T', " ", 1);
    let has_offset = text
        .rfind(['+', '-'])
        .is_some_and(|sign| text.len() - sign == 6 && sign > 10);
    match text.strip_suffix(":00") {
        Some(short) if has_offset => short.to_owned(),
        _ => text,
    }
}

/// An array of PostgreSQL, quoted only where the server quotes (`array_out`).
fn write_array(values: &[Value], out: &mut String) {
    out.push('{');
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        match value {
            Value::List(list) => write_array(list, out),
            Value::Null => out.push_str("NULL"),
            Value::Bool(boolean) => out.push(if *boolean { 't' } else { 'f' }),
            Value::Int(number) => out.push_str(&number.to_string()),
            Value::Float(number) => out.push_str(&float(*number)),
            Value::Text(text) | Value::Json(text) | Value::Date(text) => write_element(text, out),
            Value::Timestamp(text) => write_element(&postgres_timestamp(text.clone()), out),
            Value::Bytes(bytes) => {
                let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                write_element(&format!("\\x{hex}"), out);
            }
        }
    }
    out.push('}');
}

fn write_element(text: &str, out: &mut String) {
    let special = |character: char| {
        matches!(character, '"' | '\\' | '{' | '}' | ',') || character.is_ascii_whitespace()
    };
    if !text.is_empty() && !text.contains(special) && !text.eq_ignore_ascii_case("NULL") {
        return out.push_str(text);
    }
    out.push('"');
    for character in text.chars() {
        if matches!(character, '"' | '\\') {
            out.push('\\');
        }
        out.push(character);
    }
    out.push('"');
}

/// The shortest text that is read as the same number, with an exponent where the server writes one (`float8out`).
fn float(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 {
            "Infinity"
        } else {
            "-Infinity"
        }
        .to_owned();
    }
    let scientific = format!("{number:e}");
    let exponent = scientific.split_once('e').and_then(|(digits, exponent)| {
        let exponent: i32 = exponent.parse().ok()?;
        Some((digits, exponent))
    });
    match exponent {
        Some((digits, exponent)) if !(-4..15).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
        }
        _ => number.to_string(),
    }
}
