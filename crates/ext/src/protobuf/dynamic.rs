//! PHP values as `google.protobuf.Value`, `Struct` and `ListValue`.

use ext_php_rs::ffi::{HashTable, zend_object};
use ext_php_rs::zend::ClassEntry;

use weft_core::protobuf::WellKnown;
use weft_core::protobuf::wire::{self, put_delimited};

use super::slot::{self, Key, Value};
use crate::held::Held;

type Result = std::result::Result<(), String>;

/// Writes the fields of the message that stands for a value.
pub fn put(out: &mut Vec<u8>, kind: WellKnown, value: Value, depth: usize) -> Result {
    match (kind, value) {
        (WellKnown::Struct, Value::Array(array)) => structure(out, array, depth),
        (WellKnown::ListValue, Value::Array(array)) => list(out, array, depth),
        (WellKnown::Value, value) => any(out, value, depth),
        (_, other) => Err(format!("holds {}, expected array", other.kind())),
    }
}

fn any(out: &mut Vec<u8>, value: Value, depth: usize) -> Result {
    let depth = depth
        .checked_sub(1)
        .ok_or("is nested deeper than 100 levels")?;
    match value {
        Value::Absent => out.extend_from_slice(&[0x08, 0]),
        Value::Bool(value) => out.extend_from_slice(&[0x20, value.into()]),
        Value::Int(number) => return self::number(out, number as f64),
        Value::Float(number) => return self::number(out, number),
        Value::Text(string) => {
            out.push(0x1A);
            // SAFETY: the array that is being encoded holds the string.
            put_delimited(out, text(unsafe { slot::bytes(string) })?);
        }
        Value::Array(array) if is_list(array) => {
            return nested(out, 0x32, |out| list(out, array, depth));
        }
        Value::Array(array) => return nested(out, 0x2A, |out| structure(out, array, depth)),
        Value::Object(object) => return object_value(out, object, depth),
        Value::Other => return Err("holds a resource, which JSON does not have".to_owned()),
    }
    Ok(())
}

fn object_value(out: &mut Vec<u8>, object: *mut zend_object, depth: usize) -> Result {
    // SAFETY: no PHP code has run since the object was read from the array that owns it. The initializer of a lazy object
    // is PHP code.
    let _held = unsafe { Held::object(object) };
    // SAFETY: held.
    let class = unsafe { (*object).ce.as_ref() }
        .and_then(ClassEntry::name)
        .unwrap_or_default();
    match class {
        "stdClass" => nested(out, 0x2A, |out| {
            structure(out, slot::properties(object), depth)
        }),
        "Weft\\Protobuf\\WellKnown\\NullValue" => {
            out.extend_from_slice(&[0x08, 0]);
            Ok(())
        }
        class => Err(format!(
            "holds an object of {class}, expected null, bool, int, float, string, array or stdClass"
        )),
    }
}

fn number(out: &mut Vec<u8>, number: f64) -> Result {
    out.push(0x11);
    out.extend_from_slice(&number.to_le_bytes());
    Ok(())
}

fn nested(out: &mut Vec<u8>, tag: u8, write: impl FnOnce(&mut Vec<u8>) -> Result) -> Result {
    out.push(tag);
    let start = wire::open(out);
    write(out)?;
    wire::close(out, start);
    Ok(())
}

fn list(out: &mut Vec<u8>, array: *mut HashTable, depth: usize) -> Result {
    // SAFETY: no PHP code has run since the array was read from what owns it; from here on it is held.
    unsafe {
        let _held = Held::array_at(array);
        slot::each(array, |_, value| {
            nested(out, 0x0A, |out| any(out, value, depth))
        })
    }
}

fn structure(out: &mut Vec<u8>, array: *mut HashTable, depth: usize) -> Result {
    // SAFETY: no PHP code has run since the array was read from what owns it; from here on it is held.
    unsafe {
        let _held = Held::array_at(array);
        slot::each(array, |key, value| {
            nested(out, 0x0A, |out| {
                out.push(0x0A);
                match key {
                    Key::Index(number) => put_delimited(out, number.to_string().as_bytes()),
                    Key::Text(string) => put_delimited(out, text(slot::bytes(string))?),
                }
                nested(out, 0x12, |out| any(out, value, depth))
            })
        })
    }
}

fn text(bytes: &[u8]) -> std::result::Result<&[u8], String> {
    match std::str::from_utf8(bytes) {
        Ok(_) => Ok(bytes),
        Err(_) => Err("holds text that is not UTF-8".to_owned()),
    }
}

/// Whether the keys are 0, 1, 2, …
pub fn is_list(array: *mut HashTable) -> bool {
    let mut next = 0;
    // SAFETY: the message holds the array, and no PHP code runs meanwhile.
    let outcome = unsafe {
        slot::each(array, |key, _| match key {
            Key::Index(index) if index == next => {
                next += 1;
                Ok(())
            }
            _ => Err(()),
        })
    };
    outcome.is_ok()
}
