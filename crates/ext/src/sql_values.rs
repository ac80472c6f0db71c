//! SQL values between PHP and `weft-core`.

use std::cell::OnceCell;
use std::fmt;

use ext_php_rs::boxed::ZBox;
use ext_php_rs::exception::{PhpException, PhpResult};
use ext_php_rs::types::array::ArrayKey;
use ext_php_rs::types::{ZendHashTable, ZendStr, Zval};
use ext_php_rs::zend::{ClassEntry, Function};

use weft_core::sql::{Error, Params, ResultSet, Value};

use crate::array::list;
use crate::convert::{array_zval, call};
use crate::sql_failure::{failure, item_failure};
use crate::zend::{Class, Held};

/// Nested lists; the limit of PHP's json_encode().
const MAX_DEPTH: usize = 512;

/// The parameter that a value belongs to, for error messages.
#[derive(Clone, Copy)]
struct ParameterPath<'a> {
    sql: &'a str,
    /// Its index in a batch.
    item: Option<i64>,
    parameter: Parameter<'a>,
}

#[derive(Clone, Copy)]
enum Parameter<'a> {
    Position(usize),
    Name(&'a str),
    /// The number of the row, counted from 1, and the index of the column.
    Cell(i64, usize),
}

impl fmt::Display for Parameter<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Position(index) => write!(formatter, "parameter {}", index + 1),
            Self::Name(name) => write!(formatter, "parameter :{name}"),
            Self::Cell(row, index) => write!(formatter, "row {row}: value {}", index + 1),
        }
    }
}

impl ParameterPath<'_> {
    fn refuse(&self, reason: &str) -> PhpException {
        refusal(self.sql, self.item, format!("{} {reason}", self.parameter))
    }
}

fn refusal(sql: &str, item: Option<i64>, message: String) -> PhpException {
    let error = Error::parameter(sql, message);
    match item {
        Some(item) => item_failure(error, item).into(),
        None => failure(error).into(),
    }
}

/// A PHP list becomes positional parameters, an array with string keys named ones. `item` is their index in a
/// batch.
pub fn params(array: &ZendHashTable, sql: &str, item: Option<i64>) -> PhpResult<Params> {
    let position = |(index, zval)| {
        let path = ParameterPath {
            sql,
            item,
            parameter: Parameter::Position(index),
        };
        value(zval, path, 0)
    };
    match list(array) {
        Some(list) => Ok(Params::Positional(
            list.enumerate().map(position).collect::<PhpResult<_>>()?,
        )),
        None => named(array, sql, item),
    }
}

/// The values of row number `row`, counted from 1, of a `COPY`.
pub fn row(array: &ZendHashTable, sql: &str, row: i64) -> PhpResult<Vec<Value>> {
    let cells = list(array).ok_or_else(|| {
        let message = format!("row {row} must be a list of values in the order of the columns");
        refusal(sql, None, message)
    })?;
    cells
        .enumerate()
        .map(|(index, zval)| {
            let path = ParameterPath {
                sql,
                item: None,
                parameter: Parameter::Cell(row, index),
            };
            value(zval, path, 0)
        })
        .collect()
}

fn named(array: &ZendHashTable, sql: &str, item: Option<i64>) -> PhpResult<Params> {
    let refuse = |key: String| -> PhpException {
        let message = format!(
            "parameters must be a list or have names as keys; key {key} is neither in order nor a name"
        );
        refusal(sql, item, message)
    };
    let mut values = Vec::with_capacity(array.len());
    let mut entries = array.iter();
    while let Some((key, zval)) = entries.next_zval() {
        let name = match key
            .zend_str()
            .map(|name| std::str::from_utf8(name.as_bytes()))
        {
            Some(Ok(name)) => name.strip_prefix(':').unwrap_or(name),
            Some(Err(_)) => return Err(refuse("that is not UTF-8".to_owned())),
            None => return Err(refuse(key.long().unwrap_or_default().to_string())),
        };
        let parameter = Parameter::Name(name);
        let path = ParameterPath {
            sql,
            item,
            parameter,
        };
        values.push((name.to_owned(), value(zval, path, 0)?));
    }
    Ok(Params::Named(values))
}

/// Scalars and lists here; objects and maps are the PHP library's business (`Weft\Sql\Internal\Parameter`).
fn value(zval: &Zval, path: ParameterPath<'_>, depth: usize) -> PhpResult<Value> {
    let zval = zval.dereference();
    if let Some(string) = zval.zend_str() {
        return Ok(text_or_bytes(string.as_bytes()));
    }
    if let Some(number) = zval.long() {
        return Ok(Value::Int(number));
    }
    if let Some(number) = zval.double() {
        return Ok(Value::Float(number));
    }
    if let Some(boolean) = zval.bool() {
        return Ok(Value::Bool(boolean));
    }
    if zval.is_null() {
        return Ok(Value::Null);
    }
    nested(&Held::of(zval), path, depth)
}

/// Held, because an element's `jsonSerialize` can change the list or release the object if it stands behind a reference.
fn nested(held: &Held, path: ParameterPath<'_>, depth: usize) -> PhpResult<Value> {
    match held.array().and_then(list) {
        Some(_) if depth == MAX_DEPTH => Err(path.refuse("is nested deeper than 512 lists")),
        Some(list) => Ok(Value::List(
            list.map(|zval| value(zval, path, depth + 1))
                .collect::<PhpResult<_>>()?,
        )),
        None => encoded(held.zval(), path),
    }
}

fn text_or_bytes(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => Value::Text(text.to_owned()),
        Err(_) => Value::Bytes(bytes.to_vec()),
    }
}

/// Lets PHP turn an object or a map into `[kind, text]`, or into the reason why it cannot.
fn encoded(zval: &Zval, path: ParameterPath<'_>) -> PhpResult<Value> {
    let encoded = call("Weft\\Sql\\Internal\\Parameter::encode", vec![zval])?;
    let pair = encoded.array();
    let part = |index| {
        pair.and_then(|pair| pair.get_index(index))
            .and_then(Zval::zend_str)
    };
    let (Some(kind), Some(bytes)) = (part(0), part(1)) else {
        return Err("Weft\\Sql\\Internal\\Parameter::encode must return two strings".into());
    };
    let text = || String::from_utf8_lossy(bytes.as_bytes()).into_owned();
    Ok(match kind.as_bytes() {
        b"json" => Value::Json(text()),
        b"timestamp" => Value::Timestamp(text()),
        b"bytes" => Value::Bytes(bytes.as_bytes().to_vec()),
        b"text" => text_or_bytes(bytes.as_bytes()),
        _ => return Err(path.refuse(&text())),
    })
}

/// `[columns, rows, affected, lastInsertId, further]`, each row keyed by column name, each further result of the same form.
pub fn result_set(mut result: ResultSet) -> PhpResult<Zval> {
    let mut columns = ZendHashTable::with_capacity(result.columns.len() as u32);
    for column in result.columns.iter() {
        columns.push(column.name.as_str())?;
    }
    let mut further = ZendHashTable::new();
    for result in std::mem::take(&mut result.further) {
        further.push(result_set(result)?)?;
    }
    let mut fields = ZendHashTable::with_capacity(5);
    fields.push(array_zval(columns))?;
    let (affected, last_insert_id) = (result.affected, result.last_insert_id);
    fields.push(rows(result)?)?;
    fields.push(affected as i64)?;
    fields.push(last_insert_id)?;
    fields.push(array_zval(further))?;
    Ok(array_zval(fields))
}

/// Only the rows of a result, each keyed by column name.
pub fn rows(result: ResultSet) -> PhpResult<Zval> {
    let mut list = ZendHashTable::with_capacity(result.rows.len() as u32);
    if !result.rows.is_empty() {
        let keys: Vec<Key> = result.columns.iter().map(|c| Key::of(&c.name)).collect();
        let readers = Readers::default();
        for row in result.rows {
            list.push(row_array(&keys, row, &readers)?)?;
        }
    }
    Ok(array_zval(list))
}

/// The PHP functions that read what needs PHP, looked up at most once per result. They throw nothing.
#[derive(Default)]
struct Readers {
    json: OnceCell<&'static Function>,
    timestamp: OnceCell<&'static Function>,
}

impl Readers {
    fn json(&self, text: &str) -> PhpResult<Zval> {
        read(&self.json, "json", text)
    }

    fn timestamp(&self, text: &str) -> PhpResult<Zval> {
        read(&self.timestamp, "timestamp", text)
    }
}

fn read(reader: &OnceCell<&'static Function>, name: &str, text: &str) -> PhpResult<Zval> {
    let function = match reader.get() {
        Some(function) => function,
        None => {
            let class = ClassEntry::try_find("Weft\\Sql\\Internal\\Parameter");
            let found = class
                .and_then(|class| Class::of_entry(class).method(name))
                .ok_or("Weft\\Sql\\Internal\\Parameter not found: is Weft's PHP library loaded?")?;
            reader.get_or_init(|| found)
        }
    };
    Ok(function.try_call(vec![&text])?)
}

/// A column's name as PHP keeps it: `"7"` is the key 7. The string is shared by all rows and hashed once.
enum Key {
    Name(ZBox<ZendStr>),
    Number(i64),
}

impl Key {
    fn of(name: &str) -> Self {
        let looks_numeric = name.starts_with(|first: char| first == '-' || first.is_ascii_digit());
        match ArrayKey::from(if looks_numeric { name } else { "" }.to_owned()) {
            ArrayKey::Long(number) => Self::Number(number),
            _ => Self::Name(ZendStr::new(name, false)),
        }
    }

    fn array_key(&self) -> ArrayKey<'_> {
        match self {
            Self::Name(name) => ArrayKey::ZendString(name),
            Self::Number(number) => ArrayKey::Long(*number),
        }
    }
}

fn row_array(keys: &[Key], row: Vec<Value>, readers: &Readers) -> PhpResult<Zval> {
    let mut array = ZendHashTable::with_capacity(row.len() as u32);
    for (key, value) in keys.iter().zip(row) {
        array.insert(key.array_key(), to_zval(value, readers)?)?;
    }
    Ok(array_zval(array))
}

fn to_zval(value: Value, readers: &Readers) -> PhpResult<Zval> {
    let mut zval = Zval::new();
    match value {
        Value::Null => zval.set_null(),
        Value::Bool(boolean) => zval.set_bool(boolean),
        Value::Int(number) => zval.set_long(number),
        Value::Float(number) => zval.set_double(number),
        Value::Text(text) => zval.set_zend_string(ZendStr::new(text, false)),
        Value::Bytes(bytes) => zval.set_zend_string(ZendStr::new(bytes, false)),
        Value::Json(text) => return readers.json(&text),
        Value::Date(text) | Value::Timestamp(text) => return readers.timestamp(&text),
        Value::List(values) => {
            let mut list = ZendHashTable::with_capacity(values.len() as u32);
            for value in values {
                list.push(to_zval(value, readers)?)?;
            }
            return Ok(array_zval(list));
        }
    }
    Ok(zval)
}
