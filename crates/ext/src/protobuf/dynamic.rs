//! PHP values as `google.protobuf.Value`, `Struct` and `ListValue`.

use weft_core::protobuf::wire::{self, put_delimited};
use weft_core::protobuf::{Depth, MAX_DEPTH, WellKnown};

use crate::zend::value::{Array, Key, Object, Value};

type Result = std::result::Result<(), String>;

/// Writes the fields of the message that stands for a value. Here and below, `depth` is inside the message whose fields are written.
pub fn put(out: &mut Vec<u8>, kind: WellKnown, value: Value<'_>, depth: Depth) -> Result {
    match (kind, value) {
        (WellKnown::Struct, Value::Array(array)) => structure(out, array, depth),
        (WellKnown::ListValue, Value::Array(array)) => list(out, array, depth),
        (WellKnown::Value, value) => any(out, value, depth),
        (_, other) => Err(format!("holds {}, expected array", other.kind())),
    }
}

fn any(out: &mut Vec<u8>, value: Value<'_>, depth: Depth) -> Result {
    match value {
        Value::Absent => out.extend_from_slice(&[0x08, 0]),
        Value::Bool(value) => out.extend_from_slice(&[0x20, value.into()]),
        Value::Int(number) => return self::number(out, number as f64),
        Value::Float(number) => return self::number(out, number),
        Value::Text(string) => {
            out.push(0x1A);
            put_delimited(out, text(string.as_bytes())?);
        }
        Value::Array(array) if array.is_list() => {
            return nested(out, 0x32, depth, |out, depth| list(out, array, depth));
        }
        Value::Array(array) => {
            return nested(out, 0x2A, depth, |out, depth| structure(out, array, depth));
        }
        Value::Object(object) => return object_value(out, object, depth),
        Value::Other => return Err("holds a resource, which JSON does not have".to_owned()),
    }
    Ok(())
}

fn object_value(out: &mut Vec<u8>, object: Object<'_>, depth: Depth) -> Result {
    // The initializer of a lazy object is PHP code.
    let _held = object.held();
    match object.class().name() {
        "stdClass" => nested(out, 0x2A, depth, |out, depth| {
            structure(out, object.properties(), depth)
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

/// Writes a message that begins here.
fn nested(
    out: &mut Vec<u8>,
    tag: u8,
    depth: Depth,
    write: impl FnOnce(&mut Vec<u8>, Depth) -> Result,
) -> Result {
    let too_deep = |_| format!("is nested deeper than {MAX_DEPTH} levels");
    let depth = depth.enter().map_err(too_deep)?;
    out.push(tag);
    let start = wire::open(out);
    write(out, depth)?;
    wire::close(out, start);
    Ok(())
}

fn list(out: &mut Vec<u8>, array: Array<'_>, depth: Depth) -> Result {
    array.each(|_, value| nested(out, 0x0A, depth, |out, depth| any(out, value, depth)))
}

fn structure(out: &mut Vec<u8>, array: Array<'_>, depth: Depth) -> Result {
    array.each(|key, value| {
        nested(out, 0x0A, depth, |out, depth| {
            out.push(0x0A);
            match key {
                Key::Index(number) => put_delimited(out, number.to_string().as_bytes()),
                Key::Text(string) => put_delimited(out, text(string.as_bytes())?),
            }
            nested(out, 0x12, depth, |out, depth| any(out, value, depth))
        })
    })
}

fn text(bytes: &[u8]) -> std::result::Result<&[u8], String> {
    match std::str::from_utf8(bytes) {
        Ok(_) => Ok(bytes),
        Err(_) => Err("holds text that is not UTF-8".to_owned()),
    }
}
