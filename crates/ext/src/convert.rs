//! SQL values between PHP and `weft-core`.

use ext_php_rs::boxed::ZBox;
use ext_php_rs::convert::IntoZvalDyn;
use ext_php_rs::exception::{PhpException, PhpResult};
use ext_php_rs::types::array::ArrayKey;
use ext_php_rs::types::{ZendCallable, ZendHashTable, ZendStr, Zval};

use weft_core::sql::{Params, ResultSet, Value};

use crate::failure::Failure;

/// A PHP list becomes positional parameters, an array with string keys named ones.
pub fn params(array: &ZendHashTable) -> PhpResult<Params> {
    if array.has_sequential_keys() {
        return Ok(Params::Positional(
            array.values().map(value).collect::<PhpResult<_>>()?,
        ));
    }
    let named = array.iter().map(|(key, zval)| match key {
        ArrayKey::Long(index) => Err(Failure::new(
            "sql.parameter",
            format!("parameters must be a list or have names as keys; key {index} is neither in order nor a name"),
        )
        .into()),
        name => Ok((name.to_string().trim_start_matches(':').to_owned(), value(zval)?)),
    });
    Ok(Params::Named(named.collect::<PhpResult<_>>()?))
}

/// Scalars and lists here; objects and maps are the PHP library's business (`Weft\Sql\Internal\Parameter`).
fn value(zval: &Zval) -> PhpResult<Value> {
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
    match zval.array() {
        Some(list) if list.has_sequential_keys() || list.is_empty() => Ok(Value::List(
            list.values().map(value).collect::<PhpResult<_>>()?,
        )),
        _ => encoded(zval),
    }
}

fn text_or_bytes(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => Value::Text(text.to_owned()),
        Err(_) => Value::Bytes(bytes.to_vec()),
    }
}

/// Lets PHP turn an object or a map into `[kind, text]`.
fn encoded(zval: &Zval) -> PhpResult<Value> {
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
        _ => Value::Text(text()),
    })
}

/// Calls a PHP function that does not suspend; its exception stays pending and is passed on.
pub fn call(name: &str, arguments: Vec<&dyn IntoZvalDyn>) -> PhpResult<Zval> {
    let callable = ZendCallable::try_from_name(name).map_err(|_| {
        PhpException::from(format!("{name}() not found: is Weft's PHP library loaded?"))
    })?;
    Ok(callable.try_call(arguments)?)
}

/// `[columns, rows, affected, lastInsertId]`, each row keyed by column name.
pub fn result_set(result: ResultSet) -> PhpResult<Zval> {
    let names = column_names(&result);
    let rows = row_list(&names, result.rows)?;
    let mut columns = ZendHashTable::with_capacity(names.len() as u32);
    for name in names {
        let mut zval = Zval::new();
        zval.set_zend_string(name);
        columns.push(zval)?;
    }
    let mut fields = ZendHashTable::with_capacity(4);
    fields.push(array_zval(columns))?;
    fields.push(rows)?;
    fields.push(result.affected as i64)?;
    fields.push(result.last_insert_id)?;
    Ok(array_zval(fields))
}

/// Only the rows of a result, each keyed by column name.
pub fn rows(result: ResultSet) -> PhpResult<Zval> {
    let names = column_names(&result);
    row_list(&names, result.rows)
}

fn column_names(result: &ResultSet) -> Vec<ZBox<ZendStr>> {
    let names = result.columns.iter();
    names
        .map(|column| ZendStr::new(&column.name, false))
        .collect()
}

fn row_list(names: &[ZBox<ZendStr>], rows: Vec<Vec<Value>>) -> PhpResult<Zval> {
    let mut list = ZendHashTable::with_capacity(rows.len() as u32);
    for row in rows {
        list.push(row_array(names, row)?)?;
    }
    Ok(array_zval(list))
}

fn row_array(names: &[ZBox<ZendStr>], row: Vec<Value>) -> PhpResult<Zval> {
    let mut array = ZendHashTable::with_capacity(row.len() as u32);
    for (name, value) in names.iter().zip(row) {
        array.insert(ArrayKey::ZendString(name), to_zval(value)?)?;
    }
    Ok(array_zval(array))
}

fn to_zval(value: Value) -> PhpResult<Zval> {
    let mut zval = Zval::new();
    match value {
        Value::Null => zval.set_null(),
        Value::Bool(boolean) => zval.set_bool(boolean),
        Value::Int(number) => zval.set_long(number),
        Value::Float(number) => zval.set_double(number),
        Value::Text(text) => zval.set_zend_string(ZendStr::new(text, false)),
        Value::Bytes(bytes) => zval.set_zend_string(ZendStr::new(bytes, false)),
        Value::Json(text) => return call("Weft\\Sql\\Internal\\Parameter::json", vec![&text]),
        Value::Date(text) | Value::Timestamp(text) => {
            return call("Weft\\Sql\\Internal\\Parameter::timestamp", vec![&text]);
        }
        Value::List(values) => {
            let mut list = ZendHashTable::with_capacity(values.len() as u32);
            for value in values {
                list.push(to_zval(value)?)?;
            }
            return Ok(array_zval(list));
        }
    }
    Ok(zval)
}

pub fn array_zval(array: ZBox<ZendHashTable>) -> Zval {
    let mut zval = Zval::new();
    zval.set_hashtable(array);
    zval
}
